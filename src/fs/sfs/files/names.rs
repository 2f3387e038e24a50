//! Calls about names: who is called what. Those that rename are in `renames`.

use crate::fs::sfs::files::attributes::{DirectoryEntry, FileKind, InodeNumber, NewFile};
use crate::fs::sfs::files::directory::{self, Index};
use crate::fs::sfs::files::extended::blocks_of_attributes;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::{Sfs, SfsError};
use crate::fs::volume::{LONGEST_NAME, LONGEST_TARGET, MOST_LINKS, check_name, check_removed_name};
use crate::task::Task;

impl Sfs {
    /// The inode that has this name in a directory. (`.` and `..` are names, too.)
    pub fn lookup(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<InodeNumber, SfsError> {
        let parent = self.directory(task, directory.0)?.parent;
        match name {
            b"." => Ok(directory),
            b".." => Ok(InodeNumber(parent)),
            name if name.len() > LONGEST_NAME => Err(SfsError::NameTooLong),
            name => {
                self.find_name(task, directory.0, name)?.map(|(inode, ..)| InodeNumber(inode)).ok_or(SfsError::NotFound)
            }
        }
    }

    /// Makes a file, a directory, a symbolic link, a pipe, a socket or a device.
    pub fn make(
        &mut self,
        task: &Task<'_>,
        directory: InodeNumber,
        name: &[u8],
        new: &NewFile,
    ) -> Result<InodeNumber, SfsError> {
        self.check_writable()?;
        check_name(name)?;
        let parent = self.directory(task, directory.0)?;
        let parent_links = parent.links;
        if parent_links == 0 {
            return Err(SfsError::NotFound);
        }
        if self.find_name(task, directory.0, name)?.is_some() {
            return Err(SfsError::Exists);
        }
        if new.kind == FileKind::Directory && parent_links >= u32::MAX - 1 {
            return Err(SfsError::TooManyLinks);
        }
        if new.target.len() > LONGEST_TARGET {
            return Err(SfsError::NameTooLong);
        }
        let attributes = self.first_attributes(new)?;
        self.check_space(task, 4 + attributes.as_ref().map_or(0, |bytes| blocks_of_attributes(bytes)))?;
        let number = self.new_inode(task, directory.0, new)?;
        if new.kind == FileKind::Symlink {
            let put = self.put_target(task, number, new.target);
            self.or_abandon(task, number, put)?;
            self.tell(&Record::Target { inode: number, bytes: new.target });
        }
        if let Some(bytes) = attributes {
            let put = self.put_attributes(task, number, &bytes);
            self.or_abandon(task, number, put)?;
        }
        self.put_new_name(task, directory.0, name, number, new.kind)?;
        self.directory_changed(task, directory.0, i64::from(new.kind == FileKind::Directory))?;
        self.log.records.end();
        self.relieve(task)?;
        Ok(InodeNumber(number))
    }

    /// An inode for a file that is being made in this directory, and has no name yet.
    pub(in crate::fs::sfs) fn new_inode(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        new: &NewFile,
    ) -> Result<u64, SfsError> {
        let now = self.wall(task);
        let (number, generation) = self.take_inode(task)?;
        let mut inode = Inode::new(number, generation, new.kind, now);
        inode.permissions = new.permissions & 0o7777;
        inode.user = new.user;
        inode.group = new.group;
        inode.device = new.device;
        inode.links = if new.kind == FileKind::Directory { 2 } else { 1 };
        inode.parent = directory;
        self.inodes.insert(inode);
        self.is_changed = true;
        self.log.records.touch(number);
        Ok(number)
    }

    /// Gives a file that is being made its name.
    pub(in crate::fs::sfs) fn put_new_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        inode: u64,
        kind: FileKind,
    ) -> Result<(), SfsError> {
        let put = self.put_name(task, directory, name, inode, kind);
        self.or_abandon(task, inode, put)?;
        self.tell(&Record::Name { directory, inode, kind, name });
        Ok(())
    }

    /// Frees an inode that was being made, if that failed.
    fn or_abandon(&mut self, task: &Task<'_>, number: u64, made: Result<(), SfsError>) -> Result<(), SfsError> {
        if made.is_err() && self.faults.read_only.is_none() {
            self.inode_mut(task, number)?.links = 0;
            self.orphans.insert(number);
            // What cannot be read now stays an orphan, which the next mount frees.
            let _ = self.free_inode(task, number);
        }
        made
    }

    /// Gives a file one more name.
    pub fn link(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        directory: InodeNumber,
        name: &[u8],
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        check_name(name)?;
        let file = self.inode(task, inode.0)?;
        let kind = file.kind;
        if kind == FileKind::Directory {
            return Err(SfsError::NotPermitted("a directory has one name"));
        }
        if file.links >= MOST_LINKS {
            return Err(SfsError::TooManyLinks);
        }
        if file.links == 0 || self.directory(task, directory.0)?.links == 0 {
            return Err(SfsError::NotFound);
        }
        if self.find_name(task, directory.0, name)?.is_some() {
            return Err(SfsError::Exists);
        }
        self.check_space(task, 2)?;
        self.put_name(task, directory.0, name, inode.0, kind)?;
        self.tell(&Record::Name { directory: directory.0, inode: inode.0, kind, name });
        self.links_changed(task, inode.0, 1)?;
        self.directory_changed(task, directory.0, 0)?;
        self.log.records.end();
        self.relieve(task)
    }

