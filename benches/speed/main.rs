//! The speed of the program's main work, each figure beside its bound and its peer.
//!
//! The work: 8 GiB of 4 KiB pages, 256 a block, 90 % exported, filled in order, then uniform random writes of six times
//! the drive. The bound is a bare counting loop in the same process; both run in turn, and the ratio is taken pair by
//! pair, since machines are noisy. Peers' figures were measured elsewhere, on a loaded machine with two cores, and are
//! quoted for orientation only.
//!
//! `ROUNDS=9 cargo bench` repeats more often; the default is 5.

mod bare_loop;

use bare_loop::bare_loop;
use flashpath::expression::parse_term;
use flashpath::run::{Options, Path, Replay, run};
use flashpath::workload::Workload;
use flashpath::workload::generator::generator;
use flashpath::workload::trace::{TraceOptions, TraceReader};

const PAGES: u32 = 1 << 21;
const PAGES_PER_BLOCK: u32 = 256;
const EXPORTED_PAGES: u32 = PAGES / 10 * 9;
const WRITES: u64 = 6 * PAGES as u64;
const PATH: &str = "page:export=90%/nand:size=8G";
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/fb_varmail_ext4.csv.zst");

/// Seconds of CPU that this thread has used.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes of this process that are in memory.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).map_or(f64::NAN, |pages| pages * 4096.0)
}

fn uniform(writes: u64, device_bytes: u64) -> Box<dyn Workload> {
    let term = parse_term(&format!("uniform:writes={}", writes * 4096)).expect("a workload");
    generator(&term, device_bytes, 1).expect("a generator")
}

/// What one run of ours took.
struct Ours {
    writes_per_second: f64,
    amplification: f64,
    bytes_per_page: f64,
}

/// The path as a user runs it, the generator included; the fill is not measured.
fn ours(path: &str, writes: u64) -> Ours {
    let path = Path::read(path).expect("a path");
    let mut workload = uniform(writes, path.exported_bytes());
    let options = Options { fill: true, replay: Replay::Closed { depth: 32 }, ..Options::default() };
    let resident = resident_bytes();
    let (mut started, mut filled) = (None, 0.0f64);
    let outcome = run(&path, workload.as_mut(), &options, &mut |progress| {
        if progress.phase == "running" && started.is_none() {
            filled = resident_bytes();
            started = Some((cpu_seconds(), progress.requests));
        }
        true
    });
    let (started, before) = started.expect("it ran");
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    Ours {
        writes_per_second: (writes - before) as f64 / (cpu_seconds() - started),
        amplification: outcome.result.write_amplification.steady.unwrap_or(f64::NAN),
        bytes_per_page: (filled - resident) / f64::from(PAGES),
    }
}

/// Operations a second of a generator alone, and of the sample trace read from its compressed file.
fn sources() -> (f64, f64) {
    let count = |workload: &mut dyn Workload| {
        let (mut batch, mut total) = (Vec::new(), 0);
        loop {
            batch.clear();
            match workload.next_batch(&mut batch, 1024) {
                Ok(0) => break total,
                Ok(count) => total += count,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let started = cpu_seconds();
    let generated = count(uniform(50_000_000, u64::from(EXPORTED_PAGES) * 4096).as_mut());
    let generator_rate = generated as f64 / (cpu_seconds() - started);
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
    (generator_rate, operations as f64 / (cpu_seconds() - started))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let column = |values: &[[f64; 8]], at: usize| median(values.iter().map(|row| row[at]).collect());
    // Before anything else, while no memory that was freed is left to be used again.
    let bytes_per_page = ours(&format!("{PATH},timing=on"), 1 << 16).bytes_per_page;
    let mut rows = Vec::new();
    for round in 1..=rounds {
        let (bare, programs) = bare_loop(WRITES);
        let off = ours(&format!("{PATH},timing=off"), WRITES);
        let on = ours(&format!("{PATH},timing=on"), WRITES);
        let (generated, read) = sources();
        rows.push([
            bare,
            off.writes_per_second,
            on.writes_per_second,
            off.writes_per_second / bare,
            on.writes_per_second / bare,
            generated,
            read,
            off.amplification,
        ]);
        eprintln!(
            "round {round} of {rounds}: bare loop {:.2} M/s, write amplification {:.3} with its warm-up (ours {:.3} when steady); ours {:.2} M/s untimed, {:.2} M/s timed",
            bare / 1e6,
            programs as f64 / WRITES as f64,
            off.amplification,
            off.writes_per_second / 1e6,
            on.writes_per_second / 1e6,
        );
    }
    println!("medians of {rounds} rounds; uniform random 4 KiB writes on {PATH}, filled\n");
    println!("{:<44} {:>12} {:>26} {:>30}", "", "ours", "bound", "peer (quoted)");
    let million = |value: f64| format!("{:.2} M/s", value / 1e6);
    let line =
        |what: &str, ours: String, bound: String, peer: &str| println!("{what:<44} {ours:>12} {bound:>26} {peer:>30}");
    let limit = column(&rows, 0);
    line(
        "host writes per CPU-second, timing=off",
        million(column(&rows, 1)),
        format!("bare loop {}", million(limit)),
        "flashsim 0.31 M/s",
    );
    line(
        "  share of the bare loop",
        format!("{:.2}", column(&rows, 3)),
        "at least 0.5, aim 0.8".into(),
        "0.035 (of its 8.9 M/s)",
    );
    line(
        "host writes per CPU-second, timing=on",
        million(column(&rows, 2)),
        format!("bare loop {}", million(limit)),
        "MQSim 0.10 M/s",
    );
    line(
        "  share of the bare loop",
        format!("{:.2}", column(&rows, 4)),
        "at least 0.125".into(),
        "0.012 (of its 8.9 M/s)",
    );
    line("memory per page", format!("{bytes_per_page:.1} B"), "at most 16 B".into(), "flashsim 76 B, MQSim 148 B");
    line(
        "write amplification, steady",
        format!("{:.3}", column(&rows, 7)),
        "theory 5.09".into(),
        "flashsim 5.23, MQSim 3.15",
    );
    line("generator alone", million(column(&rows, 5)), String::new(), "");
    line("sample trace read, zstd included", million(column(&rows, 6)), "at least 3 M/s".into(), "");
}
