//! Inodes: of a file in the group of its directory, of a directory in a group that has room.

use super::bits;
use crate::fs::ext::allocation::Allocation;
use crate::fs::ext::error::damaged;
use crate::fs::ext::format::group::{Descriptor, flag};
use crate::fs::ext::format::shape::ROOT;
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::label::Content;
use crate::task::Task;
use std::sync::atomic::Ordering;

/// Groups that are looked at for a directory.
const GROUPS_SEARCHED: u32 = 64;

impl Allocation<'_> {
    /// Takes an inode for a new file of a directory.
    pub fn take_inode(&self, handle: &Handle<'_>, parent: u32, is_directory: bool) -> Result<u32, VolumeError> {
        let own = self.metadata.shape.place_of_inode(parent).0;
        let first = if is_directory { self.group_for_directory(handle.task, parent, own)? } else { own };
        for step in 0..self.metadata.shape.groups {
            let group = (first + step) % self.metadata.shape.groups;
            if let Some(number) = self.take_inode_in(handle, group, is_directory)? {
                return Ok(number);
            }
        }
        Err(self.no_space())
    }

    /// A group for a directory: those below the root are spread over groups that have more room than most; others stay near
    /// their parents while there is room.
    fn group_for_directory(&self, task: &Task<'_>, parent: u32, own: u32) -> Result<u32, VolumeError> {
        let groups = u64::from(self.metadata.shape.groups);
        let average = self.space.free.inodes.load(Ordering::Relaxed) / groups;
        let average_blocks = self.space.free.blocks.load(Ordering::Relaxed) / groups;
        let mut best = None;
        for step in 0..self.metadata.shape.groups.min(GROUPS_SEARCHED) {
            let group = (own + step) % self.metadata.shape.groups;
            let descriptor = self.metadata.descriptor(task, group)?;
            let has_room = u64::from(descriptor.free_inodes) >= average.max(1)
                && u64::from(descriptor.free_blocks) >= average_blocks;
            if has_room && parent != ROOT {
                return Ok(group);
            }
            if has_room && best.is_none_or(|(directories, _)| descriptor.directories < directories) {
                best = Some((descriptor.directories, group));
            }
        }
        Ok(best.map_or(own, |(_, group)| group))
    }

    fn take_inode_in(&self, handle: &Handle<'_>, group: u32, is_directory: bool) -> Result<Option<u32>, VolumeError> {
        let task = handle.task;
        let _alone = self.group_gate(group).enter(task);
        let descriptor = self.metadata.descriptor(task, group)?;
        if descriptor.free_inodes == 0 {
            return Ok(None);
        }
        let bits = self.inode_bitmap(task, group, &descriptor)?.to_vec();
        let reserved = if group == 0 { self.metadata.shape.first_inode - 1 } else { 0 };
        let Some(at) = bits::next_clear(&bits, reserved, self.metadata.shape.group_inodes) else {
            return Ok(None);
        };
        self.mark_inode(handle, (group, at), descriptor, bits, is_directory)?;
        Ok(Some(group * self.metadata.shape.group_inodes + at + 1))
    }

    /// Takes the inode with this number, which is free.
    pub fn take_inode_number(&self, handle: &Handle<'_>, number: u32, is_directory: bool) -> Result<(), VolumeError> {
        let (group, at) = self.metadata.shape.place_of_inode(number);
        let _alone = self.group_gate(group).enter(handle.task);
        let descriptor = self.metadata.descriptor(handle.task, group)?;
        let bits = self.inode_bitmap(handle.task, group, &descriptor)?.to_vec();
        debug_assert!(!bits::is_set(&bits, at), "inode {number} is free");
        self.mark_inode(handle, (group, at), descriptor, bits, is_directory)
    }

    /// True if an inode is in use, as its bitmap says.
    pub fn is_inode_used(&self, task: &Task<'_>, number: u32) -> Result<bool, VolumeError> {
        let (group, at) = self.metadata.shape.place_of_inode(number);
        let _alone = self.group_gate(group).enter(task);
        let descriptor = self.metadata.descriptor(task, group)?;
        Ok(bits::is_set(&self.inode_bitmap(task, group, &descriptor)?, at))
    }

    /// Marks a free inode of a group as used. The task is behind the group's gate.
    fn mark_inode(
        &self,
        handle: &Handle<'_>,
        (group, at): (u32, u32),
        mut descriptor: Descriptor,
        mut bits: Vec<u8>,
        is_directory: bool,
    ) -> Result<(), VolumeError> {
        let task = handle.task;
        if descriptor.has(flag::NO_BLOCKS) && self.metadata.shape.checksums.cover_groups() {
            let blocks = self.block_bitmap(task, group, &descriptor)?.to_vec();
            self.store_block_bitmap(handle, group, &mut descriptor, blocks)?;
        }
        self.prepare_table(handle, &descriptor, at)?;
        bits::put(&mut bits, at..at + 1, true);
        descriptor.free_inodes = descriptor.free_inodes.saturating_sub(1);
        descriptor.directories += u32::from(is_directory);
        if self.metadata.shape.checksums.cover_groups() {
            descriptor.never_used = match descriptor.has(flag::NO_INODES) {
                true => self.metadata.shape.group_inodes - at - 1,
                false => descriptor.never_used.min(self.metadata.shape.group_inodes - at - 1),
            };
        }
        self.store_inode_bitmap(handle, group, &mut descriptor, bits)?;
        self.space.free.inodes.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    /// A block of the table whose inodes were never used holds bytes from before the volume: it is made anew.
    fn prepare_table(&self, handle: &Handle<'_>, descriptor: &Descriptor, at: u32) -> Result<(), VolumeError> {
        if !self.metadata.shape.checksums.cover_groups() {
            return Ok(());
        }
        let in_block = self.metadata.shape.inodes_of_block();
        let never_used = match descriptor.has(flag::NO_INODES) {
            true => self.metadata.shape.group_inodes,
            false => descriptor.never_used,
        };
        let first = at / in_block * in_block;
        if first >= self.metadata.shape.group_inodes - never_used {
            let place = descriptor.inode_table + u64::from(first / in_block);
            handle.set(place, Content::Metadata, &vec![0; self.metadata.shape.block_bytes]);
        }
        Ok(())
    }

    /// Gives an inode back.
    pub fn free_inode(&self, handle: &Handle<'_>, number: u32, is_directory: bool) -> Result<(), VolumeError> {
        let task = handle.task;
        let (group, at) = self.metadata.shape.place_of_inode(number);
        let _alone = self.group_gate(group).enter(task);
        let mut descriptor = self.metadata.descriptor(task, group)?;
        let mut bits = self.inode_bitmap(task, group, &descriptor)?.to_vec();
        if !bits::is_set(&bits, at) {
            return Err(damaged(format!("the inode bitmap of group {group}"), format!("inode {number} is free twice")));
        }
        bits::put(&mut bits, at..at + 1, false);
        descriptor.free_inodes += 1;
        descriptor.directories = descriptor.directories.saturating_sub(u32::from(is_directory));
        self.store_inode_bitmap(handle, group, &mut descriptor, bits)?;
        self.space.free.inodes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}
