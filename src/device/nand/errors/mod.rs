//! Errors of flash: wrong bits, and blocks that go bad.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the state of the blocks, and the draws |
//! | `rates` | the raw bit error rate |
//! | `codewords` | the correction of a page |
//! | `age` | the age of a drive when a run begins |
//! | `settings` | the options |
//!
//! Fault model: a read draws whether the code corrects the page, at the first read or after some retries. A page that no
//! step corrects is lost: it fails from then on until its block is erased, also after a power cut, and a copy of it is lost,
//! too. Bits of the spare area are always right. In a cycle a program of a block fails with a fixed probability, at any page
//! of flash behind the first, and an erase fails with another one; the block is bad from then on. All draws are those of the
//! drive's seed, in the order of its operations.
//!
//! A block keeps 16 bytes: the time of its first program, and its reads since then. Lost pages and failing blocks are few, and
//! kept apart.

mod age;
mod codewords;
mod rates;
mod settings;

pub use age::Age;
pub use codewords::{CODEWORD_BYTES, Codewords, Correction, Reading};
pub use rates::{BlockAge, Rates};
pub use settings::ErrorSettings;
pub(super) use settings::{
    ECC, ERASE_FAILURES, ERRORS, PROGRAM_FAILURES, RBER, RBER_WEAR, READ_DISTURB, REFRESH, RETENTION, RETRY,
    RETRY_GAIN, SCRUB,
};

use super::geometry::{EraseBlock, Geometry, PhysicalPage};
use crate::label::Cause;
use crate::random::Random;
use crate::time::Time;
use age::DAY_NS;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Counts of errors since the flash was new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorCounts {
    /// Reads of pages that needed a retry.
    pub retried_reads: u64,
    /// Retries.
    pub retries: u64,
    /// Reads of hosts that no step corrected.
    pub uncorrectable_reads: u64,
    /// Pages that were lost, without copies of lost ones.
    pub lost_pages: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Blocks that are bad, with those that were when the drive was new.
    pub bad_blocks: u64,
}

/// The state of a block since its first program.
#[derive(Debug, Clone, Copy)]
struct BlockState {
    programmed: Time,
    reads: u32,
    /// True if it waits to be written anew.
    is_due: bool,
}

/// The errors of a drive.
pub struct Errors {
    settings: ErrorSettings,
    codewords: Codewords,
    geometry: Geometry,
    endurance: f64,
    /// Erases of each block before the drive was made.
    worn: u32,
    /// The probabilities that a program and the erase fail in a cycle.
    fails_in_cycle: (f64, f64),
    reads: Random,
    failures: Random,
    blocks: Vec<BlockState>,
    /// The pages that can be programmed in blocks in which a program fails.
    usable: BTreeMap<EraseBlock, u32>,
    bad: Vec<bool>,
    lost: BTreeSet<PhysicalPage>,
    /// The page of flash that was read last: its pages are read together.
    last_read: u32,
    /// The time for which the drive has lain, in nanoseconds.
    rested_ns: u64,
    /// The blocks to be written anew, and why.
    due: VecDeque<(EraseBlock, Cause)>,
    counts: ErrorCounts,
}

/// The probability for each of `cycles` cycles that makes the share of blocks that fail within them.
fn in_cycle(share: f64, cycles: f64) -> f64 {
    -((-share).ln_1p() / cycles).exp_m1()
}

impl Errors {
    /// Those of new flash with this endurance, whose blocks had `worn` erases before, in which some may have gone bad.
    pub(super) fn new(
        settings: &ErrorSettings,
        geometry: &Geometry,
        (endurance, worn): (u32, u32),
        seed: u64,
    ) -> Errors {
        assert!(worn < endurance, "{worn} of {endurance} cycles leave some");
        let blocks = geometry.blocks as usize;
        let new = BlockState { programmed: Time::ZERO, reads: 0, is_due: false };
        let cycles = f64::from(endurance);
        let mut errors = Errors {
            settings: *settings,
            codewords: Codewords::new(settings.correction, geometry.page_bytes),
            geometry: *geometry,
            endurance: cycles,
            worn,
            fails_in_cycle: (in_cycle(settings.program_failures, cycles), in_cycle(settings.erase_failures, cycles)),
            reads: Random::new(seed, "flash reads"),
            failures: Random::new(seed, "flash failures"),
            blocks: vec![new; blocks],
            usable: BTreeMap::new(),
            bad: vec![false; blocks],
            lost: BTreeSet::new(),
            last_read: u32::MAX,
            rested_ns: 0,
            due: VecDeque::new(),
            counts: ErrorCounts::default(),
        };
        let (program, erase) = errors.fails_in_cycle;
        let fails_before = -(f64::from(worn) * ((-program).ln_1p() + (-erase).ln_1p())).exp_m1();
        for block in (0..geometry.blocks).map(EraseBlock) {
            if errors.failures.unit() < fails_before {
                errors.set_bad(block);
            } else {
                errors.begin_cycle(block);
            }
        }
        errors
    }

