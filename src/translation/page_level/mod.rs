//! The page-level translation layer: a map from every logical page to any physical one.
//!
//! The [`PageMap`] decides where the map is stored: completely in RAM (`page`), or on flash with a part of it in RAM
//! (`dftl`, [`super::dftl`]). All else is the same code.
//!
//! A write takes the next page of its stream's frontier and invalidates the page of the old version. When a frontier
//! needs a block and only the reserve is erased, collection copies the valid pages of a victim to the copy frontier and
//! erases the victim.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the layer: its blocks, host reads and writes |
//! | `collection` | garbage collection and wear levelling |
//! | `map` | the seam of the map |
//! | `map_pages` | the pages of a map on flash |
//! | `pacing` | collection in steps between host writes |
//! | `placement` | pages on the plane of their address |
//! | `rebuild` | rebuilds the map after a power cut |
//! | `settings` | the options |
//! | `slc_cache` | blocks in SLC mode before the others, and their folding |
//! | `slc_settings` | the options of that |
//! | `upkeep` | refresh, scrub and bad blocks, on flash with errors |
//! | `victim_sets` | the candidates of collection, by plane or by stream |
//!
//! Guarantees: a read returns the newest write; a copy keeps the content label; collection never needs more erased
//! blocks than the reserve. Settings with too little spare space are rejected ([`PageSettings::read`]).

mod collection;
mod map;
mod map_pages;
mod pacing;
mod placement;
mod rebuild;
pub(super) mod settings;
mod slc_cache;
pub(super) mod slc_settings;
mod upkeep;
mod victim_sets;

pub use map::{Miss, PageMap, RamMap};
pub use pacing::PaceSettings;
pub use placement::{Part, Place};
pub use settings::{KIND, PageSettings, ReadVictim, Streams, VICTIMS, WearLevelling};
pub use slc_settings::SlcSettings;

use super::free_blocks::{FoundBlock, FreeBlocks};
use super::frontier::Frontier;
use super::valid_pages::ValidPages;
use super::{Flash, PageWrite, Translation, TranslationError, UNMAPPED, read_newest};
use crate::device::nand::{EraseBlock, LogicalPage, Nand, PhysicalPage, Spare, SpareWord, Timing};
use crate::label::{Cause, Label, Tally};
use crate::time::Time;
use pacing::Pacing;
use slc_cache::SlcCache;
use std::collections::BTreeSet;
use upkeep::Upkeep;
use victim_sets::VictimSets;

