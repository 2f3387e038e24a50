//! The promises of the ledger, recomputed from the results of runs on every kind of path: each block has a cause, an
//! origin and a content at each station, a station receives what the one above it sent, and the pages of the flash are
//! explained by all of it.
//!
//! | file | about |
//! |---|---|
//! | `sums` | what is checked of one result |
//! | `example` | the worked example of docs/ledger.md |

#[path = "ledger/example.rs"]
mod example;
#[path = "ledger/sums.rs"]
mod sums;

use flashpath::expression::parse_term;
use flashpath::random::Random;
use flashpath::report::RunResult;
use flashpath::run::{BlockWork, FileShape, Job, NoMachine, OpenBlocks, Path, Place, RunOptions, Work, run};
use flashpath::workload::Workload;
use flashpath::workload::files::file_workload;
use flashpath::workload::generator::generator;
use flashpath::workload::trace::{TraceOptions, TraceWorkload};
use sums::{Ledger, check_ledger};

/// A file system writes block after block, and the kernel's block layer sends fewer and larger requests: the counts of both were
/// set beside each other, and a ratio of the paper was missed for that reason alone.
#[test]
fn write_requests_of_a_file_system_are_counted_as_a_block_layer_merges_them() {
    let run = |path: &str, work: &str, max_request_bytes| {
        let work = Work::Files(file_workload(&parse_term(work).unwrap(), 5).unwrap());
        let result = result(path, work, RunOptions { max_request_bytes, ..RunOptions::default() });
        (result.write_requests, result.options)
    };
    let seq_write = "seq_write:file=8M,sync";
    for path in ["ext:data=ordered/page/nand:size=128M", "sfs/page/nand:size=128M", "sfs/zns:size=512M,zone=4M"] {
        let (merged, options) = run(path, seq_write, None);
        let (split, split_options) = run(path, seq_write, Some(4096));
        let [largest, smallest] = [&merged[0], &split[0]];
        assert_eq!((merged.len(), largest.max_bytes, options.len()), (1, 1280 << 10, 0), "{path}");
        assert_eq!(split_options, ["--max-request 4096"]);
        assert_eq!(largest.calls, smallest.calls, "{path}: the same calls");
        assert!(smallest.merged >= 2048, "{path}: a request for each block, {smallest:?}");
        assert!(largest.merged * 8 < smallest.merged, "{path}: {largest:?}, {smallest:?}");
    }
    let (both, _) = run("ext:data=journal/conv:size=64M+conv:size=32M", seq_write, None);
    assert_eq!(both.iter().map(|to| to.station.as_str()).collect::<Vec<_>>(), ["conv", "conv-2"]);
    assert!(run("tree", seq_write, None).0.is_empty(), "no device is below it");
}

const LAYERS: [&str; 4] = ["page", "dftl:table=500", "fast", "superblock:cache=100"];

fn result(path: &str, work: Work<'_>, options: RunOptions) -> RunResult {
    let read = Path::read(path).unwrap();
    let outcome = run(Job { work, place: Place::Path(&read), seed: 5, options }, &NoMachine, &mut |_| true);
    let outcome = outcome.unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(outcome.failure.is_none(), "{path}: {:?}", outcome.failure);
    outcome.result
}

