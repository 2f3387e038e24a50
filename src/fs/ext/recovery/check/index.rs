//! The index of a hashed directory: each block behind the root is a node or a block of names, once.

use super::Check;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::format::bytes::{le16, le32};
use crate::fs::ext::format::hash::HashKind;
use crate::fs::ext::format::index::{self, Child};
use std::collections::{BTreeMap, BTreeSet};

/// An index whose structure is sound.
pub(super) struct Index {
    pub kind: HashKind,
    /// Blocks of the directory that hold nodes, the root among them.
    pub nodes: BTreeSet<u64>,
    /// The hashes of each block of names: from the first on, up to the second.
    pub ranges: BTreeMap<u64, (u32, Option<u64>)>,
}

impl Check<'_> {
    /// Reads the index of a directory with these blocks. Fails with the fault.
    pub(super) fn read_index(&self, blocks: &[Bytes], seed: Option<u32>) -> Result<Index, String> {
        let has_tail = self.parts.metadata.shape.has_checksums();
        let count = blocks.len() as u64;
        let node = |number: u64| -> Result<Vec<Child>, String> {
            let (block, is_root) = (&blocks[number as usize], number == 0);
            if seed.is_some_and(|seed| !index::is_sound(block, is_root, seed)) {
                return Err(format!("the checksum of node {number} is wrong"));
            }
            // To programs without indexes the root has '.' and '..' alone, and a node one free entry.
            let (at, length) = if is_root { (12, block.len() - 12) } else { (0, block.len()) };
            if usize::from(le16(block, at + 4)) != length || !is_root && le32(block, 0) != 0 {
                return Err(format!("node {number} does not end with an entry up to its end"));
            }
            index::read(block, is_root, has_tail, count)
        };
        let info = index::read_root_info(&blocks[0])?;
        let kind = HashKind::of(info.hash_number, self.parts.metadata.shape.has_unsigned_hashes);
        let kind = kind.ok_or_else(|| format!("its hash has the number {}", info.hash_number))?;
        let mut nodes = BTreeSet::from([0]);
        // Hashes with the blocks that begin with them.
        let mut level = node(0)?;
        for _ in 0..info.levels {
            let mut below = Vec::new();
            for child in &level {
                if !nodes.insert(child.block.into()) {
                    return Err(format!("block {} is there twice", child.block));
                }
                let mut children = node(child.block.into())?;
                children[0].hash = child.hash;
                below.append(&mut children);
            }
            level = below;
        }
        let mut ranges = BTreeMap::new();
        for (at, child) in level.iter().enumerate() {
            // A hash whose lowest bit is set goes on in the next block.
            let end = level.get(at + 1).map(|next| u64::from(next.hash & !1) + u64::from(next.hash & 1));
            let number = u64::from(child.block);
            if nodes.contains(&number) || ranges.insert(number, (child.hash & !1, end)).is_some() {
                return Err(format!("block {number} is there twice"));
            }
            if level.get(at + 1).is_some_and(|next| next.hash < child.hash) {
                return Err(format!("hash {:08x} is behind a greater one", child.hash));
            }
        }
        match (0..count).find(|number| !nodes.contains(number) && !ranges.contains_key(number)) {
            Some(number) => Err(format!("it does not name block {number}")),
            None => Ok(Index { kind, nodes, ranges }),
        }
    }
}
