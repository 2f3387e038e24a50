//! Create, link, unlink and rename.

use super::files::Files;
use super::names::Entry;
use crate::fs::volume::{
    FileKind, IfExists, LONGEST_TARGET, MOST_LINKS, Name, NewFile, Renaming, Timestamp, VolumeError, check_name,
    check_removed_name,
};

/// Number of links that a file of this kind adds to its parent: a directory adds its `..`.
fn subdirectory_links(kind: FileKind) -> u32 {
    u32::from(kind == FileKind::Directory)
}

impl Files {
    /// The entry of a name other than `.` and `..`, if any.
    fn find(&self, (directory, name): Name) -> Result<Option<Entry>, VolumeError> {
        Ok(self.get(directory.0)?.names()?.find(name).cloned())
    }

    /// Fails unless names can be added to a directory.
    fn check_open(&self, (directory, _): Name) -> Result<(), VolumeError> {
        let directory = self.get(directory.0)?;
        directory.names()?;
        if directory.links == 0 { Err(VolumeError::NotFound) } else { Ok(()) }
    }

    /// Updates a directory after a change of its names and subdirectories.
    fn update_directory(&mut self, directory: u64, more: u32, fewer: u32, now: Timestamp) -> Result<(), VolumeError> {
        let directory = self.get_mut(directory)?;
        directory.times.written(now);
        directory.links = directory.links + more - fewer;
        Ok(())
    }

    /// Removes one link of a file.
    fn remove_link(&mut self, entry: &Entry, now: Timestamp) -> Result<(), VolumeError> {
        let file = self.get_mut(entry.inode)?;
        file.links -= 1 + subdirectory_links(entry.kind);
        file.times.changed(now);
        self.free_if_gone(entry.inode);
        Ok(())
    }

    pub fn make(&mut self, name: Name, new: &NewFile, now: Timestamp) -> Result<u64, VolumeError> {
        check_name(name.1)?;
        self.check_open(name)?;
        if self.find(name)?.is_some() {
            return Err(VolumeError::Exists);
        }
        if new.target.len() > LONGEST_TARGET {
            return Err(VolumeError::NameTooLong);
        }
        let number = self.add(name.0.0, new, now)?;
        self.names_mut(name.0.0).put(name.1, number, new.kind);
        self.update_directory(name.0.0, subdirectory_links(new.kind), 0, now)?;
        Ok(number)
    }

    pub fn link(&mut self, number: u64, name: Name, now: Timestamp) -> Result<(), VolumeError> {
        check_name(name.1)?;
        let file = self.get(number)?;
        let kind = file.kind;
        if kind == FileKind::Directory {
            return Err(VolumeError::NotPermitted("a directory cannot have a second name"));
        }
        if file.links >= MOST_LINKS {
            return Err(VolumeError::TooManyLinks);
        }
        if file.links == 0 {
            return Err(VolumeError::NotFound);
        }
        self.check_open(name)?;
        if self.find(name)?.is_some() {
            return Err(VolumeError::Exists);
        }
        self.names_mut(name.0.0).put(name.1, number, kind);
        let file = self.get_mut(number)?;
        file.links += 1;
        file.times.changed(now);
        self.update_directory(name.0.0, 0, 0, now)
    }

    pub fn unlink(&mut self, name: Name, now: Timestamp) -> Result<(), VolumeError> {
        check_name(name.1)?;
        let entry = self.find(name)?.ok_or(VolumeError::NotFound)?;
        if entry.kind == FileKind::Directory {
            return Err(VolumeError::IsDirectory);
        }
        self.names_mut(name.0.0).remove(name.1);
        self.update_directory(name.0.0, 0, 0, now)?;
        self.remove_link(&entry, now)
    }

    pub fn remove_directory(&mut self, name: Name, now: Timestamp) -> Result<(), VolumeError> {
        check_removed_name(name.1)?;
        let entry = self.find(name)?.ok_or(VolumeError::NotFound)?;
        if !self.get(entry.inode)?.names()?.is_empty() {
            return Err(VolumeError::NotEmpty);
        }
        self.names_mut(name.0.0).remove(name.1);
        self.update_directory(name.0.0, 0, 1, now)?;
        self.remove_link(&entry, now)
    }

