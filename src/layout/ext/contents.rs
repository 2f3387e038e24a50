//! Classifies blocks: by the inode that owns them, or by their bytes.

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, Region};
use super::files::Walker;
use super::groups::Groups;
use super::inode::{INODE_BYTES, Inode};
use super::superblock::Superblock;
use crate::fs::ext::format::attributes::MAGIC as ATTRIBUTES_MAGIC;
use crate::fs::ext::format::extents::MAGIC as EXTENT_MAGIC;
use std::ops::Range;

const ROOT_DIRECTORY: u64 = 2;

/// The blocks of all files: those of regular files are data, those of directories and all indirect and extent blocks
/// are metadata.
///
/// An invalid inode is skipped: while the file system is mounted, its newest inodes are still in the journal, and their
/// place in the table may be torn.
pub(super) fn of_files(
    device: &mut Device,
    superblock: &Superblock,
    groups: &Groups,
) -> Result<Vec<(Range<u64>, Region)>, LayoutError> {
    let mut regions = Vec::new();
    let mut walker = Walker::new(device, superblock);
    for (first_number, table) in groups.used_inodes(superblock) {
        let table = walker.device().read(table.start, (table.end - table.start) as usize)?;
        for (index, inode) in table.0.chunks_exact(superblock.inode_bytes as usize).enumerate() {
            let number = first_number + index as u64;
            let inode = Inode(Bytes(inode.get(..INODE_BYTES).unwrap_or_default().to_vec()));
            if inode.is_in_use() && !superblock.is_journal_or_spare(number) {
                add_file(&mut walker, superblock, number, &inode, &mut regions);
            }
        }
    }
    Ok(regions)
}

fn add_file(
    walker: &mut Walker,
    superblock: &Superblock,
    number: u64,
    inode: &Inode,
    regions: &mut Vec<(Range<u64>, Region)>,
) {
    let mut add = |first: u64, count: u64, region| regions.push((superblock.bytes_of(first, count), region));
    if inode.attributes_block() > 0 {
        add(inode.attributes_block(), 1, Region::Metadata);
    }
    let is_own = number != ROOT_DIRECTORY && superblock.is_reserved(number);
    let region = if inode.holds_data() && !is_own { Region::Data } else { Region::Metadata };
    if inode.has_blocks()
        && let Ok(blocks) = walker.file(&inode.map(), inode.has_extents())
    {
        blocks.runs.into_iter().for_each(|run| add(run.start, run.end - run.start, region));
        blocks.naming.into_iter().for_each(|block| add(block, 1, Region::Metadata));
    }
}

/// True if a block looks like an extent node, a block of attributes, or a block of a directory.
pub(in super::super) fn reads_as_metadata(block: &[u8]) -> bool {
    let block = Bytes(block.to_vec());
    let is_extents = block.le16(0) == EXTENT_MAGIC && 12 + 12 * u64::from(block.le16(4)) <= block.0.len() as u64;
    (is_extents && block.le16(2) <= block.le16(4)) || block.le32(0) == ATTRIBUTES_MAGIC || is_directory(&block)
}

/// Entries of a directory form a chain that ends with the block: inode (4), length (2), name's length (1), type.
fn is_directory(block: &Bytes) -> bool {
    let mut at = 0;
    while at < block.0.len() {
        let (length, name) = (usize::from(block.le16(at + 4)), usize::from(block.u8(at + 6)));
        if length < 8 + name || !length.is_multiple_of(4) || at + length > block.0.len() {
            return false;
        }
        at += length;
    }
    !block.0.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_a_chain_that_ends_with_its_block() {
        let mut block = vec![0; 1024];
        block[..8].copy_from_slice(&[11, 0, 0, 0, 12, 0, 1, 2]);
        block[12..20].copy_from_slice(&[12, 0, 0, 0, 0xE8, 3, 2, 2]);
        block[1012..1020].copy_from_slice(&[0, 0, 0, 0, 12, 0, 0, 0xDE]);
        assert!(reads_as_metadata(&block));
        block[16] = 0xEC;
        assert!(!reads_as_metadata(&block));
    }

    #[test]
    fn what_users_write_does_not_read_as_metadata() {
        for byte in 0..=255 {
            assert!(!reads_as_metadata(&[byte; 4096]), "{byte}");
        }
        assert!(!reads_as_metadata(&b"The quick brown fox jumps over the lazy dog. ".repeat(23)[..1024]));
        assert!(!reads_as_metadata(&[]));
    }
}
