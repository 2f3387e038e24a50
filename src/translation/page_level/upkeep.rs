//! Upkeep of flash with errors: blocks are written anew before they cannot be read, pages are read in the background, and
//! blocks that go bad are replaced by spare ones.
//!
//! | duty | begins | cause |
//! |---|---|---|
//! | refresh | a read of a host finds more wrong bits to be expected than its limit | `refresh` |
//! | scrub | all valid pages are read within its time, and one of them finds that | `scrub` |
//! | bad blocks | a program fails: the block is full, and its pages move when blocks are erased for them | `bad-block` |
//!
//! Each call does a bounded part of it. A block that is written anew is collected as any victim, an open
//! one after it was closed; a bad one is not erased. The
//! drive is read-only when more blocks are out of use than it can spare, or when no space can be freed: reads go on.
//!
//! Invariants: a bad block that holds valid pages is no candidate, and waits here; one more block than without errors is
//! reserved for copies, as one of those that take them may fail.

use super::{PageLevel, PageMap, PageSettings};
use crate::device::nand::{EraseBlock, LogicalPage, Nand, NandError, PhysicalPage, Timing};
use crate::label::Cause;
use crate::time::Time;
use crate::translation::{TranslationError, read_newest};
use std::collections::VecDeque;

/// The pages that are passed in one call in the background, read or not.
const MOST_PASSED: u64 = 1024;

/// Reads in the background, spread evenly over their time.
struct Scrub {
    /// The time in which all pages are passed, in nanoseconds.
    time_ns: u64,
    /// The number of the next page.
    next: u64,
    /// Pages passed since the drive was made.
    passed: u64,
}

/// The state of upkeep, and its counts.
pub(super) struct Upkeep {
    /// The blocks that the drive can lose.
    spare_blocks: u32,
    is_read_only: bool,
    /// Bad blocks whose valid pages have not moved yet.
    bad: VecDeque<EraseBlock>,
    scrub: Option<Scrub>,
    refreshed: u64,
    scrubbed: u64,
    moved_bad: u64,
}

impl Upkeep {
    /// That of a drive on this flash, if it has errors.
    pub fn of<T: Timing>(nand: &Nand<T>, settings: &PageSettings) -> Option<Box<Upkeep>> {
        nand.has_errors().then(|| {
            let scrub = nand.scrub_ns().map(|time_ns| Scrub { time_ns, next: 0, passed: 0 });
            Box::new(Upkeep {
                spare_blocks: settings.spare_blocks,
                is_read_only: false,
                bad: VecDeque::new(),
                scrub,
                refreshed: 0,
                scrubbed: 0,
                moved_bad: 0,
            })
        })
    }

    /// The options of a drive on flash with errors: a spare block is reserved.
    pub fn settings(settings: &PageSettings) -> PageSettings {
        let mut settings = settings.clone();
        settings.reserve += 1;
        settings.spare_blocks = settings.spare_blocks.saturating_sub(1);
        if let Some(pace) = &mut settings.pace {
            pace.target_blocks += 1;
        }
        settings
    }

    /// A bad block holds valid pages.
    pub fn add_bad(&mut self, block: EraseBlock) {
        self.bad.push_back(block);
    }

    /// Blocks that were written anew, and bad ones that were emptied, by name.
    pub fn events(&self) -> [(&'static str, u64); 3] {
        [
            ("refreshed_blocks", self.refreshed),
            ("scrubbed_blocks", self.scrubbed),
            ("emptied_bad_blocks", self.moved_bad),
        ]
    }
}

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// The blocks that the drive can still lose, if blocks go bad.
    pub(super) fn spare_blocks_left(&self) -> Option<u32> {
        let upkeep = self.upkeep.as_ref()?;
        Some(upkeep.spare_blocks.saturating_sub(self.retired))
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.upkeep.as_ref().is_some_and(|upkeep| upkeep.is_read_only)
    }

    /// Fails for a change of `page` on a drive that is read-only.
    pub(super) fn check_writable(&self, page: LogicalPage) -> Result<(), TranslationError> {
        match &self.upkeep {
            Some(upkeep) if upkeep.is_read_only => Err(TranslationError::ReadOnly {
                page: page.0,
                retired: self.retired,
                blocks: self.nand.geometry().blocks,
                spare: upkeep.spare_blocks,
            }),
            _ => Ok(()),
        }
    }

    /// Nothing is written any more, but for the rest of pages of flash that are begun.
    pub(super) fn become_read_only(&mut self) {
        let upkeep = self.upkeep.as_mut().expect("a drive without errors wears out");
        upkeep.is_read_only = true;
        self.host.iter_mut().for_each(super::Frontier::seal);
    }

    /// A drive with errors that is worn out is read-only. Other results are returned.
    pub(super) fn or_read_only<R>(
        &mut self,
        result: Result<R, TranslationError>,
    ) -> Result<Option<R>, TranslationError> {
        let is_over = matches!(result, Err(TranslationError::WornOut { .. })) && self.upkeep.is_some();
        if is_over || self.is_read_only() {
            // Copies that share the frontier of hosts may have opened a block there since.
            self.become_read_only();
        }
        if is_over { Ok(None) } else { result.map(Some) }
    }

    /// Checks the number of blocks out of use, which has grown.
    pub(super) fn check_spare_blocks(&mut self) {
        if self.upkeep.as_ref().is_some_and(|upkeep| self.retired > upkeep.spare_blocks) {
            self.become_read_only();
        }
    }

