//! The descriptor of a block group, of 32 bytes or, with `64bit`, 64 and more:
//!
//! ```text
//!  0 block bitmap   4 inode bitmap   8 inode table     (low halves; 32, 36, 40 the high ones)
//! 12 free blocks (2)  14 free inodes (2)  16 directories (2)  18 flags (2)
//! 24 sum of block bitmap (2)  26 of inode bitmap (2)  28 inodes never used (2)  30 checksum (2)
//! 44 free blocks  46 free inodes  48 directories  50 never used  56, 58 sums of bitmaps   (high halves, 2 each)
//! ```

use super::bytes::{joined, le16, le32, put16, put32};
use super::checksum::{Checksums, crc16, crc32c_raw};

/// Its flags.
pub mod flag {
    /// The inode bitmap was never written: no inode is in use.
    pub const NO_INODES: u16 = 1;
    /// The block bitmap was never written: only metadata is in use.
    pub const NO_BLOCKS: u16 = 2;
}

/// The descriptor of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    pub block_bitmap: u64,
    pub inode_bitmap: u64,
    pub inode_table: u64,
    pub free_blocks: u32,
    pub free_inodes: u32,
    pub directories: u32,
    pub flags: u16,
    /// Inodes at the end of the table that were never used.
    pub never_used: u32,
    pub block_bitmap_sum: u32,
    pub inode_bitmap_sum: u32,
}

fn halves(bytes: &[u8], low: usize, high: usize) -> u32 {
    let high = if bytes.len() >= 64 { u32::from(le16(bytes, high)) << 16 } else { 0 };
    high | u32::from(le16(bytes, low))
}

fn put_halves(bytes: &mut [u8], low: usize, high: usize, number: u32) {
    put16(bytes, low, number as u16);
    if bytes.len() >= 64 {
        put16(bytes, high, (number >> 16) as u16);
    }
}

impl Descriptor {
    /// That in these bytes, of the length of a descriptor.
    pub fn read(bytes: &[u8]) -> Descriptor {
        let place = |low: usize| joined(if bytes.len() >= 64 { le32(bytes, low + 32) } else { 0 }, le32(bytes, low));
        Descriptor {
            block_bitmap: place(0),
            inode_bitmap: place(4),
            inode_table: place(8),
            free_blocks: halves(bytes, 12, 44),
            free_inodes: halves(bytes, 14, 46),
            directories: halves(bytes, 16, 48),
            flags: le16(bytes, 18),
            never_used: halves(bytes, 28, 50),
            block_bitmap_sum: halves(bytes, 24, 56),
            inode_bitmap_sum: halves(bytes, 26, 58),
        }
    }

    /// Puts it into these bytes, with its checksum; bytes without a field stay.
    pub fn write(&self, bytes: &mut [u8], group: u32, checksums: Checksums) {
        for (at, place) in [(0, self.block_bitmap), (4, self.inode_bitmap), (8, self.inode_table)] {
            put32(bytes, at, place as u32);
            if bytes.len() >= 64 {
                put32(bytes, at + 32, (place >> 32) as u32);
            }
        }
        put_halves(bytes, 12, 44, self.free_blocks);
        put_halves(bytes, 14, 46, self.free_inodes);
        put_halves(bytes, 16, 48, self.directories);
        put16(bytes, 18, self.flags);
        put_halves(bytes, 28, 50, self.never_used);
        put_halves(bytes, 24, 56, self.block_bitmap_sum);
        put_halves(bytes, 26, 58, self.inode_bitmap_sum);
        let sum = checksum(bytes, group, checksums);
        put16(bytes, 30, sum);
    }

    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// The checksum of a descriptor's bytes; 0 if the volume has none.
pub fn checksum(bytes: &[u8], group: u32, checksums: Checksums) -> u16 {
    let number = group.to_le_bytes();
    match checksums {
        Checksums::None => 0,
        Checksums::Groups(uuid) => {
            let before = crc16(crc16(crc16(!0, &uuid), &number), &bytes[..30]);
            crc16(before, &bytes[32..])
        }
        Checksums::All(seed) => {
            let before = crc32c_raw(crc32c_raw(seed, &number), &bytes[..30]);
            crc32c_raw(crc32c_raw(before, &[0, 0]), &bytes[32..]) as u16
        }
    }
}

/// The checksum of a bitmap, as far as a descriptor of this length can hold it; `None` if the volume has none.
pub fn bitmap_sum(bitmap: &[u8], descriptor_bytes: usize, checksums: Checksums) -> Option<u32> {
    let sum = crc32c_raw(checksums.seed()?, bitmap);
    Some(if descriptor_bytes >= 64 { sum } else { sum & 0xFFFF })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_read_as_it_was_written() {
        let descriptor = Descriptor {
            block_bitmap: 0x1_0000_0003,
            inode_bitmap: 4,
            inode_table: 5,
            free_blocks: 0x1_0006,
            free_inodes: 7,
            directories: 8,
            flags: flag::NO_BLOCKS,
            never_used: 0x2_0009,
            block_bitmap_sum: 0xABCD_1234,
            inode_bitmap_sum: 10,
        };
        for checksums in [Checksums::None, Checksums::Groups([3; 16]), Checksums::All(5)] {
            let mut bytes = [0; 64];
            descriptor.write(&mut bytes, 3, checksums);
            assert_eq!(Descriptor::read(&bytes), descriptor);
            assert_eq!(le16(&bytes, 30), checksum(&bytes, 3, checksums));
            assert!(checksums == Checksums::None || checksum(&bytes, 4, checksums) != le16(&bytes, 30));
        }
    }
}
