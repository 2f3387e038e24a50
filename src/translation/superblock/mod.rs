//! Superblock FTL: neighbouring logical blocks form a superblock, whose pages go anywhere in its blocks (Kang, Jo, Kim
//! and Lee, EMSOFT '06; Jung et al., ACM TECS 9(4), 2010).
//!
//! A superblock of N logical blocks has up to N D-blocks, for its data, and up to K U-blocks, for updates: here they
//! are alike, and the last one is open. The map of a superblock's pages is in the spare areas of the pages themselves:
//! a written page also stores its neighbours' entries, so the map causes no writes of its own. A miss of the cached map
//! reads spare areas (`map_cache.rs`).
//!
//! A superblock with its maximum of blocks collects its own garbage: it copies the valid pages of its block with the
//! most invalid ones to a new one, and erases it. Without a free block, it does the same if that is cheaper; otherwise
//! the superblock with the most invalid pages, of those that could give up a block, is compacted until it frees one.
//! Neither moves a page into another superblock's block, so no merge spans superblocks.
//!
//! Where several pages are a page of flash, each superblock keeps its last one open; capacitors keep them all
//! ([`SuperblockSettings::buffer`]).
//!
//! The scheme is that of the abstracts; the papers' details are from memory: see [`KIND`].

mod map_cache;
mod rebuild;
mod settings;

pub use settings::{KIND, SuperblockSettings};

use super::free_blocks::FreeBlocks;
use super::valid_pages::ValidPages;
use super::victims::Victims;
use super::{Flash, PageWrite, Translation, TranslationError, UNMAPPED, VictimPolicy, bits_for, read_newest};
use crate::device::nand::{EraseBlock, Erased, LogicalPage, Nand, PhysicalPage, Timing};
use crate::label::{Cause, Label, Tally};
use crate::tables::{filled, prefetch};
use map_cache::MapCache;

/// The blocks of a superblock.
#[derive(Clone, Default)]
struct OwnedBlocks {
    blocks: Vec<EraseBlock>,
    /// The next page of the open block, and its end; equal if no block is open.
    next: u32,
    end: u32,
    /// Valid pages: those with the newest version of a logical page.
    valid: u32,
}

impl OwnedBlocks {
    fn room(&self) -> u32 {
        self.end - self.next
    }
}

/// The Superblock FTL on flash.
pub struct SuperblockFtl<T: Timing> {
    nand: Nand<T>,
    /// The content of the spare areas: the physical page of each logical page.
    map: Vec<u32>,
    cache: MapCache,
    valid: ValidPages,
    free: FreeBlocks,
    owned: Vec<OwnedBlocks>,
    /// Invalid pages of each block.
    invalid: Vec<u32>,
    /// The superblocks that could give up a block, by their invalid pages.
    victims: Victims,
    settings: SuperblockSettings,
    /// The plane of the next block.
    plane: u32,
    retired: u32,
    sent: Tally,
    collected_blocks: u64,
    compacted: u64,
    /// Unwritten pages of open blocks.
    room: u64,
    /// Sum and count of the occupied pages, valid or not, at each collection.
    occupied: (u128, u64),
}

impl<T: Timing> SuperblockFtl<T> {
    /// A drive with nothing written.
    pub fn new(nand: Nand<T>, settings: &SuperblockSettings) -> SuperblockFtl<T> {
        let mut drive = SuperblockFtl::without_blocks(nand, settings);
        drive.free.put_all(drive.nand.geometry());
        drive
    }

    fn without_blocks(nand: Nand<T>, settings: &SuperblockSettings) -> SuperblockFtl<T> {
        let geometry = *nand.geometry();
        // After a power cut a superblock may have a few blocks above its maximum.
        let most_pages = (settings.blocks + settings.updates + 3) * geometry.pages_per_block;
        SuperblockFtl {
            map: filled(UNMAPPED, settings.exported_pages as usize),
            cache: MapCache::new(settings),
            valid: ValidPages::new(&geometry),
            free: FreeBlocks::new(&geometry, true),
            owned: vec![OwnedBlocks::default(); settings.superblocks as usize],
            invalid: vec![0; geometry.blocks as usize],
            victims: Victims::new(VictimPolicy::Greedy, settings.superblocks, most_pages, 0),
            settings: settings.clone(),
            plane: 0,
            retired: 0,
            sent: Tally::default(),
            collected_blocks: 0,
            compacted: 0,
            room: 0,
            occupied: (0, 0),
            nand,
        }
    }

    #[inline]
    fn superblock_of(&self, page: LogicalPage) -> usize {
        (page.0 / (self.settings.blocks * self.nand.geometry().pages_per_block)) as usize
    }