fn opened(name: &str, open: OpenBlocks<'static>) -> Work<'static> {
    Work::Blocks(BlockWork { name: name.to_string(), has_times: false, open })
}

/// Blocks of a workload on the whole path, or in a file of this shape.
fn blocks(path: &str, workload: &str, file: FileShape) -> RunResult {
    let term = parse_term(workload).unwrap();
    let open = opened(workload, Box::new(move |bytes| Ok(generator(&term, bytes, 5).unwrap())));
    result(path, open, RunOptions { verify: true, file, ..RunOptions::default() })
}

/// Overwrites in a file of a volume of sfs, so full that it cleans segments.
fn cleaned(path: &str) -> RunResult {
    cleaned_by(path, "zipf:theta=0.9,writes=3x")
}

/// The same, for a workload.
fn cleaned_by(path: &str, workload: &str) -> RunResult {
    let shape = FileShape { utilization: Some(0.8), fsync_every: Some(32), ..FileShape::default() };
    blocks(path, workload, FileShape { bytes: Some(16 << 20), ..shape })
}

fn files(path: &str) -> RunResult {
    let workload = file_workload(&parse_term("varmail:files=200,size=16K,loops=1500,threads=2").unwrap(), 5).unwrap();
    result(path, Work::Files(workload), RunOptions::default())
}

/// What a drive copies, and what it writes for its map, is all that it adds; it writes each page it was asked for once.
#[test]
fn a_drive_that_is_the_whole_path_keeps_every_promise() {
    for layer in LAYERS {
        for page in ["2K", "4K", "16K"] {
            let path = format!("{layer}/nand:size=96M,page={page},pages-per-block=64,timing=off");
            let result =
                blocks(&path, "hotcold:r=0.2,f=0.8,writes=3x,discards=3%,content=journal", FileShape::default());
            let ledger = check_ledger(&result);
            assert!(result.flash.erased_blocks > 0, "{path}");
            let copied = ledger.sum(&|row| row.station == "nand" && sums::is_copy(row) && row.content == "journal");
            assert!(copied > 0.0, "{path} copied journal blocks, and says so");
            assert_eq!(ledger.sum(&|row| row.origin == "segment-cleaning"), 0.0, "{path}");
        }
    }
}

/// A drive with units, a buffer, or both, drawn at random; and the work on it, below a file system or not.
fn drawn(random: &mut Random) -> (String, &'static str) {
    fn pick(random: &mut Random, from: &[&'static str]) -> &'static str {
        from[random.below(from.len() as u64) as usize]
    }
    let layer = pick(
        random,
        &["page", "page:streams=content", "page:frontiers=shared,victim=fifo", "dftl:table=300", "fast", "superblock"],
    );
    let buffer = pick(random, &["", "buffer=256K", "buffer=1M", "buffer=1M,buffer-policy=volatile"]);
    let separator = if layer.contains(':') { "," } else { ":" };
    let units =
        pick(random, &["page=4K,unit=2K", "page=8K,unit=4K", "page=16K,unit=4K", "page=16K,unit=2K", "page=16K"]);
    // A block of each shape has 256 KiB.
    let pages = match units.split(',').next().unwrap() {
        "page=4K" => 64,
        "page=8K" => 32,
        _ => 16,
    };
    let planes = pick(random, &["", ",channels=2", ",channels=2,planes=2"]);
    let timing = pick(random, &["off", "on"]);
    let above = pick(random, &["", "sfs:segment=256K/"]);
    let work = pick(
        random,
        &[
            "hotcold:r=0.2,f=0.8,writes=2x,discards=3%,content=journal",
            "uniform:writes=1x,request=1K",
            "sequential:writes=2x,request=20K",
            "zipf:theta=1.1,writes=2x,request=8K",
        ],
    );
    let options = if buffer.is_empty() { String::new() } else { format!("{separator}{buffer}") };
    (format!("{above}{layer}{options}/nand:size=64M,{units},pages-per-block={pages}{planes},timing={timing}"), work)
}

/// Each combination of layer, unit, buffer and what stands above: none loses or invents a block.
#[test]
fn units_and_buffers_keep_every_promise_in_any_combination() {
    let mut random = Random::new(1, "units and buffers");
    let (mut made, mut joined, mut padded) = (0, 0, 0);
    for _ in 0..400 {
        let (path, work) = drawn(&mut random);
        // File systems and the workload count in blocks: less or more than a unit is not comparable.
        let is_comparable = match path.starts_with("sfs") {
            true => path.contains("unit=4K"),
            false => !(path.contains("unit=2K") && work.contains("request=1K")),
        };
        if Path::read(&path).is_err() || !is_comparable {
            continue;
        }
        let result =
            if path.starts_with("sfs") { cleaned_by(&path, work) } else { blocks(&path, work, FileShape::default()) };
        let ledger = check_ledger(&result);
        made += 1;
        joined += u32::from(ledger.sum(&|row| row.cause == "joined") > 0.0);
        padded += u32::from(ledger.sum(&|row| row.station == "nand" && row.cause == "padding") > 0.0);
    }
    println!("{made} were made, {joined} joined blocks, {padded} padded pages of flash");
    assert!(made > 100 && joined > 30 && padded > 10, "{made} were made, {joined} joined blocks, {padded} padded");
}

/// The blocks that sfs wrote for cleaning and checkpoints stood in the drive and on its flash as "host".
#[test]
fn what_sfs_cleaned_and_checkpointed_is_known_down_to_the_copies_on_flash() {
    for layer in LAYERS {
        let path = format!("sfs:segment=128K,discard=off/{layer}/nand:size=64M,pages-per-block=96,timing=off");
        let result = cleaned_by(&path, "zipf:theta=0.9,writes=12x");
        let ledger = check_ledger(&result);
        let sent = |origin: &str| ledger.sum(&|row| row.station == "sfs" && row.origin == origin);
        let station = layer.split(':').next().unwrap();
        for origin in ["host-write", "segment-cleaning", "checkpoint"] {
            let asked = |row: &sums::Row| row.station == station && row.cause == "host-write" && row.origin == origin;
            assert!(sent(origin) > 0.0, "{path}: sfs sent nothing for {origin}");
            assert_eq!(ledger.sum(&asked), sent(origin), "{path}: {origin}");
        }
        let copied =
            |origin: &str| ledger.sum(&|row| row.station == "nand" && sums::is_copy(row) && row.origin == origin);
        assert!(copied("segment-cleaning") > 0.0, "{path}: data that segment cleaning wrote was copied");
        assert!(copied("host-write") > 0.0, "{path}");
    }
}

#[test]
fn a_path_through_zones_keeps_every_promise() {
    for path in [
        "sfs/zns:size=64M,zone=1M,timing=off",
        "sfs/zns:size=64M,zone=1M,page=16K,timing=off",
        "sfs:segment=256K/dm-zoned:reserved=3/conv:size=16M,timing=off+zns:size=64M,zone=1M,timing=off",
        "sfs:segment=256K/dm-zoned:reserved=3/zns:size=96M,zone=1M,conventional=16,timing=off",
    ] {
        let result = cleaned(path);
        let ledger = check_ledger(&result);
        let stored = |origin: &str| {
            ledger.sum(&|row| result.media.contains(&row.station) && row.content == "data" && row.origin == origin)
        };
        assert!(stored("segment-cleaning") > 0.0 && stored("host-write") > 0.0, "{path}");
        if path.contains("dm-zoned") {
            let reclaimed = |origin: &str| {
                ledger.sum(&|row| row.station == "dm-zoned" && row.cause == "reclaim" && row.origin == origin)
            };
            assert!(reclaimed("segment-cleaning") > 0.0 && reclaimed("host-write") > 0.0, "{path}: {ledger:?}");
        }
    }
}

#[test]
fn a_journaling_file_system_is_known_by_commits_and_checkpoints() {
    for (data, journaled) in [("ordered", false), ("journal", true)] {
        for layer in ["page", "fast"] {
            let path = format!("ext:data={data},journal-size=4M/{layer}/nand:size=48M,pages-per-block=64,timing=off");
            let result = files(&path);
            let ledger = check_ledger(&result);
            let programmed = |origin: &str, content: &str| {
                ledger.sum(&|row| row.station == "nand" && row.origin == origin && row.content == content)
            };
            assert!(programmed("journal-commit", "journal") > 0.0, "{path}");
            assert!(programmed("checkpoint", "metadata") > 0.0, "{path}");
            assert_eq!(programmed("checkpoint", "data") > 0.0, journaled, "{path}");
            assert_eq!(programmed("host-write", "data") > 0.0, !journaled, "{path}");
        }
    }
}

/// A mail server of many threads, in a volume that is nearly full of its files.
fn mail(path: &str) -> RunResult {
    let workload = "varmail:files=800,size=16K,loops=1200,threads=16";
    result(path, Work::Files(file_workload(&parse_term(workload).unwrap(), 5).unwrap()), RunOptions::default())
}

#[test]
fn a_journaling_file_system_keeps_every_promise_on_every_device_in_every_mode() {
    const NAND: &str = "nand:size=40M,pages-per-block=64,timing=off";
    let on_flash =
        ["dftl:table=100,victim=fifo", "superblock:cache=100", "page:victim=fifo", "page:victim=greedy,op=4%"];
    let devices = on_flash.map(|layer| format!("{layer}/{NAND}")).into_iter().chain([
        format!("cache:size=1M/page/{NAND}"),
        format!("cache:size=2M/conv:size=2M,timing=off+fast/{NAND}"),
        "conv:size=32M,ftl=page".to_string(),
    ]);
    let devices: Vec<String> = devices.collect();
    for data in ["ordered", "writeback", "journal"] {
        for device in &devices {
            let path = format!("ext:data={data},journal-size=4M/{device}");
            let ledger = check_ledger(&mail(&path));
            let sent = |origin: &str, content: &str| {
                ledger.sum(&|row| row.station == "ext" && row.origin == origin && row.content == content)
            };
            let all = ledger.sum(&|row| row.station == "ext");
            let (bytes, home) = (sent("host-write", "data"), sent("checkpoint", "data"));
            let (journal, metadata) = (sent("journal-commit", "journal"), sent("checkpoint", "metadata"));
            assert_eq!(bytes + home + journal + metadata, all, "{path}: nothing else is written");
            assert!(journal > 0.0 && metadata > 0.0, "{path}");
            assert_eq!((bytes == 0.0, home == 0.0), (data == "journal", data != "journal"), "{path}: bytes of files");
        }
    }
}

#[test]
fn both_devices_of_a_volume_and_its_journal_keep_every_promise() {
    const NAND: &str = "nand:size=40M,pages-per-block=64,timing=off";
    for data in ["ordered", "journal"] {
        for (volume, journal) in [
            (format!("page/{NAND}"), "conv:size=8M,timing=off"),
            (format!("dftl:table=100/{NAND}"), "conv:size=8M,timing=off"),
            ("conv:size=32M,timing=off".to_string(), "page/nand:size=16M,pages-per-block=32,timing=off"),
        ] {
            let path = format!("ext:data={data},journal-size=4M/{volume}+{journal}");
            let ledger = check_ledger(&mail(&path));
            let sent = ledger.sum(&|row| row.station == "ext" && row.content == "journal");
            let [volume, journal] = [&volume[..], journal].map(|device| device.split([':', '/']).next().unwrap());
            let received = |station: &str, contents: &[&str]| {
                let is_asked = |row: &sums::Row| row.station == station && !sums::is_copy(row);
                ledger.sum(&|row| is_asked(row) && contents.contains(&row.content.as_str()))
            };
            assert!(sent > 0.0, "{path}");
            assert_eq!(received(journal, &["journal"]), sent, "{path}: the journal lies on its device");
            assert_eq!(received(journal, &["data", "metadata"]), 0.0, "{path}: and nothing else");
            assert_eq!(received(volume, &["journal"]), 0.0, "{path}");
        }
    }
}

/// dm-zoned is told where the journal lies: zones of its own take it, and no reclaim copies it.
#[test]
fn the_journal_has_zones_of_its_own_and_is_not_reclaimed() {
    let copied = |data: &str, option: &str| {
        let below = "conv:size=20M,timing=off+zns:size=64M,zone=1M,timing=off";
        let path = format!("ext:data={data},journal-size=4M/dm-zoned:reserved=3{option}/{below}");
        let result = mail(&path);
        let ledger = check_ledger(&result);
        let events = &result.translation.events;
        if !option.is_empty() {
            assert_eq!(events["journal_blocks_outside_their_zones"], 0, "{path}");
        }
        ["data", "journal"].map(|content| {
            ledger.sum(&|row| row.station == "dm-zoned" && row.cause == "reclaim" && row.content == content)
        })
    };
    for data in ["ordered", "journal"] {
        let ([others, journal], [_, mixed]) = (copied(data, ",journal-zone"), copied(data, ""));
        assert!(others > 0.0, "{data}: there is reclaim");
        assert!(mixed > 0.0, "{data}: it copies the journal if that is not apart");
        assert_eq!(journal, 0.0, "{data}");
    }
}

/// A cache answers writes and sends some of them later; what it then writes back is still what it was.
#[test]
fn a_cache_in_between_loses_no_origin() {
    for path in [
        "sfs:segment=256K/cache:size=1M/page/nand:size=64M,pages-per-block=64,timing=off",
        "sfs:segment=256K/cache:size=1M/conv:size=64M,ftl=page",
        "sfs:segment=256K/cache:size=2M/conv:size=2M,timing=off+page/nand:size=64M,pages-per-block=64,timing=off",
        "sfs:segment=256K/cache:size=1M/dm-zoned:reserved=3/conv:size=16M,timing=off+zns:size=64M,zone=1M,timing=off",
    ] {
        let ledger = check_ledger(&cleaned(path));
        let sent = |origin: &str| ledger.sum(&|row| row.station == "cache" && row.origin == origin);
        assert!(sent("segment-cleaning") > 0.0 && sent("checkpoint") > 0.0, "{path}");
    }
    let path = "ext:journal-size=4M/cache:size=1M/page/nand:size=64M,pages-per-block=64,timing=off";
    let ledger = check_ledger(&files(path));
    assert!(ledger.sum(&|row| row.station == "page" && row.origin == "journal-commit") > 0.0);
}

/// What a kernel's ext4 wrote, captured with its contents: above the drive there is a host, which says no more.
#[test]
fn a_captured_ext4_keeps_every_promise_on_zones_and_on_a_drive() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/fb_varmail_ext4.csv.zst");
    for path in [
        "dm-zoned:reserved=3,journal-zone/conv:size=512M,timing=off+zns:size=4G,zone=16M,timing=off",
        "dm-zoned:reserved=3/conv:size=512M,timing=off+zns:size=4G,zone=16M,timing=off",
        "page:op=7%/nand:size=4G,timing=off",
    ] {
        let open: OpenBlocks<'static> = Box::new(move |bytes| {
            let workload = TraceWorkload::open(trace.as_ref(), TraceOptions::default(), bytes).unwrap();
            Ok(Box::new(workload) as Box<dyn Workload>)
        });
        let result = result(path, opened("trace", open), RunOptions { limit: Some(60_000), ..RunOptions::default() });
        let ledger = check_ledger(&result);
        let reclaimed = ledger.sum(&|row| row.station == "dm-zoned" && row.cause == "reclaim");
        assert_eq!(reclaimed > 0.0, path.starts_with("dm-zoned"), "{path}");
        for content in ["data", "metadata", "journal"] {
            let stored = |row: &sums::Row| result.media.contains(&row.station) && row.content == content;
            assert!(ledger.sum(&stored) > 0.0, "{path}: {content}");
            assert_eq!(ledger.sum(&|row| stored(row) && row.origin != "host-write"), 0.0, "{path}: {content}");
        }
    }
}

/// The order in which the rows of a ledger are listed is that of the stations.
#[test]
fn stations_stand_in_the_order_of_the_path() {
    let result = cleaned("sfs:segment=256K/page/nand:size=64M,pages-per-block=64,timing=off");
    let ledger = Ledger::of(&result);
    assert_eq!(ledger.stations(), ["workload", "sfs", "page", "nand"]);
}
