//! The page-level translation layer: a map from every logical page to any physical one.
//!
//! Where the map is kept is a [`PageMap`]'s business: in RAM as a whole (`page`), or on flash with a part of it in RAM
//! (`dftl`, [`super::dftl`]). All else is the same code.
//!
//! A write takes the next page of its stream's frontier, and the page that held the old version becomes invalid.
//! When a frontier needs a block and only the reserve is erased, collection copies the valid pages of a
//! victim to the copy frontier and erases it.
//!
//! Promises: a read returns the newest write; a copy keeps the content label of what it holds; collection never needs
//! more erased blocks than the reserve. Refuses: settings that leave too little spare space ([`PageSettings::read`]).

mod map;
mod rebuild;
pub(super) mod settings;

pub use map::{Miss, PageMap, RamMap};

pub use settings::{KIND, PageSettings, Streams, WearLevelling};

use super::free_blocks::FreeBlocks;
use super::frontier::Frontier;
use super::valid_pages::{ValidPages, lowest_bits};
use super::victims::Victims;
use super::{Flash, NOWHERE, PageWrite, Translation, TranslationError};
use crate::device::nand::{EraseBlock, Erased, LogicalPage, Nand, PhysicalPage, Spare, Timing};
use crate::label::{Cause, Content, Tally};
use crate::time::Time;
use std::collections::BTreeSet;

/// So many collections may follow each other for one block for the host before those that go on neither level wear nor
/// bring the map on flash up to date. Both take room: a drive with hardly any to spare would collect for ever.
const PRESSED_AFTER: u32 = 64;