    #[inline]
    fn invalidate(&mut self, superblock: usize, page: PhysicalPage) {
        self.valid.clear(page);
        self.invalid[self.nand.geometry().block_of(page).index()] += 1;
        self.owned[superblock].valid -= 1;
        self.victims.invalidate(EraseBlock(superblock as u32), 0);
    }

    /// Pages of a superblock's blocks that are not valid.
    #[inline]
    fn excess(&self, superblock: usize) -> u32 {
        let owned = &self.owned[superblock];
        debug_assert!(
            owned.valid <= owned.blocks.len() as u32 * self.nand.geometry().pages_per_block,
            "superblock {superblock} has no more valid pages than its blocks have pages"
        );
        owned.blocks.len() as u32 * self.nand.geometry().pages_per_block - owned.valid
    }

    /// Updates whether a superblock is a victim: one with a block's worth of invalid pages can give up a block.
    #[inline]
    fn update_victim(&mut self, superblock: usize) {
        let can_give = self.excess(superblock) >= self.nand.geometry().pages_per_block;
        let name = EraseBlock(superblock as u32);
        match (can_give, self.victims.is_candidate(name)) {
            (true, false) => self.victims.close(name, 0, 0),
            (false, true) => self.victims.remove(name),
            _ => {}
        }
    }

    /// Opens an erased block for the superblock.
    fn open_block(&mut self, superblock: usize) -> Result<(), TranslationError> {
        let block = self.free.take(self.plane).ok_or_else(|| self.worn_out())?;
        let geometry = self.nand.geometry();
        self.plane = (self.plane + 1) % geometry.units();
        let first = geometry.first_page(block).0;
        let owned = &mut self.owned[superblock];
        debug_assert_eq!(owned.room(), 0, "the open block is full");
        debug_assert!(!owned.blocks.contains(&block), "block {} is free, and owned by no superblock", block.0);
        owned.blocks.push(block);
        (owned.next, owned.end) = (first, first + geometry.pages_per_block);
        self.room += u64::from(geometry.pages_per_block);
        self.update_victim(superblock);
        Ok(())
    }

    /// Makes space: the open block is full.
    #[cold]
    fn make_room(&mut self, superblock: usize, at: T::Moment) -> Result<(), TranslationError> {
        let most = (self.settings.blocks + self.settings.updates) as usize;
        while self.owned[superblock].room() == 0 {
            if self.owned[superblock].blocks.len() >= most {
                self.collect_block(superblock, at)?;
            } else if self.free.count() > self.settings.reserve {
                self.open_block(superblock)?;
            } else {
                let victim = self.victims.choose(0).ok_or_else(|| self.worn_out())?.index();
                if victim != superblock && self.collects_cheaper(superblock, victim) {
                    self.collect_block(superblock, at)?;
                } else {
                    self.release_block(victim, at)?;
                }
            }
        }
        Ok(())
    }

    /// True if the superblock gains a page with fewer copies by collecting its own block with the most invalid pages
    /// than by compacting `other` for a block.
    fn collects_cheaper(&self, superblock: usize, other: usize) -> bool {
        let pages_per_block = self.nand.geometry().pages_per_block;
        let invalid = |superblock: usize| {
            let blocks = &self.owned[superblock].blocks;
            let mut invalid: Vec<u32> = blocks.iter().map(|block| self.invalid[block.index()]).collect();
            invalid.sort_unstable_by(|a, b| b.cmp(a));
            invalid
        };
        let most = invalid(superblock).first().copied().unwrap_or(0);
        let (mut gained, mut copies) = (self.owned[other].room(), 0);
        for invalid in invalid(other) {
            if gained >= pages_per_block {
                break;
            }
            gained += invalid;
            copies += pages_per_block - invalid;
        }
        // (pages_per_block - most) / most against copies / pages_per_block
        u64::from(pages_per_block - most) * u64::from(pages_per_block) <= u64::from(copies) * u64::from(most)
    }

    /// Compacts a superblock until it has one block less.
    fn release_block(&mut self, superblock: usize, at: T::Moment) -> Result<(), TranslationError> {
        self.compacted += 1;
        let before = self.owned[superblock].blocks.len();
        while self.owned[superblock].blocks.len() >= before {
            self.collect_block(superblock, at)?;
        }
        Ok(())
    }

