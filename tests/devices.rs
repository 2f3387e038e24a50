//! Paths of block devices in the engine: counts at each station, reads of the newest write, and a drive as a block
//! device.

use flashpath::device::{BlockDevice, Lba};
use flashpath::expression::parse_term;
use flashpath::label::{Cause, Content, Label, Provenance};
use flashpath::random::Random;
use flashpath::report::RunResult;
use flashpath::run::{Fill, Options, Path, Payload, Prepared, Replay, open_device, prepare};
use flashpath::time::Time;
use flashpath::workload::generator::generator;

const ZONED: &str = "dm-zoned:reserved=3/conv:size=32M,timing=off+zns:size=128M,zone=4M,timing=off";
const TIMED: &str = "dm-zoned:reserved=3/conv:size=32M+zns:size=128M,zone=4M";
const DRIVES: [&str; 4] = [
    "page/nand:size=64M,pages-per-block=64,endurance=100000",
    "dftl/nand:size=64M,pages-per-block=64,endurance=100000",
    "fast/nand:size=64M,pages-per-block=64,endurance=100000",
    "superblock/nand:size=64M,pages-per-block=64,page=8K,endurance=100000",
];

fn run_on(text: &str, workload: &str, options: &Options) -> RunResult {
    let path = Path::read(text).unwrap();
    let prepared = prepare(&path, options.seed).unwrap();
    finished(prepared, workload, options)
}

fn finished(prepared: Prepared, workload: &str, options: &Options) -> RunResult {
    let term = parse_term(workload).unwrap();
    let mut workload = generator(&term, prepared.exported_bytes(), options.seed).unwrap();
    let outcome = prepared.run(workload.as_mut(), options, &mut |_| true);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.result
}

fn blocks(result: &RunResult, station: &str, cause: &str) -> f64 {
    let rows = result.ledger.iter().filter(|row| row.station == station && row.cause == cause);
    rows.map(|row| row.blocks).sum()
}

/// Writes in a share of the device that fits in the conventional zones, mixed with all other kinds of requests.
const WORK: &str = "hotcold:r=0.18,f=1,writes=0.5x,reads=20%,discards=5%";

#[test]
fn every_read_of_a_zoned_volume_returns_the_newest_write_and_every_sum_holds() {
    for path in [ZONED, TIMED, "dm-zoned:reserved=3/zns:size=128M,zone=4M,conventional=8", "conv:size=32M"] {
        let result = run_on(path, WORK, &Options { verify: true, ..Options::default() });
        assert!(!result.sums.is_empty() && result.sums.iter().all(|sum| sum.holds), "{:?}", result.sums);
        assert_eq!(result.workload.written_blocks as f64, blocks(&result, "workload", "host-write"), "{path}");
    }
}

#[test]
fn the_media_store_what_dm_zoned_sends_and_the_write_amplification_counts_all_of_it() {
    let result = run_on(ZONED, WORK, &Options::default());
    assert_eq!(result.media, ["conv", "zns"]);
    for cause in ["host-write", "reclaim", "mapping"] {
        let stored = blocks(&result, "conv", cause) + blocks(&result, "zns", cause);
        assert_eq!(blocks(&result, "dm-zoned", cause), stored, "{cause}");
    }
    assert!(blocks(&result, "dm-zoned", "reclaim") > 0.0, "it reclaimed");
    let stored: f64 =
        result.ledger.iter().filter(|row| result.media.contains(&row.station)).map(|row| row.blocks).sum();
    assert_eq!(result.write_amplification.total, Some(stored / result.workload.written_blocks as f64));
    assert!(result.translation.events["reclaimed_zones"] > 0);
}

#[test]
fn the_same_seed_gives_the_same_result_on_devices_too() {
    for path in [ZONED, TIMED, "conv:size=32M"] {
        let text = || format!("{:?}", run_on(path, WORK, &Options { seed: 3, ..Options::default() }));
        assert!(text() == text(), "{path}");
    }
}

