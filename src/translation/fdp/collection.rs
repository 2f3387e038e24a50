//! Garbage collection by reclaim units.
//!
//! Copies of an initially isolated handle go to a unit that all such handles of the group share, those of a persistently
//! isolated one to a unit of its own. A group collects its own units.

use super::FdpLayer;
use super::units::{OpenUnit, Owner, Unit};
use crate::device::nand::{EraseBlock, Erased, LogicalPage, PhysicalPage, Spare, Timing};
use crate::device::{Isolation, PlacementEventKind};
use crate::label::{Cause, Label};
use crate::translation::TranslationError;
use crate::translation::page_level::PageMap;

/// A unit that is collected: its group, and its row among the candidates there.
type Place = (usize, EraseBlock);

impl<T: Timing> FdpLayer<T> {
    /// Gives the open unit at `place` an erased one; collects until more are erased in the group than the reserve.
    #[cold]
    pub(super) fn refill(&mut self, place: usize, at: T::Moment) -> Result<PhysicalPage, TranslationError> {
        let (group, handle) = (place / self.settings.handles.len(), place % self.settings.handles.len());
        if let Some(full) = self.host[place].give_up() {
            self.close(full);
            self.record.followed_units += 1;
        }
        while self.units.erased_in(group) <= self.settings.reserve {
            self.collect_next(group, at)?;
        }
        let unit = self.units.take(group).expect("more than the reserve is erased");
        self.prepare(unit, Owner::Host(handle as u8));
        let blocks = self.units.blocks_of(unit).map(|block| (block, 0));
        self.host[place].open(unit, blocks, self.nand.geometry());
        Ok(self.host[place].take().expect("an erased unit has room"))
    }

    /// Notes the owner of an erased unit, which the spare areas of its pages have from now on.
    fn prepare(&mut self, unit: Unit, owner: Owner) {
        self.owners[unit.index()] = owner;
        self.units.blocks_of(unit).for_each(|block| self.nand.mark(block, owner.mark()));
    }

    /// True if what a unit of this owner holds was written to initially isolated handles: only their copies are events (NVMe Base
    /// Specification 2.1, 5.1.12.1.31.2.1).
    fn is_initially_isolated(&self, owner: Owner) -> bool {
        match owner {
            Owner::Host(handle) | Owner::CopiesOf(handle) => {
                self.settings.handles[usize::from(handle)] == Isolation::Initial
            }
            Owner::SharedCopies => true,
        }
    }

    /// The open unit in a group for copies out of units of this owner.
    pub(super) fn copies_of(&self, group: usize, owner: Owner) -> usize {
        let own = match owner {
            Owner::Host(handle) | Owner::CopiesOf(handle) => self.settings.place_of_copies(handle.into()),
            Owner::SharedCopies => 0,
        };
        group * self.settings.open_for_copies() + own
    }

    /// The owner of units with the copies at `place`.
    pub(super) fn owner_of_copies(&self, place: usize) -> Owner {
        let own = place % self.settings.open_for_copies();
        let handles = 0..self.settings.handles.len();
        let is_own = |handle: &usize| {
            self.settings.handles[*handle] == Isolation::Persistent && self.settings.place_of_copies(*handle) == own
        };
        match handles.into_iter().find(is_own) {
            Some(handle) => Owner::CopiesOf(handle as u8),
            None => Owner::SharedCopies,
        }
    }

    /// Opens an erased unit for copies.
    #[cold]
    fn refill_copies(&mut self, place: usize) -> Result<(), TranslationError> {
        if let Some(full) = self.copies[place].give_up() {
            self.close(full);
        }
        let group = place / self.settings.open_for_copies();
        let unit = self.units.take(group).ok_or_else(|| self.worn_out())?;
        self.prepare(unit, self.owner_of_copies(place));
        let blocks = self.units.blocks_of(unit).map(|block| (block, 0));
        self.copies[place].open(unit, blocks, self.nand.geometry());
        Ok(())
    }

    /// Makes a unit that is written no more a candidate: the pages that it has not are invalid.
    pub(super) fn close(&mut self, unit: Unit) {
        let (group, row) = self.units.place(unit);
        let blocks: Vec<EraseBlock> = self.units.blocks_of(unit).collect();
        let programmed: u32 = blocks.iter().map(|block| self.nand.programmed_pages()[block.index()]).sum();
        for _ in programmed..self.units.pages() {
            self.victims[group].invalidate(row, self.written);
        }
        let erases = self.nand.erase_counts()[blocks[0].index()];
        self.victims[group].close(row, self.written, erases);
    }

    /// Selects a victim of a group and collects it; returns the time of its erase.
    pub(super) fn collect_next(&mut self, group: usize, at: T::Moment) -> Result<T::Moment, TranslationError> {
        self.occupied.0 += u128::from(self.occupied_pages());
        self.occupied.1 += 1;
        let row = self.victims[group].choose(self.written).ok_or_else(|| self.worn_out())?;
        let done = self.collect((group, row), at)?;
        self.prefetch_victim(group);
        Ok(done)
    }

