//! The metadata of a volume: the place of each structure, and its block in memory or on the device.

use super::blocks::{Blocks, Bytes};
use super::error::damaged;
use super::format::bytes::le16;
use super::format::group::{Descriptor, checksum};
use super::format::inode::Inode;
use super::format::shape::Shape;
use super::media::Media;
use super::own_blocks::OwnBlocks;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::sync::Arc;

/// The metadata of a volume, read and checked.
pub struct Metadata {
    pub shape: Shape,
    pub media: Arc<Media>,
    /// Blocks of metadata in memory.
    pub blocks: Arc<Blocks>,
    /// The blocks that no file has.
    pub own_blocks: OwnBlocks,
}

impl Metadata {
    /// A block of metadata, from memory or from the device. `check` looks at a block that comes from the device, and says what
    /// is wrong.
    pub fn block(
        &self,
        task: &Task<'_>,
        block: u64,
        what: &dyn Fn() -> String,
        check: &dyn Fn(&[u8]) -> Result<(), String>,
    ) -> Result<Bytes, VolumeError> {
        loop {
            let before = match self.blocks.get(block) {
                Ok(bytes) => return Ok(bytes),
                Err(before) => before,
            };
            if !self.shape.holds(block, 1) && block != self.shape.superblock_block(0) {
                return Err(damaged(what(), format!("a volume of {} blocks has no block {block}", self.shape.blocks)));
            }
            assert!(!self.media.holds_stamps(), "block {block}, {}: metadata of stamps stays in memory", what());
            let mut bytes = vec![0; self.shape.block_bytes];
            self.media.read(task, block, &mut bytes)?;
            check(&bytes).map_err(|why| damaged(what(), why))?;
            if let Some(bytes) = self.blocks.insert(block, bytes.into(), before) {
                return Ok(bytes);
            }
        }
    }

    /// The block in which the superblock lies.
    pub fn superblock_block(&self, task: &Task<'_>) -> Result<Bytes, VolumeError> {
        self.block(task, self.shape.superblock_block(0), &|| "the superblock".to_string(), &|_| Ok(()))
    }

    /// The block of a group's descriptor, and its first byte there.
    pub fn descriptor_block(&self, task: &Task<'_>, group: u32) -> Result<(u64, usize, Bytes), VolumeError> {
        let (place, at) = self.shape.place_of_descriptor(group);
        let what = || format!("block {place}, group descriptors");
        let first = group - (at / self.shape.descriptor_bytes) as u32;
        let bytes = self.block(task, place, &what, &|bytes| self.check_descriptors(first, bytes))?;
        Ok((place, at, bytes))
    }

    /// The descriptor of a group.
    pub fn descriptor(&self, task: &Task<'_>, group: u32) -> Result<Descriptor, VolumeError> {
        let (_, at, bytes) = self.descriptor_block(task, group)?;
        Ok(Descriptor::read(&bytes[at..at + self.shape.descriptor_bytes]))
    }

    /// Looks at the descriptors in a block, of which the first is that of group `first`.
    pub fn check_descriptors(&self, first: u32, bytes: &[u8]) -> Result<(), String> {
        let shape = &self.shape;
        for (group, bytes) in (first..shape.groups).zip(bytes.chunks_exact(shape.descriptor_bytes)) {
            let (sum, said) = (checksum(bytes, group, shape.checksums), le16(bytes, 30));
            if sum != said && shape.checksums.cover_groups() {
                return Err(format!("the checksum of group {group} is {said:04x}, and should be {sum:04x}"));
            }
            let descriptor = Descriptor::read(bytes);
            let is_inside = shape.holds(descriptor.block_bitmap, 1)
                && shape.holds(descriptor.inode_bitmap, 1)
                && shape.holds(descriptor.inode_table, shape.table_blocks());
            let fits = descriptor.free_inodes <= shape.group_inodes && descriptor.never_used <= shape.group_inodes;
            if !is_inside || !fits {
                return Err(format!("group {group} is not as it can be: {descriptor:?}"));
            }
        }
        Ok(())
    }

    /// True if blocks can be a file's: they are on the volume, and not its own.
    pub fn can_be_a_files(&self, first: u64, count: u64) -> bool {
        self.shape.holds(first, count) && !self.own_blocks.overlaps(&(first..first + count))
    }

    /// The block of an inode in its table, and its first byte there.
    pub fn place_of_inode(&self, task: &Task<'_>, number: u32) -> Result<(u64, usize), VolumeError> {
        let (group, at) = self.shape.place_of_inode(number);
        let table = self.descriptor(task, group)?.inode_table;
        let in_block = self.shape.inodes_of_block();
        Ok((table + u64::from(at / in_block), (at % in_block) as usize * self.shape.inode_bytes))
    }

    /// The block of the inode table at `place`.
    pub fn table_block(&self, task: &Task<'_>, place: u64) -> Result<Bytes, VolumeError> {
        self.block(task, place, &|| format!("block {place}, inodes"), &|_| Ok(()))
    }

    /// Reads an inode from its table, without a check of its content.
    pub fn read_inode(&self, task: &Task<'_>, number: u32) -> Result<Inode, VolumeError> {
        let (place, at) = self.place_of_inode(task, number)?;
        let block = self.table_block(task, place)?;
        let inode = Inode::new(&block[at..at + self.shape.inode_bytes]);
        let is_unused = inode.mode() == 0 && inode.links() == 0;
        if let Some(sum) = inode.checksum(number, self.shape.checksums).filter(|_| !is_unused)
            && sum != inode.said_checksum()
        {
            let why = format!("its checksum is {:08x}, and should be {sum:08x}", inode.said_checksum());
            return Err(damaged(format!("inode {number}"), why));
        }
        if inode.bytes().len() > 128 && !is_unused && 128 + inode.extra() > inode.bytes().len() {
            return Err(damaged(format!("inode {number}"), format!("it says {} extra bytes", inode.extra())));
        }
        Ok(inode)
    }

    /// Refuses an inode that no file can have.
    pub fn check_inode(&self, number: u32, inode: &Inode) -> Result<(), VolumeError> {
        use super::format::inode::flag;
        use crate::fs::volume::FileKind::{Directory, Regular};
        let refuse = |why: String| Err(damaged(format!("inode {number}"), why));
        let Some(kind) = inode.kind() else {
            return refuse(format!("its mode is {:#o}", inode.mode()));
        };
        for (bit, what) in [(flag::INLINE, "inline data"), (flag::ENCRYPTED, "encrypted")] {
            if inode.has(bit) {
                return refuse(format!("it is flagged as {what}, and the volume has no such feature"));
            }
        }
        if inode.has(flag::EXTENTS) && !self.shape.has_extents() {
            return refuse("it has extents, and the volume has no such feature".to_string());
        }
        let size = inode.size();
        if kind == Directory && (size == 0 || !size.is_multiple_of(self.shape.block_bytes as u64)) {
            return refuse(format!("it is a directory of {size} bytes"));
        }
        let longest = self.shape.longest_map(inode.has(flag::EXTENTS));
        if matches!(kind, Regular | Directory) && size > longest {
            return refuse(format!("it has {size} bytes, and {longest} are the most"));
        }
        Ok(())
    }
}
