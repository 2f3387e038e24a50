//! Calls about names: who is called what.

use super::attributes::{DirectoryEntry, FileKind, InodeNumber, NewFile, Taken};
use super::directory::{self, Index, LONGEST_NAME};
use super::format::BLOCK;
use super::inode::Inode;
use super::records::Record;
use super::{Sfs, SfsError};

/// The longest target of a symbolic link.
const LONGEST_TARGET: usize = 4095;
/// Names that a file can have.
const MOST_LINKS: u32 = 65_000;
/// Set-group-id.
const SETGID: u16 = 0o2000;

fn check_name(name: &[u8]) -> Result<(), SfsError> {
    match name {
        b"" => Err(SfsError::NotFound),
        b"." | b".." => Err(SfsError::Invalid("'.' and '..' can be neither made nor taken away")),
        name if name.len() > LONGEST_NAME => Err(SfsError::NameTooLong),
        name if name.contains(&b'/') || name.contains(&0) => {
            Err(SfsError::Invalid("a name has no '/' and no zero byte"))
        }
        _ => Ok(()),
    }
}

impl Sfs {
    /// The inode that has this name in a directory. (`.` and `..` are names, too.)
    pub fn lookup(&mut self, directory: InodeNumber, name: &[u8]) -> Result<InodeNumber, SfsError> {
        let parent = self.directory(directory.0)?.parent;
        match name {
            b"." => Ok(directory),
            b".." => Ok(InodeNumber(parent)),
            name if name.len() > LONGEST_NAME => Err(SfsError::NameTooLong),
            name => self.find_name(directory.0, name)?.map(|(inode, ..)| InodeNumber(inode)).ok_or(SfsError::NotFound),
        }
    }

    /// Makes a file, a directory, a symbolic link, a pipe, a socket or a device.
    pub fn make(&mut self, directory: InodeNumber, name: &[u8], new: &NewFile) -> Result<InodeNumber, SfsError> {
        self.check_writable()?;
        check_name(name)?;
        let parent = self.directory(directory.0)?;
        let (inherits, parent_group, parent_links) = (parent.permissions & SETGID != 0, parent.group, parent.links);
        if parent_links == 0 {
            return Err(SfsError::NotFound);
        }
        if self.find_name(directory.0, name)?.is_some() {
            return Err(SfsError::Exists);
        }
        if new.kind == FileKind::Directory && parent_links >= u32::MAX - 1 {
            return Err(SfsError::TooManyLinks);
        }
        if new.target.len() > LONGEST_TARGET {
            return Err(SfsError::NameTooLong);
        }
        self.check_space(4)?;
        let now = self.wall();
        let (number, generation) = self.take_inode()?;
        let mut inode = Inode::new(number, generation, new.kind, now);
        inode.permissions = new.permissions & 0o7777;
        if inherits && new.kind == FileKind::Directory {
            inode.permissions |= SETGID;
        }
        inode.user = new.user;
        inode.group = if inherits { parent_group } else { new.group };
        inode.device = new.device;
        inode.links = if new.kind == FileKind::Directory { 2 } else { 1 };
        inode.parent = directory.0;
        self.inodes.insert(number, inode);
        self.is_changed = true;
        self.records.touch(number);
        if new.kind == FileKind::Symlink {
            self.put_contents(number, false, new.target)?;
            self.tell(&Record::Contents { inode: number, are_attributes: false, bytes: new.target });
        }
        self.put_name(directory.0, name, number, new.kind)?;
        self.tell(&Record::Name { directory: directory.0, inode: number, kind: new.kind, name });
        self.directory_changed(directory.0, i64::from(new.kind == FileKind::Directory))?;
        self.records.end();
        self.relieve()?;
        Ok(InodeNumber(number))
    }

    /// Gives a file one more name.
    pub fn link(&mut self, inode: InodeNumber, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        check_name(name)?;
        let file = self.inode(inode.0)?;
        let kind = file.kind;
        if kind == FileKind::Directory {
            return Err(SfsError::NotPermitted("a directory has one name"));
        }
        if file.links >= MOST_LINKS {
            return Err(SfsError::TooManyLinks);
        }
        if file.links == 0 || self.directory(directory.0)?.links == 0 {
            return Err(SfsError::NotFound);
        }
        if self.find_name(directory.0, name)?.is_some() {
            return Err(SfsError::Exists);
        }
        self.check_space(2)?;
        self.put_name(directory.0, name, inode.0, kind)?;
        self.tell(&Record::Name { directory: directory.0, inode: inode.0, kind, name });
        self.links_changed(inode.0, 1)?;
        self.directory_changed(directory.0, 0)?;
        self.records.end();
        self.relieve()
    }

