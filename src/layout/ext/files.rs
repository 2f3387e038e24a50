//! A file's blocks: by extents, or by a block map.
//!
//! ```text
//! extent header  0 magic 0xF30A   2 entries   6 depth                               12 bytes, then entries of 12
//! extent         0 first block of the file   4 blocks   6 start (high)   8 start (low)
//! index          0 first block of the file   4 child (low)   8 child (high)
//! ```
//!
//! A block map is 12 blocks, then an indirect, a double indirect and a triple indirect block. Zero is a hole.

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, damaged};
use super::superblock::Superblock;
use crate::fs::ext::format::extents::{DEEPEST, Extent, MAGIC as EXTENT_MAGIC};
use std::ops::Range;

const STRUCTURE: &str = "the block list of an ext inode";
const DIRECT_BLOCKS: usize = 12;

/// The blocks of one file.
#[derive(Debug, Default)]
pub(super) struct FileBlocks {
    /// The runs of the file's blocks, in file order.
    pub runs: Vec<Range<u64>>,
    /// The indirect and extent blocks.
    pub naming: Vec<u64>,
}

/// Walks block lists. The total of indirect and extent blocks is bounded by the file system's size, so a damaged tree
/// ends.
pub(super) struct Walker<'a, 'b> {
    device: &'a mut Device<'b>,
    superblock: &'a Superblock,
    may_read: u64,
    found: FileBlocks,
}

impl<'a, 'b> Walker<'a, 'b> {
    pub fn new(device: &'a mut Device<'b>, superblock: &'a Superblock) -> Walker<'a, 'b> {
        Walker { device, superblock, may_read: superblock.blocks, found: FileBlocks::default() }
    }

    /// The device, for use between two files.
    pub fn device(&mut self) -> &mut Device<'b> {
        self.device
    }

    /// The blocks of the inode whose block list is `map` (60 bytes).
    pub fn file(&mut self, map: &Bytes, has_extents: bool) -> Result<FileBlocks, LayoutError> {
        self.found = FileBlocks::default();
        if has_extents {
            self.extents(map, None)?;
        } else {
            for index in 0..DIRECT_BLOCKS {
                self.pointed(map.le32(index * 4), 0)?;
            }
            for level in 1..=3 {
                self.pointed(map.le32((DIRECT_BLOCKS - 1 + level) * 4), level)?;
            }
        }
        Ok(std::mem::take(&mut self.found))
    }

    /// Appends `count` blocks from `first` to the file.
    fn take(&mut self, first: u64, count: u64) -> Result<(), LayoutError> {
        let end = first.checked_add(count).filter(|end| first > 0 && *end <= self.superblock.blocks);
        let end = end.ok_or_else(|| damaged(STRUCTURE, format!("{count} blocks at block {first} are not inside")))?;
        match self.found.runs.last_mut() {
            Some(last) if last.end == first => last.end = end,
            _ if count > 0 => self.found.runs.push(first..end),
            _ => {}
        }
        Ok(())
    }

    fn naming_block(&mut self, block: u64) -> Result<Bytes, LayoutError> {
        if block == 0 || block >= self.superblock.blocks || self.may_read == 0 {
            return Err(damaged(STRUCTURE, format!("block {block} cannot name blocks of a file")));
        }
        self.may_read -= 1;
        self.found.naming.push(block);
        self.device.read(block * self.superblock.block_bytes, self.superblock.block_bytes as usize)
    }

    /// Walks a pointer of a block map that is `level` levels above the data.
    fn pointed(&mut self, block: u32, level: usize) -> Result<(), LayoutError> {
        match (block, level) {
            (0, _) => Ok(()),
            (_, 0) => self.take(u64::from(block), 1),
            _ => {
                let names = self.naming_block(u64::from(block))?;
                (0..names.0.len() / 4).try_for_each(|index| self.pointed(names.le32(index * 4), level - 1))
            }
        }
    }

    /// Walks an extent node, which is at `depth` if its parent said so.
    fn extents(&mut self, node: &Bytes, depth: Option<u16>) -> Result<(), LayoutError> {
        let (magic, entries, at_depth) = (node.le16(0), usize::from(node.le16(2)), node.le16(6));
        let fits = 12 + entries * 12 <= node.0.len() && at_depth <= DEEPEST;
        if magic != EXTENT_MAGIC || !fits || depth.is_some_and(|depth| depth != at_depth) {
            return Err(damaged(STRUCTURE, "a node of its extents is none"));
        }
        for entry in (1..=entries).map(|number| number * 12) {
            if at_depth == 0 {
                let extent = Extent::read(&node.0[entry..]);
                self.take(extent.place, extent.count.into())?;
            } else {
                let child = u64::from(node.le16(entry + 8)) << 32 | u64::from(node.le32(entry + 4));
                let child = self.naming_block(child)?;
                self.extents(&child, Some(at_depth - 1))?;
            }
        }
        Ok(())
    }
}
