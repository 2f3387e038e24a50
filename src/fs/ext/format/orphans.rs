//! The file of orphans: the numbers of inodes that have no name, or are to be cut off, and are in use.
//!
//! ```text
//! a block    0 inodes (4 each), 0 where there is none      the last 8 bytes: magic 0x0B10CA04, checksum
//! ```

use super::bytes::{le32, put32};
use super::checksum::crc32c_raw;

const MAGIC: u32 = 0x0B10_CA04;
const TAIL: usize = 8;

/// The inodes in a block of the file. `seed`: that of its inode, if the volume has checksums. Fails with the fault.
pub fn read(block: &[u8], place: u64, seed: Option<u32>) -> Result<Vec<u32>, String> {
    let end = block.len() - TAIL;
    if le32(block, end) != MAGIC {
        return Err(format!("its magic number is {:#010x}, and should be {MAGIC:#010x}", le32(block, end)));
    }
    let sum = seed.map(|seed| checksum(block, place, seed));
    if sum.is_some_and(|sum| sum != le32(block, end + 4)) {
        return Err(format!("its checksum should be {:08x}", le32(block, end + 4)));
    }
    Ok(block[..end].chunks_exact(4).map(|number| le32(number, 0)).filter(|number| *number != 0).collect())
}

fn checksum(block: &[u8], place: u64, seed: u32) -> u32 {
    crc32c_raw(crc32c_raw(seed, &place.to_le_bytes()), &block[..block.len() - TAIL])
}

/// Makes a block of the file empty.
pub fn clear(block: &mut [u8], place: u64, seed: Option<u32>) {
    block.fill(0);
    let end = block.len() - TAIL;
    put32(block, end, MAGIC);
    if let Some(seed) = seed {
        let sum = checksum(block, place, seed);
        put32(block, end + 4, sum);
    }
}
