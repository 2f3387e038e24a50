//! The translation layers against known results: merges of FAST, misses of DFTL's table, and the page-level layer as
//! the bound set by a map in RAM.

use flashpath::expression::parse_term;
use flashpath::report::RunResult;
use flashpath::run::{Options, Path, prepare};
use flashpath::workload::generator::generator;

fn run_on(path: &str, workload: &str, fill: bool) -> RunResult {
    let path = Path::read(path).unwrap();
    let options = Options { fill: fill.into(), verify: true, ..Options::default() };
    let mut workload =
        generator(&parse_term(workload).unwrap(), path.drive().unwrap().exported_bytes(), options.seed).unwrap();
    let outcome = prepare(&path, options.seed).unwrap().run(workload.as_mut(), &options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.result
}

fn event(result: &RunResult, name: &str) -> u64 {
    result.translation.events[name]
}

/// Flash programs of this cause, in 4 KiB blocks.
fn programmed_for(result: &RunResult, cause: &str) -> f64 {
    result.ledger.iter().filter(|row| row.station == "nand" && row.cause == cause).map(|row| row.blocks).sum()
}

#[test]
fn fast_overwrites_in_order_by_switch_merges_alone() {
    for logs in [1, 7] {
        let path = format!("fast:random-logs={logs},export=90%/nand:size=64M,page=2K,pages-per-block=64");
        let result = run_on(&path, "sequential:writes=3x", true);
        assert_eq!(result.write_amplification.total, Some(1.0));
        let blocks = result.flash.exported_bytes / (2048 * 64);
        assert_eq!(event(&result, "switch_merges"), 3 * blocks);
        assert_eq!(event(&result, "partial_merges") + event(&result, "full_merges"), 0);
        assert_eq!(result.flash.erased_blocks, 3 * blocks, "an erase a block");
        assert_eq!(event(&result, "filler_pages"), 0);
    }
}

#[test]
fn fast_merges_each_logical_block_of_a_log_block_once() {
    // The pages of a full random log block are b draws from L logical blocks of equal probability: L (1 - (1 - 1/L)^b)
    // differ, less those overwritten while the block waited, which are few with few logs.
    let path = "fast:random-logs=4,export=90%/nand:size=256M,page=4K,pages-per-block=64";
    let result = run_on(path, "uniform:writes=1x", true);
    let pages_per_block = 64.0;
    let logical_blocks = (result.flash.exported_bytes / (4096 * 64)) as f64;
    // A write to a block's first page goes to the sequential log block: one in b.
    let logged = result.workload.written_blocks as f64 * (1.0 - 1.0 / pages_per_block);
    let distinct = logical_blocks * (1.0 - (1.0 - 1.0 / logical_blocks).powf(pages_per_block));
    let expected = logged / pages_per_block * distinct;
    let merges = event(&result, "full_merges") as f64;
    // A logical block that is merged for one log block also takes its pages from the three others.
    let shared = (1.0 - 1.0 / logical_blocks).powf(3.0 * pages_per_block);
    println!("full merges: measured {merges}, expected between {:.0} and {expected:.0}", expected * shared);
    assert!((expected * shared * 0.98..expected * 1.01).contains(&merges));
    // Each merge copies a whole block and erases one.
    let copies = programmed_for(&result, "merge");
    let partial = event(&result, "partial_merges") as f64;
    assert!((copies / (merges + partial) - pages_per_block).abs() < 1.0, "{copies} copies");
}

#[test]
fn dftl_with_a_table_for_everything_is_the_page_level_layer() {
    for workload in ["uniform:writes=2x", "zipf:theta=1,writes=2x,discards=5%,reads=10%"] {
        for options in ["", ",victim=fifo", ",frontiers=shared", ",wear=static,wear-gap=3", ",streams=content"] {
            for fill in [false, true] {
                let nand = "nand:size=128M,page=4K,pages-per-block=64,channels=2";
                let page = run_on(&format!("page:export=80%{options}/{nand}"), workload, fill);
                let dftl = run_on(&format!("dftl:table=1000000000,export=80%{options}/{nand}"), workload, fill);
                assert_eq!(event(&dftl, "table_misses") > 0, !fill, "each entry is missed once, at its first use");
                assert_eq!(dftl.translation.mapping_reads, 0, "unwritten pages have no mapping to read");
                // All counts and times are equal, except for names and RAM.
                let counters = |mut result: RunResult| {
                    let layer = std::mem::take(&mut result.translation.station);
                    result.sums.iter_mut().for_each(|sum| sum.name.clear());
                    result.ledger.iter_mut().for_each(|row| row.station = row.station.replace(&layer, "layer"));
                    for station in &mut result.stations {
                        station.name = station.name.replace(&layer, "layer");
                        station.above = station.above.replace(&layer, "layer");
                        station.received.iter_mut().for_each(|row| row.station = row.station.replace(&layer, "layer"));
                    }
                    result.warnings.iter_mut().for_each(|warning| *warning = warning.replacen(&layer, "layer", 1));
                    result.flash.mapping_ram_bytes = None;
                    (result.path, result.path_in_full) = (String::new(), String::new());
                    result.translation.events.clear();
                    format!("{result:?}")
                };
                assert!(counters(page) == counters(dftl), "{workload} {options}");
            }
        }
    }
}

#[test]
fn a_small_table_misses_uniform_writes_as_often_as_entries_are_missing() {
    for (entries, protected) in [(1000u32, "0%"), (5000, "50%"), (20_000, "50%"), (20_000, "90%")] {
        let path = format!("dftl:table={entries},protected={protected},export=80%/nand:size=256M,page=4K,timing=off");
        let result = run_on(&path, "uniform:writes=4x", true);
        let pages = result.flash.exported_bytes / 4096;
        let (hits, misses) = (event(&result, "table_hits"), event(&result, "table_misses"));
        let expected = 1.0 - f64::from(entries) / pages as f64;
        let measured = misses as f64 / (hits + misses) as f64;
        println!("{entries} entries, protected={protected}: misses {measured:.4}, expected {expected:.4}");
        // Four standard deviations of this number of draws.
        let tolerance = 4.0 * (expected * (1.0 - expected) / (hits + misses) as f64).sqrt();
        assert!((measured - expected).abs() < tolerance, "{measured} and {expected}");
        // A miss reads one translation page, or two if the evicted entry is dirty.
        let gc_reads = result.translation.mapping_reads;
        assert!(gc_reads >= misses, "{gc_reads} reads for {misses} misses");
    }
}

#[test]
fn random_writes_cost_fast_most_and_the_page_level_layer_least() {
    let erases = |layer: &str| {
        let path = format!("{layer}:export=90%/nand:size=512M,page=2K,pages-per-block=64,timing=off");
        run_on(&path, "uniform:writes=2x", true).flash.erased_blocks
    };
    let (fast, superblock, page) = (erases("fast"), erases("superblock"), erases("page"));
    println!("erases: fast {fast}, superblock {superblock}, page {page}");
    assert!(fast > superblock && superblock > page);
}

#[test]
fn mapping_takes_time_and_is_in_the_ledger() {
    let nand = "nand:size=128M,page=2K,pages-per-block=64";
    let page = run_on(&format!("page/{nand}"), "uniform:writes=1x", true);
    let dftl = run_on(&format!("dftl:table=100/{nand}"), "uniform:writes=1x", true);
    assert!(programmed_for(&dftl, "mapping") > 0.0);
    assert!(dftl.seconds_simulated > page.seconds_simulated);
    let superblock =
        |levels: u32| run_on(&format!("superblock:cache=10,levels={levels}/{nand}"), "uniform:writes=1x", true);
    let (one, three) = (superblock(1), superblock(3));
    assert_eq!(3 * one.translation.mapping_reads, three.translation.mapping_reads);
    assert!(one.seconds_simulated < three.seconds_simulated);
    assert_eq!(one.flash.erased_blocks, three.flash.erased_blocks);
    assert!(dftl.flash.mapping_ram_bytes < page.flash.mapping_ram_bytes);
}
