//! The speed of the sources: a generator alone, and the sample trace.

use crate::measure::{cpu_seconds, generated};
use flashpath::workload::trace::{TraceOptions, TraceReader};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/fb_varmail_ext4.csv.zst");
const GENERATED: u64 = 50_000_000;

/// Operations per second of a generator.
pub fn generator_alone(device_bytes: u64) -> f64 {
    let mut workload = generated(&format!("uniform:writes={}", GENERATED * 4096), device_bytes);
    let started = cpu_seconds();
    let (mut batch, mut total) = (Vec::new(), 0);
    loop {
        batch.clear();
        match workload.next_batch(&mut batch, 1024).expect("a generator") {
            0 => break,
            count => total += count,
        }
    }
    total as f64 / (cpu_seconds() - started)
}

/// Operations per second of the sample trace, read from its compressed file.
pub fn sample_trace() -> f64 {
    let started = cpu_seconds();
    let (mut batch, mut operations) = (Vec::new(), 0);
    for _ in 0..4 {
        let mut reader = TraceReader::open(SAMPLE.as_ref(), &TraceOptions::default()).expect("the sample trace");
        loop {
            batch.clear();
            match reader.read_batch(&mut batch, 4096).expect("the sample trace") {
                0 => break,
                count => operations += count,
            }
        }
    }
    operations as f64 / (cpu_seconds() - started)
}
