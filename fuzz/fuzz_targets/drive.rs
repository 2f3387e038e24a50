//! Any small drive under any generator. The first eight bytes are the seed; the path ends with its line, the generator
//! follows.
#![no_main]

#[path = "../../tests/properties/drives.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((seed, text)) = data.split_first_chunk() else { return };
    let text = String::from_utf8_lossy(text);
    let Some((path, work)) = text.split_once('\n') else { return };
    properties::check_drive(path, work, u64::from_le_bytes(*seed));
});