    /// A full block is closed, or one in which the next program has failed.
    pub(super) fn close_full(&mut self, block: EraseBlock) {
        if self.upkeep.is_none() || self.nand.usable_pages(block) == self.nand.geometry().pages_per_block {
            return self.close(block);
        }
        self.nand.fail_program(block);
        self.retired += 1;
        if let Some(upkeep) = &mut self.upkeep {
            upkeep.add_bad(block);
        }
        self.check_spare_blocks();
    }

    /// Closes an open block before it is full. True if it was one.
    fn close_early(&mut self, block: EraseBlock) -> bool {
        let frontiers = self.host.iter_mut().chain(&mut self.copies).chain([&mut self.cold]);
        let Some(left) = frontiers.filter_map(|frontier| frontier.give_up(block)).next() else { return false };
        if let Some(pacing) = &mut self.pacing {
            pacing.has_lost(left);
        }
        let programmed = self.nand.programmed_pages()[block.index()];
        for _ in programmed..self.nand.geometry().pages_per_block {
            self.victims.invalidate(block, &self.stream_of_block, self.written);
        }
        self.close(block);
        true
    }

    /// Opens an erased block for a frontier. Pages that cannot be programmed are lost to the pace.
    pub(super) fn usable_part(&mut self, block: EraseBlock) -> (EraseBlock, u32) {
        let usable = self.nand.usable_pages(block);
        let lost = self.nand.geometry().pages_per_block - usable;
        if let Some(pacing) = self.pacing.as_mut().filter(|_| lost > 0) {
            pacing.has_lost(lost);
        }
        (block, usable)
    }

    /// Reads the newest version of a page, and looks after the flash.
    #[cold]
    #[inline(never)]
    pub(super) fn read_looked_after(
        &mut self,
        page: LogicalPage,
        from: PhysicalPage,
        at: T::Moment,
    ) -> Result<(Option<u32>, T::Moment), TranslationError> {
        let read = read_newest(&mut self.nand, page, from, at);
        self.look_after(at)?;
        read
    }

    /// Reads pages that are due to be read, and writes a block anew, if one is due and there is space.
    pub(super) fn look_after(&mut self, at: T::Moment) -> Result<(), TranslationError> {
        if self.is_read_only() {
            return Ok(());
        }
        let now = self.nand.about(at);
        self.scrub(now, at)?;
        while self.free.count() > 1
            && let Some((block, cause)) = self.nand.next_due()
        {
            // A victim under way, or a block whose page of flash is not complete, will be asked for again.
            if self.victims.invalid_in(block, &self.stream_of_block).is_none() && !self.close_early(block) {
                continue;
            }
            let collected = self.collect(block, cause, at);
            self.or_read_only(collected)?;
            let upkeep = self.upkeep.as_mut().expect("only flash with errors has blocks that are due");
            match cause {
                Cause::Scrub => upkeep.scrubbed += 1,
                _ => upkeep.refreshed += 1,
            }
            break;
        }
        Ok(())
    }

    /// Reads the pages that are due at `now`, at most some. Returns the end of the last read, if there was one.
    pub(super) fn scrub(&mut self, now: Time, at: T::Moment) -> Result<Option<T::Moment>, TranslationError> {
        let pages = self.nand.geometry().page_slots() as u64;
        let Some(scrub) = self.upkeep.as_mut().and_then(|upkeep| upkeep.scrub.as_mut()) else { return Ok(None) };
        let due = (u128::from(now.0) * u128::from(pages) / u128::from(scrub.time_ns)) as u64;
        // Who is late by more than all pages has read each of them late, once.
        scrub.passed = scrub.passed.max(due.saturating_sub(pages));
        let passing = due.saturating_sub(scrub.passed).min(MOST_PASSED);
        let first = scrub.next;
        scrub.passed += passing;
        scrub.next = (first + passing) % pages;
        let mut done = None;
        for page in (first..first + passing).map(|page| PhysicalPage((page % pages) as u32)) {
            if !self.valid.contains(page) {
                continue;
            }
            match self.nand.read(page, Cause::Scrub, at) {
                Ok((.., there)) => {
                    done = Some(match done {
                        None => there,
                        Some(done) => self.nand.timing().later(done, there),
                    });
                }
                Err(NandError::Uncorrectable { .. }) => {}
                Err(misused) => return Err(misused.into()),
            }
        }
        Ok(done)
    }

    /// Uses idle time until `until` for pages that are due by then. Returns the time at which it has done them.
    pub(super) fn scrub_while_idle(&mut self, from: Time, until: Time) -> Result<Time, TranslationError> {
        let mut at = from;
        while self.upkeep.is_some() && at < until && !self.is_read_only() {
            let begin = self.nand.timing().instant(at);
            let Some(done) = self.scrub(until, begin)? else { break };
            self.look_after(begin)?;
            match self.nand.timing().settle(done, until) {
                Some(done) => at = done,
                None => return Ok(until),
            }
        }
        Ok(at)
    }

    /// Moves the valid pages of a bad block, if there is one and there is space. True if blocks may be missing now.
    pub(super) fn empty_bad_block(&mut self, at: T::Moment) -> Result<bool, TranslationError> {
        let next = self.upkeep.as_mut().and_then(|upkeep| upkeep.bad.pop_front());
        let Some(block) = next else { return Ok(false) };
        let (stream, mut copies) = (self.stream_of_block[block.index()] as usize, 0);
        let copied = self.copy_valid(block, stream, Cause::BadBlock, at, &mut copies);
        self.count_copies(copies, Cause::BadBlock);
        self.nand.pass_failed_program(block, at);
        copied?;
        if let Some(upkeep) = &mut self.upkeep {
            upkeep.moved_bad += 1;
        }
        Ok(true)
    }
}
