//! Calls on extended attributes. Their storage in blocks is in `attribute_blocks`.
//!
//! ```text
//! 0  u32  bytes after this field      then, for each: u8 length of the name, u16 length of the value, name, value
//! ```
//!
//! Attributes of more than one block have a u32 length of the value.

use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::{InodeNumber, NewFile};
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::{Sfs, SfsError};
use crate::fs::volume::{LONGEST_LIST, LONGEST_NAME, LONGEST_VALUE};
use crate::task::Task;
use std::collections::BTreeMap;

/// Blocks of attributes that a file can have on the smallest volume: one maximum value, and some small ones.
const FEW_BLOCKS: usize = 18;
/// Bytes of attributes in one log record.
const PART: usize = BLOCK;

type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Encodes the attributes. Names and values do not exceed their limits.
fn encode(attributes: &Attributes) -> Vec<u8> {
    let is_wide = 4 + attributes.iter().map(|(name, value)| 3 + name.len() + value.len()).sum::<usize>() > BLOCK;
    let mut bytes = vec![0; 4];
    for (name, value) in attributes {
        bytes.push(name.len() as u8);
        let length = (value.len() as u32).to_le_bytes();
        bytes.extend_from_slice(if is_wide { &length } else { &length[..2] });
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
    }
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Decodes attributes; `None` if the bytes are invalid.
pub(in crate::fs::sfs) fn decode(bytes: &[u8]) -> Option<Attributes> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let mut rest = bytes.get(4..4 + length)?;
    let width = if 4 + length > BLOCK { 4 } else { 2 };
    let mut attributes = Attributes::new();
    while !rest.is_empty() {
        let (head, behind) = rest.split_at_checked(1 + width)?;
        let value_length = head[1..].iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (name, behind) = behind.split_at_checked(usize::from(head[0]))?;
        let (value, behind) = behind.split_at_checked(value_length)?;
        attributes.insert(name.to_vec(), value.to_vec());
        rest = behind;
    }
    Some(attributes)
}

/// Blocks of this encoding, including their list.
pub(in crate::fs::sfs) fn blocks_of_attributes(bytes: &[u8]) -> u64 {
    bytes.len().div_ceil(BLOCK) as u64 + 1
}

impl Files {
    fn all_attributes(&mut self, task: &Task<'_>, inode: u64) -> Result<Attributes, SfsError> {
        let bytes = self.attribute_bytes(task, inode)?;
        if bytes.is_empty() {
            return Ok(Attributes::new());
        }
        decode(&bytes).ok_or_else(|| SfsError::Damaged {
            what: format!("the extended attributes of inode {inode}"),
            why: "their lengths are inconsistent".to_string(),
        })
    }
}

impl Sfs {
    /// The value of an extended attribute.
    pub fn extended_attribute(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        name: &[u8],
    ) -> Result<Vec<u8>, SfsError> {
        self.files.all_attributes(task, inode.0)?.remove(name).ok_or(SfsError::NoAttribute)
    }

    /// The names of all extended attributes.
    pub fn extended_attributes(&mut self, task: &Task<'_>, inode: InodeNumber) -> Result<Vec<Vec<u8>>, SfsError> {
        Ok(self.files.all_attributes(task, inode.0)?.into_keys().collect())
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
        let mut attributes = self.files.all_attributes(task, inode.0)?;
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
        let mut attributes = self.files.all_attributes(task, inode.0)?;
        attributes.remove(name).ok_or(SfsError::NoAttribute)?;
        self.change_attributes(task, inode.0, &attributes, None)
    }

    /// Sets or removes an access control list, atomically with the resulting permissions: a crash leaves both changes
    /// or neither.
    pub fn set_access_list(
        &mut self,
        task: &Task<'_>,
        inode: InodeNumber,
        name: &[u8],
        list: Option<&[u8]>,
        permissions: u16,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        let mut attributes = self.files.all_attributes(task, inode.0)?;
        match list {
            Some(list) => attributes.insert(name.to_vec(), list.to_vec()),
            None => attributes.remove(name),
        };
        self.change_attributes(task, inode.0, &attributes, Some(permissions))
    }

    /// Sets or removes an attribute, and the permissions if given.
    pub(in crate::fs::sfs) fn set_attribute(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        name: &[u8],
        value: Option<&[u8]>,
        permissions: Option<u16>,
    ) -> Result<(), SfsError> {
        let mut attributes = self.files.all_attributes(task, inode)?;
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
        attributes: &Attributes,
        permissions: Option<u16>,
    ) -> Result<(), SfsError> {
        if !attributes.is_empty() || self.files.inode(task, inode)?.attributes != 0 {
            self.check_attributes(attributes)?;
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

    /// The encoded initial attributes of a new file; `None` if it has none.
    pub(in crate::fs::sfs) fn first_attributes(&self, new: &NewFile) -> Result<Option<Vec<u8>>, SfsError> {
        if new.attributes.is_empty() {
            return Ok(None);
        }
        let attributes = new.attributes.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        self.check_attributes(&attributes)?;
        Ok(Some(encode(&attributes)))
    }

    /// Stores the encoded attributes of a file, and logs them.
    pub(in crate::fs::sfs) fn store_attributes(
        &mut self,
        task: &Task<'_>,
        inode: u64,
        bytes: &[u8],
    ) -> Result<(), SfsError> {
        self.files.store_attribute_bytes(task, inode, bytes.len(), 0, bytes)?;
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

    fn check_attributes(&self, attributes: &Attributes) -> Result<(), SfsError> {
        if attributes.keys().any(|name| name.is_empty() || name.len() > LONGEST_NAME) {
            return Err(SfsError::Invalid("an attribute's name has 1 to 255 bytes"));
        }
        if attributes.values().any(|value| value.len() > LONGEST_VALUE) {
            return Err(SfsError::LongValue);
        }
        let names: usize = attributes.keys().map(|name| name.len() + 1).sum();
        let bytes: usize = attributes.iter().map(|(name, value)| 5 + name.len() + value.len()).sum();
        // A checkpoint must fit all earlier changes.
        let most =
            (self.writer.limits.metadata / 2).clamp(FEW_BLOCKS, crate::fs::sfs::files::attribute_blocks::MOST_BLOCKS);
        if names > LONGEST_LIST || 4 + bytes > most * BLOCK {
            return Err(SfsError::ManyAttributes { most: (most * BLOCK) as u64 });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_decoded_as_encoded() {
        let mut attributes = Attributes::new();
        for (name, length, is_wide) in [(&b"user.a"[..], 0, false), (&[b'x'; 255], 3825, false), (b"user.b", 1, true)] {
            attributes.insert(name.to_vec(), vec![7; length]);
            let bytes = encode(&attributes);
            assert_eq!(bytes.len() > BLOCK, is_wide, "{}", bytes.len());
            assert_eq!(decode(&bytes), Some(attributes.clone()));
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        }
        attributes.insert(b"user.c".to_vec(), vec![8; LONGEST_VALUE]);
        assert_eq!(decode(&encode(&attributes)), Some(attributes));
    }
}
