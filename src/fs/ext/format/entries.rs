//! A block of a directory: a chain of entries that ends with the block.
//!
//! ```text
//! entry   0 inode, or 0 if it is free   4 length of the entry (2)   6 length of the name (1)   7 kind (1)   8 name
//! tail    0 zero   4 12 (2)   6 0   7 0xDE   8 checksum (4)      the last 12 bytes, on a volume with checksums
//! ```
//!
//! Lengths are multiples of 4. (Without `filetype`, the length of the name has two bytes, of which the second is zero.)
//! A length of 0 or 65,535 stands for 64 KiB.

use super::bytes::{le16, le32, put16, put32};
use super::checksum::crc32c_raw;
use crate::fs::volume::FileKind;
use std::ops::Range;

pub const HEAD: usize = 8;
pub const TAIL: usize = 12;
const TAIL_KIND: u8 = 0xDE;

/// The kinds by their numbers in entries, from 1 on.
const KINDS: [FileKind; 7] = [
    FileKind::Regular,
    FileKind::Directory,
    FileKind::CharacterDevice,
    FileKind::BlockDevice,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::Symlink,
];

/// The number of a kind.
pub fn kind_number(kind: FileKind) -> u8 {
    1 + KINDS.iter().position(|known| *known == kind).expect("all kinds are there") as u8
}

/// The length of an entry with a name of so many bytes.
pub fn entry_length(name: usize) -> usize {
    (HEAD + name).next_multiple_of(4)
}

/// An entry in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first byte in the block.
    pub at: usize,
    pub length: usize,
    /// 0 if it is free.
    pub inode: u32,
    name_length: usize,
    /// `None` if the volume does not say.
    pub kind: Option<FileKind>,
}

impl Entry {
    pub fn is_used(&self) -> bool {
        self.inode != 0
    }

    pub fn name<'b>(&self, block: &'b [u8]) -> &'b [u8] {
        &block[self.at + HEAD..self.at + HEAD + self.name_length]
    }

    /// Bytes that it needs.
    pub fn needed(&self) -> usize {
        if self.is_used() { entry_length(self.name_length) } else { 0 }
    }
}

/// The bytes of a block that hold entries.
pub fn room(block_bytes: usize, has_tail: bool) -> Range<usize> {
    0..block_bytes - if has_tail { TAIL } else { 0 }
}

/// Walks the entries of a block. A block that is no chain ends with an error that says why.
pub struct Entries<'b> {
    block: &'b [u8],
    at: usize,
    end: usize,
    has_kinds: bool,
}

