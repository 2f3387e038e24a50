//! Virtual blocks that hold metadata: blocks of maps and directories, extended attributes, targets of links. They are
//! kept in memory, and written only at a checkpoint; between two of them the log tells what changed.

use super::format::{BLOCK, BlockBytes, zeroed};
use rustc_hash::FxHashMap;

/// A block in memory.
pub(super) struct MetadataBlock {
    pub bytes: Box<BlockBytes>,
    pub is_dirty: bool,
    /// The inode whose it is.
    pub inode: u64,
    /// Its place in the file, or `u64::MAX` if it is none of the file's own blocks.
    pub place: u64,
}

/// What is no block of its file's own: a map block, or extended attributes.
pub(super) const NO_PLACE: u64 = u64::MAX;

/// All that are in memory, by the number of their virtual block.
#[derive(Default)]
pub(super) struct MetadataBlocks {
    all: FxHashMap<u64, MetadataBlock>,
    dirty: usize,
}

impl MetadataBlocks {
    pub fn get(&self, number: u64) -> Option<&MetadataBlock> {
        self.all.get(&number)
    }

    /// One that will be changed.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut MetadataBlock> {
        let block = self.all.get_mut(&number)?;
        if !std::mem::replace(&mut block.is_dirty, true) {
            self.dirty += 1;
        }
        Some(block)
    }

    /// Takes one that was read.
    pub fn insert(&mut self, number: u64, inode: u64, place: u64, bytes: Box<BlockBytes>) {
        self.all.insert(number, MetadataBlock { bytes, is_dirty: false, inode, place });
    }

    /// Makes a new one, of zeros.
    pub fn make(&mut self, number: u64, inode: u64, place: u64) {
        self.insert(number, inode, place, zeroed());
        self.get_mut(number);
    }

    pub fn remove(&mut self, number: u64) {
        if self.all.remove(&number).is_some_and(|block| block.is_dirty) {
            self.dirty -= 1;
        }
    }

    /// How many are changed.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    /// Those that are changed, in the order of their inodes and places.
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

    /// One is written.
    pub fn written(&mut self, number: u64) {
        if let Some(block) = self.all.get_mut(&number)
            && std::mem::replace(&mut block.is_dirty, false)
        {
            self.dirty -= 1;
        }
    }

    /// Forgets what is unchanged, if more than `bytes` are in memory.
    pub fn evict(&mut self, bytes: u64) {
        if (self.all.len() * BLOCK) as u64 > bytes {
            self.all.retain(|_, block| block.is_dirty);
        }
    }
}
