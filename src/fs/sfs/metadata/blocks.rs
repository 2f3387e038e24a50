//! Virtual blocks of metadata: maps, directories, extended attributes, targets of links. Dirty ones stay in memory
//! until a checkpoint; between checkpoints their changes are in log records. Clean ones can be read again, and are
//! evicted when there are too many.

use crate::fs::sfs::media::format::{BlockBytes, zeroed};
use rustc_hash::FxHashMap;

/// A metadata block in memory.
pub(in crate::fs::sfs) struct MetadataBlock {
    pub bytes: Box<BlockBytes>,
    pub is_dirty: bool,
    is_used: bool,
    /// The block's inode.
    pub inode: u64,
    /// The block's index in the file, or `u64::MAX` if it is not in the file's own data.
    pub place: u64,
}

/// The index of a map block, or of a block of extended attributes.
pub(in crate::fs::sfs) const NO_PLACE: u64 = u64::MAX;

/// All metadata blocks in memory, by virtual block number.
pub(in crate::fs::sfs) struct MetadataBlocks {
    all: FxHashMap<u64, MetadataBlock>,
    dirty: usize,
    /// Maximum number of clean blocks.
    most: usize,
}

impl MetadataBlocks {
    /// Keeps at most `most` clean blocks.
    pub fn new(most: usize) -> MetadataBlocks {
        MetadataBlocks { all: FxHashMap::default(), dirty: 0, most: most.max(2) }
    }

    /// Looks up a block and marks it as recently used.
    pub fn used(&mut self, number: u64) -> Option<&MetadataBlock> {
        let block = self.all.get_mut(&number)?;
        block.is_used = true;
        Some(block)
    }

    pub fn get(&self, number: u64) -> Option<&MetadataBlock> {
        self.all.get(&number)
    }

    /// Looks up a block and marks it as dirty.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut MetadataBlock> {
        let block = self.all.get_mut(&number)?;
        block.is_used = true;
        if !std::mem::replace(&mut block.is_dirty, true) {
            self.dirty += 1;
        }
        Some(block)
    }

    /// Inserts a clean block.
    pub fn insert(&mut self, number: u64, inode: u64, place: u64, bytes: Box<BlockBytes>) {
        if self.unchanged() >= self.most {
            self.evict();
        }
        // In a damaged volume, two files may refer to one number.
        self.remove(number);
        self.all.insert(number, MetadataBlock { bytes, is_dirty: false, is_used: true, inode, place });
    }

    /// Inserts a new dirty block of zeros.
    pub fn make(&mut self, number: u64, inode: u64, place: u64) {
        self.insert(number, inode, place, zeroed());
        self.get_mut(number);
    }

    pub fn remove(&mut self, number: u64) {
        if self.all.remove(&number).is_some_and(|block| block.is_dirty) {
            self.dirty -= 1;
        }
    }

    /// Number of dirty blocks.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    /// The dirty blocks, ordered by inode and index.
    pub fn dirty_numbers(&self) -> Vec<u64> {
        let mut dirty: Vec<(u64, u64, u64)> = self
            .all
            .iter()
            .filter(|(_, block)| block.is_dirty)
            .map(|(number, block)| (block.inode, block.place, *number))
            .collect();
        dirty.sort_unstable();
        dirty.into_iter().map(|(.., number)| number).collect()
    }

    /// Marks a block as clean.
    pub fn written(&mut self, number: u64) {
        if let Some(block) = self.all.get_mut(&number)
            && std::mem::replace(&mut block.is_dirty, false)
        {
            self.dirty -= 1;
        }
    }

    /// Number of clean blocks.
    pub fn unchanged(&self) -> usize {
        debug_assert!(self.dirty <= self.all.len(), "all dirty blocks are in memory");
        self.all.len() - self.dirty
    }

    /// Evicts clean blocks if there are too many: those not used since the last eviction, or all of them if that is not
    /// enough.
    fn evict(&mut self) {
        for only_unused in [true, false] {
            if self.unchanged() > self.most / 2 {
                self.all.retain(|_, block| block.is_dirty || only_unused && std::mem::take(&mut block.is_used));
            }
        }
    }
}
