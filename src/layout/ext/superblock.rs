//! The superblock, at byte 1024:
//!
//! ```text
//! 0 inodes   4 blocks (low)   20 first data block   24 log2(block) - 10   28 log2(cluster) - 10   32 blocks of a group
//! 40 inodes of a group   56 magic 0xEF53   76 revision   88 inode's bytes   92 compatible features
//! 96 incompatible   100 read-only compatible   206 reserved descriptor blocks   224 journal's inode
//! 228 journal's device   253 type of the journal's copy   254 descriptor's bytes   260 first meta group
//! 268 copy of the journal inode's blocks (17 x 4)   336 blocks (high)   360 MMP block   588 groups with copies (2 x 4)
//! ```

use super::super::bytes::{Bytes, Device};
use super::super::{LayoutError, damaged};
use crate::fs::ext::format::features::{
    BIGALLOC, Features, GDT_CSUM, HAS_JOURNAL, JOURNAL_DEV, META_BG, METADATA_CSUM, MMP, SPARSE_SUPER, SPARSE_SUPER2,
    WIDE,
};
use crate::fs::ext::format::superblock::{MAGIC, PLACE};

const STRUCTURE: &str = "the ext superblock";
/// The inode that reserves blocks for more descriptors.
const SPARE_INODE: u64 = 7;

/// The groups with a copy of the superblock.
#[derive(Clone, Copy, Debug)]
enum Copies {
    Everywhere,
    /// Groups 0, 1, and powers of 3, 5 and 7.
    Sparse,
    /// Group 0 and these two.
    Named([u32; 2]),
}

/// The journal's location according to the superblock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum JournalPlace {
    None,
    External,
    Inode(u32),
}

/// The fields of the superblock that locate structures.
#[derive(Debug)]
pub(super) struct Superblock {
    pub block_bytes: u64,
    pub blocks: u64,
    pub first_data_block: u64,
    pub group_blocks: u64,
    pub groups: u64,
    pub group_inodes: u64,
    pub inode_bytes: u64,
    pub descriptor_bytes: usize,
    /// Blocks after the descriptors that are reserved for more of them.
    pub reserved_descriptor_blocks: u64,
    /// The first meta group: its descriptors lie in its own groups; `None` if all lie after the superblock.
    pub first_meta_group: Option<u64>,
    pub is_journal_device: bool,
    pub journal: JournalPlace,
    /// The copy of the journal inode's block map and size, if there is one: 15 words, the size's high and low half.
    pub journal_copy: Option<Bytes>,
    /// The block of multiple mount protection.
    pub protection_block: Option<u64>,
    copies: Copies,
    /// The first inode of a user's file.
    first_inode: u64,
    /// Inodes of the file system beyond the first ones: quotas and the list of orphans.
    own_inodes: [u64; 4],
    /// True if a group counts its inodes that were never used.
    pub counts_unused_inodes: bool,
}

impl Superblock {
    /// Reads the superblock; `None` without the magic number.
    pub fn read(device: &mut Device) -> Result<Option<Superblock>, LayoutError> {
        let Some(bytes) = device.read_if_there(PLACE, 1024)? else { return Ok(None) };
        if bytes.le16(56) != MAGIC {
            return Ok(None);
        }
        let log_block = bytes.le32(24);
        if log_block > 6 {
            return Err(damaged(STRUCTURE, format!("a block of 2^{} bytes is more than 64 KiB", log_block + 10)));
        }
        let block_bytes = 1024 << log_block;
        let features = Features::of_superblock(&bytes.0);
        let wide = features.has(WIDE);
        let high = if wide { u64::from(bytes.le32(336)) << 32 } else { 0 };
        let blocks = high | u64::from(bytes.le32(4));
        let most = device.size_bytes / block_bytes;
        if blocks == 0 || blocks > most {
            return Err(damaged(STRUCTURE, format!("it counts {blocks} blocks, the device has {most}")));
        }
        let is_old = bytes.le32(76) == 0;
        let meta_groups = features.has(META_BG);
        let journal_inode = bytes.le32(224);
        let superblock = Superblock {
            block_bytes,
            blocks,
            first_data_block: u64::from(bytes.le32(20)),
            group_blocks: u64::from(bytes.le32(32)),
            groups: 0,
            group_inodes: u64::from(bytes.le32(40)),
            inode_bytes: if is_old { 128 } else { u64::from(bytes.le16(88)) },
            descriptor_bytes: if wide { usize::from(bytes.le16(254)) } else { 32 },
            reserved_descriptor_blocks: if meta_groups { 0 } else { u64::from(bytes.le16(206)) },
            first_meta_group: meta_groups.then(|| u64::from(bytes.le32(260))),
            is_journal_device: features.has(JOURNAL_DEV),
            journal: match (features.has(HAS_JOURNAL), journal_inode) {
                (false, _) => JournalPlace::None,
                (true, 0) => JournalPlace::External,
                (true, number) => JournalPlace::Inode(number),
            },
            journal_copy: bytes.part(268, 68).filter(|_| bytes.u8(253) == 1).map(|part| Bytes(part.to_vec())),
            protection_block: features.has(MMP).then(|| bytes.le64(360)),
            first_inode: if is_old { 11 } else { u64::from(bytes.le32(84)) },
            own_inodes: [576, 580, 620, 640].map(|at| u64::from(bytes.le32(at))),
            counts_unused_inodes: features.has(GDT_CSUM) || features.has(METADATA_CSUM),
            copies: match (features.has(SPARSE_SUPER2), features.has(SPARSE_SUPER)) {
                (true, _) => Copies::Named([bytes.le32(588), bytes.le32(592)]),
                (false, true) => Copies::Sparse,
                (false, false) => Copies::Everywhere,
            },
        };
        if superblock.is_journal_device {
            return Ok(Some(superblock));
        }
        // With clusters, a bitmap's bit covers several blocks.
        let cluster = if features.has(BIGALLOC) { bytes.le32(28).saturating_sub(log_block).min(16) } else { 0 };
        superblock.counted((8 * block_bytes) << cluster).map(Some)
    }

