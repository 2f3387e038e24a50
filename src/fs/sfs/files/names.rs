//! Calls on names: lookup, create, link, unlink, list. Renames are in `renames`.

use crate::fs::nodes::names::{self, Entry, Parents, Removal, Store, subdirectories};
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::{DirectoryEntry, FileKind, InodeNumber, NewFile};
use crate::fs::sfs::files::directory::{self, Index};
use crate::fs::sfs::files::extended::blocks_of_attributes;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::{Sfs, SfsError};
use crate::fs::volume::{LONGEST_TARGET, Name};
use crate::task::Task;

/// The names and inodes of a volume, for the rules of names.
pub(in crate::fs::sfs) struct Named<'s>(pub &'s mut Files, pub &'s Task<'s>);

impl Parents for Named<'_> {
    fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, SfsError> {
        Ok(InodeNumber(self.0.inode(self.1, directory.0)?.parent))
    }

    fn most_inodes(&self) -> u64 {
        self.0.metadata.inode_file.count()
    }
}

impl Store for Named<'_> {
    fn entry(&mut self, (directory, name): Name) -> Result<Option<Entry>, SfsError> {
        let found = self.0.find_name(self.1, directory.0, name)?;
        Ok(found.map(|(inode, kind, _)| Entry { inode: InodeNumber(inode), kind }))
    }

    fn file(&mut self, inode: InodeNumber) -> Result<(FileKind, u32), SfsError> {
        let file = self.0.inode(self.1, inode.0)?;
        Ok((file.kind, file.links))
    }

    fn is_empty(&mut self, directory: InodeNumber) -> Result<bool, SfsError> {
        Ok(self.0.index(self.1, directory.0)?.names() == 0)
    }
}

impl Files {
    /// The inode of a name in a directory. (`.` and `..` are names, too.)
    pub(in crate::fs::sfs) fn lookup(
        &mut self,
        task: &Task<'_>,
        directory: InodeNumber,
        name: &[u8],
    ) -> Result<InodeNumber, SfsError> {
        names::lookup(&mut Named(self, task), (directory, name))?.ok_or(SfsError::NotFound)
    }

    /// Updates a directory after a change of its names and of its number of subdirectories.
    pub(in crate::fs::sfs) fn update_directory(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        more: i32,
    ) -> Result<(), SfsError> {
        let now = self.clock.wall(task);
        let it = self.inode_mut(task, directory)?;
        it.times.written(now);
        it.is_unlogged = true;
        it.links = it.links.saturating_add_signed(more);
        self.records.touch(directory);
        Ok(())
    }

    /// Changes the number of links of a file. Without links it is freed, or becomes an orphan if referenced.
    pub(in crate::fs::sfs) fn change_links(&mut self, task: &Task<'_>, inode: u64, more: i32) -> Result<(), SfsError> {
        let now = self.clock.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.links = file.links.saturating_add_signed(more);
        file.times.changed(now);
        file.is_unlogged = true;
        let (is_gone, is_held) = (file.links == 0, self.inodes.is_held(inode));
        self.records.touch(inode);
        if is_gone {
            self.orphans.insert(inode);
        }
        if is_gone && !is_held { self.free_inode(task, inode) } else { Ok(()) }
    }

    /// An inode that is a directory.
    pub(in crate::fs::sfs) fn directory(&mut self, task: &Task<'_>, number: u64) -> Result<&Inode, SfsError> {
        let inode = self.inode(task, number)?;
        match inode.kind {
            FileKind::Directory => Ok(inode),
            _ => Err(SfsError::NotDirectory),
        }
    }

