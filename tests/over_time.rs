//! Runs over time: their windows say the same as the whole result, on every kind of path.

use flashpath::expression::parse_term;
use flashpath::label::Content;
use flashpath::random::Random;
use flashpath::report::{Environment, InFlight, RunResult, Window, json};
use flashpath::run::{
    BlockWork, FileShape, Fill, Job, NoMachine, Path, Place, Replay, RunError, RunOptions, Work, run,
};
use flashpath::workload::files::file_workload;
use flashpath::workload::generator::generator;
use flashpath::workload::{Action, Operation, Workload, WorkloadError};

fn result(path: &str, work: Work<'_>, options: RunOptions) -> RunResult {
    let read = Path::read(path).unwrap();
    let outcome = run(Job { work, place: Place::Path(&read), seed: 5, options }, &NoMachine, &mut |_| true);
    let outcome = outcome.unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(outcome.failure.is_none(), "{path}: {:?}", outcome.failure);
    outcome.result
}

fn blocks(path: &str, workload: &str, file: FileShape) -> RunResult {
    let term = parse_term(workload).unwrap();
    let open = Box::new(move |bytes| Ok(generator(&term, bytes, 5).unwrap()));
    let work = Work::Blocks(BlockWork { name: workload.to_string(), has_times: false, open });
    result(path, work, RunOptions { file, fill: file.bytes.is_none().into(), ..RunOptions::default() })
}

fn files(path: &str) -> RunResult {
    let workload = file_workload(&parse_term("varmail:files=200,size=16K,loops=1500,threads=3").unwrap(), 5).unwrap();
    result(path, Work::Files(workload), RunOptions::default())
}

/// Sums over the windows against the result; the last, unfinished window is in none of them.
fn check_windows(result: &RunResult, has_flash: bool) {
    let (path, windows) = (&result.path, &result.windows);
    assert!(windows.len() >= 16, "{path} has {} windows", windows.len());
    let last = windows.last().unwrap();
    let share = last.written_blocks as f64 / result.workload.written_blocks as f64;
    assert!(share > 0.8 && share <= 1.0, "{path}: the windows cover {share} of the run");
    let (mut begin, mut stored) = (0, 0.0);
    for (place, window) in windows.iter().enumerate() {
        assert!(window.written_blocks > begin, "{path}");
        let amplification = window.write_amplification.expect("something was written");
        let written = (window.written_blocks - begin) as f64;
        stored += amplification * written;
        begin = window.written_blocks;
        let causes: f64 = result.window_causes.iter().filter_map(|cause| cause.write_amplification[place]).sum();
        assert!((causes - amplification).abs() < 1e-9, "{path}: {causes} and {window:?}");
        let blocks: f64 = result.window_causes.iter().map(|cause| cause.blocks[place]).sum();
        assert!((blocks - window.stored_blocks).abs() < 1e-6, "{path}: {blocks} and {window:?}");
        assert!((blocks / written - amplification).abs() < 1e-9, "{path}: {blocks} and {window:?}");
        assert_eq!(window.free_blocks.is_some(), has_flash, "{path}");
        assert!(window.free_blocks.is_none_or(|free| free <= result.flash.blocks), "{path}");
    }
    let whole = result.write_amplification.total.unwrap();
    let mean = stored / last.written_blocks as f64;
    assert!((mean / whole - 1.0).abs() < 0.1, "{path}: {mean} over the windows and {whole} in all");
    let causes =
        |of: &dyn Fn(&str, &str) -> bool| result.window_causes.iter().any(|cause| of(&cause.cause, &cause.origin));
    for row in result.ledger.iter().filter(|row| result.media.contains(&row.station) && row.blocks * 20.0 > stored) {
        assert!(causes(&|cause, origin| (cause, origin) == (&row.cause, &row.origin)), "{path}: {row:?}");
    }
}

