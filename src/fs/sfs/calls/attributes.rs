//! Calls on the attributes of a file, extended ones included.

use crate::fs::sfs::files::attribute_blocks::AttributeBlocks;
use crate::fs::sfs::files::attributes::{Attributes, Change, InodeNumber};
use crate::fs::sfs::files::extended::{self, all_attributes, blocks_of_attributes, encode};
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;

/// Bytes of attributes in one log record.
const PART: usize = BLOCK;

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

    /// The value of an extended attribute.
    pub fn extended_attribute(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        name: &[u8],
    ) -> Result<Vec<u8>, SfsError> {
        all_attributes(task, &mut self.files, inode.0)?.remove(name).ok_or(SfsError::NoAttribute)
    }

    /// The names of all extended attributes.
    pub fn extended_attributes(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<Vec<Vec<u8>>, SfsError> {
        Ok(all_attributes(task, &mut self.files, inode.0)?.into_keys().collect())
    }

    /// Sets an extended attribute. `exists`: true if it must exist (`XATTR_REPLACE`), false if it must not
    /// (`XATTR_CREATE`).
    ///
    /// # Errors
    ///
    /// If the value exceeds 64 KiB, the names of the file 64 KiB, or all attributes 2 MiB, less on a volume of less
    /// than 256 MiB.
    pub fn set_extended_attribute(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        name: &[u8],
        value: &[u8],
        exists: Option<bool>,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        let mut attributes = all_attributes(task, &mut self.files, inode.0)?;
        match (exists, attributes.contains_key(name)) {
            (Some(true), false) => return Err(SfsError::NoAttribute),
            (Some(false), true) => return Err(SfsError::Exists),
            _ => {}
        }
        attributes.insert(name.to_vec(), value.to_vec());
        self.change_attributes(task, inode.0, &attributes, None)
    }

    /// Removes an extended attribute.
    pub fn remove_extended_attribute(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        name: &[u8],
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        let mut attributes = all_attributes(task, &mut self.files, inode.0)?;
        attributes.remove(name).ok_or(SfsError::NoAttribute)?;
        self.change_attributes(task, inode.0, &attributes, None)
    }

    /// Sets or removes an attribute, and the permissions if given.
    fn set_attribute(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        name: &[u8],
        value: Option<&[u8]>,
        permissions: Option<u16>,
    ) -> Result<(), SfsError> {
        let mut attributes = all_attributes(task, &mut self.files, inode)?;
        match value {
            Some(value) => drop(attributes.insert(name.to_vec(), value.to_vec())),
            None if attributes.remove(name).is_none() => return Ok(()),
            None => {}
        }
        self.change_attributes(task, inode, &attributes, permissions)
    }

    fn change_attributes(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        attributes: &extended::Attributes,
        permissions: Option<u16>,
    ) -> Result<(), SfsError> {
        if !attributes.is_empty() || self.files.inode(task, inode)?.attributes != 0 {
            extended::check(attributes, self.writer.limits.most_attribute_blocks())?;
            let bytes = encode(attributes);
            self.check_space(task, blocks_of_attributes(&bytes))?;
            self.store_attributes(task, inode, &bytes)?;
        }
        let now = self.files.clock.wall(task);
        let file = self.files.inode_mut(task, inode)?;
        file.permissions = permissions.map_or(file.permissions, |permissions| permissions & 0o7777);
        file.times.changed(now);
        file.is_unlogged = true;
        self.files.records.touch(inode);
        self.files.records.end();
        self.relieve(task)
    }

    /// Stores the encoded attributes of a file, and logs them.
    pub(super) fn store_attributes(&mut self, task: &Task<'_>, inode: u64, bytes: &[u8]) -> Result<(), SfsError> {
        AttributeBlocks::of(task, &mut self.files, inode).store(bytes.len(), 0, bytes)?;
        let length = bytes.len() as u32;
        if bytes.len() <= BLOCK {
            self.log_record(&Record::Attributes { inode, length, at: 0, bytes });
            return Ok(());
        }
        // A record must fit into a segment. The parts are still atomic: none counts before the log is sealed.
        for (at, part) in (0..).step_by(PART).zip(bytes.chunks(PART)) {
            self.log_record(&Record::Attributes { inode, length, at, bytes: part });
            self.files.records.end();
        }
        Ok(())
    }
}
