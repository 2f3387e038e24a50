//! What the log says between two checkpoints beside the blocks it holds: what was done to names, to inodes, to the
//! extent of files.
//!
//! A record is
//!
//! ```text
//!  0  u8   what it is                8  u64  the number that the next partial segment had when this was done
//!  2  u16  bytes of the rest        16  the rest
//! ```
//!
//! Records wait in memory until something must be durable. If a checkpoint comes first, they were never needed. A mount
//! after a crash does again what they say, each before the blocks of the partial segment that it names, as those were
//! written after it was done.

use crate::fs::sfs::media::format::InodeImage;
use crate::fs::volume::FileKind;
use std::collections::BTreeSet;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

const HEAD: usize = 16;

/// What a record says.
#[derive(Debug)]
pub(in crate::fs::sfs) enum Record<'a> {
    /// A name was put into a directory.
    Name { directory: u64, inode: u64, kind: FileKind, name: &'a [u8] },
    /// A name was taken away.
    NoName { directory: u64, name: &'a [u8] },
    /// Blocks of a file were taken away.
    Unmap { inode: u64, places: Range<u64> },
    /// Blocks of a file were reserved, where it had none.
    Reserve { inode: u64, places: Range<u64> },
    /// The bytes of a link's target.
    Target { inode: u64, bytes: &'a [u8] },
    /// A part of a file's extended attributes: `bytes` lie `at` so many of all, which are `length`.
    Attributes { inode: u64, length: u32, at: u32, bytes: &'a [u8] },
    /// An inode is so.
    Inode(&'a InodeImage),
    /// An inode is free.
    Freed { inode: u64 },
    /// Which of the blocks below a block of a metadata file's tree are holes: its kind and number as in a block record,
    /// and a bit for each. A checkpoint tells it: the log of earlier ones knows of pages that are no more.
    Holes { kind: u8, number: u64, holes: &'a [u8] },
}

/// Records that wait.
#[derive(Default)]
pub(in crate::fs::sfs) struct Records {
    bytes: Vec<u8>,
    /// Where an operation ends, of which all records must be in one partial segment.
    ends: Vec<usize>,
    /// Inodes that changed, whose images go with the records.
    touched: BTreeSet<u64>,
}

impl Records {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.touched.is_empty()
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.touched.len() * (HEAD + size_of::<InodeImage>())
    }

    /// An inode changed.
    pub fn touch(&mut self, inode: u64) {
        self.touched.insert(inode);
    }

    /// Whether an inode is among those that changed.
    pub fn touches(&self, inode: u64) -> bool {
        self.touched.contains(&inode)
    }

    /// Adds a record, done before partial segment `before` was written.
    pub fn add(&mut self, record: &Record, before: u64) {
        write(&mut self.bytes, record, before);
    }

    /// An operation is told.
    pub fn end(&mut self) {
        if self.ends.last() != Some(&self.bytes.len()) {
            self.ends.push(self.bytes.len());
        }
    }

    /// A checkpoint says it all.
    pub fn clear(&mut self) {
        *self = Records::default();
    }

    /// Takes the records, and the inodes whose images belong behind them.
    pub fn take(&mut self) -> (Told, BTreeSet<u64>) {
        // A call that failed half-way has not ended. Without an end its records would fit nowhere.
        self.end();
        let taken = std::mem::take(self);
        (Told { bytes: taken.bytes, ends: taken.ends, at: 0 }, taken.touched)
    }
}

/// Records that are being written.
pub(in crate::fs::sfs) struct Told {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    at: usize,
}

impl Told {
    /// None.
    pub fn nothing() -> Told {
        Told { bytes: Vec::new(), ends: Vec::new(), at: 0 }
    }

    /// Adds a record that is an operation of its own.
    pub fn add(&mut self, record: &Record, before: u64) {
        write(&mut self.bytes, record, before);
        self.ends.push(self.bytes.len());
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next operations that fit into `room` bytes.
    pub fn next(&mut self, room: usize) -> &[u8] {
        let from = self.at;
        let end = self.ends.iter().rev().copied().find(|end| *end <= from + room).unwrap_or(from).max(from);
        debug_assert!(end - from <= room, "whole operations fit the room");
        self.at = end;
        &self.bytes[from..end]
    }
}

fn write(bytes: &mut Vec<u8>, record: &Record, before: u64) {
    let start = bytes.len();
    bytes.resize(start + HEAD, 0);
    let mut put = |number: u64| bytes.extend_from_slice(&number.to_le_bytes());
    let tag = match record {
        Record::Name { directory, inode, kind, name } => {
            put(*directory);
            put(*inode);
            bytes.push(*kind as u8);
            bytes.extend_from_slice(name);
            1
        }
        Record::NoName { directory, name } => {
            put(*directory);
            bytes.extend_from_slice(name);
            2
        }
        Record::Unmap { inode, places } => {
            put(*inode);
            put(places.start);
            put(places.end);
            3
        }
        Record::Target { inode, bytes: target } => {
            put(*inode);
            bytes.push(0);
            bytes.extend_from_slice(target);
            4
        }
        Record::Attributes { inode, length, at, bytes: part } => {
            put(*inode);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&at.to_le_bytes());
            bytes.extend_from_slice(part);
            7
        }
        Record::Inode(image) => {
            bytes.extend_from_slice(image.as_bytes());
            5
        }
        Record::Freed { inode } => {
            put(*inode);
            6
        }
        Record::Reserve { inode, places } => {
            put(*inode);
            put(places.start);
            put(places.end);
            8
        }
        Record::Holes { kind, number, holes } => {
            put(*number);
            bytes.push(*kind);
            bytes.extend_from_slice(holes);
            9
        }
    };
    let length = bytes.len() - start - HEAD;
    let length =
        u16::try_from(length).unwrap_or_else(|_| panic!("a record of {length} bytes has no room for its length"));
    bytes[start] = tag;
    bytes[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
    bytes[start + 8..start + HEAD].copy_from_slice(&before.to_le_bytes());
}

/// True if these bytes are records up to their end.
pub(in crate::fs::sfs) fn are_whole(bytes: &[u8]) -> bool {
    let mut left = bytes;
    while !left.is_empty() {
        let Some((_, rest)) = first(left) else { return false };
        left = rest;
    }
    true
}

/// The records of a partial segment, each with the number of the partial segment that it comes before. Ends at what is
/// no record.
pub(in crate::fs::sfs) fn read(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Record<'_>)> {
    std::iter::from_fn(move || {
        let (record, rest) = first(bytes)?;
        bytes = rest;
        Some(record)
    })
}

/// The first record, with the number that it comes before, and what is behind it.
fn first(bytes: &[u8]) -> Option<((u64, Record<'_>), &[u8])> {
    let head = bytes.get(..HEAD)?;
    let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let before = u64::from_le_bytes(head[8..].try_into().ok()?);
    let rest = bytes.get(HEAD..HEAD + length)?;
    let number = |at: usize| Some(u64::from_le_bytes(rest.get(at..at + 8)?.try_into().ok()?));
    let record = match head[0] {
        1 => Record::Name {
            directory: number(0)?,
            inode: number(8)?,
            kind: FileKind::of_number(*rest.get(16)?)?,
            name: &rest[17..],
        },
        2 => Record::NoName { directory: number(0)?, name: rest.get(8..)? },
        3 => Record::Unmap { inode: number(0)?, places: number(8)?..number(16)? },
        4 if *rest.get(8)? == 0 => Record::Target { inode: number(0)?, bytes: &rest[9..] },
        // In version 1, all attributes of a file.
        4 => Record::Attributes { inode: number(0)?, length: rest.len() as u32 - 9, at: 0, bytes: &rest[9..] },
        5 => Record::Inode(InodeImage::ref_from_bytes(rest).ok()?),
        6 => Record::Freed { inode: number(0)? },
        7 => {
            let places = number(8)?;
            let (length, at) = (places as u32, (places >> 32) as u32);
            Record::Attributes { inode: number(0)?, length, at, bytes: &rest[16..] }
        }
        8 => Record::Reserve { inode: number(0)?, places: number(8)?..number(16)? },
        9 => Record::Holes { number: number(0)?, kind: *rest.get(8)?, holes: rest.get(9..)? },
        _ => return None,
    };
    Some(((before, record), &bytes[HEAD + length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_call_that_failed_before_its_end_are_written_like_any_others() {
        // The writer takes whole calls as long as any are left: these would be left for ever, and each time it would look
        // for room in another segment.
        let mut records = Records::default();
        records.add(&Record::Freed { inode: 7 }, 3);
        records.end();
        records.add(&Record::Freed { inode: 8 }, 3);
        let (mut taken, _) = records.take();
        assert_eq!(read(taken.next(1000)).count(), 2);
        assert!(taken.is_empty());
    }

    #[test]
    fn parts_of_attributes_are_read_as_they_were_told_and_so_are_those_of_version_1() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Record::Attributes { inode: 7, length: 70_000, at: 65_536, bytes: b"part" }, 3);
        write(&mut bytes, &Record::Target { inode: 8, bytes: b"there" }, 4);
        // What was a record of a link's target, with a mark that it is all attributes of a file.
        let from = bytes.len();
        write(&mut bytes, &Record::Target { inode: 9, bytes: b"all" }, 5);
        bytes[from + HEAD + 8] = 1;
        let read: Vec<String> = read(&bytes).map(|(before, record)| format!("{before} {record:?}")).collect();
        let wanted = [
            (3, Record::Attributes { inode: 7, length: 70_000, at: 65_536, bytes: b"part" }),
            (4, Record::Target { inode: 8, bytes: b"there" }),
            (5, Record::Attributes { inode: 9, length: 3, at: 0, bytes: b"all" }),
        ];
        assert_eq!(read, wanted.map(|(before, record)| format!("{before} {record:?}")));
    }
}