fn check_times(result: &RunResult) {
    let path = &result.path;
    let latencies = result.latency_ns.as_ref().unwrap();
    let mut before = 0.0;
    for window in &result.windows {
        let seconds = window.seconds_simulated.unwrap();
        assert!(seconds >= before && (seconds == before || window.throughput_mib_s.unwrap() > 0.0), "{path}");
        before = seconds;
    }
    let of = |window: &Window| window.latency_ns.get("write").map_or((0, 0), |latency| (latency.count, latency.max));
    let write = latencies.write.as_ref().unwrap();
    let (count, max) = result.windows.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1.max(one.1)));
    assert!(count <= write.count && count * 10 > write.count * 8, "{path}: {count} of {}", write.count);
    assert!(max <= write.max, "{path}");
    assert!(
        result
            .windows
            .iter()
            .flat_map(|window| window.latency_ns.values())
            .all(|latency| { latency.p50 <= latency.p99 && latency.p99 <= latency.max && latency.count > 0 })
    );
}

#[test]
fn blocks_on_any_device_have_windows_that_add_up_to_the_result() {
    for (path, has_flash) in [
        ("page/nand:size=64M,pages-per-block=64", true),
        ("dftl:table=500/nand:size=64M,pages-per-block=64", true),
        ("fast/nand:size=64M,pages-per-block=64", true),
        ("superblock:cache=100/nand:size=64M,pages-per-block=64", true),
        ("cache:size=1M/page/nand:size=64M,pages-per-block=64", true),
        ("dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M", true),
        ("conv:size=64M", false),
    ] {
        let result = blocks(path, "hotcold:r=0.2,f=0.8,writes=2x,reads=20%", FileShape::default());
        check_windows(&result, has_flash);
        check_times(&result);
        assert!(result.windows.iter().any(|window| window.latency_ns.contains_key("read")), "{path}");
    }
}

#[test]
fn blocks_in_a_file_of_sfs_have_windows_with_the_origin_of_each_block() {
    for path in [
        "sfs:segment=128K,discard=off/page/nand:size=64M,pages-per-block=96",
        "sfs/zns:size=64M,zone=1M",
        "sfs:segment=256K/dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
    ] {
        let shape = FileShape { utilization: Some(0.8), fsync_every: Some(32), bytes: Some(16 << 20) };
        let result = blocks(path, "zipf:theta=0.9,writes=3x", shape);
        check_windows(&result, true);
        check_times(&result);
        assert!(result.window_causes.iter().any(|cause| cause.origin == "segment-cleaning"), "{path}");
    }
}

#[test]
fn blocks_in_a_file_of_any_file_system_have_windows() {
    for path in [
        "ext:journal-size=4M/page/nand:size=64M,pages-per-block=64",
        "ext:journal-size=4M,data=journal/dftl/nand:size=64M,pages-per-block=64",
        "ext:journal-size=4M/dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
    ] {
        let shape = FileShape { utilization: Some(0.7), fsync_every: Some(32), bytes: Some(16 << 20) };
        let result = blocks(path, "zipf:theta=0.9,writes=3x", shape);
        check_windows(&result, true);
        check_times(&result);
        assert!(result.window_causes.iter().any(|cause| cause.origin == "journal-commit"), "{path}");
    }
    let shape = FileShape { utilization: None, fsync_every: Some(32), bytes: Some(4 << 20) };
    check_windows(&blocks("tree", "zipf:theta=0.9,writes=3x", shape), false);
}

/// A workload in files had no windows at all.
#[test]
fn files_in_simulated_threads_have_windows_too() {
    for path in [
        "sfs:segment=128K/page/nand:size=64M,pages-per-block=64",
        "sfs/zns:size=64M,zone=1M",
        "ext:journal-size=4M/page/nand:size=64M,pages-per-block=64",
        "ext:journal-size=4M/cache:size=1M/fast/nand:size=64M,pages-per-block=64",
        "ext:journal-size=4M/dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
    ] {
        let result = files(path);
        check_windows(&result, true);
        check_times(&result);
        assert!(result.windows.iter().any(|window| window.latency_ns.contains_key("fsync")), "{path}");
    }
    let untimed = files("ext:journal-size=4M/page/nand:size=64M,pages-per-block=64,timing=off");
    check_windows(&untimed, true);
    assert!(untimed.windows.iter().all(|window| window.latency_ns.is_empty() && window.throughput_mib_s.is_none()));
}

