//! Bitmaps, and the counts of groups and of the superblock: they follow from the walk.

use super::Check;
use crate::fs::ext::allocation::bits;
use crate::fs::ext::format::bytes::joined;
use crate::fs::ext::format::features::NEEDS_RECOVERY;
use crate::fs::ext::format::group::{bitmap_sum, flag};
use crate::fs::volume::{FileKind, VolumeError};

/// A bitmap of a group.
struct Bitmap {
    name: &'static str,
    place: u64,
    said_sum: u32,
    /// It was never written, and is not read.
    is_unwritten: bool,
    /// The bits that should be there.
    right: Vec<u8>,
    /// Bits that count.
    count: u32,
    /// Bytes that the checksum covers.
    summed_bytes: usize,
    /// The first thing that a bit stands for.
    first: u64,
}

impl Check<'_> {
    /// Compares bitmaps and counts with the use of blocks and inodes.
    pub(super) fn sums(&mut self) -> Result<(), VolumeError> {
        let (mut free_blocks, mut free_inodes) = (0u64, 0u64);
        for group in 0..self.parts.metadata.shape.groups {
            let (blocks, inodes) = self.group_sums(group)?;
            free_blocks += u64::from(blocks);
            free_inodes += u64::from(inodes);
        }
        let said = (joined(self.superblock.u32(344), self.superblock.u32(12)), self.superblock.u32(16));
        let wide = self.parts.metadata.shape.features.has(crate::fs::ext::format::features::WIDE);
        let said = if wide { said } else { (said.0 & u64::from(u32::MAX), said.1) };
        // A volume in use counts in memory.
        let is_in_use = self.superblock.features().has(NEEDS_RECOVERY);
        if !is_in_use && said != (free_blocks, free_inodes as u32) {
            let (blocks, inodes) = said;
            let what = format!(
                "the superblock says {blocks} free blocks and {inodes} free inodes, and there are {free_blocks} and \
                 {free_inodes}"
            );
            self.found(what, "the counts are corrected");
        }
        self.superblock.set_free(free_blocks, free_inodes as u32);
        Ok(())
    }

    /// Compares the bitmaps and counts of a group, and returns its free blocks and inodes.
    fn group_sums(&mut self, group: u32) -> Result<(u32, u32), VolumeError> {
        let shape = self.parts.metadata.shape.clone();
        let stored = self.groups[group as usize];
        let mut descriptor = stored;
        let has_flags = shape.checksums.cover_groups();
        let (first, count) = (shape.group_start(group), shape.blocks_of_group(group) as u32);
        let first_inode = group * shape.group_inodes;
        let (block_bytes, inode_bytes) = self.parts.allocation().bitmap_bytes();
        let is_last = group + 1 == shape.groups;
        if is_last && has_flags && stored.has(flag::NO_BLOCKS) {
            let what = format!("the block bitmap of group {group}, the last one, is said to be unwritten");
            self.found(what, "it is written");
        }
        let blocks = Bitmap {
            name: "block",
            place: stored.block_bitmap,
            said_sum: stored.block_bitmap_sum,
            is_unwritten: has_flags && stored.has(flag::NO_BLOCKS) && !is_last,
            right: part(&self.walk.used, first, count, shape.block_bytes),
            count,
            summed_bytes: block_bytes,
            first,
        };
        let inodes = Bitmap {
            name: "inode",
            place: stored.inode_bitmap,
            said_sum: stored.inode_bitmap_sum,
            is_unwritten: has_flags && stored.has(flag::NO_INODES),
            right: part(&self.walk.used_inodes, first_inode.into(), shape.group_inodes, shape.block_bytes),
            count: shape.group_inodes,
            summed_bytes: inode_bytes,
            first: u64::from(first_inode) + 1,
        };
        let unwritten = self.parts.allocation().new_block_bitmap(group, &stored);
        if let Some(sum) = self.bitmap(group, &blocks, &unwritten)? {
            descriptor.flags &= !flag::NO_BLOCKS;
            descriptor.block_bitmap_sum = sum;
        }
        if is_last {
            descriptor.flags &= !flag::NO_BLOCKS;
        }
        if let Some(sum) = self.bitmap(group, &inodes, &part(&[], 0, shape.group_inodes, shape.block_bytes))? {
            descriptor.flags &= !flag::NO_INODES;
            descriptor.inode_bitmap_sum = sum;
        }
        let free = bits::count_clear(&blocks.right, count);
        let unused = bits::count_clear(&inodes.right, shape.group_inodes);
        let in_group = self.walk.files.range(first_inode + 1..=first_inode + shape.group_inodes);
        let directories = in_group.filter(|(_, file)| file.kind == FileKind::Directory).count() as u32;
        for (what, said, is) in [
            ("free blocks", &mut descriptor.free_blocks, free),
            ("free inodes", &mut descriptor.free_inodes, unused),
            ("directories", &mut descriptor.directories, directories),
        ] {
            if *said != is {
                let what = format!("group {group} says {said} {what}, and has {is}");
                *said = is;
                if self.walk.findings.len() < super::MOST_FINDINGS {
                    let repair = "the count is corrected".to_string();
                    self.walk.findings.push(crate::fs::volume::Damage { what, repair });
                }
            }
        }
        if descriptor != stored {
            self.groups[group as usize] = descriptor;
            self.store_descriptor(group, &descriptor)?;
        }
        Ok((free, unused))
    }

    /// Compares a bitmap with the right one. If it is another, it is written, and its checksum is returned. `unwritten`:
    /// what a bitmap stands for that was never written.
    fn bitmap(&mut self, group: u32, bitmap: &Bitmap, unwritten: &[u8]) -> Result<Option<u32>, VolumeError> {
        let Bitmap { name, place, first, count, .. } = bitmap;
        let stored = if bitmap.is_unwritten { unwritten.into() } else { self.read(*place)? };
        let (length, checksums) = (bitmap.summed_bytes, self.parts.metadata.shape.checksums);
        let sum = |bytes: &[u8]| bitmap_sum(&bytes[..length], self.parts.metadata.shape.descriptor_bytes, checksums);
        let is_sound = bitmap.is_unwritten || sum(&stored).is_none_or(|sum| sum == bitmap.said_sum);
        if is_sound && stored[..] == bitmap.right[..] {
            return Ok(None);
        }
        let right_sum = sum(&bitmap.right).unwrap_or(0);
        let differs = (0..*count).find(|at| bits::is_set(&stored, *at) != bits::is_set(&bitmap.right, *at));
        let what = match differs {
            Some(at) if bits::is_set(&stored, at) => {
                format!("{name} {} is said to be in use, and nothing names it", first + u64::from(at))
            }
            Some(at) => format!("{name} {} is said to be free, and is used", first + u64::from(at)),
            None if !is_sound => "its checksum is wrong".to_string(),
            None => "bits behind its end are clear".to_string(),
        };
        self.found(format!("the {name} bitmap of group {group}: {what}"), "the bitmap is written anew");
        self.write(*place, bitmap.right.clone());
        Ok(Some(right_sum))
    }
}

/// The bitmap of a group: `count` bits from `first` on, which are clear if there are none, and all behind them set.
fn part(all: &[u8], first: u64, count: u32, block_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0xFF; block_bytes];
    bits::put(&mut bytes, 0..count, false);
    let first = first as u32;
    match first.is_multiple_of(8) {
        true if !all.is_empty() => {
            let whole = count as usize / 8;
            bytes[..whole].copy_from_slice(&all[first as usize / 8..first as usize / 8 + whole]);
            (count / 8 * 8..count).for_each(|at| bits::put(&mut bytes, at..at + 1, bits::is_set(all, first + at)));
        }
        true => {}
        // Blocks of 1 KiB: the first block of the first group is block 1.
        false => (0..count).for_each(|at| bits::put(&mut bytes, at..at + 1, bits::is_set(all, first + at))),
    }
    bytes
}
