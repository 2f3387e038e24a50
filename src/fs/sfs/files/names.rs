//! The names of a volume: entries of directories with their index, the links of inodes, and targets of symbolic links.

use crate::fs::nodes::names::{self, Entry, Parents, Store};
use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::{DirectoryEntry, FileKind, InodeNumber, NewFile};
use crate::fs::sfs::files::directory::{self, Index};
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::files::removal::free_inode;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::placement::Hint;
use crate::fs::volume::{LONGEST_TARGET, Name};
use crate::task::Task;

/// The names of a volume: directories, links, and the targets of symbolic links.
pub(in crate::fs::sfs) struct Names<'f> {
    task: &'f Task<'f>,
    files: &'f mut Files,
}

impl Parents for Names<'_> {
    fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, SfsError> {
        Ok(InodeNumber(self.files.inode(self.task, directory.0)?.parent))
    }

    fn most_inodes(&self) -> u64 {
        self.files.metadata.inode_file.count()
    }
}

impl Store for Names<'_> {
    fn entry(&mut self, (directory, name): Name) -> Result<Option<Entry>, SfsError> {
        let found = self.find_name(directory.0, name)?;
        Ok(found.map(|(inode, kind, _)| Entry { inode: InodeNumber(inode), kind }))
    }

    fn file(&mut self, inode: InodeNumber) -> Result<(FileKind, u32), SfsError> {
        let file = self.files.inode(self.task, inode.0)?;
        Ok((file.kind, file.links))
    }

    fn is_empty(&mut self, directory: InodeNumber) -> Result<bool, SfsError> {
        Ok(self.index(directory.0)?.names() == 0)
    }
}

