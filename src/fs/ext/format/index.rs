//! The index of a hashed directory. Its first block is the root, which looks like a block with `.` and `..` alone; a
//! further node looks like one free entry.
//!
//! ```text
//! root   0 '.' (12)   12 '..' to the block's end   24 zero   28 hash (1)   29 8 (1)   30 levels (1)   31 flags (1)
//!        32 most entries (2)   34 entries (2)   36 block             then entries of 8: hash (4), block (4)
//! node   0 a free entry of the whole block   8 most (2)  10 entries (2)  12 block   then entries
//! behind the most entries: zero (4), checksum (4)
//! ```
//!
//! The first entry has no hash: it holds the names below the second. Blocks are those of the directory. A hash whose
//! lowest bit is set goes on from the block before.

use super::bytes::{le16, le32, put16, put32};
use super::checksum::crc32c_raw;
use super::entries::write_entry;

const ROOT_ENTRIES: usize = 32;
const NODE_ENTRIES: usize = 8;
const ENTRY: usize = 8;
/// A flag of an index whose hash no program knows.
const UNKNOWN_HASH: u8 = 1;
/// Levels below the root that a directory can have without `large_dir`.
pub const MOST_LEVELS: u8 = 1;

/// The child that holds names from a hash on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Of the first, 0.
    pub hash: u32,
    /// The block of the directory.
    pub block: u32,
}

/// True if it is the directory's first block, where an index has its root.
fn first_entry(is_root: bool) -> usize {
    if is_root { ROOT_ENTRIES } else { NODE_ENTRIES }
}

/// Entries that fit into a node.
pub fn most_entries(block_bytes: usize, is_root: bool, has_tail: bool) -> usize {
    (block_bytes - first_entry(is_root)) / ENTRY - usize::from(has_tail)
}

/// The fields of the root beside its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootInfo {
    pub hash_number: u8,
    /// Levels of nodes between it and the blocks of names.
    pub levels: u8,
}

/// Reads the fields of the root. Fails with the fault.
pub fn read_root_info(block: &[u8]) -> Result<RootInfo, String> {
    let (hash_number, length, levels, flags) = (block[28], block[29], block[30], block[31]);
    if le32(block, 24) != 0 || length != 8 || levels > MOST_LEVELS {
        return Err(format!("the index says {length} bytes, {levels} levels"));
    }
    if flags & UNKNOWN_HASH != 0 {
        return Err(format!("the index has flags {flags:#x}, of which no hash is known"));
    }
    Ok(RootInfo { hash_number, levels })
}

/// Reads the entries of a node, in order. Blocks are below `blocks`. Fails with the fault.
pub fn read(block: &[u8], is_root: bool, has_tail: bool, blocks: u64) -> Result<Vec<Child>, String> {
    let first = first_entry(is_root);
    let (most, count) = (usize::from(le16(block, first)), usize::from(le16(block, first + 2)));
    if most != most_entries(block.len(), is_root, has_tail) || count == 0 || count > most {
        return Err(format!("a node of the index says {count} of {most} entries"));
    }
    let mut children = vec![Child { hash: 0, block: le32(block, first + 4) }];
    for entry in block[first + ENTRY..].chunks_exact(ENTRY).take(count - 1) {
        let child = Child { hash: le32(entry, 0), block: le32(entry, 4) };
        if child.hash < children[children.len() - 1].hash {
            return Err(format!("the index names hash {:08x} behind a greater one", child.hash));
        }
        children.push(child);
    }
    // The high bits are kept for something else.
    children.iter_mut().for_each(|child| child.block &= 0x0FFF_FFFF);
    match children.iter().find(|child| child.block == 0 || u64::from(child.block) >= blocks) {
        Some(child) => Err(format!("the index names block {} of a directory of {blocks}", child.block)),
        None => Ok(children),
    }
}

/// Writes the entries of a node.
///
/// # Panics
///
/// If they do not fit.
pub fn write(block: &mut [u8], is_root: bool, has_tail: bool, children: &[Child]) {
    let first = first_entry(is_root);
    let most = most_entries(block.len(), is_root, has_tail);
    assert!(!children.is_empty() && children.len() <= most, "{} entries of {most}", children.len());
    put16(block, first, most as u16);
    put16(block, first + 2, children.len() as u16);
    put32(block, first + 4, children[0].block);
    for (entry, child) in block[first + ENTRY..].chunks_exact_mut(ENTRY).zip(&children[1..]) {
        put32(entry, 0, child.hash);
        put32(entry, 4, child.block);
    }
}

/// Makes a block a node without entries.
pub fn clear_node(block: &mut [u8]) {
    block.fill(0);
    let length = block.len();
    write_entry(block, 0, length, 0, b"", 0);
}

/// Makes a directory's first block the root of an index, with its `.` and `..`.
pub fn clear_root(block: &mut [u8], own: u32, parent: u32, kind: u8, info: RootInfo) {
    block.fill(0);
    let length = block.len();
    write_entry(block, 0, 12, own, b".", kind);
    write_entry(block, 12, length - 12, parent, b"..", kind);
    (block[28], block[29], block[30]) = (info.hash_number, 8, info.levels);
}

/// Sets the levels of a root.
pub fn set_levels(block: &mut [u8], levels: u8) {
    block[30] = levels;
}

fn checksum(block: &[u8], is_root: bool, inode_seed: u32) -> Option<(usize, u32)> {
    let first = first_entry(is_root);
    let (most, count) = (usize::from(le16(block, first)), usize::from(le16(block, first + 2)));
    let tail = first + most * ENTRY;
    let used = first + count * ENTRY;
    if tail + 8 > block.len() || used > tail {
        return None;
    }
    let sum = crc32c_raw(crc32c_raw(inode_seed, &block[..used]), &block[tail..tail + 4]);
    Some((tail + 4, crc32c_raw(sum, &[0; 4])))
}

/// True if a node's checksum is right.
pub fn is_sound(block: &[u8], is_root: bool, inode_seed: u32) -> bool {
    checksum(block, is_root, inode_seed).is_some_and(|(at, sum)| le32(block, at) == sum)
}

/// Puts a node's checksum in.
pub fn sum(block: &mut [u8], is_root: bool, inode_seed: u32) {
    let (at, sum) = checksum(block, is_root, inode_seed).expect("the node was written here");
    put32(block, at, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let children: Vec<Child> = (0..9).map(|number| Child { hash: number * 16, block: number + 1 }).collect();
        for is_root in [true, false] {
            let mut block = vec![9; 1024];
            match is_root {
                true => clear_root(&mut block, 5, 2, 2, RootInfo { hash_number: 1, levels: 0 }),
                false => clear_node(&mut block),
            }
            write(&mut block, is_root, true, &children);
            sum(&mut block, is_root, 3);
            assert!(is_sound(&block, is_root, 3) && !is_sound(&block, is_root, 4));
            assert_eq!(read(&block, is_root, true, 10), Ok(children.clone()));
            assert!(read(&block, is_root, true, 9).is_err() && read(&block, is_root, false, 10).is_err());
        }
    }
}
