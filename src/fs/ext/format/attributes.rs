//! Extended attributes: in the inode behind its extra bytes, and in a block, which several inodes may share.
//!
//! ```text
//! in the inode   0 magic 0xEA020000   4 entries      values by their distance from the first entry
//! in a block     0 magic   4 inodes that share it   8 1   12 hash   16 checksum   32 entries
//!                                                    values by their distance from the block's beginning
//! entry          0 length of the name (1)   1 prefix (1)   2 value at (2)   4 value's inode   8 value's bytes
//!                12 hash   16 name, filled up to 4 bytes               four zeros end the entries
//! ```
//!
//! Values lie at the end, filled up to 4 bytes. The entries of a block are sorted by prefix, length and name.

use super::bytes::{le16, le32, put16, put32};
use super::checksum::crc32c_raw;

pub const MAGIC: u32 = 0xEA02_0000;
const INODE_HEAD: usize = 4;
const BLOCK_HEAD: usize = 32;
const ENTRY: usize = 16;
const SUM: usize = 16;

/// The prefixes, with their numbers. An access control list has no name behind its own.
const PREFIXES: [(u8, &[u8]); 5] = [
    (1, b"user."),
    (2, b"system.posix_acl_access"),
    (3, b"system.posix_acl_default"),
    (4, b"trusted."),
    (6, b"security."),
];

/// The number of an access control list, that of a directory's default one.
pub const LISTS: [u8; 2] = [2, 3];

/// The prefix of attributes that the format itself keeps.
const SYSTEM: u8 = 7;

/// An attribute as it is stored: its prefix, the name behind that, and the value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stored {
    pub prefix: u8,
    pub name: Vec<u8>,
    pub value: Vec<u8>,
}

impl Stored {
    /// The prefix and the rest of a full name; `None` if no such name can be stored.
    pub fn split(name: &[u8]) -> Option<(u8, &[u8])> {
        PREFIXES.iter().find_map(|(number, prefix)| {
            let rest = name.strip_prefix(*prefix)?;
            (LISTS.contains(number) == rest.is_empty()).then_some((*number, rest))
        })
    }

    /// The full name; `None` if its prefix is not known.
    pub fn full_name(&self) -> Option<Vec<u8>> {
        let (_, prefix) = PREFIXES.iter().find(|(number, _)| *number == self.prefix)?;
        Some([prefix, &self.name[..]].concat())
    }

    /// True if it has this prefix, and this name behind it.
    pub fn is_named(&self, prefix: u8, name: &[u8]) -> bool {
        self.prefix == prefix && self.name == name
    }

    /// Bytes that its entry and its value take.
    fn bytes(&self) -> usize {
        (ENTRY + self.name.len()).next_multiple_of(4) + self.value.len().next_multiple_of(4)
    }

    /// The hash of its name and its value.
    fn hash(&self) -> u32 {
        let mut value = self.value.clone();
        value.resize(value.len().next_multiple_of(4), 0);
        hash(&self.name, &value, u32::from)
    }
}

/// The hash of a name, whose bytes are these numbers, and of a value with the bytes that fill it up.
fn hash(name: &[u8], value: &[u8], number: impl Fn(u8) -> u32) -> u32 {
    let name = name.iter().fold(0u32, |hash, byte| hash.rotate_left(5) ^ number(*byte));
    value.chunks(4).fold(name, |hash, word| hash.rotate_left(16) ^ le32(word, 0))
}

/// Reads entries from `first` on; values are counted from `base` on. Fails with the fault.
fn read_entries(bytes: &[u8], first: usize, base: usize) -> Result<Vec<Stored>, String> {
    let mut found = Vec::new();
    let mut at = first;
    loop {
        if at + 4 > bytes.len() {
            return Err("its entries do not end".to_string());
        }
        if le32(bytes, at) == 0 {
            return Ok(found);
        }
        let (name_length, value_at, value_length) =
            (usize::from(bytes[at]), usize::from(le16(bytes, at + 2)), le32(bytes, at + 8) as usize);
        if le32(bytes, at + 4) != 0 {
            return Err("a value is in an inode of its own".to_string());
        }
        let name = bytes.get(at + ENTRY..at + ENTRY + name_length).ok_or("a name is beyond the end")?;
        let value_at = base + value_at;
        let value = value_at.checked_add(value_length).and_then(|end| bytes.get(value_at..end));
        let value = if value_length == 0 { Some(&[][..]) } else { value };
        let value = value.ok_or_else(|| format!("a value of {value_length} bytes at {value_at} is beyond the end"))?;
        found.push(Stored { prefix: bytes[at + 1], name: name.to_vec(), value: value.to_vec() });
        at += (ENTRY + name_length).next_multiple_of(4);
    }
}

