//! The super block of a metadata set, byte by byte. Little-endian; the rest of the 4 KiB is zero.
//!
//! ```text
//!  0  u32  magic 0x445A4244      24  u32  blocks of a set         48  [32]  label
//!  4  u32  version 2             28  u32  reserved zones          80  [16]  volume's uuid
//!  8  u64  generation            32  u32  chunks                  96  [16]  device's uuid
//! 16  u64  own place, in blocks  36  u32  map blocks             112  zero
//!                                40  u32  bitmap blocks
//!                                44  u32  checksum
//! ```
//!
//! The checksum is a reflected CRC-32 (polynomial 0xEDB88320) over the 4 KiB with its own field zero; the initial value
//! is the low half of the generation, without a final inversion.

use super::error::{ZonedVolumeError, damaged};
use crate::units::BLOCK_BYTES;

const MAGIC: u32 = 0x445A_4244;
const VERSION: u32 = 2;
/// The bytes of the checksum.
const CHECKSUM: std::ops::Range<usize> = 44..48;

/// The identity of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name: at most 31 bytes, padded with zeros.
    pub label: [u8; 32],
    /// Its UUID.
    pub volume: [u8; 16],
}

impl Identity {
    /// The label as text.
    pub fn label_text(&self) -> String {
        let end = self.label.iter().position(|&byte| byte == 0).unwrap_or(self.label.len());
        String::from_utf8_lossy(&self.label[..end]).into_owned()
    }
}

/// A super block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperBlock {
    /// The number of commits of the set; 0 in a super block that only identifies a device.
    pub generation: u64,
    /// Its own block, counted over all zones.
    pub place: u64,
    /// The number of blocks of the set: the super block, the map, the bitmaps.
    pub set_blocks: u32,
    /// Sequential zones reserved for reclaim.
    pub reserved_zones: u32,
    /// The number of chunks of the volume.
    pub chunks: u32,
    /// The number of blocks of the map.
    pub map_blocks: u32,
    /// The number of blocks of the bitmaps.
    pub bitmap_blocks: u32,
    /// The identity of the volume.
    pub identity: Identity,
    /// The UUID of its device.
    pub device: [u8; 16],
}

fn checksum(bytes: &[u8], generation: u64) -> u32 {
    // The crate inverts at both ends, the format at neither.
    let mut crc = crc32fast::Hasher::new_with_initial(!(generation as u32));
    crc.update(&bytes[..CHECKSUM.start]);
    crc.update(&[0; 4]);
    crc.update(&bytes[CHECKSUM.end..]);
    !crc.finalize()
}

impl SuperBlock {
    /// Encodes it into 4 KiB.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES as usize];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC.to_le_bytes());
        put(4, &VERSION.to_le_bytes());
        put(8, &self.generation.to_le_bytes());
        put(16, &self.place.to_le_bytes());
        for (at, value) in [
            (24, self.set_blocks),
            (28, self.reserved_zones),
            (32, self.chunks),
            (36, self.map_blocks),
            (40, self.bitmap_blocks),
        ] {
            put(at, &value.to_le_bytes());
        }
        put(48, &self.identity.label);
        put(80, &self.identity.volume);
        put(96, &self.device);
        let sum = checksum(&bytes, self.generation);
        bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The super block that identifies a zoned device of a volume.
    pub fn of_member(volume: &SuperBlock, place: u64, device: [u8; 16]) -> SuperBlock {
        let nothing =
            SuperBlock { generation: 0, set_blocks: 0, chunks: 0, map_blocks: 0, bitmap_blocks: 0, ..volume.clone() };
        SuperBlock { place, device, ..nothing }
    }

    /// True if the bytes have the magic number.
    pub fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC.to_le_bytes())
    }

    /// Decodes the 4 KiB at `place`. Sizes are not validated against the devices yet.
    pub fn read(bytes: &[u8], place: u64) -> Result<SuperBlock, ZonedVolumeError> {
        let array = |at: usize| -> [u8; 4] { bytes[at..at + 4].try_into().expect("four bytes") };
        let number = |at: usize| u32::from_le_bytes(array(at));
        let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        let wrong = |field, found: String, expected: String| {
            damaged(format!("the super block at block {place}"), field, found, expected)
        };
        if number(0) != MAGIC {
            return Err(wrong("magic", format!("{:#010x}", number(0)), format!("{MAGIC:#010x}")));
        }
        if number(4) != VERSION {
            return Err(wrong("version", number(4).to_string(), format!("{VERSION}")));
        }
        let generation = long(8);
        let (found, expected) = (number(CHECKSUM.start), checksum(bytes, generation));
        if found != expected {
            return Err(wrong("checksum", format!("{found:#010x}"), format!("{expected:#010x}")));
        }
        if long(16) != place {
            return Err(wrong("place", long(16).to_string(), place.to_string()));
        }
        let uuid = |at: usize| -> [u8; 16] { bytes[at..at + 16].try_into().expect("sixteen bytes") };
        let identity = Identity { label: bytes[48..80].try_into().expect("32 bytes"), volume: uuid(80) };
        for (field, value) in [("volume uuid", identity.volume), ("device uuid", uuid(96))] {
            if value == [0; 16] {
                return Err(wrong(field, "zero".to_string(), "a number of its own".to_string()));
            }
        }
        Ok(SuperBlock {
            generation,
            place,
            set_blocks: number(24),
            reserved_zones: number(28),
            chunks: number(32),
            map_blocks: number(36),
            bitmap_blocks: number(40),
            identity,
            device: uuid(96),
        })
    }
}
