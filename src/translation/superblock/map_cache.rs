//! The cache of the map, and the reads of a miss.
//!
//! The entries of a group of neighbouring pages are in the spare area of the group's newest page; upper levels of the
//! map are in spare areas, too. A miss reads one spare area for each level.

use super::SuperblockSettings;
use crate::device::nand::{LogicalPage, Nand, NandError, PhysicalPage, Timing};
use crate::translation::UNMAPPED;
use crate::translation::segmented_lru::SegmentedLru;

/// The groups in RAM; the least recently used is evicted.
pub struct MapCache {
    groups: SegmentedLru,
    group: u32,
    levels: u32,
    hits: u64,
    misses: u64,
}

impl MapCache {
    pub fn new(settings: &SuperblockSettings) -> MapCache {
        let groups = settings.exported_pages.div_ceil(u64::from(settings.group));
        MapCache {
            groups: SegmentedLru::new(settings.cache, 0, groups),
            group: settings.group,
            levels: settings.levels,
            hits: 0,
            misses: 0,
        }
    }

    /// The group of a page.
    #[inline]
    pub fn group_of(&self, page: LogicalPage) -> u32 {
        page.0 / self.group
    }

    /// Loads the group of `page` into RAM; returns the completion time. A group that was never written needs no read.
    #[inline]
    pub fn load<T: Timing>(
        &mut self,
        page: LogicalPage,
        map: &[u32],
        nand: &mut Nand<T>,
        at: T::Moment,
    ) -> Result<T::Moment, NandError> {
        let group = self.group_of(page);
        match self.groups.slot(group) {
            Some(slot) => {
                self.hits += 1;
                self.groups.touch(slot);
                Ok(at)
            }
            None => self.fetch(group, map, nand, at),
        }
    }

    fn fetch<T: Timing>(
        &mut self,
        group: u32,
        map: &[u32],
        nand: &mut Nand<T>,
        at: T::Moment,
    ) -> Result<T::Moment, NandError> {
        self.misses += 1;
        if let Some(victim) = self.groups.victim() {
            self.groups.remove(victim);
        }
        self.groups.insert(group);
        let first = (group * self.group) as usize;
        let end = (first + self.group as usize).min(map.len());
        let Some(&written) = map[first..end].iter().find(|&&place| place != UNMAPPED) else { return Ok(at) };
        let mut at = at;
        for _ in 0..self.levels {
            // The cost does not depend on which page's spare area is read.
            at = nand.read_spare(PhysicalPage(written), at)?;
        }
        Ok(at)
    }

    #[inline]
    pub fn prefetch(&self, page: LogicalPage) {
        self.groups.prefetch(self.group_of(page));
    }

    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }
}