/// A page-level translation layer on flash.
pub struct PageLevel<T, M = RamMap> {
    nand: Nand<T>,
    map: M,
    valid: ValidPages,
    free: FreeBlocks,
    /// Candidates; one set for all streams, or one for each where they have shares of the spare space.
    victims: Vec<Victims>,
    /// The stream whose pages a block holds.
    stream_of_block: Vec<u8>,
    /// Where host writes go, by stream.
    host: Vec<Frontier>,
    /// Where copies go, by stream; empty if they share the host's.
    copies: Vec<Frontier>,
    /// Where static wear levelling puts what does not change.
    settled: Frontier,
    /// Closed blocks by erase count, for static wear levelling.
    closed_by_wear: BTreeSet<(u32, EraseBlock)>,
    settings: PageSettings,
    seed: u64,
    /// Collection has looked for room for long: what takes room, and can wait, waits.
    is_pressed: bool,
    retired: u32,
    sent: Tally,
    /// Pages programmed: the clock by which ages are measured.
    written: u64,
    /// Sum and count of the page slots that hold something, live or not, when a victim is chosen.
    occupied: (u128, u64),
}

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// A drive with nothing written, and an empty map.
    pub fn new(nand: Nand<T>, settings: &PageSettings, map: M, seed: u64) -> PageLevel<T, M> {
        let mut drive = PageLevel::without_blocks(nand, settings, map, seed);
        let geometry = *drive.nand.geometry();
        for block in (0..geometry.blocks).map(EraseBlock) {
            drive.free.put(geometry.unit_of(block), block, 0);
        }
        drive
    }

    /// A drive that has yet to learn what its blocks hold.
    fn without_blocks(nand: Nand<T>, settings: &PageSettings, map: M, seed: u64) -> PageLevel<T, M> {
        let geometry = *nand.geometry();
        let streams = settings.streams.count() + usize::from(M::ON_FLASH);
        let frontiers = || (0..streams).map(|_| Frontier::new(geometry.units())).collect::<Vec<_>>();
        let sets = if settings.spare_shares.is_some() { streams } else { 1 };
        PageLevel {
            map,
            valid: ValidPages::new(&geometry),
            free: FreeBlocks::new(&geometry, settings.wear != WearLevelling::None),
            victims: (0..sets)
                .map(|_| Victims::new(settings.victim, geometry.blocks, geometry.pages_per_block, seed))
                .collect(),
            stream_of_block: vec![0; geometry.blocks as usize],
            host: frontiers(),
            copies: if settings.shared_frontier { Vec::new() } else { frontiers() },
            settled: Frontier::new(1),
            closed_by_wear: BTreeSet::new(),
            settings: settings.clone(),
            seed,
            is_pressed: false,
            retired: 0,
            sent: Tally::default(),
            written: 0,
            occupied: (0, 0),
            nand,
        }
    }

    #[inline]
    fn stream_of(&self, write: &PageWrite) -> usize {
        match self.settings.streams {
            Streams::None => 0,
            Streams::Content => write.content as usize,
            Streams::Hint(hints) => (write.stream % hints) as usize,
        }
    }

    /// The candidates that a block of this stream belongs to.
    #[inline]
    fn victims_of(&mut self, stream: usize) -> &mut Victims {
        let set = if self.victims.len() == 1 { 0 } else { stream };
        &mut self.victims[set]
    }

    #[inline]
    fn invalidate(&mut self, page: PhysicalPage) {
        let block = self.nand.geometry().block_of(page);
        self.valid.clear(page);
        let stream = if self.victims.len() == 1 { 0 } else { self.stream_of_block[block.index()] as usize };
        let now = self.written;
        self.victims_of(stream).invalidate(block, now);
    }

    /// A block is full: it can be collected from now on.
    fn close(&mut self, block: EraseBlock) {
        let stream = self.stream_of_block[block.index()] as usize;
        let now = self.written;
        self.victims_of(stream).close(block, now);
        if let WearLevelling::Static(_) = self.settings.wear {
            self.closed_by_wear.insert((self.nand.erase_counts()[block.index()], block));
        }
    }

    /// Gives the frontier of host writes a block, after collecting until more than the reserve is erased.
    #[cold]
    fn refill(&mut self, stream: usize, at: Time) -> Result<PhysicalPage, TranslationError> {
        if let Some(full) = self.host[stream].close() {
            self.close(full);
        }
        let mut collections = 0;
        while self.free.count() <= self.settings.reserve {
            self.is_pressed = collections >= PRESSED_AFTER;
            self.collect_one(at)?;
            collections += 1;
            // Copies that share the frontier may have opened a block for it.
            if let Some(page) = self.host[stream].take() {
                self.is_pressed = false;
                return Ok(page);
            }
        }
        self.is_pressed = false;
        // Copies that share the frontier may have filled the block that they opened.
        if let Some(full) = self.host[stream].close() {
            self.close(full);
        }
        let block = self.free.take(self.host[stream].plane()).expect("more than the reserve is erased");
        self.stream_of_block[block.index()] = stream as u8;
        self.host[stream].open(block, self.nand.geometry());
        Ok(self.host[stream].take().expect("an erased block has room"))
    }

    #[inline]
    fn copy_frontier(&mut self, stream: usize) -> &mut Frontier {
        if self.copies.is_empty() { &mut self.host[stream] } else { &mut self.copies[stream] }
    }

    /// The next pages for copies that follow each other, at most `most`, and how many.
    #[inline]
    fn copy_run(&mut self, stream: usize, cause: Cause, most: u32) -> Result<(PhysicalPage, u32), TranslationError> {
        if cause == Cause::WearLevelling {
            return self.settled_run(stream, most);
        }
        match self.copy_frontier(stream).take_run(most) {
            Some(run) => Ok(run),
            None => self.refill_copies(stream, most),
        }
    }

    /// A plane without an open block gets one while there are any, else its turn passes: a victim's pages always fit,
    /// as at least one block is erased when a collection begins.
    #[cold]
    fn refill_copies(&mut self, stream: usize, most: u32) -> Result<(PhysicalPage, u32), TranslationError> {
        for _ in 0..self.copy_frontier(stream).planes() {
            if let Some(run) = self.copy_frontier(stream).take_run(most) {
                return Ok(run);
            }
            if let Some(full) = self.copy_frontier(stream).close() {
                self.close(full);
            }
            let plane = self.copy_frontier(stream).plane();
            if let Some(block) = self.free.take(plane) {
                let geometry = *self.nand.geometry();
                self.stream_of_block[block.index()] = stream as u8;
                self.copy_frontier(stream).open(block, &geometry);
            } else {
                self.copy_frontier(stream).pass_turn();
            }
        }
        self.copy_frontier(stream).take_run(most).ok_or_else(|| self.worn_out())
    }

    /// The next pages of the most worn erased block.
    fn settled_run(&mut self, stream: usize, most: u32) -> Result<(PhysicalPage, u32), TranslationError> {
        if let Some(run) = self.settled.take_run(most) {
            return Ok(run);
        }
        if let Some(full) = self.settled.close() {
            self.close(full);
        }
        let block = self.free.take_most_worn().ok_or_else(|| self.worn_out())?;
        self.stream_of_block[block.index()] = stream as u8;
        self.settled.open(block, self.nand.geometry());
        Ok(self.settled.take_run(most).expect("an erased block has room"))
    }

    fn worn_out(&self) -> TranslationError {
        TranslationError::WornOut {
            retired: self.retired,
            blocks: self.nand.geometry().blocks,
            endurance: self.nand.endurance(),
        }
    }

    /// The candidates to choose from: with shares of the spare space, those of the stream that has most more than its
    /// share.
    fn set_to_collect(&self) -> usize {
        let Some(shares) = &self.settings.spare_shares else { return 0 };
        let total = self.invalid_in_candidates();
        let excess = |set: usize| self.victims[set].invalid_in_candidates() as f64 - shares[set] * total as f64;
        (0..self.victims.len())
            .filter(|&set| self.victims[set].candidates() > 0)
            .max_by(|&a, &b| excess(a).total_cmp(&excess(b)))
            .unwrap_or(0)
    }

    fn invalid_in_candidates(&self) -> u64 {
        self.victims.iter().map(Victims::invalid_in_candidates).sum()
    }

    /// Chooses a victim and collects it. Says when it is erased.
    fn collect_one(&mut self, at: Time) -> Result<Time, TranslationError> {
        self.occupied.0 += u128::from(self.occupied_slots());
        self.occupied.1 += 1;
        let set = self.set_to_collect();
        let now = self.written;
        let victim = self.victims[set].choose(now).ok_or_else(|| self.worn_out())?;
        let done = self.collect(victim, Cause::GarbageCollection, at)?;
        self.level_wear(victim, at)?;
        Ok(done)
    }

    /// With static levelling: empties the least worn closed block if it lags so far behind the one that was just erased: what does not change
    /// sits in blocks that are not erased, and is moved to worn ones.
    fn level_wear(&mut self, erased: EraseBlock, at: Time) -> Result<(), TranslationError> {
        let WearLevelling::Static(gap) = self.settings.wear else { return Ok(()) };
        let Some(&(least, block)) = self.closed_by_wear.first() else { return Ok(()) };
        if self.free.count() > 1 && !self.is_pressed && self.nand.erase_counts()[erased.index()] > least + gap {
            self.collect(block, Cause::WearLevelling, at)?;
        }
        Ok(())
    }

    /// Copies what is valid in `victim` elsewhere and erases it. Says when it is erased.
    fn collect(&mut self, victim: EraseBlock, cause: Cause, at: Time) -> Result<Time, TranslationError> {
        let stream = self.stream_of_block[victim.index()] as usize;
        self.victims_of(stream).remove(victim);
        if let WearLevelling::Static(_) = self.settings.wear {
            self.closed_by_wear.remove(&(self.nand.erase_counts()[victim.index()], victim));
        }
        let mut copied = [0; Content::COUNT];
        let mut done = at;
        let words = self.valid.words_of(victim);
        self.prefetch_owners(words.start);
        for word in words.clone() {
            if word + 1 < words.end {
                self.prefetch_owners(word + 1);
            }
            let from = self.valid.page(word, 0);
            let mut left = self.valid.take_word(word);
            while left != 0 {
                let (to, room) = self.copy_run(stream, cause, left.count_ones())?;
                let pages = lowest_bits(left, room);
                left &= !pages;
                self.valid.set_run(to, room);
                let map = &mut self.map;
                let programmed = self.nand.copy((from, pages), to, cause, at, |spare, to| {
                    map.moved(spare.logical_page(), to);
                    copied[spare.content() as usize] += 1;
                })?;
                done = done.max(programmed);
            }
        }
        for (content, count) in Content::ALL.into_iter().zip(copied) {
            self.sent.add(cause, content, count);
            self.written += count;
        }
        self.victims_of(stream).erased(victim);
        let (erased, done) = self.nand.erase(victim, done)?;
        match erased {
            Erased::Usable => {
                let plane = self.nand.geometry().unit_of(victim);
                self.free.put(plane, victim, self.nand.erase_counts()[victim.index()]);
            }
            Erased::WornOut => self.retire()?,
        }
        if M::ON_FLASH && !self.is_pressed { self.write_moved(cause, done) } else { Ok(done) }
    }

    /// Brings the mapping of `page` into RAM, if it is not there, and says when it is.
    #[inline]
    fn bring(&mut self, page: LogicalPage, at: Time) -> Result<Time, TranslationError> {
        match self.map.request(page) {
            Some(miss) if M::ON_FLASH => self.load(miss, at),
            _ => Ok(at),
        }
    }

    /// Does what a miss takes: the dirty entries that it pushes out are written, then the entry is read.
    fn load(&mut self, miss: Miss, at: Time) -> Result<Time, TranslationError> {
        let mut at = at;
        if let Some(page) = miss.write {
            at = self.write_map_page(page, Cause::Mapping, at)?;
        }
        let place = miss.read.map_or(NOWHERE, |page| self.map.place(page));
        if place != NOWHERE {
            (.., at) = self.nand.read(PhysicalPage(place), Cause::Mapping, at)?;
        }
        Ok(at)
    }

    /// Writes a page of the map anew: what it said before is read, unless it is the first, and the page goes to the
    /// frontier of such pages.
    fn write_map_page(&mut self, page: LogicalPage, cause: Cause, at: Time) -> Result<Time, TranslationError> {
        let mut at = at;
        let before = self.map.place(page);
        if before != NOWHERE {
            (.., at) = self.nand.read(PhysicalPage(before), cause, at)?;
        }
        let stream = self.settings.streams.count();
        let to = match cause {
            Cause::Mapping => match self.host[stream].take() {
                Some(to) => to,
                None => self.refill(stream, at)?,
            },
            _ => self.copy_run(stream, cause, 1)?.0,
        };
        // Finding room may have moved the page.
        let before = self.map.place(page);
        if before != NOWHERE {
            self.invalidate(PhysicalPage(before));
        }
        self.map.written(page, to);
        self.valid.set(to);
        self.written += 1;
        self.sent.add(cause, Content::Mapping, 1);
        Ok(self.nand.program(to, Spare::new(page, Content::Mapping), 0, cause, at)?)
    }

    /// Pages were moved whose entries are not in RAM: the pages of the map that name them are written anew, each once.
    /// The last erased block is left to the copies of the next collection: without room, new entries wait in RAM.
    fn write_moved(&mut self, cause: Cause, at: Time) -> Result<Time, TranslationError> {
        let mut done = at;
        while (self.free.count() > 1 || self.moved_has_room(cause))
            && let Some(page) = self.map.next_stale()
        {
            done = done.max(self.write_map_page(page, cause, at)?);
        }
        Ok(done)
    }

    /// Whether a page of the map can be written for this cause without an erased block. Planes whose open block is full are
    /// passed over: one of them would take the last erased block though another plane has room.
    fn moved_has_room(&mut self, cause: Cause) -> bool {
        let stream = self.settings.streams.count();
        match cause {
            Cause::WearLevelling => self.settled.has_room(),
            Cause::Mapping => self.host[stream].seek_room(),
            _ => self.copy_frontier(stream).seek_room(),
        }
    }

    /// Asks for the map's entries of the valid pages of a word: in the copying loop each would wait for memory alone.
    #[inline]
    fn prefetch_owners(&self, word: usize) {
        let mut pages = self.valid.word(word);
        while pages != 0 {
            let page = self.valid.page(word, pages.trailing_zeros());
            pages &= pages - 1;
            self.map.prefetch(self.nand.peek_spare(page).logical_page());
        }
    }

    /// A block is out of use. The drive goes on as long as the others can hold what is exported beside the reserve.
    fn retire(&mut self) -> Result<(), TranslationError> {
        self.retired += 1;
        let geometry = self.nand.geometry();
        let usable = u64::from(geometry.blocks - self.retired).saturating_sub(u64::from(self.settings.reserve) + 2);
        if usable * u64::from(geometry.pages_per_block) <= self.settings.exported_pages + self.map.pages_on_flash() {
            return Err(self.worn_out());
        }
        Ok(())
    }

    /// Page slots that hold something, live or not.
    fn occupied_slots(&self) -> u64 {
        let geometry = self.nand.geometry();
        let room: u64 = self.host.iter().chain(&self.copies).chain([&self.settled]).map(Frontier::room).sum();
        geometry.pages() - u64::from(self.free.count() + self.retired) * u64::from(geometry.pages_per_block) - room
    }
}

