//! Any bytes as a trace whose format is recognised.
#![no_main]

use flashpath::workload::trace::TraceOptions;

mod plain;
#[path = "../../tests/properties/traces.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if plain::is_ours(data) {
        properties::check_trace(data, &TraceOptions::default(), 1000);
    }
});
