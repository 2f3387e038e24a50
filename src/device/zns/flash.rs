//! The flash below the zones: the pages that a request programs or reads, and its duration.
//!
//! A zone is one erase block on each plane, and its pages go to the planes in turn. A zone with fewer pages than planes
//! takes one page on each of that many planes, and the next zone begins where it ends.
//!
//! A write is done when it is in the drive's buffer, which survives a power cut (capacitors). A partial page stays
//! there until it is full. Full pages wait there for their planes; the buffer holds one for each plane.

use super::machine::Record;
use super::shape::ZnsShape;
use crate::device::nand::{EraseBlock, Geometry, Latencies, Reserving, Timing};
use crate::device::wait_log::{Purpose, WaitLog};
use crate::device::{FlashAccount, ZoneState};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// The flash of a drive.
#[derive(Debug)]
pub(super) struct Flash {
    timing: Option<Reserving>,
    geometry: Geometry,
    latencies: Latencies,
    page_bytes: u64,
    capacity_pages: u64,
    units: u32,
    /// The number of planes of a zone.
    width: u32,
    pages_per_block: u64,
    zones: u64,
    endurance: u32,
    programmed_pages: u64,
    /// Pages in programmed state when the drive was opened.
    programmed_before: u64,
    read_pages: u64,
    erased_blocks: u64,
    /// Pages of erased blocks that were not programmed.
    pub erased_unprogrammed_pages: u64,
    /// Blocks of padding, programmed when a zone was finished.
    pub padded_blocks: u64,
    /// Blocks in the buffer that were dropped by a reset of their zone.
    pub dropped_blocks: u64,
    /// The plane that serves the next page of a conventional zone.
    next_unit: u32,
    /// The time at which each page of the buffer was or will be free, and the one to take next.
    buffer: Box<[Time]>,
    next_place: usize,
}