impl<'b> Entries<'b> {
    pub fn of(block: &'b [u8], has_tail: bool, has_kinds: bool) -> Entries<'b> {
        Entries { block, at: 0, end: room(block.len(), has_tail).end, has_kinds }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, String>;

    fn next(&mut self) -> Option<Result<Entry, String>> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        let length = match le16(self.block, at + 4) {
            0 | u16::MAX if self.block.len() == 1 << 16 => 1 << 16,
            length => usize::from(length),
        };
        let name_length = usize::from(self.block.get(at + 6).copied().unwrap_or(0));
        let is_entry = length >= entry_length(name_length).max(12)
            && length.is_multiple_of(4)
            && at + length <= self.end
            && (self.end - at - length == 0 || self.end - at - length >= 12);
        if !is_entry {
            self.at = self.end;
            return Some(Err(format!("the entry at byte {at} has {length} bytes, and a name of {name_length}")));
        }
        self.at += length;
        let kind = match self.block[at + 7] {
            number if self.has_kinds && number > 0 => KINDS.get(usize::from(number) - 1).copied(),
            _ => None,
        };
        Some(Ok(Entry { at, length, inode: le32(self.block, at), name_length, kind }))
    }
}

/// The entries behind the end of a chain, of which the one at `broken` has a length that cannot be: that one by its name, and
/// a chain that begins behind it and goes to the end of the block. The caller asks whether they can be.
pub fn behind(block: &[u8], broken: usize, has_tail: bool) -> Vec<Entry> {
    let end = room(block.len(), has_tail).end;
    let mut found = Vec::new();
    let name_length = usize::from(block.get(broken + 6).copied().unwrap_or(0));
    let mut next = broken + 4;
    if name_length > 0 && broken + entry_length(name_length) <= end {
        let length = entry_length(name_length);
        found.push(Entry { at: broken, length, inode: le32(block, broken), name_length, kind: None });
        next = broken + length;
    }
    let chain_from = |at| Entries { block, at, end, has_kinds: true }.collect::<Result<Vec<Entry>, String>>();
    let begins = |at: &usize| le32(block, *at) != 0 && block[*at + 6] > 0;
    let chain = (next..end.saturating_sub(HEAD)).step_by(4).filter(begins).find_map(|at| chain_from(at).ok());
    found.extend(chain.into_iter().flatten());
    found
}

/// Writes an entry of this length.
pub fn write_entry(block: &mut [u8], at: usize, length: usize, inode: u32, name: &[u8], kind: u8) {
    put32(block, at, inode);
    // A length of 64 KiB has no number: 65,535 stands for it.
    put16(block, at + 4, length.min(usize::from(u16::MAX)) as u16);
    block[at + 6] = name.len() as u8;
    block[at + 7] = kind;
    block[at + HEAD..at + HEAD + name.len()].copy_from_slice(name);
}

/// Makes a block of one free entry, with the place of a checksum.
pub fn clear(block: &mut [u8], has_tail: bool) {
    block.fill(0);
    let end = room(block.len(), has_tail).end;
    write_entry(block, 0, end, 0, b"", 0);
    if has_tail {
        write_tail(block);
    }
}

/// Writes a tail, without its sum.
pub fn write_tail(block: &mut [u8]) {
    let at = block.len() - TAIL;
    put32(block, at, 0);
    put16(block, at + 4, TAIL as u16);
    block[at + 6] = 0;
    block[at + 7] = TAIL_KIND;
}

/// Puts an entry into a block, if a gap in it is wide enough. True if it was.
pub fn put(block: &mut [u8], has_tail: bool, inode: u32, name: &[u8], kind: u8) -> Result<bool, String> {
    let needed = entry_length(name.len());
    let mut gap = None;
    for entry in Entries::of(block, has_tail, true) {
        let entry = entry?;
        if entry.length - entry.needed() >= needed {
            gap = Some(entry);
            break;
        }
    }
    let Some(entry) = gap else { return Ok(false) };
    let kept = entry.needed();
    if kept > 0 {
        put16(block, entry.at + 4, kept as u16);
    }
    write_entry(block, entry.at + kept, entry.length - kept, inode, name, kind);
    Ok(true)
}

/// Takes an entry out of a block: the one before it takes its place.
pub fn remove(block: &mut [u8], has_tail: bool, at: usize) -> Result<(), String> {
    let mut before: Option<Entry> = None;
    for entry in Entries::of(block, has_tail, true) {
        let entry = entry?;
        if entry.at == at {
            match before {
                Some(before) => put16(block, before.at + 4, (before.length + entry.length).min(0xFFFF) as u16),
                None => put32(block, at, 0),
            }
            return Ok(());
        }
        before = Some(entry);
    }
    Err(format!("no entry is at byte {at}"))
}

/// True if a block's checksum is right.
pub fn is_sound(block: &[u8], inode_seed: u32) -> bool {
    let at = block.len() - TAIL;
    let is_tail = le32(block, at) == 0 && le16(block, at + 4) == TAIL as u16 && block[at + 6..at + 8] == [0, TAIL_KIND];
    is_tail && le32(block, at + 8) == crc32c_raw(inode_seed, &block[..at])
}

/// Puts a block's checksum in.
pub fn sum(block: &mut [u8], inode_seed: u32) {
    let at = block.len() - TAIL;
    let sum = crc32c_raw(inode_seed, &block[..at]);
    put32(block, at + 8, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(block: &[u8]) -> Vec<Vec<u8>> {
        let entries = Entries::of(block, true, true).map(Result::unwrap).filter(Entry::is_used);
        entries.map(|entry| entry.name(block).to_vec()).collect()
    }

    #[test]
    fn entries_are_put_into_gaps_and_leave_gaps() {
        let mut block = vec![7; 1024];
        clear(&mut block, true);
        let name = |number: u32| format!("name {number}").into_bytes();
        let put_name = |block: &mut [u8], number| put(block, true, number, &name(number), 1).unwrap();
        let count = (1..).take_while(|number| put_name(&mut block, *number)).count() as u32;
        assert!(count > 50 && names(&block).len() as u32 == count);
        let third = Entries::of(&block, true, true).nth(2).unwrap().unwrap();
        remove(&mut block, true, third.at).unwrap();
        remove(&mut block, true, 0).unwrap();
        assert_eq!(names(&block).len() as u32, count - 2);
        assert!(put_name(&mut block, 1) && put_name(&mut block, 3) && !put_name(&mut block, 99));
        sum(&mut block, 3);
        assert!(is_sound(&block, 3) && !is_sound(&block, 4));
    }

    #[test]
    fn what_is_no_chain_ends_with_an_error() {
        for (at, byte) in [(4, 0), (4, 13), (5, 0xFF), (6, 0xFF)] {
            let mut block = vec![0; 1024];
            clear(&mut block, false);
            write_entry(&mut block, 0, 16, 5, b"a", 1);
            write_entry(&mut block, 16, 1008, 5, b"b", 1);
            block[at] = byte;
            assert!(Entries::of(&block, false, true).any(|entry| entry.is_err()), "{at} {byte}");
        }
    }
}
