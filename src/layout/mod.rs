//! Locates the journal and the metadata of a file system from its own structures.
//!
//! | file | role |
//! |---|---|
//! | `bytes` | the seam: reads bytes at an offset and decodes numbers |
//! | `regions` | byte ranges and their contents |
//! | `ext` | ext2, ext3 and ext4: superblock, group descriptors, the journal's inode |
//! | `xfs` | XFS: the log of its superblock, the headers of its allocation groups |
//! | `btrfs` | btrfs: superblock mirrors, and the chunk tree |
//! | `partitions` | partition tables: MBR and GPT |
//! | `file_systems` | all file systems of a device: one on the whole device, or one in each partition |
//!
//! The structures on the device are those of the last flush, so a layout can be read while the file system is mounted;
//! later changes show in a later layout ([`Layout::joined`]). No input panics: a damaged structure is an error that
//! names it, and counts and trees are bounded by the device's size. Checksums are not verified: a structure is accepted
//! if its magic numbers, addresses and bounds are consistent.

mod btrfs;
mod bytes;
mod ext;
mod file_systems;
mod partitions;
mod regions;
mod xfs;

use crate::label::Content;
use bytes::Device;
pub use bytes::ReadAt;
pub use file_systems::FileSystems;
pub use regions::{Region, Regions};

/// A file system that its superblock identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2, ext3 or ext4, or a journal device of theirs.
    Ext,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FileSystem {
    /// The name in errors and reports.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext => "ext",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }
}

/// The location of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// No journal: ext2, ext4 without a journal, btrfs (whose log trees are plain metadata).
    None,
    /// On the device itself, in the [`Region::Journal`] ranges.
    Inside,
    /// On another device.
    External,
    /// The whole device is another file system's journal.
    Whole,
}

/// The regions of one file system at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The type of the file system.
    pub file_system: FileSystem,
    /// The size of its blocks, in bytes.
    pub block_bytes: u64,
    /// The location of its journal.
    pub journal: Journal,
    /// The ranges with a fixed content; the rest may hold anything.
    pub regions: Regions,
}

/// The reason why a layout cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The device failed.
    #[error("cannot read {length} bytes at byte {offset}: {source}")]
    Read {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: usize,
        /// The device's error.
        source: std::io::Error,
    },
    /// The device has no superblock of a known file system.
    #[error("no superblock of ext2, ext3, ext4, xfs or btrfs is there")]
    Unknown,
    /// A structure is inconsistent.
    #[error("{structure}: {reason}")]
    Damaged {
        /// The structure.
        structure: &'static str,
        /// The inconsistency.
        reason: String,
    },
}

fn damaged(structure: &'static str, reason: impl Into<String>) -> LayoutError {
    LayoutError::Damaged { structure, reason: reason.into() }
}

impl Layout {
    /// Reads the layout of the file system on a device of `size_bytes`: the journal, and all structures at fixed
    /// places.
    ///
    /// Fails if a read fails, if no known file system is found, or if a structure is damaged.
    pub fn read(source: &mut dyn ReadAt, size_bytes: u64) -> Result<Layout, LayoutError> {
        Layout::read_to(source, size_bytes, false)
    }

    /// As [`read`](Self::read), with the blocks of every file and directory of an ext file system: reads all inode
    /// tables.
    pub fn read_with_files(source: &mut dyn ReadAt, size_bytes: u64) -> Result<Layout, LayoutError> {
        Layout::read_to(source, size_bytes, true)
    }

    fn read_to(source: &mut dyn ReadAt, size_bytes: u64, with_files: bool) -> Result<Layout, LayoutError> {
        let mut device = Device::new(source, size_bytes);
        if let Some(layout) = xfs::read(&mut device)? {
            return Ok(layout);
        }
        if let Some(layout) = btrfs::read(&mut device)? {
            return Ok(layout);
        }
        ext::read(&mut device, with_files)?.ok_or(LayoutError::Unknown)
    }

    /// The content of a write to `offset_bytes`: by its region or, outside all regions, by `says_metadata`: true if the
    /// request carries the kernel's metadata flag (`M` in its letters).
    pub fn content_at(&self, offset_bytes: u64, says_metadata: bool) -> Content {
        match self.regions.at(offset_bytes) {
            Some(Region::Journal) => Content::Journal,
            Some(Region::Metadata) => Content::Metadata,
            Some(Region::Data) => Content::Data,
            None if says_metadata => Content::Metadata,
            None => Content::Data,
        }
    }

    /// True if a block of the device looks like metadata without a fixed place.
    ///
    /// Needed where neither region nor flag decides: the checkpoint of an ext journal writes data with the metadata
    /// flag, too, and a deleted file no longer names its blocks. A block of a block map has no magic number and does
    /// not look like metadata; blocks of XFS and btrfs never do.
    pub fn reads_as_metadata(&self, block: &[u8]) -> bool {
        self.file_system == FileSystem::Ext && ext::reads_as_metadata(block)
    }

    /// Both layouts of one file system; where they overlap, `later` wins.
    pub fn joined(&self, later: &Layout) -> Layout {
        Layout { regions: self.regions.overlaid(&later.regions), ..later.clone() }
    }
}
