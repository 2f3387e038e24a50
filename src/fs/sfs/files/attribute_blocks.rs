//! Storage of a file's extended attributes: in one block, or in several blocks whose list is the first block.
//!
//! ```text
//! one block     the encoding of `extended`, which begins with its length
//! more          0  u32  bytes of the encoding after its first four
//!               4  u32  0
//! 8  u64  the virtual blocks of the encoding, 4096 bytes each
//! ```
//!
//! The length distinguishes the two. All of them are metadata blocks without an index in the file.

use crate::fs::sfs::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::map::{number_at, set_number};
use crate::fs::sfs::media::format::{BLOCK, BlockBytes, Kind};
use crate::fs::sfs::metadata::blocks::NO_PLACE;
use crate::task::Task;

/// Maximum number of blocks in a list.
pub(in crate::fs::sfs) const MOST_BLOCKS: usize = BLOCK / 8 - 1;

/// Length of the encoding, from its first block.
fn encoded_length(first: &[u8]) -> usize {
    4 + u32::from_le_bytes(first[..4].try_into().expect("four bytes")) as usize
}

/// The virtual blocks listed in the first block; `None` if the list is invalid.
pub(in crate::fs::sfs) fn listed_blocks(first: &BlockBytes) -> Option<Vec<u64>> {
    let count = count(encoded_length(&first[..]));
    (count <= MOST_BLOCKS).then(|| (1..=count).map(|at| number_at(&first[..], at)).collect())
}

/// Number of listed blocks for an encoding of `length` bytes.
fn count(length: usize) -> usize {
    if length <= BLOCK { 0 } else { length.div_ceil(BLOCK) }
}

/// The blocks of a file's extended attributes.
pub(in crate::fs::sfs) struct AttributeBlocks<'f> {
    task: &'f Task<'f>,
    files: &'f mut Files,
    inode: u64,
}

impl<'f> AttributeBlocks<'f> {
    /// Of this file.
    pub fn of(task: &'f Task<'f>, files: &'f mut Files, inode: u64) -> AttributeBlocks<'f> {
        AttributeBlocks { task, files, inode }
    }

    /// The encoded attributes of a file; empty if it has none.
    pub fn bytes(&mut self) -> Result<Vec<u8>, SfsError> {
        let first = self.files.inode(self.task, self.inode)?.attributes;
        if first == 0 {
            return Ok(Vec::new());
        }
        let list = self.list(first)?;
        let block = self.files.metadata_block(self.task, first, self.inode, NO_PLACE)?;
        let length = encoded_length(&block[..]);
        if list.is_empty() {
            return Ok(block[..length.min(BLOCK)].to_vec());
        }
        let mut bytes = Vec::with_capacity(list.len() * BLOCK);
        for number in list {
            bytes.extend_from_slice(&self.files.metadata_block(self.task, number, self.inode, NO_PLACE)?[..]);
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn list(&mut self, first: u64) -> Result<Vec<u64>, SfsError> {
        listed_blocks(self.files.metadata_block(self.task, first, self.inode, NO_PLACE)?).ok_or_else(|| {
            SfsError::Damaged {
                what: format!("the extended attributes of inode {}", self.inode),
                why: "they exceed the maximum length".to_string(),
            }
        })
    }

    /// Stores a part of a file's encoded attributes, which have `length` bytes.
    pub fn store(&mut self, length: usize, at: usize, bytes: &[u8]) -> Result<(), SfsError> {
        if length < 4 || count(length) > MOST_BLOCKS || at + bytes.len() > length {
            let why = format!("a log record holds {} bytes at {at} of {length}", bytes.len());
            return Err(SfsError::Damaged { what: format!("the extended attributes of inode {}", self.inode), why });
        }
        let list = self.resize(length)?;
        if list.is_empty() {
            let first = self.files.inode(self.task, self.inode)?.attributes;
            self.files.metadata_block_mut(self.task, first, self.inode, NO_PLACE)?[at..at + bytes.len()]
                .copy_from_slice(bytes);
            return Ok(());
        }
        let mut rest = bytes;
        let mut at = at;
        while !rest.is_empty() {
            let from = at % BLOCK;
            let (now, later) = rest.split_at(rest.len().min(BLOCK - from));
            let block = self.files.metadata_block_mut(self.task, list[at / BLOCK], self.inode, NO_PLACE)?;
            block[from..from + now.len()].copy_from_slice(now);
            (rest, at) = (later, at + now.len());
        }
        Ok(())
    }

    /// Resizes a file's attribute storage to `length` bytes. Returns the listed blocks.
    fn resize(&mut self, length: usize) -> Result<Vec<u64>, SfsError> {
        let mut first = self.files.inode(self.task, self.inode)?.attributes;
        if first == 0 {
            first = self.files.make_metadata_block(self.task, self.inode, NO_PLACE)?;
            self.files.inode_mut(self.task, self.inode)?.attributes = first;
        }
        let mut list = self.list(first)?;
        let before = encoded_length(&self.files.metadata_block(self.task, first, self.inode, NO_PLACE)?[..]);
        while list.len() > count(length) {
            let number = list.pop().expect("the list is longer than needed");
            self.free_metadata_block(number)?;
        }
        while list.len() < count(length) {
            list.push(self.files.make_metadata_block(self.task, self.inode, NO_PLACE)?);
        }
        if length != before {
            let block = self.files.metadata_block_mut(self.task, first, self.inode, NO_PLACE)?;
            block.fill(0);
            block[..4].copy_from_slice(&(length as u32 - 4).to_le_bytes());
            for (at, number) in (1..).zip(&list) {
                set_number(block, at, *number);
            }
        }
        Ok(list)
    }

    /// Removes all attributes of a file, and frees their blocks. If the list is unreadable, its blocks stay allocated
    /// without a reference until a repair.
    pub fn free(&mut self) -> Result<(), SfsError> {
        let first = self.files.inode(self.task, self.inode)?.attributes;
        if first == 0 {
            return Ok(());
        }
        let list = match self.list(first) {
            Ok(list) => list,
            Err(SfsError::Damaged { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        self.files.inode_mut(self.task, self.inode)?.attributes = 0;
        for number in list.into_iter().chain([first]) {
            self.free_metadata_block(number)?;
        }
        Ok(())
    }

    fn free_metadata_block(&mut self, number: u64) -> Result<(), SfsError> {
        let entry = self.files.metadata.dat.get(self.task, number)?;
        if entry.is_taken != 1 {
            let why = format!("they refer to virtual block {number}, which is free");
            return Err(SfsError::Damaged { what: format!("the extended attributes of inode {}", self.inode), why });
        }
        let address = entry.address.get();
        if address != 0 {
            let segment = (address / u64::from(self.files.media.segment_blocks())) as u32;
            self.files.segments.lose(segment, Kind::Metadata, 0, 0);
        }
        self.files.metadata.blocks.remove(number);
        self.files.metadata.dat.free(self.task, number)?;
        let file = self.files.inode_mut(self.task, self.inode)?;
        file.blocks = file.blocks.saturating_sub(1);
        Ok(())
    }
}
