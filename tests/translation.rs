//! Guarantees of every translation layer, checked by one suite: a read returns the newest write, the ledger's sums
//! hold, and a power cut at any operation of the flash loses no answered write, under random writes, discards, reads,
//! collection and merging.

mod plug;

use flashpath::device::nand::{LogicalPage, Nand, Timing, Untimed};
use flashpath::label::{Cause, Content, Label, Provenance, Tally};
use flashpath::random::Random;
use flashpath::run::{DriveSettings, Path};
use flashpath::time::Time;
use flashpath::translation::dftl::DftlSettings;
use flashpath::translation::fast::FastSettings;
use flashpath::translation::fdp::FdpSettings;
use flashpath::translation::page_level::PageSettings;
use flashpath::translation::superblock::SuperblockSettings;
use flashpath::translation::{BufferCounts, Buffered, FlashLayer, PageWrite, Translation};
use plug::{Plug, PowerCut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The required and the possible contents of a page.
#[derive(Clone, Debug, Default)]
struct Expected {
    /// The newest answered write; `None` after a discard.
    newest: Option<u32>,
    /// All earlier writes: a power cut may forget a discard.
    earlier: Vec<u32>,
    /// The writes since the last flush, if they may be lost; before the first of them, what was flushed.
    since_flush: Vec<Option<u32>>,
}

impl Expected {
    fn change(&mut self, to: Option<u32>, is_volatile: bool) {
        if is_volatile {
            self.since_flush.push(self.newest);
        }
        self.newest = to;
    }

    /// True if a power cut may leave this version: one of those since the flush, or what was flushed. A discard among them
    /// may be forgotten.
    fn may_return_to(&self, found: Option<u32>) -> bool {
        let forgets = self.since_flush.contains(&None);
        self.since_flush.contains(&found) || forgets && found.is_some_and(|found| self.earlier.contains(&found))
    }
}

/// A drive, and an array of the required contents.
struct Checked<T> {
    drive: T,
    model: Vec<Expected>,
    random: Random,
    step: u32,
    /// The provenance of each write, by its stamp.
    provenances: Vec<Provenance>,
    /// The answered writes, as a layer sends them.
    host_writes: Tally,
    /// The request in flight, if any.
    asked: Option<(LogicalPage, Option<u32>)>,
    /// True if answered writes may be lost in a power cut unless they were flushed.
    is_volatile: bool,
}

impl<T: Translation<Timing: Timing<Moment = ()>>> Checked<T> {
    fn new(drive: T, seed: u64) -> Checked<T> {
        let model = vec![Expected::default(); drive.exported_pages() as usize];
        Checked {
            drive,
            model,
            random: Random::new(seed, "model"),
            step: 0,
            provenances: vec![Provenance::UNKNOWN],
            host_writes: Tally::default(),
            asked: None,
            is_volatile: false,
        }
    }

    /// One random operation.
    fn step(&mut self) {
        self.step += 1;
        self.provenances.push(Provenance::UNKNOWN);
        let pages = self.model.len() as u64;
        let random = &mut self.random;
        // Most requests go to an eighth of the pages, so that blocks are emptied at different rates; some are
        // sequential.
        let page = match random.below(8) {
            0 => random.below(pages),
            1 | 2 => u64::from(self.step) % pages,
            _ => random.below(pages.div_ceil(8)),
        };
        let page = LogicalPage(page as u32);
        let expected = page.0 as usize;
        match random.below(20) {
            0 => {
                self.asked = Some((page, None));
                self.drive.discard(page, ()).unwrap();
                self.model[expected].change(None, self.is_volatile);
            }
            1 | 2 => {
                let (stamp, _) = self.drive.read(page, ()).unwrap();
                assert_eq!(stamp, self.model[expected].newest, "page {}", page.0);
            }
            _ => {
                let content = Content::from_low_bits(random.below(4) as u8);
                let origin = Cause::ALL[random.below(Cause::ORIGINS as u64) as usize];
                let provenance = Provenance { origin, content };
                let write = PageWrite { page, provenance, stream: random.below(7) as u8, stamp: self.step };
                self.asked = Some((page, Some(self.step)));
                self.provenances[self.step as usize] = provenance;
                self.model[expected].earlier.push(self.step);
                self.drive.write(write, ()).unwrap();
                if self.drive.writes_through() {
                    self.drive.flush(()).unwrap();
                }
                self.model[expected].change(Some(self.step), self.is_volatile);
                self.host_writes.add(Label::again(Cause::HostWrite, provenance), 1);
            }
        }
        self.asked = None;
        if self.step.is_multiple_of(37) {
            // A block in SLC mode is folded, if there is one.
            self.drive.idle(Time::ZERO, Time(1)).unwrap();
        }
        if self.is_volatile && self.random.below(50) == 0 {
            self.drive.flush(()).unwrap();
            self.model.iter_mut().for_each(|expected| expected.since_flush.clear());
        }
    }

    /// Every page returns its newest write; its spare area still has the provenance of that write, however often the
    /// layer has copied it.
    fn read_back(&mut self) {
        let before = self.drive.flash().counts.read.clone();
        let mut expected_reads = Tally::default();
        for (page, expected) in self.model.iter().enumerate() {
            let (stamp, _) = self.drive.read(LogicalPage(page as u32), ()).unwrap();
            assert_eq!(stamp, expected.newest, "page {page}");
            if let Some(stamp) = stamp {
                let provenance = self.provenances[stamp as usize];
                expected_reads.add(Label::again(Cause::HostWrite, provenance), 1);
            }
        }
        let read = self.drive.flash().counts.read.since(&before);
        let for_the_host = read.entries().filter(|(label, _)| label.cause == Cause::HostWrite);
        // The others are in the buffer.
        let held = self.drive.buffer().map(|buffer| buffer.held).unwrap_or_default();
        let all: Tally = for_the_host.chain(held.entries()).collect();
        assert_eq!(all, expected_reads);
    }

    /// Checks the flash's side of every sum.
    fn check_sums(&self) {
        let flash = self.drive.flash();
        assert_eq!(&flash.counts.programmed, self.drive.sent(), "the flash programmed what the layer sent");
        let erases: u64 = flash.erase_counts.iter().map(|&count| u64::from(count)).sum();
        let there: u64 = flash.programmed_pages.iter().map(|&pages| u64::from(pages)).sum();
        assert_eq!(erases, flash.counts.erased_blocks);
        let whole = u64::from(flash.geometry.pages_per_program);
        assert!(flash.counts.programs * whole <= flash.counts.programmed.total());
        assert_eq!(
            erases * u64::from(flash.geometry.pages_per_block) + there,
            flash.counts.programmed.total() + flash.counts.erased_unprogrammed - flash.counts.lost
        );
    }

    /// After a power cut, a drive returns the newest write, or the one in flight; after a discard, it may return any
    /// earlier one. From then on every read must return the same.
    fn accept_after_power_cut(&mut self) {
        let asked = self.asked.take();
        for (page, expected) in self.model.iter_mut().enumerate() {
            let (stamp, _) = self.drive.read(LogicalPage(page as u32), ()).unwrap();
            let asked = asked.filter(|(other, _)| other.0 as usize == page).map(|(_, stamp)| stamp);
            let is_right = match (stamp, expected.newest) {
                (found, newest) if found == newest => true,
                (found, _) if Some(found) == asked => true,
                (Some(found), None) => expected.earlier.contains(&found),
                // A discard in flight may restore earlier versions, as an answered one may.
                (Some(found), Some(_)) => asked == Some(None) && expected.earlier.contains(&found),
                (None, _) => false,
            };
            let is_right = is_right || expected.may_return_to(stamp);
            assert!(is_right, "page {page}: found {stamp:?}, asked {asked:?}, {expected:?}");
            expected.newest = stamp;
            // What was found is on flash.
            expected.since_flush.clear();
        }
    }
}

/// Random operations, each checked.
fn holds_its_promises<T: Translation<Timing: Timing<Moment = ()>>>(drive: T, seed: u64, is_volatile: bool) {
    let mut checked = Checked { is_volatile, ..Checked::new(drive, seed) };
    for _ in 0..8 * checked.model.len() {
        checked.step();
    }
    checked.read_back();
    let sent = checked.drive.sent().entries().filter(|(label, _)| label.cause == Cause::HostWrite);
    match checked.drive.buffer() {
        None => assert_eq!(sent.collect::<Vec<_>>(), checked.host_writes.entries().collect::<Vec<_>>()),
        Some(BufferCounts { received, joined, dropped, held }) => {
            let kept = [joined, dropped, held];
            let all: Tally = sent.chain(kept.iter().flat_map(Tally::entries)).collect();
            assert_eq!((&received, &all), (&checked.host_writes, &checked.host_writes));
        }
    }
    checked.check_sums();
    assert!(checked.drive.flash().counts.erased_blocks > 0, "the work was heavy enough to collect");
    let mut checked = Checked { drive: checked.drive.after_power_cut().unwrap(), ..checked };
    checked.accept_after_power_cut();
    checked.check_sums();
}

/// Random operations with repeated power cuts.
fn survives_power_cuts<T: Translation<Timing: Timing<Moment = ()>>>(
    drive: T,
    plug: &Plug,
    seed: u64,
    is_volatile: bool,
) {
    let mut checked = Checked { is_volatile, ..Checked::new(drive, seed) };
    let mut random = Random::new(seed, "power cuts");
    for _ in 0..60 {
        plug.0.store(random.below(4 * checked.model.len() as u64), Relaxed);
        let steps = catch_unwind(AssertUnwindSafe(|| {
            loop {
                checked.step();
            }
        }));
        let Err(cause) = steps;
        if !cause.is::<PowerCut>() {
            resume_unwind(cause);
        }
        plug.0.store(u64::MAX, Relaxed);
        checked = Checked { drive: checked.drive.after_power_cut().unwrap(), ..checked };
        checked.accept_after_power_cut();
        checked.check_sums();
    }
    for _ in 0..4 * checked.model.len() {
        checked.step();
    }
    checked.read_back();
}

/// All checks for a small drive of this path. `POWER_CUT_SEEDS=100` takes a hundred seeds; the default is one.
fn with_drive(path: &str, seed: u64) {
    let seeds = std::env::var("POWER_CUT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for more in 0..seeds {
        println!("{path}, seed {}", seed + more * 1000);
        with_seed(path, seed + more * 1000);
    }
}

fn with_seed(path: &str, seed: u64) {
    let path = Path::read(path).unwrap();
    let drive = path.drive().unwrap();
    let is_known = with_layer::<PageSettings>(drive, seed)
        || with_layer::<FdpSettings>(drive, seed)
        || with_layer::<DftlSettings>(drive, seed)
        || with_layer::<FastSettings>(drive, seed)
        || with_layer::<SuperblockSettings>(drive, seed);
    assert!(is_known, "{}: its layer is not in this suite", path.text);
}

/// All checks, if the drive's layer has this type.
fn with_layer<L: FlashLayer>(drive: &DriveSettings, seed: u64) -> bool {
    let Some(layer) = drive.layer::<L>() else { return false };
    let (geometry, endurance) = (drive.nand.geometry, drive.nand.endurance);
    let cells = drive.nand.cells.as_ref();
    let flash = || Nand::new(geometry, endurance, true, Untimed).with_cells(cells);
    let plug = Plug(Arc::new(AtomicU64::new(u64::MAX)));
    let pluggable = || Nand::new(geometry, endurance, true, plug.clone()).with_cells(cells);
    match layer.buffer() {
        None => {
            holds_its_promises(layer.on(flash(), seed), seed, false);
            survives_power_cuts(layer.on(pluggable(), seed), &plug, seed, false);
        }
        Some(buffer) => {
            let is_volatile = !buffer.is_protected;
            holds_its_promises(Buffered::new(layer.on(flash(), seed), buffer), seed, is_volatile);
            survives_power_cuts(Buffered::new(layer.on(pluggable(), seed), buffer), &plug, seed, is_volatile);
        }
    }
    true
}

/// One die, and several planes.
const SHAPES: [&str; 2] = [
    "size=4M,pages-per-block=16,endurance=100000",
    "size=4M,pages-per-block=12,channels=2,dies=2,planes=2,endurance=100000",
];

#[test]
fn the_page_level_layer_returns_the_newest_write_whatever_its_options() {
    let mut options = Vec::new();
    for victim in ["greedy", "fifo", "random", "d-choices", "cost-benefit"] {
        for frontiers in ["separate", "shared"] {
            options.push(format!("export=80%,victim={victim},frontiers={frontiers}"));
        }
    }
    for wear in ["none", "dynamic", "static"] {
        options.push(format!("export=75%,wear={wear}"));
    }
    options.push("export=70%,wear=static,wear-gap=1".to_string());
    options.push("export=60%,streams=content".to_string());
    options.push("export=60%,streams=hint,hints=3".to_string());
    options.push("export=60%,streams=hint,hints=3,spare-shares=50%+30%+20%".to_string());
    options.push("export=60%,streams=content,frontiers=shared,wear=static,wear-gap=2".to_string());
    for (seed, option) in (1..).zip(&options) {
        with_drive(&format!("page:{option}/nand:{}", SHAPES[0]), seed);
        // Many open blocks leave less to export.
        if !option.contains("streams") {
            let option = option.split_once(',').unwrap().1;
            with_drive(&format!("page:export=60%,reserve=1,{option}/nand:{}", SHAPES[1]), seed);
        }
    }
    // Planes that collect for themselves.
    let shape = SHAPES[1].replace("4M", "12M");
    for (seed, place) in
        (1..).zip(["cdp", "cpd,victim=fifo", "dcp,victim=random", "pdc,frontiers=shared", "dpc,wear=none,reserve=9"])
    {
        with_drive(&format!("page:export=60%,place={place}/nand:{shape}"), seed);
        with_drive(&format!("page:export=30%,streams=content,place={place}/nand:{shape}"), seed);
        with_drive(&format!("page:export=50%,buffer=64K,place={place}/nand:{shape}"), seed);
    }
}

#[test]
fn reclaim_units_return_the_newest_write_whatever_their_handles_and_groups() {
    for (seed, option) in (1..).zip([
        "fdp=1",
        "fdp=1,reserve=1,streams=none",
        "fdp=2,victim=fifo",
        "fdp=3,fdp-default=2,victim=random,reserve=1",
        "fdp=4,streams=content,fdp-persistent=1+3",
        "fdp=6,victim=cost-benefit",
        "fdp=2,fdp-isolation=persistent,victim=d-choices,reserve=1",
    ]) {
        with_drive(&format!("page:export=40%,{option}/nand:{}", SHAPES[0]), seed);
        with_drive(&format!("page:export=30%,{option}/nand:{}", SHAPES[1].replace("4M", "12M")), seed);
        for groups in [2, 4, 8] {
            let shape = SHAPES[1].replace("4M", "16M");
            with_drive(&format!("page:export=25%,fdp-groups={groups},{option}/nand:{shape}"), seed);
        }
        for shape in IN_UNITS {
            let shape = shape.replace("=48M", "=64M");
            for buffer in ["", ",buffer=128K", ",buffer=128K,buffer-policy=volatile"] {
                with_drive(&format!("page:export=20%,{option}{buffer}/nand:{shape}"), seed);
            }
        }
    }
}

/// Units of 4 and 2 KiB in pages of 16 KiB, on one die and on several planes.
const IN_UNITS: [&str; 3] = [
    "size=16M,page=16K,unit=4K,pages-per-block=16,endurance=100000",
    "size=48M,page=16K,unit=2K,pages-per-block=32,channels=2,dies=2,endurance=100000",
    "size=16M,page=8K,unit=4K,pages-per-block=9,planes=3,endurance=100000",
];

#[test]
fn pages_of_several_units_return_the_newest_write() {
    for (seed, option) in (1..).zip([
        "victim=greedy",
        "victim=fifo,frontiers=shared",
        "victim=random,wear=static,wear-gap=2",
        "victim=cost-benefit,streams=content",
        "victim=d-choices,streams=hint,hints=2,frontiers=shared",
    ]) {
        for shape in IN_UNITS {
            with_drive(&format!("page:export=30%,{option}/nand:{shape}"), seed);
        }
    }
    for (seed, table) in (1..).zip([1, 64, 100_000]) {
        for option in ["", ",frontiers=shared", ",wear=static,wear-gap=2"] {
            for shape in IN_UNITS {
                with_drive(&format!("dftl:export=25%,table={table}{option}/nand:{shape}"), seed);
            }
        }
    }
}

/// A victim is copied in steps, and its pages change and are read in between.
#[test]
fn a_paced_collection_returns_the_newest_write() {
    for (seed, option) in (1..).zip([
        "pace=1",
        "pace=7,victim=fifo",
        "pace=3,victim=random,frontiers=shared",
        "pace=1,victim=cost-benefit,streams=content",
        "pace=2,victim=d-choices,streams=hint,hints=2,spare-shares=40%+60%",
        "pace=4,wear=static,wear-gap=2,reserve=1",
        "pace=1000,frontiers=shared,reserve=1",
        "pace=1,buffer=128K,buffer-policy=volatile",
        "pace=5,buffer=128K",
    ]) {
        // Streams have an open block each on every plane.
        let shapes =
            SHAPES.into_iter().chain(IN_UNITS).filter(|shape| !option.contains("streams") || *shape != SHAPES[1]);
        for shape in shapes {
            with_drive(&format!("page:export=30%,{option}/nand:{shape}"), seed);
            if !option.contains("spare-shares") {
                with_drive(&format!("dftl:export=25%,table=64,{option}/nand:{shape}"), seed);
            }
        }
    }
    for (seed, table) in (1..).zip([1, 7, 100_000]) {
        for pace in [1, 6] {
            with_drive(&format!("dftl:export=70%,table={table},pace={pace}/nand:{},page=2K", SHAPES[0]), seed);
            with_drive(&format!("dftl:export=50%,table={table},pace={pace}/nand:{},page=2K", SHAPES[1]), seed);
            with_drive(&format!("page:export=80%,pace={pace}/nand:{}", SHAPES[0]), seed);
        }
    }
}

/// Cells of two, three and four bits: whole pages on one die, and units on several planes.
const OF_CELLS: [&str; 4] = [
    "size=8M,pages-per-block=24,cells=tlc,endurance=100000,slc-endurance=100000",
    "size=4M,pages-per-block=12,channels=2,dies=2,planes=2,cells=mlc,endurance=100000,slc-endurance=100000",
    "size=48M,page=16K,unit=4K,pages-per-block=12,channels=2,planes=2,cells=qlc,endurance=100000,slc-endurance=100000",
    "size=16M,page=8K,unit=4K,pages-per-block=9,planes=3,cells=tlc,endurance=100000,slc-endurance=100000",
];

/// Hosts write to blocks in SLC mode; these are folded when the cache is full, in idle time, and when blocks are short, and the
/// power is cut in between.
#[test]
fn a_cache_in_slc_mode_returns_the_newest_write() {
    for (seed, option) in (1..).zip([
        "slc-cache=static,slc-share=10%",
        "slc-cache=static,slc-share=15%,slc-full=fold,victim=fifo",
        "slc-cache=static,slc-share=10%,slc-full=fold,wear=static,wear-gap=2",
        "slc-cache=dynamic,slc-share=50%",
        "slc-cache=dynamic,slc-share=20%,slc-full=fold,reserve=1",
        "slc-cache=dynamic,slc-share=90%,victim=cost-benefit,wear=static,wear-gap=1",
        "slc-cache=dynamic,slc-share=30%,slc-full=fold,buffer=128K",
        "slc-cache=dynamic,slc-share=30%,buffer=256K,buffer-policy=volatile",
        "slc-cache=static,slc-share=10%,buffer=256K,buffer-policy=volatile,slc-full=fold",
    ]) {
        for shape in OF_CELLS {
            with_drive(&format!("page:export=30%,{option}/nand:{shape}"), seed);
            with_drive(&format!("dftl:export=25%,table=64,{option}/nand:{shape}"), seed);
        }
        // Hardly any block is spare: a dynamic cache has to give back what it took.
        if option.contains("dynamic") && !option.contains("volatile") {
            with_drive(&format!("page:export=80%,{option}/nand:{}", OF_CELLS[0]), seed);
            with_drive(&format!("page:export=80%,{option},streams=hint,hints=2/nand:{}", OF_CELLS[0]), seed);
            with_drive(&format!("dftl:export=70%,table=7,{option}/nand:{}", OF_CELLS[0]), seed);
        }
    }
}

/// Word lines that are programmed as a whole are in protected memory until they are: no cut of power loses a page.
#[test]
fn word_lines_that_are_programmed_as_a_whole_return_the_newest_write() {
    for (seed, layer) in (1..).zip([
        "page:export=30%,buffer=64K",
        "page:export=30%,slc-cache=dynamic,slc-full=fold,buffer=64K",
        "dftl:export=25%,table=64,buffer=64K",
        "superblock:export=40%,blocks=4,buffer=64K",
    ]) {
        for shape in OF_CELLS {
            for passes in [1, 2] {
                with_drive(&format!("{layer}/nand:{shape},program-passes={passes}"), seed);
            }
        }
    }
    with_drive(&format!("fast:export=60%,buffer=64K/nand:{},program-passes=1", OF_CELLS[0]), 9);
}

/// Each layer on pages of one unit, and those that have smaller ones on these.
#[test]
fn a_buffer_loses_nothing_that_it_promised_to_keep() {
    for (seed, buffer) in (1..).zip([
        "buffer=128K",
        "buffer=128K,buffer-policy=volatile",
        "buffer=300K",
        "buffer=1M,buffer-policy=volatile",
    ]) {
        for layer in [
            "page:export=30%",
            "page:export=30%,streams=content,frontiers=shared",
            "dftl:export=25%,table=64",
            "superblock:export=40%,blocks=4",
            "fast:export=60%",
        ] {
            for shape in IN_UNITS {
                let whole = shape.replace(",unit=4K", "").replace(",unit=2K", "");
                with_drive(&format!("{layer},{buffer}/nand:{whole}"), seed);
                let has_units = match layer.split(':').next() {
                    Some("fast") => false,
                    Some("superblock") => !buffer.contains("volatile"),
                    _ => true,
                };
                if has_units {
                    with_drive(&format!("{layer},{buffer}/nand:{shape}"), seed);
                }
            }
        }
    }
}

#[test]
fn dftl_returns_the_newest_write_however_small_its_table_is() {
    for (seed, table) in (1..).zip([1, 2, 7, 64, 500, 100_000]) {
        for option in ["", ",protected=0%", ",frontiers=shared", ",victim=fifo", ",wear=static,wear-gap=2"] {
            with_drive(&format!("dftl:export=70%,table={table}{option}/nand:{},page=2K", SHAPES[0]), seed);
        }
        with_drive(&format!("dftl:export=50%,table={table}/nand:{},page=2K", SHAPES[1]), seed);
        with_drive(&format!("dftl:export=50%,table={table},streams=content/nand:{},page=2K", SHAPES[0]), seed);
    }
}

#[test]
fn superblock_returns_the_newest_write_however_its_superblocks_are_made() {
    for (seed, option) in (1..).zip([
        "blocks=1,updates=1",
        "blocks=1,updates=8",
        "blocks=4,updates=1",
        "blocks=4,updates=2,cache=1,group=1",
        "blocks=8,updates=64,group=3",
        "blocks=30,updates=4,levels=1",
    ]) {
        for export in [50, 80, 90] {
            for shape in SHAPES {
                with_drive(&format!("superblock:{option},export={export}%/nand:{shape},page=2K"), seed);
            }
        }
    }
}

#[test]
fn fast_returns_the_newest_write_however_many_log_blocks_it_has() {
    for (seed, option) in
        (1..).zip(["random-logs=1", "random-logs=2", "random-logs=10", "export=50%", "export=80%", "export=96%"])
    {
        for shape in SHAPES {
            with_drive(&format!("fast:{option}/nand:{shape},page=2K"), seed);
        }
    }
}

#[test]
fn a_tight_drive_with_many_open_blocks_still_finds_room() {
    // Every plane has an open block for hosts and one for copies, and there are hardly any spare blocks besides.
    for seed in 1..=5 {
        for layer in [
            "page:export=99%,streams=content",
            "page:export=99%,pace=1",
            "page:export=99%,place=dcp",
            "page:export=99%,fdp=2,fdp-persistent=1",
            "page:export=99%,fdp=1,fdp-groups=4,reserve=1",
            "dftl:export=99%,table=10,pace=3",
            "dftl:export=99%,table=10",
            "superblock:export=99%,blocks=2",
            "fast:export=99%",
        ] {
            let text = format!("{layer}/nand:size=4M,pages-per-block=8,channels=4,dies=2,planes=1,endurance=100000");
            let error = Path::read(&text).err().map(|error| error.help);
            let export =
                error.and_then(|help| help.split("export=").nth(1).map(str::to_string)).expect("a share that would do");
            with_drive(&text.replace("export=99%", &format!("export={export}")), seed);
        }
    }
}

/// The writes of epochs, and what is left of them after a power cut.
struct InOrder<T> {
    drive: T,
    /// The stamps of each page, the newest last; stamps go up.
    written: Vec<Vec<u32>>,
    /// The first stamp of each epoch.
    epochs: Vec<u32>,
    random: Random,
    stamp: u32,
    /// The drive is told where an epoch ends.
    has_barriers: bool,
}

impl<T: Translation<Timing: Timing<Moment = ()>>> InOrder<T> {
    fn new(drive: T, seed: u64, has_barriers: bool) -> InOrder<T> {
        let written = vec![Vec::new(); drive.exported_pages() as usize];
        InOrder { drive, written, epochs: vec![0], random: Random::new(seed, "in order"), stamp: 0, has_barriers }
    }

    /// A few writes, some of them sequential, some of pages that are written again and again; then a barrier.
    fn epoch(&mut self) {
        let pages = self.written.len() as u64;
        let first = self.random.below(pages);
        for at in 0..1 + self.random.below(12) {
            let page = match self.random.below(3) {
                0 => self.random.below(8),
                1 => self.random.below(pages),
                _ => (first + at) % pages,
            };
            self.stamp += 1;
            self.written[page as usize].push(self.stamp);
            let content = Content::from_low_bits(self.random.below(4) as u8);
            let provenance = Provenance { origin: Cause::HostWrite, content };
            let (page, stream) = (LogicalPage(page as u32), self.random.below(7) as u8);
            self.drive.write(PageWrite { page, provenance, stream, stamp: self.stamp }, ()).unwrap();
            assert_eq!(self.drive.read(page, ()).unwrap().0, Some(self.stamp), "the newest version is read");
        }
        if self.has_barriers {
            self.drive.begin_epoch();
        }
        self.epochs.push(self.stamp + 1);
    }

    /// Takes what a power cut has left. Fails with the page that should be newer, since something of a later epoch is there.
    fn check(&mut self) -> Result<(), String> {
        let found: Vec<u32> = (0..self.written.len() as u32)
            .map(|page| self.drive.read(LogicalPage(page), ()).unwrap().0.unwrap_or(0))
            .collect();
        let last = found.iter().copied().max().unwrap_or(0);
        let begun = self.epochs.iter().copied().take_while(|first| *first <= last).last().unwrap_or(0);
        for (page, (found, written)) in found.iter().zip(&mut self.written).enumerate() {
            assert!(*found == 0 || written.contains(found), "page {page} has {found}, which it was never");
            let needed = written.iter().copied().rfind(|stamp| *stamp < begun).unwrap_or(0);
            if *found < needed {
                return Err(format!(
                    "page {page} has {found}, and {needed} was before the epoch of {last}, from {begun} on"
                ));
            }
            // What is found is durable; what is lost is never there again.
            *written = if *found == 0 { Vec::new() } else { vec![*found] };
        }
        Ok(())
    }
}

/// Epochs and power cuts; the error of the first one that breaks the order.
fn in_order<T: Translation<Timing: Timing<Moment = ()>>>(
    drive: T,
    plug: &Plug,
    seed: u64,
    has_barriers: bool,
) -> Result<(), String> {
    let mut checked = InOrder::new(drive, seed, has_barriers);
    let (mut cuts, mut held) = (Random::new(seed, "cuts"), 0);
    for _ in 0..40 {
        plug.0.store(cuts.below(2 * checked.written.len() as u64), Relaxed);
        let steps = catch_unwind(AssertUnwindSafe(|| {
            loop {
                checked.epoch();
                held = held.max(checked.drive.buffer().expect("it has a buffer").held.total());
            }
        }));
        let Err(cause) = steps;
        if !cause.is::<PowerCut>() {
            resume_unwind(cause);
        }
        plug.0.store(u64::MAX, Relaxed);
        checked = InOrder { drive: checked.drive.after_power_cut().unwrap(), ..checked };
        checked.check()?;
    }
    assert!(held > 8, "a barrier leaves {held} pages in the buffer");
    Ok(())
}

fn in_order_with<L: FlashLayer>(drive: &DriveSettings, seed: u64, has_barriers: bool) -> Option<Result<(), String>> {
    let layer = drive.layer::<L>()?;
    let plug = Plug(Arc::new(AtomicU64::new(u64::MAX)));
    let flash = Nand::new(drive.nand.geometry, drive.nand.endurance, true, plug.clone());
    let buffered = Buffered::new(layer.on(flash, seed), layer.buffer().expect("it has a buffer"));
    Some(in_order(buffered, &plug, seed, has_barriers))
}

fn keeps_order(path: &str, seed: u64, has_barriers: bool) -> Result<(), String> {
    let path = Path::read(path).unwrap();
    let drive = path.drive().unwrap();
    in_order_with::<PageSettings>(drive, seed, has_barriers)
        .or_else(|| in_order_with::<FdpSettings>(drive, seed, has_barriers))
        .or_else(|| in_order_with::<DftlSettings>(drive, seed, has_barriers))
        .or_else(|| in_order_with::<FastSettings>(drive, seed, has_barriers))
        .or_else(|| in_order_with::<SuperblockSettings>(drive, seed, has_barriers))
        .unwrap_or_else(|| panic!("{}: its layer is not in this suite", path.text))
        .map_err(|why| format!("{}, seed {seed}: {why}", path.text))
}

/// Volatile buffers before each layer: of whole pages, of parts of pages, with one open page of flash and with several.
fn volatile_buffers() -> Vec<String> {
    let buffer = "buffer=128K,buffer-policy=volatile";
    let mut paths: Vec<String> = SHAPES
        .iter()
        .flat_map(|shape| {
            ["page:export=60%", "dftl:export=50%,table=64", "fast:export=60%", "superblock:export=50%"]
                .map(|layer| format!("{layer},{buffer}/nand:{shape}"))
        })
        .collect();
    for shape in IN_UNITS {
        for layer in ["page:export=30%", "page:export=30%,streams=content", "dftl:export=25%,table=64"] {
            paths.push(format!("{layer},{buffer}/nand:{shape}"));
        }
        paths.push(format!("page:export=20%,fdp=3,{buffer}/nand:{}", shape.replace("=48M", "=64M")));
    }
    paths
}

#[test]
fn after_any_cut_of_power_a_volatile_buffer_has_kept_the_order_of_epochs() {
    let seeds = std::env::var("POWER_CUT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for path in volatile_buffers() {
        for seed in 0..seeds {
            keeps_order(&path, seed, true).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}

/// The cause of the order is the barrier: a buffer that is not told of epochs mixes them.
#[test]
fn without_barriers_a_volatile_buffer_mixes_epochs() {
    for path in volatile_buffers() {
        assert!(
            (0..20).any(|seed| keeps_order(&path, seed, false).is_err()),
            "{path} kept an order that nobody asked for"
        );
    }
}

#[test]
fn a_protected_buffer_has_nothing_to_keep_in_order_and_loses_nothing() {
    for shape in SHAPES {
        keeps_order(&format!("page:export=60%,buffer=128K/nand:{shape}"), 1, true)
            .unwrap_or_else(|why| panic!("{why}"));
        with_drive(&format!("page:export=60%,buffer=128K/nand:{shape}"), 77);
    }
}
