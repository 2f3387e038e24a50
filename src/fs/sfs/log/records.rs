//! Log records: the changes of names, inodes and file extents between two checkpoints.
//!
//! Format of a record:
//!
//! ```text
//! 0  u8   type                      8  u64  sequence number of the next partial segment at the change
//! 2  u16  bytes of the rest        16  the rest
//! ```
//!
//! Type 10 is of version 4.
//!
//! Records are buffered until a change must become durable. A checkpoint makes them unnecessary. A mount after a crash
//! replays each of them before the blocks of the partial segment whose number it holds, as those were written after the
//! change.

use super::packing::Packed;
use crate::fs::sfs::media::format::InodeImage;
use crate::fs::volume::FileKind;
use std::collections::BTreeSet;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

const HEAD: usize = 16;

/// Bytes of a record of bytes, besides the packed ones.
pub(in crate::fs::sfs) const BYTES_RECORD: usize = HEAD + 24;

/// A log record.
#[derive(Debug)]
pub(in crate::fs::sfs) enum Record<'a> {
    /// A name was added to a directory.
    Name { directory: u64, inode: u64, kind: FileKind, name: &'a [u8] },
    /// A name was removed.
    NoName { directory: u64, name: &'a [u8] },
    /// Blocks of a file were freed.
    Unmap { inode: u64, places: Range<u64> },
    /// Blocks of a file were reserved in holes.
    Reserve { inode: u64, places: Range<u64> },
    /// The target of a symbolic link.
    Target { inode: u64, bytes: &'a [u8] },
    /// A part of a file's extended attributes: `bytes` at offset `at`, of `length` bytes in all.
    Attributes { inode: u64, length: u32, at: u32, bytes: &'a [u8] },
    /// The new image of an inode.
    Inode(&'a InodeImage),
    /// An inode was freed.
    Freed { inode: u64 },
    /// The holes below a tree block of a metadata file: kind and number as in a block record, and a bit for each child.
    /// Written by checkpoints, as earlier log may refer to pages that no longer exist.
    Holes { kind: u8, number: u64, holes: &'a [u8] },
    /// Bytes of a block of a file, from byte `at` of it, and the checksum of the whole block with them. So bytes are
    /// applied only to the version that they changed.
    Bytes { inode: u64, place: u64, at: u16, crc: u32, bytes: Packed<'a> },
}

/// Buffered records.
#[derive(Default)]
pub(in crate::fs::sfs) struct Records {
    bytes: Vec<u8>,
    /// Ends of operations. All records of an operation go into one partial segment.
    ends: Vec<usize>,
    /// Changed inodes, whose images follow the records.
    touched: BTreeSet<u64>,
}

impl Records {
    /// Buffered bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.touched.len() * (HEAD + size_of::<InodeImage>())
    }

    /// Adds an inode to the changed ones.
    pub fn touch(&mut self, inode: u64) {
        self.touched.insert(inode);
    }

    /// True if the inode is among the changed ones.
    pub fn touches(&self, inode: u64) -> bool {
        self.touched.contains(&inode)
    }

    /// Adds a record of a change made before partial segment `before`.
    pub fn add(&mut self, record: &Record, before: u64) {
        write(&mut self.bytes, record, before);
    }

    /// Ends an operation.
    pub fn end(&mut self) {
        if self.ends.last() != Some(&self.bytes.len()) {
            self.ends.push(self.bytes.len());
        }
    }

    /// Discards all records, at a checkpoint.
    pub fn clear(&mut self) {
        *self = Records::default();
    }

    /// Takes the records, and the inodes whose images follow them.
    pub fn take(&mut self) -> (RecordsToWrite, BTreeSet<u64>) {
        // A failed call leaves records without an end mark. Without one they would not be written.
        self.end();
        let taken = std::mem::take(self);
        (RecordsToWrite { bytes: taken.bytes, ends: taken.ends, at: 0 }, taken.touched)
    }
}

/// Records that are being written.
pub(in crate::fs::sfs) struct RecordsToWrite {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    at: usize,
}

impl RecordsToWrite {
    /// No records.
    pub fn nothing() -> RecordsToWrite {
        RecordsToWrite { bytes: Vec::new(), ends: Vec::new(), at: 0 }
    }

    /// Adds a record that is an operation by itself.
    pub fn add(&mut self, record: &Record, before: u64) {
        write(&mut self.bytes, record, before);
        self.ends.push(self.bytes.len());
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Bytes that are left to be written.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next whole operations that fit into `room` bytes.
    pub fn next(&mut self, room: usize) -> &[u8] {
        let from = self.at;
        let end = self.ends.iter().rev().copied().find(|end| *end <= from + room).unwrap_or(from).max(from);
        debug_assert!(end - from <= room, "the returned operations fit");
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
        Record::Bytes { inode, place, at, crc, bytes: packed } => {
            put(*inode);
            put(*place);
            put(u64::from(*crc) | u64::from(*at) << 32 | u64::from(packed.length) << 48);
            bytes.extend_from_slice(packed.bytes);
            10
        }
    };
    let length = bytes.len() - start - HEAD;
    let length =
        u16::try_from(length).unwrap_or_else(|_| panic!("a record of {length} bytes exceeds its length field"));
    bytes[start] = tag;
    bytes[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
    bytes[start + 8..start + HEAD].copy_from_slice(&before.to_le_bytes());
}

/// True if these bytes are a whole number of records.
pub(in crate::fs::sfs) fn are_whole(bytes: &[u8]) -> bool {
    let mut left = bytes;
    while !left.is_empty() {
        let Some((_, rest)) = first(left) else { return false };
        left = rest;
    }
    true
}

/// The records of a partial segment, each with the number of the partial segment it precedes. Ends at the first invalid
/// one.
pub(in crate::fs::sfs) fn read(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Record<'_>)> {
    std::iter::from_fn(move || {
        let (record, rest) = first(bytes)?;
        bytes = rest;
        Some(record)
    })
}

/// The first record, with the number of the partial segment it precedes, and the remaining bytes.
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
        // In version 1, this holds all attributes of a file.
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
        10 => {
            let (fields, bytes) = (number(16)?, rest.get(24..)?);
            let (crc, at, length) = (fields as u32, (fields >> 32) as u16, (fields >> 48) as u16);
            Record::Bytes { inode: number(0)?, place: number(8)?, at, crc, bytes: Packed { length, bytes } }
        }
        _ => return None,
    };
    Some(((before, record), &bytes[HEAD + length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_failed_call_are_written_like_any_others() {
        // The writer takes whole operations. Records without an end mark stayed buffered forever, and each write looked
        // for space in another segment.
        let mut records = Records::default();
        records.add(&Record::Freed { inode: 7 }, 3);
        records.end();
        records.add(&Record::Freed { inode: 8 }, 3);
        let (mut taken, _) = records.take();
        assert_eq!(read(taken.next(1000)).count(), 2);
        assert!(taken.is_empty());
    }

    #[test]
    fn parts_of_attributes_are_read_back_and_so_are_those_of_version_1() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Record::Attributes { inode: 7, length: 70_000, at: 65_536, bytes: b"part" }, 3);
        write(&mut bytes, &Record::Target { inode: 8, bytes: b"there" }, 4);
        // The record of a link's target, with the mark for all attributes of a file.
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
    #[test]
    fn bytes_of_blocks_are_read_back() {
        let mut bytes = Vec::new();
        let packed = Packed { length: 4000, bytes: b"packed" };
        write(&mut bytes, &Record::Bytes { inode: 7, place: 1 << 40, at: 96, crc: u32::MAX - 1, bytes: packed }, 3);
        assert_eq!(bytes.len(), BYTES_RECORD + 6);
        let (before, record) = read(&bytes).next().unwrap();
        let Record::Bytes { inode, place, at, crc, bytes } = record else { panic!("{record:?}") };
        assert_eq!((before, inode, place, at, crc), (3, 7, 1 << 40, 96, u32::MAX - 1));
        assert_eq!((bytes.length, bytes.bytes), (4000, &b"packed"[..]));
    }
}
