//! Inodes are put into their table, and files that wait are kept in mind.

use crate::fs::ext::Ext;
use crate::fs::ext::files::node::{File, Node};
use crate::fs::ext::format::inode::Inode;
use crate::fs::ext::journal::Handle;
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::Task;
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files of which something waits to be written.
#[derive(Debug, Default)]
pub struct Waiting {
    bytes: AtomicU64,
    /// By number, and since when.
    files: Mutex<BTreeMap<u32, Time>>,
}

impl Waiting {
    fn files(&self) -> MutexGuard<'_, BTreeMap<u32, Time>> {
        // Nothing between two changes of it can panic.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::SeqCst);
    }

    pub fn take_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::SeqCst);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    /// The files that wait since `at` or before, those that wait longest first.
    pub fn since(&self, at: Time) -> Vec<u32> {
        let mut files: Vec<(Time, u32)> =
            self.files().iter().filter(|(_, since)| **since <= at).map(|(number, since)| (*since, *number)).collect();
        files.sort_unstable();
        files.into_iter().map(|(_, number)| number).collect()
    }

    /// Since when the first of them waits.
    pub fn first(&self) -> Option<Time> {
        self.files().values().min().copied()
    }
}

impl Ext {
    /// Something of a file waits. The task is behind its gate.
    pub fn waits(&self, task: &Task<'_>, node: &Node) {
        node.set_stays(true);
        self.waiting.files().entry(node.number).or_insert(task.now());
    }

    /// Nothing of a file waits any more. The task is behind its gate.
    pub fn waits_no_more(&self, file: &File) {
        debug_assert!(file.pages.is_empty() && !file.is_unstored, "all of it was written");
        self.waiting.files().remove(&file.number);
    }

    /// Puts an inode into its table. `is_needed`: more has changed than a file's times.
    pub fn store_inode(&self, handle: &Handle<'_>, file: &mut File, is_needed: bool) -> Result<(), VolumeError> {
        let mut image = file.inode.clone();
        if file.kind() == FileKind::Regular {
            image.set_size(file.stored_size);
        }
        // Nobody changes the list of orphans before the inode is in the table.
        let head = file.is_orphan.then(|| self.head.enter(handle.task));
        if let Some(head) = &head {
            image.set_deleted(head.next(file.number));
        }
        self.put_inode(handle, file.number, image)?;
        drop(head);
        file.is_unstored = false;
        file.changed_in = Some(handle.id);
        if is_needed {
            file.needed_in = Some(handle.id);
        }
        Ok(())
    }

    /// Puts an inode's bytes into the table, with their checksum.
    pub fn put_inode(&self, handle: &Handle<'_>, number: u32, mut image: Inode) -> Result<(), VolumeError> {
        image.sum(number, self.shape.checksums);
        let (place, at) = self.place_of_inode(handle.task, number)?;
        let read = |task: &Task<'_>| self.table_block(task, place).map(drop);
        self.change_block(handle, place, &read, |bytes| {
            bytes[at..at + image.bytes().len()].copy_from_slice(image.bytes())
        })
    }
}
