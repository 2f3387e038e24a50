//! Any bytes as the uncompressed calls of a recording, and as a whole one.
#![no_main]

#[path = "../../tests/properties/recordings.rs"]
mod properties;

use flashpath::workload::files::recorded::format::{MAGIC, VERSION};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    properties::check_recording(data);
    let Ok(calls) = zstd::encode_all(data, 1) else { return };
    let packed = [&MAGIC[..], &VERSION.to_le_bytes(), &calls].concat();
    assert_eq!(properties::check_recording(&packed), properties::check_recording(&packed));
});
