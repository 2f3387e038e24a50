//! The speed of the sources: a generator alone, and the sample trace.

use crate::figures::SourceRow;
use crate::measure::{cpu_seconds, generated};
use crate::taking::{rounds, spread};
use flashpath::workload::trace::{TraceOptions, TraceReader};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/fb_varmail_ext4.csv.zst");
const GENERATED: u64 = 50_000_000;

/// Both sources.
pub fn rows(most_rounds: usize) -> Vec<SourceRow> {
    let (found, rounds) = rounds(most_rounds, || [generator_alone(8 << 30), sample_trace()]);
    let row = |at: usize, source: &str| {
        let requests_per_second = spread(found.iter().map(|round| round[at]).collect());
        SourceRow { source: source.into(), requests_per_second, rounds }
    };
    vec![row(0, "uniform writes, generated"), row(1, "the sample trace, read from its compressed file")]
}

/// Operations per second of a generator.
fn generator_alone(device_bytes: u64) -> f64 {
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
fn sample_trace() -> f64 {
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
