//! Checksums of structures.
//!
//! With `metadata_csum` every structure has a CRC-32C, begun from the volume's seed (the CRC of its UUID, or a number in
//! the superblock) and, for structures of an inode, from the inode's number and generation. With `uninit_bg` alone,
//! group descriptors have a CRC-16.

use super::bytes::le32;
use super::features::{CSUM_SEED, Features, GDT_CSUM, METADATA_CSUM};

/// CRC-32C without the complement at its beginning and end, as ext4 and jbd2 chain it.
pub fn crc32c_raw(seed: u32, bytes: &[u8]) -> u32 {
    // The crate complements before and after.
    !crate::crc::crc32c_append(!seed, bytes)
}

/// The byte and the bit of a message of `length` bytes whose flip changes its CRC-32C by `change`; `None` if none does. No
/// two do: the polynomial tells messages apart that differ in one or two bits.
pub fn flipped_bit(change: u32, length: usize) -> Option<(usize, u8)> {
    // The change by a flip of each bit of the byte at hand: the checksum is linear.
    let mut changes: [u32; 8] = std::array::from_fn(|bit| crc32c_raw(0, &[1 << bit]));
    for at in (0..length).rev() {
        if let Some(bit) = changes.iter().position(|one| *one == change) {
            return Some((at, 1 << bit));
        }
        changes.iter_mut().for_each(|one| *one = crc32c_raw(*one, &[0]));
    }
    None
}

/// CRC-32 as the kernel's `crc32_be` has it: the highest bit first, without a complement at its end.
pub fn crc32_be(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc & 0x8000_0000 == 0 { crc << 1 } else { crc << 1 ^ 0x04C1_1DB7 }
        })
    })
}

/// CRC-16 with the reflected polynomial 0x8005, as group descriptors have it.
pub fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xA001 })
    })
}

/// The checksums that a volume has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// None.
    None,
    /// CRC-16 of group descriptors; the volume's UUID.
    Groups([u8; 16]),
    /// CRC-32C of all metadata; the seed.
    All(u32),
}

impl Checksums {
    /// Those of a superblock: 104 UUID, 624 seed.
    pub fn of_superblock(bytes: &[u8], features: &Features) -> Checksums {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[104..120]);
        if features.has(METADATA_CSUM) {
            let seed = if features.has(CSUM_SEED) { le32(bytes, 624) } else { crc32c_raw(!0, &uuid) };
            Checksums::All(seed)
        } else if features.has(GDT_CSUM) {
            Checksums::Groups(uuid)
        } else {
            Checksums::None
        }
    }

    /// True if groups may be marked as never used.
    pub fn cover_groups(self) -> bool {
        self != Checksums::None
    }

    /// The seed, if all metadata has checksums.
    pub fn seed(self) -> Option<u32> {
        match self {
            Checksums::All(seed) => Some(seed),
            Checksums::None | Checksums::Groups(_) => None,
        }
    }

    /// The seed of an inode's structures.
    pub fn inode_seed(self, inode: u32, generation: u32) -> Option<u32> {
        let seed = self.seed()?;
        Some(crc32c_raw(crc32c_raw(seed, &inode.to_le_bytes()), &generation.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_have_the_published_check_values() {
        assert_eq!(!crc32c_raw(!0, b"123456789"), 0xE306_9283);
        assert_eq!(crc16(0, b"123456789"), 0xBB3D);
        let whole = crc32c_raw(!0, b"123456789");
        assert_eq!(crc32c_raw(crc32c_raw(!0, b"1234"), b"56789"), whole);
        // CRC-32/MPEG-2.
        assert_eq!(crc32_be(crc32_be(!0, b"1234"), b"56789"), 0x0376_E6E7);
    }

    #[test]
    fn a_flipped_bit_is_found_by_what_it_changes() {
        let message: Vec<u8> = (0..4096u32).map(|at| ((at * 37) >> 3) as u8).collect();
        let sum = crc32c_raw(!0, &message);
        for at in (0..4096).step_by(13) {
            let (mut flipped, bit) = (message.clone(), 1 << (at % 8));
            flipped[at] ^= bit;
            assert_eq!(flipped_bit(sum ^ crc32c_raw(!0, &flipped), 4096), Some((at, bit)));
            flipped[(at * 7 + 1) % 4096] ^= 1;
            assert_eq!(flipped_bit(sum ^ crc32c_raw(!0, &flipped), 4096), None, "two bits are flipped");
        }
    }
}
