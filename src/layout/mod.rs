//! Where a file system keeps its journal and its metadata, read from its own structures.
//!
//! | file | what it is |
//! |---|---|
//! | `bytes` | the seam: something that reads bytes at an offset, and numbers out of them |
//! | `regions` | ranges of bytes and what they hold |
//! | `ext` | ext2, ext3 and ext4: superblock, group descriptors, the journal's inode |
//! | `xfs` | XFS: the log of its superblock, the headers of its allocation groups |
//! | `btrfs` | btrfs: superblock mirrors, and the chunk tree |
//! | `partitions` | the tables of MBR and GPT |
//! | `file_systems` | all file systems of a device: one on the whole of it, or one in each partition |
//!
//! The structures of a running file system lie on its device as its last flush left them, so a layout can be read while
//! it is mounted; what has moved since shows in a later one ([`Layout::joined`]). Any bytes are read without a panic:
//! what is damaged is an error that says which structure is wrong, and counts and trees are bounded by the device's
//! size. Checksums are not verified: a structure is believed if its magic numbers, places and bounds fit together.

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

/// A file system that can be told from others by its superblock.
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

/// Where the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// There is none: ext2, ext4 without a journal, btrfs (whose log trees are metadata like others).
    None,
    /// On the device itself, in the regions that say so.
    Inside,
    /// On another device.
    External,
    /// The device is another file system's journal, and nothing else.
    Whole,
}

/// Where one file system keeps what, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which file system it is.
    pub file_system: FileSystem,
    /// The size in bytes of the blocks that it counts in.
    pub block_bytes: u64,
    /// Where its journal is.
    pub journal: Journal,
    /// The ranges whose contents are fixed; the rest may hold anything.
    pub regions: Regions,
}

/// Why a layout cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The device does not give its bytes.
    #[error("cannot read {length} bytes at byte {offset}: {source}")]
    Read {
        /// The first byte.
        offset: u64,
        /// How many bytes.
        length: usize,
        /// What the device says.
        source: std::io::Error,
    },
    /// No superblock of a known file system is there.
    #[error("no superblock of ext2, ext3, ext4, xfs or btrfs is there")]
    Unknown,
    /// A structure says what cannot be.
    #[error("{structure}: {reason}")]
    Damaged {
        /// The structure.
        structure: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

fn damaged(structure: &'static str, reason: impl Into<String>) -> LayoutError {
    LayoutError::Damaged { structure, reason: reason.into() }
}

impl Layout {
    /// Reads the layout of the file system on a device of `size_bytes`: the journal, and what has a fixed place.
    ///
    /// Fails if a read fails, if there is no file system that it knows, and if a structure on the way is damaged.
    pub fn read(source: &mut dyn ReadAt, size_bytes: u64) -> Result<Layout, LayoutError> {
        Layout::read_to(source, size_bytes, false)
    }

    /// As [`read`](Self::read), and of an ext file system also the blocks of every file and directory: its inodes are
    /// read from end to end.
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

    /// What a write to `offset_bytes` holds.
    ///
    /// The journal's place decides first, then the other regions; where a region leaves it open, `says_metadata`: whether
    /// the request carries the kernel's metadata flag (`M` in its letters).
    pub fn content_at(&self, offset_bytes: u64, says_metadata: bool) -> Content {
        match self.regions.at(offset_bytes) {
            Some(Region::Journal) => Content::Journal,
            Some(Region::Metadata) => Content::Metadata,
            Some(Region::Data) => Content::Data,
            None if says_metadata => Content::Metadata,
            None => Content::Data,
        }
    }

    /// Whether a block, as it lies on the device, reads as metadata of a kind that has no fixed place.
    ///
    /// It serves where neither a region nor a flag can tell: data that an ext journal brought to its place carries the
    /// metadata flag, too, and a file that is deleted since names its blocks no more. A block map's blocks have no mark
    /// of their own and do not read as metadata; XFS's and btrfs's are never asked for.
    pub fn reads_as_metadata(&self, block: &[u8]) -> bool {
        self.file_system == FileSystem::Ext && ext::reads_as_metadata(block)
    }

    /// What either layout knows of one file system; where both know a place, the later one counts.
    pub fn joined(&self, later: &Layout) -> Layout {
        Layout { regions: self.regions.overlaid(&later.regions), ..later.clone() }
    }
}