    /// Copies the valid pages of the superblock's block with the most invalid ones to its open block and, if that is
    /// too small, to a new one; then erases it.
    fn collect_block(&mut self, superblock: usize, at: T::Moment) -> Result<(), TranslationError> {
        self.collected_blocks += 1;
        self.occupied.0 += u128::from(self.occupied_slots());
        self.occupied.1 += 1;
        let owned = &self.owned[superblock];
        let most = (0..owned.blocks.len()).max_by_key(|&place| self.invalid[owned.blocks[place].index()]);
        let victim = owned.blocks[most.ok_or_else(|| self.worn_out())?];
        let geometry = *self.nand.geometry();
        if owned.room() > 0 && geometry.block_of(PhysicalPage(owned.next)) == victim {
            self.room -= u64::from(owned.room());
            let owned = &mut self.owned[superblock];
            owned.next = owned.end;
        }
        let mut copies = 0;
        let copied = self.copy_valid(superblock, victim, at, &mut copies);
        self.nand.count_copies(copies, Cause::GarbageCollection, &mut self.sent);
        let done = copied?;
        let invalid = std::mem::take(&mut self.invalid[victim.index()]);
        self.owned[superblock].blocks.retain(|&block| block != victim);
        self.forget_invalid(superblock, invalid);
        let (erased, _) = self.nand.erase(victim, done)?;
        match erased {
            Erased::Usable => {
                self.free.put(geometry.unit_of(victim), victim, self.nand.erase_counts()[victim.index()]);
            }
            Erased::WornOut | Erased::Failed => self.retire()?,
        }
        Ok(())
    }

    /// Copies the valid pages of `victim` to the open block and, if that is too small, to a new one, and adds them to
    /// `copies`. Returns the time of the last copy.
    fn copy_valid(
        &mut self,
        superblock: usize,
        victim: EraseBlock,
        at: T::Moment,
        copies: &mut u64,
    ) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        for word in self.valid.words_of(victim) {
            let mut left = self.valid.word(word);
            while left != 0 {
                if self.owned[superblock].room() == 0 {
                    self.open_block(superblock)?;
                }
                let room = self.owned[superblock].room();
                let pages = super::valid_pages::lowest_bits(left, room);
                left &= !pages;
                let one = self.copy_pages(superblock, word, pages, at)?;
                done = self.nand.timing().later(done, one);
                *copies += u64::from(pages.count_ones());
            }
        }
        debug_assert!(
            self.valid.words_of(victim).all(|word| self.valid.word(word) == 0),
            "valid pages of block {} were copied before the erase",
            victim.0
        );
        Ok(done)
    }

    /// Copies pages of one word of valid bits to the open block, which has space for them.
    fn copy_pages(
        &mut self,
        superblock: usize,
        word: usize,
        pages: u64,
        at: T::Moment,
    ) -> Result<T::Moment, TranslationError> {
        let from = self.valid.page(word, 0);
        // A copy writes the entries of its group with it, and must load them.
        let mut at = at;
        let mut rest = pages;
        let mut known = None;
        while rest != 0 {
            let page = self.nand.peek_logical_page(PhysicalPage(from.0 + rest.trailing_zeros()));
            rest &= rest - 1;
            if known.replace(self.cache.group_of(page)) != Some(self.cache.group_of(page)) {
                at = self.cache.load(page, &self.map, &mut self.nand, at)?;
            }
        }
        let owned = &mut self.owned[superblock];
        let count = pages.count_ones();
        debug_assert!(count <= owned.room(), "the open block has room for {count} pages");
        let to = PhysicalPage(owned.next);
        owned.next += count;
        self.room -= u64::from(count);
        self.valid.take_bits(word, pages);
        self.valid.set_run(to, count);
        let map = &mut self.map;
        Ok(self.nand.copy((from, pages), to, Cause::GarbageCollection, at, |page, to| map[page.0 as usize] = to.0)?)
    }

    /// Subtracts the invalid pages of a block that left the superblock.
    fn forget_invalid(&mut self, superblock: usize, invalid: u32) {
        let name = EraseBlock(superblock as u32);
        if self.victims.is_candidate(name) {
            self.victims.remove(name);
        }
        self.victims.set_invalid(name, self.victims.invalid(name) - invalid);
        self.update_victim(superblock);
    }

    fn retire(&mut self) -> Result<(), TranslationError> {
        self.retired += 1;
        let usable = self.nand.geometry().blocks - self.retired;
        if usable <= self.settings.superblocks * self.settings.blocks + self.settings.reserve {
            return Err(self.worn_out());
        }
        Ok(())
    }

    fn worn_out(&self) -> TranslationError {
        TranslationError::worn_out(&self.nand, self.retired)
    }

    fn occupied_slots(&self) -> u64 {
        let geometry = self.nand.geometry();
        geometry.pages() - u64::from(self.free.count() + self.retired) * u64::from(geometry.pages_per_block) - self.room
    }
}

impl<T: Timing> Translation for SuperblockFtl<T> {
    type Timing = T;

    fn timing(&mut self) -> &mut T {
        self.nand.timing()
    }

