//! The journal's file: its inode, or the superblock's copy of what that names.

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, damaged};
use super::files::{EXTENT_MAGIC, Walker};
use super::inode::{INODE_BYTES, Inode};
use super::superblock::Superblock;
use std::ops::Range;

const STRUCTURE: &str = "the ext journal's inode";

/// The journal's ranges of bytes, in the order of the file. `inode` is the byte at which its inode begins.
///
/// Blocks that only name others are no part of it: nobody writes them while it is in use. If the inode cannot be
/// believed, the superblock's copy of its block map is taken instead.
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
    let inode = Inode(device.read(at, INODE_BYTES)?);
    if !inode.is_file() {
        return Err(damaged(STRUCTURE, "it is no plain file"));
    }
    whole(device, superblock, inode.size(), &inode.map(), inode.has_extents())
}

fn from_copy(device: &mut Device, superblock: &Superblock, copy: &Bytes) -> Result<Vec<Range<u64>>, LayoutError> {
    let size = u64::from(copy.le32(60)) << 32 | u64::from(copy.le32(64));
    let map = Bytes(copy.part(0, 60).unwrap_or_default().to_vec());
    // The copy has no flags. An extent's header says that it has room for four; as a block map, it would name the
    // journal's first two blocks in no order that mkfs gives them.
    whole(device, superblock, size, &map, copy.le16(0) == EXTENT_MAGIC && copy.le16(4) == 4)
}

/// The bytes of a file that must have all its blocks.
fn whole(
    device: &mut Device,
    superblock: &Superblock,
    size: u64,
    map: &Bytes,
    has_extents: bool,
) -> Result<Vec<Range<u64>>, LayoutError> {
    let block_bytes = superblock.block_bytes;
    let wanted = size.div_ceil(block_bytes);
    let mut left = wanted;
    let mut ranges = Vec::new();
    for run in Walker::new(device, superblock).file(map, has_extents)?.runs {
        let end = run.end.min(run.start.saturating_add(left));
        left -= end - run.start;
        if end > run.start {
            ranges.push(run.start * block_bytes..end * block_bytes);
        }
    }
    if wanted == 0 || left > 0 {
        return Err(damaged(STRUCTURE, format!("it names {} of its {wanted} blocks", wanted - left)));
    }
    Ok(ranges)
}