#[test]
fn free_blocks_fall_to_the_reserve_of_a_drive_that_collects() {
    let term = parse_term("uniform:writes=2x").unwrap();
    let open = Box::new(move |bytes| Ok(generator(&term, bytes, 5).unwrap()));
    let work = Work::Blocks(BlockWork { name: "uniform".to_string(), has_times: false, open });
    let result = result("page:reserve=4/nand:size=64M,pages-per-block=64,timing=off", work, RunOptions::default());
    let free: Vec<u64> = result.windows.iter().map(|window| window.free_blocks.unwrap()).collect();
    assert!(free[0] > result.flash.blocks * 9 / 10, "{} of {}", free[0], result.flash.blocks);
    assert!(free[..free.len() / 4].is_sorted_by(|a, b| a >= b), "it fills");
    assert!((4..8).contains(free.last().unwrap()), "{free:?}");
}

/// The maps against the counts of the whole drive.
#[test]
fn maps_show_each_erase_block_zone_and_segment() {
    let shape = FileShape { utilization: Some(0.8), fsync_every: Some(32), bytes: Some(16 << 20) };
    for (path, expected) in [
        (
            "sfs:segment=128K,discard=off/page/nand:size=64M,pages-per-block=96,timing=off",
            &["segment", "erase block"][..],
        ),
        ("sfs:segment=256K/dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M", &["segment", "zone"]),
        ("sfs/zns:size=64M,zone=1M,timing=off", &["segment", "zone"]),
        ("sfs/fast/nand:size=256M,pages-per-block=16,timing=off", &["segment", "erase block"]),
    ] {
        let result = blocks(path, "zipf:theta=0.9,writes=3x", shape);
        let units: Vec<&str> = result.maps.iter().map(|map| &*map.unit).collect();
        assert_eq!(units, expected, "{path}");
        for map in &result.maps {
            assert_eq!(map.units_per_cell, map.units.div_ceil(1024).max(1));
            let cells = map.units.div_ceil(map.units_per_cell) as usize;
            let lists =
                [map.written.len(), map.live.len(), map.erases_mean.len(), map.erases_max.len(), map.states.len()];
            assert!(lists.iter().all(|length| [0, cells].contains(length)) && cells <= 1024, "{path}: {lists:?}");
            assert!(map.written.iter().chain(&map.live).all(|share| (0.0..=1.0).contains(share)), "{path}");
        }
        let [segments, flash] = &result.maps[..] else { panic!("{path}: {units:?}") };
        assert_eq!((&*segments.station, &flash.station), ("sfs", result.media.last().unwrap()), "{path}");
        assert!(segments.live.iter().any(|share| *share > 0.9) && segments.states.iter().any(|state| state == "free"));
        assert_eq!(flash.erases_max.iter().max(), Some(&result.wear.erase_count_max), "{path}");
        if flash.units_per_cell == 1 {
            let mean = flash.erases_mean.iter().sum::<f64>() / flash.units as f64;
            assert!((mean - result.wear.erase_count_mean).abs() < 1e-9, "{path}");
        }
        assert!(flash.written.contains(&1.0), "{path}");
        assert_eq!(flash.states.is_empty(), flash.unit != "zone");
    }
}

/// Bursts of writes, with a read after each four, and silences of some seconds.
struct Bursts {
    next: u64,
    end: u64,
    pages: u64,
}

