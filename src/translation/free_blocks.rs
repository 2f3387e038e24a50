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

/// The state of a block after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBlock {
    /// Ready to be programmed.
    Erased,
    /// Programmed, in part or whole.
    Programmed,
    /// Out of use.
    WornOut,
}

/// The pool of erased blocks.
pub struct FreeBlocks {
    planes: Vec<Queue>,
    count: u32,
}

impl FreeBlocks {
    /// An empty pool. `by_wear` takes the least worn block first.
    pub fn new(geometry: &Geometry, by_wear: bool) -> FreeBlocks {
        let queue = || if by_wear { Queue::Worn(BTreeSet::new()) } else { Queue::Erased(VecDeque::new()) };
        FreeBlocks { planes: (0..geometry.units()).map(|_| queue()).collect(), count: 0 }
    }

    /// Adds all blocks of a new drive.
    pub fn put_all(&mut self, geometry: &Geometry) {
        for block in (0..geometry.blocks).map(EraseBlock) {
            self.put(geometry.unit_of(block), block, 0);
        }
    }

    /// Adds a block after a power cut, if it is erased. Returns its state.
    pub fn put_found<T: Timing>(&mut self, block: EraseBlock, nand: &Nand<T>) -> FoundBlock {
        let erases = nand.erase_counts()[block.index()];
        if nand.programmed_pages()[block.index()] > 0 {
            FoundBlock::Programmed
        } else if erases >= nand.endurance() {
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
    }

    /// Takes a block of `plane`, or, if it has none, of the plane with the most.
    pub fn take(&mut self, plane: u32) -> Option<EraseBlock> {
        if self.count == 0 {
            return None;
        }
        let len = |queue: &Queue| match queue {
            Queue::Erased(queue) => queue.len(),
            Queue::Worn(set) => set.len(),
        };
        let mut from = plane as usize;
        if len(&self.planes[from]) == 0 {
            from = (0..self.planes.len()).max_by_key(|&plane| len(&self.planes[plane])).expect("there are planes");
        }
        self.count -= 1;
        match &mut self.planes[from] {
            Queue::Erased(queue) => queue.pop_front(),
            Queue::Worn(set) => set.pop_first().map(|(_, block)| block),
        }
    }

    /// Takes the most worn block, for pages that are not expected to change; the pool must be ordered by wear.
    pub fn take_most_worn(&mut self) -> Option<EraseBlock> {
        let worst = self.planes.iter_mut().filter_map(|queue| match queue {
            Queue::Worn(set) => set.last().copied().map(|worst| (worst, set)),
            Queue::Erased(_) => None,
        });
        let ((erases, block), set) = worst.max_by_key(|(worst, _)| *worst)?;
        set.remove(&(erases, block));
        self.count -= 1;
        Some(block)
    }
}
