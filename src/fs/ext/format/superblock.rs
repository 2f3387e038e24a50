//! The superblock: 1,024 bytes at byte 1024, and copies at the beginning of some groups.
//!
//! ```text
//!    0 inodes            4 blocks (low)       8 reserved blocks   12 free blocks (low)  16 free inodes
//!   20 first data block 24 log2(block) - 10  28 log2(cluster)-10  32 blocks of a group  36 clusters of a group
//!   40 inodes of a group                     44 mounted at        48 written at         52 mounts (2)  54 most (2)
//!   56 magic 0xEF53 (2) 58 state (2)         60 on errors (2)     64 checked at         72 system      76 revision
//!   84 first inode      88 inode's bytes (2) 90 this copy's group 92 features (3 x 4)  104 UUID (16)  120 label (16)
//!  206 reserved descriptor blocks (2)       208 journal's UUID (16)                    232 first orphan
//!  224 journal's inode 228 journal's device
//!  236 hash seed (16)  252 hash (1)         253 type of journal copy (1)               254 descriptor's bytes (2)
//!  256 mount options   260 first meta group 264 made at          268 copy of the journal inode's blocks (17 x 4)
//!  336 blocks (high)   340 reserved (high)  344 free (high)      348 extra bytes: least (2), wanted (2)
//!  352 flags           372 log2(groups of a flexible group) (1)  373 type of checksums (1)
//!  360 block of mounts (8)                 576 quota files of users and groups (2 x 4)     620 that of projects
//!  588 groups with copies (2 x 4)           624 seed of checksums                      640 file of orphans
//! 1020 checksum
//! ```
//!
//! Bytes that the format reserves, and that the kernel and e2fsprogs leave as they are:
//!
//! ```text
//!  996 number of the last mount whose journal was not in the volume (8)               1004 the memory that it named (16)
//! ```

use super::bytes::{joined, le16, le32, le64, put16, put32};
use super::checksum::crc32c_raw;
use super::features::{Features, METADATA_CSUM};
use super::mount_number::MountNumber;

/// Its byte on the device.
pub const PLACE: u64 = 1024;
/// Its bytes.
pub const LENGTH: usize = 1024;
pub const MAGIC: u16 = 0xEF53;
const CHECKSUM: usize = 1020;
/// The inode of the journal in the volume.
pub const JOURNAL: u32 = 8;
const JOURNAL_UUID: usize = 208;
/// The field of the journal's inode.
pub const JOURNAL_INODE: usize = 224;
/// The end of the bytes that the format reserves: neither the kernel nor e2fsprogs looks at it, and both leave it as it is.
const MOUNT_NUMBER: usize = 996;
const LAST_MEMORY: usize = 1004;

/// The bits of its state.
pub mod state {
    /// It was unmounted in good order.
    pub const CLEAN: u16 = 1;
    /// Damage was found.
    pub const ERRORS: u16 = 2;
}

/// The treatment of damage that a mount finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnErrors {
    /// It goes on.
    Continue,
    /// It does not write any more.
    ReadOnly,
}

/// A superblock, or a copy of it, as it lies on the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock(Box<[u8; LENGTH]>);

impl Superblock {
    /// That in these bytes.
    ///
    /// # Panics
    ///
    /// If there are not [`LENGTH`] of them.
    pub fn new(bytes: &[u8]) -> Superblock {
        Superblock(Box::new(bytes.try_into().expect("a superblock has 1024 bytes")))
    }

    /// One of zeros.
    pub fn empty() -> Superblock {
        Superblock(Box::new([0; LENGTH]))
    }

    pub fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    pub fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub fn u16(&self, at: usize) -> u16 {
        le16(&self.0[..], at)
    }

    pub fn u32(&self, at: usize) -> u32 {
        le32(&self.0[..], at)
    }

    pub fn set16(&mut self, at: usize, number: u16) {
        put16(&mut self.0[..], at, number);
    }

    pub fn set32(&mut self, at: usize, number: u32) {
        put32(&mut self.0[..], at, number);
    }

