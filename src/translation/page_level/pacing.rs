//! Collection in steps: the copies of victims are spread over the writes of the host, so that free space stays level.
//!
//! The level counts the free pages: those of erased blocks and the unwritten ones of open blocks. A program takes one, an
//! erase adds a block. Below the target, steps of `pace` copies are made, of each victim under way in turn. A victim with v
//! valid pages of P gives P pages after v copies, so each of its copies counts as P / v pages that are there already: the
//! level then falls by a page with each host write, and rises with each copy by the same share of the victim's gain.
//!
//! Invariants: a victim under way is no candidate. No step takes the last blocks of the reserve, unless it belongs to the victim
//! with the fewest pages left, which fits them.

use super::{PageLevel, PageMap};
use crate::device::nand::{EraseBlock, Timing};
use crate::label::Cause;
use crate::translation::TranslationError;
use crate::translation::frontier::Frontier;
use crate::translation::valid_pages::lowest_bits;
use std::collections::VecDeque;
use std::ops::Range;

/// The most copies for each page that the host writes, on average. With more than seven of eight pages valid the level
/// falls, and collection is as without a pace.
const MOST_COPIES: u64 = 8;

/// The number of the drive's spare blocks for each victim under way.
const SPARE_FOR_VICTIM: u32 = 32;

/// The options of collection in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceSettings {
    /// Copies of a step, in pages of flash.
    pub step: u32,
    /// The most victims under way.
    pub victims: u32,
    /// The level that is kept, in blocks.
    pub target_blocks: u32,
}

impl PaceSettings {
    /// Steps of `step` pages of flash, on so many planes, where so many blocks are spare. `kept_blocks`: the erased blocks
    /// that collection at once keeps; `open_blocks`: those of all frontiers, which are half full on average.
    pub(super) fn new(
        step: u32,
        planes: u32,
        spare_blocks: u32,
        (kept_blocks, open_blocks): (u32, u32),
    ) -> PaceSettings {
        let victims = (spare_blocks / SPARE_FOR_VICTIM).clamp(1, planes);
        // The block that is taken next, and what victims under way have not given yet.
        let more = (1 + victims).min(spare_blocks / 4);
        PaceSettings { step, victims, target_blocks: kept_blocks + open_blocks.div_ceil(2) + more }
    }
}

/// A victim that is collected in steps.
struct UnderWay<M> {
    victim: EraseBlock,
    /// The words of its pages that are not copied yet.
    words: Range<usize>,
    /// Its valid pages at the beginning, and those that are copied.
    valid: u32,
    copied: u32,
    /// The end of the last copy.
    done: M,
}

impl<M> UnderWay<M> {
    /// The pages for which its copies count.
    fn counts_for(&self, pages_per_block: u32) -> u64 {
        u64::from(self.copied) * u64::from(pages_per_block) / u64::from(self.valid.max(1))
    }
}

/// The state of collection in steps.
pub(super) struct Pacing<M> {
    /// Copies of a step.
    step: u32,
    most_victims: usize,
    /// The level that is kept, in pages.
    target: i64,
    under_way: VecDeque<UnderWay<M>>,
    /// The level, with what was programmed since the drive was made, and without what was freed.
    base: Option<i64>,
    /// The pages of blocks that were erased.
    freed: u64,
    /// The pages that the copies of victims under way count for.
    counted: u64,
    /// The copies that may be made, and up to which program that was reckoned.
    allowed: u64,
    reckoned: u64,
}

impl<M> Pacing<M> {
    pub fn new(settings: PaceSettings, pages_per_block: u32, pages_per_program: u32) -> Pacing<M> {
        Pacing {
            step: settings.step * pages_per_program,
            most_victims: settings.victims as usize,
            target: i64::from(settings.target_blocks) * i64::from(pages_per_block),
            under_way: VecDeque::new(),
            base: None,
            freed: 0,
            counted: 0,
            allowed: 0,
            reckoned: 0,
        }
    }

    /// Free pages of an erased block turn out to be none.
    pub fn has_lost(&mut self, pages: u32) {
        if let Some(base) = &mut self.base {
            *base -= i64::from(pages);
        }
    }

