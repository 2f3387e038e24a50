//! Memory: how much of it a volume may take (`memory=`), and how that is shared out.
//!
//! What is bounded is what grows with the work: the blocks that wait, the writes behind, what a checkpoint has yet to
//! write, and the cache of what is not changed. A share that is full is relieved, or swept, where it grows. What grows
//! with the device (24 bytes for each page of a metadata file, 80 bytes for each segment) and with what is held (8 bytes
//! for each inode that the kernel knows) is small and is not bounded.
//!
//! A volume of stamps has no bound: a stamp cannot be read back, and so its metadata must stay.

use super::Sfs;
use super::settings::SfsSettings;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::BLOCK;

/// The program, its threads' buffers, and what is not bounded of a small volume, in bytes.
const FIXED: u64 = 16 << 20;
/// The least for what a checkpoint has yet to write and for the cache together, in bytes.
const LEAST_METADATA: u64 = 8 << 20;
/// The allocator and the hash tables take this part of all on top of what is counted.
const OVERHEAD: u64 = 8;
/// Bytes of writes behind that there may be where memory is not short.
pub(super) const MOST_BEHIND: u64 = 128 << 20;

/// What each part of a volume may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Blocks of files that may wait, unless the device says fewer. While segments are cleaned it is twice as many.
    pub waiting: usize,
    /// Segments that are cleaned at once, at the most.
    pub at_once: u32,
    /// Bytes of writes that are on their way to the image.
    pub behind: u64,
    /// Bytes that the next checkpoint has to write, or to load in order to write them.
    pub changed: u64,
    /// Unchanged pages of the DAT.
    pub dat_pages: usize,
    /// Unchanged pages of the inode file.
    pub inode_pages: usize,
    /// Unchanged blocks of maps, directories and attributes.
    pub metadata_blocks: usize,
    /// Unchanged inodes.
    pub inodes: usize,
    /// Bytes of directories' indexes. That of the directory that is being used is kept, however large it is.
    pub indexes: usize,
}

/// What a volume takes of memory, by its bounded parts, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Blocks that wait to be written.
    pub waiting: u64,
    /// What the next checkpoint has to write, or to load in order to write it.
    pub changed: u64,
    /// What can be read again.
    pub cached: u64,
    /// Of that, the indexes of directories.
    pub indexes: u64,
}

impl Sfs {
    /// What it takes of memory now.
    pub fn memory_use(&mut self) -> MemoryUse {
        let indexes = self.inodes.index_bytes() as u64;
        let blocks = self.metadata.blocks.unchanged()
            + self.metadata.dat.file().unchanged()
            + self.metadata.inode_file.file().unchanged();
        let cached = blocks as u64 * BLOCK as u64 + self.inodes.unchanged() as u64 * INODE_BYTES + indexes;
        let waiting = (self.waiting.len() * self.media.block_width()) as u64;
        MemoryUse { waiting, changed: self.changed_bytes(), cached, indexes }
    }
}

impl Shares {
    /// No bound: for stamps.
    pub const NO_BOUND: Shares = Shares {
        waiting: usize::MAX,
        at_once: u32::MAX,
        behind: MOST_BEHIND,
        changed: u64::MAX,
        dat_pages: usize::MAX,
        inode_pages: usize::MAX,
        metadata_blocks: usize::MAX,
        inodes: usize::MAX,
        indexes: usize::MAX,
    };

    /// Those of a volume with segments of so many bytes.
    pub fn of(settings: &SfsSettings, segment_bytes: u64) -> Shares {
        let caching = Shares::of_cache(Shares::NO_BOUND, settings.cache_bytes);
        let bytes = match (settings.memory_bytes, settings.machine_memory_bytes) {
            (Some(bytes), _) => bytes,
            (None, Some(bytes)) => bytes.max(least(segment_bytes)),
            (None, None) => return caching,
        };
        caching.within(bytes, segment_bytes, settings.metadata_memory_bytes)
    }

    /// The cache has so many bytes.
    fn of_cache(shares: Shares, bytes: u64) -> Shares {
        let blocks = |part: u64| (part / BLOCK as u64).max(2) as usize;
        Shares {
            dat_pages: blocks(bytes / 4),
            inode_pages: blocks(bytes / 8),
            metadata_blocks: blocks(bytes / 4),
            inodes: (bytes / 8 / INODE_BYTES).max(4) as usize,
            indexes: (bytes / 4) as usize,
            ..shares
        }
    }

    /// All together take at most `bytes`, which are [`least`] or more.
    fn within(self, bytes: u64, segment_bytes: u64, metadata: Option<u64>) -> Shares {
        let counted = bytes - bytes / OVERHEAD;
        // Beside what is shared out: the segment that is being written, and one that is being cleaned.
        let left = counted.saturating_sub(FIXED + 2 * segment_bytes);
        let part = (left / 8).max(segment_bytes);
        let rest = metadata.unwrap_or(left.saturating_sub(3 * part).max(LEAST_METADATA));
        let cached = Shares::of_cache(self, rest / 5 * 3);
        Shares {
            waiting: (part / BLOCK as u64) as usize,
            at_once: (part / (4 * segment_bytes)).max(1) as u32,
            behind: part.min(MOST_BEHIND),
            changed: rest / 5 * 2,
            dat_pages: self.dat_pages.min(cached.dat_pages),
            inode_pages: self.inode_pages.min(cached.inode_pages),
            metadata_blocks: self.metadata_blocks.min(cached.metadata_blocks),
            inodes: self.inodes.min(cached.inodes),
            indexes: self.indexes.min(cached.indexes),
        }
    }
}

/// Bytes of an inode in memory.
pub(super) const INODE_BYTES: u64 = size_of::<Inode>() as u64 + 48;

/// The least that a volume with segments of so many bytes takes: one that is written, one on its way to the image, two
/// that wait, one that is cleaned, and some metadata.
pub(super) fn least(segment_bytes: u64) -> u64 {
    let counted = FIXED + 5 * segment_bytes + LEAST_METADATA;
    (counted * OVERHEAD).div_ceil(OVERHEAD - 1).next_multiple_of(1 << 20)
}
