//! The operations on pages of flash, of which each is one page of the mapping or several.
//!
//! A page of flash is programmed when all its pages are there: before, they are in the controller, from which they are
//! read. Pages of one page of flash that are read one after the other, for one request or one collection, are read
//! together. With cells of several bits the pages of a word line may be programmed together, too
//! ([`WordLines`](super::word_lines::WordLines)).

use super::cells::{Cells, PageKind};
use super::energy::OperationCounts;
use super::geometry::{EraseBlock, Geometry, PhysicalPage};
use super::timing::Timing;
use super::word_lines::WordLines;
use crate::device::wait_log::Purpose;

/// A read of a page of flash that is not issued yet: more of its pages may be asked for.
struct Joined<M> {
    /// The first page of the page of flash.
    page: PhysicalPage,
    block: EraseBlock,
    kind: PageKind,
    units: u32,
    purpose: Purpose,
    at: M,
}

/// The timing model of a drive, and the pages of flash that are not complete.
pub(super) struct Operations<T: Timing> {
    timing: T,
    /// One less than the pages of a page of flash.
    mask: u32,
    /// True if a page of flash has several pages, or a kind.
    has_parts: bool,
    /// The low bits of a physical page that number the pages in a block.
    page_bits: u32,
    /// The word lines of cells of several bits. None if nothing takes time.
    word_lines: Option<Box<WordLines<T::Moment>>>,
    /// When the pages of the open page of flash of each block are in the controller. Empty if a page of flash is one page,
    /// or nothing takes time.
    gathered: Vec<Option<T::Moment>>,
    joined: Option<Joined<T::Moment>>,
    /// Reads of pages of flash that have several pages, or a kind.
    counts: OperationCounts,
}

/// The end of the read from which copies take their pages: the page of flash that was read last, and when it is there.
pub(super) struct LastRead<M>(Option<(u32, M)>);

impl<M> LastRead<M> {
    /// Nothing was read.
    #[inline]
    pub fn none() -> LastRead<M> {
        LastRead(None)
    }
}

impl<T: Timing> Operations<T> {
    pub fn new(geometry: &Geometry, timing: T) -> Operations<T> {
        let mask = geometry.pages_per_program - 1;
        let keeps_moments = T::TIMED && mask > 0;
        let gathered = (0..if keeps_moments { geometry.blocks } else { 0 }).map(|_| None).collect();
        let (has_parts, page_bits) = (mask > 0, geometry.page_bits());
        let counts = OperationCounts::default();
        Operations { timing, mask, has_parts, page_bits, word_lines: None, gathered, joined: None, counts }
    }

    /// The same with cells of several bits.
    pub fn with_cells(self, cells: &Cells, geometry: &Geometry) -> Operations<T> {
        if !T::TIMED {
            return self;
        }
        Operations { has_parts: true, word_lines: Some(Box::new(WordLines::new(cells, geometry))), ..self }
    }

    /// Sets the mode of a block that is erased.
    pub fn set_slc(&mut self, block: EraseBlock, is_slc: bool) {
        if let Some(lines) = &mut self.word_lines {
            lines.set_slc(block, is_slc);
        }
    }

    #[inline]
    pub fn timing(&mut self) -> &mut T {
        &mut self.timing
    }

    /// True if a page of flash is one page, of one kind.
    #[inline]
    pub fn pages_are_alike(&self) -> bool {
        !self.has_parts
    }

    /// Reads and, of cells of several bits, programs; `None` if pages are operations.
    pub fn counts(&self) -> Option<OperationCounts> {
        let programs = self.word_lines.as_ref().map_or(self.counts.programs, |lines| lines.programs());
        self.has_parts.then_some(OperationCounts { programs, ..self.counts })
    }