/// Writes entries from `first` on and values from the end on; all between is zero.
fn write_entries(bytes: &mut [u8], first: usize, base: usize, all: &[Stored]) {
    bytes[first..].fill(0);
    let (mut at, mut value_at) = (first, bytes.len());
    for stored in all {
        value_at -= stored.value.len().next_multiple_of(4);
        bytes[at] = stored.name.len() as u8;
        bytes[at + 1] = stored.prefix;
        put16(bytes, at + 2, if stored.value.is_empty() { 0 } else { (value_at - base) as u16 });
        put32(bytes, at + 8, stored.value.len() as u32);
        put32(bytes, at + 12, stored.hash());
        bytes[at + ENTRY..at + ENTRY + stored.name.len()].copy_from_slice(&stored.name);
        bytes[value_at..value_at + stored.value.len()].copy_from_slice(&stored.value);
        at += (ENTRY + stored.name.len()).next_multiple_of(4);
    }
}

/// True if the entry at `at`, whose value is counted from `base` on, has the hash of its name and value, or none. Some
/// programs took the bytes of a name for signed. A read of an attribute does not ask.
fn has_sound_hash(bytes: &[u8], at: usize, base: usize, stored: &Stored) -> bool {
    let value_at = base + usize::from(le16(bytes, at + 2));
    let value = match stored.value.len() {
        0 => Some(&[][..]),
        length => bytes.get(value_at..value_at + length.next_multiple_of(4)),
    };
    let said = le32(bytes, at + 12);
    let is_hash = |value| {
        said == hash(&stored.name, value, u32::from) || said == hash(&stored.name, value, |byte| byte as i8 as u32)
    };
    said == 0 || value.is_some_and(is_hash)
}

/// The entries from `first` on that have the hash of their name and value.
fn sound_entries(bytes: &[u8], first: usize, base: usize, all: Vec<Stored>) -> Vec<Stored> {
    let mut at = first;
    let is_sound = |stored: &Stored| {
        let is_sound = has_sound_hash(bytes, at, base, stored);
        at += (ENTRY + stored.name.len()).next_multiple_of(4);
        is_sound
    };
    all.into_iter().filter(is_sound).collect()
}

/// True if an attribute in the room of an inode holds the first bytes of the inode's file.
pub fn has_inline_data(room: &[u8]) -> bool {
    read_inode(room).is_ok_and(|all| all.iter().any(|stored| stored.prefix == SYSTEM && stored.name == b"data"))
}

/// The first inode in the room of an inode that an attribute has for its value.
pub fn value_inode(room: &[u8]) -> Option<u32> {
    let mut at = INODE_HEAD;
    while le32(room, 0) == MAGIC && at + ENTRY <= room.len() && le32(room, at) != 0 {
        if le32(room, at + 4) != 0 {
            return Some(le32(room, at + 4));
        }
        at += (ENTRY + usize::from(room[at])).next_multiple_of(4);
    }
    None
}

/// Takes entries out of the room of an inode that cannot be read, or whose hash is not that of their name and value. Says
/// why, if there were some.
pub fn keep_sound_inode_entries(room: &mut [u8]) -> Option<String> {
    if le32(room, 0) != MAGIC {
        return None;
    }
    let (all, why) = match read_inode(room) {
        Ok(all) if are_apart(room, INODE_HEAD, INODE_HEAD, &all) => (all, None),
        Ok(_) => (Vec::new(), Some("two attributes have the same bytes".to_string())),
        Err(why) => (Vec::new(), Some(why)),
    };
    let count = all.len();
    let kept = sound_entries(room, INODE_HEAD, INODE_HEAD, all);
    let why = why.or_else(|| {
        (kept.len() < count).then(|| "an attribute has another hash than its name and value".to_string())
    })?;
    write_inode(room, &kept);
    Some(why)
}

/// True if all attributes in a block have a prefix, and the hash of their name and value.
pub fn has_sound_block_entries(block: &[u8]) -> bool {
    read_block(block).is_ok_and(|all| {
        let count = all.len();
        let are_apart = are_apart(block, BLOCK_HEAD, 0, &all);
        let have_prefixes = all.iter().all(|stored| stored.prefix != 0);
        are_apart && have_prefixes && sound_entries(block, BLOCK_HEAD, 0, all).len() == count
    })
}