    /// True if `directory` is `other`, or lies below it.
    fn is_within(&self, directory: u64, other: u64) -> Result<bool, VolumeError> {
        let mut at = directory;
        loop {
            let parent = self.get(at)?.parent;
            if at == other || parent == at {
                return Ok(at == other);
            }
            at = parent;
        }
    }

    pub fn rename(&mut self, from: Name, to: Name, how: Renaming, now: Timestamp) -> Result<(), VolumeError> {
        if how.whiteout.is_some() && how.if_exists == IfExists::Exchange {
            return Err(VolumeError::Invalid("an exchange leaves no name for a whiteout"));
        }
        check_name(from.1)?;
        check_name(to.1)?;
        self.get(from.0.0)?.names()?;
        self.check_open(to)?;
        let file = self.find(from)?.ok_or(VolumeError::NotFound)?;
        let there = self.find(to)?;
        let lies_in_itself = |entry: &Entry, directory: u64| -> Result<bool, VolumeError> {
            Ok(entry.kind == FileKind::Directory && self.is_within(directory, entry.inode)?)
        };
        let into_itself = VolumeError::Invalid("a directory cannot be moved into itself");
        if lies_in_itself(&file, to.0.0)? {
            return Err(into_itself);
        }
        match (&there, how.if_exists) {
            (None, IfExists::Exchange) => return Err(VolumeError::NotFound),
            (Some(_), IfExists::Refuse) => return Err(VolumeError::Exists),
            (Some(other), _) if other.inode == file.inode => return Ok(()),
            (Some(other), IfExists::Exchange) if lies_in_itself(other, from.0.0)? => return Err(into_itself),
            (Some(other), IfExists::Exchange) => return self.exchange((from, &file), (to, other), now),
            (Some(other), IfExists::Replace) => self.check_replaced(&file, other)?,
            (None, _) => {}
        }
        let whiteout = how.whiteout.map(|owner| self.add_whiteout(from.0.0, owner, now)).transpose()?;
        self.names_mut(from.0.0).remove(from.1);
        self.update_directory(from.0.0, 0, subdirectory_links(file.kind), now)?;
        self.names_mut(to.0.0).put(to.1, file.inode, file.kind);
        self.update_directory(
            to.0.0,
            subdirectory_links(file.kind),
            there.as_ref().map_or(0, |other| subdirectory_links(other.kind)),
            now,
        )?;
        if let Some(other) = &there {
            self.remove_link(other, now)?;
        }
        self.update_renamed(file.inode, to.0.0, now)?;
        if let Some(number) = whiteout {
            self.names_mut(from.0.0).put(from.1, number, FileKind::CharacterDevice);
        }
        Ok(())
    }

    fn check_replaced(&self, file: &Entry, other: &Entry) -> Result<(), VolumeError> {
        match (subdirectory_links(file.kind), subdirectory_links(other.kind)) {
            (1, 0) => Err(VolumeError::NotDirectory),
            (0, 1) => Err(VolumeError::IsDirectory),
            (1, 1) if !self.get(other.inode)?.names()?.is_empty() => Err(VolumeError::NotEmpty),
            _ => Ok(()),
        }
    }

    fn add_whiteout(&mut self, directory: u64, (user, group): (u32, u32), now: Timestamp) -> Result<u64, VolumeError> {
        let kind = FileKind::CharacterDevice;
        let new = NewFile { kind, permissions: 0, user, group, device: 0, target: b"", attributes: &[] };
        self.add(directory, &new, now)
    }

    fn exchange(
        &mut self,
        (from, file): (Name, &Entry),
        (to, other): (Name, &Entry),
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        self.names_mut(from.0.0).put(from.1, other.inode, other.kind);
        self.names_mut(to.0.0).put(to.1, file.inode, file.kind);
        self.update_directory(from.0.0, subdirectory_links(other.kind), subdirectory_links(file.kind), now)?;
        self.update_directory(to.0.0, subdirectory_links(file.kind), subdirectory_links(other.kind), now)?;
        self.update_renamed(file.inode, to.0.0, now)?;
        self.update_renamed(other.inode, from.0.0, now)
    }

    /// Updates a renamed file and its parent.
    fn update_renamed(&mut self, number: u64, directory: u64, now: Timestamp) -> Result<(), VolumeError> {
        let file = self.get_mut(number)?;
        file.times.changed(now);
        if file.kind == FileKind::Directory {
            file.parent = directory;
        }
        Ok(())
    }
}
