//! Garbage collection and wear levelling.

use super::{PageLevel, PageMap, WearLevelling};
use crate::device::nand::{EraseBlock, Erased, LogicalPage, PhysicalPage, SpareWord, Timing};
use crate::label::Cause;
use crate::translation::frontier::Frontier;
use crate::translation::valid_pages::lowest_bits;
use crate::translation::{TranslationError, VictimPolicy};

/// The number of collections in a row for one host block after which wear levelling and updates of the map on flash are
/// skipped. Both take space: a drive with hardly any spare space would collect for ever.
const MOST_COLLECTIONS: u32 = 64;

/// The number of collections for one host block that are made ahead. With more than seven of eight pages valid they free
/// less than the host takes, and the host gets down to the reserve.
const MOST_AHEAD: u32 = 8;

/// The number of collections in a row for one host block, as a multiple of the drive's blocks, after which a policy of the
/// caller is refused: it could choose a block without invalid pages for ever.
const MOST_CHOICES_PER_BLOCK: u32 = 64;

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// Gives the frontier of host writes a block; collects until more blocks are erased than the reserve. Returns its first
    /// page, which will hold `page`.
    #[cold]
    pub(super) fn refill(
        &mut self,
        stream: usize,
        page: LogicalPage,
        at: T::Moment,
    ) -> Result<PhysicalPage, TranslationError> {
        if self.upkeep.is_none() {
            return self.refill_host(stream, at);
        }
        self.check_writable(page)?;
        self.look_after(at)?;
        self.check_writable(page)?;
        if let Some(place) = self.host[stream].take() {
            return Ok(place);
        }
        let refilled = self.refill_host(stream, at);
        match self.or_read_only(refilled)? {
            // The drive may be read-only from now on, but pages are programmed in order: this one is not left out.
            Some(place) => Ok(place),
            None => Err(self.check_writable(page).expect_err("a drive that finds no place is read-only")),
        }
    }

    /// [`PageLevel::refill`] of a drive that can be written.
    fn refill_host(&mut self, stream: usize, at: T::Moment) -> Result<PhysicalPage, TranslationError> {
        if let Some(full) = self.host[stream].close() {
            self.close_full(full);
        }
        if self.cache.is_some()
            && let Some(page) = self.open_in_cache(stream, at)?
        {
            return Ok(page);
        }
        let has_places = self.planes.is_some();
        if has_places {
            let plane = self.host[stream].plane();
            make_room_on(self, plane, at)?;
            self.host[stream].go_on_at(plane);
            // Copies that share the frontier may have opened a block.
            if let Some(page) = self.host[stream].take() {
                return Ok(page);
            }
        }
        let mut collections = 0;
        let ahead = if self.pacing.is_some() { 0 } else { self.settings.ahead };
        while !has_places
            && (self.free.count() <= self.settings.reserve
                || self.free.count() <= self.settings.reserve + ahead && collections < MOST_AHEAD)
        {
            self.is_short_of_space = collections >= MOST_COLLECTIONS;
            let is_endless = collections / MOST_CHOICES_PER_BLOCK >= self.nand.geometry().blocks;
            if is_endless && matches!(self.settings.victim, VictimPolicy::Chosen(_)) {
                return Err(TranslationError::NothingFreed { collections });
            }
            self.collect_next(at)?;
            collections += 1;
            // Copies that share the frontier may have opened a block.
            if let Some(page) = self.host[stream].take() {
                self.is_short_of_space = false;
                return Ok(page);
            }
            if self.is_read_only() {
                return Err(self.worn_out());
            }
        }
        self.is_short_of_space = false;
        if self.upkeep.is_some() && self.empty_bad_block(at)? {
            // Its pages have taken room.
            return match self.host[stream].take() {
                Some(page) => Ok(page),
                None => self.refill_host(stream, at),
            };
        }
        // Copies that share the frontier may have filled the opened block.
        if let Some(full) = self.host[stream].close() {
            self.close_full(full);
        }
        let block = self.free.take(self.host[stream].plane()).expect("more than the reserve is erased");
        self.stream_of_block[block.index()] = stream as u8;
        let part = self.usable_part(block);
        self.nand.prefetch_spare_areas(block);
        self.host[stream].open(part, self.nand.geometry());
        Ok(self.host[stream].take().expect("an erased block has room"))
    }

    #[inline]
    pub(super) fn copy_frontier(&mut self, stream: usize) -> &mut Frontier {
        if self.copies.is_empty() { &mut self.host[stream] } else { &mut self.copies[stream] }
    }

    /// The next consecutive pages for copies and their number, at most `most`.
    #[inline]
    pub(super) fn copy_run(
        &mut self,
        stream: usize,
        cause: Cause,
        most: u32,
    ) -> Result<(PhysicalPage, u32), TranslationError> {
        if cause == Cause::WearLevelling {
            return self.cold_run(stream, most);
        }
        if let Some(run) = self.copy_frontier(stream).take_run(most) {
            return Ok(run);
        }
        self.refill_copies(stream)?;
        Ok(self.copy_frontier(stream).take_run(most).expect("a block with room is open"))
    }

    /// Goes on at a plane whose block has room: opens a block on the current one while blocks are erased, and otherwise moves
    /// to the next. A victim's pages always fit, as a collection begins with at least one erased block.
    #[cold]
    pub(super) fn refill_copies(&mut self, stream: usize) -> Result<(), TranslationError> {
        for _ in 0..self.copy_frontier(stream).planes() {
            if self.copy_frontier(stream).has_room() {
                return Ok(());
            }
            if let Some(full) = self.copy_frontier(stream).close() {
                self.close_full(full);
            }
            let plane = self.copy_frontier(stream).plane();
            let has_place = self.planes.is_some();
            let block = if has_place { self.free.take_of(plane) } else { self.free.take(plane) };
            if let Some(block) = block {
                let geometry = *self.nand.geometry();
                self.stream_of_block[block.index()] = stream as u8;
                let part = self.usable_part(block);
                self.nand.prefetch_spare_areas(block);
                self.copy_frontier(stream).open(part, &geometry);
            } else {
                self.copy_frontier(stream).next_plane();
            }
        }
        if self.copy_frontier(stream).has_room() { Ok(()) } else { Err(self.worn_out()) }
    }

    /// The next pages of the most worn erased block.
    pub(super) fn cold_run(&mut self, stream: usize, most: u32) -> Result<(PhysicalPage, u32), TranslationError> {
        if let Some(run) = self.cold.take_run(most) {
            return Ok(run);
        }
        if let Some(full) = self.cold.close() {
            self.close_full(full);
        }
        let block = self.free.take_most_worn().ok_or_else(|| self.worn_out())?;
        self.stream_of_block[block.index()] = stream as u8;
        let part = self.usable_part(block);
        self.cold.open(part, self.nand.geometry());
        Ok(self.cold.take_run(most).expect("an erased block has room"))
    }

    pub(super) fn worn_out(&self) -> TranslationError {
        TranslationError::worn_out(&self.nand, self.retired)
    }

    /// Ends a collection in steps, or folds a block of a dynamic cache, or else collects a victim at once; returns the time of the
    /// erase.
    pub(super) fn collect_next(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        if let Some(done) = self.finish_nearest(at)? {
            return Ok(done);
        }
        match self.fold_for_space(at)? {
            Some(done) => Ok(done),
            None => self.collect_one(at),
        }
    }

    /// Selects a victim, if there is a candidate.
    pub(super) fn choose_victim(&mut self) -> Option<EraseBlock> {
        self.occupied.0 += u128::from(self.occupied_slots());
        self.occupied.1 += 1;
        self.victims.choose(self.written, self.settings.spare_shares.as_deref(), &self.free)
    }

    /// Selects a victim and collects it; returns the time of its erase.
    pub(super) fn collect_one(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let victim = self.choose_victim().ok_or_else(|| self.worn_out())?;
        let done = self.collect(victim, Cause::GarbageCollection, at)?;
        self.prefetch_victim();
        self.level_wear(victim, at)?;
        Ok(done)
    }

    /// With static levelling: empties the least worn closed block if its erase count lags too far behind that of the
    /// block just erased. Its pages are cold, and are moved to worn blocks.
    pub(super) fn level_wear(&mut self, erased: EraseBlock, at: T::Moment) -> Result<(), TranslationError> {
        let WearLevelling::Static(gap) = self.settings.wear else { return Ok(()) };
        let Some(&(least, block)) = self.closed_by_wear.first() else { return Ok(()) };
        if self.free.count() > 1 && !self.is_short_of_space && self.nand.erase_counts()[erased.index()] > least + gap {
            self.collect(block, Cause::WearLevelling, at)?;
        }
        Ok(())
    }

    /// Copies the valid pages of `victim` and erases it; returns the time of the erase.
    pub(super) fn collect(
        &mut self,
        victim: EraseBlock,
        cause: Cause,
        at: T::Moment,
    ) -> Result<T::Moment, TranslationError> {
        let stream = self.stream_of_block[victim.index()] as usize;
        self.leave_candidates(victim);
        if self.planes.is_some() {
            let plane = self.nand.geometry().unit_of(victim);
            self.copy_frontier(stream).go_on_at(plane);
        }
        let mut copies = 0;
        let copied = self.copy_valid(victim, stream, cause, at, &mut copies);
        self.count_copies(copies, cause);
        self.erase_copied(victim, cause, at, copied?)
    }

    /// A victim is a candidate no more.
    pub(super) fn leave_candidates(&mut self, victim: EraseBlock) {
        self.victims.remove(victim, &self.stream_of_block);
        if let WearLevelling::Static(_) = self.settings.wear {
            self.closed_by_wear.remove(&(self.nand.erase_counts()[victim.index()], victim));
        }
    }

    /// Counts copies that were made.
    pub(super) fn count_copies(&mut self, copies: u64, cause: Cause) {
        self.nand.count_copies(copies, cause, &mut self.sent);
        self.written += copies;
    }

    /// Erases a victim whose valid pages were copied, the last of them at `copied`; returns the time of the erase.
    pub(super) fn erase_copied(
        &mut self,
        victim: EraseBlock,
        cause: Cause,
        at: T::Moment,
        copied: T::Moment,
    ) -> Result<T::Moment, TranslationError> {
        let mut done = copied;
        if self.settings.fills_before_erase {
            // What the victim still holds for a page of flash that is not programmed would be lost in a power cut.
            let filled = self.fill_open_pages(at)?;
            done = self.nand.timing().later(done, filled);
        }
        self.victims.erased(victim, &self.stream_of_block);
        let (erased, done) = self.nand.erase(victim, done)?;
        let is_settled = self.cache.is_some() && self.return_to_cache(victim, erased == Erased::Usable);
        match erased {
            _ if is_settled => {}
            Erased::Usable => {
                let plane = self.nand.geometry().unit_of(victim);
                self.free.put_freed(plane, victim, self.nand.erase_counts()[victim.index()]);
                if let Some(pacing) = &mut self.pacing {
                    pacing.has_freed(self.nand.geometry().pages_per_block);
                }
            }
            Erased::WornOut | Erased::Failed => self.retire()?,
        }
        if M::ON_FLASH && !self.is_short_of_space { self.write_moved(cause, done) } else { Ok(done) }
    }

    /// Copies the valid pages of `victim`, and adds them to `copies`. Returns the time of the last copy.
    pub(super) fn copy_valid(
        &mut self,
        victim: EraseBlock,
        stream: usize,
        cause: Cause,
        at: T::Moment,
        copies: &mut u64,
    ) -> Result<T::Moment, TranslationError> {
        if self.nand.can_spread() && cause != Cause::WearLevelling {
            return spread_valid(self, (victim, stream), cause, at, copies);
        }
        let mut done = at;
        let words = self.valid.words_of(victim);
        self.words = self.peek_valid(victim);
        for word in words.clone() {
            let pages = (self.valid.page(word, 0), self.valid.take_word(word));
            done = self.copy_bits(pages, (stream, cause), (at, done), copies)?;
        }
        debug_assert!(words.clone().all(|word| self.valid.word(word) == 0), "valid pages were copied before the erase");
        Ok(done)
    }

    /// Copies pages of a victim, those of the bits set in `left`, counted from `from`, and adds them to `copies`. Returns the
    /// later of `done` and the time of the last copy.
    #[inline(always)]
    pub(super) fn copy_bits(
        &mut self,
        (from, mut left): (PhysicalPage, u64),
        (stream, cause): (usize, Cause),
        (at, mut done): (T::Moment, T::Moment),
        copies: &mut u64,
    ) -> Result<T::Moment, TranslationError> {
        while left != 0 {
            let (to, room) = self.copy_run(stream, cause, left.count_ones())?;
            let map = &mut self.map;
            let mut record = |page, to| {
                map.record_move(page, to);
                *copies += 1;
            };
            let copied = if room == 1 {
                // With several planes every run is one page, and the next one is on another plane.
                let frontier = match cause {
                    Cause::WearLevelling => &mut self.cold,
                    _ if self.copies.is_empty() => &mut self.host[stream],
                    _ => &mut self.copies[stream],
                };
                let (mut first, valid) = (Some(to), &mut self.valid);
                let take = || first.take().or_else(|| frontier.take());
                let moved = |page, to| {
                    valid.set(to);
                    record(page, to);
                };
                let copied;
                (left, copied) = self.nand.copy_scattered((from, left), take, cause, at, moved)?;
                copied
            } else {
                let pages = lowest_bits(left, room);
                left &= !pages;
                self.valid.set_run(to, room);
                self.nand.copy((from, pages), to, cause, at, record)?
            };
            done = self.nand.timing().later(done, copied);
        }
        Ok(done)
    }

    /// The words of the spare areas of the valid pages of `victim`, in order. The map entries of their pages are prefetched: in
    /// the copy loop each would wait for memory on its own.
    fn peek_valid(&mut self, victim: EraseBlock) -> Vec<SpareWord> {
        let mut found = std::mem::take(&mut self.words);
        let of_block = self.nand.peek_words(victim);
        // Each page is written behind the last valid one: a branch for each page would be a guess.
        found.resize(of_block.len() + 1, SpareWord::default());
        let mut count = 0;
        for (pages, words) in self.valid.words_of(victim).zip(of_block.chunks(u64::BITS as usize)) {
            let pages = self.valid.word(pages);
            for (bit, &word) in words.iter().enumerate() {
                found[count] = word;
                count += (pages >> bit & 1) as usize;
            }
        }
        found.truncate(count);
        found.iter().for_each(|word| self.map.prefetch(word.logical_page()));
        found
    }

    /// Prefetches what the collection of the next victim reads first.
    pub(super) fn prefetch_victim(&self) {
        let shares = self.settings.spare_shares.as_deref();
        let Some(block) = self.victims.likely_next(shares, &self.free) else { return };
        self.valid.prefetch(self.nand.geometry().first_page(block));
        self.nand.prefetch_spare_areas(block);
    }

    /// Counts a block out of use. The drive continues as long as the others can hold the exported pages and the
    /// reserve.
    pub(super) fn retire(&mut self) -> Result<(), TranslationError> {
        self.retired += 1;
        if self.upkeep.is_some() {
            self.check_spare_blocks();
            return Ok(());
        }
        let geometry = self.nand.geometry();
        debug_assert!(self.retired <= geometry.blocks, "a block is retired once");
        let kept = u64::from(self.settings.reserve) + 2 + u64::from(self.settings.fixed_slc_blocks());
        let usable = u64::from(geometry.blocks - self.retired).saturating_sub(kept);
        if usable * u64::from(geometry.pages_per_block) <= self.settings.exported_pages + self.map.pages_on_flash() {
            return Err(self.worn_out());
        }
        Ok(())
    }

    /// Occupied pages, valid or not.
    pub(super) fn occupied_slots(&self) -> u64 {
        let geometry = self.nand.geometry();
        let room: u64 = self.host.iter().chain(&self.copies).chain([&self.cold]).map(Frontier::room).sum();
        let of_cache = self.cache.as_ref().map_or(0, |cache| cache.slots_without_pages(geometry));
        geometry.pages()
            - u64::from(self.free.count() + self.retired) * u64::from(geometry.pages_per_block)
            - room
            - of_cache
    }
}