    /// The index of a directory, built if necessary.
    pub(in crate::fs::sfs) fn index(&mut self, task: &Task<'_>, directory: u64) -> Result<&Index, SfsError> {
        if self.inode(task, directory)?.index.is_none() {
            let blocks = self.inode(task, directory)?.size.div_ceil(BLOCK as u64);
            if blocks > directory::MOST_BLOCKS {
                let why = format!("it has {blocks} blocks, and the maximum is {}", directory::MOST_BLOCKS);
                return Err(SfsError::Damaged { what: format!("directory {directory}"), why });
            }
            if self.media.is_refusing() {
                // All of its blocks are fetched at once.
                for number in 0..blocks {
                    if let Ok(virtual_block) = self.mapped(task, directory, number) {
                        let _ = self.metadata_block(task, virtual_block, directory, number);
                    }
                }
            }
            let mut index = Box::<Index>::default();
            for number in 0..blocks {
                let virtual_block = self.mapped(task, directory, number)?;
                if !index.append_block(self.metadata_block(task, virtual_block, directory, number)?) {
                    let what = format!("block {number} of directory {directory}");
                    return Err(SfsError::Damaged { what, why: "its records do not fill it".to_string() });
                }
            }
            self.inodes.put_index(directory, index);
        }
        Ok(self.inode(task, directory)?.index.as_ref().expect("the index was built"))
    }

    /// The inode of a name, its kind, and the offset of its record.
    pub(in crate::fs::sfs) fn find_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
    ) -> Result<Option<(u64, FileKind, u64)>, SfsError> {
        let places: Vec<u64> = self.index(task, directory)?.places(name).collect();
        for place in places {
            let number = place / BLOCK as u64;
            let virtual_block = self.mapped(task, directory, number)?;
            let block = self.metadata_block(task, virtual_block, directory, number)?;
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

    /// Adds a name to a directory.
    pub(in crate::fs::sfs) fn add_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        inode: u64,
        kind: FileKind,
    ) -> Result<(), SfsError> {
        self.index(task, directory)?;
        let index = self.inodes.get_mut(directory).and_then(|it| it.index.as_mut()).expect("the index was built");
        let number = match index.block_with_room(name) {
            Some(number) => number,
            None => {
                let number = index.blocks();
                if number >= directory::MOST_BLOCKS {
                    return Err(SfsError::TooLarge);
                }
                self.unmap(task, directory, number..u64::MAX)?;
                let virtual_block = self.make_metadata_block(task, directory, number)?;
                self.map(task, directory, number, virtual_block)?;
                let block = self.metadata_block_mut(task, virtual_block, directory, number)?;
                directory::format(block);
                let block = *block;
                let mut index = self.inodes.take_index(directory).expect("the index was built");
                index.append_block(&block);
                self.inodes.put_index(directory, index);
                self.inode_mut(task, directory)?.size = (number + 1) * BLOCK as u64;
                number
            }
        };
        let virtual_block = self.mapped(task, directory, number)?;
        // The index and the block change together, but are stored separately.
        let mut index = self.inodes.take_index(directory).expect("the index was built");
        let put = self
            .metadata_block_mut(task, virtual_block, directory, number)
            .map(|block| index.put(number, block, name, inode, kind));
        self.inodes.put_index(directory, index);
        match put? {
            Some(_) => Ok(()),
            None => {
                let what = format!("block {number} of directory {directory}");
                Err(SfsError::Damaged { what, why: "it has less free space than its index says".to_string() })
            }
        }
    }

    /// Removes a name, and returns its inode if it existed.
    pub(in crate::fs::sfs) fn remove_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
    ) -> Result<Option<u64>, SfsError> {
        let Some((inode, _, place)) = self.find_name(task, directory, name)? else { return Ok(None) };
        let number = place / BLOCK as u64;
        let virtual_block = self.mapped(task, directory, number)?;
        let mut index = self.inodes.take_index(directory).expect("the index was built");
        let removed = self
            .metadata_block_mut(task, virtual_block, directory, number)
            .map(|block| index.remove(block, name, place));
        self.inodes.put_index(directory, index);
        removed?;
        // The name is removed. If the map is unreadable, blocks after the end stay allocated until the directory grows
        // again.
        let _ = self.truncate_directory(task, directory);
        Ok(Some(inode))
    }

    /// Frees the last blocks of a directory that hold no names, except the first: an empty directory is often filled
    /// again.
    fn truncate_directory(&mut self, task: &Task<'_>, directory: u64) -> Result<(), SfsError> {
        let index = self.index(task, directory)?;
        let (blocks, needed) = (index.blocks(), index.blocks_with_names().max(1));
        if needed < blocks {
            let mut index = self.inodes.take_index(directory).expect("the index was built");
            index.cut(needed);
            self.inodes.put_index(directory, index);
            self.inode_mut(task, directory)?.size = needed * BLOCK as u64;
            self.unmap(task, directory, needed..u64::MAX)?;
        }
        Ok(())
    }

    /// Changes the inode of a name.
    pub(in crate::fs::sfs) fn replace_name(
        &mut self,
        task: &Task<'_>,
        (InodeNumber(directory), name): Name,
        entry: Entry,
    ) -> Result<(), SfsError> {
        let (.., place) = self.find_name(task, directory, name)?.ok_or(SfsError::NotFound)?;
        let number = place / BLOCK as u64;
        let virtual_block = self.mapped(task, directory, number)?;
        let block = self.metadata_block_mut(task, virtual_block, directory, number)?;
        directory::replace(block, (place % BLOCK as u64) as usize, entry.inode.0, entry.kind);
        Ok(())
    }

    /// Stores the target of a symbolic link in its block.
    pub(in crate::fs::sfs) fn store_target(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        target: &[u8],
    ) -> Result<(), SfsError> {
        if target.len() > BLOCK {
            return Err(SfsError::NameTooLong);
        }
        let mut virtual_block = self.mapped(task, inode, 0)?;
        if virtual_block == 0 {
            virtual_block = self.make_metadata_block(task, inode, 0)?;
            self.map(task, inode, 0, virtual_block)?;
        }
        let block = self.metadata_block_mut(task, virtual_block, inode, 0)?;
        block.fill(0);
        block[..target.len()].copy_from_slice(target);
        self.inode_mut(task, inode)?.size = target.len() as u64;
        Ok(())
    }
}

