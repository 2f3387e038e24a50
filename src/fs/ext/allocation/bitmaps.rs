//! The bitmaps of a group. One that was never written is made when it is first needed.

use super::bits;
use crate::fs::ext::allocation::Allocation;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::format::group::{Descriptor, bitmap_sum, flag};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;

impl Allocation<'_> {
    /// Bytes of a block bitmap that count, and of an inode bitmap.
    pub fn bitmap_bytes(&self) -> (usize, usize) {
        (self.metadata.shape.group_blocks as usize / 8, self.metadata.shape.group_inodes as usize / 8)
    }

    /// The block bitmap of a group. The task is behind the group's gate.
    pub fn block_bitmap(&self, task: &Task<'_>, group: u32, descriptor: &Descriptor) -> Result<Bytes, VolumeError> {
        if descriptor.has(flag::NO_BLOCKS) && self.metadata.shape.checksums.cover_groups() {
            return Ok(self.new_block_bitmap(group, descriptor).into());
        }
        let said = descriptor.block_bitmap_sum;
        let length = self.bitmap_bytes().0;
        self.bitmap(task, descriptor.block_bitmap, &|| format!("the block bitmap of group {group}"), length, said)
    }

    /// The inode bitmap of a group. The task is behind the group's gate.
    pub fn inode_bitmap(&self, task: &Task<'_>, group: u32, descriptor: &Descriptor) -> Result<Bytes, VolumeError> {
        let length = self.bitmap_bytes().1;
        if descriptor.has(flag::NO_INODES) && self.metadata.shape.checksums.cover_groups() {
            let mut bytes = vec![0xFF; self.metadata.shape.block_bytes];
            bytes[..length].fill(0);
            return Ok(bytes.into());
        }
        let said = descriptor.inode_bitmap_sum;
        self.bitmap(task, descriptor.inode_bitmap, &|| format!("the inode bitmap of group {group}"), length, said)
    }

    fn bitmap(
        &self,
        task: &Task<'_>,
        place: u64,
        what: &dyn Fn() -> String,
        length: usize,
        said: u32,
    ) -> Result<Bytes, VolumeError> {
        self.metadata.block(task, place, what, &|bytes| match bitmap_sum(
            &bytes[..length],
            self.metadata.shape.descriptor_bytes,
            self.metadata.shape.checksums,
        ) {
            Some(sum) if sum != said => Err(format!("its checksum is {sum:08x}, and should be {said:08x}")),
            _ => Ok(()),
        })
    }

    /// The block bitmap of a group in which nothing is in use but metadata.
    pub fn new_block_bitmap(&self, group: u32, descriptor: &Descriptor) -> Vec<u8> {
        let mut bytes = vec![0; self.metadata.shape.block_bytes];
        bits::put(&mut bytes, 0..self.metadata.shape.blocks_before(group) as u32, true);
        let (first, count) = (self.metadata.shape.group_start(group), self.metadata.shape.blocks_of_group(group));
        // Groups of a flexible group keep theirs in its first ones, which have bitmaps then.
        let Descriptor { block_bitmap, inode_bitmap, inode_table, .. } = *descriptor;
        for (place, blocks) in [(block_bitmap, 1), (inode_bitmap, 1), (inode_table, self.metadata.shape.table_blocks())]
        {
            let (from, to) = (place.max(first), (place + blocks).min(first + count));
            if from < to {
                bits::put(&mut bytes, (from - first) as u32..(to - first) as u32, true);
            }
        }
        bits::put(&mut bytes, count as u32..8 * self.metadata.shape.block_bytes as u32, true);
        bytes
    }

    /// Stores a group's block bitmap, and its descriptor with the counts that follow from it.
    pub fn store_block_bitmap(
        &self,
        handle: &Handle<'_>,
        group: u32,
        descriptor: &mut Descriptor,
        bytes: Vec<u8>,
    ) -> Result<(), VolumeError> {
        descriptor.flags &= !flag::NO_BLOCKS;
        let (length, checksums) = (self.bitmap_bytes().0, self.metadata.shape.checksums);
        descriptor.block_bitmap_sum =
            bitmap_sum(&bytes[..length], self.metadata.shape.descriptor_bytes, checksums).unwrap_or(0);
        handle.set(descriptor.block_bitmap, Content::Metadata, &bytes);
        self.store_descriptor(handle, group, descriptor)
    }

    /// The same with an inode bitmap.
    pub fn store_inode_bitmap(
        &self,
        handle: &Handle<'_>,
        group: u32,
        descriptor: &mut Descriptor,
        bytes: Vec<u8>,
    ) -> Result<(), VolumeError> {
        descriptor.flags &= !flag::NO_INODES;
        let (length, checksums) = (self.bitmap_bytes().1, self.metadata.shape.checksums);
        descriptor.inode_bitmap_sum =
            bitmap_sum(&bytes[..length], self.metadata.shape.descriptor_bytes, checksums).unwrap_or(0);
        handle.set(descriptor.inode_bitmap, Content::Metadata, &bytes);
        self.store_descriptor(handle, group, descriptor)
    }

    fn store_descriptor(&self, handle: &Handle<'_>, group: u32, descriptor: &Descriptor) -> Result<(), VolumeError> {
        let (place, at, _) = self.metadata.descriptor_block(handle.task, group)?;
        let (end, checksums) = (at + self.metadata.shape.descriptor_bytes, self.metadata.shape.checksums);
        let read = |task: &Task<'_>| self.metadata.descriptor_block(task, group).map(drop);
        handle.change_block(place, &read, |bytes| descriptor.write(&mut bytes[at..end], group, checksums))
    }
}