    /// Reads a page of flash, and transfers some of its pages.
    #[inline]
    fn read_kind(
        &mut self,
        block: EraseBlock,
        units: u32,
        kind: PageKind,
        purpose: Purpose,
        at: T::Moment,
    ) -> T::Moment {
        if T::TIMED {
            self.counts.reads[kind.index()] += 1;
            self.counts.units_read += u64::from(units);
        }
        self.timing.read_kind(block, units, kind, purpose, at)
    }

    pub fn events(&self) -> Vec<(&'static str, u64)> {
        self.timing.events()
    }

    /// A page of a block, the last of those programmed there, is in the controller at `at`. If its page of flash is
    /// complete, that is programmed; returns when that is done, and otherwise `at`.
    #[inline]
    pub fn program(&mut self, block: EraseBlock, within: u32, purpose: Purpose, at: T::Moment) -> T::Moment {
        let is_complete = within & self.mask == self.mask;
        if T::TIMED && self.has_parts {
            return self.program_part(block, (within, is_complete), purpose, at);
        }
        if is_complete { self.timing.program(block, purpose, at) } else { at }
    }

    fn program_part(
        &mut self,
        block: EraseBlock,
        (within, is_complete): (u32, bool),
        purpose: Purpose,
        at: T::Moment,
    ) -> T::Moment {
        let mut all = at;
        if let Some(gathered) = self.gathered.get_mut(block.index()) {
            all = self.timing.gather(gathered.take(), at);
            if !is_complete {
                *gathered = Some(all);
                return at;
            }
        }
        match &mut self.word_lines {
            None => self.timing.program(block, purpose, all),
            Some(lines) => {
                let page = within >> self.mask.count_ones();
                lines.program(&mut self.timing, (block, page), purpose, all)
            }
        }
    }

    /// The first pages of a block that are on flash, of those that were programmed.
    #[inline]
    fn on_flash(&self, block: EraseBlock, programmed: u32) -> u32 {
        match &self.word_lines {
            None => programmed & !self.mask,
            Some(lines) => lines.on_flash(block, programmed),
        }
    }

    #[inline]
    fn page_in_block(&self, page: PhysicalPage) -> u32 {
        page.0 & ((1 << self.page_bits) - 1)
    }

    #[inline]
    fn kind_of(&self, block: EraseBlock, within: u32) -> PageKind {
        self.word_lines.as_ref().map_or(PageKind::ALIKE, |lines| lines.kind_of(block, within))
    }

    /// Reads a page of a block with so many programmed pages.
    #[inline]
    pub fn read(
        &mut self,
        block: EraseBlock,
        (within, programmed): (u32, u32),
        purpose: Purpose,
        at: T::Moment,
    ) -> T::Moment {
        if !self.has_parts {
            return self.timing.read(block, purpose, at);
        }
        if within >= self.on_flash(block, programmed) {
            return at;
        }
        let kind = self.kind_of(block, within);
        self.read_kind(block, 1, kind, purpose, at)
    }

    /// Reads a page as [`Operations::read`], together with those of its page of flash that are read before and after it.
    /// Returns the end of a read that is complete; [`Operations::end_reads`] follows the last.
    #[inline]
    pub fn read_joined(
        &mut self,
        page: PhysicalPage,
        (block, within, programmed): (EraseBlock, u32, u32),
        purpose: Purpose,
        at: T::Moment,
    ) -> T::Moment {
        if !self.has_parts {
            return self.timing.read(block, purpose, at);
        }
        if self.mask == 0 {
            return self.read(block, (within, programmed), purpose, at);
        }
        if within >= self.on_flash(block, programmed) {
            return at;
        }
        let first = PhysicalPage(page.0 & !self.mask);
        if let Some(joined) = self.joined.as_mut().filter(|joined| joined.page == first && joined.units <= self.mask) {
            joined.units += 1;
            joined.at = self.timing.gather(Some(joined.at), at);
            return at;
        }
        let before = self.end_reads(at);
        let begin = self.timing.gather(None, at);
        let kind = self.kind_of(block, within);
        self.joined = Some(Joined { page: first, block, kind, units: 1, purpose, at: begin });
        before
    }