    /// Takes the name of what is no directory away.
    pub fn unlink(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        check_name(name)?;
        self.directory(task, directory.0)?;
        let (inode, kind, _) = self.find_name(task, directory.0, name)?.ok_or(SfsError::NotFound)?;
        if kind == FileKind::Directory {
            return Err(SfsError::IsDirectory);
        }
        // What cannot be read fails before anything is changed.
        self.inode(task, inode)?;
        self.take_name(task, directory.0, name)?;
        self.tell(&Record::NoName { directory: directory.0, name });
        self.directory_changed(task, directory.0, 0)?;
        self.links_changed(task, inode, -1)?;
        self.log.records.end();
        self.relieve(task)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        check_removed_name(name)?;
        self.directory(task, directory.0)?;
        let (inode, kind, _) = self.find_name(task, directory.0, name)?.ok_or(SfsError::NotFound)?;
        if kind != FileKind::Directory {
            return Err(SfsError::NotDirectory);
        }
        if self.count_names(task, inode)? > 0 {
            return Err(SfsError::NotEmpty);
        }
        self.take_name(task, directory.0, name)?;
        self.tell(&Record::NoName { directory: directory.0, name });
        self.directory_changed(task, directory.0, -1)?;
        self.links_changed(task, inode, -2)?;
        self.log.records.end();
        self.relieve(task)
    }

    /// A directory has other names than before, and so many directories more.
    pub(in crate::fs::sfs) fn directory_changed(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        more: i64,
    ) -> Result<(), SfsError> {
        let now = self.wall(task);
        let it = self.inode_mut(task, directory)?;
        it.times.written(now);
        it.is_unlogged = true;
        it.links = it.links.saturating_add_signed(more as i32);
        self.log.records.touch(directory);
        Ok(())
    }

    /// A file has so many names more. Without one it is freed, unless someone holds it.
    pub(in crate::fs::sfs) fn links_changed(&mut self, task: &Task<'_>, inode: u64, more: i32) -> Result<(), SfsError> {
        let now = self.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.links = file.links.saturating_add_signed(more);
        file.times.changed(now);
        file.is_unlogged = true;
        let (is_gone, is_held) = (file.links == 0, self.inodes.is_held(inode));
        self.log.records.touch(inode);
        if is_gone {
            self.orphans.insert(inode);
        }
        if is_gone && !is_held { self.free_inode(task, inode) } else { Ok(()) }
    }