    /// Copies the valid pages of a unit and erases it; returns the time of the erase.
    pub(super) fn collect(&mut self, (group, row): Place, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let unit = self.units.unit_at(group, row);
        let owner = self.owners[unit.index()];
        self.victims[group].remove(row);
        let mut first = None;
        let (mut copies, to) = (0, self.copies_of(group, owner));
        let copied = self.copy_valid(unit, to, at, &mut copies, &mut first);
        self.nand.count_copies(copies, Cause::GarbageCollection, &mut self.sent);
        self.written += copies;
        self.record.count_copies(owner, copies);
        self.record.moved_units += u64::from(first.is_some());
        if let Some(first) = first.filter(|_| self.is_initially_isolated(owner)) {
            let identifier = match owner {
                Owner::Host(handle) | Owner::CopiesOf(handle) => {
                    Some((group * self.settings.handles.len()) as u8 + handle)
                }
                Owner::SharedCopies => None,
            };
            let page_bytes = u64::from(self.nand.geometry().page_bytes);
            let moved = Some((u64::from(first) * page_bytes, copies * page_bytes));
            self.record.note(PlacementEventKind::Reallocated, (group, identifier), moved);
        }
        let mut done = copied?;
        if self.settings.fills_before_erase {
            // What the victim still holds for a page of flash that is not programmed would be lost in a power cut.
            let filled = self.fill_open_pages(at)?;
            done = self.nand.timing().later(done, filled);
        }
        self.victims[group].erased(row);
        self.erase(unit, done)
    }

    /// Copies the valid pages of a unit to the open unit at `to`, stripe by stripe, so that its planes are read side by side.
    /// Adds them to `copies`, and notes the first. Returns the time of the last copy.
    fn copy_valid(
        &mut self,
        unit: Unit,
        to: usize,
        at: T::Moment,
        copies: &mut u64,
        first: &mut Option<u32>,
    ) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        let words: Vec<_> = self.units.blocks_of(unit).map(|block| self.valid.words_of(block)).collect();
        for offset in 0..words[0].len() {
            for block in &words {
                let word = block.start + offset;
                let (from, mut left) = (self.valid.page(word, 0), self.valid.take_word(word));
                while left != 0 {
                    if !self.copies[to].has_room() {
                        self.refill_copies(to)?;
                    }
                    let (target, map, valid) = (&mut self.copies[to], &mut self.map, &mut self.valid);
                    let moved = |page: LogicalPage, place| {
                        first.get_or_insert(page.0);
                        valid.set(place);
                        map.record_move(page, place);
                        *copies += 1;
                    };
                    let cause = Cause::GarbageCollection;
                    let (rest, copied) = self.nand.copy_scattered((from, left), || target.take(), cause, at, moved)?;
                    left = rest;
                    done = self.nand.timing().later(done, copied);
                }
            }
        }
        Ok(done)
    }

    /// Erases the blocks of a unit without valid pages; returns when that is done.
    pub(super) fn erase(&mut self, unit: Unit, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let (mut done, mut is_worn, mut erases) = (at, false, 0);
        let programmed = |layer: &Self, block: EraseBlock| layer.nand.programmed_pages()[block.index()] > 0;
        for block in self.units.blocks_of(unit) {
            // A block of a unit that was given up early may have no page.
            if programmed(self, block) {
                let (erased, end) = self.nand.erase(block, at)?;
                done = self.nand.timing().later(done, end);
                is_worn |= erased == Erased::WornOut;
            }
            erases = erases.max(self.nand.erase_counts()[block.index()]);
        }
        if is_worn || erases >= self.nand.endurance() {
            self.retire(unit)?;
        } else {
            self.units.put(unit, erases);
        }
        Ok(done)
    }

    /// Counts a unit out of use. The drive continues as long as the others can hold the exported pages.
    fn retire(&mut self, unit: Unit) -> Result<(), TranslationError> {
        self.units.retire(unit);
        let most: u64 = (0..self.units.groups()).map(|group| self.most_valid(group)).sum();
        if most < self.settings.exported_pages { Err(self.worn_out()) } else { Ok(()) }
    }

    pub(super) fn worn_out(&self) -> TranslationError {
        TranslationError::worn_out(&self.nand, self.units.retired() * self.units.planes_of_group())
    }

    /// The most valid pages of a group: its units that can be collected then hold a unit of invalid ones at least.
    pub(super) fn most_valid(&self, group: usize) -> u64 {
        let usable = self.units.rows() - self.units.retired_in(group);
        self.settings.most_valid(usable, self.nand.geometry())
    }

    /// Fills the pages of flash that wait for more pages; returns when they are programmed.
    pub(super) fn fill_open_pages(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        if self.nand.geometry().pages_per_program == 1 {
            return Ok(done);
        }
        for place in 0..self.host.len() + self.copies.len() {
            let filled = self.fill_open_page(place, at)?;
            done = self.nand.timing().later(done, filled);
        }
        Ok(done)
    }

    /// Fills the page of flash of an open unit: those of the host, then those for copies.
    pub(super) fn fill_open_page(&mut self, place: usize, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut programmed = at;
        let host_units = self.host.len();
        let rest = |layer: &mut Self| match place.checked_sub(host_units) {
            None => layer.host[place].take_rest(),
            Some(copies) => layer.copies[copies].take_rest(),
        };
        while let Some(page) = rest(self) {
            programmed = self.nand.program_padding(page, at)?;
            self.sent.add(Label::again(Cause::Padding, Spare::OF_PADDING), 1);
            self.written += 1;
            let (group, row) = self.units.place(self.units.unit_of(self.nand.geometry().block_of(page)));
            self.victims[group].invalidate(row, self.written);
        }
        Ok(programmed)
    }

    /// Prefetches what the collection of the next victim reads first.
    fn prefetch_victim(&self, group: usize) {
        let Some(row) = self.victims[group].likely_next() else { return };
        for block in self.units.blocks_of(self.units.unit_at(group, row)) {
            self.valid.prefetch(self.nand.geometry().first_page(block));
            self.nand.prefetch_spare_areas(block);
        }
    }

    /// Pages of units, valid or not, without those that were not written.
    pub(super) fn occupied_pages(&self) -> u64 {
        let room: u64 = self.host.iter().chain(&self.copies).map(OpenUnit::room).sum();
        let used = self.units.rows() * self.units.groups() as u32 - self.units.erased() - self.units.retired();
        u64::from(used) * u64::from(self.units.pages()) - room
    }
}
