//! The list of orphans: files that have no name and are in use, or that are being cut off. The superblock names the
//! newest, and each the next older, in the field for the time of its deletion.

use super::head::Head;
use super::inodes::Inodes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::inode::Inode;
use crate::fs::ext::format::superblock::{LENGTH, PLACE};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::task::Task;

impl Inodes<'_> {
    /// True if a file is in the list of orphans.
    pub fn is_orphan(&self, task: &Task<'_>, number: u32) -> bool {
        self.head.enter(task).orphans.has(number)
    }

    /// Adds a file to the list. Its inode is stored by the caller, in the same handle.
    pub fn add_orphan(&self, handle: &Handle<'_>, file: &mut File) -> Result<(), VolumeError> {
        let mut head = self.head.enter(handle.task);
        head.orphans.push(file.number);
        file.is_orphan = true;
        self.store_head(handle, &mut head)
    }

    /// Takes a file out of the list. Its inode is stored by the caller, in the same handle.
    pub fn remove_orphan(&self, handle: &Handle<'_>, file: &mut File) -> Result<(), VolumeError> {
        let mut head = self.head.enter(handle.task);
        let Some(newer) = head.orphans.remove(file.number) else { return Ok(()) };
        file.is_orphan = false;
        file.inode.set_deleted(0);
        match newer {
            None => self.store_head(handle, &mut head),
            Some(newer) => {
                let next = head.orphans.next(newer);
                self.set_next_orphan(handle, newer, next)
            }
        }
    }

    /// Changes the next orphan in an inode that somebody else may have: in the table alone.
    fn set_next_orphan(&self, handle: &Handle<'_>, number: u32, next: u32) -> Result<(), VolumeError> {
        let (place, at) = self.metadata.place_of_inode(handle.task, number)?;
        let read = |task: &Task<'_>| self.metadata.table_block(task, place).map(drop);
        let (bytes, checksums) = (self.metadata.shape.inode_bytes, self.metadata.shape.checksums);
        handle.change_block(place, &read, |block| {
            let mut inode = Inode::new(&block[at..at + bytes]);
            inode.set_deleted(next);
            inode.sum(number, checksums);
            block[at..at + bytes].copy_from_slice(inode.bytes());
        })
    }

    /// The list of orphans, the newest first.
    pub fn listed_orphans(&self, task: &Task<'_>) -> Result<Vec<u32>, VolumeError> {
        let mut listed = Vec::new();
        let mut next = self.head.enter(task).superblock.first_orphan();
        while next != 0 {
            let is_one =
                next <= self.metadata.shape.inodes && !self.metadata.shape.is_reserved(next) && !listed.contains(&next);
            if !is_one {
                return Err(damaged("the list of orphans", format!("it names inode {next}")));
            }
            listed.push(next);
            next = self.metadata.read_inode(task, next)?.deleted();
        }
        Ok(listed)
    }

    /// Puts the superblock into the running transaction.
    pub fn store_head(&self, handle: &Handle<'_>, head: &mut Head) -> Result<(), VolumeError> {
        let newest = head.orphans.newest();
        head.superblock.set32(232, newest);
        if head.memory_name.is_some() {
            let named = head.named_memory(self.changes);
            head.superblock.name_memory(named);
        }
        head.superblock.sum();
        let place = self.metadata.shape.superblock_block(0);
        let at = PLACE as usize % self.metadata.shape.block_bytes;
        let read = |task: &Task<'_>| self.metadata.superblock_block(task).map(drop);
        handle.change_block(place, &read, |block| {
            block[at..at + LENGTH].copy_from_slice(head.superblock.bytes());
        })
    }
}
