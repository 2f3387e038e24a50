//! Extended attributes: all of a file's in one block.
//!
//! ```text
//!  0  u32  bytes of all that follows      then, for each: u8 bytes of the name, u16 bytes of the value, name, value
//! ```

use super::attributes::InodeNumber;
use super::format::BLOCK;
use super::metadata_blocks::NO_PLACE;
use super::records::Record;
use super::{Sfs, SfsError};
use std::collections::BTreeMap;

/// The longest name, with its prefix.
const LONGEST_NAME: usize = 255;

type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

fn encode(attributes: &Attributes) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4];
    for (name, value) in attributes {
        bytes.push(u8::try_from(name.len()).ok()?);
        bytes.extend_from_slice(&u16::try_from(value.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(value);
    }
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    (bytes.len() <= BLOCK).then_some(bytes)
}

pub(super) fn decode(block: &[u8]) -> Option<Attributes> {
    let length = u32::from_le_bytes(block.get(..4)?.try_into().ok()?) as usize;
    let mut rest = block.get(4..4 + length)?;
    let mut attributes = Attributes::new();
    while !rest.is_empty() {
        let (head, behind) = rest.split_at_checked(3)?;
        let (name, behind) = behind.split_at_checked(usize::from(head[0]))?;
        let (value, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes([head[1], head[2]])))?;
        attributes.insert(name.to_vec(), value.to_vec());
        rest = behind;
    }
    Some(attributes)
}

impl Sfs {
    fn all_attributes(&mut self, inode: u64) -> Result<Attributes, SfsError> {
        let number = self.inode(inode)?.attributes;
        if number == 0 {
            return Ok(Attributes::new());
        }
        let attributes = decode(&self.metadata_block(number, inode, NO_PLACE)?[..]);
        attributes.ok_or_else(|| SfsError::Damaged {
            what: format!("the extended attributes of inode {inode}"),
            why: "their lengths do not add up".to_string(),
        })
    }

    /// The value of an extended attribute.
    pub fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, SfsError> {
        self.all_attributes(inode.0)?.remove(name).ok_or(SfsError::NoAttribute)
    }

    /// The names of all extended attributes.
    pub fn extended_attributes(&mut self, inode: InodeNumber) -> Result<Vec<Vec<u8>>, SfsError> {
        Ok(self.all_attributes(inode.0)?.into_keys().collect())
    }

    /// Sets an extended attribute. `exists`: it must be there (`XATTR_REPLACE`), or must not (`XATTR_CREATE`). All of a
    /// file's take one block together.
    pub fn set_extended_attribute(
        &mut self,
        inode: InodeNumber,
        name: &[u8],
        value: &[u8],
        exists: Option<bool>,
    ) -> Result<(), SfsError> {
        self.check_writable()?;
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(SfsError::Invalid("an attribute's name has 1 to 255 bytes"));
        }
        let mut attributes = self.all_attributes(inode.0)?;
        match (exists, attributes.contains_key(name)) {
            (Some(true), false) => return Err(SfsError::NoAttribute),
            (Some(false), true) => return Err(SfsError::Exists),
            _ => {}
        }
        attributes.insert(name.to_vec(), value.to_vec());
        self.put_attributes(inode.0, &attributes)
    }

    /// Takes an extended attribute away.
    pub fn remove_extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<(), SfsError> {
        self.check_writable()?;
        let mut attributes = self.all_attributes(inode.0)?;
        attributes.remove(name).ok_or(SfsError::NoAttribute)?;
        self.put_attributes(inode.0, &attributes)
    }

    fn put_attributes(&mut self, inode: u64, attributes: &Attributes) -> Result<(), SfsError> {
        let bytes = encode(attributes).ok_or_else(|| {
            let free = self.limits.usable.saturating_sub(self.used_blocks());
            SfsError::NoSpace { free, blocks: self.limits.usable }
        })?;
        self.check_space(1)?;
        self.put_contents(inode, true, &bytes)?;
        self.tell(&Record::Contents { inode, are_attributes: true, bytes: &bytes });
        let now = self.wall();
        let file = self.inode_mut(inode)?;
        file.changed = now;
        file.is_unlogged = true;
        self.records.touch(inode);
        self.records.end();
        self.relieve()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let mut attributes = Attributes::new();
        attributes.insert(b"user.a".to_vec(), Vec::new());
        attributes.insert(vec![b'x'; 255], vec![7; 1000]);
        let bytes = encode(&attributes).unwrap();
        assert_eq!(decode(&bytes), Some(attributes.clone()));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        attributes.insert(b"user.b".to_vec(), vec![1; 4000]);
        assert_eq!(encode(&attributes), None, "more than a block");
    }
}
