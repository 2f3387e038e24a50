//! The list of orphans: files that have no name and are in use, or that are being cut off. The superblock names the
//! newest, and each the next older, in the field for the time of its deletion.

use super::inodes::Inodes;
use crate::fs::ext::changes::Changes;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::inode::Inode;
use crate::fs::ext::format::superblock::{LENGTH, PLACE, Superblock};
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The superblock of a mounted volume, and the list that begins there.
pub struct Head {
    pub superblock: Superblock,
    pub orphans: Orphans,
    /// The UUID by which it names the memory with the journal, while the volume is mounted with it.
    pub memory_name: Option<[u8; 16]>,
}

impl Head {
    /// The head of a volume with this superblock, before its list of orphans is read.
    pub fn new(superblock: Superblock) -> Head {
        Head { superblock, orphans: Orphans::default(), memory_name: None }
    }

    /// The UUID of the memory in which the journal is, if it is in memory.
    pub fn named_memory(&self, changes: &Changes) -> Option<[u8; 16]> {
        let has_moved = changes.journal.as_ref().is_some_and(|journal| journal.has_moved());
        self.memory_name.filter(|_| !has_moved)
    }
}

/// The list in memory.
#[derive(Default)]
pub struct Orphans {
    /// The newest is the last.
    by_age: BTreeMap<u64, u32>,
    ages: FxHashMap<u32, u64>,
}

impl Orphans {
    /// Adds the newest.
    pub fn push(&mut self, number: u32) {
        let age = self.by_age.last_key_value().map_or(0, |(last, _)| last + 1);
        self.by_age.insert(age, number);
        self.ages.insert(number, age);
    }

    pub fn has(&self, number: u32) -> bool {
        self.ages.contains_key(&number)
    }

    /// All of them, the newest first.
    pub fn all(&self) -> Vec<u32> {
        self.by_age.values().rev().copied().collect()
    }

    fn newest(&self) -> u32 {
        self.by_age.last_key_value().map_or(0, |(_, number)| *number)
    }

    /// The orphan that follows one in the list, the next older; 0 at the end.
    pub fn next(&self, number: u32) -> u32 {
        let older = self.ages.get(&number).and_then(|age| self.by_age.range(..age).next_back());
        older.map_or(0, |(_, number)| *number)
    }

    /// Takes one out, and answers the next newer one; `None` if it was not there.
    fn remove(&mut self, number: u32) -> Option<Option<u32>> {
        let age = self.ages.remove(&number)?;
        self.by_age.remove(&age);
        Some(self.by_age.range(age..).next().map(|(_, newer)| *newer))
    }
}

impl FromIterator<u32> for Orphans {
    /// From the oldest to the newest.
    fn from_iter<T: IntoIterator<Item = u32>>(numbers: T) -> Orphans {
        let mut orphans = Orphans::default();
        numbers.into_iter().for_each(|number| orphans.push(number));
        orphans
    }
}

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
