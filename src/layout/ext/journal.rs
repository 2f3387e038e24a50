//! The journal's file: its inode, and the blocks that the inode names.
//!
//! ```text
//! inode          0 mode   4 size (low)   32 flags   40 block map or extents (60 bytes)   108 size (high)
//! extent header  0 magic 0xF30A   2 entries   6 depth                               12 bytes, then entries of 12
//! extent         0 first block of the file   4 blocks   6 start (high)   8 start (low)
//! index          0 first block of the file   4 child (low)   8 child (high)
//! ```
//!
//! A block map is 12 blocks, then one block of blocks, one of blocks of blocks, and one of three levels. The blocks
//! that only name others are no part of the journal: nobody writes them while it is in use.

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, damaged};
use super::superblock::Superblock;
use std::ops::Range;

const STRUCTURE: &str = "the ext journal's inode";
const MODE_TYPE: u16 = 0xF000;
const MODE_FILE: u16 = 0x8000;
const HAS_EXTENTS: u32 = 0x80000;
const EXTENT_MAGIC: u16 = 0xF30A;
/// An extent of more blocks is an unwritten one, of so many fewer.
const WRITTEN_EXTENT_BLOCKS: u64 = 32768;
const DIRECT_BLOCKS: usize = 12;
const DEEPEST_EXTENTS: u16 = 5;

/// The journal's ranges of bytes, in the order of the file. `inode` is the byte at which its inode begins.
///
/// If the inode cannot be believed, the superblock's copy of its block map is taken instead.
pub(super) fn extents(
    device: &mut Device,
    superblock: &Superblock,
    inode: Option<u64>,
) -> Result<Vec<Range<u64>>, LayoutError> {
    let direct = match inode {
        Some(at) => from_inode(device, superblock, at),
        None => Err(damaged(STRUCTURE, "it lies in no inode table")),
    };
    match (direct, &superblock.journal_copy) {
        (Err(error), Some(copy)) => from_copy(device, superblock, copy).map_err(|_| error),
        (direct, _) => direct,
    }
}

fn from_inode(device: &mut Device, superblock: &Superblock, at: u64) -> Result<Vec<Range<u64>>, LayoutError> {
    let inode = device.read(at, 128)?;
    if inode.le16(0) & MODE_TYPE != MODE_FILE {
        return Err(damaged(STRUCTURE, "it is no plain file"));
    }
    let size = u64::from(inode.le32(108)) << 32 | u64::from(inode.le32(4));
    let map = Bytes(inode.part(40, 60).unwrap_or_default().to_vec());
    Walk::new(device, superblock, size)?.map(&map, inode.le32(32) & HAS_EXTENTS != 0)
}

fn from_copy(device: &mut Device, superblock: &Superblock, copy: &Bytes) -> Result<Vec<Range<u64>>, LayoutError> {
    let size = u64::from(copy.le32(60)) << 32 | u64::from(copy.le32(64));
    // The copy has no flags, but an extent's header begins with a number that no block of a journal can have been given
    // by accident: it would have to be followed by plausible counts, too.
    Walk::new(device, superblock, size)?.map(copy, copy.le16(0) == EXTENT_MAGIC && copy.le16(4) == 4)
}

/// The blocks of one file, as they are found.
struct Walk<'a, 'b> {
    device: &'a mut Device<'b>,
    superblock: &'a Superblock,
    /// How many blocks the file has.
    wanted: u64,
    found: u64,
    /// Blocks read on the way; a damaged tree must end somewhere.
    read: u64,
    runs: Vec<Range<u64>>,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(device: &'a mut Device<'b>, superblock: &'a Superblock, size: u64) -> Result<Walk<'a, 'b>, LayoutError> {
        let wanted = size.div_ceil(superblock.block_bytes);
        if wanted == 0 || wanted > superblock.blocks {
            return Err(damaged(STRUCTURE, format!("a journal of {size} bytes cannot be")));
        }
        Ok(Walk { device, superblock, wanted, found: 0, read: 0, runs: Vec::new() })
    }

    fn map(mut self, map: &Bytes, has_extents: bool) -> Result<Vec<Range<u64>>, LayoutError> {
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
        if self.found < self.wanted {
            let reason = format!("it names {} of its {} blocks", self.found, self.wanted);
            return Err(damaged(STRUCTURE, reason));
        }
        let block_bytes = self.superblock.block_bytes;
        Ok(self.runs.into_iter().map(|run| run.start * block_bytes..run.end * block_bytes).collect())
    }

    /// Takes `count` blocks from `first` on as the next ones of the file.
    fn take(&mut self, first: u64, count: u64) -> Result<(), LayoutError> {
        let count = count.min(self.wanted - self.found);
        let end = first.checked_add(count).filter(|end| first > 0 && *end <= self.superblock.blocks);
        let end = end.ok_or_else(|| damaged(STRUCTURE, format!("{count} blocks at block {first} are not inside")))?;
        self.found += count;
        match self.runs.last_mut() {
            Some(last) if last.end == first => last.end = end,
            _ if count > 0 => self.runs.push(first..end),
            _ => {}
        }
        Ok(())
    }

    /// A block that names others. They are at most as many as the file's own.
    fn naming_block(&mut self, block: u64) -> Result<Bytes, LayoutError> {
        self.read += 1;
        if block == 0 || block >= self.superblock.blocks || self.read > self.wanted {
            return Err(damaged(STRUCTURE, format!("block {block} cannot name blocks of the journal")));
        }
        self.device.read(block * self.superblock.block_bytes, self.superblock.block_bytes as usize)
    }

    /// The blocks behind one pointer of a block map, `level` naming blocks away.
    fn pointed(&mut self, block: u32, level: usize) -> Result<(), LayoutError> {
        if self.found == self.wanted {
            return Ok(());
        }
        if level == 0 {
            return self.take(u64::from(block), 1);
        }
        let names = self.naming_block(u64::from(block))?;
        for index in 0..names.0.len() / 4 {
            self.pointed(names.le32(index * 4), level - 1)?;
        }
        Ok(())
    }

    /// The extents of a node, which is at `depth` if a node above it said so.
    fn extents(&mut self, node: &Bytes, depth: Option<u16>) -> Result<(), LayoutError> {
        let (magic, entries, at_depth) = (node.le16(0), usize::from(node.le16(2)), node.le16(6));
        let fits = 12 + entries * 12 <= node.0.len() && at_depth <= DEEPEST_EXTENTS;
        if magic != EXTENT_MAGIC || !fits || depth.is_some_and(|depth| depth != at_depth) {
            return Err(damaged(STRUCTURE, "a node of its extents is none"));
        }
        for entry in (1..=entries).map(|number| number * 12) {
            if at_depth == 0 {
                let blocks = u64::from(node.le16(entry + 4));
                let blocks = if blocks > WRITTEN_EXTENT_BLOCKS { blocks - WRITTEN_EXTENT_BLOCKS } else { blocks };
                self.take(u64::from(node.le16(entry + 6)) << 32 | u64::from(node.le32(entry + 8)), blocks)?;
            } else {
                let child = u64::from(node.le16(entry + 8)) << 32 | u64::from(node.le32(entry + 4));
                let child = self.naming_block(child)?;
                self.extents(&child, Some(at_depth - 1))?;
            }
        }
        Ok(())
    }
}