#[test]
fn without_reclaim_time_changes_no_count() {
    // With timing they differ: the copies of reclaim depend on its start.
    let counters = |path: &str| {
        let options = Options { replay: Replay::Closed { depth: 8 }, ..Options::default() };
        let mut result = run_on(path, "sequential:writes=8M", &options);
        (result.path, result.path_in_full) = (String::new(), String::new());
        (result.seconds_simulated, result.latency_ns, result.throughput_mib_s) = (None, None, None);
        for window in &mut result.windows {
            (window.seconds_simulated, window.throughput_mib_s) = (None, None);
            window.latency_ns.clear();
        }
        assert_eq!(result.translation.events.get("reclaimed_zones").copied().unwrap_or(0), 0);
        format!("{result:?}")
    };
    assert_eq!(counters(ZONED), counters(TIMED));
    assert_eq!(counters("conv:size=64M,timing=off"), counters("conv:size=64M"));
}

#[test]
fn a_drive_counts_the_same_as_a_device_and_directly() {
    for text in DRIVES {
        let path = Path::read(text).unwrap();
        let options = Options { fill: Fill::ALL, ..Options::default() };
        let work = "hotcold:r=0.2,f=0.8,writes=2x,reads=10%";
        let inside = run_on(text, work, &options);
        let device = open_device(&path, Payload::Stamps, options.seed).unwrap();
        let outside = finished(Prepared::with_device(&path, device, options.seed), work, &options);
        if !text.contains("page=8K") {
            assert_eq!(inside.flash.programmed_pages, outside.flash.programmed_pages, "{text}");
            assert_eq!(inside.flash.erased_blocks, outside.flash.erased_blocks, "{text}");
            // A device answers at once: the order of operations at its planes and channels is another.
            let (inside, outside) = (inside.seconds_simulated.unwrap(), outside.seconds_simulated.unwrap());
            assert!((outside / inside - 1.0).abs() < 0.01, "{text}: {inside} s inside, {outside} s as a device");
        }
        assert_eq!(outside.media, ["nand"]);
        assert!(outside.sums.iter().all(|sum| sum.holds), "{:?}", outside.sums);
        assert_eq!(outside.wear.endurance, 100_000);
    }
}

#[test]
fn a_drive_as_a_device_keeps_the_bytes() {
    for text in DRIVES {
        let path = Path::read(text).unwrap();
        let device = open_device(&path, Payload::Bytes, 1).unwrap();
        let mut random = Random::new(7, text);
        let range = 512.min(device.blocks());
        let mut disk = vec![0u8; range as usize * 4096];
        let mut at = Time::ZERO;
        for step in 0..2000u32 {
            let first = random.below(range);
            let count = 1 + random.below((range - first).min(9));
            let bytes = first as usize * 4096..(first + count) as usize * 4096;
            at = match random.below(8) {
                0 => {
                    disk[bytes].fill(0);
                    device.discard(Lba(first), count, at).unwrap()
                }
                1..4 => {
                    let mut found = vec![1; bytes.len()];
                    let done = device.read(Lba(first), &mut found, at).unwrap();
                    assert!(found == disk[bytes], "{text}, step {step}");
                    done
                }
                _ => {
                    let value = step.to_le_bytes();
                    disk[bytes.clone()].chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&value));
                    let provenance = Provenance { origin: Cause::JournalCommit, content: Content::Journal };
                    let label = Label::again(Cause::Reclaim, provenance);
                    device.write(Lba(first), &disk[bytes], label, at).unwrap()
                }
            };
        }
        assert!(device.flush(Time::ZERO).unwrap() >= at, "a flush waits for what is in flight");
        let account = device.account();
        let provenance = Provenance { origin: Cause::JournalCommit, content: Content::Journal };
        assert_eq!(account.received.total(), account.received.of(Label::again(Cause::Reclaim, provenance)));
        let mapping =
            account.sent.entries().filter(|(label, _)| label.content == Content::Mapping).map(|entry| entry.1);
        let copied_and_written = account.sent.total() - mapping.sum::<u64>();
        assert_eq!(copied_and_written, account.sent.of_provenance(provenance), "copies are still the same journal");
        assert_eq!(account.sent, account.below[0].received);
        assert!(device.read(Lba(device.blocks()), &mut [0; 4096], at).is_err());
    }
}