impl Flash {
    /// The flash of a drive of this shape, whose sequential zones have these records; `is_timed` enables the timing
    /// model.
    pub fn opened<'r>(shape: &ZnsShape, is_timed: bool, zones: impl Iterator<Item = &'r Record>) -> Flash {
        let flash = Flash::new(shape, is_timed);
        Flash { programmed_before: flash.programmed_in(zones), ..flash }
    }

    fn new(shape: &ZnsShape, is_timed: bool) -> Flash {
        let units = shape.channels * shape.dies * shape.planes;
        let page_bytes = u64::from(shape.page_bytes);
        let capacity_pages = shape.capacity_blocks * BLOCK_BYTES / page_bytes;
        let width = u64::from(units).min(capacity_pages) as u32;
        let planes = (shape.channels, shape.dies, shape.planes);
        let geometry = Geometry::new(0, shape.page_bytes, 1, planes).expect("a drive without blocks is not too large");
        Flash {
            timing: is_timed.then(|| Reserving::new(geometry, shape.latencies, None)),
            geometry,
            latencies: shape.latencies,
            page_bytes,
            capacity_pages,
            units,
            width,
            pages_per_block: capacity_pages.div_ceil(u64::from(width)),
            zones: u64::from(shape.zones - shape.conventional),
            endurance: shape.endurance,
            programmed_pages: 0,
            programmed_before: 0,
            read_pages: 0,
            erased_blocks: 0,
            erased_unprogrammed_pages: 0,
            padded_blocks: 0,
            dropped_blocks: 0,
            next_unit: 0,
            buffer: vec![Time::ZERO; units as usize].into(),
            next_place: 0,
        }
    }

    /// Records the waits of its operations from now on. All planes are idle.
    pub fn record(&mut self, log: &WaitLog) {
        if self.is_timed() {
            self.timing = Some(Reserving::new(self.geometry, self.latencies, Some(log)));
        }
    }

    pub fn is_timed(&self) -> bool {
        self.timing.is_some()
    }

    /// The number of full pages in the first `blocks` blocks of a zone.
    #[inline]
    fn pages_filled(&self, blocks: u64) -> u64 {
        blocks * BLOCK_BYTES / self.page_bytes
    }

    /// The number of programmed pages of a zone. All pages of a full zone are programmed.
    fn pages_of_zone(&self, written: u64, is_full: bool) -> u64 {
        if is_full { self.capacity_pages } else { self.pages_filled(written) }
    }

    /// The number of programmed pages of zones.
    fn programmed_in<'r>(&self, zones: impl Iterator<Item = &'r Record>) -> u64 {
        zones.map(|zone| self.pages_of_zone(zone.written, zone.state == ZoneState::Full)).sum()
    }

    /// The plane of a page of a zone. Zones on all planes begin on different ones.
    #[inline]
    fn unit(&self, zone: u32, page: u64) -> u32 {
        let first = if self.width == self.units { u64::from(zone) } else { u64::from(zone) * u64::from(self.width) };
        ((first + page % u64::from(self.width)) % u64::from(self.units)) as u32
    }

    /// Puts blocks of a zone into the buffer, and programs the pages that they fill. Returns the time at which the
    /// buffer has taken them all.
    #[inline]
    pub fn write(&mut self, zone: u32, blocks: Range<u64>, purpose: Purpose, at: Time) -> Time {
        let pages = self.pages_filled(blocks.start)..self.pages_filled(blocks.end);
        if pages.is_empty() {
            return at;
        }
        self.programmed_pages += pages.end - pages.start;
        let mut taken = at;
        for page in pages {
            taken = self.program_buffered(self.unit(zone, page), purpose, taken);
        }
        taken
    }

    /// Takes a full page into the buffer when it has space, and programs it. Returns the time at which the buffer has
    /// taken it.
    fn program_buffered(&mut self, unit: u32, purpose: Purpose, at: Time) -> Time {
        let Some(timing) = &mut self.timing else { return at };
        let place = &mut self.buffer[self.next_place];
        let taken = at.max(*place);
        // The page leaves the buffer after its transfer over the channel.
        *place = timing.program(EraseBlock(unit), purpose, taken) - self.latencies.program_ns;
        self.next_place = (self.next_place + 1) % self.buffer.len();
        taken
    }

    /// Reads blocks of a zone with `written` blocks: programmed pages from flash, others from the buffer.
    pub fn read(&mut self, zone: u32, blocks: Range<u64>, written: u64, at: Time) -> Time {
        let filled = self.pages_filled(written);
        let from = (blocks.start * BLOCK_BYTES / self.page_bytes).min(filled);
        let end = (blocks.end * BLOCK_BYTES).div_ceil(self.page_bytes).min(filled);
        self.read_pages += end.saturating_sub(from);
        let mut done = at;
        for page in from..end {
            let unit = EraseBlock(self.unit(zone, page));
            let Some(timing) = &mut self.timing else { break };
            done = done.max(timing.read(unit, Purpose::Host, at));
        }
        done
    }

    /// Programs the remaining pages of a zone, with the content of the buffer in the first of them. Returns the
    /// completion time.
    pub fn finish(&mut self, zone: u32, written: u64, at: Time) -> Time {
        let pages = self.pages_filled(written)..self.capacity_pages;
        self.padded_blocks += self.capacity_pages * self.page_bytes / BLOCK_BYTES - written;
        self.programmed_pages += pages.end - pages.start;
        let mut done = at;
        for page in pages {
            let unit = EraseBlock(self.unit(zone, page));
            let Some(timing) = &mut self.timing else { break };
            done = done.max(timing.program(unit, Purpose::Host, at));
        }
        done
    }

    /// True if a zone with `written` blocks has a programmed page, and must be erased to be empty.
    pub fn needs_erase(&self, written: u64, is_full: bool) -> bool {
        self.pages_of_zone(written, is_full) > 0
    }

    /// Resets a zone: drops its blocks in the buffer and, if a page is programmed, erases a block on each of its
    /// planes.
    pub fn reset(&mut self, zone: u32, written: u64, is_full: bool, at: Time) -> Time {
        let filled = self.pages_of_zone(written, is_full);
        if !is_full {
            self.dropped_blocks += written - filled * self.page_bytes / BLOCK_BYTES;
        }
        if filled == 0 {
            return at;
        }
        self.erased_blocks += u64::from(self.width);
        self.erased_unprogrammed_pages += u64::from(self.width) * self.pages_per_block - filled;
        let mut done = at;
        for page in 0..u64::from(self.width) {
            let unit = EraseBlock(self.unit(zone, page));
            if let Some(timing) = &mut self.timing {
                done = done.max(timing.erase(unit, at));
            }
        }
        done
    }

    /// Serves blocks of a conventional zone: as many pages as they touch, on the planes in turn. Their layout on flash
    /// is not modelled, so they do not count as pages.
    pub fn pass_conventional(&mut self, blocks: Range<u64>, write: Option<Purpose>, at: Time) -> Time {
        let from = blocks.start * BLOCK_BYTES / self.page_bytes;
        let end = (blocks.end * BLOCK_BYTES).div_ceil(self.page_bytes);
        let mut done = at;
        for page in from..end {
            if let Some(purpose) = write {
                done = self.program_buffered(self.next_unit, purpose, done);
                self.next_unit = (self.next_unit + 1) % self.units;
            } else if let Some(timing) = &mut self.timing {
                let unit = EraseBlock((page % u64::from(self.units)) as u32);
                done = done.max(timing.read(unit, Purpose::Host, at));
            }
        }
        done
    }

    /// Its counts; `zones` are the records of the sequential zones.
    pub fn account<'r>(&self, zones: impl Iterator<Item = &'r Record> + Clone) -> FlashAccount {
        let block_bytes = self.pages_per_block * self.page_bytes;
        FlashAccount {
            page_bytes: self.page_bytes,
            pages_per_block: self.pages_per_block,
            programmed_pages: self.programmed_pages,
            programs: self.programmed_pages,
            program_bytes: self.page_bytes,
            read_pages: self.read_pages,
            erased_blocks: self.erased_blocks,
            erased_unprogrammed_pages: self.erased_unprogrammed_pages,
            programmed_before: self.programmed_before,
            free_blocks: zones.clone().filter(|zone| zone.state == ZoneState::Empty).count() as u64
                * u64::from(self.width),
            programmed_now: self.programmed_in(zones.clone()),
            erase_counts: zones.map(|zone| zone.erases).collect(),
            endurance: self.endurance,
            worn_before: 0,
            bad_blocks: None,
            spare_blocks_left: None,
            raw_bytes: self.zones * u64::from(self.width) * block_bytes,
            energy: None,
            by_mode: None,
        }
    }
}