/// Collects on a plane of a drive whose pages have places, until more of its blocks are erased than its part of the reserve.
pub(super) fn make_room_on<T: Timing, M: PageMap>(
    drive: &mut PageLevel<T, M>,
    plane: u32,
    at: T::Moment,
) -> Result<(), TranslationError> {
    let (planes, blocks) = (drive.nand.geometry().units(), drive.nand.geometry().blocks);
    let reserve = (drive.settings.reserve / planes) as usize;
    let mut collections = 0;
    while drive.free.count_of(plane as usize) <= reserve {
        drive.occupied.0 += u128::from(drive.occupied_slots());
        drive.occupied.1 += 1;
        // A plane whose blocks are all in use gains nothing, however often it collects.
        let victim = drive.victims.choose_on(plane as usize, drive.written).filter(|_| collections <= 2 * blocks);
        let victim = victim.ok_or_else(|| drive.worn_out())?;
        drive.collect(victim, Cause::GarbageCollection, at)?;
        collections += 1;
    }
    Ok(())
}

/// [`PageLevel::copy_valid`] where a page of flash is one page, and nothing is kept of it but its spare area: all pages of a
/// plane at once.
fn spread_valid<T: Timing, M: PageMap>(
    drive: &mut PageLevel<T, M>,
    (victim, stream): (EraseBlock, usize),
    cause: Cause,
    at: T::Moment,
    copies: &mut u64,
) -> Result<T::Moment, TranslationError> {
    let words = drive.peek_valid(victim);
    let programmed = drive.valid.end_of(victim);
    let (mut done, mut left) = (at, &words[..]);
    while !left.is_empty() {
        let mut places = std::mem::take(&mut drive.places);
        let taken = drive.copy_frontier(stream).take_spread(left.len(), &mut places);
        if taken == 0 {
            drive.places = places;
            drive.refill_copies(stream)?;
            continue;
        }
        let spread;
        (spread, left) = left.split_at(taken);
        for (number, &first) in places.iter().enumerate().take(taken) {
            drive.valid.set_all(first, (taken - number).div_ceil(places.len()) as u32);
        }
        let copied = drive.nand.copy_spread((victim, programmed), spread, &places, cause, at)?;
        drive.map.record_moves(spread, &places);
        *copies += taken as u64;
        done = drive.nand.timing().later(done, copied);
        drive.places = places;
    }
    drive.valid.clear_all(victim);
    drive.words = words;
    Ok(done)
}
