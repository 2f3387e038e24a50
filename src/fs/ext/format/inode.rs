//! The inode, of 128 bytes and more:
//!
//! ```text
//!   0 mode (2)  2 user (2)  4 size (low)  8 accessed  12 changed  16 modified  20 deleted, or the next orphan
//!  24 group (2)  26 links (2)  28 blocks of 512 bytes (low)  32 flags  40 map (60)  100 generation
//! 104 block of attributes (low)  108 size (high)  116 blocks (high, 2)  118 block of attributes (high, 2)
//! 120 user (high, 2)  122 group (high, 2)  124 checksum (low, 2)
//! 128 extra bytes (2)  130 checksum (high, 2)  132 changed, 136 modified, 140 accessed: more bits
//! 144 made  148 more bits of it
//! ```
//!
//! More bits of a time: the lowest two are those above 32 of the seconds, the others are nanoseconds.

use super::bytes::{joined, le16, le32, put16, put32};
use super::checksum::{Checksums, crc32c_raw};
use crate::fs::volume::{FileKind, Timestamp};

pub const MAP: usize = 40;
pub const MAP_BYTES: usize = 60;
const GENERATION: usize = 100;
const SUM_LOW: usize = 124;
const EXTRA: usize = 128;
const SUM_HIGH: usize = 130;

/// The flags of an inode.
pub mod flag {
    pub const IMMUTABLE: u32 = 0x10;
    pub const APPEND_ONLY: u32 = 0x20;
    pub const ENCRYPTED: u32 = 0x800;
    pub const INDEX: u32 = 0x1000;
    /// The inode is named by its number.
    pub const IMAGIC: u32 = 0x2000;
    pub const HUGE: u32 = 0x4_0000;
    pub const EXTENTS: u32 = 0x8_0000;
    /// Blocks behind its end hold hashes of its bytes.
    pub const VERITY: u32 = 0x10_0000;
    /// Its bytes are the value of an extended attribute.
    pub const ATTRIBUTE_VALUE: u32 = 0x20_0000;
    pub const INLINE: u32 = 0x1000_0000;
    /// Its names differ if they differ in more than case.
    pub const CASEFOLD: u32 = 0x4000_0000;
}

/// A time stamp of an inode: its seconds' place, and that of more bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    Accessed,
    Changed,
    Modified,
    Created,
}

impl Stamp {
    fn places(self) -> (usize, usize) {
        match self {
            Stamp::Accessed => (8, 140),
            Stamp::Changed => (12, 132),
            Stamp::Modified => (16, 136),
            Stamp::Created => (144, 148),
        }
    }
}

/// An inode's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode(Box<[u8]>);

const MODE_KINDS: [(u16, FileKind); 7] = [
    (0x1000, FileKind::Fifo),
    (0x2000, FileKind::CharacterDevice),
    (0x4000, FileKind::Directory),
    (0x6000, FileKind::BlockDevice),
    (0x8000, FileKind::Regular),
    (0xA000, FileKind::Symlink),
    (0xC000, FileKind::Socket),
];

const NS: i64 = 1_000_000_000;

impl Inode {
    /// That in these bytes, of an inode's length.
    pub fn new(bytes: &[u8]) -> Inode {
        Inode(bytes.into())
    }