    /// Takes the name of what is no directory away.
    pub fn unlink(&mut self, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        check_name(name)?;
        self.directory(directory.0)?;
        let (inode, kind, _) = self.find_name(directory.0, name)?.ok_or(SfsError::NotFound)?;
        if kind == FileKind::Directory {
            return Err(SfsError::IsDirectory);
        }
        self.take_name(directory.0, name)?;
        self.tell(&Record::NoName { directory: directory.0, name });
        self.directory_changed(directory.0, 0)?;
        self.links_changed(inode, -1)?;
        self.records.end();
        self.relieve()
    }

    /// Removes an empty directory.
    pub fn remove_directory(&mut self, directory: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        match name {
            b"." => return Err(SfsError::Invalid("'.' cannot be removed")),
            b".." => return Err(SfsError::NotEmpty),
            name => check_name(name)?,
        }
        self.directory(directory.0)?;
        let (inode, kind, _) = self.find_name(directory.0, name)?.ok_or(SfsError::NotFound)?;
        if kind != FileKind::Directory {
            return Err(SfsError::NotDirectory);
        }
        if self.count_names(inode)? > 0 {
            return Err(SfsError::NotEmpty);
        }
        self.take_name(directory.0, name)?;
        self.tell(&Record::NoName { directory: directory.0, name });
        self.directory_changed(directory.0, -1)?;
        self.links_changed(inode, -2)?;
        self.records.end();
        self.relieve()
    }

    /// Renames.
    pub fn rename(
        &mut self,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        taken: Taken,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        let ((from_directory, from_name), (to_directory, to_name)) = (from, to);
        check_name(from_name)?;
        check_name(to_name)?;
        self.directory(from_directory.0)?;
        if self.directory(to_directory.0)?.links == 0 {
            return Err(SfsError::NotFound);
        }
        let (inode, kind, _) = self.find_name(from_directory.0, from_name)?.ok_or(SfsError::NotFound)?;
        let there = self.find_name(to_directory.0, to_name)?;
        let is_directory = kind == FileKind::Directory;
        if is_directory && self.is_within(to_directory.0, inode)? {
            return Err(SfsError::Invalid("a directory cannot be moved into itself"));
        }
        match (there, taken) {
            (None, Taken::Exchange) => return Err(SfsError::NotFound),
            (Some(_), Taken::Refuse) => return Err(SfsError::Exists),
            (Some((other, ..)), _) if other == inode => return Ok(()),
            (Some((other, other_kind, _)), Taken::Exchange) => {
                if other_kind == FileKind::Directory && self.is_within(from_directory.0, other)? {
                    return Err(SfsError::Invalid("a directory cannot be moved into itself"));
                }
                return self.exchange(
                    (from_directory.0, from_name, inode, kind),
                    (to_directory.0, to_name, other, other_kind),
                );
            }
            (Some((other, other_kind, _)), Taken::Replace) => match (is_directory, other_kind == FileKind::Directory) {
                (true, false) => return Err(SfsError::NotDirectory),
                (false, true) => return Err(SfsError::IsDirectory),
                (true, true) if self.count_names(other)? > 0 => return Err(SfsError::NotEmpty),
                _ => {}
            },
            (None, _) => {}
        }
        self.check_space(2)?;
        let moves = is_directory && from_directory != to_directory;
        self.take_name(from_directory.0, from_name)?;
        self.tell(&Record::NoName { directory: from_directory.0, name: from_name });
        let mut more_in_to = i64::from(moves);
        if let Some((other, other_kind, _)) = there {
            self.take_name(to_directory.0, to_name)?;
            let is_directory = other_kind == FileKind::Directory;
            more_in_to -= i64::from(is_directory);
            self.links_changed(other, if is_directory { -2 } else { -1 })?;
            self.renamed.insert(inode);
        }
        self.put_name(to_directory.0, to_name, inode, kind)?;
        self.tell(&Record::Name { directory: to_directory.0, inode, kind, name: to_name });
        self.directory_changed(from_directory.0, -i64::from(moves))?;
        self.directory_changed(to_directory.0, more_in_to)?;
        self.renamed_to(inode, to_directory.0)?;
        self.records.end();
        self.relieve()
    }

    fn exchange(
        &mut self,
        one: (u64, &[u8], u64, FileKind),
        other: (u64, &[u8], u64, FileKind),
    ) -> Result<(), SfsError> {
        for (place, what) in [(one, other), (other, one)] {
            self.replace_name(place.0, place.1, what.2, what.3)?;
            self.tell(&Record::Name { directory: place.0, inode: what.2, kind: what.3, name: place.1 });
            self.renamed_to(what.2, place.0)?;
        }
        let directories = |kind: FileKind| i64::from(kind == FileKind::Directory);
        let more = directories(other.3) - directories(one.3);
        let more = if one.0 == other.0 { 0 } else { more };
        self.directory_changed(one.0, more)?;
        self.directory_changed(other.0, -more)?;
        self.records.end();
        self.relieve()
    }

