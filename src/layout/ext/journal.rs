//! Locates the journal: by its inode, or by the copy of the inode's block list in the superblock.

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, damaged};
use super::files::Walker;
use super::inode::{INODE_BYTES, Inode};
use super::superblock::Superblock;
use crate::fs::ext::format::extents::MAGIC as EXTENT_MAGIC;
use std::ops::Range;

const STRUCTURE: &str = "the ext journal's inode";

/// The journal's byte ranges, in file order. `inode` is the byte address of its inode.
///
/// Indirect and extent blocks are excluded: they are not written while the journal is in use. If the inode is invalid,
/// the superblock's copy of its block map is used.
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
        return Err(damaged(STRUCTURE, "it is not a regular file"));
    }
    whole(device, superblock, inode.size(), &inode.map(), inode.has_extents())
}

fn from_copy(device: &mut Device, superblock: &Superblock, copy: &Bytes) -> Result<Vec<Range<u64>>, LayoutError> {
    let size = u64::from(copy.le32(60)) << 32 | u64::from(copy.le32(64));
    let map = Bytes(copy.part(0, 60).unwrap_or_default().to_vec());
    // The copy has no flags. An extent header has room for four entries; read as a block map, it would name the
    // journal's first two blocks in an order that mkfs never gives them.
    whole(device, superblock, size, &map, copy.le16(0) == EXTENT_MAGIC && copy.le16(4) == 4)
}

/// The byte ranges of a file without holes.
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
