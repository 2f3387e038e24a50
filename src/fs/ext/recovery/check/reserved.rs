//! The inode that reserves blocks for more group descriptors (`resize_inode`).
//!
//! ```text
//! inode 7, number 14 of its map ── a block of numbers
//!     number n: the n-th block of descriptors that the volume may get, behind those that it has
//!         ── which holds the same block in each group with a copy of the superblock
//! ```

use super::Check;
use crate::fs::ext::format::block_map::DIRECT;
use crate::fs::ext::format::bytes::{le32, put32};
use crate::fs::ext::format::features::RESIZE_INODE;
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::ext::format::shape::Shape;
use crate::fs::volume::VolumeError;

/// The inode.
pub(super) const RESIZE: u32 = 7;

impl Check<'_> {
    /// Checks the inode, whose fields can be those of a file. One that is damaged is made anew.
    pub(super) fn resize_inode(&mut self, number: u32, stored: Inode, has_sum: bool) -> Result<(), VolumeError> {
        let shape = self.parts.metadata.shape.clone();
        if !shape.features.has(RESIZE_INODE) {
            self.found(format!("inode {number} reserves blocks, and the volume has no such feature"), "it is freed");
            return self.free_inode(number);
        }
        let place = 4 * (DIRECT as usize + 1);
        let named = u64::from(le32(stored.map(), place));
        let is_free = shape.holds(named, 1) && !self.is_used(named);
        let holder = if is_free { Some(named) } else { None };
        let mut right = stored.clone();
        right.map_mut().fill(0);
        right.set_flags(right.flags() & !flag::EXTENTS);
        let numbers = reserved_blocks(&shape);
        let copies = (1..shape.groups).filter(|group| shape.has_superblock(*group)).collect::<Vec<_>>();
        right.set_blocks(1 + numbers.len() as u64 * (1 + copies.len() as u64), shape.block_bytes);
        let is_whole = match holder {
            Some(holder) => {
                put32(right.map_mut(), place, holder as u32);
                has_sum && right == stored && self.has_reserved(&shape, holder, &numbers, &copies)?
            }
            None => false,
        };
        let holder = match holder {
            Some(holder) => {
                self.mark(holder..holder + 1);
                holder
            }
            // Other files are not known yet: a walk that begins again finds the block used.
            None => match self.holder_behind(&shape) {
                Some(holder) => holder,
                None => {
                    self.found(format!("inode {number}: no block is free for its map"), "it is freed");
                    return self.free_inode(number);
                }
            },
        };
        if is_whole {
            return Ok(());
        }
        let what = format!("inode {number}, which reserves blocks for group descriptors, does not name them");
        self.found(what, "its map is made anew");
        put32(right.map_mut(), place, holder as u32);
        self.write_reserved(&shape, holder, &numbers, &copies)?;
        self.put_inode(number, &right)
    }

    /// A block for the numbers, which the block bitmaps call free.
    fn holder_behind(&mut self, shape: &Shape) -> Option<u64> {
        for group in 0..shape.groups {
            let descriptor = self.groups[group as usize];
            let Ok(bitmap) = self.parts.allocation().block_bitmap(self.task, group, &descriptor) else { continue };
            let first = shape.group_start(group);
            for at in 0..shape.blocks_of_group(group) as u32 {
                let block = first + u64::from(at);
                if !crate::fs::ext::allocation::bits::is_set(&bitmap, at) && !self.is_used(block) {
                    self.mark(block..block + 1);
                    return Some(block);
                }
            }
        }
        None
    }

    /// True if the blocks of numbers hold the right ones.
    fn has_reserved(&self, shape: &Shape, holder: u64, numbers: &[u64], copies: &[u32]) -> Result<bool, VolumeError> {
        if self.read(holder)?[..] != self.holder_of(shape, numbers)[..] {
            return Ok(false);
        }
        for number in numbers {
            if self.read(*number)?[..] != copies_of(shape, *number, copies)[..] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn holder_of(&self, shape: &Shape, numbers: &[u64]) -> Vec<u8> {
        let pointers = shape.block_bytes / 4;
        let mut bytes = vec![0; shape.block_bytes];
        for (at, number) in numbers.iter().enumerate() {
            let place = (shape.descriptor_blocks() as usize + at) % pointers;
            put32(&mut bytes, 4 * place, *number as u32);
        }
        bytes
    }

    fn write_reserved(
        &mut self,
        shape: &Shape,
        holder: u64,
        numbers: &[u64],
        copies: &[u32],
    ) -> Result<(), VolumeError> {
        let bytes = self.holder_of(shape, numbers);
        self.write(holder, bytes);
        for number in numbers {
            self.write(*number, copies_of(shape, *number, copies));
        }
        Ok(())
    }
}

/// The reserved blocks behind the first descriptors.
fn reserved_blocks(shape: &Shape) -> Vec<u64> {
    let first = shape.superblock_block(0) + 1 + shape.descriptor_blocks();
    (first..first + shape.reserved_descriptor_blocks).collect()
}

/// The numbers of a reserved block's copies.
fn copies_of(shape: &Shape, number: u64, copies: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; shape.block_bytes];
    for (at, group) in copies.iter().enumerate() {
        put32(&mut bytes, 4 * at, (number + u64::from(*group) * shape.group_blocks) as u32);
    }
    bytes
}
