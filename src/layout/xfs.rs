//! XFS: its log is one extent that the superblock names; each allocation group begins with four headers.
//!
//! The superblock's fields, big endian, from the start of the device (XFS Algorithms and Data Structures, 3rd edition,
//! "Superblocks"):
//!
//! ```text
//! 0 magic "XFSB"   4 block size   8 data blocks   48 log's first block   84 blocks of a group   88 groups
//! 96 log's blocks   102 sector size   120 log2(block size)   124 log2(blocks of a group), rounded up
//! ```

use super::bytes::Device;
use super::{FileSystem, Journal, Layout, LayoutError, Region, Regions, damaged};

const STRUCTURE: &str = "the xfs superblock";
/// The sectors of headers in each group: superblock, free space, inodes and free list.
const GROUP_HEADERS: u64 = 4;

/// The layout, or `None` if the device holds no XFS.
pub(super) fn read(device: &mut Device) -> Result<Option<Layout>, LayoutError> {
    let Some(superblock) = device.read_if_there(0, 512)? else { return Ok(None) };
    if superblock.part(0, 4) != Some(b"XFSB") {
        return Ok(None);
    }
    let block_bytes = u64::from(superblock.be32(4));
    let sector_bytes = u64::from(superblock.be16(102));
    if !block_bytes.is_power_of_two() || !(512..=65536).contains(&block_bytes) {
        return Err(damaged(STRUCTURE, format!("a block of {block_bytes} bytes is not a power of two up to 65536")));
    }
    if !sector_bytes.is_power_of_two() || !(512..=32768).contains(&sector_bytes) {
        return Err(damaged(STRUCTURE, format!("a sector of {sector_bytes} bytes is not a power of two up to 32768")));
    }
    let blocks = superblock.be64(8);
    let all = device.size_bytes / block_bytes;
    if blocks == 0 || blocks > all {
        return Err(damaged(STRUCTURE, format!("it counts {blocks} blocks, the device has {all}")));
    }
    let group_blocks = u64::from(superblock.be32(84));
    let groups = u64::from(superblock.be32(88));
    if group_blocks == 0 || groups != blocks.div_ceil(group_blocks) {
        return Err(damaged(STRUCTURE, format!("{groups} groups of {group_blocks} blocks are not {blocks} blocks")));
    }
    let shift = u32::from(superblock.u8(124));
    if shift >= 32 || 1u64 << shift < group_blocks {
        return Err(damaged(STRUCTURE, format!("{shift} bits do not number {group_blocks} blocks")));
    }

    let headers = GROUP_HEADERS * sector_bytes;
    let mut regions: Vec<_> = (0..groups)
        .map(|group| group * group_blocks * block_bytes)
        .map(|start| (start..start + headers, Region::Metadata))
        .collect();
    let (log_start, log_blocks) = (superblock.be64(48), u64::from(superblock.be32(96)));
    let journal = if log_start == 0 { Journal::External } else { Journal::Inside };
    if journal == Journal::Inside {
        // A block number is the group number above `shift` bits, and the block in the group below.
        let (group, within) = (log_start >> shift, log_start & ((1 << shift) - 1));
        let first = group.checked_mul(group_blocks).and_then(|first| first.checked_add(within));
        let end = first.and_then(|first| first.checked_add(log_blocks)).filter(|end| *end <= blocks);
        let (Some(first), Some(end)) = (first.filter(|_| log_blocks > 0), end) else {
            return Err(damaged(STRUCTURE, format!("a log of {log_blocks} blocks at {log_start} is not inside")));
        };
        regions.push((first * block_bytes..end * block_bytes, Region::Journal));
    }
    Ok(Some(Layout { file_system: FileSystem::Xfs, block_bytes, journal, regions: Regions::new(regions) }))
}
