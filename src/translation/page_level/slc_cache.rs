//! A cache of blocks in SLC mode: hosts write to them first, fast, and their pages are folded into blocks of all bits later.
//!
//! ```text
//! host write --> SLC blocks, while the cache has room --> fold: copies, oldest block first --> blocks of all bits
//!           \--> blocks of all bits, when it is full -------------------------------------------^
//! ```
//!
//! The frontiers of host writes decide when they need a block: an SLC block has fewer pages, and nothing else of a write
//! differs. A *static* cache is the first blocks of the drive, which are always in SLC mode, and take spare space; a *dynamic* one
//! takes erased blocks beyond those that collection keeps, and gives them back when they are folded.
//!
//! | folding | when |
//! |---|---|
//! | for space | a dynamic cache holds blocks that collection or hosts need: before any collection |
//! | in idle time | there is any, until no full SLC block is left |
//! | for hosts | the cache is full, with `slc-full=fold` |
//!
//! Invariants: an SLC block is open in a frontier of hosts, or closed here, or erased. It is no candidate of collection. Copies
//! never go to SLC blocks. A fold needs one erased block at most: an SLC block holds half a block at most.

use super::slc_settings::SlcSettings;
use super::{PageLevel, PageMap};
use crate::device::nand::{EraseBlock, Geometry, PhysicalPage, Timing};
use crate::label::Cause;
use crate::time::Time;
use crate::translation::TranslationError;
use crate::translation::free_blocks::FreeBlocks;
use std::collections::VecDeque;

/// The blocks in SLC mode.
pub(super) struct SlcCache {
    settings: SlcSettings,
    /// Full blocks, in the order in which they were closed.
    closed: VecDeque<EraseBlock>,
    /// Open and closed blocks.
    in_use: u32,
    /// The erased blocks of a static cache.
    free: FreeBlocks,
    /// Blocks of a static cache that are worn out.
    retired: u32,
    /// Blocks opened for hosts in SLC mode, and in the other one since the cache was full, and blocks folded.
    opened: u64,
    bypassed: u64,
    folded: u64,
}

impl SlcCache {
    /// An empty cache, without its blocks.
    pub fn new(settings: SlcSettings, geometry: &Geometry, by_wear: bool) -> SlcCache {
        SlcCache {
            settings,
            closed: VecDeque::new(),
            in_use: 0,
            free: FreeBlocks::new(geometry, by_wear),
            retired: 0,
            opened: 0,
            bypassed: 0,
            folded: 0,
        }
    }

    /// The erased blocks of a static cache, to which those found after a power cut are added.
    pub fn free(&mut self) -> &mut FreeBlocks {
        &mut self.free
    }

    /// True if a block belongs to a static cache.
    pub fn owns(&self, block: EraseBlock) -> bool {
        block.0 < self.settings.fixed_blocks()
    }

    /// A block of a static cache is worn out.
    pub fn retire(&mut self) {
        self.retired += 1;
    }

    /// A block is open or closed.
    pub fn has_taken(&mut self) {
        self.in_use += 1;
    }

    /// A block is full.
    pub fn close(&mut self, block: EraseBlock) {
        self.closed.push_back(block);
    }

    /// The full blocks, the first to be folded first.
    pub fn closed(&self) -> &VecDeque<EraseBlock> {
        &self.closed
    }

    /// Puts the full blocks in this order.
    pub fn sort_closed(&mut self, mut key: impl FnMut(EraseBlock) -> (u64, u32)) {
        self.closed.make_contiguous().sort_by_key(|block| key(*block));
    }

    /// Erased blocks of its own.
    pub fn free_count(&self) -> u32 {
        self.free.count()
    }

    /// The page slots of the drive that hold no pages of the layer: those that SLC mode takes, and those of blocks of a static
    /// cache that are erased or worn out.
    pub fn slots_without_pages(&self, geometry: &Geometry) -> u64 {
        let (whole, slc) = (u64::from(geometry.pages_per_block), u64::from(geometry.slc_pages_per_block()));
        u64::from(self.in_use) * (whole - slc) + u64::from(self.free.count() + self.retired) * whole
    }

