//! The erased blocks, by plane.

use crate::device::nand::{EraseBlock, Geometry, Nand, Timing};
use std::collections::{BTreeSet, VecDeque};

/// The order in which a plane's erased blocks are taken.
enum Queue {
    /// In the order of their erases.
    Erased(VecDeque<EraseBlock>),
    /// The least worn first: dynamic wear levelling.
    Worn(BTreeSet<(u32, EraseBlock)>),
}

impl Queue {
    fn len(&self) -> usize {
        match self {
            Queue::Erased(queue) => queue.len(),
            Queue::Worn(set) => set.len(),
        }
    }
}

/// The state of a block after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBlock {
    /// Ready to be programmed.
    Erased,
    /// Programmed, in part or whole.
    Programmed,
    /// Out of use: worn out, or bad, and holding nothing.
    WornOut,
    /// Bad, and holding pages.
    Bad,
}

/// The pool of erased blocks.
pub struct FreeBlocks {
    planes: Vec<Queue>,
    /// The blocks that were freed last, with their plane and erase count: their erases are hardly done. They are taken when
    /// there are no others.
    fresh: VecDeque<(u32, EraseBlock, u32)>,
    /// The number of blocks of each plane: those in its queue, the fresh ones, and those that are collected in steps.
    counts: Vec<u32>,
    most_fresh: usize,
    count: u32,
}

impl FreeBlocks {
    /// An empty pool. `by_wear` takes the least worn block first.
    pub fn new(geometry: &Geometry, by_wear: bool) -> FreeBlocks {
        let queue = || if by_wear { Queue::Worn(BTreeSet::new()) } else { Queue::Erased(VecDeque::new()) };
        let planes = (0..geometry.units()).map(|_| queue()).collect();
        let counts = vec![0; geometry.units() as usize];
        FreeBlocks { planes, fresh: VecDeque::new(), counts, most_fresh: 0, count: 0 }
    }

    /// The same pool, in which a block waits until so many others are freed.
    pub fn waiting_for(self, most_fresh: u32) -> FreeBlocks {
        FreeBlocks { most_fresh: most_fresh as usize, ..self }
    }

    /// Adds all blocks of a new drive.
    pub fn put_all(&mut self, geometry: &Geometry) {
        self.put_range(0..geometry.blocks, geometry);
    }

    /// Adds these blocks of a new drive.
    pub fn put_range(&mut self, blocks: std::ops::Range<u32>, geometry: &Geometry) {
        for block in blocks.map(EraseBlock) {
            self.put(geometry.unit_of(block), block, 0);
        }
    }

    /// Adds a block after a power cut, if it is erased. Returns its state.
    pub fn put_found<T: Timing>(&mut self, block: EraseBlock, nand: &Nand<T>) -> FoundBlock {
        let erases = nand.erase_counts()[block.index()];
        if nand.programmed_pages()[block.index()] > 0 {
            if nand.is_bad(block) { FoundBlock::Bad } else { FoundBlock::Programmed }
        } else if nand.is_out_of_use(block) {
            FoundBlock::WornOut
        } else {
            self.put(nand.geometry().unit_of(block), block, erases);
            FoundBlock::Erased
        }
    }

    /// The number of blocks.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of blocks of a plane, with those that are collected in steps.
    #[inline]
    pub fn count_of(&self, plane: usize) -> usize {
        self.counts[plane] as usize
    }

    /// [`FreeBlocks::count_of`] for each plane.
    #[inline]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// A block of `plane` is collected in steps from now on.
    pub fn expect(&mut self, plane: u32) {
        self.counts[plane as usize] += 1;
    }

    /// Such a block is collected.
    pub fn has_come(&mut self, plane: u32) {
        self.counts[plane as usize] -= 1;
    }

    /// Adds a block of `plane`, which is freed now, with its erase count.
    pub fn put_freed(&mut self, plane: u32, block: EraseBlock, erases: u32) {
        self.fresh.push_back((plane, block, erases));
        self.count += 1;
        self.counts[plane as usize] += 1;
        if self.fresh.len() > self.most_fresh {
            self.settle_oldest();
        }
    }

    /// The block that was freed first of the fresh ones is like the others from now on.
    fn settle_oldest(&mut self) {
        if let Some((plane, block, erases)) = self.fresh.pop_front() {
            self.count -= 1;
            self.counts[plane as usize] -= 1;
            self.put(plane, block, erases);
        }
    }

    /// Adds a block of `plane` with its erase count.
    pub fn put(&mut self, plane: u32, block: EraseBlock, erases: u32) {
        match &mut self.planes[plane as usize] {
            Queue::Erased(queue) => {
                debug_assert!(!queue.contains(&block), "block {} is free twice: two owners would program it", block.0);
                queue.push_back(block);
            }
            Queue::Worn(set) => {
                let is_new = set.insert((erases, block));
                assert!(is_new, "block {} is free twice: two owners would program it", block.0);
            }
        }
        self.count += 1;
        self.counts[plane as usize] += 1;
    }

    /// Takes a block of `plane`, or, if it has none, of the plane with the most.
    pub fn take(&mut self, plane: u32) -> Option<EraseBlock> {
        if self.count == 0 {
            return None;
        }
        if self.count == self.fresh.len() as u32 {
            self.settle_oldest();
        }
        let mut from = plane as usize;
        if self.planes[from].len() == 0 {
            from = (0..self.planes.len()).max_by_key(|&plane| self.planes[plane].len()).expect("there are planes");
        }
        self.count -= 1;
        self.counts[from] -= 1;
        match &mut self.planes[from] {
            Queue::Erased(queue) => queue.pop_front(),
            Queue::Worn(set) => set.pop_first().map(|(_, block)| block),
        }
    }

    /// Takes a block of `plane`, if it has one. Fresh blocks are not among them: such a pool has none.
    pub fn take_of(&mut self, plane: u32) -> Option<EraseBlock> {
        debug_assert_eq!(self.most_fresh, 0, "a block that is freed can be taken at once");
        let block = match &mut self.planes[plane as usize] {
            Queue::Erased(queue) => queue.pop_front(),
            Queue::Worn(set) => set.pop_first().map(|(_, block)| block),
        };
        self.count -= u32::from(block.is_some());
        self.counts[plane as usize] -= u32::from(block.is_some());
        block
    }

    /// Takes the most worn block, for pages that are not expected to change; the pool must be ordered by wear.
    pub fn take_most_worn(&mut self) -> Option<EraseBlock> {
        if self.count == self.fresh.len() as u32 {
            self.settle_oldest();
        }
        let worst = self.planes.iter_mut().zip(&mut self.counts).filter_map(|(queue, count)| match queue {
            Queue::Worn(set) => set.last().copied().map(|worst| (worst, set, count)),
            Queue::Erased(_) => None,
        });
        let ((erases, block), set, count) = worst.max_by_key(|(worst, ..)| *worst)?;
        set.remove(&(erases, block));
        *count -= 1;
        self.count -= 1;
        Some(block)
    }
}
