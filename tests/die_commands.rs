//! Dies whose planes share commands, and cache programs, against closed forms of the bandwidth, each with the cause taken away; and
//! what the place of blocks does to commands for several planes.

use flashpath::expression::parse_term;
use flashpath::report::RunResult;
use flashpath::run::{Fill, Options, Path, Payload, Replay, open_device, prepare};
use flashpath::workload::generator::generator;

const TIMES: &str = "read=50us,erase=3ms,transfer=20us";

/// The times of a page that closed forms have, in microseconds.
const PROGRAM: f64 = 400.0;
const TRANSFER: f64 = 20.0;

fn result(work: &str, path: &str, options: &Options) -> RunResult {
    let path = Path::read(path).unwrap();
    let prepared = prepare(&path, options.seed).unwrap();
    let mut workload = generator(&parse_term(work).unwrap(), prepared.exported_bytes(), options.seed).unwrap();
    let outcome = prepared.run(workload.as_mut(), options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{}: {:?}", path.text, outcome.failure);
    let result = outcome.result;
    assert!(result.sums.iter().all(|sum| sum.holds), "{}: {:?}", path.text, result.sums);
    result
}

/// The operations that joined another one.
fn joined(result: &RunResult) -> u64 {
    result.translation.events.get("joined_operations").copied().unwrap_or(0)
}

#[test]
fn each_command_has_the_bandwidth_of_its_closed_form() {
    for (flash, planes, expected) in [
        // The planes of a die overlap but for the channel.
        (",planes=4", 4.0, (PROGRAM + TRANSFER) / 4.0),
        (",planes=4,plane-commands=single", 1.0, PROGRAM + TRANSFER),
        // Four transfers, and then one program.
        (",planes=4,plane-commands=multi", 4.0, TRANSFER + PROGRAM / 4.0),
        (",planes=4,plane-commands=multi-same-block", 4.0, TRANSFER + PROGRAM / 4.0),
        (",planes=2,plane-commands=multi", 2.0, TRANSFER + PROGRAM / 2.0),
        // The next transfer is in the shadow of the program.
        (",cache-program=on", 1.0, PROGRAM),
        (",cache-program=on,program=10us", 1.0, TRANSFER),
        (",planes=4,plane-commands=multi,cache-program=on", 4.0, PROGRAM / 4.0),
        (",planes=4,plane-commands=multi,cache-program=on,program=40us", 4.0, TRANSFER),
        (",planes=4,plane-commands=single,cache-program=on", 1.0, PROGRAM + TRANSFER),
    ] {
        let program = if flash.contains(",program=") { "" } else { ",program=400us" };
        let path = format!("page/nand:size=128M,pages-per-block=64,{TIMES}{program}{flash}");
        let options = Options { replay: Replay::Closed { depth: 64 }, ..Options::default() };
        let result = result("sequential:writes=0.8x,request=4K", &path, &options);
        let found = result.seconds_simulated.unwrap() * 1e6 / result.workload.written_blocks as f64;
        assert!((found / expected - 1.0).abs() < 0.01, "{path}: {found:.2} us a page, {expected:.2} expected");
        let share = joined(&result) as f64 / result.workload.written_blocks as f64;
        let of_multi = if flash.contains("multi") { 1.0 - 1.0 / planes } else { 0.0 };
        assert!((share - of_multi).abs() < 0.01, "{path}: {share:.3} of programs joined another");
    }
}

/// The blocks that a layer has open on the planes of a die have one number if it erases and opens them together, as reclaim units.
/// `page` takes any erased block: after some collection few have one number.
#[test]
fn the_place_of_blocks_decides_how_many_programs_join() {
    let shares = |layer: &str, commands: &str| {
        let path = format!("{layer}/nand:size=64M,pages-per-block=64,planes=4,{TIMES},plane-commands={commands}");
        let options = Options { fill: Fill::ALL, replay: Replay::Closed { depth: 64 }, ..Options::default() };
        let result = result("uniform:writes=3x", &path, &options);
        joined(&result) as f64 / (result.flash.programmed_pages + result.flash.erased_blocks) as f64
    };
    let any = shares("page:op=28%,buffer=1M", "multi");
    let level = shares("page:op=28%,buffer=1M", "multi-same-block");
    let units = shares("page:op=28%,buffer=1M,fdp=2", "multi-same-block");
    assert!(units > 0.7, "{units:.3} of the operations on reclaim units join another");
    println!("page: {any:.3} of operations join another, {level:.3} if blocks must have one number");
    assert!(any > 1.5 * level, "{any:.3} and {level:.3}");
}

/// A block device must answer at once, and options without effect or meaning are refused with what would be right.
#[test]
fn what_cannot_be_is_refused_with_what_would_be_right() {
    for (path, parts) in [
        ("page/nand:plane-commands=multi", ["a die of one plane", "add planes=2"]),
        ("page/nand:planes=2,plane-commands=multi,timing=off", ["no plane waits", "timing=off"]),
        ("page/nand:cache-program=on,timing=off", ["transfer takes none", "timing=off"]),
        ("page/nand:cache-program=on,suspend=both", ["register", "remove suspend"]),
        ("cache/page/nand:suspend=both", ["asks for the end of each request at once", "remove suspend"]),
        ("page/nand:planes=2,plane-commands=all", ["all", "multi-same-block"]),
        ("page:place=cdp/nand", ["one plane", "channels=2"]),
        ("page:place=cdp,pace=4/nand:channels=2", ["pace has no meaning", "remove pace"]),
        ("page:place=cdp,wear=static/nand:channels=2", ["wear=static", "remove wear"]),
        ("page:place=cdp,fdp=8/nand:channels=2", ["place", "remove it"]),
        ("page:place=cdp/nand:channels=2,page=16K,unit=4K", ["units of one page", "remove unit"]),
        ("page:place=cdp/nand:channels=2,errors=on", ["has no block", "remove place"]),
        ("dftl:place=cdp/nand:channels=2", ["place", ""]),
    ] {
        let message = match Path::read(path) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{path} was accepted"),
        };
        assert!(parts.iter().all(|part| message.contains(part)), "{path}: {message}");
    }
    let suspending = Path::read("page/nand:size=512M,suspend=both").unwrap();
    let refused = open_device(&suspending, Payload::Stamps, 1).err().expect("a read would interrupt").to_string();
    assert!(refused.contains("remove"), "{refused}");
    for flash in ["planes=2,plane-commands=multi", "planes=2,plane-commands=single", "cache-program=on"] {
        let path = Path::read(&format!("page/nand:size=512M,{flash}")).unwrap();
        assert!(open_device(&path, Payload::Stamps, 1).is_ok(), "{flash}");
    }
}

