//! The extended attributes of a file, and their encoding. Their storage in blocks is in `attribute_blocks`.
//!
//! ```text
//! 0  u32  bytes after this field      then, for each: u8 length of the name, u16 length of the value, name, value
//! ```
//!
//! Attributes of more than one block have a u32 length of the value.

use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attribute_blocks::AttributeBlocks;
use crate::fs::sfs::files::attributes::NewFile;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::volume::{LONGEST_LIST, LONGEST_NAME, LONGEST_VALUE};
use crate::task::Task;
use std::collections::BTreeMap;

pub(in crate::fs::sfs) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Encodes the attributes. Names and values do not exceed their limits.
pub(in crate::fs::sfs) fn encode(attributes: &Attributes) -> Vec<u8> {
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

/// All attributes of a file.
pub(in crate::fs::sfs) fn all_attributes(
    task: &Task<'_>,
    files: &mut Files,
    inode: u64,
) -> Result<Attributes, SfsError> {
    let bytes = AttributeBlocks::of(task, files, inode).bytes()?;
    if bytes.is_empty() {
        return Ok(Attributes::new());
    }
    decode(&bytes).ok_or_else(|| SfsError::Damaged {
        what: format!("the extended attributes of inode {inode}"),
        why: "their lengths are inconsistent".to_string(),
    })
}

/// The encoded initial attributes of a new file; `None` if it has none.
///
/// # Errors
///
/// Those of [`check`].
pub(in crate::fs::sfs) fn first_attributes(new: &NewFile, most_blocks: usize) -> Result<Option<Vec<u8>>, SfsError> {
    if new.attributes.is_empty() {
        return Ok(None);
    }
    let attributes = new.attributes.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    check(&attributes, most_blocks)?;
    Ok(Some(encode(&attributes)))
}

/// Fails if a name, a value or all attributes of a file exceed their limits. `most_blocks`: the blocks that they may have.
pub(in crate::fs::sfs) fn check(attributes: &Attributes, most_blocks: usize) -> Result<(), SfsError> {
    if attributes.keys().any(|name| name.is_empty() || name.len() > LONGEST_NAME) {
        return Err(SfsError::Invalid("an attribute's name has 1 to 255 bytes"));
    }
    if attributes.values().any(|value| value.len() > LONGEST_VALUE) {
        return Err(SfsError::LongValue);
    }
    let names: usize = attributes.keys().map(|name| name.len() + 1).sum();
    let bytes: usize = attributes.iter().map(|(name, value)| 5 + name.len() + value.len()).sum();
    if names > LONGEST_LIST || 4 + bytes > most_blocks * BLOCK {
        return Err(SfsError::ManyAttributes { most: (most_blocks * BLOCK) as u64 });
    }
    Ok(())
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
