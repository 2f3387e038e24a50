//! Any text as a path, and as a generator for a device of any size. The first eight bytes are that size.
#![no_main]

#[allow(dead_code)]
#[path = "../../tests/properties/expressions.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((size, text)) = data.split_first_chunk() else { return };
    let text = String::from_utf8_lossy(text);
    properties::check_path(&text);
    properties::check_generator(&text, u64::from_le_bytes(*size));
});
