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

use crate::fs::sfs::SfsError;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{BlockRecord, Kind};
use crate::task::Task;
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

    /// Sets how many clean pages of the DAT and of the inode file stay in memory.
    pub fn bound(&mut self, dat_pages: usize, inode_pages: usize) {
        self.dat.file().keep(dat_pages);
        self.inode_file.file().keep(inode_pages);
    }

    /// The metadata file of a kind.
    pub fn paged(&mut self, kind: Kind) -> &mut PagedFile {
        match kind {
            Kind::Dat => self.dat.file(),
            Kind::InodeFile => self.inode_file.file(),
            _ => &mut self.usage_file,
        }
    }

    /// True if the block of a block record is live at an address.
    pub fn is_live_at(&mut self, task: &Task<'_>, record: &BlockRecord, address: u64) -> Result<bool, SfsError> {
        let number = record.number.get();
        match Kind::of_number(record.kind) {
            Some(Kind::Data | Kind::Metadata) if number == 0 || number >= self.dat.len() => Ok(false),
            Some(Kind::Data | Kind::Metadata) => {
                let entry = self.dat.get(task, number)?;
                Ok(entry.is_taken == 1 && entry.address.get() == address)
            }
            Some(kind) => Ok(self.paged(kind).is_live(number, address)),
            None => Ok(false),
        }
    }

    /// Blocks used by files and their metadata.
    pub fn used_blocks(&self) -> u64 {
        // Pages of metadata files are counted with the files they describe.
        self.dat.used() + self.dat.occupied() + self.inode_file.occupied()
    }

    /// Blocks that the next checkpoint frees, as nothing in them is in use.
    pub fn reclaimable(&self) -> u64 {
        self.dat.emptied() + self.inode_file.emptied()
    }
}
