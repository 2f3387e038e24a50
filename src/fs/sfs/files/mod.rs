//! The files of a volume in memory: inodes, maps, names, data.
//!
//! [`Files`] are the files as they are in memory. Its methods, and those of [`Names`](names::Names) and
//! [`AttributeBlocks`](attribute_blocks::AttributeBlocks), which borrow them, change or read them there, and nothing else: whether
//! the volume may be written, whether there is space, and what goes to the log is decided by `calls`.
//!
//! | file | content |
//! |---|---|
//! | `names` | directories, links, targets of symbolic links |
//! | `removal` | the end of a file |
//! | `extended`, `attribute_blocks` | extended attributes; their storage in blocks |
//! | `data` | reading a file's data, and the dirty blocks that a write fills |
//! | `map` | the virtual blocks of a file, by block index |
//! | `virtual_blocks` | reading, making, giving up and freeing virtual blocks |
//! | `inode`, `inodes` | an inode; the inodes in memory |
//! | `directory` | a directory's blocks, and the index of its names |
//! | `dirty_blocks` | dirty data blocks |
//! | `attributes` | what the interface for file systems says of a file |

pub(super) mod attribute_blocks;
pub(super) mod attributes;
pub(super) mod data;
pub(super) mod directory;
pub(super) mod dirty_blocks;
pub(super) mod extended;
pub(super) mod inode;
pub(super) mod inodes;
pub(super) mod map;
pub(super) mod names;
pub(super) mod removal;
mod virtual_blocks;

use super::clock::Clock;
use super::log::records::Records;
use super::log::segments::Segments;
use super::media::Media;
use super::metadata::MetadataFiles;
use dirty_blocks::DirtyBlocks;
use inodes::Inodes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Counters of reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads {
    /// Blocks that were read.
    pub blocks: u64,
    /// Of which so many had a wrong checksum.
    pub damaged: u64,
}

/// The files of a mounted volume as they are in memory: what was read of them, and what changed since the last checkpoint.
pub(super) struct Files {
    pub media: Arc<Media>,
    /// Addresses of virtual blocks, stored inodes, and metadata blocks.
    pub metadata: MetadataFiles,
    /// The segments, and how many of their blocks are live.
    pub segments: Segments,
    /// Inodes in memory.
    pub inodes: Inodes,
    /// Referenced inodes without a name.
    pub orphans: BTreeSet<u64>,
    /// Dirty blocks of files.
    pub dirty_blocks: DirtyBlocks,
    /// Log records of changes that are not yet written.
    pub records: Records,
    /// Files renamed over others since the last log records. They are written with those records, so that a crash does
    /// not leave an empty file.
    pub renamed: BTreeSet<u64>,
    pub clock: Clock,
    /// True if anything changed since the last checkpoint.
    pub is_changed: bool,
    pub reads: Reads,
}
