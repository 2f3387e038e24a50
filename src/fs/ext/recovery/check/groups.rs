//! Group descriptors: the places of bitmaps and inode tables.
//!
//! These places do not change after a volume is made, so the copies of the descriptors have them, too. A descriptor whose
//! own places cannot be takes them from a copy. Its counts are summed up later.

use super::Check;
use crate::fs::ext::format::bytes::le16;
use crate::fs::ext::format::group::{Descriptor, checksum};
use crate::fs::ext::format::inode::Inode;
use crate::fs::volume::VolumeError;
use std::ops::Range;

/// Copies of a descriptor that are looked at.
const MOST_COPIES: usize = 3;
/// Blocks of an inode table that are looked at to tell which of two places is right.
const SAMPLED: u64 = 8;

impl Check<'_> {
    /// Reads all descriptors, and mends them.
    pub(super) fn load_groups(&mut self) -> Result<(), VolumeError> {
        self.groups.clear();
        for group in 0..self.ext.shape.groups {
            let mended = self.descriptor(group)?;
            self.groups.push(mended);
        }
        Ok(())
    }

    /// The descriptor of a group as it lies on the medium, and true if its checksum is right.
    fn stored_descriptor(&self, group: u32, block: u64, at: usize) -> Result<(Descriptor, bool), VolumeError> {
        let shape = &self.ext.shape;
        let block = self.read(block)?;
        let bytes = &block[at..at + shape.descriptor_bytes];
        let is_sound = !shape.checksums.cover_groups() || checksum(bytes, group, shape.checksums) == le16(bytes, 30);
        Ok((Descriptor::read(bytes), is_sound))
    }

    /// The descriptor of a group. If it is damaged, one with the same places, or those of a copy.
    fn descriptor(&mut self, group: u32) -> Result<Descriptor, VolumeError> {
        let shape = &self.ext.shape;
        let (block, at) = shape.place_of_descriptor(group);
        let (stored, is_sound) = self.stored_descriptor(group, block, at)?;
        let fits = self.fits(&stored);
        let has_sums = shape.checksums.cover_groups();
        let counts_fit = stored.free_inodes <= shape.group_inodes && stored.never_used <= shape.group_inodes;
        if is_sound && fits && counts_fit && has_sums {
            return Ok(stored);
        }
        let copy = self.copy_of_descriptor(group)?;
        let differs = |copy: &Descriptor| places(copy) != places(&stored);
        let rival = match copy.filter(differs) {
            Some(copy) if !fits || !is_sound => Some(copy),
            // Nothing but the tables says which of them is right.
            Some(copy) => (self.plausible(copy.inode_table)? > self.plausible(stored.inode_table)?).then_some(copy),
            None => None,
        };
        if is_sound && counts_fit && rival.is_none() && fits {
            return Ok(stored);
        }
        let mut mended = match rival {
            Some(copy) => copy,
            None if fits => stored,
            None => {
                let what = format!("the descriptor of group {group}: {}", self.misplaced(&stored));
                self.found(what, "no copy of it can be used: restore the volume from a backup");
                return Err(crate::fs::ext::error::damaged(
                    format!("the descriptor of group {group}"),
                    "neither it nor a copy says where the group's bitmaps and inodes are",
                ));
            }
        };
        if !is_sound || rival.is_some() || !counts_fit {
            // Flags say that bitmaps and inodes were never written: without them all inodes are looked at.
            if !is_sound {
                mended.flags = 0;
            }
            mended.never_used = if is_sound && counts_fit { mended.never_used } else { 0 };
        }
        let why = match (fits, is_sound, rival.is_some()) {
            (false, ..) => self.misplaced(&stored),
            (_, false, _) => "its checksum is wrong".to_string(),
            (.., true) => format!("its places are {:?}, and those of its copy {:?}", places(&stored), places(&mended)),
            _ => "it counts more inodes than a group has".to_string(),
        };
        let mend = if rival.is_some() { "its places are taken from a copy" } else { "its counts are summed up" };
        self.found(format!("the descriptor of group {group}: {why}"), mend);
        self.store_descriptor(group, &mended)?;
        Ok(mended)
    }

    /// Puts a descriptor into its block.
    pub(super) fn store_descriptor(&mut self, group: u32, descriptor: &Descriptor) -> Result<(), VolumeError> {
        let shape = &self.ext.shape;
        let (block, at) = shape.place_of_descriptor(group);
        let mut bytes = self.read(block)?.to_vec();
        descriptor.write(&mut bytes[at..at + shape.descriptor_bytes], group, shape.checksums);
        self.write(block, bytes);
        Ok(())
    }

    /// True if the places of a descriptor are within the volume.
    fn fits(&self, descriptor: &Descriptor) -> bool {
        let shape = &self.ext.shape;
        shape.holds(descriptor.block_bitmap, 1)
            && shape.holds(descriptor.inode_bitmap, 1)
            && shape.holds(descriptor.inode_table, shape.table_blocks())
    }

    fn misplaced(&self, descriptor: &Descriptor) -> String {
        let (places, blocks) = (places(descriptor), self.ext.shape.blocks);
        format!("its bitmaps and inodes are at blocks {places:?} of a volume of {blocks} blocks")
    }

    /// A sound copy of a group's descriptor.
    fn copy_of_descriptor(&self, group: u32) -> Result<Option<Descriptor>, VolumeError> {
        let shape = &self.ext.shape;
        for (block, at) in shape.copies_of_descriptor(group).take(MOST_COPIES) {
            let (copy, is_sound) = self.stored_descriptor(group, block, at)?;
            let is_empty = copy == Descriptor::default();
            if is_sound && !is_empty && self.fits(&copy) {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Inodes of a table that can be, less those that cannot.
    fn plausible(&self, table: u64) -> Result<i64, VolumeError> {
        let shape = &self.ext.shape;
        let mut sum = 0;
        for block in table..table + SAMPLED.min(shape.table_blocks()) {
            for bytes in self.read(block)?.chunks_exact(shape.inode_bytes) {
                let inode = Inode::new(bytes);
                sum += match (inode.mode(), inode.kind()) {
                    (0, _) if bytes.iter().all(|byte| *byte == 0) => 0,
                    (0, _) => -1,
                    (_, Some(_)) => i64::from(inode.deleted() != 0 || inode.links() > 0),
                    (_, None) => -1,
                };
            }
        }
        Ok(sum)
    }

    /// Marks what has a place of its own.
    pub(super) fn place_groups(&mut self) -> Result<(), VolumeError> {
        let boot = 0..self.ext.shape.first_data_block;
        self.mark(boot);
        let copies: Vec<Range<u64>> = (0..self.ext.shape.groups)
            .map(|group| {
                let first = self.ext.shape.group_start(group);
                first..first + self.ext.shape.blocks_before(group)
            })
            .collect();
        for range in copies {
            self.mark(range);
        }
        for group in 0..self.groups.len() {
            let Descriptor { block_bitmap, inode_bitmap, inode_table, .. } = self.groups[group];
            let table = inode_table..inode_table + self.ext.shape.table_blocks();
            for range in [block_bitmap..block_bitmap + 1, inode_bitmap..inode_bitmap + 1, table] {
                if let Some(taken) = self.mark(range).first() {
                    let block = taken.start;
                    return Err(crate::fs::ext::error::damaged(
                        format!("the descriptor of group {group}"),
                        format!("block {block} of its bitmaps and inodes is another group's, too"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The places of a group's bitmaps and inode table.
fn places(descriptor: &Descriptor) -> [u64; 3] {
    [descriptor.block_bitmap, descriptor.inode_bitmap, descriptor.inode_table]
}
