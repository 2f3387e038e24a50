//! The memory bound of a volume (`memory=`), and its shares.
//!
//! Bounded are the parts that grow with the workload: dirty blocks, writes in flight, dirty metadata, and the cache of
//! clean metadata. A part that exceeds its share is written out or evicted where it grows. Parts that grow with the
//! device (24 bytes for each page of a metadata file, 80 bytes for each segment) or with references (8 bytes for each
//! inode known to the kernel) are small and not bounded.
//!
//! A volume of stamps has no bound: stamps cannot be read back as metadata, so metadata stays in memory.

use super::settings::SfsSettings;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::BLOCK;

/// The program, its threads' buffers, and the unbounded parts of a small volume, in bytes.
const FIXED: u64 = 16 << 20;
/// Minimum for dirty metadata and the cache together, in bytes.
const LEAST_METADATA: u64 = 8 << 20;
/// The allocator and the hash tables add 1 part in this many to the counted bytes.
const OVERHEAD: u64 = 8;
/// Maximum bytes of writes in flight without a memory bound.
pub(super) const MOST_IN_FLIGHT: u64 = 128 << 20;

/// The share of each part of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Maximum dirty data blocks, unless the device says fewer; twice as many during cleaning.
    pub dirty_blocks: usize,
    /// Maximum number of segments cleaned at once.
    pub at_once: u32,
    /// Maximum bytes of writes in flight to the image.
    pub in_flight: u64,
    /// Maximum bytes that the next checkpoint writes, or loads in order to write.
    pub changed: u64,
    /// Maximum clean pages of the DAT.
    pub dat_pages: usize,
    /// Maximum clean pages of the inode file.
    pub inode_pages: usize,
    /// Maximum clean blocks of maps, directories and attributes.
    pub metadata_blocks: usize,
    /// Maximum clean inodes.
    pub inodes: usize,
    /// Maximum bytes of directory indexes. The index in use is kept, whatever its size.
    pub indexes: usize,
}

/// Memory used by the bounded parts of a volume, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Dirty data blocks.
    pub dirty: u64,
    /// Dirty metadata, and metadata that the next checkpoint loads.
    pub changed: u64,
    /// Clean cached metadata, which can be read again.
    pub cached: u64,
    /// Directory indexes, included in the clean metadata.
    pub indexes: u64,
}

impl MemoryUse {
    /// Memory that the files of a volume take now.
    pub(super) fn of(files: &mut Files) -> MemoryUse {
        let indexes = files.inodes.index_bytes() as u64;
        let blocks = files.metadata.blocks.unchanged()
            + files.metadata.dat.file().unchanged()
            + files.metadata.inode_file.file().unchanged();
        let cached = blocks as u64 * BLOCK as u64 + files.inodes.unchanged() as u64 * INODE_BYTES + indexes;
        let dirty = (files.dirty_blocks.len() * files.media.block_width()) as u64;
        MemoryUse { dirty, changed: changed_bytes(files), cached, indexes }
    }
}

/// Bytes of metadata that the next checkpoint writes or loads.
pub(super) fn changed_bytes(files: &mut Files) -> u64 {
    let blocks = files.metadata.blocks.dirty()
        + files.metadata.dat.file().dirty_pages()
        + files.metadata.inode_file.file().dirty_pages()
        + files.inodes.changed_pages();
    blocks as u64 * BLOCK as u64 + files.inodes.changed() as u64 * INODE_BYTES + files.records.len() as u64
}

impl Shares {
    /// Shares without a bound, for stamps.
    pub const NO_BOUND: Shares = Shares {
        dirty_blocks: usize::MAX,
        at_once: u32::MAX,
        in_flight: MOST_IN_FLIGHT,
        changed: u64::MAX,
        dat_pages: usize::MAX,
        inode_pages: usize::MAX,
        metadata_blocks: usize::MAX,
        inodes: usize::MAX,
        indexes: usize::MAX,
    };

    /// The shares of a volume with segments of `segment_bytes`.
    pub fn of(settings: &SfsSettings, segment_bytes: u64) -> Shares {
        let caching = Shares::of_cache(Shares::NO_BOUND, settings.cache_bytes);
        let bytes = match (settings.memory_bytes, settings.machine_memory_bytes) {
            (Some(bytes), _) => bytes,
            (None, Some(bytes)) => bytes.max(minimum_bytes(segment_bytes)),
            (None, None) => return caching,
        };
        caching.within(bytes, segment_bytes, settings.metadata_memory_bytes)
    }

    /// Splits a cache of `bytes` bytes.
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

    /// Reduces the shares to `bytes` in total, which is at least [`minimum_bytes`].
    fn within(self, bytes: u64, segment_bytes: u64, metadata: Option<u64>) -> Shares {
        let counted = bytes - bytes / OVERHEAD;
        // The segment being written and one being cleaned come on top of the shares.
        let left = counted.saturating_sub(FIXED + 2 * segment_bytes);
        let part = (left / 8).max(segment_bytes);
        let rest = metadata.unwrap_or(left.saturating_sub(3 * part).max(LEAST_METADATA));
        let cached = Shares::of_cache(self, rest / 5 * 3);
        Shares {
            dirty_blocks: (part / BLOCK as u64) as usize,
            at_once: (part / (4 * segment_bytes)).max(1) as u32,
            in_flight: part.min(MOST_IN_FLIGHT),
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

/// Minimum memory of a volume with segments of this size, in bytes: one segment being written, one in flight to the
/// image, two dirty, one being cleaned, and some metadata.
pub(super) fn minimum_bytes(segment_bytes: u64) -> u64 {
    let counted = FIXED + 5 * segment_bytes + LEAST_METADATA;
    (counted * OVERHEAD).div_ceil(OVERHEAD - 1).next_multiple_of(1 << 20)
}
