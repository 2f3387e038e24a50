//! Any bytes as a trace of the format, and the stage, that the first byte chooses.
#![no_main]

use flashpath::workload::trace::{FORMATS, Stage, TraceOptions};

mod plain;
#[path = "../../tests/properties/traces.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    let format = &FORMATS[usize::from(choice & 0x7f) % FORMATS.len()];
    if format.name() == "parquet" || !plain::is_ours(data) {
        return;
    }
    let has_stages = matches!(format.name(), "blkparse" | "blktrace");
    let stage = (has_stages && choice & 0x80 != 0).then_some(Stage::Issue);
    let options = TraceOptions { format: Some(format), stage, ..TraceOptions::default() };
    let whole = properties::check_trace(data, &options, 1000);
    assert_eq!(whole, properties::check_trace(data, &options, 3), "batches of 1000 and of 3 differ");
});