impl Sfs {
    /// The inode of a name in a directory. (`.` and `..` are names, too.)
    pub fn lookup(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<InodeNumber, SfsError> {
        self.files.lookup(task, directory, name)
    }

    /// Creates a file, directory, symbolic link, pipe, socket or device.
    pub fn make(
        &mut self,
        task: &Task<'_>,
        directory: InodeNumber,
        name: &[u8],
        new: &NewFile,
    ) -> Result<InodeNumber, SfsError> {
        self.check_writable()?;
        names::make(&mut Named(&mut self.files, task), (directory, name), new)?;
        let attributes = self.first_attributes(new)?;
        self.check_space(task, 4 + attributes.as_ref().map_or(0, |bytes| blocks_of_attributes(bytes)))?;
        let number = self.new_inode(task, directory.0, new)?;
        if new.kind == FileKind::Symlink {
            let put = self.files.store_target(task, number, new.target);
            self.or_free_inode(task, number, put)?;
            self.log_record(&Record::Target { inode: number, bytes: new.target });
        }
        if let Some(bytes) = attributes {
            let put = self.store_attributes(task, number, &bytes);
            self.or_free_inode(task, number, put)?;
        }
        self.add_new_name(task, directory.0, name, number, new.kind)?;
        self.files.update_directory(task, directory.0, subdirectories(new.kind))?;
        self.files.records.end();
        self.relieve(task)?;
        Ok(InodeNumber(number))
    }

    /// Allocates an inode for a new file in this directory, without a name yet.
    pub(in crate::fs::sfs) fn new_inode(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        new: &NewFile,
    ) -> Result<u64, SfsError> {
        let now = self.files.clock.wall(task);
        let (number, generation) = (self.files.metadata.inode_file.take(task)?, self.writer.superblock.generation());
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

    /// Adds the name of a new file.
    pub(in crate::fs::sfs) fn add_new_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        inode: u64,
        kind: FileKind,
    ) -> Result<(), SfsError> {
        let put = self.files.add_name(task, directory, name, inode, kind);
        self.or_free_inode(task, inode, put)?;
        self.log_record(&Record::Name { directory, inode, kind, name });
        self.hint_by_name(task, inode, name)
    }

    /// Notes the lifetime that the new name of a file states.
    pub(in crate::fs::sfs) fn hint_by_name(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        name: &[u8],
    ) -> Result<(), SfsError> {
        let hint = self.settings.name_hints.of_name(name);
        if self.files.inode(task, inode)?.hint != hint {
            self.files.inode_mut(task, inode)?.hint = hint;
        }
        Ok(())
    }

    /// Frees a new inode if the rest of its creation failed.
    fn or_free_inode(&mut self, task: &Task<'_>, number: u64, made: Result<(), SfsError>) -> Result<(), SfsError> {
        if made.is_err() && self.writer.faults.read_only.is_none() {
            self.files.inode_mut(task, number)?.links = 0;
            self.files.orphans.insert(number);
            // If that fails, it stays an orphan, which the next mount frees.
            let _ = self.files.free_inode(task, number);
        }
        made
    }

    /// Adds a hard link to a file.
    pub fn link(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        directory: InodeNumber,
        name: &[u8],
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        let Entry { kind, .. } = names::link(&mut Named(&mut self.files, task), inode, (directory, name))?;
        self.check_space(task, 2)?;
        self.files.add_name(task, directory.0, name, inode.0, kind)?;
        self.log_record(&Record::Name { directory: directory.0, inode: inode.0, kind, name });
        self.files.change_links(task, inode.0, 1)?;
        self.files.update_directory(task, directory.0, 0)?;
        self.files.records.end();
        self.relieve(task)
    }

    /// Removes the name of a file that is not a directory.
    pub fn unlink(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.remove(task, (directory, name), Removal::File)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.remove(task, (directory, name), Removal::Directory)
    }

    fn remove(&mut self, task: &Task<'_>, (directory, name): Name, what: Removal) -> Result<(), SfsError> {
        self.check_writable()?;
        let entry = names::unlink(&mut Named(&mut self.files, task), (directory, name), what)?;
        // Unreadable metadata fails the call before any change.
        self.files.inode(task, entry.inode.0)?;
        self.files.remove_name(task, directory.0, name)?;
        self.log_record(&Record::NoName { directory: directory.0, name });
        let subdirectories = subdirectories(entry.kind);
        self.files.update_directory(task, directory.0, -subdirectories)?;
        self.files.change_links(task, entry.inode.0, -1 - subdirectories)?;
        self.files.records.end();
        self.relieve(task)
    }

    /// Lists a directory from offset `from` (0, or an entry's `next`), `.` and `..` first, until `take` returns false.
    pub fn list(
        &mut self,
        task: &Task<'_>,
        directory: InodeNumber,
        from: u64,
        take: &mut dyn FnMut(DirectoryEntry) -> bool,
    ) -> Result<(), SfsError> {
        let parent = self.files.directory(task, directory.0)?.parent;
        let kind = FileKind::Directory;
        if from == 0 && !take(DirectoryEntry { next: 1, inode: directory, kind, name: b"." }) {
            return Ok(());
        }
        if from <= 1 && !take(DirectoryEntry { next: 2, inode: InodeNumber(parent), kind, name: b".." }) {
            return Ok(());
        }
        // After those two, the offset in a listing is the offset in bytes plus two.
        let from = from.saturating_sub(2);
        self.files.index(task, directory.0)?;
        for number in from / BLOCK as u64..self.files.index(task, directory.0)?.blocks() {
            let virtual_block = self.files.mapped(task, directory.0, number)?;
            let block = self.files.metadata_block(task, virtual_block, directory.0, number)?;
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
    pub fn target(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<Vec<u8>, SfsError> {
        let file = self.files.inode(task, inode.0)?;
        let (kind, size) = (file.kind, file.size as usize);
        if kind != FileKind::Symlink {
            return Err(SfsError::Invalid("not a symbolic link"));
        }
        let virtual_block = self.files.mapped(task, inode.0, 0)?;
        let block = self.files.metadata_block(task, virtual_block, inode.0, 0)?;
        Ok(block[..size.min(LONGEST_TARGET)].to_vec())
    }
}
