//! What the plug-in adds works like the library's own, and is refused as clearly.

use flashpath::device::nand::{EraseBlock, Geometry, LogicalPage, Nand, Timing, Untimed};
use flashpath::device::wait_log::Purpose;
use flashpath::label::Provenance;
use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, RunOptions, Work, run};
use flashpath::time::Time;
use flashpath::translation::{
    Candidate, PageWrite, Translation, TranslationError, VictimChooser, VictimPolicy, page_level,
};
use flashpath_plugin::block_map::BlockMap;
use flashpath_plugin::stations;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn result(path: &str, workload: &str) -> flashpath::report::RunResult {
    let path = Path::read_with(path, &stations()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Path::read_with(&path.in_full, &stations()).unwrap().in_full, path.in_full);
    let work = Work::Blocks(BlockWork::generated(workload, 1).unwrap());
    let options = RunOptions { verify: true, ..RunOptions::default() };
    let job = Job { work, place: Place::Path(&path), seed: 1, options };
    let outcome = run(job, &NoMachine, &mut |_| true).unwrap_or_else(|error| panic!("{}: {error}", path.text));
    assert!(outcome.failure.is_none(), "{}: {:?}", path.text, outcome.failure);
    outcome.result
}

#[test]
fn a_block_map_writes_sequential_pages_once_and_random_ones_with_their_block() {
    let sequential = result("block-map/nand:size=64M,pages-per-block=64", "sequential:writes=2x");
    assert_eq!(sequential.write_amplification.total, Some(1.0));
    let random = result("block-map/nand:size=64M,pages-per-block=64", "uniform:writes=2x");
    // A block of 64 pages: every update writes the pages of its block that were written before.
    let total = random.write_amplification.total.unwrap();
    assert!((30.0..64.0).contains(&total), "{total}");
}

#[test]
fn policies_of_ones_own_change_what_is_copied() {
    let copies = |path: &str, workload: &str| format!("{:?}", result(path, workload).ledger);
    let hot = "hotcold:r=0.2,f=0.8,writes=3x";
    assert_ne!(
        copies("page:victim=cost-age-times/nand:size=64M", hot),
        copies("page:victim=cost-benefit/nand:size=64M", hot)
    );
    let on_sfs = |grouping: &str| copies(&format!("sfs:segment=512K,{grouping}/conv:size=32M"), "zipf:writes=96M");
    assert_ne!(on_sfs("grouping=interval"), on_sfs("grouping=none"));
    assert_ne!(on_sfs("grouping=interval"), on_sfs("grouping=interval,shortest=64"), "the option has an effect");
}

#[test]
fn errors_name_what_was_added() {
    let wrong = |text: &str| Path::read_with(text, &stations()).expect_err(text).help;
    assert!(wrong("page:victim=cat/nand").contains("cost-benefit or cost-age-times"));
    assert!(wrong("page:d=3,victim=cost-age-times/nand").contains("victim=d-choices"));
    assert!(wrong("block-map:export=100%/nand").contains("99.9%"));
    assert!(wrong("sfs:grouping=intervals/conv").contains("interval"));
    assert!(Path::read("block-map/nand").is_err(), "the library's own table does not have it");
}

/// A policy that chooses the block with the most valid pages: it frees none of a full drive.
#[derive(Clone, Debug)]
struct Worst;

impl VictimChooser for Worst {
    fn choose(&mut self, candidates: &[Candidate], _now: u64) -> usize {
        (0..candidates.len()).max_by_key(|&index| candidates[index].valid).unwrap()
    }
}

#[test]
fn a_policy_that_frees_nothing_ends_the_run_with_an_error() {
    let geometry = Geometry::new(4 << 20, 4096, 16, (1, 1, 1)).unwrap();
    let term = flashpath::expression::parse_term("page:export=80%").unwrap();
    let mut settings = page_level::PageSettings::read(&term, &geometry).unwrap();
    settings.victim = VictimPolicy::Chosen(Arc::new(Worst));
    let map = page_level::RamMap::new(settings.exported_pages);
    let flash = Nand::new(geometry, 1_000_000, false, Untimed);
    let mut drive = page_level::PageLevel::new(flash, &settings, map, 1);
    let pages = settings.exported_pages as u32;
    // The first half is written once, and the rest is overwritten: a full block of valid pages is always there.
    let places = (0..pages).chain((0..100_000).map(|step| pages / 2 + step % (pages / 2)));
    let failed = places.map(|page| drive.write(write(page, 1), ())).find_map(Result::err);
    assert!(matches!(failed, Some(TranslationError::NothingFreed { collections }) if collections > 0), "{failed:?}");
}

fn write(page: u32, stamp: u32) -> PageWrite {
    PageWrite { page: LogicalPage(page), provenance: Provenance::UNKNOWN, stream: 0, stamp }
}

/// Flash whose power fails, as a panic, after a number of operations.
struct Failing(Arc<AtomicU64>);

impl Failing {
    fn operation(&self) {
        assert!(self.0.fetch_sub(1, Ordering::Relaxed) > 0, "the power fails");
    }
}

impl Timing for Failing {
    const TIMED: bool = false;

    type Moment = ();

    fn instant(&mut self, _at: Time) {}

    fn later(&mut self, _sum: (), _other: ()) {}

    fn settle(&mut self, _moment: (), until: Time) -> Option<Time> {
        Some(until)
    }

    fn read(&mut self, _block: EraseBlock, _purpose: Purpose, _at: ()) {
        self.operation();
    }

    fn program(&mut self, _block: EraseBlock, _purpose: Purpose, _at: ()) {
        self.operation();
    }

    fn erase(&mut self, _block: EraseBlock, _at: ()) {
        self.operation();
    }
}

#[test]
fn after_a_power_cut_a_block_map_has_every_answered_write() {
    let geometry = Geometry::new(1 << 20, 4096, 8, (1, 1, 1)).unwrap();
    for cut in 1..400 {
        let left = Arc::new(AtomicU64::new(cut));
        let mut drive = BlockMap::new(Nand::new(geometry, 1000, true, Failing(left.clone())), 24);
        let mut answered = vec![None; drive.exported_pages() as usize];
        let mut stamp = 0;
        let interrupted = loop {
            stamp += 1;
            // Some writes follow each other; most go elsewhere.
            let page = (stamp / 3 * 37 + stamp % 3 + stamp / 50) % answered.len() as u32;
            match catch_unwind(AssertUnwindSafe(|| drive.write(write(page, stamp), ()).map(|_| ()))) {
                Ok(done) => done.unwrap(),
                Err(_) => break page,
            }
            answered[page as usize] = Some(stamp);
        };
        left.store(u64::MAX, Ordering::Relaxed);
        let mut drive = drive.after_power_cut().unwrap();
        for round in 0..2 {
            for (page, expected) in answered.iter().enumerate() {
                let (read, _) = drive.read(LogicalPage(page as u32), ()).unwrap();
                let is_new = page as u32 == interrupted && round == 0 && read == Some(stamp);
                assert!(read == *expected || is_new, "cut {cut}, page {page}: {read:?} in place of {expected:?}");
            }
            // The drive goes on with what it has.
            answered[interrupted as usize] = Some(stamp + 1);
            drive.write(write(interrupted, stamp + 1), ()).unwrap();
            drive = drive.after_power_cut().unwrap();
        }
    }
}
