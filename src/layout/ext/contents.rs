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

/// The highest type of an entry, that of a symbolic link.
const LAST_TYPE: u8 = 7;
/// The type of the entry that has a block's checksum.
const CHECKSUM_TYPE: u8 = 0xDE;

/// Entries of a directory form a chain that ends with the block: inode (4), length (2), name's length (1), type, name.
/// Random bytes form such a chain once in 65,000 blocks, and mostly without a valid type or name.
fn is_directory(block: &Bytes) -> bool {
    let mut at = 0;
    while at < block.0.len() {
        let (length, name) = (usize::from(block.le16(at + 4)), usize::from(block.u8(at + 6)));
        if length < 8 + name || !length.is_multiple_of(4) || at + length > block.0.len() {
            return false;
        }
        let (kind, is_used) = (block.u8(at + 7), block.le32(at) != 0);
        let is_name = name > 0 && !block.0[at + 8..at + 8 + name].iter().any(|byte| [0, b'/'].contains(byte));
        if kind > LAST_TYPE && kind != CHECKSUM_TYPE || is_used && !is_name {
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
        block[..9].copy_from_slice(&[11, 0, 0, 0, 12, 0, 1, 2, b'.']);
        block[12..22].copy_from_slice(&[12, 0, 0, 0, 0xE8, 3, 2, 2, b'.', b'.']);
        block[1012..1020].copy_from_slice(&[0, 0, 0, 0, 12, 0, 0, 0xDE]);
        assert!(reads_as_metadata(&block));
        for (at, wrong) in [(16, 0xEC), (19, 8), (20, 0), (21, b'/')] {
            let mut block = block.clone();
            block[at] = wrong;
            assert!(!reads_as_metadata(&block), "byte {at} is {wrong}");
        }
    }

    #[test]
    fn what_users_write_does_not_read_as_metadata() {
        for byte in 0..=255 {
            assert!(!reads_as_metadata(&[byte; 4096]), "{byte}");
        }
        assert!(!reads_as_metadata(&b"The quick brown fox jumps over the lazy dog. ".repeat(23)[..1024]));
        assert!(!reads_as_metadata(&[]));
    }

    /// One block of random bytes in 65,000 counted as metadata, that whose first entry filled it.
    #[test]
    fn random_bytes_that_end_like_a_directory_do_not_read_as_metadata() {
        let mut random = crate::random::Random::new(1, "random blocks");
        let taken = (0..20_000).filter(|_| {
            let mut block: Vec<u8> = (0..512).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect();
            block[4..6].copy_from_slice(&4096u16.to_le_bytes());
            reads_as_metadata(&block)
        });
        assert!(taken.count() < 20_000 / 20, "these are one random block in 65,000");
    }
}
