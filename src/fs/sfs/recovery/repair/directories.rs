//! Mending directories, and giving a name to what has none.

use super::Mending;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::files::directory::{self, Index};
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::files::names::Names;
use crate::fs::sfs::media::format::{BLOCK, zeroed};

/// The directory that gets what has no name.
const LOST_AND_FOUND: &[u8] = b"lost+found";

impl Mending<'_> {
    /// Closes up the blocks of a directory.
    pub(super) fn line(&mut self, directory: u64, blocks: &[u64]) -> Result<(), SfsError> {
        let it = self.files.inode_mut(self.task, directory)?;
        (it.levels, it.roots, it.index) = (0, Default::default(), None);
        it.size = (blocks.len() * BLOCK) as u64;
        for (place, number) in (0..).zip(blocks) {
            let entry = self.files.metadata.dat.get(self.task, *number)?;
            if let Ok(bytes) = self.files.peek(self.task, *number, directory, &entry) {
                self.put_block(*number, directory, place, bytes)?;
            }
            self.files.map(self.task, directory, place, *number)?;
        }
        Ok(())
    }

    /// Rewrites a block of a directory with the records that it still has.
    pub(super) fn rewrite(&mut self, directory: u64, number: u64, place: u64) -> Result<(), SfsError> {
        let entry = self.files.metadata.dat.get(self.task, number)?;
        let old = self.files.peek(self.task, number, directory, &entry).ok();
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
        self.put_block(number, directory, place, block)
    }

    /// Takes away the name at a place of a directory.
    pub(super) fn drop_name(&mut self, directory: u64, place: u64) -> Result<(), SfsError> {
        let (number, at) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
        Names::of(self.task, self.files).index(directory)?;
        let virtual_block = self.files.mapped(self.task, directory, number)?;
        let mut index = self.files.inodes.take_index(directory).ok_or(SfsError::NotFound)?;
        let block = self.files.metadata_block_mut(self.task, virtual_block, directory, number)?;
        if let Some(record) = directory::record(block, at) {
            let name = record.name.to_vec();
            index.remove(block, &name, place);
        }
        self.files.inodes.put_index(directory, index);
        Ok(())
    }

    /// Gives what has no name one in lost+found.
    pub(super) fn reconnect(&mut self, inode: u64) -> Result<(), SfsError> {
        let directory = self.lost_and_found()?;
        let kind = self.files.inode(self.task, inode)?.kind;
        let mut name = format!("#{inode}");
        while Names::of(self.task, self.files).lookup(InodeNumber(directory), name.as_bytes()).is_ok() {
            name.push('_');
        }
        Names::of(self.task, self.files).add_name(directory, name.as_bytes(), inode, kind)?;
        let now = self.files.clock.wall(self.task);
        let it = self.files.inode_mut(self.task, inode)?;
        it.times.changed(now);
        if kind == FileKind::Directory {
            it.parent = directory;
        }
        Ok(())
    }

    /// The directory lost+found, which is made if there is none.
    fn lost_and_found(&mut self) -> Result<u64, SfsError> {
        let root = InodeNumber::ROOT;
        let mut name = LOST_AND_FOUND.to_vec();
        loop {
            match Names::of(self.task, self.files).lookup(root, &name) {
                Ok(found) if self.files.inode(self.task, found.0).is_ok_and(|it| it.kind == FileKind::Directory) => {
                    return Ok(found.0);
                }
                Ok(_) => name.push(b'_'),
                Err(SfsError::NotFound) => break,
                Err(error) => return Err(error),
            }
        }
        let (number, generation) = (self.files.metadata.inode_file.take(self.task)?, self.superblock.generation());
        let mut made = Inode::new(number, generation, FileKind::Directory, self.files.clock.wall(self.task));
        (made.permissions, made.links, made.parent) = (0o700, 2, root.0);
        self.files.inodes.insert(made);
        Names::of(self.task, self.files).add_name(root.0, &name, number, FileKind::Directory)?;
        Ok(number)
    }
}
