//! No input panics a trace reader, and all emitted operations are valid.
//!
//! The samples of all formats are damaged at random, by a generator with a fixed seed. The same check serves the
//! coverage-guided fuzzer in `fuzz/`.

use flashpath::random::Random;
use flashpath::workload::trace::{
    Addresses, Columns, FORMATS, OutputFormat, Stage, TraceOptions, TraceWorkload, convert,
};
use flashpath::workload::{Action, Workload};
use properties::check_trace;

#[path = "properties/traces.rs"]
mod properties;

#[allow(dead_code)]
#[path = "../src/workload/trace/samples.rs"]
mod samples;

const ROUNDS: u64 = 2000;

fn mutate(data: &mut Vec<u8>, random: &mut Random, other: &[u8]) {
    for _ in 0..=random.below(6) {
        if data.is_empty() {
            return;
        }
        let at = random.below(data.len() as u64) as usize;
        match random.below(9) {
            0 => data[at] = random.bits() as u8,
            1 => data[at] ^= 1 << random.below(8),
            2 => data.truncate(at),
            3 => drop(data.remove(at)),
            4 => data.insert(at, random.bits() as u8),
            5 => {
                let texts: [&[u8]; 10] = [
                    b"0",
                    b"-1",
                    b"18446744073709551615",
                    b",",
                    b" ",
                    b"\n",
                    b"\"",
                    b"(",
                    b"<",
                    b"99999999999999999999",
                ];
                let text = texts[random.below(10) as usize];
                data.splice(at..at, text.iter().copied());
            }
            6 => {
                let end = (at + random.below(64) as usize).min(data.len());
                let part = data[at..end].to_vec();
                data.splice(at..at, part);
            }
            7 => {
                let end = (at + random.below(64) as usize).min(data.len());
                data.drain(at..end);
            }
            _ => {
                let from = random.below(other.len() as u64) as usize;
                let end = (from + random.below(128) as usize).min(other.len());
                data.splice(at..at, other[from..end].iter().copied());
            }
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = samples::all().into_iter().map(|(_, bytes)| bytes).collect();
    seeds.push(zstd::encode_all(samples::CAPTURED, 1).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, samples::MSR).unwrap();
    seeds.push(gzip.finish().unwrap());
    seeds
}

#[test]
fn damaged_traces_never_panic_and_emit_only_sane_operations() {
    let seeds = seeds();
    let mut random = Random::new(1, "fuzz_traces");
    let mut emitted = 0;
    for round in 0..ROUNDS {
        for seed in &seeds {
            let mut data = seed.clone();
            let other = &seeds[random.below(seeds.len() as u64) as usize];
            mutate(&mut data, &mut random, other);
            let forced = &FORMATS[random.below(FORMATS.len() as u64) as usize];
            let options = TraceOptions {
                format: (round % 4 == 0).then_some(forced),
                stage: (round % 7 == 0).then_some(Stage::Issue),
                ..TraceOptions::default()
            };
            let limit = 1 + random.below(5) as usize;
            let operations = check_trace(&data, &options, limit);
            emitted += operations.len();
            if round % 16 == 0 {
                assert_eq!(operations, check_trace(&data, &options, 1000), "batches of {limit} and of 1000 differ");
            }
        }
    }
    // If most of them were rejected, the readers would not have been tested.
    assert!(2 * emitted as u64 > ROUNDS * seeds.len() as u64, "{emitted}");
}

/// A random description, of which most are valid.
fn description(random: &mut Random) -> String {
    let mut parts = Vec::new();
    for (key, values) in [
        ("time", &["1", "2", "time_us", "Timestamp", "1000"][..]),
        ("time-unit", &["s", "ms", "us", "100ns", "ns"]),
        ("op", &["2", "3", "rwbs", "IOType", "write"]),
        ("offset", &["4", "3", "sector", "Offset"]),
        ("size", &["5", "4", "nsect", "Size", "4K"]),
        ("unit", &["byte", "sector", "4K", "16E"]),
        ("device", &["1", "LUN", "2"]),
        ("stream", &["1", "5"]),
        ("delimiter", &["comma", "tab", "semicolon", "pipe", "space"]),
        ("header", &["0", "1", "3", "1000000"]),
        ("read", &["0", "0:1", "x"]),
    ] {
        let is_required = matches!(key, "op" | "offset" | "size");
        if is_required || random.below(3) == 0 {
            parts.push(format!("{key}={}", values[random.below(values.len() as u64) as usize]));
        }
    }
    parts.join(",")
}

#[test]
fn any_description_of_any_text_never_panics() {
    let seeds = seeds();
    let described_right: [(&[u8], &str); 4] = [
        (samples::COLUMNS, "time=1,op=3,offset=4,size=5,unit=sector,device=2"),
        (samples::SYSTOR, "time=Timestamp,op=IOType,offset=Offset,size=Size,device=LUN"),
        (samples::CAPTURED, "time=1,time-unit=us,op=rwbs,offset=sector,size=nsect,unit=sector"),
        (samples::BIOSNOOP, "time=1,op=T,offset=SECTOR,offset-unit=sector,size=BYTES,device=DISK"),
    ];
    let mut random = Random::new(4, "fuzz_columns");
    let (mut described, mut emitted) = (0, 0);
    for _ in 0..10 * ROUNDS {
        let (mut data, text) = match random.below(8) {
            right @ 0..4 => {
                let (sample, text) = described_right[right as usize];
                (sample.to_vec(), text.to_string())
            }
            _ => (seeds[random.below(seeds.len() as u64) as usize].clone(), description(&mut random)),
        };
        let other = &seeds[random.below(seeds.len() as u64) as usize];
        mutate(&mut data, &mut random, other);
        let Ok(columns) = Columns::parse(&text) else { continue };
        described += 1;
        let options = TraceOptions { columns: Some(columns), ..TraceOptions::default() };
        let limit = 1 + random.below(5) as usize;
        let operations = check_trace(&data, &options, limit);
        assert_eq!(operations, check_trace(&data, &options, 1000), "batches of {limit} and of 1000 differ");
        emitted += operations.len() as u64;
    }
    assert!(described > ROUNDS && emitted > ROUNDS, "{described} descriptions, {emitted} operations");
    for _ in 0..10 * ROUNDS {
        let mut text = description(&mut random).into_bytes();
        mutate(&mut text, &mut random, b"time=1,op=3,offset=4,size=5,unit=sector");
        if let Err(error) = Columns::parse(&String::from_utf8_lossy(&text)) {
            assert!(!error.is_empty());
        }
    }
}

#[test]
fn damaged_parquet_never_panics() {
    let folder = tempfile::TempDir::new().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out.parquet"));
    std::fs::write(&input, samples::CAPTURED).unwrap();
    convert(&input, &TraceOptions::default(), &output, OutputFormat::Parquet).unwrap();
    let good = std::fs::read(&output).unwrap();
    assert_eq!(check_trace(&good, &TraceOptions::default(), 1000).len(), 7);
    let mut random = Random::new(2, "fuzz_parquet");
    for _ in 0..ROUNDS {
        let mut data = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() as u64) as usize;
            data[at] = random.bits() as u8;
        }
        check_trace(&data, &TraceOptions::default(), 1000);
    }
}

#[test]
fn damaged_traces_stay_on_the_device_however_they_are_placed() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("trace");
    let seeds = seeds();
    let mut random = Random::new(3, "fuzz_placement");
    let mut placed = 0;
    for round in 0..ROUNDS {
        let mut data = seeds[random.below(seeds.len() as u64) as usize].clone();
        mutate(&mut data, &mut random, samples::SPC);
        std::fs::write(&path, &data).unwrap();
        let addresses = [Addresses::Refuse, Addresses::Wrap, Addresses::Scale][(round % 3) as usize];
        let device_bytes = 1 << (10 + random.below(40));
        let options = TraceOptions { addresses, repeat: 1 + random.below(2), ..TraceOptions::default() };
        let Ok(mut workload) = TraceWorkload::open(&path, options, device_bytes) else { continue };
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch, 7).unwrap() > 0 {}
        assert!(batch.iter().all(|operation| operation.end_bytes() <= device_bytes));
        assert!(batch.is_sorted_by_key(|operation| operation.time_ns));
        assert!(batch.iter().all(|operation| (operation.length_bytes == 0) == (operation.action == Action::Flush)));
        placed += batch.len();
    }
    assert!(placed as u64 > ROUNDS, "{placed}");
}
