//! The shape of a volume: numbers that follow from its superblock and do not change while it is mounted.

use super::bytes::joined;
use super::checksum::Checksums;
use super::features::{
    BIGALLOC, DIR_INDEX, EXTENTS, FILETYPE, FLEX_BG, Features, LARGE_FILE, META_BG, METADATA_CSUM, MMP, ORPHAN_FILE,
    PROJECT, QUOTA, SPARSE_SUPER, SPARSE_SUPER2, WIDE,
};
use super::hash::{HashKind, Hasher};
pub use super::superblock::JOURNAL;
use super::superblock::{MAGIC, PLACE, Superblock};

/// The extra bytes of an inode that the format has names for.
const EXTRA_BYTES: u16 = 32;
/// The inode of the root directory.
pub const ROOT: u32 = 2;

/// The groups with a copy of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copies {
    Everywhere,
    /// Groups 0, 1, and powers of 3, 5 and 7.
    Sparse,
    /// Group 0 and these two.
    Named([u32; 2]),
}

/// The shape of a volume. Blocks are those of the volume, not of the device.
#[derive(Clone, Debug)]
pub struct Shape {
    pub features: Features,
    pub checksums: Checksums,
    pub block_bytes: usize,
    pub blocks: u64,
    pub first_data_block: u64,
    pub group_blocks: u64,
    pub groups: u32,
    pub group_inodes: u32,
    pub inodes: u32,
    pub inode_bytes: usize,
    /// The first inode of a user's file.
    pub first_inode: u32,
    pub descriptor_bytes: usize,
    /// Blocks behind the descriptors that are reserved for more of them.
    pub reserved_descriptor_blocks: u64,
    /// The first meta group: its descriptors lie in its own groups; `None` if all lie behind the superblock.
    first_meta_group: Option<u64>,
    copies: Copies,
    /// log2 of the blocks of a cluster: one bit of a bitmap.
    pub cluster_log: u32,
    /// The extra bytes that a new inode has behind the first 128.
    pub extra_bytes: u16,
    pub hasher: Hasher,
    /// Names are hashed as unsigned bytes.
    pub has_unsigned_hashes: bool,
    /// Groups whose bitmaps and inode tables lie together.
    pub flexible_groups: u32,
    pub journal_inode: u32,
    pub orphan_file: u32,
    /// Files that count the blocks of users, groups and projects; 0 if there is none.
    pub quota_files: [u32; 3],
    /// The block in which a mount says that it has the volume (`mmp`).
    pub mount_block: Option<u64>,
}

impl Shape {
    /// The shape of the volume with this superblock, on a device of so many bytes. Fails with the fault.
    pub fn of(superblock: &Superblock, device_bytes: u64) -> Result<Shape, String> {
        let features = superblock.features();
        if superblock.u16(56) != MAGIC {
            return Err(format!("its magic number is {:#06x}, and should be {MAGIC:#06x}", superblock.u16(56)));
        }
        if superblock.u32(76) > 1 {
            return Err(format!("its revision is {}, and should be 0 or 1", superblock.u32(76)));
        }
        if features.has(METADATA_CSUM) && superblock.checksum() != superblock.said_checksum() {
            let (found, said) = (superblock.checksum(), superblock.said_checksum());
            return Err(format!("its checksum is {found:08x}, and should be {said:08x}"));
        }
        let log_block = superblock.u32(24);
        if log_block > 6 {
            return Err(format!("a block of 2^{} bytes is more than 64 KiB", u64::from(log_block) + 10));
        }
        let block_bytes = 1024usize << log_block;
        let is_old = superblock.u32(76) == 0;
        let wide = features.has(WIDE);
        let blocks = superblock.blocks(wide);
        let most = device_bytes / block_bytes as u64;
        if blocks == 0 || blocks > most {
            return Err(format!("it counts {blocks} blocks of {block_bytes} bytes, and the device has {most}"));
        }
        let cluster_log = if features.has(BIGALLOC) { superblock.u32(28).saturating_sub(log_block) } else { 0 };
        let hasher = Hasher {
            kind: HashKind::of(superblock.u8(252), superblock.u32(352) & 2 != 0),
            seed: superblock.hash_seed(),
        };
        let shape = Shape {
            features,
            checksums: Checksums::of_superblock(superblock.bytes(), &features),
            block_bytes,
            blocks,
            first_data_block: u64::from(superblock.u32(20)),
            group_blocks: u64::from(superblock.u32(32)),
            groups: 0,
            group_inodes: superblock.u32(40),
            inodes: superblock.u32(0),
            inode_bytes: if is_old { 128 } else { usize::from(superblock.u16(88)) },
            first_inode: if is_old { 11 } else { superblock.u32(84) },
            descriptor_bytes: if wide { usize::from(superblock.u16(254)) } else { 32 },
            reserved_descriptor_blocks: if features.has(META_BG) { 0 } else { u64::from(superblock.u16(206)) },
            first_meta_group: features.has(META_BG).then(|| u64::from(superblock.u32(260))),
            copies: match (features.has(SPARSE_SUPER2), features.has(SPARSE_SUPER)) {
                (true, _) => Copies::Named([superblock.u32(588), superblock.u32(592)]),
                (false, true) => Copies::Sparse,
                (false, false) => Copies::Everywhere,
            },
            cluster_log,
            // More than an inode has are as many as this program gives.
            extra_bytes: match superblock.u16(350) {
                wanted if usize::from(wanted) + 128 > usize::from(superblock.u16(88)).max(128) => EXTRA_BYTES,
                wanted => wanted,
            },
            hasher,
            has_unsigned_hashes: superblock.u32(352) & 2 != 0,
            flexible_groups: if features.has(FLEX_BG) { 1u32 << superblock.u8(372).min(31) } else { 1 },
            journal_inode: superblock.u32(224),
            orphan_file: if features.has(ORPHAN_FILE) { superblock.u32(640) } else { 0 },
            quota_files: [(576, QUOTA), (580, QUOTA), (620, PROJECT)]
                .map(|(at, feature)| if features.has(feature) { superblock.u32(at) } else { 0 }),
            mount_block: features.has(MMP).then(|| joined(superblock.u32(364), superblock.u32(360))),
        };
        shape.checked()
    }

