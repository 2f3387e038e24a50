//! Realistic results for the tests of all forms of report.
//!
//! Compiled into the library's unit tests and, by path, into `tests/html_report.rs`.

use crate::report::{
    CauseOverTime, FlashResult, Latencies, LatencyHistogram, LedgerRow, RunResult, StationMap, StationResult, SumCheck,
    TranslationResult, Wear, Window, WindowLatency, WorkloadResult, WriteAmplification, wear_bins,
};

const EXPORTED_BLOCKS: u64 = 14_680_064;
const WRITTEN_BLOCKS: u64 = 6 * EXPORTED_BLOCKS;
const PAGES_PER_BLOCK: u64 = 256;

/// A small deterministic random generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ledger rows of one station from (cause, origin, content, share of the written blocks).
fn rows(station: &str, shares: &[Share]) -> Vec<LedgerRow> {
    let row = |&(cause, origin, content, share): &Share| LedgerRow {
        station: station.into(),
        cause: cause.into(),
        origin: origin.into(),
        content: content.into(),
        blocks: (share * WRITTEN_BLOCKS as f64).round(),
    };
    shares.iter().map(row).collect()
}

/// Cause, origin, content, and the share of the written blocks.
type Share<'a> = (&'a str, &'a str, &'a str, f64);

/// A station's name and ledger rows.
type Station<'a> = (&'a str, &'a [Share<'a>]);

fn wear_map(station: &str, erases: &[u32]) -> StationMap {
    let cells = || erases.chunks(63);
    StationMap {
        station: station.into(),
        unit: "erase block".into(),
        units: erases.len() as u64,
        units_per_cell: 63,
        written: cells().map(|_| 1.0).collect(),
        live: Vec::new(),
        erases_mean: cells()
            .map(|cell| cell.iter().map(|&erases| f64::from(erases)).sum::<f64>() / cell.len() as f64)
            .collect(),
        erases_max: cells().map(|cell| cell.iter().copied().max().unwrap_or(0)).collect(),
        states: Vec::new(),
    }
}

fn over_time(cause: &str, write_amplification: Vec<f64>) -> CauseOverTime {
    let blocks = write_amplification.iter().map(|times| times * (WRITTEN_BLOCKS / 60) as f64).collect();
    let write_amplification = write_amplification.into_iter().map(Some).collect();
    CauseOverTime { cause: cause.into(), origin: "host-write".into(), write_amplification, blocks }
}

fn window_latencies(scale: f64, settled: f64) -> std::collections::BTreeMap<&'static str, WindowLatency> {
    let of = |p50: f64| {
        let p99 = p50 * (1.0 + 9.0 * settled);
        WindowLatency { p50: p50 as u64, p99: p99 as u64, max: (p99 * 2.5) as u64, count: 20_000 }
    };
    [("read", of(scale * 71_000.0)), ("write", of(scale * 290_000.0))].into()
}

