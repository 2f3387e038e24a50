//! Mending directories, and giving a name to what has none.

use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::files::directory::{self, Index};
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::media::format::{BLOCK, zeroed};
use crate::task::Task;

/// The directory that gets what has no name.
const LOST_AND_FOUND: &[u8] = b"lost+found";

impl Sfs {
    /// Closes up the blocks of a directory.
    pub(super) fn line(&mut self, task: &Task<'_>, directory: u64, blocks: &[u64]) -> Result<(), SfsError> {
        let it = self.files.inode_mut(task, directory)?;
        (it.levels, it.roots, it.index) = (0, Default::default(), None);
        it.size = (blocks.len() * BLOCK) as u64;
        for (place, number) in (0..).zip(blocks) {
            let entry = self.files.metadata.dat.get(task, *number)?;
            if let Ok(bytes) = self.peek(task, *number, directory, &entry) {
                self.put_block(task, *number, directory, place, bytes)?;
            }
            self.files.map(task, directory, place, *number)?;
        }
        Ok(())
    }

    /// Rewrites a block of a directory with the records that it still has.
    pub(super) fn rewrite(&mut self, task: &Task<'_>, directory: u64, number: u64, place: u64) -> Result<(), SfsError> {
        let entry = self.files.metadata.dat.get(task, number)?;
        let old = self.peek(task, number, directory, &entry).ok();
        let mut block = zeroed();
        directory::format(&mut block);
        let mut index = Index::default();
        index.append_block(&block);
        let records = old.iter().flat_map(|old| directory::records(old).map_while(|record| record));
        for record in records.filter(|record| record.inode != 0) {
            if let Some(kind) = FileKind::of_number(record.kind) {
                index.put(0, &mut block, record.name, record.inode, kind);
            }
        }
        self.files.inodes.take_index(directory);
        self.put_block(task, number, directory, place, block)
    }

    /// Takes away the name at a place of a directory.
    pub(super) fn drop_name(&mut self, task: &Task<'_>, directory: u64, place: u64) -> Result<(), SfsError> {
        let (number, at) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
        self.files.index(task, directory)?;
        let virtual_block = self.files.mapped(task, directory, number)?;
        let mut index = self.files.inodes.take_index(directory).ok_or(SfsError::NotFound)?;
        let block = self.files.metadata_block_mut(task, virtual_block, directory, number)?;
        if let Some(record) = directory::record(block, at) {
            let name = record.name.to_vec();
            index.remove(block, &name, place);
        }
        self.files.inodes.put_index(directory, index);
        Ok(())
    }

    /// Gives what has no name one in lost+found.
    pub(super) fn reconnect(&mut self, task: &Task<'_>, inode: u64) -> Result<(), SfsError> {
        let directory = self.lost_and_found(task)?;
        let kind = self.files.inode(task, inode)?.kind;
        let mut name = format!("#{inode}");
        while self.lookup(task, InodeNumber(directory), name.as_bytes()).is_ok() {
            name.push('_');
        }
        self.files.add_name(task, directory, name.as_bytes(), inode, kind)?;
        let now = self.files.clock.wall(task);
        let it = self.files.inode_mut(task, inode)?;
        it.times.changed(now);
        if kind == FileKind::Directory {
            it.parent = directory;
        }
        Ok(())
    }

    /// The directory lost+found, which is made if there is none.
    fn lost_and_found(&mut self, task: &Task<'_>) -> Result<u64, SfsError> {
        let root = InodeNumber::ROOT;
        let mut name = LOST_AND_FOUND.to_vec();
        loop {
            match self.lookup(task, root, &name) {
                Ok(found) if self.files.inode(task, found.0).is_ok_and(|it| it.kind == FileKind::Directory) => {
                    return Ok(found.0);
                }
                Ok(_) => name.push(b'_'),
                Err(SfsError::NotFound) => break,
                Err(error) => return Err(error),
            }
        }
        let (number, generation) = self.allocate_inode(task)?;
        let mut made = Inode::new(number, generation, FileKind::Directory, self.files.clock.wall(task));
        (made.permissions, made.links, made.parent) = (0o700, 2, root.0);
        self.files.inodes.insert(made);
        self.files.add_name(task, root.0, &name, number, FileKind::Directory)?;
        Ok(number)
    }
}