/// Below a cache a drive answers each request before it sees the next. Its commands are those of a drive alone: as many operations join
/// another, and the same load is as much faster.
#[test]
fn commands_work_below_stations_that_ask_for_the_end_of_each_request() {
    let run = |above: &str, commands: &str| {
        let path = format!(
            "{above}page:op=28%,buffer=1M/nand:size=64M,pages-per-block=64,planes=4,{TIMES},program=400us{commands}"
        );
        let options =
            Options { fill: Fill::ALL, verify: true, replay: Replay::Closed { depth: 64 }, ..Options::default() };
        let result = result("sequential:writes=4x,request=64K", &path, &options);
        assert!(result.sums.iter().all(|sum| sum.holds), "{path}");
        let operations = result.flash.programmed_pages + result.flash.erased_blocks;
        (joined(&result) as f64 / operations as f64, result.seconds_simulated.unwrap())
    };
    for commands in
        [",plane-commands=multi", ",plane-commands=multi-same-block", ",plane-commands=multi,cache-program=on"]
    {
        let (alone, below) = (run("", commands), run("cache:size=256K/", commands));
        println!("{commands}: {alone:?} alone, {below:?} below a cache: shares that joined, seconds");
        assert!((alone.0 - below.0).abs() < 0.05, "{commands}: {alone:?} and {below:?}");
        let single = run("cache:size=256K/", ",plane-commands=single");
        assert!(below.1 < 0.6 * single.1, "{commands}: {below:?}, one operation at a time {single:?}");
    }
}