/// A page-level translation layer on flash.
pub struct PageLevel<T: Timing, M = RamMap> {
    nand: Nand<T>,
    map: M,
    valid: ValidPages,
    free: FreeBlocks,
    victims: VictimSets,
    /// The stream of each block's pages.
    stream_of_block: Vec<u8>,
    /// The frontiers of host writes, by stream.
    host: Vec<Frontier>,
    /// The frontiers of copies, by stream; empty if they share the host's.
    copies: Vec<Frontier>,
    /// The frontier of cold pages, moved by static wear levelling.
    cold: Frontier,
    /// Closed blocks by erase count, for static wear levelling.
    closed_by_wear: BTreeSet<(u32, EraseBlock)>,
    settings: PageSettings,
    seed: u64,
    /// True if collection has found too little space for long: work that can wait, waits.
    is_short_of_space: bool,
    retired: u32,
    sent: Tally,
    /// Pages programmed: the clock of ages.
    written: u64,
    /// Sum and count of the occupied pages, valid or not, at each choice of a victim.
    occupied: (u128, u64),
    /// The words of the last victim's valid pages, and the first of their places on each plane: kept for their memory.
    words: Vec<SpareWord>,
    places: Vec<PhysicalPage>,
    /// The blocks in SLC mode, if there is such a cache.
    cache: Option<Box<SlcCache>>,
    /// The collections in steps, if there are such.
    pacing: Option<Box<Pacing<T::Moment>>>,
    /// The number of pages programmed at which the next step may be due; never without a pace.
    pace_at: u64,
    /// The planes of consecutive pages, until they repeat, if a page is on that of its address.
    planes: Option<Box<[u32]>>,
    /// On flash with errors.
    upkeep: Option<Box<Upkeep>>,
}

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// A drive with nothing written, and an empty map.
    pub fn new(nand: Nand<T>, settings: &PageSettings, map: M, seed: u64) -> PageLevel<T, M> {
        if nand.has_errors() {
            return PageLevel::with_errors(nand, &Upkeep::settings(settings), map, seed);
        }
        let mut drive = PageLevel::without_blocks(nand, settings, map, seed);
        let (fixed, geometry) = (settings.fixed_slc_blocks(), *drive.nand.geometry());
        drive.free.put_range(fixed..geometry.blocks, &geometry);
        if let Some(cache) = &mut drive.cache {
            cache.free().put_range(0..fixed, &geometry);
        }
        drive
    }

    /// The same on flash with errors, of which some blocks may be bad.
    fn with_errors(nand: Nand<T>, settings: &PageSettings, map: M, seed: u64) -> PageLevel<T, M> {
        let mut drive = PageLevel::without_blocks(nand, settings, map, seed);
        for block in (0..drive.nand.geometry().blocks).map(EraseBlock) {
            drive.retired += u32::from(drive.free.put_found(block, &drive.nand) != FoundBlock::Erased);
        }
        drive.check_spare_blocks();
        drive
    }

    /// A drive before its blocks are added.
    fn without_blocks(mut nand: Nand<T>, settings: &PageSettings, map: M, seed: u64) -> PageLevel<T, M> {
        let geometry = *nand.geometry();
        let by_wear = settings.wear != WearLevelling::None;
        if settings.fixed_slc_blocks() > 0 {
            nand.fix_slc(settings.fixed_slc_blocks());
        }
        let streams = settings.streams.count() + usize::from(M::ON_FLASH);
        let frontier = |_| {
            let frontier = Frontier::new(geometry.units(), geometry.pages_per_program);
            match settings.place {
                Place::Turn if settings.pace.is_some() => frontier.staggered(geometry.pages_per_block),
                Place::Turn => frontier,
                Place::Address(_) => frontier.staying(),
            }
        };
        let frontiers = || (0..streams).map(frontier).collect::<Vec<_>>();
        PageLevel {
            map,
            valid: ValidPages::new(&geometry),
            free: FreeBlocks::new(&geometry, by_wear).waiting_for(settings.ahead / 2),
            victims: VictimSets::new(settings, &geometry, streams, seed),
            stream_of_block: vec![0; geometry.blocks as usize],
            host: frontiers(),
            copies: if settings.shared_frontier { Vec::new() } else { frontiers() },
            cold: Frontier::new(1, geometry.pages_per_program),
            closed_by_wear: BTreeSet::new(),
            settings: settings.clone(),
            seed,
            is_short_of_space: false,
            retired: 0,
            sent: Tally::default(),
            written: 0,
            occupied: (0, 0),
            words: Vec::with_capacity(geometry.pages_per_block as usize + 1),
            places: Vec::with_capacity(geometry.units() as usize),
            cache: settings.slc.map(|slc| Box::new(SlcCache::new(slc, &geometry, by_wear))),
            pacing: settings
                .pace
                .map(|pace| Box::new(Pacing::new(pace, geometry.pages_per_block, geometry.pages_per_program))),
            pace_at: if settings.pace.is_some() { 0 } else { u64::MAX },
            planes: settings.place.planes(&geometry),
            upkeep: Upkeep::of(&nand, settings),
            nand,
        }
    }

    #[inline]
    fn stream_of(&self, write: &PageWrite) -> usize {
        match self.settings.streams {
            Streams::None => 0,
            Streams::Content => write.provenance.content as usize,
            Streams::Hint(hints) => (write.stream % hints) as usize,
        }
    }

    #[inline(always)]
    fn invalidate(&mut self, page: PhysicalPage) {
        let block = self.nand.geometry().block_of(page);
        self.valid.clear(page);
        self.victims.invalidate(block, &self.stream_of_block, self.written);
    }

    /// Fills the pages of flash that wait for more pages; returns when they are programmed.
    fn fill_open_pages(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        if self.nand.geometry().pages_per_program == 1 {
            return Ok(done);
        }
        for frontier in self.host.iter_mut().chain(&mut self.copies).chain([&mut self.cold]) {
            let mut programmed = None;
            while let Some(place) = frontier.take_rest() {
                programmed = Some(self.nand.program_padding(place, at)?);
                self.sent.add(Label::again(Cause::Padding, Spare::OF_PADDING), 1);
                self.written += 1;
                let block = self.nand.geometry().block_of(place);
                self.victims.invalidate(block, &self.stream_of_block, self.written);
            }
            if let Some(programmed) = programmed {
                done = self.nand.timing().later(done, programmed);
            }
        }
        Ok(done)
    }

    /// Makes a full block a candidate, or one to fold.
    fn close(&mut self, block: EraseBlock) {
        if let Some(cache) = self.cache.as_mut().filter(|_| self.nand.is_slc(block)) {
            return cache.close(block);
        }
        let (now, erases) = (self.written, self.nand.erase_counts()[block.index()]);
        self.victims.close(block, &self.stream_of_block, now, erases);
        if let WearLevelling::Static(_) = self.settings.wear {
            self.closed_by_wear.insert((erases, block));
        }
    }
}

impl<T: Timing, M: PageMap> Translation for PageLevel<T, M> {
    type Timing = T;

    fn timing(&mut self) -> &mut T {
        self.nand.timing()
    }