    /// The superblock with its number of groups, if its numbers are consistent.
    fn counted(self, most_group_blocks: u64) -> Result<Superblock, LayoutError> {
        let wrong = |what: String| Err(damaged(STRUCTURE, what));
        if !(256..=most_group_blocks).contains(&self.group_blocks) {
            return wrong(format!("{} blocks of a group are not 256 to {most_group_blocks}", self.group_blocks));
        }
        if self.first_data_block > 1 || self.first_data_block >= self.blocks {
            return wrong(format!("the first data block is {}", self.first_data_block));
        }
        if !(128..=self.block_bytes).contains(&self.inode_bytes) || !self.inode_bytes.is_power_of_two() {
            return wrong(format!("an inode of {} bytes", self.inode_bytes));
        }
        if self.group_inodes == 0 || self.group_inodes > 8 * self.block_bytes {
            return wrong(format!("{} inodes of a group", self.group_inodes));
        }
        if !(32..=1024).contains(&self.descriptor_bytes) || !self.descriptor_bytes.is_power_of_two() {
            return wrong(format!("a group descriptor of {} bytes", self.descriptor_bytes));
        }
        let groups = (self.blocks - self.first_data_block).div_ceil(self.group_blocks);
        Ok(Superblock { groups, ..self })
    }

    /// The first block of a group.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first_data_block + group * self.group_blocks
    }

    /// The block of a group's superblock, or of the place for one. The first is at byte 1024, wherever its group
    /// begins: with clusters and blocks of 1 KiB, that is the second block of the first group.
    pub fn superblock_block(&self, group: u64) -> u64 {
        if group == 0 { PLACE / self.block_bytes } else { self.group_start(group) }
    }

    /// The number of descriptors in a block.
    pub fn descriptors_of_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes as u64
    }

    /// True if the group begins with a superblock or a copy of it.
    pub fn has_superblock(&self, group: u64) -> bool {
        let is_power_of = |factor: u64| {
            let mut power = factor;
            while power < group {
                power *= factor;
            }
            power == group
        };
        match self.copies {
            _ if group == 0 => true,
            Copies::Everywhere => true,
            Copies::Named(named) => named.iter().any(|number| u64::from(*number) == group),
            Copies::Sparse => group == 1 || [3, 5, 7].into_iter().any(is_power_of),
        }
    }

    /// True if the inode belongs to the file system itself.
    pub fn is_reserved(&self, inode: u64) -> bool {
        inode < self.first_inode || self.own_inodes.contains(&inode)
    }

    /// True if the inode's blocks are located by other rules.
    pub fn is_journal_or_spare(&self, inode: u64) -> bool {
        inode == SPARE_INODE || matches!(self.journal, JournalPlace::Inode(number) if u64::from(number) == inode)
    }

    /// The byte range of `count` blocks from `first`, cut to the file system.
    pub fn bytes_of(&self, first: u64, count: u64) -> std::ops::Range<u64> {
        let first = first.min(self.blocks);
        let end = first.saturating_add(count).min(self.blocks);
        first * self.block_bytes..end * self.block_bytes
    }
}
