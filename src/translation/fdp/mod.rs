//! `page` with `fdp=`: flexible data placement. A page-level map, whose unit of collection is a reclaim unit.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the layer: host reads and writes, placement |
//! | `units` | reclaim units, and their owners |
//! | `collection` | garbage collection |
//! | `record` | statistics and events |
//! | `rebuild` | the units and the map after a power cut |
//! | `settings` | the options |
//!
//! A handle has an open unit in each group. A write goes to the unit of its placement identifier; without one, or with a
//! wrong one, to the default handle's in the group with the most room. When a unit is full its handle refers to an erased one,
//! and the group collects if only its reserve is erased. A host may give up a unit before
//! ([`Translation::update_handle`]).
//!
//! Guarantees: a unit holds writes of one handle, or copies; copies of a persistently isolated handle are not mixed with
//! others. A read returns the newest write. A group never needs more erased units than its reserve: no group holds more
//! valid pages than leaves it a unit of invalid ones, and a write that would exceed this goes to another group.

mod collection;
mod rebuild;
mod record;
mod settings;
mod units;

pub use settings::{FdpSettings, PlacedBy};

use super::page_level::{PageMap, RamMap};
use super::valid_pages::ValidPages;
use super::victims::Victims;
use super::{Flash, PageWrite, Translation, TranslationError, UNMAPPED, read_newest};
use crate::device::nand::{LogicalPage, Nand, PhysicalPage, Timing};
use crate::device::{PlacementAccount, PlacementEventKind};
use crate::label::{Cause, Label, Tally};
use crate::time::Time;
use record::Record;
use units::{OpenUnit, Owner, Units};

/// A page-level translation layer that collects reclaim units.
pub struct FdpLayer<T: Timing> {
    nand: Nand<T>,
    map: RamMap,
    valid: ValidPages,
    units: Units,
    /// The owner of each unit that is not erased.
    owners: Vec<Owner>,
    /// The candidates of each group, by row.
    victims: Vec<Victims>,
    /// The open units of the host, by placement identifier.
    host: Vec<OpenUnit>,
    /// The open units for copies, by group.
    copies: Vec<OpenUnit>,
    /// Valid pages of each group.
    valid_in_group: Vec<u64>,
    settings: FdpSettings,
    seed: u64,
    record: Record,
    sent: Tally,
    /// Pages programmed: the clock of ages.
    written: u64,
    /// Sum and count of the occupied pages, valid or not, at each choice of a victim.
    occupied: (u128, u64),
}

impl<T: Timing> FdpLayer<T> {
    /// A drive with nothing written.
    pub fn new(nand: Nand<T>, settings: &FdpSettings, seed: u64) -> FdpLayer<T> {
        let mut drive = FdpLayer::without_units(nand, settings, seed);
        drive.units.all().for_each(|unit| drive.units.put(unit, 0));
        drive
    }

    /// A drive before its erased units are added.
    fn without_units(nand: Nand<T>, settings: &FdpSettings, seed: u64) -> FdpLayer<T> {
        let geometry = *nand.geometry();
        let units = Units::new(&geometry, settings.groups, settings.by_wear);
        let open = |count: usize| -> Vec<OpenUnit> {
            (0..count).map(|_| OpenUnit::new(units.planes_of_group(), geometry.pages_per_program)).collect()
        };
        let victims = |_| Victims::new(settings.victim.clone(), units.rows(), units.pages(), seed);
        FdpLayer {
            map: RamMap::new(settings.exported_pages),
            valid: ValidPages::new(&geometry),
            owners: vec![Owner::Host(settings.default_handle); units.all().count()],
            victims: (0..units.groups()).map(victims).collect(),
            host: open(settings.identifiers()),
            copies: open(units.groups() * settings.open_for_copies()),
            valid_in_group: vec![0; units.groups()],
            units,
            settings: settings.clone(),
            seed,
            record: Record::new(settings),
            sent: Tally::default(),
            written: 0,
            occupied: (0, 0),
            nand,
        }
    }

    /// The open unit for a write.
    #[inline]
    fn place_of(&mut self, write: &PageWrite) -> usize {
        let place = match self.settings.placed_by {
            PlacedBy::Identifier if write.stream != 0 && usize::from(write.stream) <= self.host.len() => {
                usize::from(write.stream) - 1
            }
            PlacedBy::Content => return self.default_place(write.provenance.content as usize),
            _ => return self.unplaced(write),
        };
        if self.units.groups() == 1 { place } else { self.with_room(place) }
    }

