//! Metadata files: the DAT, inodes, segment usage; and virtual blocks of metadata in memory.
//!
//! | file | content |
//! |---|---|
//! | `paged` | a file of pages, under a root in the superblock |
//! | `dat` | the disk address translation: the address, checksum and history of each virtual block |
//! | `inode_file` | inodes, 16 to a page |
//! | `blocks` | blocks of maps, directories and attributes in memory |

pub(super) mod blocks;
pub(super) mod dat;
pub(super) mod inode_file;
pub(super) mod paged;

use crate::fs::sfs::media::Media;
use blocks::MetadataBlocks;
use dat::Dat;
use inode_file::InodeFile;
use paged::PagedFile;
use std::sync::Arc;

/// The metadata files of a mounted volume, and its metadata blocks.
pub(super) struct MetadataFiles {
    pub dat: Dat,
    pub inode_file: InodeFile,
    pub usage_file: PagedFile,
    pub blocks: MetadataBlocks,
}

impl MetadataFiles {
    /// Empty metadata files. At most `most_blocks` clean metadata blocks stay in memory.
    pub fn new(media: &Arc<Media>, most_blocks: usize) -> MetadataFiles {
        MetadataFiles {
            dat: Dat::new(media),
            inode_file: InodeFile::new(media),
            usage_file: PagedFile::new("usage file", media),
            blocks: MetadataBlocks::new(most_blocks),
        }
    }
}
