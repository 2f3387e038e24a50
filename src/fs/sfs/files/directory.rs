//! Directories: blocks of records, and an index in memory.
//!
//! Format of a record:
//!
//! ```text
//!  0  u64  inode, 0 if the record is free      10  u8  kind       12  name
//!  8  u16  bytes up to the next record         11  u8  bytes of the name
//! ```
//!
//! Records begin at multiples of 8 bytes and fill the block. A record never moves while it exists, so its offset is a
//! position in a listing. For each name, the index holds half of the name's hash and the record's offset in one number,
//! about 16 bytes with the overhead of the tree. It is built when the directory is first used.

use crate::fs::sfs::files::attributes::FileKind;
use crate::fs::sfs::media::format::{BLOCK, BlockBytes};
use std::collections::BTreeSet;
use std::hash::Hasher;

/// Bytes of a record before the name.
const HEAD: usize = 12;
/// Alignment of records, in bytes.
const STEP: u64 = 8;
/// Maximum blocks of a directory: offsets in it fit into half an index entry.
pub(in crate::fs::sfs) const MOST_BLOCKS: u64 = (1 << 32) * STEP / BLOCK as u64;
/// Approximate bytes of an index entry: a node of the tree has 5 to 11 entries.
const INDEX_BYTES: usize = 16;

/// The index of a directory.
#[derive(Debug, Default)]
pub(in crate::fs::sfs) struct Index {
    /// The hash of a name in the upper half, the record's offset in the lower half, in units of [`STEP`] bytes.
    names: BTreeSet<u64>,
    /// The longest record that fits into each block.
    room: Vec<u16>,
    /// No block before this one has space for a short name.
    first_with_room: usize,
}

/// A directory record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fs::sfs) struct Record<'a> {
    /// The offset in its block.
    pub at: usize,
    pub length: usize,
    /// The inode; 0 if the record is free.
    pub inode: u64,
    pub kind: u8,
    pub name: &'a [u8],
}

/// Bytes of a record with a name of `name` bytes.
fn needed(name: usize) -> usize {
    (HEAD + name).next_multiple_of(8)
}

/// The hash of a name, in the upper half of an index entry.
fn hash(name: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(name);
    let hash = hasher.finish();
    (hash ^ hash << 32) & !PLACE
}

/// The half of an index entry with the offset.
const PLACE: u64 = (1 << 32) - 1;

/// The index entry of a name.
fn entry(name: &[u8], place: u64) -> u64 {
    debug_assert!(place.is_multiple_of(STEP) && place / STEP <= PLACE);
    hash(name) | (place / STEP)
}

/// The record at an offset; `None` if it is invalid.
pub(in crate::fs::sfs) fn record(block: &BlockBytes, at: usize) -> Option<Record<'_>> {
    let bytes = block.get(at..)?;
    if bytes.len() < HEAD {
        return None;
    }
    let inode = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let name = usize::from(bytes[11]);
    let fits = length.is_multiple_of(8) && length >= needed(name) && length <= bytes.len();
    fits.then(|| Record { at, length, inode, kind: bytes[10], name: &bytes[HEAD..HEAD + name] })
}

/// All records of a block; `None` after an invalid one.
pub(in crate::fs::sfs) fn records(block: &BlockBytes) -> impl Iterator<Item = Option<Record<'_>>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= BLOCK {
            return None;
        }
        let found = record(block, at);
        at = found.map_or(BLOCK, |found| at + found.length);
        Some(found)
    })
}

fn write(block: &mut BlockBytes, at: usize, length: usize, inode: u64, kind: u8, name: &[u8]) {
    let bytes = &mut block[at..at + length];
    bytes[..8].copy_from_slice(&inode.to_le_bytes());
    bytes[8..10].copy_from_slice(&(length as u16).to_le_bytes());
    bytes[10] = kind;
    bytes[11] = name.len() as u8;
    bytes[HEAD..HEAD + name.len()].copy_from_slice(name);
}

/// Initialises a block with one free record.
pub(in crate::fs::sfs) fn format(block: &mut BlockBytes) {
    write(block, 0, BLOCK, 0, 0, b"");
}

/// The longest record that fits into a block.
fn room(block: &BlockBytes) -> u16 {
    let gaps = records(block).flatten().map(|record| match record.inode {
        0 => record.length,
        _ => record.length - needed(record.name.len()),
    });
    gaps.max().unwrap_or(0) as u16
}

impl Index {
    /// Adds the next block to the index. Returns false if it is damaged.
    pub fn append_block(&mut self, block: &BlockBytes) -> bool {
        let first = (self.room.len() * BLOCK) as u64;
        self.room.push(room(block));
        for record in records(block) {
            match record {
                Some(record) if record.inode != 0 => {
                    self.names.insert(entry(record.name, first + record.at as u64));
                }
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.room.len() as u64
    }

    /// Number of blocks up to the last with a name.
    pub fn blocks_with_names(&self) -> u64 {
        self.room.iter().rposition(|room| usize::from(*room) < BLOCK).map_or(0, |last| last as u64 + 1)
    }

    /// Truncates the index to `blocks` blocks; the others hold no names.
    pub fn cut(&mut self, blocks: u64) {
        self.room.truncate(blocks as usize);
        self.first_with_room = self.first_with_room.min(self.room.len());
    }

    /// Approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        size_of::<Index>() + self.names.len() * INDEX_BYTES + self.room.len() * size_of::<u16>()
    }

    /// Number of names.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Offsets of records that may have this name.
    pub fn places(&self, name: &[u8]) -> impl Iterator<Item = u64> + '_ {
        let hash = hash(name);
        self.names.range(hash..=hash | PLACE).map(|entry| (entry & PLACE) * STEP)
    }

