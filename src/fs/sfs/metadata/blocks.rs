//! Virtual blocks of metadata: maps, directories, extended attributes, targets of links. Dirty ones stay in memory
//! until a checkpoint; between checkpoints their changes are in log records. Clean ones can be read again, and are
//! evicted when there are too many.

use crate::crc;
use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::media::format::{self, Kind};
use crate::fs::sfs::media::format::{BlockBytes, zeroed};
use crate::fs::sfs::metadata::paged;
use crate::task::Task;
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

impl Files {
    /// Reads a virtual block of metadata.
    pub(in crate::fs::sfs) fn metadata_block(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
        place: u64,
    ) -> Result<&BlockBytes, SfsError> {
        if self.metadata.blocks.used(number).is_none() {
            let bytes = self.read_virtual(task, number, inode)?;
            self.metadata.blocks.insert(number, inode, place, bytes);
        }
        Ok(&self.metadata.blocks.get(number).expect("the block was read").bytes)
    }

    /// Reads a virtual block of metadata, and marks it as dirty.
    pub(in crate::fs::sfs) fn metadata_block_mut(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
        place: u64,
    ) -> Result<&mut BlockBytes, SfsError> {
        self.metadata_block(task, number, inode, place)?;
        self.is_changed = true;
        Ok(&mut self.metadata.blocks.get_mut(number).expect("the block was read").bytes)
    }

    /// Allocates a virtual block of metadata, of zeros.
    pub(in crate::fs::sfs) fn make_metadata_block(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        place: u64,
    ) -> Result<u64, SfsError> {
        let number = self.metadata.dat.take(task)?;
        self.metadata.blocks.make(number, inode, place);
        self.inode_mut(task, inode)?.blocks += 1;
        Ok(number)
    }

    /// Reads a virtual block of metadata from the media, and verifies its checksum.
    pub(in crate::fs::sfs) fn read_virtual(
        &mut self,
        task: &Task<'_>,
        number: u64,
        inode: u64,
    ) -> Result<Box<BlockBytes>, SfsError> {
        let entry = self.metadata.dat.get(task, number)?;
        let what = || format!("virtual block {number} of inode {inode}");
        let mut bytes = format::zeroed();
        match entry.address.get() {
            _ if entry.is_given_up() => {
                Err(SfsError::Damaged { what: what(), why: "its content was lost in a repair".to_string() })
            }
            0 => Ok(bytes),
            address if address & format::DIRTY != 0 => {
                let why = "its DAT entry marks it as buffered data, and it is metadata".to_string();
                Err(SfsError::Damaged { what: what(), why })
            }
            address => {
                paged::check_address(&self.media, "DAT", address)?;
                self.media.read_metadata(task, address, &mut bytes[..])?;
                self.reads.blocks += 1;
                let crc = crc::crc32c(&bytes[..]);
                if crc != entry.crc.get() {
                    self.reads.damaged += 1;
                    let why = format!(
                        "its checksum is {crc:08x}, and should be {:08x} (block {address} of the log)",
                        entry.crc.get()
                    );
                    return Err(SfsError::Damaged { what: what(), why });
                }
                Ok(bytes)
            }
        }
    }

    /// Frees a virtual block of a file.
    pub(in crate::fs::sfs) fn free_block(&mut self, task: &Task<'_>, inode: u64, number: u64) -> Result<(), SfsError> {
        let entry = self.metadata.dat.get(task, number)?;
        if entry.is_taken != 1 {
            let why = format!("it refers to virtual block {number}, which is free");
            return Err(SfsError::Damaged { what: format!("the map of inode {inode}"), why });
        }
        let address = entry.address.get();
        let (lies_at, kind) = match address & format::DIRTY {
            0 => {
                let is_data = self.metadata.blocks.get(number).is_none() && !self.inode(task, inode)?.holds_metadata();
                (address, if is_data { Kind::Data } else { Kind::Metadata })
            }
            _ => {
                let slot = (address & !format::DIRTY) as u32;
                let before = self.dirty_blocks.slot(slot).before;
                self.dirty_blocks.remove(slot);
                (before, Kind::Data)
            }
        };
        if lies_at != 0 {
            let segment = (lies_at / u64::from(self.media.segment_blocks())) as u32;
            if kind == Kind::Data {
                self.segments.count_death(segment, self.clock.tick);
            }
            self.segments.lose(segment, kind, entry.writes.get(), entry.modified.get());
        }
        self.metadata.blocks.remove(number);
        self.metadata.dat.free(task, number)?;
        let file = self.inode_mut(task, inode)?;
        file.blocks = file.blocks.saturating_sub(1);
        Ok(())
    }
}
