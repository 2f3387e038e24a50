//! Rebuilds the units and the map after a power cut, from the spare areas of the flash.
//!
//! 1. Pages of flash that wait for more pages are filled or lost, as capacitors say.
//! 2. A unit of which some blocks are erased was being erased: the rest is erased. A unit is written over its planes in turn, so
//!    that a block with fewer pages than the one behind it tells.
//! 3. The newest version of each page is found, and the owner of each unit, which is in the spare areas of its pages.
//! 4. Units that were not full are open again for their owner. A host may have given up a unit early: of two that are not full, the
//!    later one is open.
//! 5. A collection that was interrupted is completed.

use super::FdpLayer;
use super::units::{Owner, Unit};
use crate::device::nand::{EraseBlock, PhysicalPage, Timing};
use crate::time::Time;
use crate::translation::page_level::PageMap;
use crate::translation::{TranslationError, UNMAPPED, newest_versions, settle_open_pages};

/// Rebuilds all state that was in RAM, but for statistics and events, which a drive keeps.
pub fn rebuilt<T: Timing>(lost: FdpLayer<T>) -> Result<FdpLayer<T>, TranslationError> {
    let FdpLayer { mut nand, settings, seed, record, .. } = lost;
    settle_open_pages(&mut nand, !settings.fills_before_erase)?;
    let mut drive = FdpLayer::without_units(nand, &settings, seed);
    drive.record = record;
    // The counts are lost, too: they continue from the flash's.
    drive.sent = drive.nand.counts_after_power_cut().programmed.clone();
    drive.written = drive.sent.total();
    let at = drive.nand.timing().instant(Time::ZERO);
    let torn: Vec<Unit> = drive.units.all().filter(|unit| is_half_erased(&drive, *unit)).collect();
    for unit in torn {
        drive.erase_rest(unit, at)?;
    }
    let places = newest_versions(&drive.nand, drive.settings.exported_pages);
    for place in places.iter().filter(|&&place| place != UNMAPPED) {
        let page = PhysicalPage(*place);
        drive.valid.set(page);
        let (group, _) = drive.units.place(drive.units.unit_of(drive.nand.geometry().block_of(page)));
        drive.valid_in_group[group] += 1;
    }
    drive.map.rebuilt(places);
    drive.put_units();
    for group in 0..drive.units.groups() {
        drive.complete(group, at)?;
    }
    Ok(drive)
}

/// True if an erase of this unit was interrupted.
fn is_half_erased<T: Timing>(drive: &FdpLayer<T>, unit: Unit) -> bool {
    let programmed: Vec<u32> = programmed(drive, unit).collect();
    programmed.windows(2).any(|pair| pair[0] < pair[1])
}

/// The programmed pages of the blocks of a unit, by plane.
fn programmed<T: Timing>(drive: &FdpLayer<T>, unit: Unit) -> impl Iterator<Item = u32> + '_ {
    drive.units.blocks_of(unit).map(|block| drive.nand.programmed_pages()[block.index()])
}

impl<T: Timing> FdpLayer<T> {
    /// Erases the blocks of a unit that an interrupted erase has left.
    fn erase_rest(&mut self, unit: Unit, at: T::Moment) -> Result<(), TranslationError> {
        for block in self.units.blocks_of(unit) {
            if self.nand.programmed_pages()[block.index()] > 0 {
                self.nand.erase(block, at)?;
            }
        }
        Ok(())
    }

    /// Adds all units: erased ones, those out of use, open ones, and candidates.
    fn put_units(&mut self) {
        let mut not_full = Vec::new();
        for unit in self.units.all() {
            let blocks: Vec<EraseBlock> = self.units.blocks_of(unit).collect();
            let pages: u32 = programmed(self, unit).sum();
            if pages == 0 {
                let erases = blocks.iter().map(|block| self.nand.erase_counts()[block.index()]).max().unwrap_or(0);
                match erases >= self.nand.endurance() {
                    true => self.units.retire(unit),
                    false => self.units.put(unit, erases),
                }
                continue;
            }
            // The first block has the first page.
            self.owners[unit.index()] = Owner::of_mark(self.nand.mark_of(blocks[0]));
            self.count_invalid(unit);
            if pages < self.units.pages() {
                not_full.push((self.newest_in(unit), unit));
            } else {
                self.close(unit);
            }
        }
        not_full.sort_unstable_by(|a, b| b.cmp(a));
        for (_, unit) in not_full {
            self.reopen(unit);
        }
    }

    /// Counts the programmed pages of a unit that are not valid.
    fn count_invalid(&mut self, unit: Unit) {
        let (group, row) = self.units.place(unit);
        let words = self.units.blocks_of(unit).flat_map(|block| self.valid.words_of(block));
        let valid: u32 = words.map(|word| self.valid.word(word).count_ones()).sum();
        let pages: u32 = programmed(self, unit).sum();
        for _ in valid..pages {
            self.victims[group].invalidate(row, 0);
        }
    }

    /// The age of the newest page of a unit.
    fn newest_in(&self, unit: Unit) -> u64 {
        let found = self.units.blocks_of(unit).flat_map(|block| self.nand.found(block));
        found.map(|found| found.sequence.0).max().unwrap_or(0)
    }

    /// Opens a unit that is not full for its owner, unless that has one open.
    fn reopen(&mut self, unit: Unit) {
        let (group, _) = self.units.place(unit);
        let blocks: Vec<(EraseBlock, u32)> = self.units.blocks_of(unit).zip(programmed(self, unit)).collect();
        let owner = self.owners[unit.index()];
        let open = match owner {
            Owner::Host(handle) => &mut self.host[group * self.settings.handles.len() + usize::from(handle)],
            Owner::CopiesOf(_) | Owner::SharedCopies => {
                let place = self.copies_of(group, owner);
                &mut self.copies[place]
            }
        };
        match open.unit() {
            None => open.open(unit, blocks.into_iter(), self.nand.geometry()),
            Some(_) => self.close(unit),
        }
    }

    /// Completes an interrupted collection of a group before hosts take the space it needs.
    fn complete(&mut self, group: usize, at: T::Moment) -> Result<(), TranslationError> {
        while self.units.erased_in(group) == 0
            && let Some(row) = self.emptiest_that_fits(group)
        {
            self.collect((group, row), at)?;
        }
        while (1..self.settings.reserve).contains(&self.units.erased_in(group))
            && self.victims[group].invalid_in_candidates() >= u64::from(self.units.pages())
        {
            self.collect_next(group, at)?;
        }
        Ok(())
    }

    /// The candidate with the most invalid pages of those whose valid pages fit into the open unit for their copies.
    fn emptiest_that_fits(&self, group: usize) -> Option<EraseBlock> {
        let victims = &self.victims[group];
        let candidates = (0..self.units.rows()).map(EraseBlock).filter(|row| victims.is_candidate(*row));
        let fitting = candidates.filter(|row| {
            let valid = self.units.pages() - victims.invalid(*row);
            let owner = self.owners[self.units.unit_at(group, *row).index()];
            let open = &self.copies[self.copies_of(group, owner)];
            u64::from(valid) <= open.room() && valid < self.units.pages()
        });
        fitting.max_by_key(|row| victims.invalid(*row))
    }
}