impl Workload for Bursts {
    fn name(&self) -> &str {
        "bursts"
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let until = (self.next + limit as u64).min(self.end);
        let (mut random, count) = (Random::new(self.next, "bursts"), until - self.next);
        for number in self.next..until {
            let action = if number % 5 == 4 { Action::Read } else { Action::Write };
            // 1,000 requests in a second, and then 2.5 s without any.
            let time_ns = number / 1000 * 3_500_000_000 + number % 1000 * 1_000_000;
            let offset_bytes = random.below(self.pages) * 4096;
            let content = Content::Data;
            batch.push(Operation { time_ns, offset_bytes, length_bytes: 4096, action, content, stream: 0, device: 0 });
        }
        self.next = until;
        Ok(count as usize)
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

fn bursts(path: &str, window_ns: Option<u64>) -> RunResult {
    let open = |bytes: u64| -> Result<Box<dyn Workload>, RunError> {
        Ok(Box::new(Bursts { next: 0, end: 20_000, pages: bytes / 4096 }))
    };
    let work = Work::Blocks(BlockWork { name: "bursts".to_string(), has_times: true, open: Box::new(open) });
    let replay = Some(Replay::Open { scale: 1.0 });
    result(path, work, RunOptions { replay, fill: Fill::ALL, window_ns, ..RunOptions::default() })
}

/// Windows were of equal writes alone: nobody saw the copies of a minute.
#[test]
fn windows_by_recorded_times_have_all_that_happened_and_change_nothing() {
    for path in [
        "page/nand:size=64M,pages-per-block=64,channels=2",
        "page:background=3%/nand:size=64M,pages-per-block=64",
        "page/nand:size=64M,pages-per-block=64,suspend=both",
        "dm-zoned:reserved=3/conv:size=16M+zns:size=64M,zone=1M",
    ] {
        let (by_time, by_writes) = (bursts(path, Some(1_000_000_000)), bursts(path, None));
        assert_eq!((by_time.window_seconds, by_writes.window_seconds), (Some(1.0), None));
        let rest = |result: &RunResult| {
            let mut result = result.clone();
            (result.window_seconds, result.windows, result.window_causes) = (None, Vec::new(), Vec::new());
            result.options.clear();
            json(&[result], &Environment::default())
        };
        assert_eq!(rest(&by_time), rest(&by_writes), "{path}: to look at it changes nothing");
        let windows = &by_time.windows;
        assert!(windows.len() >= 67, "{path}: {}", windows.len());
        let (mut begin, mut ended) = (0, 0);
        for (number, window) in windows.iter().enumerate() {
            let end = window.seconds_simulated.unwrap();
            let is_last = number + 1 == windows.len();
            assert!(is_last || (end - (number + 1) as f64).abs() < 1e-9, "{path}: window {number} ends at {end}");
            // 800 writes in each burst.
            let written = window.written_blocks - begin;
            assert!(written <= 800 && (written > 0) == window.write_amplification.is_some(), "{path}: {window:?}");
            let blocks: f64 = by_time.window_causes.iter().map(|cause| cause.blocks[number]).sum();
            assert!((blocks - window.stored_blocks).abs() < 1e-6, "{path}: {blocks} and {window:?}");
            let is_queue = |queue: &InFlight| queue.mean >= 1.0 && queue.max as f64 >= queue.mean;
            assert!(window.in_flight.as_ref().is_none_or(is_queue), "{path}: {window:?}");
            ended += window.latency_ns.get("write").map_or(0, |latency| latency.count);
            begin = window.written_blocks;
        }
        assert_eq!((begin, ended), (by_time.workload.written_blocks, 16_000), "{path}");
        let stored: f64 = windows.iter().map(|window| window.stored_blocks).sum();
        let media: f64 =
            by_time.ledger.iter().filter(|row| by_time.media.contains(&row.station)).map(|row| row.blocks).sum();
        assert!((stored - media).abs() < 1e-6, "{path}: {stored} in windows, {media} in all");
    }
}

#[test]
fn windows_by_time_are_refused_where_there_are_no_recorded_times() {
    let path = Path::read("page/nand:size=64M").unwrap();
    let work = Work::Blocks(BlockWork::generated("uniform:writes=1M", 1).unwrap());
    let options = RunOptions { window_ns: Some(1), ..RunOptions::default() };
    let refused = Job { work, place: Place::Path(&path), seed: 1, options }.check().unwrap_err().to_string();
    assert!(refused.contains("--window") && refused.contains("recorded times"), "{refused}");
}
