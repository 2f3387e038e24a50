//! The table of inodes: an inode in use, and one that is put into the table.

use super::head::Head;
use super::map::Maps;
use super::node::{File, Node, Nodes};
use crate::fs::ext::changes::Changes;
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::ext::journal::{Handle, Reason};
use crate::fs::ext::metadata::Metadata;
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::{Gate, Task};
use std::sync::Arc;

/// Inodes, their list of orphans and their extended attributes.
#[derive(Clone, Copy)]
pub struct Inodes<'e> {
    pub metadata: &'e Metadata,
    pub changes: &'e Changes,
    pub maps: Maps<'e>,
    pub nodes: &'e Nodes,
    pub head: &'e Gate<Head>,
    /// A task that takes a file out of those that share a block of attributes goes through it.
    pub shared_attributes: &'e Gate<()>,
}

impl Inodes<'_> {
    /// An inode that is in use.
    pub fn node(&self, task: &Task<'_>, number: u32) -> Result<Arc<Node>, VolumeError> {
        if number == 0 || number > self.metadata.shape.inodes || self.metadata.shape.is_reserved(number) {
            return Err(VolumeError::NotFound);
        }
        loop {
            let before = match self.nodes.get(number) {
                Ok(node) => return Ok(node),
                Err(before) => before,
            };
            let inode = self.metadata.read_inode(task, number)?;
            // Without a name, one that is held is in use.
            let is_orphan = inode.links() == 0;
            if is_orphan && !self.is_orphan(task, number) {
                return Err(VolumeError::NotFound);
            }
            self.metadata.check_inode(number, &inode)?;
            let file = File { is_orphan, ..File::new(number, inode) };
            if let Some(node) = self.nodes.insert(file, before) {
                return Ok(node);
            }
        }
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
            image.set_deleted(head.orphans.next(file.number));
        }
        self.put_inode(handle, file.number, image)?;
        drop(head);
        self.track_inode(handle, file);
        file.is_unstored = false;
        file.changed_in = Some(handle.id);
        if is_needed {
            file.needed_in = Some(handle.id);
        }
        Ok(())
    }

    /// Puts an inode's bytes into the table, with their checksum.
    pub fn put_inode(&self, handle: &Handle<'_>, number: u32, mut image: Inode) -> Result<(), VolumeError> {
        image.sum(number, self.metadata.shape.checksums);
        let (place, at) = self.metadata.place_of_inode(handle.task, number)?;
        let read = |task: &Task<'_>| self.metadata.table_block(task, place).map(drop);
        handle.change_block(place, &read, |bytes| bytes[at..at + image.bytes().len()].copy_from_slice(image.bytes()))
    }

    /// A file's inode was put into the table: tracks that.
    pub fn track_inode(&self, handle: &Handle<'_>, file: &File) {
        let Some(tracker) = handle.tracker() else { return };
        match file.kind() {
            FileKind::Directory => {}
            _ if file.inode.links() == 0 => {}
            FileKind::Regular if file.inode.has(flag::EXTENTS) => tracker.inode(file.number),
            FileKind::Regular => tracker.exclude(Reason::BlockMap),
            _ => tracker.exclude(Reason::Kind),
        }
    }
}