    /// Lists a directory from `from` on (0, or an entry's `next`), `.` and `..` first, until `take` answers false.
    pub fn list(
        &mut self,
        task: &Task<'_>,
        directory: InodeNumber,
        from: u64,
        take: &mut dyn FnMut(DirectoryEntry) -> bool,
    ) -> Result<(), SfsError> {
        let parent = self.directory(task, directory.0)?.parent;
        let kind = FileKind::Directory;
        if from == 0 && !take(DirectoryEntry { next: 1, inode: directory, kind, name: b"." }) {
            return Ok(());
        }
        if from <= 1 && !take(DirectoryEntry { next: 2, inode: InodeNumber(parent), kind, name: b".." }) {
            return Ok(());
        }
        // Behind those two, where a listing goes on is a place in bytes, and two.
        let from = from.saturating_sub(2);
        self.index(task, directory.0)?;
        for number in from / BLOCK as u64..self.index(task, directory.0)?.blocks() {
            let virtual_block = self.mapped(task, directory.0, number)?;
            let block = self.metadata_block(task, virtual_block, directory.0, number)?;
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

    /// What a symbolic link points at.
    pub fn target(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<Vec<u8>, SfsError> {
        let file = self.inode(task, inode.0)?;
        let (kind, size) = (file.kind, file.size as usize);
        if kind != FileKind::Symlink {
            return Err(SfsError::Invalid("not a symbolic link"));
        }
        let virtual_block = self.mapped(task, inode.0, 0)?;
        let block = self.metadata_block(task, virtual_block, inode.0, 0)?;
        Ok(block[..size.min(LONGEST_TARGET)].to_vec())
    }

    /// A free number for a new inode, and its generation. A number is given out once between two checkpoints at most, and
    /// so the number of the last one tells it from all that had its number before, after a crash and on any mount: a file
    /// handle that was kept does not become another file's.
    pub(in crate::fs::sfs) fn take_inode(&mut self, task: &Task<'_>) -> Result<(u64, u32), SfsError> {
        let number = self.metadata.inode_file.take(task)?;
        Ok((number, self.superblock.sequence.get() as u32))
    }

    /// Says something to the log, when it is next told.
    pub(in crate::fs::sfs) fn tell(&mut self, record: &Record) {
        self.log.records.add(record, self.superblock.next_partial.get());
    }

    /// An inode that is a directory.
    pub(in crate::fs::sfs) fn directory(&mut self, task: &Task<'_>, number: u64) -> Result<&Inode, SfsError> {
        let inode = self.inode(task, number)?;
        match inode.kind {
            FileKind::Directory => Ok(inode),
            _ => Err(SfsError::NotDirectory),
        }
    }

    /// The index of a directory, which is made if there is none yet.
    pub(in crate::fs::sfs) fn index(&mut self, task: &Task<'_>, directory: u64) -> Result<&Index, SfsError> {
        if self.inode(task, directory)?.index.is_none() {
            let blocks = self.inode(task, directory)?.size.div_ceil(BLOCK as u64);
            if blocks > directory::MOST_BLOCKS {
                let why = format!("it has {blocks} blocks, and {} are the most", directory::MOST_BLOCKS);
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
                if !index.take_up(self.metadata_block(task, virtual_block, directory, number)?) {
                    let what = format!("block {number} of directory {directory}");
                    return Err(SfsError::Damaged { what, why: "its records do not fill it".to_string() });
                }
            }
            self.inodes.put_index(directory, index);
        }
        Ok(self.inode(task, directory)?.index.as_ref().expect("it was made"))
    }

    /// Names in a directory.
    pub(in crate::fs::sfs) fn count_names(&mut self, task: &Task<'_>, directory: u64) -> Result<usize, SfsError> {
        Ok(self.index(task, directory)?.names())
    }

    /// Who has a name: the inode, its kind, and the place of the record.
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

    /// Puts a name into a directory.
    pub(in crate::fs::sfs) fn put_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        inode: u64,
        kind: FileKind,
    ) -> Result<(), SfsError> {
        self.index(task, directory)?;
        let index = self.inodes.get_mut(directory).and_then(|it| it.index.as_mut()).expect("it was made");
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
                let mut index = self.inodes.take_index(directory).expect("it was made");
                index.take_up(&block);
                self.inodes.put_index(directory, index);
                self.inode_mut(task, directory)?.size = (number + 1) * BLOCK as u64;
                number
            }
        };
        let virtual_block = self.mapped(task, directory, number)?;
        // The index and the block are changed together, and lie in two places.
        let mut index = self.inodes.take_index(directory).expect("it was made");
        let put = self
            .metadata_block_mut(task, virtual_block, directory, number)
            .map(|block| index.put(number, block, name, inode, kind));
        self.inodes.put_index(directory, index);
        match put? {
            Some(_) => Ok(()),
            None => {
                let what = format!("block {number} of directory {directory}");
                Err(SfsError::Damaged { what, why: "it has less room than its index says".to_string() })
            }
        }
    }

    /// Takes a name away; says whose it was, if it was there.
    pub(in crate::fs::sfs) fn take_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
    ) -> Result<Option<u64>, SfsError> {
        let Some((inode, _, place)) = self.find_name(task, directory, name)? else { return Ok(None) };
        let number = place / BLOCK as u64;
        let virtual_block = self.mapped(task, directory, number)?;
        let mut index = self.inodes.take_index(directory).expect("it was made");
        let removed = self
            .metadata_block_mut(task, virtual_block, directory, number)
            .map(|block| index.remove(block, name, place));
        self.inodes.put_index(directory, index);
        removed?;
        // The name is gone. If its map cannot be read, the directory keeps blocks behind its end until it grows again.
        let _ = self.shorten(task, directory);
        Ok(Some(inode))
    }

    /// Frees the last blocks of a directory, as far as they hold no names. The first stays: an empty directory is often
    /// filled again.
    fn shorten(&mut self, task: &Task<'_>, directory: u64) -> Result<(), SfsError> {
        let index = self.index(task, directory)?;
        let (blocks, needed) = (index.blocks(), index.blocks_with_names().max(1));
        if needed < blocks {
            let mut index = self.inodes.take_index(directory).expect("it was made");
            index.cut(needed);
            self.inodes.put_index(directory, index);
            self.inode_mut(task, directory)?.size = needed * BLOCK as u64;
            self.unmap(task, directory, needed..u64::MAX)?;
        }
        Ok(())
    }

    /// Gives a name to another inode.
    pub(in crate::fs::sfs) fn replace_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        inode: u64,
        kind: FileKind,
    ) -> Result<(), SfsError> {
        let (.., place) = self.find_name(task, directory, name)?.ok_or(SfsError::NotFound)?;
        let number = place / BLOCK as u64;
        let virtual_block = self.mapped(task, directory, number)?;
        let block = self.metadata_block_mut(task, virtual_block, directory, number)?;
        directory::replace(block, (place % BLOCK as u64) as usize, inode, kind);
        Ok(())
    }

    /// Puts the target of a link into its block.
    pub(in crate::fs::sfs) fn put_target(
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
