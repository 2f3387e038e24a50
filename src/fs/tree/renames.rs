//! Create, link, unlink and rename.

use super::entries::Names;
use super::files::Files;
use crate::fs::nodes::names::{self, Entry, Parents, Removal, Rename, Store, subdirectories};
use crate::fs::volume::{FileKind, InodeNumber, Name, NewFile, Renaming, Timestamp, VolumeError};

impl Parents for &Files {
    fn parent(&mut self, directory: InodeNumber) -> Result<InodeNumber, VolumeError> {
        Ok(InodeNumber(self.get(directory.0)?.parent))
    }

    fn most_inodes(&self) -> u64 {
        self.count()
    }
}

impl Store for &Files {
    fn entry(&mut self, (directory, name): Name) -> Result<Option<Entry>, VolumeError> {
        let found = self.get(directory.0)?.names()?.find(name);
        Ok(found.map(|entry| Entry { inode: InodeNumber(entry.inode), kind: entry.kind }))
    }

    fn file(&mut self, inode: InodeNumber) -> Result<(FileKind, u32), VolumeError> {
        let file = self.get(inode.0)?;
        Ok((file.kind, file.links))
    }

    fn is_empty(&mut self, directory: InodeNumber) -> Result<bool, VolumeError> {
        Ok(self.get(directory.0)?.names()?.is_empty())
    }
}

impl Files {
    /// Updates a directory after a change of its names and subdirectories.
    fn update_directory(&mut self, directory: InodeNumber, more: i32, now: Timestamp) -> Result<(), VolumeError> {
        let directory = self.get_mut(directory.0)?;
        directory.times.written(now);
        directory.links =
            directory.links.checked_add_signed(more).expect("a directory has a link for each subdirectory");
        Ok(())
    }

    /// Removes one link of a file.
    fn remove_link(&mut self, entry: Entry, now: Timestamp) -> Result<(), VolumeError> {
        let file = self.get_mut(entry.inode.0)?;
        file.links =
            file.links.checked_add_signed(-1 - subdirectories(entry.kind)).expect("it has the links of its name");
        file.times.changed(now);
        self.free_if_gone(entry.inode.0);
        Ok(())
    }

    fn names_of(&mut self, directory: InodeNumber) -> &mut Names {
        self.names_mut(directory.0)
    }

    fn put(&mut self, (directory, name): Name, entry: Entry) {
        self.names_of(directory).put(name, entry.inode.0, entry.kind);
    }

    pub fn make(&mut self, name: Name, new: &NewFile, now: Timestamp) -> Result<u64, VolumeError> {
        names::make(&mut &*self, name, new)?;
        let number = self.add(name.0.0, new, now)?;
        self.put(name, Entry { inode: InodeNumber(number), kind: new.kind });
        self.update_directory(name.0, subdirectories(new.kind), now)?;
        Ok(number)
    }

    pub fn link(&mut self, number: u64, name: Name, now: Timestamp) -> Result<(), VolumeError> {
        let entry = names::link(&mut &*self, InodeNumber(number), name)?;
        self.put(name, entry);
        let file = self.get_mut(number)?;
        file.links += 1;
        file.times.changed(now);
        self.update_directory(name.0, 0, now)
    }

    pub fn unlink(&mut self, name: Name, what: Removal, now: Timestamp) -> Result<(), VolumeError> {
        let entry = names::unlink(&mut &*self, name, what)?;
        self.names_of(name.0).remove(name.1);
        self.update_directory(name.0, -subdirectories(entry.kind), now)?;
        self.remove_link(entry, now)
    }

    pub fn rename(&mut self, from: Name, to: Name, how: Renaming, now: Timestamp) -> Result<(), VolumeError> {
        let links = match names::rename(&mut &*self, from, to, &how)? {
            Rename::Nothing => return Ok(()),
            Rename::Exchange { file, other, links } => {
                self.put(from, other);
                self.put(to, file);
                self.update_renamed(file, to.0, now)?;
                self.update_renamed(other, from.0, now)?;
                links
            }
            Rename::Move { file, replaced, links } => {
                // The only step that may fail: its file may have no room.
                let whiteout = how.whiteout.map(|owner| self.add_whiteout(from.0, owner, now)).transpose()?;
                self.names_of(from.0).remove(from.1);
                self.put(to, file);
                if let Some(other) = replaced {
                    self.remove_link(other, now)?;
                }
                self.update_renamed(file, to.0, now)?;
                if let Some(whiteout) = whiteout {
                    self.put(from, whiteout);
                }
                links
            }
        };
        self.update_directory(from.0, links.from, now)?;
        self.update_directory(to.0, links.to, now)
    }

    fn add_whiteout(
        &mut self,
        directory: InodeNumber,
        (user, group): (u32, u32),
        now: Timestamp,
    ) -> Result<Entry, VolumeError> {
        let kind = FileKind::CharacterDevice;
        let new = NewFile { kind, permissions: 0, user, group, device: 0, target: b"", attributes: &[] };
        Ok(Entry { inode: InodeNumber(self.add(directory.0, &new, now)?), kind })
    }

    /// Updates a renamed file and its parent.
    fn update_renamed(&mut self, file: Entry, directory: InodeNumber, now: Timestamp) -> Result<(), VolumeError> {
        let renamed = self.get_mut(file.inode.0)?;
        renamed.times.changed(now);
        if file.kind == FileKind::Directory {
            renamed.parent = directory.0;
        }
        Ok(())
    }
}