    /// A file has a new name, in this directory.
    fn renamed_to(&mut self, inode: u64, directory: u64) -> Result<(), SfsError> {
        let now = self.wall();
        let file = self.inode_mut(inode)?;
        file.changed = now;
        file.is_unlogged = true;
        if file.kind == FileKind::Directory {
            file.parent = directory;
        }
        self.records.touch(inode);
        Ok(())
    }

    /// A directory has other names than before, and so many directories more.
    fn directory_changed(&mut self, directory: u64, more: i64) -> Result<(), SfsError> {
        let now = self.wall();
        let it = self.inode_mut(directory)?;
        it.modified = now;
        it.changed = now;
        it.is_unlogged = true;
        it.links = it.links.saturating_add_signed(more as i32);
        self.records.touch(directory);
        Ok(())
    }

    /// A file has so many names more. Without one it is freed, unless someone holds it.
    fn links_changed(&mut self, inode: u64, more: i32) -> Result<(), SfsError> {
        let now = self.wall();
        let file = self.inode_mut(inode)?;
        file.links = file.links.saturating_add_signed(more);
        file.changed = now;
        file.is_unlogged = true;
        let (is_gone, is_held) = (file.links == 0, file.held > 0);
        self.records.touch(inode);
        match (is_gone, is_held) {
            (true, true) => {
                self.orphans.insert(inode);
            }
            (true, false) => self.free_inode(inode)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether a directory is another one, or lies in it.
    fn is_within(&mut self, directory: u64, other: u64) -> Result<bool, SfsError> {
        let mut at = directory;
        for _ in 0..self.inode_file.count() {
            if at == other {
                return Ok(true);
            }
            let parent = self.inode(at)?.parent;
            if parent == at {
                return Ok(false);
            }
            at = parent;
        }
        let why = "it lies in itself".to_string();
        Err(SfsError::Damaged { what: format!("directory {directory}"), why })
    }

    /// Lists a directory from `from` on (0, or an entry's `next`), `.` and `..` first, until `take` answers false.
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
        // Behind those two, where a listing goes on is a place in bytes, and two.
        let from = from.saturating_sub(2);
        self.index(directory.0)?;
        for number in from / BLOCK as u64..self.index(directory.0)?.blocks() {
            let virtual_block = self.mapped(directory.0, number)?;
            let block = self.metadata_block(virtual_block, directory.0, number)?;
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
    pub fn target(&mut self, inode: InodeNumber) -> Result<Vec<u8>, SfsError> {
        let file = self.inode(inode.0)?;
        let (kind, size) = (file.kind, file.size as usize);
        if kind != FileKind::Symlink {
            return Err(SfsError::Invalid("not a symbolic link"));
        }
        let virtual_block = self.mapped(inode.0, 0)?;
        let block = self.metadata_block(virtual_block, inode.0, 0)?;
        Ok(block[..size.min(LONGEST_TARGET)].to_vec())
    }

    /// A free number for an inode, and the generation of whoever has it from now on: there are two superblocks at least
    /// between him and who had it before.
    pub(super) fn take_inode(&mut self) -> Result<(u64, u32), SfsError> {
        let number = self.inode_file.take(&mut self.media, &mut self.now)?;
        Ok((number, self.superblock.sequence.get() as u32))
    }

    /// Says something to the log, when it is next told.
    pub(super) fn tell(&mut self, record: &Record) {
        self.records.add(record, self.superblock.next_partial.get());
    }

    /// An inode that is a directory.
    fn directory(&mut self, number: u64) -> Result<&Inode, SfsError> {
        let inode = self.inode(number)?;
        match inode.kind {
            FileKind::Directory => Ok(inode),
            _ => Err(SfsError::NotDirectory),
        }
    }

    /// The index of a directory, which is made if there is none yet.
    pub(super) fn index(&mut self, directory: u64) -> Result<&mut Index, SfsError> {
        if self.inode(directory)?.index.is_none() {
            let blocks = self.inode(directory)?.size.div_ceil(BLOCK as u64);
            let mut index = Box::<Index>::default();
            for number in 0..blocks {
                let virtual_block = self.mapped(directory, number)?;
                if !index.take_up(self.metadata_block(virtual_block, directory, number)?) {
                    let what = format!("block {number} of directory {directory}");
                    return Err(SfsError::Damaged { what, why: "its records do not fill it".to_string() });
                }
            }
            self.inodes.get_mut(&directory).expect("it was loaded").index = Some(index);
        }
        Ok(self.inodes.get_mut(&directory).expect("it was loaded").index.as_mut().expect("it was made"))
    }

    /// Names in a directory.
    pub(super) fn count_names(&mut self, directory: u64) -> Result<usize, SfsError> {
        Ok(self.index(directory)?.names())
    }

    /// Who has a name: the inode, its kind, and the place of the record.
    fn find_name(&mut self, directory: u64, name: &[u8]) -> Result<Option<(u64, FileKind, u64)>, SfsError> {
        let places: Vec<u64> = self.index(directory)?.places(name).collect();
        for place in places {
            let number = place / BLOCK as u64;
            let virtual_block = self.mapped(directory, number)?;
            let block = self.metadata_block(virtual_block, directory, number)?;
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
    pub(super) fn put_name(&mut self, directory: u64, name: &[u8], inode: u64, kind: FileKind) -> Result<(), SfsError> {
        let number = match self.index(directory)?.block_with_room(name) {
            Some(number) => number,
            None => {
                let number = self.index(directory)?.blocks();
                let virtual_block = self.make_metadata_block(directory, number)?;
                self.map(directory, number, virtual_block)?;
                let block = self.metadata_block_mut(virtual_block, directory, number)?;
                directory::format(block);
                let block = *block;
                self.index(directory)?.take_up(&block);
                self.inode_mut(directory)?.size = (number + 1) * BLOCK as u64;
                number
            }
        };
        let virtual_block = self.mapped(directory, number)?;
        // The index and the block are changed together, and lie in two places.
        let mut index = self.inodes.get_mut(&directory).and_then(|it| it.index.take()).expect("it was made");
        let put = self
            .metadata_block_mut(virtual_block, directory, number)
            .map(|block| index.put(number, block, name, inode, kind));
        self.inodes.get_mut(&directory).expect("it was loaded").index = Some(index);
        match put? {
            Some(_) => Ok(()),
            None => {
                let what = format!("block {number} of directory {directory}");
                Err(SfsError::Damaged { what, why: "it has less room than its index says".to_string() })
            }
        }
    }

    /// Takes a name away; says whose it was, if it was there.
    pub(super) fn take_name(&mut self, directory: u64, name: &[u8]) -> Result<Option<u64>, SfsError> {
        let Some((inode, _, place)) = self.find_name(directory, name)? else { return Ok(None) };
        let number = place / BLOCK as u64;
        let virtual_block = self.mapped(directory, number)?;
        let mut index = self.inodes.get_mut(&directory).and_then(|it| it.index.take()).expect("it was made");
        let removed =
            self.metadata_block_mut(virtual_block, directory, number).map(|block| index.remove(block, name, place));
        self.inodes.get_mut(&directory).expect("it was loaded").index = Some(index);
        removed?;
        self.shorten(directory)?;
        Ok(Some(inode))
    }

    /// Frees the last blocks of a directory, as far as they hold no names. The first stays: an empty directory is often
    /// filled again.
    fn shorten(&mut self, directory: u64) -> Result<(), SfsError> {
        let index = self.index(directory)?;
        let (blocks, needed) = (index.blocks(), index.blocks_with_names().max(1));
        if needed < blocks {
            index.cut(needed);
            self.inode_mut(directory)?.size = needed * BLOCK as u64;
            self.unmap(directory, needed..u64::MAX)?;
        }
        Ok(())
    }

    /// Gives a name to another inode.
    fn replace_name(&mut self, directory: u64, name: &[u8], inode: u64, kind: FileKind) -> Result<(), SfsError> {
        let (.., place) = self.find_name(directory, name)?.ok_or(SfsError::NotFound)?;
        let number = place / BLOCK as u64;
        let virtual_block = self.mapped(directory, number)?;
        let block = self.metadata_block_mut(virtual_block, directory, number)?;
        directory::replace(block, (place % BLOCK as u64) as usize, inode, kind);
        Ok(())
    }

    /// Puts the bytes of a link's target, or of extended attributes, into their block.
    pub(super) fn put_contents(&mut self, inode: u64, are_attributes: bool, bytes: &[u8]) -> Result<(), SfsError> {
        if bytes.len() > BLOCK {
            return Err(SfsError::NameTooLong);
        }
        let place = if are_attributes { super::metadata_blocks::NO_PLACE } else { 0 };
        let mut virtual_block = match are_attributes {
            true => self.inode(inode)?.attributes,
            false => self.mapped(inode, 0)?,
        };
        if virtual_block == 0 {
            virtual_block = self.make_metadata_block(inode, place)?;
            match are_attributes {
                true => self.inode_mut(inode)?.attributes = virtual_block,
                false => self.map(inode, 0, virtual_block)?,
            }
        }
        let block = self.metadata_block_mut(virtual_block, inode, place)?;
        block.fill(0);
        block[..bytes.len()].copy_from_slice(bytes);
        if !are_attributes {
            self.inode_mut(inode)?.size = bytes.len() as u64;
        }
        Ok(())
    }
}