    /// Draws the page at which a program of the block fails before its next erase, if one does.
    fn begin_cycle(&mut self, block: EraseBlock) {
        self.usable.remove(&block);
        if self.failures.unit() < self.fails_in_cycle.0 {
            let units = self.geometry.pages_per_program;
            let programs = u64::from(self.geometry.pages_per_block / units);
            debug_assert!(programs > 1, "a block has at least two pages of flash");
            let at = 1 + self.failures.below(programs - 1) as u32;
            self.usable.insert(block, at * units);
        }
    }

    fn set_bad(&mut self, block: EraseBlock) {
        debug_assert!(!self.bad[block.index()], "block {} goes bad once", block.0);
        self.bad[block.index()] = true;
        self.counts.bad_blocks += 1;
    }

    /// The pages of a block that can be programmed until its next erase.
    pub(super) fn usable_pages(&self, block: EraseBlock) -> u32 {
        self.usable.get(&block).copied().unwrap_or(self.geometry.pages_per_block)
    }

    /// True if the block is out of use, but for its pages that can still be read.
    pub(super) fn is_bad(&self, block: EraseBlock) -> bool {
        self.bad[block.index()]
    }

    /// The program behind the usable pages of a block has failed.
    pub(super) fn fail_program(&mut self, block: EraseBlock) {
        debug_assert!(self.usable.contains_key(&block), "block {} has pages that cannot be programmed", block.0);
        self.set_bad(block);
        self.counts.program_failures += 1;
    }

    /// A block is erased. True if the erase failed.
    pub(super) fn erase(&mut self, block: EraseBlock) -> bool {
        let first = self.geometry.first_page(block);
        let end = PhysicalPage(first.0 + self.geometry.pages_per_block);
        let mut lost_there = self.lost.split_off(&first);
        self.lost.append(&mut lost_there.split_off(&end));
        self.blocks[block.index()].is_due = false;
        let fails = self.failures.unit() < self.fails_in_cycle.1;
        if fails {
            self.set_bad(block);
            self.counts.erase_failures += 1;
        } else {
            self.begin_cycle(block);
        }
        fails
    }

    /// A page is programmed, the one with this number in its block.
    #[inline]
    pub(super) fn program(&mut self, block: EraseBlock, within: u32, now: Time) {
        debug_assert!(within < self.usable_pages(block), "page {within} of block {} cannot be programmed", block.0);
        if within == 0 {
            let programmed = now + self.rested_ns;
            self.blocks[block.index()] = BlockState { programmed, reads: 0, is_due: false };
        }
    }

    /// The age of a block that was erased so many times.
    fn age(&self, block: EraseBlock, erases: u32, now: Time) -> BlockAge {
        let BlockState { programmed, reads, .. } = self.blocks[block.index()];
        let programs = self.geometry.pages_per_block / self.geometry.pages_per_program;
        BlockAge {
            life: f64::from(self.worn + erases) / self.endurance,
            days: (now + self.rested_ns).since_ns(programmed) as f64 / DAY_NS,
            reads_per_page: f64::from(reads) / f64::from(programs),
        }
    }

    /// Reads a page of a block that was erased so many times. A block that is near the limit is due to be written anew
    /// afterwards, unless the page is read to be copied.
    pub(super) fn read(&mut self, page: PhysicalPage, erases: u32, cause: Cause, now: Time) -> Reading {
        let block = self.geometry.block_of(page);
        let page_of_flash = page.0 & !(self.geometry.pages_per_program - 1);
        let is_again = self.geometry.pages_per_program > 1 && self.last_read == page_of_flash;
        self.last_read = page_of_flash;
        let rate = self.settings.rates.at(self.age(block, erases, now));
        let draw = self.reads.unit();
        let reading =
            if self.lost.contains(&page) { self.codewords.none_helps() } else { self.codewords.read(rate, draw) };
        let state = &mut self.blocks[block.index()];
        state.reads = state.reads.saturating_add(u32::from(!is_again) + reading.retries);
        self.counts.retries += u64::from(reading.retries);
        self.counts.retried_reads += u64::from(reading.retries > 0);
        if !reading.is_corrected {
            self.counts.lost_pages += u64::from(self.lost.insert(page));
            self.counts.uncorrectable_reads += u64::from(cause == Cause::HostWrite);
        }
        let why = match cause {
            Cause::HostWrite => Some(Cause::Refresh),
            Cause::Scrub => Some(Cause::Scrub),
            _ => None,
        };
        if let (Some(limit), Some(why)) = (self.settings.refresh, why)
            && self.codewords.load(rate) > limit
        {
            self.ask_for(block, why);
        }
        reading
    }

