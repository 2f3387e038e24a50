//! The files of a call, behind their gates.

use crate::fs::ext::Ext;
use crate::fs::ext::files::node::{File, Node, inode_of};
use crate::fs::volume::{Attributes, InodeNumber, Locked, VolumeError};
use crate::task::{Task, WriteGuard};
use std::sync::Arc;

/// Files whose gates the task is in, alone.
pub struct Gates<'g> {
    ext: &'g Ext,
    files: Vec<WriteGuard<'g, File>>,
}

impl<'g> Gates<'g> {
    pub fn new(ext: &'g Ext) -> Gates<'g> {
        Gates { ext, files: Vec::new() }
    }

    /// Goes through the gate of a file, unless it has, when no flight of the file is under way. Fails if the file is freed.
    pub fn enter(&mut self, task: &'g Task<'_>, node: &'g Arc<Node>) -> Result<(), VolumeError> {
        if self.has(node.number) {
            return Ok(());
        }
        self.add(self.ext.enter_alone(task, node))
    }

    /// Goes through the gate of a file that the call writes: beside a flight.
    pub fn enter_to_write(&mut self, task: &'g Task<'_>, node: &'g Arc<Node>) -> Result<(), VolumeError> {
        self.add(node.gate.write(task))
    }

    fn add(&mut self, file: WriteGuard<'g, File>) -> Result<(), VolumeError> {
        if file.is_freed {
            return Err(VolumeError::NotFound);
        }
        self.files.push(file);
        Ok(())
    }

    pub fn has(&self, number: u32) -> bool {
        self.files.iter().any(|file| file.number == number)
    }

    /// A file whose gate the task is in.
    pub fn get(&self, number: u32) -> &File {
        self.files.iter().find(|file| file.number == number).expect("the task is behind its gate")
    }

    pub fn get_mut(&mut self, number: u32) -> &mut File {
        self.files.iter_mut().find(|file| file.number == number).expect("the task is behind its gate")
    }

    /// Leaves the gate of a file.
    pub fn leave(&mut self, number: u32) {
        self.files.retain(|file| file.number != number);
    }
}

/// The files that a rule may look at.
pub struct Seen<'s, 'g> {
    pub ext: &'s Ext,
    pub task: &'s Task<'s>,
    pub gates: &'s Gates<'g>,
}

impl Seen<'_, '_> {
    /// A file of the call. One whose gate the task cannot enter, since the call will fail, is looked at as it is in the
    /// table.
    fn with<T>(
        &self,
        inode: InodeNumber,
        look: impl FnOnce(&File) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let number = inode_of(inode)?;
        match self.gates.has(number) {
            true => look(self.gates.get(number)),
            false => {
                let inode = self.ext.read_inode(self.task, number)?;
                self.ext.check_inode(number, &inode)?;
                look(&File::new(number, inode))
            }
        }
    }
}

impl Locked for Seen<'_, '_> {
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.with(inode, |file| Ok(file.attributes(self.ext.shape.block_bytes)))
    }

    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        self.with(inode, |file| self.ext.attribute_of(self.task, file, name))
    }
}