impl<'f> Names<'f> {
    /// Of these files.
    pub fn of(task: &'f Task<'f>, files: &'f mut Files) -> Names<'f> {
        Names { task, files }
    }

    /// The inode of a name in a directory. (`.` and `..` are names, too.)
    pub fn lookup(&mut self, directory: InodeNumber, name: &[u8]) -> Result<InodeNumber, SfsError> {
        names::lookup(self, (directory, name))?.ok_or(SfsError::NotFound)
    }

    /// Updates a directory after a change of its names and of its number of subdirectories.
    pub fn update_directory(&mut self, directory: u64, more: i32) -> Result<(), SfsError> {
        let now = self.files.clock.wall(self.task);
        let it = self.files.inode_mut(self.task, directory)?;
        it.times.written(now);
        it.is_unlogged = true;
        it.links = it.links.saturating_add_signed(more);
        self.files.records.touch(directory);
        Ok(())
    }

    /// Changes the number of links of a file. Without links it is freed, or becomes an orphan if referenced.
    pub fn change_links(&mut self, inode: u64, more: i32) -> Result<(), SfsError> {
        let now = self.files.clock.wall(self.task);
        let file = self.files.inode_mut(self.task, inode)?;
        file.links = file.links.saturating_add_signed(more);
        file.times.changed(now);
        file.is_unlogged = true;
        let (is_gone, is_held) = (file.links == 0, self.files.inodes.is_held(inode));
        self.files.records.touch(inode);
        if is_gone {
            self.files.orphans.insert(inode);
        }
        if is_gone && !is_held { free_inode(self.task, self.files, inode) } else { Ok(()) }
    }

    /// An inode that is a directory.
    pub fn directory(&mut self, number: u64) -> Result<&Inode, SfsError> {
        let inode = self.files.inode(self.task, number)?;
        match inode.kind {
            FileKind::Directory => Ok(inode),
            _ => Err(SfsError::NotDirectory),
        }
    }

    /// The index of a directory, built if necessary.
    pub fn index(&mut self, directory: u64) -> Result<&Index, SfsError> {
        if self.files.inode(self.task, directory)?.index.is_none() {
            let blocks = self.files.inode(self.task, directory)?.size.div_ceil(BLOCK as u64);
            if blocks > directory::MOST_BLOCKS {
                let why = format!("it has {blocks} blocks, and the maximum is {}", directory::MOST_BLOCKS);
                return Err(SfsError::Damaged { what: format!("directory {directory}"), why });
            }
            if self.files.media.is_refusing() {
                // All of its blocks are fetched at once.
                for number in 0..blocks {
                    if let Ok(virtual_block) = self.files.mapped(self.task, directory, number) {
                        let _ = self.files.metadata_block(self.task, virtual_block, directory, number);
                    }
                }
            }
            let mut index = Box::<Index>::default();
            for number in 0..blocks {
                let virtual_block = self.files.mapped(self.task, directory, number)?;
                if !index.append_block(self.files.metadata_block(self.task, virtual_block, directory, number)?) {
                    let what = format!("block {number} of directory {directory}");
                    return Err(SfsError::Damaged { what, why: "its records do not fill it".to_string() });
                }
            }
            self.files.inodes.put_index(directory, index);
        }
        Ok(self.files.inode(self.task, directory)?.index.as_ref().expect("the index was built"))
    }

    /// The inode of a name, its kind, and the offset of its record.
    pub fn find_name(&mut self, directory: u64, name: &[u8]) -> Result<Option<(u64, FileKind, u64)>, SfsError> {
        let places: Vec<u64> = self.index(directory)?.places(name).collect();
        for place in places {
            let number = place / BLOCK as u64;
            let virtual_block = self.files.mapped(self.task, directory, number)?;
            let block = self.files.metadata_block(self.task, virtual_block, directory, number)?;
            let at = (place % BLOCK as u64) as usize;
            if let Some(record) = directory::record(block, at)
                && record.name == name
                && let Some(kind) = FileKind::of_number(record.kind)
            {
                return Ok(Some((record.inode, kind, place)));
            }
        }
        Ok(None)
    }

    /// Allocates an inode for a new file in this directory, without a name yet.
    pub fn new_inode(&mut self, directory: u64, new: &NewFile, generation: u32) -> Result<u64, SfsError> {
        let now = self.files.clock.wall(self.task);
        let number = self.files.metadata.inode_file.take(self.task)?;
        let mut inode = Inode::new(number, generation, new.kind, now);
        inode.permissions = new.permissions & 0o7777;
        inode.user = new.user;
        inode.group = new.group;
        inode.device = new.device;
        inode.links = if new.kind == FileKind::Directory { 2 } else { 1 };
        inode.parent = directory;
        self.files.inodes.insert(inode);
        self.files.is_changed = true;
        self.files.records.touch(number);
        Ok(number)
    }

    /// Adds a name to a directory.
    pub fn add_name(&mut self, directory: u64, name: &[u8], inode: u64, kind: FileKind) -> Result<(), SfsError> {
        self.index(directory)?;
        let index = self.files.inodes.get_mut(directory).and_then(|it| it.index.as_mut()).expect("the index was built");
        let number = match index.block_with_room(name) {
            Some(number) => number,
            None => {
                let number = index.blocks();
                if number >= directory::MOST_BLOCKS {
                    return Err(SfsError::TooLarge);
                }
                self.files.unmap(self.task, directory, number..u64::MAX)?;
                let virtual_block = self.files.make_metadata_block(self.task, directory, number)?;
                self.files.map(self.task, directory, number, virtual_block)?;
                let block = self.files.metadata_block_mut(self.task, virtual_block, directory, number)?;
                directory::format(block);
                let block = *block;
                let mut index = self.files.inodes.take_index(directory).expect("the index was built");
                index.append_block(&block);
                self.files.inodes.put_index(directory, index);
                self.files.inode_mut(self.task, directory)?.size = (number + 1) * BLOCK as u64;
                number
            }
        };
        let virtual_block = self.files.mapped(self.task, directory, number)?;
        // The index and the block change together, but are stored separately.
        let mut index = self.files.inodes.take_index(directory).expect("the index was built");
        let put = self
            .files
            .metadata_block_mut(self.task, virtual_block, directory, number)
            .map(|block| index.put(number, block, name, inode, kind));
        self.files.inodes.put_index(directory, index);
        match put? {
            Some(_) => Ok(()),
            None => {
                let what = format!("block {number} of directory {directory}");
                Err(SfsError::Damaged { what, why: "it has less free space than its index says".to_string() })
            }
        }
    }

    /// Removes a name, and returns its inode if it existed.
    pub fn remove_name(&mut self, directory: u64, name: &[u8]) -> Result<Option<u64>, SfsError> {
        let Some((inode, _, place)) = self.find_name(directory, name)? else { return Ok(None) };
        let number = place / BLOCK as u64;
        let virtual_block = self.files.mapped(self.task, directory, number)?;
        let mut index = self.files.inodes.take_index(directory).expect("the index was built");
        let removed = self
            .files
            .metadata_block_mut(self.task, virtual_block, directory, number)
            .map(|block| index.remove(block, name, place));
        self.files.inodes.put_index(directory, index);
        removed?;
        // The name is removed. If the map is unreadable, blocks after the end stay allocated until the directory grows
        // again.
        let _ = self.truncate_directory(directory);
        Ok(Some(inode))
    }

    /// Frees the last blocks of a directory that hold no names, except the first: an empty directory is often filled
    /// again.
    fn truncate_directory(&mut self, directory: u64) -> Result<(), SfsError> {
        let index = self.index(directory)?;
        let (blocks, needed) = (index.blocks(), index.blocks_with_names().max(1));
        if needed < blocks {
            let mut index = self.files.inodes.take_index(directory).expect("the index was built");
            index.cut(needed);
            self.files.inodes.put_index(directory, index);
            self.files.inode_mut(self.task, directory)?.size = needed * BLOCK as u64;
            self.files.unmap(self.task, directory, needed..u64::MAX)?;
        }
        Ok(())
    }

    /// Changes the inode of a name.
    pub fn replace_name(&mut self, (InodeNumber(directory), name): Name, entry: Entry) -> Result<(), SfsError> {
        let (.., place) = self.find_name(directory, name)?.ok_or(SfsError::NotFound)?;
        let number = place / BLOCK as u64;
        let virtual_block = self.files.mapped(self.task, directory, number)?;
        let block = self.files.metadata_block_mut(self.task, virtual_block, directory, number)?;
        directory::replace(block, (place % BLOCK as u64) as usize, entry.inode.0, entry.kind);
        Ok(())
    }

    /// Stores the target of a symbolic link in its block.
    pub fn store_target(&mut self, inode: u64, target: &[u8]) -> Result<(), SfsError> {
        if target.len() > BLOCK {
            return Err(SfsError::NameTooLong);
        }
        let mut virtual_block = self.files.mapped(self.task, inode, 0)?;
        if virtual_block == 0 {
            virtual_block = self.files.make_metadata_block(self.task, inode, 0)?;
            self.files.map(self.task, inode, 0, virtual_block)?;
        }
        let block = self.files.metadata_block_mut(self.task, virtual_block, inode, 0)?;
        block.fill(0);
        block[..target.len()].copy_from_slice(target);
        self.files.inode_mut(self.task, inode)?.size = target.len() as u64;
        Ok(())
    }

    /// Updates a renamed file and its parent.
    pub fn update_renamed(&mut self, inode: u64, directory: u64) -> Result<(), SfsError> {
        let now = self.files.clock.wall(self.task);
        let file = self.files.inode_mut(self.task, inode)?;
        file.times.changed(now);
        file.is_unlogged = true;
        if file.kind == FileKind::Directory {
            file.parent = directory;
        }
        self.files.records.touch(inode);
        Ok(())
    }

    /// Sets the lifetime that the name of a file states.
    pub fn set_hint(&mut self, inode: u64, hint: Hint) -> Result<(), SfsError> {
        if self.files.inode(self.task, inode)?.hint != hint {
            self.files.inode_mut(self.task, inode)?.hint = hint;
        }
        Ok(())
    }

    /// Lists a directory from offset `from` (0, or an entry's `next`), `.` and `..` first, until `take` returns false.
    pub fn list(
        &mut self,
        directory: InodeNumber,
        from: u64,
        take: &mut dyn FnMut(DirectoryEntry) -> bool,
    ) -> Result<(), SfsError> {
        let parent = self.directory(directory.0)?.parent;
        let kind = FileKind::Directory;
        if from == 0 && !take(DirectoryEntry { next: 1, inode: directory, kind, name: b"." }) {
            return Ok(());
        }
        if from <= 1 && !take(DirectoryEntry { next: 2, inode: InodeNumber(parent), kind, name: b".." }) {
            return Ok(());
        }
        // After those two, the offset in a listing is the offset in bytes plus two.
        let from = from.saturating_sub(2);
        self.index(directory.0)?;
        for number in from / BLOCK as u64..self.index(directory.0)?.blocks() {
            let virtual_block = self.files.mapped(self.task, directory.0, number)?;
            let block = self.files.metadata_block(self.task, virtual_block, directory.0, number)?;
            for record in directory::records(block).flatten() {
                let place = number * BLOCK as u64 + record.at as u64;
                let Some(kind) = FileKind::of_number(record.kind) else { continue };
                if place < from || record.inode == 0 {
                    continue;
                }
                let next = place + record.length as u64 + 2;
                if !take(DirectoryEntry { next, inode: InodeNumber(record.inode), kind, name: record.name }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The target of a symbolic link.
    pub fn target(&mut self, inode: InodeNumber) -> Result<Vec<u8>, SfsError> {
        let file = self.files.inode(self.task, inode.0)?;
        let (kind, size) = (file.kind, file.size as usize);
        if kind != FileKind::Symlink {
            return Err(SfsError::Invalid("not a symbolic link"));
        }
        let virtual_block = self.files.mapped(self.task, inode.0, 0)?;
        let block = self.files.metadata_block(self.task, virtual_block, inode.0, 0)?;
        Ok(block[..size.min(LONGEST_TARGET)].to_vec())
    }
}
