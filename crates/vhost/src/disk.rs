//! The disk as the guest's driver finds it: features, limits and name.
//!
//! ```text
//! configuration space, little endian
//!  0 capacity, sectors (8)      24 physical block, log2 of logical blocks (1)   36 most sectors of a discard (4)
//!  8 most bytes of a part (4)   25 offset of its first (1)                      40 most ranges of one (4)
//! 12 most parts (4)             26 least I/O, logical blocks (2)                44 alignment of one, sectors (4)
//! 16 geometry: none (4)         28 best I/O: unknown (4)                        48 most sectors of zeroing (4)
//! 20 logical block, bytes (4)   32 write back (1), 33 unused (1)                52 most ranges of one (4)
//!                               34 queues (2)                                   56 zeroing may discard (1), unused (3)
//! ```

use flashpath::random::Random;
use flashpath::units::BLOCK_BYTES;
use vhost::vhost_user::VhostUserVirtioFeatures;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO,
    VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_SIZE_MAX, VIRTIO_BLK_F_TOPOLOGY, VIRTIO_BLK_F_WRITE_ZEROES, VIRTIO_BLK_ID_BYTES,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

/// Bytes of a sector, in which the protocol counts.
pub const SECTOR: u64 = 512;
/// The most queues of a client.
pub const QUEUES: usize = 32;
/// The most entries of a queue.
pub const QUEUE_ENTRIES: usize = 1024;
/// The most ranges of a discard or of a zeroing.
pub const MOST_RANGES: usize = 64;
/// The most sectors of each: 4 GiB.
pub const MOST_SECTORS: u32 = 1 << 23;
/// The most bytes of a part of a request, and the most parts.
const PART_BYTES: u32 = 1 << 20;
const PARTS: u32 = 254;
const CONFIGURATION_BYTES: usize = 60;

/// Features, limits and name of a disk.
pub struct Disk {
    /// Bit masks of features, those of vhost-user included.
    pub features: u64,
    /// The name that the guest can ask for.
    pub serial: [u8; VIRTIO_BLK_ID_BYTES as usize],
    configuration: [u8; CONFIGURATION_BYTES],
}

impl Disk {
    /// A disk of `size_bytes`; its serial number follows from `name`.
    pub fn new(size_bytes: u64, is_read_only: bool, name: &str) -> Disk {
        let mut offered = vec![
            VIRTIO_F_VERSION_1,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_BLK_F_SIZE_MAX,
            VIRTIO_BLK_F_SEG_MAX,
            VIRTIO_BLK_F_BLK_SIZE,
            VIRTIO_BLK_F_TOPOLOGY,
            VIRTIO_BLK_F_FLUSH,
            VIRTIO_BLK_F_MQ,
        ];
        offered.extend(match is_read_only {
            true => &[VIRTIO_BLK_F_RO][..],
            false => &[VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES],
        });
        let features =
            offered.iter().fold(VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits(), |all, bit| all | 1 << bit);
        let mut serial = [0; VIRTIO_BLK_ID_BYTES as usize];
        let text = format!("flashpath-{:010x}", Random::new(0, name).bits() >> 24);
        serial.copy_from_slice(text.as_bytes());
        Disk { features, serial, configuration: configuration(size_bytes) }
    }

    /// Bytes of the configuration space; those behind its end are zero.
    pub fn configuration(&self, offset: u32, length: u32) -> Vec<u8> {
        let byte = |place: u64| self.configuration.get(place as usize).copied().unwrap_or(0);
        let offset = u64::from(offset);
        (offset..offset + u64::from(length)).map(byte).collect()
    }
}

fn configuration(size_bytes: u64) -> [u8; CONFIGURATION_BYTES] {
    let mut space = [0; CONFIGURATION_BYTES];
    let mut put = |place: usize, bytes: &[u8]| space[place..place + bytes.len()].copy_from_slice(bytes);
    // Sectors are the logical blocks, as firmware boots from no others; the device reads, changes and writes for a part of a block.
    let in_block = (BLOCK_BYTES / SECTOR) as u16;
    let most_ranges = (MOST_RANGES as u32).to_le_bytes();
    put(0, &(size_bytes / SECTOR).to_le_bytes());
    put(8, &PART_BYTES.to_le_bytes());
    put(12, &PARTS.to_le_bytes());
    put(20, &(SECTOR as u32).to_le_bytes());
    put(24, &[in_block.ilog2() as u8, 0]);
    put(26, &in_block.to_le_bytes());
    put(32, &[1]);
    put(34, &(QUEUES as u16).to_le_bytes());
    put(36, &MOST_SECTORS.to_le_bytes());
    put(40, &most_ranges);
    put(44, &u32::from(in_block).to_le_bytes());
    put(48, &MOST_SECTORS.to_le_bytes());
    put(52, &most_ranges);
    put(56, &[1]);
    space
}
