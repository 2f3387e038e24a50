//! btrfs: a chunk holds data or metadata, unless the file system was made with mixed groups.
//!
//! The superblock's fields, little endian, from byte 65536 (btrfs documentation, "On-disk format"):
//!
//! ```text
//! 48 its own place   64 magic "_BHRfS_M"   88 chunk tree's root   112 bytes of all devices   144 sector size
//! 148 node size   160 length of the system chunks   199 chunk tree's level   201 device: number, bytes
//! 811 system chunks: key, chunk, key, chunk, ...
//! ```
//!
//! Log tree blocks (of an fsync) lie in metadata chunks and count as metadata. The superblock is written in place to up
//! to three mirrors. A zoned btrfs keeps it elsewhere and is not recognised.

mod chunks;

use super::bytes::Device;
use super::{FileSystem, Journal, Layout, LayoutError, Region, Regions, damaged};
use chunks::{Chunks, Node, Tree};

const STRUCTURE: &str = "the btrfs superblock";
const MIRRORS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
const SUPERBLOCK_BYTES: usize = 4096;
const SYSTEM_CHUNKS: usize = 811;
const SYSTEM_CHUNKS_BYTES: usize = 2048;

/// The layout, or `None` if the device holds no btrfs.
pub(super) fn read(device: &mut Device) -> Result<Option<Layout>, LayoutError> {
    let Some(superblock) = device.read_if_there(MIRRORS[0], SUPERBLOCK_BYTES)? else { return Ok(None) };
    if superblock.part(64, 8) != Some(b"_BHRfS_M") || superblock.le64(48) != MIRRORS[0] {
        return Ok(None);
    }
    let sector_bytes = u64::from(superblock.le32(144));
    let node_bytes = superblock.le32(148);
    for (name, bytes) in [("sector", sector_bytes), ("node", u64::from(node_bytes))] {
        if !bytes.is_power_of_two() || !(512..=65536).contains(&bytes) {
            return Err(damaged(STRUCTURE, format!("a {name} of {bytes} bytes is not a power of two up to 65536")));
        }
    }
    let device_number = superblock.le64(201);
    let system_bytes = superblock.le32(160) as usize;
    let system = superblock.part(SYSTEM_CHUNKS, system_bytes).filter(|_| system_bytes <= SYSTEM_CHUNKS_BYTES);
    let Some(system) = system else {
        return Err(damaged(STRUCTURE, format!("{system_bytes} bytes of system chunks do not fit 2048")));
    };
    let mut chunks = Chunks::new(device_number, device.size_bytes);
    chunks.add_system(system)?;
    let tree =
        Tree { node_bytes: node_bytes as usize, root: Node { at: superblock.le64(88), level: superblock.u8(199) } };
    chunks.add_tree(device, &tree)?;

    let mirrors = MIRRORS
        .into_iter()
        .filter(|at| at + SUPERBLOCK_BYTES as u64 <= device.size_bytes)
        .map(|at| (at..at + SUPERBLOCK_BYTES as u64, Region::Metadata));
    let regions = Regions::new(chunks.regions().chain(mirrors));
    Ok(Some(Layout { file_system: FileSystem::Btrfs, block_bytes: sector_bytes, journal: Journal::None, regions }))
}