    /// Reads a page that is in the controller, and not on flash yet: it is right, unless it is the copy of a lost page.
    pub(super) fn read_from_controller(&mut self, page: PhysicalPage, cause: Cause) -> Reading {
        let is_corrected = !self.lost.contains(&page);
        self.counts.uncorrectable_reads += u64::from(!is_corrected && cause == Cause::HostWrite);
        Reading { retries: 0, is_corrected }
    }

    /// A page that was read so is copied to another place: a lost page is lost there, too.
    pub(super) fn copy_to(&mut self, to: PhysicalPage, reading: Reading) {
        if !reading.is_corrected {
            self.lost.insert(to);
        }
    }

    fn ask_for(&mut self, block: EraseBlock, why: Cause) {
        if !std::mem::replace(&mut self.blocks[block.index()].is_due, true) {
            self.due.push_back((block, why));
        }
    }

    /// The next block that is to be written anew, and why. One that cannot be, is asked for again at its next read.
    pub(super) fn next_due(&mut self) -> Option<(EraseBlock, Cause)> {
        while let Some((block, why)) = self.due.pop_front() {
            // An erase has done it since.
            if std::mem::take(&mut self.blocks[block.index()].is_due) {
                return Some((block, why));
            }
        }
        None
    }

    /// The drive lies without power for so long.
    pub(super) fn rest(&mut self, rest_ns: u64) {
        self.rested_ns += rest_ns;
    }

    /// The counts since the flash was new.
    pub(super) fn counts(&self) -> ErrorCounts {
        self.counts
    }

    /// Erases of each block before the drive was made.
    pub(super) fn worn(&self) -> u32 {
        self.worn
    }

    /// The time in which all valid pages are read in the background, in nanoseconds.
    pub(super) fn scrub_ns(&self) -> Option<u64> {
        self.settings.scrub_ns
    }