    /// One of zeros, with so many extra bytes.
    pub fn empty(inode_bytes: usize, extra_bytes: u16) -> Inode {
        let mut inode = Inode(vec![0; inode_bytes].into());
        if inode_bytes > EXTRA {
            put16(&mut inode.0, EXTRA, extra_bytes);
        }
        inode
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    pub fn mode(&self) -> u16 {
        le16(&self.0, 0)
    }

    pub fn kind(&self) -> Option<FileKind> {
        MODE_KINDS.iter().find(|(bits, _)| self.mode() & 0xF000 == *bits).map(|(_, kind)| *kind)
    }

    pub fn permissions(&self) -> u16 {
        self.mode() & 0o7777
    }

    pub fn set_mode(&mut self, kind: FileKind, permissions: u16) {
        let bits = MODE_KINDS.iter().find(|(_, known)| *known == kind).expect("every kind has a mode").0;
        put16(&mut self.0, 0, bits | permissions & 0o7777);
    }

    pub fn user(&self) -> u32 {
        u32::from(le16(&self.0, 120)) << 16 | u32::from(le16(&self.0, 2))
    }

    pub fn set_user(&mut self, user: u32) {
        put16(&mut self.0, 2, user as u16);
        put16(&mut self.0, 120, (user >> 16) as u16);
    }

    pub fn group(&self) -> u32 {
        u32::from(le16(&self.0, 122)) << 16 | u32::from(le16(&self.0, 24))
    }

    pub fn set_group(&mut self, group: u32) {
        put16(&mut self.0, 24, group as u16);
        put16(&mut self.0, 122, (group >> 16) as u16);
    }

    pub fn size(&self) -> u64 {
        joined(le32(&self.0, 108), le32(&self.0, 4))
    }

    pub fn set_size(&mut self, size: u64) {
        put32(&mut self.0, 4, size as u32);
        put32(&mut self.0, 108, (size >> 32) as u32);
    }

    pub fn links(&self) -> u16 {
        le16(&self.0, 26)
    }

    pub fn set_links(&mut self, links: u16) {
        put16(&mut self.0, 26, links);
    }

    /// Blocks of 512 bytes, or of the volume if it is so flagged.
    pub fn said_blocks(&self) -> u64 {
        joined(u32::from(le16(&self.0, 116)), le32(&self.0, 28))
    }

    /// Sectors of 512 bytes on a volume with blocks of so many bytes.
    pub fn sectors(&self, block_bytes: usize) -> u64 {
        let each = if self.has(flag::HUGE) { block_bytes as u64 / 512 } else { 1 };
        self.said_blocks().saturating_mul(each)
    }

    /// Adds blocks of the volume, or takes them away.
    pub fn add_blocks(&mut self, blocks: i64, block_bytes: usize) {
        let each = if self.has(flag::HUGE) { 1 } else { block_bytes as i64 / 512 };
        self.put_blocks(self.said_blocks().saturating_add_signed(blocks * each));
    }

    /// Sets the blocks of the volume that it takes.
    pub fn set_blocks(&mut self, blocks: u64, block_bytes: usize) {
        let each = if self.has(flag::HUGE) { 1 } else { block_bytes as u64 / 512 };
        self.put_blocks(blocks * each);
    }

    fn put_blocks(&mut self, said: u64) {
        put32(&mut self.0, 28, said as u32);
        put16(&mut self.0, 116, (said >> 32) as u16);
    }

    pub fn flags(&self) -> u32 {
        le32(&self.0, 32)
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }

    pub fn set_flags(&mut self, flags: u32) {
        put32(&mut self.0, 32, flags);
    }

    pub fn map(&self) -> &[u8] {
        &self.0[MAP..MAP + MAP_BYTES]
    }

    pub fn map_mut(&mut self) -> &mut [u8] {
        &mut self.0[MAP..MAP + MAP_BYTES]
    }

    pub fn generation(&self) -> u32 {
        le32(&self.0, GENERATION)
    }

    pub fn set_generation(&mut self, generation: u32) {
        put32(&mut self.0, GENERATION, generation);
    }

    /// When it was deleted, in seconds; of an orphan, the next one.
    pub fn deleted(&self) -> u32 {
        le32(&self.0, 20)
    }

    pub fn set_deleted(&mut self, deleted: u32) {
        put32(&mut self.0, 20, deleted);
    }

    /// The block of extended attributes, or 0.
    pub fn attribute_block(&self) -> u64 {
        joined(u32::from(le16(&self.0, 118)), le32(&self.0, 104))
    }

    pub fn set_attribute_block(&mut self, block: u64) {
        put32(&mut self.0, 104, block as u32);
        put16(&mut self.0, 118, (block >> 32) as u16);
    }

    /// Extra bytes behind the first 128, as far as there are some.
    pub fn extra(&self) -> usize {
        if self.0.len() > EXTRA { usize::from(le16(&self.0, EXTRA)) } else { 0 }
    }

    /// The room for extended attributes; `None` if there is none.
    pub fn attribute_room(&self) -> Option<std::ops::Range<usize>> {
        let first = EXTRA + self.extra();
        (self.0.len() > EXTRA && first + 8 <= self.0.len() && first.is_multiple_of(4)).then_some(first..self.0.len())
    }

    /// True if a field of four bytes lies within the extra bytes.
    fn has_field(&self, at: usize) -> bool {
        self.0.len() > EXTRA && at + 4 <= EXTRA + self.extra()
    }

    pub fn stamp(&self, stamp: Stamp) -> Timestamp {
        let (seconds, more) = stamp.places();
        if stamp == Stamp::Created && !self.has_field(seconds) {
            return Timestamp(0);
        }
        let more = if self.has_field(more) { le32(&self.0, more) } else { 0 };
        let seconds = i64::from(le32(&self.0, seconds) as i32) + (i64::from(more & 3) << 32);
        Timestamp(seconds.saturating_mul(NS).saturating_add(i64::from(more >> 2).min(NS - 1)))
    }

    /// Sets a time, as near as the inode has bits for.
    pub fn set_stamp(&mut self, stamp: Stamp, at: Timestamp) {
        let (place, more) = stamp.places();
        if stamp == Stamp::Created && !self.has_field(place) {
            return;
        }
        let (seconds, ns) = (at.0.div_euclid(NS), at.0.rem_euclid(NS));
        if self.has_field(more) {
            let seconds = seconds.clamp(i64::from(i32::MIN), i64::from(i32::MAX) + (3 << 32));
            put32(&mut self.0, place, seconds as u32);
            let epoch = (seconds - i64::from(seconds as i32)) >> 32;
            put32(&mut self.0, more, (ns as u32) << 2 | epoch as u32 & 3);
        } else {
            put32(&mut self.0, place, seconds.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 as u32);
        }
    }

    /// The device that it stands for. Numbers of 16 bits have a place of their own.
    pub fn device(&self) -> u64 {
        match le32(self.map(), 0) {
            0 => u64::from(le32(self.map(), 4)),
            old => u64::from(old & 0xFFFF),
        }
    }

    pub fn set_device(&mut self, device: u64) {
        let device = device as u32;
        let (old, new) = if device < 1 << 16 { (device, 0) } else { (0, device) };
        put32(self.map_mut(), 0, old);
        put32(self.map_mut(), 4, new);
    }

    /// True if its map names blocks: devices, and short links without extents, have something else there.
    pub fn has_map(&self) -> bool {
        match self.kind() {
            Some(FileKind::Regular | FileKind::Directory) => !self.has(flag::INLINE),
            Some(FileKind::Symlink) => !self.is_short_link(),
            _ => false,
        }
    }

    /// True if it is a symbolic link whose target is in its map.
    pub fn is_short_link(&self) -> bool {
        self.kind() == Some(FileKind::Symlink) && self.size() < MAP_BYTES as u64 && !self.has(flag::EXTENTS)
    }

    /// The checksum of its bytes, as far as it can hold it; `None` if the volume has none.
    pub fn checksum(&self, number: u32, checksums: Checksums) -> Option<u32> {
        let seed = checksums.inode_seed(number, self.generation())?;
        let sum = crc32c_raw(crc32c_raw(seed, &self.0[..SUM_LOW]), &[0, 0]);
        let head_end = EXTRA.min(self.0.len());
        let sum = crc32c_raw(sum, &self.0[SUM_LOW + 2..head_end]);
        if self.0.len() <= EXTRA {
            return Some(sum & 0xFFFF);
        }
        if !self.has_high_sum() {
            return Some(crc32c_raw(sum, &self.0[EXTRA..]) & 0xFFFF);
        }
        let sum = crc32c_raw(crc32c_raw(sum, &self.0[EXTRA..SUM_HIGH]), &[0, 0]);
        Some(crc32c_raw(sum, &self.0[SUM_HIGH + 2..]))
    }

    fn has_high_sum(&self) -> bool {
        self.0.len() > EXTRA && self.extra() >= SUM_HIGH + 2 - EXTRA
    }

    pub fn said_checksum(&self) -> u32 {
        let high = if self.has_high_sum() { u32::from(le16(&self.0, SUM_HIGH)) << 16 } else { 0 };
        high | u32::from(le16(&self.0, SUM_LOW))
    }

    /// Puts its checksum in, if the volume has any.
    pub fn sum(&mut self, number: u32, checksums: Checksums) {
        if let Some(sum) = self.checksum(number, checksums) {
            put16(&mut self.0, SUM_LOW, sum as u16);
            if self.has_high_sum() {
                put16(&mut self.0, SUM_HIGH, (sum >> 16) as u16);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_to_the_nanosecond_from_1901_to_2262() {
        let mut inode = Inode::empty(256, 32);
        for at in [0, 1, -1, 999_999_999, -2_147_483_648 * NS, 2_147_483_648 * NS + 5, i64::MAX] {
            inode.set_stamp(Stamp::Modified, Timestamp(at));
            assert_eq!(inode.stamp(Stamp::Modified), Timestamp(at));
        }
        let mut old = Inode::empty(128, 0);
        old.set_stamp(Stamp::Modified, Timestamp(7 * NS + 5));
        old.set_stamp(Stamp::Created, Timestamp(7 * NS + 5));
        assert_eq!((old.stamp(Stamp::Modified), old.stamp(Stamp::Created)), (Timestamp(7 * NS), Timestamp(0)));
    }

    #[test]
    fn an_inode_gives_back_what_was_put_into_it() {
        let mut inode = Inode::empty(256, 32);
        inode.set_mode(FileKind::BlockDevice, 0o4751);
        inode.set_user(0x1_0002);
        inode.set_group(0x3_0004);
        inode.set_size(0x5_0000_0006);
        inode.set_attribute_block(0x7_0000_0008);
        inode.add_blocks(3, 4096);
        inode.set_device(0x12_3456);
        assert_eq!((inode.kind(), inode.permissions()), (Some(FileKind::BlockDevice), 0o4751));
        assert_eq!((inode.user(), inode.group(), inode.size()), (0x1_0002, 0x3_0004, 0x5_0000_0006));
        assert_eq!((inode.attribute_block(), inode.sectors(4096), inode.device()), (0x7_0000_0008, 24, 0x12_3456));
        inode.sum(12, Checksums::All(9));
        assert_eq!(inode.checksum(12, Checksums::All(9)), Some(inode.said_checksum()));
        assert_ne!(inode.checksum(13, Checksums::All(9)), Some(inode.said_checksum()));
    }
}
