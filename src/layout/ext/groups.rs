//! Block groups: bitmaps, inode tables, and copies of the superblock and the descriptors.
//!
//! A descriptor has 32 bytes, or 64 with the high halves:
//!
//! ```text
//! 0 block bitmap   4 inode bitmap   8 inode table   32, 36, 40 their high halves   18 flags   28 unused inodes   50 their high half
//! ```

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, Region, damaged};
use super::superblock::Superblock;
use crate::fs::ext::format::group::flag::NO_INODES;
use std::ops::Range;

/// A group's descriptor, in blocks.
struct Group {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    unused_inodes: u64,
}

/// All groups.
pub(super) struct Groups {
    groups: Vec<Group>,
}

/// Reads all group descriptors.
pub(super) fn read(device: &mut Device, superblock: &Superblock) -> Result<Groups, LayoutError> {
    let in_block = superblock.descriptors_of_block();
    let mut groups = Vec::new();
    for number in 0..superblock.groups.div_ceil(in_block) {
        let place = descriptor_block(superblock, number);
        if place >= superblock.blocks {
            let reason = format!("block {number} of them would be at block {place}, beyond the end");
            return Err(damaged("the ext group descriptors", reason));
        }
        let block = device.read(place * superblock.block_bytes, superblock.block_bytes as usize)?;
        let count = (superblock.groups - number * in_block).min(in_block);
        groups.extend(
            (0..count as usize).map(|index| Group::parse(&block, index * superblock.descriptor_bytes, superblock)),
        );
    }
    Ok(Groups { groups })
}

/// The block of group descriptors `number`.
fn descriptor_block(superblock: &Superblock, number: u64) -> u64 {
    match superblock.first_meta_group {
        // After the superblock, if the first group of its meta group has one.
        Some(first) if number >= first => {
            let group = number * superblock.descriptors_of_block();
            superblock.superblock_block(group) + u64::from(superblock.has_superblock(group))
        }
        _ => superblock.superblock_block(0) + 1 + number,
    }
}

impl Group {
    fn parse(block: &Bytes, at: usize, superblock: &Superblock) -> Group {
        let number = |low: usize| {
            let high = if superblock.descriptor_bytes >= 64 { u64::from(block.le32(at + low + 32)) << 32 } else { 0 };
            high | u64::from(block.le32(at + low))
        };
        let all = superblock.group_inodes;
        let unused_inodes = match block.le16(at + 18) & NO_INODES {
            _ if !superblock.counts_unused_inodes => 0,
            0 if superblock.descriptor_bytes >= 64 => {
                u64::from(block.le16(at + 50)) << 16 | u64::from(block.le16(at + 28))
            }
            0 => u64::from(block.le16(at + 28)),
            _ => all,
        };
        Group { block_bitmap: number(0), inode_bitmap: number(4), inode_table: number(8), unused_inodes }
    }
}

impl Groups {
    /// The byte address of an inode, if its table is inside the file system.
    pub fn inode(&self, superblock: &Superblock, number: u32) -> Option<u64> {
        let index = u64::from(number).checked_sub(1)?;
        let group = self.groups.get(usize::try_from(index / superblock.group_inodes).ok()?)?;
        let table = superblock.bytes_of(group.inode_table, self.table_blocks(superblock));
        let at = table.start + index % superblock.group_inodes * superblock.inode_bytes;
        (at + superblock.inode_bytes <= table.end).then_some(at)
    }

    /// For each group the number of its first inode, and the bytes of its inodes that may be in use.
    pub fn used_inodes<'a>(&'a self, superblock: &'a Superblock) -> impl Iterator<Item = (u64, Range<u64>)> + 'a {
        self.groups.iter().enumerate().map(|(number, group)| {
            let used = superblock.group_inodes.saturating_sub(group.unused_inodes) * superblock.inode_bytes;
            let table = superblock.bytes_of(group.inode_table, self.table_blocks(superblock));
            (number as u64 * superblock.group_inodes + 1, table.start..table.end.min(table.start + used))
        })
    }

    fn table_blocks(&self, superblock: &Superblock) -> u64 {
        (superblock.group_inodes * superblock.inode_bytes).div_ceil(superblock.block_bytes)
    }

    /// All metadata with a fixed place, except the journal.
    pub fn metadata(&self, superblock: &Superblock) -> Vec<(Range<u64>, Region)> {
        let mut blocks: Vec<(u64, u64)> = Vec::with_capacity(4 * self.groups.len());
        // A block before the first superblock holds the boot record.
        blocks.push((0, superblock.superblock_block(0)));
        blocks.extend(superblock.protection_block.map(|block| (block, 1)));
        let table_blocks = self.table_blocks(superblock);
        for (number, group) in self.groups.iter().enumerate() {
            blocks.extend(descriptions(superblock, number as u64));
            blocks.extend([(group.block_bitmap, 1), (group.inode_bitmap, 1), (group.inode_table, table_blocks)]);
        }
        // A descriptor of zeros was never filled in.
        let mut ranges: Vec<_> = blocks.iter().map(|(first, count)| superblock.bytes_of(*first, *count)).collect();
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.into_iter().map(|range| (range, Region::Metadata)).collect()
    }
}

/// The superblock or its copy, and the descriptors at the start of a group.
fn descriptions(superblock: &Superblock, group: u64) -> Vec<(u64, u64)> {
    let start = superblock.superblock_block(group);
    let has_superblock = superblock.has_superblock(group);
    let mut blocks = Vec::new();
    if has_superblock {
        blocks.push((start, 1));
    }
    let after_superblock = start + u64::from(has_superblock);
    let in_block = superblock.descriptors_of_block();
    let descriptor_blocks = superblock.groups.div_ceil(in_block);
    let is_in_meta_group = superblock.first_meta_group.is_some_and(|first| group / in_block >= first);
    if is_in_meta_group {
        // The first, the second and the last group of a meta group hold its descriptor block.
        if [0, 1, in_block - 1].contains(&(group % in_block)) {
            blocks.push((after_superblock, 1));
        }
    } else if has_superblock {
        let together = superblock.first_meta_group.unwrap_or(descriptor_blocks).min(descriptor_blocks);
        blocks.push((after_superblock, together + superblock.reserved_descriptor_blocks));
    }
    blocks
}
