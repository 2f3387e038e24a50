//! Any text as a fio job file for a device of any size. The first eight bytes are that size.
#![no_main]

#[path = "../../tests/properties/jobs.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((size, text)) = data.split_first_chunk() else { return };
    properties::check_job(&String::from_utf8_lossy(text), u64::from_le_bytes(*size), 1, 64);
});
