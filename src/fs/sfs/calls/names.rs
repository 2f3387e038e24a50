//! Calls on names: lookup, make, link, unlink, rename, list; and references to inodes, which keep files without a name. A rename,
//! an exchange or a whiteout is one operation of the log, so that a crash leaves all of it or nothing.

use crate::fs::nodes::names::{self, Entry, MovedLinks, Removal, Rename, subdirectories};
use crate::fs::sfs::files::attributes::{DirectoryEntry, FileKind, IfExists, InodeNumber, NewFile};
use crate::fs::sfs::files::extended::{self, blocks_of_attributes};
use crate::fs::sfs::files::names::Names;
use crate::fs::sfs::files::removal::free_inode;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::{Sfs, SfsError};
use crate::fs::volume::{Name, Renaming};
use crate::task::Task;

impl Sfs {
    /// The names of the volume.
    fn names<'n>(&'n mut self, task: &'n Task<'n>) -> Names<'n> {
        Names::of(task, &mut self.files)
    }

    /// The inode of a name in a directory. (`.` and `..` are names, too.)
    pub fn lookup(&mut self, task: &Task<'_>, directory: InodeNumber, name: &[u8]) -> Result<InodeNumber, SfsError> {
        self.names(task).lookup(directory, name)
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
        names::make(&mut self.names(task), (directory, name), new)?;
        let attributes = extended::first_attributes(new, self.writer.limits.most_attribute_blocks())?;
        self.check_space(task, 4 + attributes.as_ref().map_or(0, |bytes| blocks_of_attributes(bytes)))?;
        let generation = self.writer.superblock.generation();
        let number = self.names(task).new_inode(directory.0, new, generation)?;
        if new.kind == FileKind::Symlink {
            let put = self.names(task).store_target(number, new.target);
            self.or_free_inode(task, number, put)?;
            self.log_record(&Record::Target { inode: number, bytes: new.target });
        }
        if let Some(bytes) = attributes {
            let put = self.store_attributes(task, number, &bytes);
            self.or_free_inode(task, number, put)?;
        }
        self.add_new_name(task, directory.0, name, number, new.kind)?;
        self.names(task).update_directory(directory.0, subdirectories(new.kind))?;
        self.files.records.end();
        self.relieve(task)?;
        Ok(InodeNumber(number))
    }

    /// Adds the name of a new file.
    fn add_new_name(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        inode: u64,
        kind: FileKind,
    ) -> Result<(), SfsError> {
        let put = self.names(task).add_name(directory, name, inode, kind);
        self.or_free_inode(task, inode, put)?;
        self.log_record(&Record::Name { directory, inode, kind, name });
        let hint = self.settings.name_hints.of_name(name);
        self.names(task).set_hint(inode, hint)
    }

    /// Frees a new inode if the rest of its creation failed.
    fn or_free_inode(&mut self, task: &Task<'_>, number: u64, made: Result<(), SfsError>) -> Result<(), SfsError> {
        if made.is_err() && self.writer.faults.read_only.is_none() {
            self.files.inode_mut(task, number)?.links = 0;
            self.files.orphans.insert(number);
            // If that fails, it stays an orphan, which the next mount frees.
            let _ = free_inode(task, &mut self.files, number);
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
        let Entry { kind, .. } = names::link(&mut self.names(task), inode, (directory, name))?;
        self.check_space(task, 2)?;
        self.names(task).add_name(directory.0, name, inode.0, kind)?;
        self.log_record(&Record::Name { directory: directory.0, inode: inode.0, kind, name });
        self.names(task).change_links(inode.0, 1)?;
        self.names(task).update_directory(directory.0, 0)?;
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
        let entry = names::unlink(&mut self.names(task), (directory, name), what)?;
        // Unreadable metadata fails the call before any change.
        self.files.inode(task, entry.inode.0)?;
        self.names(task).remove_name(directory.0, name)?;
        self.log_record(&Record::NoName { directory: directory.0, name });
        let subdirectories = subdirectories(entry.kind);
        self.names(task).update_directory(directory.0, -subdirectories)?;
        self.names(task).change_links(entry.inode.0, -1 - subdirectories)?;
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
        self.names(task).list(directory, from, take)
    }

    /// The target of a symbolic link.
    pub fn target(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<Vec<u8>, SfsError> {
        self.names(task).target(inode)
    }

    /// Renames.
    pub fn rename(
        &mut self,
        task: &Task<'_>,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        taken: IfExists,
    ) -> Result<(), SfsError> {
        self.move_name(task, from, to, Renaming { if_exists: taken, whiteout: None })
    }

    /// Renames, and leaves a whiteout under the old name (`RENAME_WHITEOUT`): character device 0, which for overlayfs
    /// hides the name in lower layers. `owner`: its user and group.
    ///
    /// # Errors
    ///
    /// Those of [`rename`](Sfs::rename), and [`SfsError::Invalid`] for an exchange.
    pub fn rename_with_whiteout(
        &mut self,
        task: &Task<'_>,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        taken: IfExists,
        owner: (u32, u32),
    ) -> Result<(), SfsError> {
        self.move_name(task, from, to, Renaming { if_exists: taken, whiteout: Some(owner) })
    }

    fn move_name(&mut self, task: &Task<'_>, from: Name, to: Name, how: Renaming) -> Result<(), SfsError> {
        names::check_renaming(&how)?;
        self.check_writable()?;
        match names::rename(&mut self.names(task), from, to, &how)? {
            Rename::Nothing => return Ok(()),
            Rename::Exchange { file, other, links } => self.exchange(task, (from, file), (to, other), links)?,
            Rename::Move { file, replaced, links } => {
                self.check_space(task, if how.whiteout.is_some() { 4 } else { 2 })?;
                self.move_entry(task, (from, file), (to, replaced), links)?;
                if let Some(owner) = how.whiteout {
                    self.put_whiteout(task, from, owner)?;
                }
            }
        }
        self.files.records.end();
        self.relieve(task)
    }

    /// Moves a file to a name that is free, or that another file loses.
    fn move_entry(
        &mut self,
        task: &Task<'_>,
        (from, file): (Name, Entry),
        (to, replaced): (Name, Option<Entry>),
        links: MovedLinks,
    ) -> Result<(), SfsError> {
        let inode = file.inode.0;
        // Unreadable metadata fails the call before any change. The new name is added first, so that the file always
        // has a name.
        self.files.inode(task, inode)?;
        if let Some(other) = replaced {
            self.files.inode(task, other.inode.0)?;
        }
        match replaced {
            Some(_) => self.names(task).replace_name(to, file)?,
            None => self.names(task).add_name(to.0.0, to.1, inode, file.kind)?,
        }
        if let Err(error) = self.names(task).remove_name(from.0.0, from.1) {
            match replaced {
                Some(other) => self.names(task).replace_name(to, other)?,
                None => self.names(task).remove_name(to.0.0, to.1).map(drop)?,
            }
            return Err(error);
        }
        self.log_record(&Record::NoName { directory: from.0.0, name: from.1 });
        if let Some(other) = replaced {
            self.names(task).change_links(other.inode.0, -1 - subdirectories(other.kind))?;
            self.files.renamed.insert(inode);
        }
        self.log_record(&Record::Name { directory: to.0.0, inode, kind: file.kind, name: to.1 });
        self.names(task).update_directory(from.0.0, links.from)?;
        self.names(task).update_directory(to.0.0, links.to)?;
        self.names(task).update_renamed(inode, to.0.0)?;
        let hint = self.settings.name_hints.of_name(to.1);
        self.names(task).set_hint(inode, hint)
    }

    fn put_whiteout(
        &mut self,
        task: &Task<'_>,
        (directory, name): Name,
        (user, group): (u32, u32),
    ) -> Result<(), SfsError> {
        let kind = FileKind::CharacterDevice;
        let new = NewFile { kind, permissions: 0, user, group, device: 0, target: b"", attributes: &[] };
        let generation = self.writer.superblock.generation();
        let inode = self.names(task).new_inode(directory.0, &new, generation)?;
        self.add_new_name(task, directory.0, name, inode, kind)
    }

    fn exchange(
        &mut self,
        task: &Task<'_>,
        one: (Name, Entry),
        other: (Name, Entry),
        links: MovedLinks,
    ) -> Result<(), SfsError> {
        for ((directory, name), file) in [(one.0, other.1), (other.0, one.1)] {
            self.names(task).replace_name((directory, name), file)?;
            self.log_record(&Record::Name { directory: directory.0, inode: file.inode.0, kind: file.kind, name });
            self.names(task).update_renamed(file.inode.0, directory.0)?;
        }
        self.names(task).update_directory(one.0.0.0, links.from)?;
        self.names(task).update_directory(other.0.0.0, links.to)
    }

    /// Takes a reference to an inode, which then exists even without a name.
    pub fn retain(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<(), SfsError> {
        self.files.load_inode(task, inode.0)?;
        self.files.inodes.hold(inode.0);
        Ok(())
    }

    /// Drops `times` references to an inode. An inode without names and references is freed.
    pub fn release(&mut self, task: &Task<'_>, inode: InodeNumber, times: u64) -> Result<(), SfsError> {
        if self.files.inodes.drop_references(inode.0, times)
            && self.files.orphans.contains(&inode.0)
            && self.writer.faults.read_only.is_none()
        {
            free_inode(task, &mut self.files, inode.0)?;
        }
        Ok(())
    }
}
