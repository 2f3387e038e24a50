//! Flash with errors: a read returns the newest write or an error, never anything else, whatever fails and wherever the power is
//! cut; the sums hold; the drive is read-only when its spare blocks are used up; the frequencies are those of the closed form.

mod plug;

use flashpath::device::nand::errors::{Age, BlockAge, Codewords};
use flashpath::device::nand::{LogicalPage, Nand, Timing, Untimed};
use flashpath::device::station::Payload;
use flashpath::device::{BlockDevice, DeviceError, Lba};
use flashpath::expression::parse_term;
use flashpath::label::{Cause, Content, Label, Provenance};
use flashpath::random::Random;
use flashpath::report::RunResult;
use flashpath::run::{Fill, Options, Path, Replay, open_device, prepare};
use flashpath::time::Time;
use flashpath::translation::page_level::PageSettings;
use flashpath::translation::{Buffered, FlashLayer, PageWrite, Translation, TranslationError};
use flashpath::workload::generator::generator;
use plug::{Plug, PowerCut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The contents that a page may have.
#[derive(Clone, Debug, Default)]
struct Expected {
    newest: Option<u32>,
    earlier: Vec<u32>,
    /// True if its last read has failed, and nothing was written since.
    is_lost: bool,
}

struct Checked<T> {
    drive: T,
    model: Vec<Expected>,
    random: Random,
    step: u32,
    asked: Option<(usize, Option<u32>)>,
    is_read_only: bool,
    /// True if a drive that is read-only takes the rest of a page of flash, or newer versions of what is in its buffer.
    takes_rest: bool,
    lost_reads: u64,
}

impl<T: Translation<Timing: Timing<Moment = ()>>> Checked<T> {
    fn new(drive: T, seed: u64) -> Checked<T> {
        let model = vec![Expected::default(); drive.exported_pages() as usize];
        let random = Random::new(seed, "model");
        let takes_rest = drive.buffer().is_some() || drive.flash().geometry.pages_per_program > 1;
        Checked { drive, model, random, step: 0, asked: None, is_read_only: false, takes_rest, lost_reads: 0 }
    }

    /// True if the change was made.
    fn is_done<R>(&mut self, result: Result<R, TranslationError>, page: usize) -> bool {
        match result {
            Ok(_) => {
                assert!(!self.is_read_only || self.takes_rest, "a drive that is read-only takes no changes");
                true
            }
            Err(TranslationError::ReadOnly { page: refused, retired, spare, .. }) => {
                assert_eq!(refused as usize, page);
                assert!(retired > 0, "spare blocks {spare}");
                self.is_read_only = true;
                false
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn step(&mut self) {
        self.step += 1;
        let pages = self.model.len() as u64;
        let random = &mut self.random;
        let page = if random.below(4) == 0 { random.below(pages) } else { random.below(pages.div_ceil(8)) } as usize;
        let logical = LogicalPage(page as u32);
        match random.below(10) {
            0 => {
                self.asked = Some((page, None));
                let discarded = self.drive.discard(logical, ());
                if self.is_done(discarded, page) {
                    self.model[page].newest = None;
                    self.model[page].is_lost = false;
                }
            }
            1..=3 => self.read(page),
            _ => {
                let provenance = Provenance { origin: Cause::HostWrite, content: Content::Data };
                let write = PageWrite { page: logical, provenance, stream: 0, stamp: self.step };
                self.asked = Some((page, Some(self.step)));
                self.model[page].earlier.push(self.step);
                let written = self.drive.write(write, ());
                if self.is_done(written, page) {
                    let through = self.drive.writes_through();
                    through.then(|| self.drive.flush(()).unwrap());
                    self.model[page].newest = Some(self.step);
                    self.model[page].is_lost = false;
                }
            }
        }
        self.asked = None;
    }

    /// Reads a page: the newest write or an error, and always an error once there was one.
    fn read(&mut self, page: usize) {
        let found = self.drive.read(LogicalPage(page as u32), ());
        self.drive.end_reads(());
        let expected = &mut self.model[page];
        match found {
            Ok((stamp, ())) => {
                assert_eq!(stamp, expected.newest, "page {page}");
                assert!(!expected.is_lost, "page {page} was lost, and is there again");
            }
            Err(TranslationError::Uncorrectable { page: lost }) => {
                assert_eq!(lost as usize, page, "the error has the address");
                assert!(expected.newest.is_some(), "page {page} holds nothing");
                expected.is_lost = true;
                self.lost_reads += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn read_back(&mut self) {
        (0..self.model.len()).for_each(|page| self.read(page));
    }

    fn check_sums(&self) {
        let flash = self.drive.flash();
        assert_eq!(&flash.counts.programmed, self.drive.sent(), "the flash programmed what the layer sent");
        let erases: u64 = flash.erase_counts.iter().map(|&count| u64::from(count)).sum();
        let there: u64 = flash.programmed_pages.iter().map(|&pages| u64::from(pages)).sum();
        assert_eq!(erases, flash.counts.erased_blocks);
        assert_eq!(
            erases * u64::from(flash.geometry.pages_per_block) + there,
            flash.counts.programmed.total() + flash.counts.erased_unprogrammed - flash.counts.lost
        );
    }

    /// After a power cut a page has its newest write, the one in flight, or an error; a discard may be forgotten.
    fn accept_after_power_cut(&mut self) {
        let asked = self.asked.take();
        let was_read_only = std::mem::take(&mut self.is_read_only);
        for page in 0..self.model.len() {
            let expected = &mut self.model[page];
            let asked = asked.filter(|(other, _)| *other == page).map(|(_, stamp)| stamp);
            match self.drive.read(LogicalPage(page as u32), ()) {
                Ok((stamp, ())) => {
                    let forgets = expected.newest.is_none() || asked == Some(None);
                    let is_right = stamp == expected.newest
                        || Some(stamp) == asked
                        || forgets && stamp.is_some_and(|found| expected.earlier.contains(&found));
                    assert!(is_right, "page {page}: {stamp:?}, asked {asked:?}, {expected:?}");
                    let is_back = expected.is_lost && stamp == expected.newest && asked.is_none();
                    assert!(!is_back, "page {page} was lost before the cut");
                    expected.newest = stamp;
                    expected.is_lost = false;
                }
                Err(TranslationError::Uncorrectable { page: lost }) => {
                    assert_eq!(lost as usize, page);
                    assert!(!expected.earlier.is_empty(), "page {page} was never written");
                    // Any of its versions may be the one that is lost; none is returned any more.
                    expected.newest = expected.newest.or(expected.earlier.last().copied());
                    expected.is_lost = true;
                    self.lost_reads += 1;
                }
                Err(other) => panic!("{other}"),
            }
            self.drive.end_reads(());
        }
        if was_read_only {
            let spare = self.drive.spare_blocks().unwrap();
            let retired = self.drive.flash().errors.unwrap().bad_blocks;
            assert!(retired > 0, "bad blocks stay bad: {spare} to spare");
        }
    }
}

/// Flash of a path, with errors.
fn flash<T: Timing>(path: &Path, timing: T, age: Option<&Age>, seed: u64) -> Nand<T> {
    let drive = path.drive().unwrap();
    let flash = Nand::new(drive.nand.geometry, drive.nand.endurance, true, timing);
    flash.with_errors(&drive.nand.errors.unwrap(), age, seed)
}

/// Random operations on a drive, whole and with power cuts. Returns the reads that failed, and true if it ended read-only.
fn with_errors(path: &str, seed: u64) -> (u64, bool) {
    let read = Path::read(path).unwrap();
    let layer = read.drive().unwrap().layer::<PageSettings>().unwrap().clone();
    let plug = Plug(Arc::new(AtomicU64::new(u64::MAX)));
    let whole = flash(&read, Untimed, None, seed);
    let cut = flash(&read, plug.clone(), None, seed);
    match layer.buffer() {
        None => {
            let found = run_whole(layer.on(whole, seed), seed);
            let cut = run_with_cuts(layer.on(cut, seed), &plug, seed);
            (found.0 + cut.0, found.1)
        }
        Some(buffer) => {
            assert!(buffer.is_protected, "what a volatile buffer may lose is not in this model");
            let found = run_whole(Buffered::new(layer.on(whole, seed), buffer), seed);
            let cut = run_with_cuts(Buffered::new(layer.on(cut, seed), buffer), &plug, seed);
            (found.0 + cut.0, found.1)
        }
    }
}

fn run_whole<T: Translation<Timing: Timing<Moment = ()>>>(drive: T, seed: u64) -> (u64, bool) {
    let mut checked = Checked::new(drive, seed);
    for _ in 0..12 * checked.model.len() {
        checked.step();
    }
    checked.read_back();
    checked.check_sums();
    (checked.lost_reads, checked.is_read_only)
}

fn run_with_cuts<T: Translation<Timing: Timing<Moment = ()>>>(drive: T, plug: &Plug, seed: u64) -> (u64, bool) {
    let mut checked = Checked::new(drive, seed);
    let mut random = Random::new(seed, "power cuts");
    for _ in 0..40 {
        plug.0.store(random.below(3 * checked.model.len() as u64), Relaxed);
        let steps = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..8 * checked.model.len() {
                checked.step();
            }
        }));
        if let Err(cause) = steps
            && !cause.is::<PowerCut>()
        {
            resume_unwind(cause);
        }
        plug.0.store(u64::MAX, Relaxed);
        checked = Checked { drive: checked.drive.after_power_cut().unwrap(), ..checked };
        checked.accept_after_power_cut();
        checked.check_sums();
    }
    checked.read_back();
    (checked.lost_reads, checked.is_read_only)
}

const SHAPES: [&str; 3] = [
    "size=4M,pages-per-block=16",
    "size=4M,pages-per-block=12,channels=2,dies=2",
    "size=16M,page=16K,unit=4K,pages-per-block=16,channels=2",
];

/// `POWER_CUT_SEEDS=100` takes a hundred seeds.
#[test]
fn a_read_returns_the_newest_write_or_an_error_whatever_fails() {
    let seeds = std::env::var("POWER_CUT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (mut lost, mut read_only, mut runs) = (0, 0, 0);
    for (number, layer) in (1..).zip([
        "",
        "victim=fifo,frontiers=shared",
        "wear=static,wear-gap=2",
        "pace=2",
        "pace=5,frontiers=shared,reserve=1",
        "victim=cost-benefit,streams=content",
        "buffer=256K",
        "reserve=1,wear=none",
    ]) {
        for shape in SHAPES {
            for errors in [
                "endurance=100000,rber=5.5e-3,program-failures=0,erase-failures=0",
                "endurance=100000,rber=7e-3,retry=1,refresh=70%,program-failures=50%,erase-failures=50%",
                "endurance=40,rber=6e-3,retry=0,refresh=60%,program-failures=30%,erase-failures=30%",
                "endurance=200,rber=0,program-failures=40%,erase-failures=0",
                "endurance=200,rber=0,program-failures=0,erase-failures=40%",
            ] {
                for seed in 0..seeds {
                    let path = format!("page:export=35%,{layer}/nand:{shape},errors=on,{errors}").replace(",/", "/");
                    println!("{path}, seed {}", number + 1000 * seed);
                    let (found, ended) = with_errors(&path, number + 1000 * seed);
                    lost += found;
                    read_only += u64::from(ended);
                    runs += 1;
                }
            }
        }
    }
    println!("{lost} reads failed in {runs} runs, of which {read_only} ended read-only");
    assert!(lost > 1000 && read_only > 5 && read_only < runs, "the errors were there");
}

/// A run of the engine. Returns its result, which must not have failed unless it is read-only.
fn run(path: &str, work: &str, options: &Options) -> (RunResult, Option<String>) {
    let read = Path::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let prepared = prepare(&read, options.seed).unwrap();
    let mut workload = generator(&parse_term(work).unwrap(), prepared.exported_bytes(), options.seed).unwrap();
    let outcome = prepared.run(workload.as_mut(), options, &mut |_| true);
    assert!(outcome.result.sums.iter().all(|sum| sum.holds), "{path}: {:?}", outcome.result.sums);
    (outcome.result, outcome.failure.map(|failure| failure.to_string()))
}

fn event(result: &RunResult, name: &str) -> u64 {
    *result.translation.events.get(name).unwrap_or_else(|| panic!("{name} in {:?}", result.translation.events))
}

fn blocks_for(result: &RunResult, station: &str, cause: &str) -> f64 {
    let rows = result.ledger.iter().filter(|row| row.station == station && row.cause == cause);
    rows.map(|row| row.blocks).sum()
}

fn aged(age: &str) -> Options {
    Options { fill: Fill::ALL, verify: true, age: Some(Age::read(age).unwrap()), ..Options::default() }
}

/// A drive of a year and half its life: of its reads as many are retried as the rate of its age says, and their tail is that
/// of the retries.
#[test]
fn the_reads_of_an_aged_drive_are_retried_as_often_as_the_closed_form_says() {
    let path = "page/nand:size=256M,errors=on,read-disturb=0,program-failures=0,erase-failures=0";
    let options = |age: &str| Options { limit: Some(40_000), replay: Replay::Closed { depth: 1 }, ..aged(age) };
    let read = "uniform:writes=6x,reads=99%";
    let (young, failure) = run(path, read, &options("years=0,cycles=0%"));
    assert_eq!((failure, event(&young, "read_retries")), (None, 0));
    let (old, failure) = run(path, read, &options("years=1,cycles=50%"));
    assert_eq!(failure, None);
    assert_eq!(event(&old, "uncorrectable_reads"), 0, "the retries suffice");
    let drive = Path::read(path).unwrap();
    let errors = drive.drive().unwrap().nand.errors.unwrap();
    let rate = errors.rates.at(BlockAge { life: 0.5, days: 365.25, reads_per_page: 0.0 });
    let probability = Codewords::new(errors.correction, 4096).failure(rate, 0);
    let reads = old.flash.read_pages as f64;
    let (retried, mean) = (event(&old, "retried_reads") as f64, reads * probability);
    // A few blocks are collected, and read young afterwards; retries are drawn again for each read.
    println!("{retried} of {reads} reads were retried, {mean:.0} expected; p = {probability:.5}");
    assert!((retried - mean).abs() < 4.0 * mean.sqrt() + 0.02 * mean && mean > 500.0, "{retried} and {mean}");
    let tail = |result: &RunResult| result.latency_ns.as_ref().unwrap().read.as_ref().unwrap().p999;
    for (name, result) in [("young", &young), ("old", &old)] {
        let read = result.latency_ns.as_ref().unwrap().read.as_ref().unwrap();
        println!("{name}: p50 {}, p99 {}, p99.9 {}, max {} ns", read.p50, read.p99, read.p999, read.max);
    }
    // A read and its transfer take 60 us, and a retry as long.
    assert!(tail(&young) < 600_000 && tail(&old) >= tail(&young) + 50_000, "{} and {}", tail(&young), tail(&old));
    assert_eq!(old.wear.erase_count_min, 1500, "the wear counts");
    assert!(old.options.contains(&"--age years=1,cycles=50%".to_string()), "{:?}", old.options);
}

/// Data that was lost is an error, whatever happens to it in between, and a write heals it.
#[test]
fn a_run_tells_its_host_of_lost_pages_and_goes_on() {
    for (unit, layer) in [("", "page:export=70%"), (",page=16K,unit=4K", "page:export=50%,buffer=256K")] {
        let path = format!("{layer}/nand:size=64M,pages-per-block=32{unit},errors=on,rber=7.2e-3,retry=1");
        let (result, failure) = run(
            &path,
            "zipf:theta=1.1,writes=3x,reads=40%,request=6K",
            &Options { verify: true, fill: Fill::ALL, ..Options::default() },
        );
        assert_eq!(failure, None, "{path}");
        assert!(event(&result, "uncorrectable_reads") > 10, "{path}: {:?}", result.translation.events);
        assert!(event(&result, "lost_pages") > 10);
        assert!(result.warnings.iter().any(|warning| warning.contains("error to the host")), "{:?}", result.warnings);
    }
}

/// Reads of one small part of a drive disturb it until it cannot be read; a drive that refreshes it loses nothing.
#[test]
fn refresh_keeps_what_is_read_much_readable() {
    let path = |more: &str| {
        format!(
            "page:export=70%/nand:size=16M,pages-per-block=32,errors=on,read-disturb=3000,retry=1,program-failures=0,erase-failures=0{more}"
        )
    };
    let options = || Options { limit: Some(60_000), ..aged("cycles=30%") };
    let work = "uniform:writes=6x,reads=99%,span=5%";
    let (without, failure) = run(&path(""), work, &options());
    assert_eq!(failure, None);
    assert!(event(&without, "uncorrectable_reads") > 0, "{:?}", without.translation.events);
    let (with, failure) = run(&path(",refresh=60%"), work, &options());
    assert_eq!(failure, None);
    assert_eq!(event(&with, "uncorrectable_reads"), 0, "{:?}", with.translation.events);
    assert!(event(&with, "refreshed_blocks") > 0);
    assert!(blocks_for(&with, "page", "refresh") > 0.0 && blocks_for(&with, "nand", "refresh") > 0.0);
    assert_eq!(blocks_for(&without, "page", "refresh"), 0.0);
}

/// All valid pages are read within the time of a scrub, and old blocks that no host reads are written anew.
#[test]
fn a_scrub_reads_all_pages_in_its_time_and_rewrites_what_is_weak() {
    let path = "page:export=70%/nand:size=16M,pages-per-block=32,errors=on,refresh=70%,scrub=1s,program-failures=0,erase-failures=0";
    // Writes of a part of the drive, for some seconds; the rest was written a year ago. What moves ahead of the scrub is read twice.
    let options = Options { limit: Some(8_000), replay: Replay::Closed { depth: 1 }, ..aged("years=1,cycles=60%") };
    let (result, failure) = run(path, "uniform:writes=9x,span=10%", &options);
    assert_eq!(failure, None);
    let seconds = result.seconds_simulated.unwrap();
    let (passes, reads) = (seconds / 1.0, event(&result, "scrub_reads") as f64);
    let valid = result.flash.exported_bytes as f64 / 4096.0;
    println!("{reads} scrub reads of {valid} pages in {seconds:.2} s");
    assert!(seconds > 2.0 && (reads / (passes * valid) - 1.0).abs() < 0.15, "{reads} in {passes} passes of {valid}");
    assert!(event(&result, "scrubbed_blocks") >= 60, "{:?}", result.translation.events);
    assert!(blocks_for(&result, "nand", "scrub") > 0.0);
    assert_eq!(blocks_for(&result, "nand", "refresh"), 0.0, "no host has read them");
}

/// Blocks go bad until none is left to spare: writes are refused, and reads go on.
#[test]
fn the_drive_is_read_only_when_its_spare_blocks_are_used_up() {
    let path = "page:export=70%/nand:size=16M,pages-per-block=32,endurance=60,errors=on,rber=0,program-failures=60%,erase-failures=20%";
    let (result, failure) = run(path, "uniform:writes=200x", &Options { verify: true, ..Options::default() });
    let failure = failure.expect("the drive comes to its end");
    assert!(failure.contains("read-only") && failure.contains("reads go on"), "{failure}");
    assert_eq!(result.wear.spare_blocks_left, Some(0));
    let failures = event(&result, "program_failures") + event(&result, "erase_failures");
    assert_eq!(result.wear.bad_blocks, Some(failures));
    assert!(event(&result, "program_failures") > 0 && event(&result, "emptied_bad_blocks") > 0);
    assert!(blocks_for(&result, "nand", "bad-block") > 0.0, "their pages have moved");
    // The same drive as a device, with bytes.
    let read = Path::read(&path.replace("/nand:", "/nand:timing=off,")).unwrap();
    let device = open_device(&read, Payload::Bytes, 1).unwrap();
    let block = |number: u64, version: u8| [(number as u8) ^ version; 4096];
    let (mut random, mut versions) = (Random::new(3, "blocks"), vec![0u8; device.blocks() as usize]);
    let refused = loop {
        let number = random.below(device.blocks());
        let version = versions[number as usize].wrapping_add(1);
        match device.write(Lba(number), &block(number, version), Label::host(Content::Data), Time::ZERO) {
            Ok(_) => versions[number as usize] = version,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, DeviceError::ReadOnly { .. }), "{refused}");
    for number in 0..device.blocks() {
        let mut found = [0; 4096];
        device.read(Lba(number), &mut found, Time::ZERO).unwrap();
        let expected =
            if versions[number as usize] == 0 { [0; 4096] } else { block(number, versions[number as usize]) };
        assert_eq!(found, expected, "block {number}");
        let label = Label::host(Content::Data);
        assert!(device.write(Lba(number), &found, label, Time::ZERO).is_err(), "block {number} is written");
    }
}

/// Real bytes, with errors that no step corrects: what is read is what was written, or an error that names the block.
#[test]
fn a_device_returns_the_bytes_that_were_written_or_an_error_with_the_block() {
    for (more, rber) in [("", "7.4e-3"), (",page=16K,unit=16K", "6.4e-3"), (",timing=off", "7.4e-3")] {
        let path =
            format!("page:export=60%/nand:size=32M,pages-per-block=32,errors=on,rber={rber},retry=0,ecc=72{more}");
        let read = Path::read(&path).unwrap();
        let device: Box<dyn BlockDevice> = open_device(&read, Payload::Bytes, 9).unwrap();
        let mut random = Random::new(9, "requests");
        let mut model: Vec<[u8; 2]> = vec![[0; 2]; device.blocks() as usize];
        let (mut lost, mut served, mut at) = (0, 0, Time::ZERO);
        for step in 0..30_000u64 {
            let count = 1 + random.below(4);
            let first = random.below(device.blocks() - count);
            let range = first as usize..(first + count) as usize;
            if random.below(3) > 0 {
                let of = |number: u64| [(step % 251) as u8 + 1, number as u8];
                let bytes: Vec<u8> = (0..count).flat_map(|number| of(number).repeat(2048)).collect();
                match device.write(Lba(first), &bytes, Label::host(Content::Data), at) {
                    Ok(done) => {
                        at = done;
                        range.zip(0..).for_each(|(block, number)| model[block] = of(number));
                    }
                    // A page that is covered in part could not be read: the blocks before it are written.
                    Err(DeviceError::Uncorrectable { first: bad, .. }) => {
                        let end = (bad.0 as usize).clamp(range.start, range.end);
                        (range.start..end).zip(0..).for_each(|(block, number)| model[block] = of(number));
                        lost += 1;
                    }
                    Err(other) => panic!("{path}: {other}"),
                }
                continue;
            }
            let mut bytes = vec![0; count as usize * 4096];
            match device.read(Lba(first), &mut bytes, at) {
                Ok(done) => {
                    at = done;
                    served += 1;
                    for (block, found) in range.zip(bytes.chunks(4096)) {
                        assert!(found.chunks(2).all(|pair| pair == model[block]), "{path}: block {block}, step {step}");
                    }
                }
                Err(DeviceError::Uncorrectable { first: bad, count: blocks, .. }) => {
                    lost += 1;
                    assert!(bad.0 < first + count && bad.0 + blocks > first, "{path}: the error is of the range");
                    let mut again = [0; 4096];
                    let block = Lba(bad.0.max(first));
                    assert!(device.read(block, &mut again, at).is_err(), "{path}: it is still lost");
                }
                Err(other) => panic!("{path}: {other}"),
            }
        }
        println!("{path}: {lost} lost, {served} served");
        assert!(lost > 100 && served > 2000, "{path}: {lost} lost, {served} served");
        assert!(device.account().drive.is_some() || !device.account().below.is_empty());
    }
}

#[test]
fn the_same_seed_has_the_same_errors_and_another_one_has_others() {
    let path = "page:export=70%/nand:size=32M,pages-per-block=32,endurance=100,errors=on,rber=6e-3,refresh=80%";
    let counts = |seed: u64| {
        let options = Options { seed, ..Options::default() };
        let (result, _) = run(path, "uniform:writes=5x,reads=30%", &options);
        (result.translation.events, result.flash.programmed_pages, result.latency_ns.map(|all| all.read.unwrap().max))
    };
    let (one, again, other) = (counts(4), counts(4), counts(5));
    assert_eq!(one, again);
    assert_ne!(one.0, other.0);
}

#[test]
fn wrong_options_are_refused_with_what_would_be_right() {
    for (path, pointed, help) in [
        ("page/nand:rber=1e-3", "1e-3", "add errors=on"),
        ("page/nand:refresh=50%", "50%", "add errors=on"),
        ("page/nand:errors=on,scrub=1s", "1s", "add refresh=60%"),
        ("page/nand:errors=on,refresh=50%,scrub=1s,timing=off", "1s", "remove timing=off"),
        ("page/nand:errors=on,rber=0.7", "0.7", "from 0 to 0.5"),
        ("page/nand:errors=on,retry-gain=95%", "95%", "90"),
        ("page/nand:errors=yes", "yes", "on or off"),
        ("dftl/nand:errors=on", "on", "take page"),
        ("page:fdp=8/nand:errors=on", "on", "remove fdp"),
        ("page:slc-cache=dynamic/nand:cells=tlc,errors=on", "on", "remove slc-cache"),
        ("fast/nand:errors=on", "on", "take page"),
        ("superblock/nand:errors", "errors", "take page"),
    ] {
        let error = Path::read(path).expect_err(path);
        assert_eq!(&path[error.span.clone()], pointed, "{path}: {error}");
        assert!(error.help.contains(help), "{path}: {error}");
    }
    // Off, nothing of it is in the path of a result, so that earlier ones can be compared.
    assert!(!Path::read("page/nand").unwrap().in_full.contains("errors"));
    let on = Path::read("page/nand:errors=on").unwrap();
    assert!(on.in_full.contains("errors=on,rber=1.48e-3,"), "{}", on.in_full);
    assert_eq!(Path::read(&on.in_full).unwrap().in_full, on.in_full);
}