    /// The first block with space for a name; `None` if a new block is needed.
    pub fn block_with_room(&mut self, name: &[u8]) -> Option<u64> {
        let needed = needed(name.len()) as u16;
        let shortest = self::needed(1) as u16;
        while self.room.get(self.first_with_room).is_some_and(|room| *room < shortest) {
            self.first_with_room += 1;
        }
        let from = self.first_with_room;
        self.room[from..].iter().position(|room| *room >= needed).map(|block| (from + block) as u64)
    }

    /// Adds a name to a block with enough space. Returns its offset.
    pub fn put(&mut self, number: u64, block: &mut BlockBytes, name: &[u8], inode: u64, kind: FileKind) -> Option<u64> {
        let needed = needed(name.len());
        let found = records(block).flatten().find_map(|record| {
            let used = if record.inode == 0 { 0 } else { self::needed(record.name.len()) };
            (record.length - used >= needed).then_some((record.at, used, record.length))
        });
        let (at, used, length) = found?;
        if used > 0 {
            block[at + 8..at + 10].copy_from_slice(&(used as u16).to_le_bytes());
        }
        write(block, at + used, length - used, inode, kind as u8, name);
        let place = number * BLOCK as u64 + (at + used) as u64;
        self.names.insert(entry(name, place));
        self.room[number as usize] = room(block);
        Some(place)
    }

    /// Removes the name at an offset.
    pub fn remove(&mut self, block: &mut BlockBytes, name: &[u8], place: u64) {
        let at = (place % BLOCK as u64) as usize;
        let mut previous: Option<(usize, usize)> = None;
        let mut found = None;
        for record in records(block).flatten() {
            if record.at == at {
                found = Some(record.length);
                break;
            }
            previous = Some((record.at, record.length));
        }
        let Some(length) = found else { return };
        match previous {
            // The space is added to the previous record.
            Some((before, its_length)) => {
                block[before + 8..before + 10].copy_from_slice(&((its_length + length) as u16).to_le_bytes());
                block[at..at + HEAD].fill(0);
            }
            None => write(block, at, length, 0, 0, b""),
        }
        self.names.remove(&entry(name, place));
        let number = (place / BLOCK as u64) as usize;
        self.room[number] = room(block);
        self.first_with_room = self.first_with_room.min(number);
    }
}

/// Replaces the inode of the record at an offset.
pub(in crate::fs::sfs) fn replace(block: &mut BlockBytes, at: usize, inode: u64, kind: FileKind) {
    block[at..at + 8].copy_from_slice(&inode.to_le_bytes());
    block[at + 10] = kind as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sfs::media::format::zeroed;
    use crate::random::Random;
    use std::collections::BTreeMap;

    fn find<'a>(block: &'a BlockBytes, index: &Index, name: &[u8]) -> Option<Record<'a>> {
        index.places(name).filter_map(|place| record(block, place as usize)).find(|record| record.name == name)
    }

    #[test]
    fn a_block_holds_the_names_that_were_added_and_not_removed() {
        let mut block = zeroed();
        format(&mut block);
        let mut index = Index::default();
        assert!(index.append_block(&block));
        let mut random = Random::new(1, "names");
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for inode in 1..20_000u64 {
            let longest = if random.below(10) == 0 { 255 } else { 20 };
            let length = 1 + random.below(longest) as usize;
            let name: Vec<u8> = (0..length).map(|_| b'a' + random.below(4) as u8).collect();
            if let Some(known) = model.get(&name) {
                let found = find(&block, &index, &name).unwrap();
                assert_eq!(found.inode, *known);
                let place = found.at as u64;
                index.remove(&mut block, &name, place);
                model.remove(&name);
            } else if index.block_with_room(&name) == Some(0) {
                index.put(0, &mut block, &name, inode, FileKind::Regular).unwrap();
                model.insert(name, inode);
            } else if let Some(victim) = model.keys().nth(random.below(model.len() as u64) as usize).cloned() {
                let place = find(&block, &index, &victim).unwrap().at as u64;
                index.remove(&mut block, &victim, place);
                model.remove(&victim);
            }
            if inode % 97 == 0 {
                let all: BTreeMap<Vec<u8>, u64> = records(&block)
                    .map(|record| record.expect("no record is damaged"))
                    .filter(|record| record.inode != 0)
                    .map(|record| (record.name.to_vec(), record.inode))
                    .collect();
                assert_eq!(all, model);
                assert_eq!(index.names(), model.len());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_as_records_or_damage() {
        let mut random = Random::new(2, "damage");
        for _ in 0..2000 {
            let mut block = zeroed();
            block.iter_mut().for_each(|byte| *byte = random.bits() as u8 & random.bits() as u8);
            let count = records(&block).count();
            assert!(count >= 1);
            Index::default().append_block(&block);
        }
    }
}