impl<T: Timing, M: PageMap> Translation for PageLevel<T, M> {
    const TIMED: bool = T::TIMED;

    fn name(&self) -> &'static str {
        M::STATION
    }

    #[inline]
    fn write(&mut self, write: PageWrite, at: Time) -> Result<Time, TranslationError> {
        let at = self.bring(write.page, at)?;
        let stream = self.stream_of(&write);
        let to = match self.host[stream].take() {
            Some(page) => page,
            None => self.refill(stream, at)?,
        };
        let from = self.map.replace(write.page, to.0);
        if from != NOWHERE {
            self.invalidate(PhysicalPage(from));
        }
        self.valid.set(to);
        self.written += 1;
        self.sent.add(Cause::HostWrite, write.content, 1);
        let spare = Spare::new(write.page, write.content);
        Ok(self.nand.program(to, spare, write.stamp, Cause::HostWrite, at)?)
    }

    #[inline]
    fn read(&mut self, page: LogicalPage, at: Time) -> Result<(Option<u32>, Time), TranslationError> {
        let at = self.bring(page, at)?;
        let from = self.map.place(page);
        if from == NOWHERE {
            return Ok((None, at));
        }
        let (spare, stamp, done) = self.nand.read(PhysicalPage(from), Cause::HostWrite, at)?;
        assert_eq!(spare.logical_page(), page, "the map and the spare area name the same page");
        Ok((Some(stamp), done))
    }

    fn discard(&mut self, page: LogicalPage, at: Time) -> Result<Time, TranslationError> {
        let at = self.bring(page, at)?;
        if self.map.place(page) != NOWHERE {
            let from = self.map.replace(page, NOWHERE);
            self.invalidate(PhysicalPage(from));
        }
        Ok(at)
    }

    fn idle(&mut self, from: Time, until: Time) -> Result<(), TranslationError> {
        let mut at = from;
        while at < until && self.free.count() < self.settings.background_blocks {
            if self.invalid_in_candidates() < u64::from(self.nand.geometry().pages_per_block) {
                break;
            }
            at = self.collect_one(at)?;
        }
        Ok(())
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        self.map.prefetch(page);
    }

    fn exported_pages(&self) -> u64 {
        self.settings.exported_pages
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        self.map.events()
    }

    fn sent(&self) -> &Tally {
        &self.sent
    }

    fn flash(&self) -> Flash<'_> {
        Flash::of(&self.nand)
    }

    fn effective_overprovisioning(&self) -> f64 {
        let exported = self.settings.exported_pages as f64;
        let geometry = self.nand.geometry();
        let occupied = if self.occupied.1 > 0 {
            self.occupied.0 as f64 / self.occupied.1 as f64
        } else {
            (geometry.pages() - u64::from(self.settings.reserve) * u64::from(geometry.pages_per_block)) as f64
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