    /// The open unit for a write without a valid identifier.
    #[cold]
    fn unplaced(&mut self, write: &PageWrite) -> usize {
        if self.settings.placed_by == PlacedBy::Identifier && write.stream != 0 {
            self.record.note(PlacementEventKind::InvalidIdentifier, (0, Some(write.stream - 1)), None);
        }
        self.default_place(self.settings.default_handle.into())
    }

    /// The open unit of a handle in the group with the most room.
    fn default_place(&self, handle: usize) -> usize {
        self.roomiest() * self.settings.handles.len() + handle
    }

    fn roomiest(&self) -> usize {
        if self.units.groups() == 1 {
            return 0;
        }
        let room = |group: &usize| self.most_valid(*group).saturating_sub(self.valid_in_group[*group]);
        // Of equal ones the first.
        (0..self.units.groups()).rev().max_by_key(room).expect("there is a group")
    }

    /// The same handle, in another group if that of `place` may hold no more.
    fn with_room(&mut self, place: usize) -> usize {
        let handles = self.settings.handles.len();
        let group = place / handles;
        if self.valid_in_group[group] < self.most_valid(group) {
            return place;
        }
        self.record.redirected_pages += 1;
        self.default_place(place % handles)
    }

    #[inline]
    fn invalidate(&mut self, page: PhysicalPage) {
        let (group, row) = self.units.place(self.units.unit_of(self.nand.geometry().block_of(page)));
        self.valid.clear(page);
        self.valid_in_group[group] -= 1;
        self.victims[group].invalidate(row, self.written);
    }
}

impl<T: Timing> Translation for FdpLayer<T> {
    type Timing = T;

    fn timing(&mut self) -> &mut T {
        self.nand.timing()
    }