    /// Issues the read that is still to be joined, if there is one. Returns its end, or else `at`.
    #[inline]
    pub fn end_reads(&mut self, at: T::Moment) -> T::Moment {
        match self.joined.take() {
            Some(Joined { block, kind, units, purpose, at, .. }) => self.read_kind(block, units, kind, purpose, at),
            None => at,
        }
    }

    /// Copies a page of `source` to a page of `target`. `rest` has a bit for each page that is copied, from this one on;
    /// `read` is the read of the copy before. Returns the later of the end and of `done`.
    #[inline]
    pub fn copy(
        &mut self,
        (source, from, rest): (EraseBlock, PhysicalPage, u64),
        (target, within): (EraseBlock, u32),
        purpose: Purpose,
        read: &mut LastRead<T::Moment>,
        (at, done): (T::Moment, T::Moment),
    ) -> T::Moment {
        if !self.has_parts {
            return self.timing.copy_into(source, target, purpose, at, done);
        }
        let page = from.0 & !self.mask;
        let there = match read.0 {
            Some((last, there)) if last == page => there,
            _ => {
                // Bit 0 of `rest` is `from`; the other pages of its page of flash follow.
                let others = self.mask - (from.0 & self.mask);
                let units = (rest & ((2u64 << others) - 1)).count_ones();
                let kind = self.kind_of(source, self.page_in_block(from));
                let there = self.read_kind(source, units, kind, purpose, at);
                read.0 = Some((page, there));
                there
            }
        };
        let copied = self.program(target, within, purpose, there);
        self.timing.later(done, copied)
    }

    /// Reads a page again so many times, each time after the last. Returns the end.
    pub fn retry(
        &mut self,
        (block, within): (EraseBlock, u32),
        retries: u32,
        purpose: Purpose,
        at: T::Moment,
    ) -> T::Moment {
        let kind = self.kind_of(block, within);
        let purpose = if purpose == Purpose::Host { Purpose::Retry } else { purpose };
        let again = |done, _| match self.has_parts {
            false => self.timing.read(block, purpose, done),
            true => self.read_kind(block, 1, kind, purpose, done),
        };
        (0..retries).fold(at, again)
    }

    /// [`Operations::copy`] of a page that is read again so many times.
    pub fn copy_retried(
        &mut self,
        (source, from, rest): (EraseBlock, PhysicalPage, u64),
        target: (EraseBlock, u32),
        (retries, purpose): (u32, Purpose),
        read: &mut LastRead<T::Moment>,
        (at, done): (T::Moment, T::Moment),
    ) -> T::Moment {
        let again = self.retry((source, self.page_in_block(from)), retries, purpose, at);
        let page = from.0 & !self.mask;
        match read.0 {
            Some((last, there)) if self.has_parts && retries > 0 && last == page => {
                let both = self.timing.gather(None, again);
                let both = self.timing.gather(Some(both), there);
                let copied = self.program(target.0, target.1, purpose, both);
                self.timing.later(done, copied)
            }
            _ => self.copy((source, from, rest), target, purpose, read, (again, done)),
        }
    }

    /// True if a page of a block with so many programmed pages is still in the controller.
    pub fn is_gathered(&self, block: EraseBlock, within: u32, programmed: u32) -> bool {
        within >= self.on_flash(block, programmed)
    }

    /// The pages of flash that were not complete are lost with the RAM.
    pub fn lose_open(&mut self) {
        self.gathered.iter_mut().for_each(|gathered| *gathered = None);
        self.joined = None;
    }

    /// Nothing is under way in the open page of flash of a block that is erased.
    #[inline]
    pub fn forget_open(&mut self, block: EraseBlock) {
        if let Some(gathered) = self.gathered.get_mut(block.index()) {
            *gathered = None;
        }
        if let Some(lines) = &mut self.word_lines {
            lines.forget(block);
        }
    }
}
