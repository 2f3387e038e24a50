//! Renames, exchanges and whiteouts. Each is one operation of the log, so that a crash leaves all of it or nothing.

use super::names::Named;
use crate::fs::nodes::names::{self, Entry, MovedLinks, Rename, subdirectories};
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::{FileKind, IfExists, InodeNumber, NewFile};
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::{Sfs, SfsError};
use crate::fs::volume::{Name, Renaming};
use crate::task::Task;

impl Files {
    /// Updates a renamed file and its parent.
    fn update_renamed(&mut self, task: &Task<'_>, inode: u64, directory: u64) -> Result<(), SfsError> {
        let now = self.clock.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.times.changed(now);
        file.is_unlogged = true;
        if file.kind == FileKind::Directory {
            file.parent = directory;
        }
        self.records.touch(inode);
        Ok(())
    }
}

impl Sfs {
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
        match names::rename(&mut Named(&mut self.files, task), from, to, &how)? {
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
            Some(_) => self.files.replace_name(task, to, file)?,
            None => self.files.add_name(task, to.0.0, to.1, inode, file.kind)?,
        }
        if let Err(error) = self.files.remove_name(task, from.0.0, from.1) {
            match replaced {
                Some(other) => self.files.replace_name(task, to, other)?,
                None => self.files.remove_name(task, to.0.0, to.1).map(drop)?,
            }
            return Err(error);
        }
        self.log_record(&Record::NoName { directory: from.0.0, name: from.1 });
        if let Some(other) = replaced {
            self.files.change_links(task, other.inode.0, -1 - subdirectories(other.kind))?;
            self.files.renamed.insert(inode);
        }
        self.log_record(&Record::Name { directory: to.0.0, inode, kind: file.kind, name: to.1 });
        self.files.update_directory(task, from.0.0, links.from)?;
        self.files.update_directory(task, to.0.0, links.to)?;
        self.files.update_renamed(task, inode, to.0.0)?;
        self.hint_by_name(task, inode, to.1)
    }

    fn put_whiteout(
        &mut self,
        task: &Task<'_>,
        (directory, name): Name,
        (user, group): (u32, u32),
    ) -> Result<(), SfsError> {
        let kind = FileKind::CharacterDevice;
        let new = NewFile { kind, permissions: 0, user, group, device: 0, target: b"", attributes: &[] };
        let inode = self.new_inode(task, directory.0, &new)?;
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
            self.files.replace_name(task, (directory, name), file)?;
            self.log_record(&Record::Name { directory: directory.0, inode: file.inode.0, kind: file.kind, name });
            self.files.update_renamed(task, file.inode.0, directory.0)?;
        }
        self.files.update_directory(task, one.0.0.0, links.from)?;
        self.files.update_directory(task, other.0.0.0, links.to)
    }
}