    fn name(&self) -> &'static str {
        RamMap::STATION
    }

    #[inline]
    fn write(&mut self, write: PageWrite, at: T::Moment) -> Result<T::Moment, TranslationError> {
        debug_assert!(u64::from(write.page.0) < self.settings.exported_pages, "the host has no page {}", write.page.0);
        let place = self.place_of(&write);
        let handles = self.settings.handles.len();
        let (group, handle) = if self.units.groups() == 1 { (0, place) } else { (place / handles, place % handles) };
        let to = match self.host[place].take() {
            Some(page) => page,
            None => self.refill(place, at)?,
        };
        debug_assert!(!self.valid.contains(to), "page {} is given out once between erases", to.0);
        let from = self.map.update(write.page, to.0);
        if from != UNMAPPED {
            self.invalidate(PhysicalPage(from));
        }
        self.valid.set(to);
        self.valid_in_group[group] += 1;
        self.record.handles[handle].host_pages += 1;
        self.written += 1;
        self.sent.add(Label::again(Cause::HostWrite, write.provenance), 1);
        Ok(self.nand.program(to, (write.page, write.provenance), write.stamp, Cause::HostWrite, at)?)
    }

    #[inline]
    fn read(&mut self, page: LogicalPage, at: T::Moment) -> Result<(Option<u32>, T::Moment), TranslationError> {
        match self.map.lookup(page) {
            UNMAPPED => Ok((None, at)),
            from => read_newest(&mut self.nand, page, PhysicalPage(from), at),
        }
    }

    #[inline]
    fn end_reads(&mut self, at: T::Moment) -> T::Moment {
        self.nand.end_reads(at)
    }

    fn flush(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        self.fill_open_pages(at)
    }

    fn discard(&mut self, page: LogicalPage, at: T::Moment) -> Result<T::Moment, TranslationError> {
        if self.map.lookup(page) != UNMAPPED {
            let from = self.map.update(page, UNMAPPED);
            self.invalidate(PhysicalPage(from));
        }
        Ok(at)
    }

    fn idle(&mut self, from: Time, until: Time) -> Result<(), TranslationError> {
        let target = (f64::from(self.units.rows()) * self.settings.background) as u32;
        let mut at = from;
        for group in 0..self.units.groups() {
            while at < until
                && self.units.erased_in(group) < target
                && self.victims[group].invalid_in_candidates() >= u64::from(self.units.pages())
            {
                let begin = self.nand.timing().instant(at);
                let collected = self.collect_next(group, begin)?;
                match self.nand.timing().settle(collected, until) {
                    Some(done) => at = done,
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        self.map.prefetch(page);
    }

    #[inline]
    fn prefetch_old(&self, page: LogicalPage) {
        // A request beyond the end is refused when its turn comes.
        if u64::from(page.0) >= self.settings.exported_pages {
            return;
        }
        let old = PhysicalPage(self.map.lookup(page));
        if old.0 != UNMAPPED {
            self.valid.prefetch(old);
            let (group, row) = self.units.place(self.units.unit_of(self.nand.geometry().block_of(old)));
            self.victims[group].prefetch(row);
        }
    }

    fn exported_pages(&self) -> u64 {
        self.settings.exported_pages
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let of_host = PlacementEventKind::ALL.into_iter().filter(|kind| kind.is_of_host());
        let counts = of_host.map(|kind| (kind.name(), self.record.counts[kind as usize]));
        let others = [
            ("fdp_units_reallocated", self.record.moved_units),
            ("fdp_handles_modified", self.record.followed_units),
            ("fdp_redirected_pages", self.record.redirected_pages),
        ];
        counts.chain(others).collect()
    }

    fn placement(&self) -> Option<PlacementAccount> {
        let geometry = self.nand.geometry();
        let page_bytes = u64::from(geometry.page_bytes);
        let unit_bytes = u64::from(self.units.pages()) * page_bytes;
        let available = |open: &OpenUnit| open.unit().map_or(unit_bytes, |_| open.room() * page_bytes);
        let block_bytes = u64::from(geometry.pages_per_block) * page_bytes;
        Some(PlacementAccount {
            page_bytes,
            unit_bytes,
            groups: self.settings.groups,
            default_handle: self.settings.default_handle,
            is_by_identifier: self.settings.placed_by == PlacedBy::Identifier,
            handles: self.record.handles.clone(),
            available: self.host.iter().map(available).collect(),
            host_bytes: self.sent.of_cause(Cause::HostWrite) * page_bytes,
            media_bytes: self.sent.total() * page_bytes,
            erased_bytes: self.nand.counts().erased_blocks * block_bytes,
            shared_copied_pages: self.record.shared_copied_pages,
            redirected_pages: self.record.redirected_pages,
            counts: self.record.counts,
            host_events: self.record.events(true),
            drive_events: self.record.events(false),
        })
    }

    fn note_time(&mut self, at: Time) {
        self.record.now = at;
    }

    fn update_handle(&mut self, identifier: u8, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let (place, handles) = (usize::from(identifier), self.settings.handles.len());
        assert!(place < self.host.len(), "the drive has no placement identifier {identifier}");
        self.record.handles[place % handles].updates += 1;
        let done = self.fill_open_page(place, at)?;
        let has_room = self.host[place].has_room();
        if let Some(unit) = self.host[place].give_up() {
            self.close(unit);
            if has_room {
                self.record.note(PlacementEventKind::UnitNotFilled, (place / handles, Some(identifier)), None);
            }
        }
        Ok(done)
    }

    fn sent(&self) -> &Tally {
        &self.sent
    }

    fn programmed(&self) -> Tally {
        self.nand.programmed()
    }

    fn flash(&self) -> Flash<'_> {
        Flash::of(&self.nand)
    }

    fn free_blocks(&self) -> u64 {
        let of_units = self.units.erased() * self.units.planes_of_group();
        (of_units + self.units.unused_blocks(self.nand.geometry())).into()
    }

    fn effective_overprovisioning(&self) -> f64 {
        let occupied = match self.occupied {
            (_, 0) => {
                let units = self.units.rows().saturating_sub(self.settings.reserve) * self.units.groups() as u32;
                f64::from(units) * f64::from(self.units.pages())
            }
            (sum, count) => sum as f64 / count as f64,
        };
        occupied / self.settings.exported_pages as f64 - 1.0
    }

    fn mapping_ram_bytes(&self) -> u64 {
        self.map.ram_bytes(self.nand.geometry())
    }

    fn after_power_cut(self) -> Result<Self, TranslationError> {
        rebuild::rebuilt(self)
    }
}
