//! Renames, exchanges and whiteouts. Each is one operation of the log, so that a crash leaves all of it or nothing.

use crate::fs::sfs::files::attributes::{FileKind, IfExists, InodeNumber, NewFile};
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::{Sfs, SfsError};
use crate::fs::volume::check_name;
use crate::task::Task;

impl Sfs {
    /// Renames.
    pub fn rename(
        &mut self,
        task: &Task<'_>,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        taken: IfExists,
    ) -> Result<(), SfsError> {
        self.move_name(task, from, to, taken, None)
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
        if taken == IfExists::Exchange {
            return Err(SfsError::Invalid("an exchange leaves no name for a whiteout"));
        }
        self.move_name(task, from, to, taken, Some(owner))
    }

    fn move_name(
        &mut self,
        task: &Task<'_>,
        from: (InodeNumber, &[u8]),
        to: (InodeNumber, &[u8]),
        taken: IfExists,
        whiteout: Option<(u32, u32)>,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        let ((from_directory, from_name), (to_directory, to_name)) = (from, to);
        check_name(from_name)?;
        check_name(to_name)?;
        self.directory(task, from_directory.0)?;
        if self.directory(task, to_directory.0)?.links == 0 {
            return Err(SfsError::NotFound);
        }
        let (inode, kind, _) = self.find_name(task, from_directory.0, from_name)?.ok_or(SfsError::NotFound)?;
        let there = self.find_name(task, to_directory.0, to_name)?;
        let is_directory = kind == FileKind::Directory;
        if is_directory && self.is_within(task, to_directory.0, inode)? {
            return Err(SfsError::Invalid("a directory cannot be moved into itself"));
        }
        match (there, taken) {
            (None, IfExists::Exchange) => return Err(SfsError::NotFound),
            (Some(_), IfExists::Refuse) => return Err(SfsError::Exists),
            (Some((other, ..)), _) if other == inode => return Ok(()),
            (Some((other, other_kind, _)), IfExists::Exchange) => {
                if other_kind == FileKind::Directory && self.is_within(task, from_directory.0, other)? {
                    return Err(SfsError::Invalid("a directory cannot be moved into itself"));
                }
                return self.exchange(
                    task,
                    (from_directory.0, from_name, inode, kind),
                    (to_directory.0, to_name, other, other_kind),
                );
            }
            (Some((other, other_kind, _)), IfExists::Replace) => {
                match (is_directory, other_kind == FileKind::Directory) {
                    (true, false) => return Err(SfsError::NotDirectory),
                    (false, true) => return Err(SfsError::IsDirectory),
                    (true, true) if self.count_names(task, other)? > 0 => return Err(SfsError::NotEmpty),
                    _ => {}
                }
            }
            (None, _) => {}
        }
        self.check_space(task, if whiteout.is_some() { 4 } else { 2 })?;
        let moves = is_directory && from_directory != to_directory;
        // Unreadable metadata fails the call before any change. The new name is added first, so that the file always
        // has a name.
        self.inode(task, inode)?;
        if let Some((other, ..)) = there {
            self.inode(task, other)?;
        }
        match there {
            Some(_) => self.replace_name(task, to_directory.0, to_name, inode, kind)?,
            None => self.add_name(task, to_directory.0, to_name, inode, kind)?,
        }
        if let Err(error) = self.remove_name(task, from_directory.0, from_name) {
            match there {
                Some((other, other_kind, _)) => self.replace_name(task, to_directory.0, to_name, other, other_kind)?,
                None => self.remove_name(task, to_directory.0, to_name).map(drop)?,
            }
            return Err(error);
        }
        self.log_record(&Record::NoName { directory: from_directory.0, name: from_name });
        let mut more_in_to = i64::from(moves);
        if let Some((other, other_kind, _)) = there {
            let is_directory = other_kind == FileKind::Directory;
            more_in_to -= i64::from(is_directory);
            self.change_links(task, other, if is_directory { -2 } else { -1 })?;
            self.renamed.insert(inode);
        }
        self.log_record(&Record::Name { directory: to_directory.0, inode, kind, name: to_name });
        self.update_directory(task, from_directory.0, -i64::from(moves))?;
        self.update_directory(task, to_directory.0, more_in_to)?;
        self.update_renamed(task, inode, to_directory.0)?;
        self.hint_by_name(task, inode, to_name)?;
        if let Some(owner) = whiteout {
            self.put_whiteout(task, from_directory.0, from_name, owner)?;
        }
        self.log.records.end();
        self.relieve(task)
    }

    fn put_whiteout(
        &mut self,
        task: &Task<'_>,
        directory: u64,
        name: &[u8],
        (user, group): (u32, u32),
    ) -> Result<(), SfsError> {
        let kind = FileKind::CharacterDevice;
        let new = NewFile { kind, permissions: 0, user, group, device: 0, target: b"", attributes: &[] };
        let inode = self.new_inode(task, directory, &new)?;
        self.add_new_name(task, directory, name, inode, kind)
    }

    fn exchange(
        &mut self,
        task: &Task<'_>,
        one: (u64, &[u8], u64, FileKind),
        other: (u64, &[u8], u64, FileKind),
    ) -> Result<(), SfsError> {
        for (place, what) in [(one, other), (other, one)] {
            self.replace_name(task, place.0, place.1, what.2, what.3)?;
            self.log_record(&Record::Name { directory: place.0, inode: what.2, kind: what.3, name: place.1 });
            self.update_renamed(task, what.2, place.0)?;
        }
        let directories = |kind: FileKind| i64::from(kind == FileKind::Directory);
        let more = directories(other.3) - directories(one.3);
        let more = if one.0 == other.0 { 0 } else { more };
        self.update_directory(task, one.0, more)?;
        self.update_directory(task, other.0, -more)?;
        self.log.records.end();
        self.relieve(task)
    }

    /// Updates a renamed file and its parent.
    fn update_renamed(&mut self, task: &Task<'_>, inode: u64, directory: u64) -> Result<(), SfsError> {
        let now = self.wall(task);
        let file = self.inode_mut(task, inode)?;
        file.times.changed(now);
        file.is_unlogged = true;
        if file.kind == FileKind::Directory {
            file.parent = directory;
        }
        self.log.records.touch(inode);
        Ok(())
    }

    /// True if `directory` is `other`, or lies below it.
    fn is_within(&mut self, task: &Task<'_>, directory: u64, other: u64) -> Result<bool, SfsError> {
        let mut at = directory;
        for _ in 0..self.metadata.inode_file.count() {
            if at == other {
                return Ok(true);
            }
            let parent = self.inode(task, at)?.parent;
            if parent == at {
                return Ok(false);
            }
            at = parent;
        }
        let why = "it is its own ancestor".to_string();
        Err(SfsError::Damaged { what: format!("directory {directory}"), why })
    }
}
