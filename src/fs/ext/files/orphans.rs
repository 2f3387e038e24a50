//! The list of orphans: files that have no name and are in use, or that are being cut off. The superblock names the
//! newest, and each the next older, in the field for the time of its deletion.

use crate::fs::ext::Ext;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::inode::Inode;
use crate::fs::ext::format::superblock::{LENGTH, PLACE, Superblock};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::task::Task;

/// The superblock of a mounted volume, and what begins there.
pub struct Head {
    pub superblock: Superblock,
    /// The newest is the last.
    pub orphans: Vec<u32>,
}

impl Head {
    /// The orphan that follows one in the list; 0 at the end.
    pub fn next(&self, number: u32) -> u32 {
        let at = self.orphans.iter().position(|orphan| *orphan == number);
        at.and_then(|at| at.checked_sub(1)).map_or(0, |next| self.orphans[next])
    }
}

impl Ext {
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
        let Some(at) = head.orphans.iter().position(|orphan| *orphan == file.number) else { return Ok(()) };
        let newer = head.orphans.get(at + 1).copied();
        head.orphans.remove(at);
        file.is_orphan = false;
        file.inode.set_deleted(0);
        match newer {
            None => self.store_head(handle, &mut head),
            Some(newer) => {
                let next = head.next(newer);
                self.set_next_orphan(handle, newer, next)
            }
        }
    }

    /// Changes the next orphan in an inode that somebody else may have: in the table alone.
    fn set_next_orphan(&self, handle: &Handle<'_>, number: u32, next: u32) -> Result<(), VolumeError> {
        let (place, at) = self.place_of_inode(handle.task, number)?;
        let read = |task: &Task<'_>| self.table_block(task, place).map(drop);
        let (bytes, checksums) = (self.shape.inode_bytes, self.shape.checksums);
        self.change_block(handle, place, &read, |block| {
            let mut inode = Inode::new(&block[at..at + bytes]);
            inode.set_deleted(next);
            inode.sum(number, checksums);
            block[at..at + bytes].copy_from_slice(inode.bytes());
        })
    }

    /// Puts the superblock into the running transaction.
    pub fn store_head(&self, handle: &Handle<'_>, head: &mut Head) -> Result<(), VolumeError> {
        let newest = head.orphans.last().copied().unwrap_or(0);
        head.superblock.set32(232, newest);
        if self.memory_name.is_some() {
            head.superblock.name_memory(self.named_memory());
        }
        head.superblock.sum();
        let place = self.shape.superblock_block(0);
        let at = PLACE as usize % self.shape.block_bytes;
        let read = |task: &Task<'_>| self.superblock_block(task).map(drop);
        self.change_block(handle, place, &read, |block| {
            block[at..at + LENGTH].copy_from_slice(head.superblock.bytes());
        })
    }
}
