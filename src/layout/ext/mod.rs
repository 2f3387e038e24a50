//! ext2, ext3 and ext4: fixed places for superblocks, descriptors, bitmaps and inode tables; the journal is a file.
//!
//! Sources: "ext4 Data Structures and Algorithms" of the kernel's documentation, for every offset in this folder. Magic numbers,
//! features and flags are those of `fs::ext::format`, which writes them.

mod contents;
mod files;
mod groups;
mod inode;
mod journal;
mod superblock;

use super::bytes::Device;
use super::{FileSystem, Journal, Layout, LayoutError, Region, Regions};
pub(super) use contents::reads_as_metadata;
use superblock::Superblock;

/// The layout, with the blocks of all files if `with_files`; `None` if the device holds no ext file system.
pub(super) fn read(device: &mut Device, with_files: bool) -> Result<Option<Layout>, LayoutError> {
    let Some(superblock) = Superblock::read(device)? else { return Ok(None) };
    let layout = |journal, regions| Layout {
        file_system: FileSystem::Ext,
        block_bytes: superblock.block_bytes,
        journal,
        regions: Regions::new(regions),
    };
    if superblock.is_journal_device {
        return Ok(Some(layout(Journal::Whole, vec![(0..device.size_bytes, Region::Journal)])));
    }
    let groups = groups::read(device, &superblock)?;
    let mut regions = if with_files { contents::of_files(device, &superblock, &groups)? } else { Vec::new() };
    regions.extend(groups.metadata(&superblock));
    let journal = match superblock.journal {
        superblock::JournalPlace::None => Journal::None,
        superblock::JournalPlace::External => Journal::External,
        superblock::JournalPlace::Inode(number) => {
            let inode = groups.inode(&superblock, number);
            let extents = journal::extents(device, &superblock, inode)?;
            regions.extend(extents.into_iter().map(|range| (range, Region::Journal)));
            Journal::Inside
        }
    };
    Ok(Some(layout(journal, regions)))
}