    /// Its counters.
    pub fn events(&self) -> [(&'static str, u64); 3] {
        [
            ("slc_blocks_opened", self.opened),
            ("slc_blocks_folded", self.folded),
            ("slc_full_blocks_bypassed", self.bypassed),
        ]
    }

    /// True if a block can be opened. A dynamic cache leaves the erased blocks that collection keeps, and one for copies.
    fn has_room(&self, erased: u32, kept: u32) -> bool {
        match self.settings.is_static {
            true => self.free.count() > 0,
            false => self.in_use < self.settings.most_blocks && erased > kept + 1,
        }
    }
}

impl<T: Timing, M: PageMap> PageLevel<T, M> {
    /// Opens an SLC block for hosts, and returns its first page, if the cache has room, or makes some.
    pub(super) fn open_in_cache(
        &mut self,
        stream: usize,
        at: T::Moment,
    ) -> Result<Option<PhysicalPage>, TranslationError> {
        let kept = self.settings.reserve + self.settings.ahead;
        loop {
            let Some(cache) = &mut self.cache else { return Ok(None) };
            if cache.has_room(self.free.count(), kept) {
                let plane = self.host[stream].plane();
                let free = if cache.settings.is_static { &mut cache.free } else { &mut self.free };
                let block = free.take(plane).expect("the cache has room");
                (cache.in_use, cache.opened) = (cache.in_use + 1, cache.opened + 1);
                if !self.nand.is_slc(block) {
                    self.nand.set_slc(block, true);
                }
                self.stream_of_block[block.index()] = stream as u8;
                let pages = self.nand.pages_of(block);
                self.host[stream].open((block, pages), self.nand.geometry());
                return Ok(self.host[stream].take());
            }
            if !cache.settings.folds_when_full || self.fold_next(at)?.is_none() {
                if let Some(cache) = &mut self.cache {
                    cache.bypassed += 1;
                }
                return Ok(None);
            }
        }
    }

    /// Folds the block that was closed first, if there is one, after making room for its pages; returns the time of its erase.
    fn fold_next(&mut self, at: T::Moment) -> Result<Option<T::Moment>, TranslationError> {
        let Some(cache) = &self.cache else { return Ok(None) };
        if cache.closed.is_empty() {
            return Ok(None);
        }
        // A fold gives back the block of a dynamic cache; that of a static one gains nothing for the others.
        while self.cache.as_ref().is_some_and(|cache| cache.settings.is_static)
            && self.free.count() <= self.settings.reserve
        {
            self.collect_one(at)?;
        }
        self.fold_oldest(at)
    }

    /// Folds the first closed block of a dynamic cache, if there is one: that gains more than a collection. Returns the time of
    /// its erase.
    pub(super) fn fold_for_space(&mut self, at: T::Moment) -> Result<Option<T::Moment>, TranslationError> {
        match &self.cache {
            Some(cache) if !cache.settings.is_static => self.fold_oldest(at),
            _ => Ok(None),
        }
    }

    fn fold_oldest(&mut self, at: T::Moment) -> Result<Option<T::Moment>, TranslationError> {
        match self.cache.as_mut().and_then(|cache| cache.closed.pop_front()) {
            Some(block) => Ok(Some(self.fold(block, at)?)),
            None => Ok(None),
        }
    }

    /// Folds a block that is closed no more: copies its valid pages and erases it. Returns the time of the erase.
    fn fold(&mut self, block: EraseBlock, at: T::Moment) -> Result<T::Moment, TranslationError> {
        assert!(self.nand.is_slc(block), "block {} is folded, and is in SLC mode", block.0);
        let stream = self.stream_of_block[block.index()] as usize;
        let mut copies = 0;
        let copied = self.copy_valid(block, stream, Cause::Fold, at, &mut copies);
        self.count_copies(copies, Cause::Fold);
        let done = self.erase_copied(block, Cause::Fold, at, copied?)?;
        if let Some(cache) = &mut self.cache {
            cache.folded += 1;
        }
        Ok(done)
    }

    /// Folds this closed block before all others.
    pub(super) fn fold_first(&mut self, block: EraseBlock, at: T::Moment) -> Result<T::Moment, TranslationError> {
        if let Some(cache) = &mut self.cache {
            cache.closed.retain(|other| *other != block);
        }
        self.fold(block, at)
    }

    /// An SLC block was erased. True if it stays in the cache; otherwise it is a block like others.
    pub(super) fn return_to_cache(&mut self, block: EraseBlock, is_usable: bool) -> bool {
        if !self.nand.is_slc(block) {
            return false;
        }
        let plane = self.nand.geometry().unit_of(block);
        let erases = self.nand.erase_counts()[block.index()];
        let cache = self.cache.as_mut().expect("an SLC block belongs to a cache");
        cache.in_use -= 1;
        let stays = cache.owns(block);
        match (stays, is_usable) {
            (true, true) => cache.free.put(plane, block, erases),
            (true, false) => cache.retired += 1,
            (false, _) => self.nand.set_slc(block, false),
        }
        stays
    }

    /// Folds full blocks from `from` on, as long as it is before `until`; returns the time of the last erase, or `until` if that
    /// is later.
    pub(super) fn fold_in_idle_time(&mut self, from: Time, until: Time) -> Result<Time, TranslationError> {
        let mut at = from;
        while at < until {
            let begin = self.nand.timing().instant(at);
            let Some(folded) = self.fold_next(begin)? else { break };
            at = self.nand.timing().settle(folded, until).unwrap_or(until);
        }
        Ok(at)
    }
}