/// Commands change times alone: the counts are those of independent planes.
#[test]
fn commands_change_no_count() {
    for layer in
        ["page:op=28%", "page:op=28%,buffer=1M,pace=4", "dftl:op=28%,table=2000", "superblock:op=28%", "fast:op=28%"]
    {
        let run = |commands: &str| {
            let path = format!("{layer}/nand:size=64M,pages-per-block=64,channels=2,planes=2{commands}");
            let options =
                Options { fill: Fill::ALL, verify: true, replay: Replay::Closed { depth: 32 }, ..Options::default() };
            result("uniform:writes=2x,reads=30%", &path, &options)
        };
        let plain = run("");
        for commands in [
            ",plane-commands=single",
            ",plane-commands=multi",
            ",plane-commands=multi-same-block,suspend=both",
            ",plane-commands=multi,cache-program=on",
            ",cache-program=on",
        ] {
            let found = run(commands);
            assert_eq!(found.write_amplification.total, plain.write_amplification.total, "{layer} {commands}");
            assert_eq!(found.flash.erased_blocks, plain.flash.erased_blocks, "{layer} {commands}");
            assert_ne!(found.seconds_simulated, plain.seconds_simulated, "{layer} {commands}");
        }
    }
}

/// Under writes in order each page goes to the next plane, by address or in turn. Under random ones hosts wait for planes that have many of
/// their pages; enough writes in flight leave no plane idle.
#[test]
fn a_page_on_the_plane_of_its_address_waits_for_that_plane() {
    let us = |place: &str, work: &str, depth| {
        let path = format!(
            "page:export=40%,place={place}/nand:size=512M,pages-per-block=64,channels=4,dies=2,planes=2,{TIMES}"
        );
        let options = Options { replay: Replay::Closed { depth }, ..Options::default() };
        let result = result(work, &path, &options);
        assert_eq!(result.flash.erased_blocks, 0, "{path}");
        result.seconds_simulated.unwrap() * 1e6 / result.workload.written_blocks as f64
    };
    for place in ["cdp", "dpc", "pcd"] {
        let ratio =
            us(place, "sequential:writes=1x,request=4K", 32) / us("turn", "sequential:writes=1x,request=4K", 32);
        // The planes of a channel that come one after the other wait for it, but all are busy.
        assert!((ratio - 1.0).abs() < 0.01, "{place}: {ratio:.3} times as long in order");
        let at_random = |depth| us(place, "uniform:writes=1x", depth) / us("turn", "uniform:writes=1x", depth);
        let (few, many) = (at_random(16), at_random(1024));
        println!("{place}: {few:.2} times as long at depth 16, {many:.2} at 1,024");
        assert!(few > 1.3 && many < 1.1, "{place}: {few:.2} and {many:.2} times as long");
    }
}

/// Each plane collects for itself: write amplification is that of a drive of one plane with the same share of spare blocks.
#[test]
fn planes_that_collect_for_themselves_copy_as_one_plane_does() {
    let amplification = |layer: &str, flash: &str| {
        let options = Options { fill: Fill::ALL, ..Options::default() };
        let path = format!("page:export=80%,{layer}/nand:pages-per-block=64,timing=off,{flash}");
        result("uniform:writes=8x", &path, &options).write_amplification.steady.unwrap()
    };
    let apart = amplification("place=cdp,reserve=16", "size=512M,channels=4,dies=2,planes=2");
    let alone = amplification("reserve=1", "size=32M");
    println!("{apart:.3} of sixteen planes, {alone:.3} of one");
    assert!((apart / alone - 1.0).abs() < 0.02, "{apart:.3} and {alone:.3}");
}