    fn name(&self) -> &'static str {
        M::STATION
    }

    // A write buffer calls it, too: of two callers the compiler would inline it in none.
    #[inline(always)]
    fn write(&mut self, write: PageWrite, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let at = self.load_entry(write.page, at)?;
        let stream = self.stream_of(&write);
        if let Some(planes) = &self.planes {
            self.host[stream].go_on_at(placement::plane_of(planes, write.page));
        }
        let to = match self.host[stream].take() {
            Some(page) => page,
            None => self.refill(stream, write.page, at)?,
        };
        debug_assert!(u64::from(write.page.0) < self.settings.exported_pages, "the host has no page {}", write.page.0);
        debug_assert!(!self.valid.contains(to), "page {} is given out once between erases", to.0);
        let from = self.map.update(write.page, to.0);
        if from != UNMAPPED {
            self.invalidate(PhysicalPage(from));
        }
        self.valid.set(to);
        self.written += 1;
        self.sent.add(Label::again(Cause::HostWrite, write.provenance), 1);
        let done = self.nand.program(to, (write.page, write.provenance), write.stamp, Cause::HostWrite, at)?;
        if self.written >= self.pace_at {
            self.keep_pace(at)?;
        }
        Ok(done)
    }

    #[inline]
    fn read(&mut self, page: LogicalPage, at: T::Moment) -> Result<(Option<u32>, T::Moment), TranslationError> {
        let at = self.load_entry(page, at)?;
        let from = self.map.lookup(page);
        if from == UNMAPPED {
            return Ok((None, at));
        }
        if self.upkeep.is_some() {
            return self.read_looked_after(page, PhysicalPage(from), at);
        }
        read_newest(&mut self.nand, page, PhysicalPage(from), at)
    }

    fn failed_read(&mut self) -> Option<T::Moment> {
        self.nand.failed_read()
    }

    fn rest(&mut self, rest_ns: u64) {
        self.nand.rest(rest_ns);
    }

    #[inline]
    fn end_reads(&mut self, at: T::Moment) -> T::Moment {
        self.nand.end_reads(at)
    }

    fn flush(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        self.fill_open_pages(at)
    }

    /// With one stream of host writes, one page of flash is open.
    fn programs_in_order(&self) -> bool {
        matches!(self.settings.streams, Streams::None) && self.cache.is_none()
    }

    fn discard(&mut self, page: LogicalPage, at: T::Moment) -> Result<T::Moment, TranslationError> {
        self.check_writable(page)?;
        let at = self.load_entry(page, at)?;
        if self.map.lookup(page) != UNMAPPED {
            let from = self.map.update(page, UNMAPPED);
            self.invalidate(PhysicalPage(from));
        }
        Ok(at)
    }

    fn idle(&mut self, from: Time, until: Time) -> Result<(), TranslationError> {
        let at = self.fold_in_idle_time(from, until)?;
        let mut at = self.scrub_while_idle(at, until)?;
        while at < until && self.free.count() < self.settings.background_blocks && !self.is_read_only() {
            if self.victims.invalid_in_candidates() < u64::from(self.nand.geometry().pages_per_block) {
                break;
            }
            let begin = self.nand.timing().instant(at);
            let collected = self.collect_next(begin);
            let Some(collected) = self.or_read_only(collected)? else { break };
            match self.nand.timing().settle(collected, until) {
                Some(done) => at = done,
                None => break,
            }
        }
        Ok(())
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        self.map.prefetch(page);
    }

    #[inline(always)]
    fn prefetch_old(&self, page: LogicalPage) {
        // A request beyond the end is refused when its turn comes.
        if u64::from(page.0) >= self.settings.exported_pages {
            return;
        }
        let old = PhysicalPage(self.map.lookup(page));
        if old.0 != UNMAPPED {
            self.valid.prefetch(old);
            self.victims.prefetch(self.nand.geometry().block_of(old), &self.stream_of_block);
        }
    }

    fn exported_pages(&self) -> u64 {
        self.settings.exported_pages
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let of_cache = self.cache.iter().flat_map(|cache| cache.events());
        let upkeep = self.upkeep.iter().flat_map(|upkeep| upkeep.events());
        self.map.events().into_iter().chain(of_cache).chain(upkeep).collect()
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
        u64::from(self.free.count()) + self.cache.as_ref().map_or(0, |cache| cache.free_count().into())
    }

    fn spare_blocks(&self) -> Option<u32> {
        self.spare_blocks_left()
    }

    fn effective_overprovisioning(&self) -> f64 {
        let exported = self.settings.exported_pages as f64;
        let geometry = self.nand.geometry();
        let occupied = if self.occupied.1 > 0 {
            self.occupied.0 as f64 / self.occupied.1 as f64
        } else {
            let held = self.settings.reserve + self.settings.ahead + self.settings.fixed_slc_blocks();
            (geometry.pages() - u64::from(held) * u64::from(geometry.pages_per_block)) as f64
        };
        (occupied - self.map.pages_on_flash() as f64) / exported - 1.0
    }

    fn mapping_ram_bytes(&self) -> u64 {
        self.map.ram_bytes(self.nand.geometry())
    }

    fn after_power_cut(self) -> Result<Self, TranslationError> {
        rebuild::rebuilt(self)
    }
}