/// A run whose flash programs the rows of the last of `stations`, as shares of the host writes.
fn run(path: &str, seed: u64, stations: &[Station], latency_scale: Option<f64>) -> RunResult {
    let mut ledger = rows("workload", &[("host-write", "host-write", "data", 1.0)]);
    for (station, shares) in stations {
        ledger.extend(rows(station, shares));
    }
    let last = stations.last().map_or("workload", |(station, _)| station);
    let programmed = ledger.iter().filter(|row| row.station == last).map(|row| row.blocks).sum::<f64>();
    let total = programmed / WRITTEN_BLOCKS as f64;
    let mut disorder = Noise(seed);
    let windows = (1..=60u64).map(|number| {
        let age = number as f64 / 60.0;
        let settled = 1.0 - (-5.0 * age).exp();
        let amplification = 1.0 + (total - 1.0) * 1.18 * settled + 0.06 * total * (disorder.next() - 0.5);
        Window {
            written_blocks: WRITTEN_BLOCKS / 60 * number,
            seconds_simulated: latency_scale.map(|scale| age * 2_412.0 * scale),
            write_amplification: Some(amplification),
            stored_blocks: amplification * (WRITTEN_BLOCKS / 60) as f64,
            in_flight: None,
            throughput_mib_s: latency_scale.map(|scale| 181.7 / scale * (1.6 - 0.6 * settled)),
            free_blocks: Some(64_512 / 100 * (100 - number)),
            latency_ns: latency_scale.map(|scale| window_latencies(scale, settled)).unwrap_or_default(),
        }
    });
    let windows: Vec<Window> = windows.collect();
    let copied = windows.iter().filter_map(|window| Some(window.write_amplification? - 1.0)).collect();
    let window_causes =
        vec![over_time("host-write", vec![1.0; windows.len()]), over_time("garbage-collection", copied)];
    let erases: Vec<u32> = (0..64_512)
        .map(|_| (total * 6.0 * (0.7 + 0.2 * (disorder.next() + disorder.next() + disorder.next()))) as u32)
        .collect();
    let erase_sum: u64 = erases.iter().map(|&count| u64::from(count)).sum();
    let mean = erase_sum as f64 / erases.len() as f64;
    let latencies = latency_scale.map(|scale| {
        let (mut read, mut write) = (LatencyHistogram::new(), LatencyHistogram::new());
        for _ in 0..200_000 {
            let wait = if disorder.next() < 0.06 * total { 3.0e6 * disorder.next().powi(3) } else { 0.0 };
            read.record((scale * (62_000.0 + 45_000.0 * disorder.next().powi(4) + wait)) as u64);
            write.record((scale * (215_000.0 + 190_000.0 * disorder.next().powi(2) + 4.0 * wait)) as u64);
        }
        Latencies { read: read.percentiles(), write: write.percentiles(), ..Latencies::default() }
    });
    RunResult {
        name: None,
        path: path.into(),
        path_in_full: format!("{path}:victim=greedy,overprovisioning=0.111,page=4K,pages_per_block=256,blocks=64512"),
        seed,
        seconds_wall: 8.41 * total,
        seconds_simulated: latency_scale.map(|scale| 2_412.0 * scale),
        interrupted: false,
        workload: WorkloadResult {
            name: "hotcold:r=0.2,f=0.8,writes=6x,reads=0.3".into(),
            requests: WRITTEN_BLOCKS / 10 * 13,
            read_blocks: WRITTEN_BLOCKS / 10 * 3,
            written_blocks: WRITTEN_BLOCKS,
            discarded_blocks: 0,
            rejected_lines: 0,
            application_blocks: None,
        },
        cache: None,
        tenants: Vec::new(),
        flash: FlashResult {
            programmed_pages: programmed as u64,
            programs: programmed as u64,
            program_bytes: 4096,
            read_pages: (programmed * 0.9) as u64,
            erased_blocks: erase_sum,
            effective_overprovisioning: Some(0.1087),
            page_bytes: 4096,
            pages_per_block: PAGES_PER_BLOCK,
            blocks: erases.len() as u64,
            raw_bytes: erases.len() as u64 * PAGES_PER_BLOCK * 4096,
            exported_bytes: EXPORTED_BLOCKS * 4096,
            mapping_ram_bytes: Some(EXPORTED_BLOCKS * 4),
        },
        translation: TranslationResult {
            station: "page".into(),
            mapping_reads: 0,
            events: std::collections::BTreeMap::new(),
            placement: None,
        },
        write_amplification: WriteAmplification {
            total: Some(total),
            steady: Some(1.0 + (total - 1.0) * 1.17),
            steady_from_fraction: Some(0.55),
            application: None,
        },
        ledger,
        media: vec![last.to_string()],
        stations: chain(stations, erase_sum),
        write_requests: Vec::new(),
        wear: Wear {
            erase_count_min: erases.iter().copied().min().unwrap_or(0),
            erase_count_mean: mean,
            erase_count_max: erases.iter().copied().max().unwrap_or(0),
            endurance: 3_000,
            worn_out_blocks: 0,
            bad_blocks: None,
            spare_blocks_left: None,
            lifetime_host_tib: Some(184.5 / total),
            lifetime_host_tib_first_block: Some(141.2 / total),
            lifetime_application_tib: None,
            drive_writes_per_day: Some(1.9 / total),
            rate: None,
            histogram: wear_bins(&erases),
            modes: Vec::new(),
        },
        maps: vec![wear_map(last, &erases)],
        latency_ns: latencies,
        energy: None,
        throughput_mib_s: latency_scale.map(|scale| 181.7 / scale),
        window_seconds: None,
        windows,
        window_causes,
        sums: vec![SumCheck {
            name: "pages programmed = the sum over all causes".into(),
            left: programmed,
            right: programmed,
            holds: true,
        }],
        warnings: Vec::new(),
        options: vec!["--fill".into()],
        files: None,
        cpu: None,
    }
}

