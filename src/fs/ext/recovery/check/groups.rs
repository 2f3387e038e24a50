//! Group descriptors: the places of bitmaps and inode tables.
//!
//! These places do not change after a volume is made, so the copies of the descriptors have them, too. A descriptor whose
//! own places cannot be takes them from a copy; if no copy has them, or two groups have the same block, new places are
//! chosen when all blocks in use are known. Its counts are summed up later.

use super::Check;
use crate::fs::ext::allocation::bits;
use crate::fs::ext::error::damaged;
use crate::fs::ext::format::bytes::le16;
use crate::fs::ext::format::features::FLEX_BG;
use crate::fs::ext::format::group::{Descriptor, checksum};
use crate::fs::ext::format::inode::Inode;
use crate::fs::volume::VolumeError;
use std::ops::Range;

/// Copies of a descriptor that are looked at.
const MOST_COPIES: usize = 3;
/// The place of a structure that has none.
pub(super) const UNPLACED: u64 = 0;
/// Blocks of an inode table that are looked at to tell which of two places is right.
const SAMPLED: u64 = 8;

impl Check<'_> {
    /// Reads all descriptors, and mends them.
    pub(super) fn load_groups(&mut self) -> Result<(), VolumeError> {
        self.groups.clear();
        for group in 0..self.parts.metadata.shape.groups {
            let mended = self.descriptor(group)?;
            self.groups.push(mended);
        }
        Ok(())
    }

    /// The descriptor of a group as it lies on the medium, and true if its checksum is right.
    fn stored_descriptor(&self, group: u32, block: u64, at: usize) -> Result<(Descriptor, bool), VolumeError> {
        let shape = &self.parts.metadata.shape;
        let block = self.read(block)?;
        let bytes = &block[at..at + shape.descriptor_bytes];
        let is_sound = !shape.checksums.cover_groups() || checksum(bytes, group, shape.checksums) == le16(bytes, 30);
        Ok((Descriptor::read(bytes), is_sound))
    }

    /// The descriptor of a group. If it is damaged, one with the same places, or those of a copy.
    fn descriptor(&mut self, group: u32) -> Result<Descriptor, VolumeError> {
        let shape = &self.parts.metadata.shape;
        let (block, at) = shape.place_of_descriptor(group);
        let (stored, is_sound) = self.stored_descriptor(group, block, at)?;
        let fits = self.fits(group, &stored);
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
            // Neither it nor a copy says where they are. They get places when all blocks in use are known.
            None => {
                let what = format!("the descriptor of group {group}: {}", self.misplaced(&stored));
                self.found(what, "what is nowhere gets a new place; inodes of a table that is nowhere are lost");
                return Ok(self.without_misplaced(group, stored));
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
        let shape = &self.parts.metadata.shape;
        let (block, at) = shape.place_of_descriptor(group);
        let mut bytes = self.read(block)?.to_vec();
        descriptor.write(&mut bytes[at..at + shape.descriptor_bytes], group, shape.checksums);
        self.write(block, bytes);
        Ok(())
    }

    /// True if the places of a group's descriptor are within the volume; within the group, if the volume has each group
    /// for itself.
    fn fits(&self, group: u32, descriptor: &Descriptor) -> bool {
        let lengths = [1, 1, self.parts.metadata.shape.table_blocks()];
        places(descriptor).into_iter().zip(lengths).all(|(first, count)| self.can_have(group, first, count))
    }

    fn can_have(&self, group: u32, first: u64, count: u64) -> bool {
        let shape = &self.parts.metadata.shape;
        let start = shape.group_start(group);
        let is_own = first >= start && first + count <= start + shape.blocks_of_group(group);
        shape.holds(first, count) && (is_own || shape.features.has(FLEX_BG))
    }

    /// A group's descriptor, without the places that cannot be.
    fn without_misplaced(&self, group: u32, mut descriptor: Descriptor) -> Descriptor {
        let table_blocks = self.parts.metadata.shape.table_blocks();
        for (place, count) in [
            (&mut descriptor.block_bitmap, 1),
            (&mut descriptor.inode_bitmap, 1),
            (&mut descriptor.inode_table, table_blocks),
        ] {
            if !self.can_have(group, *place, count) {
                *place = UNPLACED;
            }
        }
        Descriptor { flags: 0, never_used: 0, ..descriptor }
    }

    fn misplaced(&self, descriptor: &Descriptor) -> String {
        let (places, blocks) = (places(descriptor), self.parts.metadata.shape.blocks);
        format!("its bitmaps and inodes are at blocks {places:?} of a volume of {blocks} blocks")
    }

    /// A sound copy of a group's descriptor.
    fn copy_of_descriptor(&self, group: u32) -> Result<Option<Descriptor>, VolumeError> {
        let shape = &self.parts.metadata.shape;
        for (block, at) in shape.copies_of_descriptor(group).take(MOST_COPIES) {
            let (copy, is_sound) = self.stored_descriptor(group, block, at)?;
            let is_empty = copy == Descriptor::default();
            if is_sound && !is_empty && self.fits(group, &copy) {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Inodes of a table that can be, less those that cannot.
    fn plausible(&self, table: u64) -> Result<i64, VolumeError> {
        let shape = &self.parts.metadata.shape;
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

    /// Marks the structures that have places of their own.
    pub(super) fn place_groups(&mut self) -> Result<(), VolumeError> {
        let boot = 0..self.parts.metadata.shape.first_data_block;
        self.mark(boot);
        let copies: Vec<Range<u64>> = (0..self.parts.metadata.shape.groups)
            .map(|group| {
                let first = self.parts.metadata.shape.group_start(group);
                first..first + self.parts.metadata.shape.blocks_before(group)
            })
            .collect();
        for range in copies {
            self.mark(range);
        }
        for group in 0..self.parts.metadata.shape.groups {
            self.place_table(group);
            self.place_bitmaps(group);
        }
        Ok(())
    }

    /// Marks a group's inode table. One in blocks of others moves when all blocks in use are known.
    fn place_table(&mut self, group: u32) {
        let first = self.groups[group as usize].inode_table;
        if first == UNPLACED {
            return;
        }
        let table = first..first + self.parts.metadata.shape.table_blocks();
        let taken = self.mark(table.clone());
        if let Some(range) = taken.first() {
            let block = range.start;
            self.found(format!("block {block} of the inodes of group {group} is in use otherwise"), "they move");
            table.filter(|block| !taken.iter().any(|range| range.contains(block))).for_each(|block| {
                self.unmark(block..block + 1);
            });
            self.walk.moved_tables.insert(group);
        }
    }

    /// Marks a group's bitmaps. One in a block of others gets a new place.
    fn place_bitmaps(&mut self, group: u32) {
        let mut descriptor = self.groups[group as usize];
        for (name, place) in [("block", &mut descriptor.block_bitmap), ("inode", &mut descriptor.inode_bitmap)] {
            if *place != UNPLACED && !self.mark(*place..*place + 1).is_empty() {
                let what = format!("block {place}, the {name} bitmap of group {group}, is in use otherwise");
                self.found(what, "the bitmap gets another block");
                *place = UNPLACED;
            }
        }
        self.groups[group as usize] = descriptor;
    }

    /// Gives bitmaps and inode tables without a place one, and moves tables, when all blocks in use are known.
    pub(super) fn place_missing(&mut self) -> Result<(), VolumeError> {
        for group in 0..self.parts.metadata.shape.groups {
            let (stored, moves) = (self.groups[group as usize], self.walk.moved_tables.contains(&group));
            let mut mended = stored;
            for (name, place) in [("block", &mut mended.block_bitmap), ("inode", &mut mended.inode_bitmap)] {
                if self.walk.bad_blocks.iter().any(|bad| bad.contains(place)) {
                    let what = format!("block {place}, the {name} bitmap of group {group}, is a bad block");
                    self.found(what, "the bitmap gets another block");
                    *place = UNPLACED;
                }
            }
            if !places(&mended).contains(&UNPLACED) && !moves {
                continue;
            }
            if moves || stored.inode_table == UNPLACED {
                let blocks = self.parts.metadata.shape.table_blocks();
                mended.inode_table = self.take_run(group, blocks)?;
                for at in 0..blocks {
                    let bytes = match stored.inode_table {
                        UNPLACED => vec![0; self.parts.metadata.shape.block_bytes],
                        from => self.read(from + at)?.to_vec(),
                    };
                    self.write(mended.inode_table + at, bytes);
                }
            }
            for place in [&mut mended.block_bitmap, &mut mended.inode_bitmap] {
                if *place == UNPLACED {
                    *place = self.take_run(group, 1)?;
                }
            }
            self.groups[group as usize] = mended;
            self.store_descriptor(group, &mended)?;
        }
        Ok(())
    }

    /// Takes free blocks for a group, side by side: its own, or others if the volume allows that (`flex_bg`).
    fn take_run(&mut self, group: u32, count: u64) -> Result<u64, VolumeError> {
        let shape = &self.parts.metadata.shape;
        let start = shape.group_start(group);
        let own = start..start + shape.blocks_of_group(group);
        let all = shape.first_data_block..if shape.features.has(FLEX_BG) { shape.blocks } else { 0 };
        let run = [own, all].into_iter().find_map(|range| {
            let mut at = range.start as u32;
            while u64::from(at) + count <= range.end {
                let first = bits::next_clear(&self.walk.used, at, range.end as u32)?;
                match bits::next_used(&self.walk.used, first, range.end as u32) {
                    Some(end) if u64::from(end - first) < count => at = end,
                    _ => return (u64::from(first) + count <= range.end).then_some(u64::from(first)),
                }
            }
            None
        });
        let run = run.ok_or_else(|| {
            damaged(format!("the descriptor of group {group}"), "no blocks are free for its bitmaps and inodes")
        })?;
        self.mark(run..run + count);
        Ok(run)
    }
}

/// The places of a group's bitmaps and inode table.
fn places(descriptor: &Descriptor) -> [u64; 3] {
    [descriptor.block_bitmap, descriptor.inode_bitmap, descriptor.inode_table]
}