    /// The controller's lists are lost with its RAM.
    pub(super) fn lose_ram(&mut self) {
        self.due.clear();
        self.blocks.iter_mut().for_each(|block| block.is_due = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> ErrorSettings {
        ErrorSettings {
            rates: Rates { fresh: 1.48e-3, wear: 1.0, retention: 1.0, disturb: 1.0 },
            correction: Correction { bits: 72, retries: 3, gain: 0.15 },
            program_failures: 0.2,
            erase_failures: 0.1,
            refresh: None,
            scrub_ns: None,
        }
    }

    /// True if a count of draws is within four standard deviations of its mean.
    fn is_near(count: u64, of: u64, probability: f64) -> bool {
        let mean = of as f64 * probability;
        (count as f64 - mean).abs() < 4.0 * (mean * (1.0 - probability)).sqrt() + 1.0
    }

    /// Blocks are cycled to the end of their lives: of all, the given shares fail, and none twice.
    #[test]
    fn as_many_blocks_fail_within_their_endurance_as_the_options_say() {
        let geometry = Geometry::new(4096 * 16 * 4000, 4096, 16, (1, 1, 1)).unwrap();
        let (mut programs, mut erases) = (0, 0);
        let mut at_page = [0u64; 16];
        let mut errors = Errors::new(&settings(), &geometry, (50, 0), 7);
        for block in (0..geometry.blocks).map(EraseBlock) {
            for _ in 0..50 {
                let usable = errors.usable_pages(block);
                at_page[usable as usize % 16] += u64::from(usable < 16);
                if usable < 16 {
                    errors.fail_program(block);
                    programs += 1;
                    break;
                }
                if errors.erase(block) {
                    erases += 1;
                    break;
                }
            }
        }
        let blocks = u64::from(geometry.blocks);
        // Either may come first: of small shares, each is hidden by half of the other.
        let (program, erase) = errors.fails_in_cycle;
        let any = 1.0 - 0.8 * 0.9;
        let of_programs = any * program / (program + erase - program * erase);
        assert!(is_near(programs, blocks, of_programs), "{programs} of {blocks}, {of_programs}");
        assert!(is_near(erases, blocks, any - of_programs), "{erases} of {blocks}");
        assert_eq!(errors.counts().bad_blocks, programs + erases);
        assert_eq!(at_page[0], 0, "the first page of flash is programmed");
        (1..16).for_each(|page| assert!(is_near(at_page[page], programs, 1.0 / 15.0), "{at_page:?}"));
    }

    #[test]
    fn of_a_worn_drive_the_share_is_bad_that_its_cycles_have_made() {
        let geometry = Geometry::new(4096 * 16 * 20_000, 4096, 16, (1, 1, 1)).unwrap();
        let errors = Errors::new(&settings(), &geometry, (1000, 500), 3);
        let expected = 1.0 - (0.8f64 * 0.9).sqrt();
        assert!(is_near(errors.counts().bad_blocks, 20_000, expected), "{:?}", errors.counts());
        assert_eq!(errors.worn(), 500);
    }

    /// A drive is filled and lies for a year: as many reads need a retry, or fail, as the closed form says.
    #[test]
    fn reads_fail_as_often_as_the_rate_of_their_age_says() {
        let geometry = Geometry::new(4096 * 64 * 64, 4096, 64, (1, 1, 1)).unwrap();
        let settings = ErrorSettings {
            rates: Rates { disturb: 0.0, ..settings().rates },
            program_failures: 0.0,
            erase_failures: 0.0,
            ..settings()
        };
        let mut errors = Errors::new(&settings, &geometry, (3000, 1500), 5);
        let mut total = 0u64;
        for block in (0..64).map(EraseBlock) {
            (0..64).for_each(|within| errors.program(block, within, Time(5)));
        }
        let mut fails = |errors: &mut Errors| {
            let mut retried = 0;
            for round in 0..4 {
                for block in (0..64).map(EraseBlock) {
                    for page in 0..64 {
                        let page = PhysicalPage(geometry.first_page(block).0 + page);
                        let reading = errors.read(page, 0, Cause::HostWrite, Time(10 + round));
                        retried += u64::from(reading.retries > 0);
                    }
                }
            }
            total = 4 * 64 * 64;
            retried
        };
        assert_eq!(fails(&mut errors), 0, "a young drive reads at once");
        errors.rest(365 * 86_400_000_000_000);
        let retried = fails(&mut errors);
        let age = BlockAge { life: 0.5, days: 365.0, reads_per_page: 0.0 };
        let rate = settings.rates.at(age);
        let probability = Codewords::new(settings.correction, 4096).failure(rate, 0);
        assert!(probability > 0.01, "{probability}: the test can fail");
        assert!(is_near(retried, total, probability), "{retried} of {total}, {probability}");
    }

    #[test]
    fn a_lost_page_is_lost_until_its_block_is_erased_and_so_are_its_copies() {
        let geometry = Geometry::new(4096 * 16 * 4, 4096, 16, (1, 1, 1)).unwrap();
        let hopeless = ErrorSettings {
            rates: Rates { fresh: 0.4, ..settings().rates },
            program_failures: 0.0,
            erase_failures: 0.0,
            ..settings()
        };
        let mut errors = Errors::new(&hopeless, &geometry, (100, 0), 1);
        let (from, to) = (PhysicalPage(3), PhysicalPage(16));
        errors.program(EraseBlock(0), 0, Time::ZERO);
        errors.program(EraseBlock(1), 0, Time::ZERO);
        let reading = errors.read(from, 0, Cause::GarbageCollection, Time::ZERO);
        assert_eq!(reading, Reading { retries: 3, is_corrected: false });
        errors.copy_to(to, reading);
        errors.settings.rates.fresh = 0.0;
        errors.settings.rates.wear = 0.0;
        assert!(!errors.read(to, 0, Cause::HostWrite, Time::ZERO).is_corrected);
        assert_eq!((errors.counts().lost_pages, errors.counts().uncorrectable_reads), (1, 1));
        errors.erase(EraseBlock(0));
        assert!(errors.read(from, 0, Cause::HostWrite, Time::ZERO).is_corrected, "the erase has taken the mark");
        assert!(!errors.read(to, 0, Cause::HostWrite, Time::ZERO).is_corrected, "and no other");
    }

    #[test]
    fn reads_alone_make_a_block_due_once() {
        let geometry = Geometry::new(4096 * 16 * 4, 4096, 16, (1, 1, 1)).unwrap();
        let read_much = ErrorSettings { refresh: Some(0.5), ..settings() };
        let mut errors = Errors::new(&read_much, &geometry, (3000, 1500), 1);
        errors.program(EraseBlock(2), 0, Time::ZERO);
        let page = geometry.first_page(EraseBlock(2));
        let mut reads = 0u32;
        let due = loop {
            errors.read(page, 0, Cause::HostWrite, Time::ZERO);
            reads += 1;
            if let Some(due) = errors.next_due() {
                break due;
            }
        };
        assert_eq!(due, (EraseBlock(2), Cause::Refresh));
        let age = BlockAge { life: 0.5, days: 0.0, reads_per_page: f64::from(reads - 1) / 16.0 };
        let load = |age| errors.codewords.load(read_much.rates.at(age));
        assert!(load(age) > 0.5, "{reads}");
        let before = BlockAge { reads_per_page: f64::from(reads - 2) / 16.0, ..age };
        assert!(load(before) <= 0.5 || errors.counts().retries > 0, "{reads}");
    }
}