/// The stations below each other. What they received is not in the sample: one alone below another received all.
fn chain(stations: &[Station], erased_blocks: u64) -> Vec<StationResult> {
    let names: Vec<&str> = std::iter::once("workload").chain(stations.iter().map(|(name, _)| *name)).collect();
    let station = |(number, pair): (usize, &[&str])| StationResult {
        name: pair[1].to_string(),
        above: pair[0].to_string(),
        received: Vec::new(),
        erased_blocks: (number + 1 == stations.len()).then_some((erased_blocks * PAGES_PER_BLOCK) as f64),
    };
    names.windows(2).enumerate().map(station).collect()
}

/// A page-level FTL on flash, with a timing model.
pub fn page_level(path: &str, seed: u64) -> RunResult {
    let flash = [("host-write", "host-write", "data", 1.0), ("garbage-collection", "host-write", "data", 1.376)];
    run(path, seed, &[("page", &flash), ("nand", &flash)], Some(1.0))
}

/// A DFTL, with its mapping on flash, without a timing model.
pub fn without_timing(path: &str, seed: u64) -> RunResult {
    let flash = [
        ("host-write", "host-write", "data", 1.0),
        ("mapping", "mapping", "mapping", 0.214),
        ("garbage-collection", "host-write", "data", 1.31),
        ("garbage-collection", "mapping", "mapping", 0.088),
    ];
    let mut result = run(path, seed, &[("dftl", &flash), ("nand", &flash)], None);
    let events = [("entries_written_together", 31_204_118), ("table_hits", 61_207_441), ("table_misses", 26_872_943)];
    result.translation = TranslationResult {
        station: "dftl".into(),
        mapping_reads: 45_911_027,
        events: events.map(|(name, count)| (name.to_string(), count)).into(),
        placement: None,
    };
    result
}

/// A journaling file system on a page-level FTL: three contents, five causes, four stations. It was interrupted.
pub fn journaled(path: &str, seed: u64) -> RunResult {
    let file_system = [
        ("host-write", "host-write", "data", 1.0),
        ("journal-commit", "journal-commit", "journal", 0.412),
        ("checkpoint", "checkpoint", "data", 0.022),
        ("checkpoint", "checkpoint", "metadata", 0.131),
    ];
    let flash = [
        ("host-write", "host-write", "data", 1.0),
        ("host-write", "journal-commit", "journal", 0.412),
        ("host-write", "checkpoint", "data", 0.022),
        ("host-write", "checkpoint", "metadata", 0.131),
        ("garbage-collection", "host-write", "data", 0.847),
        ("garbage-collection", "checkpoint", "metadata", 0.066),
        ("garbage-collection", "journal-commit", "journal", 0.158),
        ("wear-levelling", "host-write", "data", 0.019),
    ];
    let mut result = run(path, seed, &[("ext", &file_system), ("page", &flash), ("nand", &flash)], Some(1.34));
    result.interrupted = true;
    result.write_amplification.steady = None;
    result.write_amplification.steady_from_fraction = None;
    result.warnings.push("no steady state was found: the write amplification still rose in the last windows".into());
    result
}

/// A log-structured file system on zones, which cleans segments and merges nothing.
pub fn log_structured(path: &str, seed: u64) -> RunResult {
    let flash = [
        ("host-write", "host-write", "data", 1.0),
        ("checkpoint", "checkpoint", "metadata", 0.018),
        ("segment-cleaning", "segment-cleaning", "data", 0.604),
        ("segment-cleaning", "segment-cleaning", "metadata", 0.011),
    ];
    run(path, seed, &[("sfs", &flash), ("zns", &flash)], Some(0.83))
}

/// A run without requests.
pub fn empty(path: &str) -> RunResult {
    let mut result = run(path, 0, &[], None);
    result.seconds_wall = 0.0;
    result.workload =
        WorkloadResult { requests: 0, read_blocks: 0, written_blocks: 0, rejected_lines: 17, ..result.workload };
    result.flash = FlashResult { programmed_pages: 0, read_pages: 0, erased_blocks: 0, ..result.flash };
    result.write_amplification =
        WriteAmplification { total: None, steady: None, steady_from_fraction: None, application: None };
    result.ledger.clear();
    result.wear = Wear {
        erase_count_min: 0,
        erase_count_mean: 0.0,
        erase_count_max: 0,
        lifetime_host_tib: None,
        lifetime_host_tib_first_block: None,
        drive_writes_per_day: None,
        histogram: wear_bins(&vec![0; 64_512]),
        ..result.wear
    };
    result.maps.clear();
    result.windows.clear();
    result.window_causes.clear();
    result.sums.clear();
    result.warnings = vec!["17 lines of the trace were rejected".into()];
    result
}