#[test]
fn a_conventional_device_with_a_translation_layer_of_its_own_exports_its_size_and_amplifies() {
    for ftl in ["page", "dftl", "fast", "superblock"] {
        for more in ["", ",preset=tlc"] {
            let path = Path::read(&format!("conv:size=96M,ftl={ftl}{more}")).unwrap();
            assert_eq!(open_device(&path, Payload::Stamps, 1).unwrap().blocks(), (96 << 20) / 4096);
        }
    }
    let options = Options { verify: true, fill: Fill::ALL, ..Options::default() };
    let result = run_on("conv:size=96M,ftl=page,timing=off", "uniform:writes=3x", &options);
    assert!(result.write_amplification.total.unwrap() > 1.5, "{:?}", result.write_amplification);
    assert!(blocks(&result, "conv", "garbage-collection") > 0.0);
    assert!(result.flash.erased_blocks > 0 && result.wear.erase_count_max > 0);
    let path = ZONED.replace("conv:size=32M,", "conv:size=32M,ftl=page,");
    let result = run_on(&path, WORK, &Options { fill: Fill::NONE, ..options });
    assert_eq!(result.media, ["conv", "zns"]);
    for (text, pointed) in
        [("conv:preset=tlc", "tlc"), ("conv:ftl=page,read=1us", "1us"), ("conv:ftl=page,image=x", "x")]
    {
        let error = Path::read(text).expect_err(text);
        assert_eq!(&text[error.span.clone()], pointed, "{error}");
    }
}

#[test]
fn a_write_of_part_of_a_block_reads_the_block_before() {
    let path = Path::read("conv:size=1M").unwrap();
    let options = Options { verify: true, ..Options::default() };
    let result = finished(prepare(&path, 1).unwrap(), "uniform:writes=1M,request=6K", &options);
    assert!(result.workload.written_blocks > 0);
    assert_eq!(result.write_amplification.total, Some(1.0), "blocks are counted whole on both sides");
}

/// Threads of a front end make requests in any order of times. A device serves them in the order of calls: no request
/// completes before its own start, and a read returns the newest write before it.
#[test]
fn a_device_called_at_an_earlier_time_than_before_serves_in_the_order_of_calls() {
    let caches = ["cache:size=1M/conv:size=32M".to_string(), format!("cache:size=1M/{}", DRIVES[0])];
    for text in DRIVES.map(str::to_string).into_iter().chain(caches).chain(["conv:size=32M".into(), TIMED.into()]) {
        let run = || {
            let device = open_device(&Path::read(&text).unwrap(), Payload::Stamps, 3).unwrap();
            let (mut random, mut newest, mut answers) = (Random::new(3, "times"), [0u32; 512], Vec::new());
            for stamp in 1..6000u32 {
                // Start times up to 2 ms before and after.
                let at = Time(u64::from(stamp) * 20_000 + random.below(4_000_000));
                let block = random.below(512);
                let mut bytes = stamp.to_le_bytes();
                let done = match random.below(8) {
                    0..3 => {
                        newest[block as usize] = stamp;
                        device.write(Lba(block), &bytes, Label::host(Content::Data), at).unwrap()
                    }
                    3 => device.flush(at).unwrap(),
                    4 => {
                        device.work(at).unwrap();
                        at
                    }
                    _ => {
                        let done = device.read(Lba(block), &mut bytes, at).unwrap();
                        assert_eq!(u32::from_le_bytes(bytes), newest[block as usize], "{text}: block {block}");
                        done
                    }
                };
                assert!(done >= at, "{text}: asked at {at:?} and done at {done:?}");
                answers.push(done);
            }
            answers
        };
        assert_eq!(run(), run(), "{text}: the same calls give the same result");
    }
}

/// Of two requests to one unit, the first call is served first, even if its start time is later.
#[test]
fn planes_and_units_are_busy_until_their_last_request_ends() {
    let path = Path::read("conv:size=1M,read=100us,write=200us,units=1").unwrap();
    let device = open_device(&path, Payload::Stamps, 3).unwrap();
    let mut bytes = [0; 4];
    assert_eq!(device.read(Lba(0), &mut bytes, Time(1_000_000)).unwrap(), Time(1_100_000));
    assert_eq!(device.read(Lba(1), &mut bytes, Time(0)).unwrap(), Time(1_200_000));
}
