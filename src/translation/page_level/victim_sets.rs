//! The candidates of collection: one set for the drive, one for each plane, or one for each stream if the streams have shares
//! of the spare space.

use super::PageSettings;
use crate::device::nand::{EraseBlock, Geometry};
use crate::translation::free_blocks::FreeBlocks;
use crate::translation::victims::Victims;

/// The common property of the blocks in a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// All blocks are in one set.
    Drive,
    /// Blocks of a plane. Their numbers in the set are consecutive.
    Plane { planes: u32, shift: Option<u32> },
    /// Blocks of a stream.
    Stream,
}

/// All candidates, in sets.
pub(super) struct VictimSets {
    by: By,
    sets: Vec<Victims>,
}

impl VictimSets {
    /// No candidates.
    pub fn new(settings: &PageSettings, geometry: &Geometry, streams: usize, seed: u64) -> VictimSets {
        let planes = geometry.units();
        let (by, sets, blocks) = if settings.spare_shares.is_some() {
            (By::Stream, streams, geometry.blocks)
        } else if settings.is_by_plane && planes > 1 {
            let shift = planes.is_power_of_two().then(|| planes.trailing_zeros());
            (By::Plane { planes, shift }, planes as usize, geometry.blocks.div_ceil(planes))
        } else {
            (By::Drive, 1, geometry.blocks)
        };
        let victims = |_| Victims::new(settings.victim.clone(), blocks, geometry.pages_per_block, seed);
        VictimSets { by, sets: (0..sets).map(victims).collect() }
    }

    /// The set of a block, and the block's number there. Divisions by other numbers than powers of two are slow.
    #[inline]
    fn place(&self, block: EraseBlock, stream_of_block: &[u8]) -> (usize, EraseBlock) {
        match self.by {
            By::Drive => (0, block),
            By::Plane { planes, shift: Some(shift) } => {
                ((block.0 & (planes - 1)) as usize, EraseBlock(block.0 >> shift))
            }
            By::Plane { planes, shift: None } => ((block.0 % planes) as usize, EraseBlock(block.0 / planes)),
            By::Stream => (stream_of_block[block.index()] as usize, block),
        }
    }

    /// Counts one more invalid page of a block; `now` counts the pages written so far.
    #[inline]
    pub fn invalidate(&mut self, block: EraseBlock, stream_of_block: &[u8], now: u64) {
        let (set, block) = self.place(block, stream_of_block);
        self.sets[set].invalidate(block, now);
    }

    /// Makes a full block a candidate.
    pub fn close(&mut self, block: EraseBlock, stream_of_block: &[u8], now: u64, erases: u32) {
        let (set, block) = self.place(block, stream_of_block);
        self.sets[set].close(block, now, erases);
    }

    /// Removes a candidate, which is being collected.
    pub fn remove(&mut self, block: EraseBlock, stream_of_block: &[u8]) {
        let (set, block) = self.place(block, stream_of_block);
        self.sets[set].remove(block);
    }

    /// A block is erased, and has no invalid pages.
    pub fn erased(&mut self, block: EraseBlock, stream_of_block: &[u8]) {
        let (set, block) = self.place(block, stream_of_block);
        self.sets[set].erased(block);
    }

    /// The invalid pages of a block, if it is a candidate.
    pub fn invalid_in(&self, block: EraseBlock, stream_of_block: &[u8]) -> Option<u32> {
        let (set, block) = self.place(block, stream_of_block);
        self.sets[set].is_candidate(block).then(|| self.sets[set].invalid(block))
    }

    /// Invalid pages of all candidates.
    pub fn invalid_in_candidates(&self) -> u64 {
        self.sets.iter().map(Victims::invalid_in_candidates).sum()
    }

    /// The block to collect at time `now`, if there is a candidate: of the plane with the fewest erased blocks, or of the
    /// stream furthest above its share of the spare space.
    pub fn choose(&mut self, now: u64, shares: Option<&[f64]>, free: &FreeBlocks) -> Option<EraseBlock> {
        let set = self.next_set(shares, free);
        let block = self.sets[set].choose(now)?;
        Some(self.block_of(set, block))
    }

    /// The block of a plane to collect at time `now`, if there is a candidate.
    ///
    /// # Panics
    ///
    /// If the sets are not by plane: a bug of the caller.
    pub fn choose_on(&mut self, plane: usize, now: u64) -> Option<EraseBlock> {
        assert!(matches!(self.by, By::Plane { .. }), "the candidates of plane {plane} are in a set");
        let block = self.sets[plane].choose(now)?;
        Some(self.block_of(plane, block))
    }

    /// Invalid pages of the candidates of a plane.
    pub fn invalid_on(&self, plane: usize) -> u64 {
        self.sets[plane].invalid_in_candidates()
    }

    /// The block that will most likely be chosen next, if that costs nothing to know.
    pub fn likely_next(&self, shares: Option<&[f64]>, free: &FreeBlocks) -> Option<EraseBlock> {
        let set = self.next_set(shares, free);
        Some(self.block_of(set, self.sets[set].likely_next()?))
    }

    /// Prefetches the number of invalid pages of a block into the processor's cache.
    #[inline]
    pub fn prefetch(&self, block: EraseBlock, stream_of_block: &[u8]) {
        let (set, block) = self.place(block, stream_of_block);
        self.sets[set].prefetch(block);
    }

    fn next_set(&self, shares: Option<&[f64]>, free: &FreeBlocks) -> usize {
        match (self.by, shares) {
            (By::Plane { .. }, _) => self.fewest_erased(free),
            (By::Stream, Some(shares)) => self.furthest_above(shares),
            _ => 0,
        }
    }

    /// A block by its number in a set.
    fn block_of(&self, set: usize, block: EraseBlock) -> EraseBlock {
        match self.by {
            By::Plane { planes, .. } => EraseBlock(block.0 * planes + set as u32),
            By::Drive | By::Stream => block,
        }
    }

    /// The plane with the fewest erased blocks, of those with half as many invalid pages as the mean plane has: a plane
    /// without invalid pages gains nothing.
    fn fewest_erased(&self, free: &FreeBlocks) -> usize {
        let (planes, total) = (self.sets.len() as u64, self.invalid_in_candidates());
        let (mut fewest, mut of_fewest) = (0, None);
        for (plane, (set, &erased)) in self.sets.iter().zip(free.counts()).enumerate() {
            let invalid = set.invalid_in_candidates();
            let is_better =
                of_fewest.is_none_or(|(fewest, most)| erased < fewest || erased == fewest && invalid > most);
            if is_better && invalid * planes * 2 >= total && set.candidates() > 0 {
                (fewest, of_fewest) = (plane, Some((erased, invalid)));
            }
        }
        fewest
    }

    fn furthest_above(&self, shares: &[f64]) -> usize {
        let total = self.invalid_in_candidates();
        let excess = |set: usize| self.sets[set].invalid_in_candidates() as f64 - shares[set] * total as f64;
        (0..self.sets.len())
            .filter(|&set| self.sets[set].candidates() > 0)
            .max_by(|&a, &b| excess(a).total_cmp(&excess(b)))
            .unwrap_or(0)
    }
}
