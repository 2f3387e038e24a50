//! Calls that read and change attributes of a file.

use crate::fs::sfs::{Sfs, SfsError};
pub use crate::fs::volume::{
    Attributes, Change, DirectoryEntry, FileKind, IfExists, InodeNumber, NewFile, Space, Timestamp,
};
use crate::task::Task;

impl Sfs {
    /// The attributes of a file.
    pub fn attributes(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<Attributes, SfsError> {
        Ok(self.files.inode(task, inode.0)?.attributes())
    }

    /// Changes attributes of a file, including its size. The caller checks permissions, and passes permissions without
    /// the set-id bits to clear.
    pub fn change(&mut self, task: &Task<'_>, inode: InodeNumber, change: &Change) -> Result<Attributes, SfsError> {
        self.check_writable()?;
        for extended in &change.extended {
            self.set_attribute(task, inode.0, extended.name, extended.value.as_deref(), change.permissions)?;
        }
        if let Some(size) = change.size {
            self.resize(task, inode.0, size)?;
        }
        let now = self.files.clock.wall(task);
        let file = self.files.inode_mut(task, inode.0)?;
        if let Some(permissions) = change.permissions {
            file.permissions = permissions & 0o7777;
        }
        file.user = change.user.unwrap_or(file.user);
        file.group = change.group.unwrap_or(file.group);
        file.times.accessed = change.accessed.unwrap_or(file.times.accessed);
        file.times.modified = change.modified.unwrap_or(file.times.modified);
        file.times.changed(change.changed.unwrap_or(now));
        file.is_unlogged = true;
        let attributes = file.attributes();
        if change.permissions.is_some() || change.user.is_some() || change.group.is_some() {
            self.files.records.touch(inode.0);
        }
        self.relieve(task)?;
        Ok(attributes)
    }
}
