//! Virtual blocks that hold metadata: blocks of maps and directories, extended attributes, targets of links. They are
//! kept in memory, and written only at a checkpoint; between two of them the log tells what changed. Those that are not
//! changed can be read again, and some are forgotten when there are too many.

use super::format::{BlockBytes, zeroed};
use rustc_hash::FxHashMap;

/// A block in memory.
pub(super) struct MetadataBlock {
    pub bytes: Box<BlockBytes>,
    pub is_dirty: bool,
    is_used: bool,
    /// The inode whose it is.
    pub inode: u64,
    /// Its place in the file, or `u64::MAX` if it is none of the file's own blocks.
    pub place: u64,
}

/// What is no block of its file's own: a map block, or extended attributes.
pub(super) const NO_PLACE: u64 = u64::MAX;

/// All that are in memory, by the number of their virtual block.
pub(super) struct MetadataBlocks {
    all: FxHashMap<u64, MetadataBlock>,
    dirty: usize,
    /// Unchanged ones that are kept.
    most: usize,
}

impl MetadataBlocks {
    /// Keeps at most so many that are not changed.
    pub fn new(most: usize) -> MetadataBlocks {
        MetadataBlocks { all: FxHashMap::default(), dirty: 0, most: most.max(2) }
    }

    /// One that is used, and stays for the time being.
    pub fn used(&mut self, number: u64) -> Option<&MetadataBlock> {
        let block = self.all.get_mut(&number)?;
        block.is_used = true;
        Some(block)
    }

    pub fn get(&self, number: u64) -> Option<&MetadataBlock> {
        self.all.get(&number)
    }

    /// One that will be changed.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut MetadataBlock> {
        let block = self.all.get_mut(&number)?;
        block.is_used = true;
        if !std::mem::replace(&mut block.is_dirty, true) {
            self.dirty += 1;
        }
        Some(block)
    }

    /// Takes one that was read.
    pub fn insert(&mut self, number: u64, inode: u64, place: u64, bytes: Box<BlockBytes>) {
        if self.unchanged() >= self.most {
            self.sweep();
        }
        // In a damaged volume two files may name one number.
        self.remove(number);
        self.all.insert(number, MetadataBlock { bytes, is_dirty: false, is_used: true, inode, place });
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

    /// Unchanged ones in memory.
    pub fn unchanged(&self) -> usize {
        debug_assert!(self.dirty <= self.all.len(), "a changed block is in memory");
        self.all.len() - self.dirty
    }

    /// Forgets unchanged ones if there are too many: those that were not used since the last time, and if that is not
    /// enough all of them.
    fn sweep(&mut self) {
        for only_unused in [true, false] {
            if self.unchanged() > self.most / 2 {
                self.all.retain(|_, block| block.is_dirty || only_unused && std::mem::take(&mut block.is_used));
            }
        }
    }
}