    fn name(&self) -> &'static str {
        "superblock"
    }

    #[inline]
    fn write(&mut self, write: PageWrite, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let superblock = self.superblock_of(write.page);
        let at = self.cache.load(write.page, &self.map, &mut self.nand, at)?;
        if self.owned[superblock].room() == 0 {
            self.make_room(superblock, at)?;
        }
        let owned = &mut self.owned[superblock];
        debug_assert!(owned.room() > 0, "room was made");
        let to = PhysicalPage(owned.next);
        owned.next += 1;
        owned.valid += 1;
        self.room -= 1;
        let from = std::mem::replace(&mut self.map[write.page.0 as usize], to.0);
        if from != UNMAPPED {
            self.invalidate(superblock, PhysicalPage(from));
        } else {
            self.update_victim(superblock);
        }
        self.valid.set(to);
        self.sent.add(Label::again(Cause::HostWrite, write.provenance), 1);
        Ok(self.nand.program(to, (write.page, write.provenance), write.stamp, Cause::HostWrite, at)?)
    }

    #[inline]
    fn read(&mut self, page: LogicalPage, at: T::Moment) -> Result<(Option<u32>, T::Moment), TranslationError> {
        let at = self.cache.load(page, &self.map, &mut self.nand, at)?;
        let from = self.map[page.0 as usize];
        if from == UNMAPPED {
            return Ok((None, at));
        }
        read_newest(&mut self.nand, page, PhysicalPage(from), at)
    }

    #[inline]
    fn end_reads(&mut self, at: T::Moment) -> T::Moment {
        self.nand.end_reads(at)
    }

    fn discard(&mut self, page: LogicalPage, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let at = self.cache.load(page, &self.map, &mut self.nand, at)?;
        let from = std::mem::replace(&mut self.map[page.0 as usize], UNMAPPED);
        if from != UNMAPPED {
            let superblock = self.superblock_of(page);
            self.invalidate(superblock, PhysicalPage(from));
            self.update_victim(superblock);
        }
        Ok(at)
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        prefetch(&self.map, page.0 as usize);
        prefetch(&self.owned, self.superblock_of(page));
        self.cache.prefetch(page);
    }

    fn exported_pages(&self) -> u64 {
        self.settings.exported_pages
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
        self.free.count().into()
    }

    fn effective_overprovisioning(&self) -> f64 {
        let geometry = self.nand.geometry();
        let occupied = match self.occupied {
            (_, 0) => {
                (geometry.pages() - u64::from(self.settings.reserve) * u64::from(geometry.pages_per_block)) as f64
            }
            (sum, count) => sum as f64 / count as f64,
        };
        occupied / self.settings.exported_pages as f64 - 1.0
    }

    fn mapping_ram_bytes(&self) -> u64 {
        let geometry = self.nand.geometry();
        // For each superblock: its blocks, and the next page of its open one.
        let most = u64::from(self.settings.blocks + self.settings.updates);
        let table = most * bits_for(u64::from(geometry.blocks)) + bits_for(geometry.pages());
        let place = bits_for(most * u64::from(geometry.pages_per_block));
        let group = bits_for(self.settings.exported_pages) + u64::from(self.settings.group) * place;
        (u64::from(self.settings.superblocks) * table + u64::from(self.settings.cache) * group).div_ceil(8)
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let (hits, misses) = self.cache.hits_and_misses();
        vec![
            ("cache_hits", hits),
            ("cache_misses", misses),
            ("collected_blocks", self.collected_blocks),
            ("compacted_superblocks", self.compacted),
        ]
    }

    fn after_power_cut(self) -> Result<Self, TranslationError> {
        rebuild::rebuilt(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::nand::{Geometry, Untimed};
    use crate::expression::parse_term;
    use crate::label::Provenance;
    use crate::random::Random;

    #[test]
    fn no_block_ever_holds_pages_of_two_superblocks() {
        let geometry = Geometry::new(2 << 20, 2048, 16, (1, 1, 1)).unwrap();
        let term = parse_term("superblock:blocks=4,updates=2,cache=3,export=85%").unwrap();
        let settings = SuperblockSettings::read(&term, &geometry).unwrap();
        let mut drive = SuperblockFtl::new(Nand::new(geometry, u32::MAX, true, Untimed), &settings);
        let mut random = Random::new(1, "test");
        for stamp in 0..20_000 {
            let most = random.below(settings.exported_pages) + 1;
            let page = LogicalPage(random.below(most) as u32);
            let write = PageWrite { page, provenance: Provenance::UNKNOWN, stream: 0, stamp };
            drive.write(write, ()).unwrap();
            if stamp % 1000 == 999 {
                for block in (0..geometry.blocks).map(EraseBlock) {
                    let mut owners =
                        drive.nand.found(block).map(|found| drive.superblock_of(found.spare.logical_page()));
                    let first = owners.next();
                    assert!(owners.all(|owner| Some(owner) == first));
                }
            }
        }
        assert!(drive.collected_blocks > 100 && drive.compacted > 100);
        assert_eq!(drive.sent.of_cause(Cause::Merge), 0);
    }
}