    /// Names the memory in which the journal is while the volume is mounted, or the log in the volume's own inode. e2fsck looks
    /// for a device if there is a UUID, with any inode.
    pub fn name_memory(&mut self, name: Option<[u8; 16]>) {
        self.set32(JOURNAL_INODE, if name.is_some() { 0 } else { JOURNAL });
        self.set_bytes(JOURNAL_UUID, &name.unwrap_or_default());
        name.iter().for_each(|name| self.set_bytes(LAST_MEMORY, name));
    }

    /// The UUID of the memory that it names as the journal, if it does, with any checksum: two places say so.
    pub fn named_memory(&self) -> Option<[u8; 16]> {
        let name = self.journal_uuid();
        (self.u32(JOURNAL_INODE) == 0 && name != [0; 16] && name == self.last_memory()).then_some(name)
    }

    /// True if it names the log in the volume's own inode, and no device or memory.
    pub fn names_own_log(&self) -> bool {
        self.u32(JOURNAL_INODE) == JOURNAL && self.journal_uuid() == [0; 16]
    }

    /// Takes the memory that another one names, or stops naming memory, and takes its mount's number. True if that
    /// changes it.
    pub fn take_naming(&mut self, from: &Superblock) -> bool {
        let before = self.clone();
        if self.named_memory().is_some() || from.named_memory().is_some() {
            self.name_memory(from.named_memory());
        }
        self.set_mount_number(from.mount_number());
        self.sum();
        *self != before
    }

    /// The number of the last mount whose journal was not in the volume.
    pub fn mount_number(&self) -> MountNumber {
        MountNumber(le64(&self.0[..], MOUNT_NUMBER))
    }

    pub fn set_mount_number(&mut self, number: MountNumber) {
        self.set_bytes(MOUNT_NUMBER, &number.0.to_le_bytes());
    }

    /// The UUID of the memory in which the journal is, or was last. All of the latter is home.
    pub fn last_memory(&self) -> [u8; 16] {
        self.0[LAST_MEMORY..LAST_MEMORY + 16].try_into().expect("16 bytes")
    }

    pub fn set_bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn features(&self) -> Features {
        Features::of_superblock(&self.0[..])
    }

    pub fn set_features(&mut self, features: Features) {
        (0..3).zip(features.words()).for_each(|(word, bits)| self.set32(92 + 4 * word, bits));
    }

    pub fn uuid(&self) -> [u8; 16] {
        self.0[104..120].try_into().expect("16 bytes")
    }

    /// The UUID of the device or memory that the journal has for itself; zeros if it has none.
    pub fn journal_uuid(&self) -> [u8; 16] {
        self.0[208..224].try_into().expect("16 bytes")
    }

    pub fn label(&self) -> &[u8] {
        let label = &self.0[120..136];
        &label[..label.iter().position(|byte| *byte == 0).unwrap_or(label.len())]
    }

    pub fn hash_seed(&self) -> [u32; 4] {
        [0, 1, 2, 3].map(|word| self.u32(236 + 4 * word))
    }

    /// The number of blocks. `is_wide`: it has a high half.
    pub fn blocks(&self, is_wide: bool) -> u64 {
        joined(if is_wide { self.u32(336) } else { 0 }, self.u32(4))
    }

    pub fn state(&self) -> u16 {
        self.u16(58)
    }

    /// The treatment of damage that a mount finds. (3 is a panic of the machine, which no program causes.)
    pub fn on_errors(&self) -> OnErrors {
        if [2, 3].contains(&self.u16(60)) { OnErrors::ReadOnly } else { OnErrors::Continue }
    }

    pub fn first_orphan(&self) -> u32 {
        self.u32(232)
    }

    pub fn set_free(&mut self, blocks: u64, inodes: u32) {
        self.set32(12, blocks as u32);
        self.set32(344, (blocks >> 32) as u32);
        self.set32(16, inodes);
    }

    /// The checksum of its bytes.
    pub fn checksum(&self) -> u32 {
        crc32c_raw(!0, &self.0[..CHECKSUM])
    }

    /// The checksum that it says it has.
    pub fn said_checksum(&self) -> u32 {
        self.u32(CHECKSUM)
    }

    /// Puts its checksum in, if the volume has checksums.
    pub fn sum(&mut self) {
        if self.features().has(METADATA_CSUM) {
            let sum = self.checksum();
            self.set32(CHECKSUM, sum);
        }
    }
}
