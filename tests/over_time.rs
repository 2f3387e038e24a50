//! Runs over time: their windows say the same as the whole result, on every kind of path.

use flashpath::expression::parse_term;
use flashpath::report::{RunResult, Window};
use flashpath::run::{BlockWork, FileShape, Job, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath::workload::files::file_workload;
use flashpath::workload::generator::generator;

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
    result(path, work, RunOptions { file, fill: file.bytes.is_none(), ..RunOptions::default() })
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
        stored += window.write_amplification * (window.written_blocks - begin) as f64;
        begin = window.written_blocks;
        let causes: f64 = result.window_causes.iter().map(|cause| cause.write_amplification[place]).sum();
        assert!((causes - window.write_amplification).abs() < 1e-9, "{path}: {causes} and {window:?}");
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
