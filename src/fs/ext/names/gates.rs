//! The files of a call, behind their gates.

use crate::fs::ext::files::node::number_of;
use crate::fs::ext::files::node::{File, Node, inode_of};
use crate::fs::ext::format::features::DIR_NLINK;
use crate::fs::ext::format::shape::ROOT;
use crate::fs::ext::names::Names;
use crate::fs::nodes::names::{Entry, Parents, Store};
use crate::fs::volume::{Attributes, FileKind, InodeNumber, LONGEST_TARGET, Locked, MOST_LINKS, Name, VolumeError};
use crate::task::{Task, WriteGuard};
use std::sync::Arc;

/// Files whose gates the task is in, alone.
pub struct Gates<'g> {
    names: Names<'g>,
    files: Vec<WriteGuard<'g, File>>,
}

impl<'g> Gates<'g> {
    pub fn new(names: Names<'g>) -> Gates<'g> {
        Gates { names, files: Vec::new() }
    }

    /// Goes through the gate of a file, unless it has, when no flight of the file is under way. Fails if the file is freed.
    pub fn enter(&mut self, task: &'g Task<'_>, node: &'g Arc<Node>) -> Result<(), VolumeError> {
        if self.has(node.number) {
            return Ok(());
        }
        self.add(self.names.writes.write_back.enter_alone(task, node))
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
#[derive(Clone, Copy)]
pub struct Seen<'s, 'g> {
    pub names: Names<'s>,
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
                let inode = self.names.metadata.read_inode(self.task, number)?;
                self.names.metadata.check_inode(number, &inode)?;
                look(&File::new(number, inode))
            }
        }
    }
}

impl Locked for Seen<'_, '_> {
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.with(inode, |file| Ok(file.attributes(self.names.metadata.shape.block_bytes)))
    }

    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        self.with(inode, |file| self.names.inodes().attribute_of(self.task, file, name))
    }
}

/// The tree of directories as it is in the table, for a task that is behind none of their gates.
pub struct Unguarded<'s> {
    pub names: Names<'s>,
    pub task: &'s Task<'s>,
}

impl Parents for Unguarded<'_> {
    fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, VolumeError> {
        let number = inode_of(directory)?;
        if number == ROOT {
            return Ok(directory);
        }
        let file = File::new(number, self.names.metadata.read_inode(self.task, number)?);
        file.check_directory()?;
        self.names.directories().parent_of(self.task, &file).map(number_of)
    }

    fn most_inodes(&self) -> u64 {
        self.names.metadata.shape.inodes.into()
    }
}

/// The names that a call has looked up before it went through the gates of their files, for the rules of names.
pub struct LookedUp<'s, 'g> {
    pub seen: Seen<'s, 'g>,
    /// Its names, each with the inode that has it.
    pub names: &'s [(Name<'s>, Option<u32>)],
    /// Its directories that lie within another file of the call, each with that file.
    pub within: &'s [(InodeNumber, InodeNumber)],
}

impl LookedUp<'_, '_> {
    fn inode_named(&self, name: Name) -> Option<InodeNumber> {
        let found = self.names.iter().find(|(looked_up, _)| *looked_up == name);
        found.expect("the name was looked up").1.map(number_of)
    }
}

impl Parents for LookedUp<'_, '_> {
    fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, VolumeError> {
        Unguarded { names: self.seen.names, task: self.seen.task }.parent(directory)
    }

    fn most_inodes(&self) -> u64 {
        self.seen.names.metadata.shape.inodes.into()
    }

    fn is_within(&mut self, directory: InodeNumber, other: InodeNumber) -> Result<bool, VolumeError> {
        Ok(self.within.contains(&(directory, other)))
    }
}

impl Store for LookedUp<'_, '_> {
    fn entry(&mut self, name: Name) -> Result<Option<Entry>, VolumeError> {
        let Some(inode) = self.inode_named(name) else { return Ok(None) };
        Ok(Some(Entry { inode, kind: self.file(inode)?.0 }))
    }

    fn is_taken(&mut self, name: Name) -> Result<bool, VolumeError> {
        Ok(self.inode_named(name).is_some())
    }

    fn file(&mut self, inode: InodeNumber) -> Result<(FileKind, u32), VolumeError> {
        self.seen.with(inode, |file| Ok((file.kind(), file.inode.links().into())))
    }

    fn is_empty(&mut self, directory: InodeNumber) -> Result<bool, VolumeError> {
        let Seen { names, task, gates } = self.seen;
        let number = inode_of(directory)?;
        // A directory whose gate the call cannot enter is above one of its directories.
        Ok(gates.has(number) && names.directories().is_empty_directory(task, gates.get(number))?)
    }

    fn most_directory_links(&self) -> Option<u32> {
        (!self.seen.names.metadata.shape.features.has(DIR_NLINK)).then_some(MOST_LINKS)
    }

    fn longest_target(&self) -> usize {
        LONGEST_TARGET.min(self.seen.names.metadata.shape.block_bytes - 1)
    }
}