    /// The same with its number of groups, if its numbers go together.
    fn checked(mut self) -> Result<Shape, String> {
        let block = self.block_bytes as u64;
        if self.cluster_log > 20 {
            return Err(format!("a cluster of 2^{} blocks", self.cluster_log));
        }
        let most = (8 * block) << self.cluster_log;
        if !(256..=most).contains(&self.group_blocks) || !self.group_blocks.is_multiple_of(8) {
            return Err(format!("{} blocks of a group are no multiple of 8 from 256 to {most}", self.group_blocks));
        }
        if self.first_data_block != u64::from(self.block_bytes == 1024 && self.cluster_log == 0) {
            return Err(format!("the first data block is {}", self.first_data_block));
        }
        let is_inode = self.inode_bytes.is_power_of_two() && (128..=self.block_bytes).contains(&self.inode_bytes);
        if !is_inode {
            return Err(format!("an inode of {} bytes", self.inode_bytes));
        }
        let in_block = (self.block_bytes / self.inode_bytes) as u32;
        if self.group_inodes == 0
            || u64::from(self.group_inodes) > 8 * block
            || !self.group_inodes.is_multiple_of(8)
            || !self.group_inodes.is_multiple_of(in_block)
        {
            return Err(format!("{} inodes of a group", self.group_inodes));
        }
        let least = if self.features.has(WIDE) { 64 } else { 32 };
        if !(least..=1024).contains(&self.descriptor_bytes) || !self.descriptor_bytes.is_power_of_two() {
            return Err(format!("a group descriptor of {} bytes", self.descriptor_bytes));
        }
        let groups = (self.blocks - self.first_data_block).div_ceil(self.group_blocks);
        self.groups = u32::try_from(groups).map_err(|_| format!("{groups} groups"))?;
        if u64::from(self.groups) * u64::from(self.group_inodes) != u64::from(self.inodes) {
            let (groups, each) = (self.groups, self.group_inodes);
            return Err(format!("{} inodes are not {groups} groups of {each}", self.inodes));
        }
        let descriptors = self.descriptor_blocks() + self.reserved_descriptor_blocks;
        if self.first_meta_group.is_none() && descriptors + 1 >= self.group_blocks {
            return Err(format!("{descriptors} blocks of descriptors do not fit into a group"));
        }
        if self.first_inode < 11 || self.first_inode > self.inodes {
            return Err(format!("the first inode of a file is {}", self.first_inode));
        }
        Ok(self)
    }

    pub fn has_extents(&self) -> bool {
        self.features.has(EXTENTS)
    }

    pub fn has_indexes(&self) -> bool {
        self.features.has(DIR_INDEX)
    }

    pub fn has_file_types(&self) -> bool {
        self.features.has(FILETYPE)
    }

    /// True if blocks of directories, extents and so on end with a checksum.
    pub fn has_checksums(&self) -> bool {
        self.checksums.seed().is_some()
    }

    /// The first block of a group.
    pub fn group_start(&self, group: u32) -> u64 {
        self.first_data_block + u64::from(group) * self.group_blocks
    }

    /// Blocks of a group: all have the same number, but for the last.
    pub fn blocks_of_group(&self, group: u32) -> u64 {
        self.group_blocks.min(self.blocks - self.group_start(group))
    }

    /// The group of a block, and its bit in the bitmap there. (Without clusters.)
    pub fn place_of_block(&self, block: u64) -> (u32, u32) {
        let at = block - self.first_data_block;
        ((at / self.group_blocks) as u32, (at % self.group_blocks) as u32)
    }

    /// True if `count` blocks from `first` on can be a file's.
    pub fn holds(&self, first: u64, count: u64) -> bool {
        first > self.first_data_block && first.checked_add(count).is_some_and(|end| end <= self.blocks)
    }