/// True if no two values of these entries overlap, and none overlaps the entries.
fn are_apart(bytes: &[u8], first: usize, base: usize, all: &[Stored]) -> bool {
    let (mut at, mut taken) = (first, Vec::new());
    for stored in all {
        if !stored.value.is_empty() {
            let value_at = base + usize::from(le16(bytes, at + 2));
            taken.push(value_at..value_at + stored.value.len().next_multiple_of(4));
        }
        at += (ENTRY + stored.name.len()).next_multiple_of(4);
    }
    taken.push(first..at + 4);
    taken.sort_by_key(|range| range.start);
    taken.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

/// The attributes in the room of an inode.
pub fn read_inode(room: &[u8]) -> Result<Vec<Stored>, String> {
    if le32(room, 0) != MAGIC { Ok(Vec::new()) } else { read_entries(room, INODE_HEAD, INODE_HEAD) }
}

/// True if these fit into the room of an inode.
pub fn fits_inode(room: usize, all: &[Stored]) -> bool {
    INODE_HEAD + 4 + all.iter().map(Stored::bytes).sum::<usize>() <= room
}

/// Writes attributes into the room of an inode.
pub fn write_inode(room: &mut [u8], all: &[Stored]) {
    room.fill(0);
    if !all.is_empty() {
        put32(room, 0, MAGIC);
        write_entries(room, INODE_HEAD, INODE_HEAD, all);
    }
}

/// The attributes in a block.
pub fn read_block(block: &[u8]) -> Result<Vec<Stored>, String> {
    if le32(block, 0) != MAGIC || le32(block, 8) != 1 {
        return Err(format!("its magic number is {:#010x}, and should be {MAGIC:#010x}", le32(block, 0)));
    }
    read_entries(block, BLOCK_HEAD, 0)
}

/// True if these fit into a block.
pub fn fits_block(block_bytes: usize, all: &[Stored]) -> bool {
    BLOCK_HEAD + 4 + all.iter().map(Stored::bytes).sum::<usize>() <= block_bytes
}

/// Writes attributes into a block that one inode has.
pub fn write_block(block: &mut [u8], all: &mut [Stored]) {
    all.sort_by(|one, other| {
        (one.prefix, one.name.len(), &one.name).cmp(&(other.prefix, other.name.len(), &other.name))
    });
    block[..BLOCK_HEAD].fill(0);
    put32(block, 0, MAGIC);
    set_sharers(block, 1);
    put32(block, 8, 1);
    let hash = all.iter().fold(0u32, |hash, stored| hash.rotate_left(16) ^ stored.hash());
    put32(block, 12, hash);
    write_entries(block, BLOCK_HEAD, 0, all);
}

/// Inodes that share a block.
pub fn sharers(block: &[u8]) -> u32 {
    le32(block, 4)
}

pub fn set_sharers(block: &mut [u8], inodes: u32) {
    put32(block, 4, inodes);
}

fn checksum(block: &[u8], place: u64, seed: u32) -> u32 {
    let sum = crc32c_raw(crc32c_raw(seed, &place.to_le_bytes()), &block[..SUM]);
    crc32c_raw(crc32c_raw(sum, &[0; 4]), &block[SUM + 4..])
}

/// True if the checksum of the block at `place` is right.
pub fn is_sound(block: &[u8], place: u64, seed: u32) -> bool {
    le32(block, SUM) == checksum(block, place, seed)
}

/// Puts the checksum of the block at `place` in.
pub fn sum(block: &mut [u8], place: u64, seed: u32) {
    let sum = checksum(block, place, seed);
    put32(block, SUM, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let stored = |prefix, name: &[u8], value: &[u8]| Stored { prefix, name: name.to_vec(), value: value.to_vec() };
        let mut all = vec![stored(6, b"x", b""), stored(1, b"longer", &[7; 33]), stored(1, b"b", b"value")];
        let mut room = [9; 128];
        assert!(fits_inode(128, &all) && !fits_inode(90, &all));
        write_inode(&mut room, &all);
        assert_eq!(read_inode(&room), Ok(all.clone()));
        let mut block = vec![9; 1024];
        write_block(&mut block, &mut all);
        assert_eq!(read_block(&block), Ok(all.clone()));
        assert_eq!(all.iter().map(|stored| stored.prefix).collect::<Vec<_>>(), [1, 1, 6]);
        assert!(keep_sound_inode_entries(&mut room).is_none() && has_sound_block_entries(&block));
        block[1020] ^= 1;
        assert!(!has_sound_block_entries(&block), "a value is another");
        block[1020] ^= 1;
        sum(&mut block, 5, 3);
        assert!(is_sound(&block, 5, 3) && !is_sound(&block, 6, 3));
        write_inode(&mut room, &[]);
        assert_eq!(room, [0; 128]);
    }

    #[test]
    fn a_full_name_is_a_prefix_and_a_rest() {
        assert_eq!(Stored::split(b"user.a"), Some((1, &b"a"[..])));
        assert_eq!(Stored::split(b"system.posix_acl_access"), Some((2, &b""[..])));
        assert_eq!(Stored::split(b"system.posix_acl_accessories"), None);
        assert_eq!((Stored::split(b"user."), Stored::split(b"nothing")), (None, None));
        let list = Stored { prefix: 3, name: Vec::new(), value: Vec::new() };
        assert_eq!(list.full_name(), Some(b"system.posix_acl_default".to_vec()));
    }
}