    /// A block was erased.
    pub fn has_freed(&mut self, pages: u32) {
        self.freed += u64::from(pages);
    }
}

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// Collects in steps until the level is back at the target. The layer calls it after a host write, when the level may be below.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_pace(&mut self, at: T::Moment) -> Result<(), TranslationError> {
        if self.is_read_only() {
            return Ok(());
        }
        let kept = self.keep_level(at);
        self.or_read_only(kept).map(|_| ())
    }

    fn keep_level(&mut self, at: T::Moment) -> Result<(), TranslationError> {
        let written = self.written;
        let pacing = self.pacing.as_mut().expect("a drive without a pace keeps none");
        let since = written - std::mem::replace(&mut pacing.reckoned, written);
        let step = u64::from(pacing.step);
        pacing.allowed = (pacing.allowed + since * MOST_COPIES).min(step.max(MOST_COPIES));
        let mut short = self.missing_pages();
        while short > 0 && self.allowed_copies() >= step && self.start_victim(at) {
            self.make_step(at)?;
            // The open blocks of a drive that is read-only are closed: it has no level.
            if self.is_read_only() {
                return Ok(());
            }
            short = self.missing_pages();
        }
        // A host write takes a page.
        self.pace_at = self.written + u64::try_from(-short).unwrap_or(0) + 1;
        if let Some(pacing) = &mut self.pacing {
            pacing.reckoned = self.written;
        }
        Ok(())
    }

    fn allowed_copies(&self) -> u64 {
        self.pacing.as_ref().map_or(0, |pacing| pacing.allowed)
    }

    /// The pages by which the level is below the target.
    fn missing_pages(&mut self) -> i64 {
        let pages_per_block = u64::from(self.nand.geometry().pages_per_block);
        let room = || self.host.iter().chain(&self.copies).chain([&self.cold]).map(Frontier::room).sum::<u64>();
        let level = || (u64::from(self.free.count()) * pages_per_block + room()) as i64;
        let Some(pacing) = &mut self.pacing else { return 0 };
        let passed = self.written as i64 - pacing.freed as i64;
        let base = *pacing.base.get_or_insert_with(|| level() + passed);
        debug_assert_eq!(base - passed, level(), "a program takes a free page, and an erase adds a block");
        pacing.target - (base - passed) - pacing.counted as i64
    }

    /// Starts a victim, if more may be under way and one gains anything. True if one is under way.
    fn start_victim(&mut self, at: T::Moment) -> bool {
        let has_reserve = self.free.count() > self.settings.reserve;
        let pacing = self.pacing.as_ref().expect("a drive without a pace has no victims under way");
        let is_any = !pacing.under_way.is_empty();
        let pages_per_block = self.nand.geometry().pages_per_block;
        if pacing.under_way.len() >= pacing.most_victims
            || is_any && !has_reserve
            || self.victims.invalid_in_candidates() < u64::from(pages_per_block)
        {
            return is_any;
        }
        let Some(victim) = self.choose_victim() else { return is_any };
        let invalid = self.victims.invalid_in(victim, &self.stream_of_block).expect("a victim was a candidate");
        if invalid == 0 {
            return is_any;
        }
        self.leave_candidates(victim);
        self.free.expect(self.nand.geometry().unit_of(victim));
        let words = self.valid.words_of(victim);
        let valid = pages_per_block - invalid;
        debug_assert_eq!(
            valid,
            words.clone().map(|word| self.valid.word(word).count_ones()).sum::<u32>(),
            "a page of block {} is valid or not",
            victim.0
        );
        if let Some(pacing) = &mut self.pacing {
            pacing.under_way.push_front(UnderWay { victim, words, valid, copied: 0, done: at });
        }
        true
    }

    /// A step of the next victim: of the one with the fewest pages left, if no block beyond the reserve is erased.
    fn make_step(&mut self, at: T::Moment) -> Result<(), TranslationError> {
        let has_reserve = self.free.count() > self.settings.reserve;
        let place = if has_reserve { Some(0) } else { self.nearest() };
        let pacing = self.pacing.as_mut().expect("a drive without a pace makes no steps");
        let step = pacing.step;
        let Some(mut next) = place.and_then(|place| pacing.under_way.remove(place)) else { return Ok(()) };
        if self.copy_step(&mut next, step, at)? {
            self.finish(next, at)?;
        } else if let Some(pacing) = &mut self.pacing {
            pacing.under_way.push_back(next);
        }
        Ok(())
    }

    /// The place of the victim under way with the fewest pages left.
    fn nearest(&self) -> Option<usize> {
        let left = |next: &UnderWay<T::Moment>| -> u32 {
            next.words.clone().map(|word| self.valid.word(word).count_ones()).sum()
        };
        let under_way = &self.pacing.as_ref()?.under_way;
        (0..under_way.len()).min_by_key(|&place| left(&under_way[place]))
    }

    /// Finishes the victim under way with the fewest pages left, at once; returns the time of its erase. `None`: none is
    /// under way.
    pub(super) fn finish_nearest(&mut self, at: T::Moment) -> Result<Option<T::Moment>, TranslationError> {
        let place = self.nearest();
        let Some(mut next) = place.and_then(|place| self.pacing.as_mut()?.under_way.remove(place)) else {
            return Ok(None);
        };
        let is_done = self.copy_step(&mut next, u32::MAX, at)?;
        debug_assert!(is_done, "all of it was copied");
        Ok(Some(self.finish(next, at)?))
    }

    /// Copies at most `most` pages of a victim. True if none is left.
    fn copy_step(
        &mut self,
        next: &mut UnderWay<T::Moment>,
        most: u32,
        at: T::Moment,
    ) -> Result<bool, TranslationError> {
        let stream = self.stream_of_block[next.victim.index()] as usize;
        let (mut copies, mut copied) = (0, Ok(next.done));
        while let Ok(done) = copied
            && let Some(word) = next.words.clone().find(|&word| self.valid.word(word) != 0)
            && copies < u64::from(most)
        {
            next.words.start = word;
            let pages = lowest_bits(self.valid.word(word), most - copies as u32);
            self.valid.take_bits(word, pages);
            let from = (self.valid.page(word, 0), pages);
            let to = (stream, Cause::GarbageCollection);
            copied = self.copy_bits(from, to, (at, done), &mut copies);
        }
        self.count_copies(copies, Cause::GarbageCollection);
        next.done = copied?;
        let pages_per_block = self.nand.geometry().pages_per_block;
        let before = next.counts_for(pages_per_block);
        next.copied += copies as u32;
        if let Some(pacing) = &mut self.pacing {
            pacing.counted += next.counts_for(pages_per_block) - before;
            pacing.allowed = pacing.allowed.saturating_sub(copies);
        }
        Ok(next.words.clone().all(|word| self.valid.word(word) == 0))
    }

    /// Erases a victim whose pages are copied; returns the time of the erase.
    fn finish(&mut self, next: UnderWay<T::Moment>, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let geometry = *self.nand.geometry();
        if let Some(pacing) = &mut self.pacing {
            pacing.counted -= next.counts_for(geometry.pages_per_block);
        }
        self.free.has_come(geometry.unit_of(next.victim));
        let done = self.erase_copied(next.victim, Cause::GarbageCollection, at, next.done)?;
        self.level_wear(next.victim, at)?;
        Ok(done)
    }
}