    /// The group of an inode, and its place there.
    pub fn place_of_inode(&self, inode: u32) -> (u32, u32) {
        ((inode - 1) / self.group_inodes, (inode - 1) % self.group_inodes)
    }

    /// Blocks of a group's inode table.
    pub fn table_blocks(&self) -> u64 {
        u64::from(self.group_inodes) * self.inode_bytes as u64 / self.block_bytes as u64
    }

    pub fn inodes_of_block(&self) -> u32 {
        (self.block_bytes / self.inode_bytes) as u32
    }

    /// The number of descriptors in a block.
    pub fn descriptors_of_block(&self) -> u32 {
        (self.block_bytes / self.descriptor_bytes) as u32
    }

    pub fn descriptor_blocks(&self) -> u64 {
        u64::from(self.groups.div_ceil(self.descriptors_of_block()))
    }

    /// The block of a group's descriptor, and its first byte there.
    pub fn place_of_descriptor(&self, group: u32) -> (u64, usize) {
        let (number, at) = (group / self.descriptors_of_block(), group % self.descriptors_of_block());
        let block = match self.first_meta_group {
            Some(first) if u64::from(number) >= first => {
                let group = number * self.descriptors_of_block();
                self.superblock_block(group) + u64::from(self.has_superblock(group))
            }
            _ => self.superblock_block(0) + 1 + u64::from(number),
        };
        (block, at as usize * self.descriptor_bytes)
    }

    /// The copies of a group's descriptor: their blocks, and their first bytes there.
    pub fn copies_of_descriptor(&self, group: u32) -> impl Iterator<Item = (u64, usize)> + '_ {
        let in_block = self.descriptors_of_block();
        let (number, at) = (group / in_block, (group % in_block) as usize * self.descriptor_bytes);
        let is_meta = self.first_meta_group.is_some_and(|first| u64::from(number) >= first);
        // A meta group has copies in its second and its last group, any other in all groups with a superblock.
        let meta = [1, in_block - 1].map(|within| number * in_block + within);
        let meta = meta.into_iter().filter(move |group| is_meta && *group < self.groups);
        let meta = meta.map(|group| self.superblock_block(group) + u64::from(self.has_superblock(group)));
        let whole = (1..self.groups).filter(move |group| !is_meta && self.has_superblock(*group));
        let whole = whole.map(move |group| self.superblock_block(group) + 1 + u64::from(number));
        meta.chain(whole).map(move |block| (block, at))
    }

    /// The block of a group's superblock, or of the place for one.
    pub fn superblock_block(&self, group: u32) -> u64 {
        if group == 0 { PLACE / self.block_bytes as u64 } else { self.group_start(group) }
    }

    /// True if the group begins with a superblock or a copy of it.
    pub fn has_superblock(&self, group: u32) -> bool {
        let is_power_of = |factor: u64| {
            let mut power = factor;
            while power < u64::from(group) {
                power *= factor;
            }
            power == u64::from(group)
        };
        match self.copies {
            _ if group == 0 => true,
            Copies::Everywhere => true,
            Copies::Named(named) => named.contains(&group),
            Copies::Sparse => group == 1 || [3, 5, 7].into_iter().any(is_power_of),
        }
    }

    /// The number of blocks at the beginning of a group that a superblock and descriptors, and room for more, take.
    pub fn blocks_before(&self, group: u32) -> u64 {
        let has_superblock = u64::from(self.has_superblock(group));
        let in_block = self.descriptors_of_block();
        let meta = self.first_meta_group.filter(|first| u64::from(group / in_block) >= *first);
        match meta {
            Some(_) => has_superblock + u64::from([0, 1, in_block - 1].contains(&(group % in_block))),
            None if has_superblock == 1 => {
                let together =
                    self.first_meta_group.map_or(self.descriptor_blocks(), |first| first.min(self.descriptor_blocks()));
                1 + together + self.reserved_descriptor_blocks
            }
            None => 0,
        }
    }

    /// Inodes of the volume itself, which no directory names.
    pub fn is_reserved(&self, inode: u32) -> bool {
        inode < self.first_inode && inode != ROOT
            || inode != 0 && (inode == self.orphan_file || self.quota_files.contains(&inode))
    }

    /// The longest file that an inode with a map of this kind can have, in bytes.
    pub fn longest_file(&self, has_extents: bool) -> u64 {
        let block = self.block_bytes as u64;
        if !self.features.has(LARGE_FILE) {
            return (1 << 31) - block;
        }
        self.longest_map(has_extents)
    }

    /// The longest file that a map of this kind can hold. A volume need not say that it has long ones (`large_file`): the
    /// first revision could not.
    pub fn longest_map(&self, has_extents: bool) -> u64 {
        let block = self.block_bytes as u64;
        if has_extents {
            // Blocks have 32 bits, and the number behind the last one, too.
            return u64::from(u32::MAX) * block;
        }
        let pointers = block / 4;
        let mapped = 12 + pointers + pointers * pointers + pointers * pointers * pointers;
        mapped.min(u64::from(u32::MAX)) * block
    }
}
