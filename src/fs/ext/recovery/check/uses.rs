//! Blocks that the volume uses and no file names: bad blocks, the block of mounts, features.
//!
//! Inode 1 has a map of the blocks that the device cannot hold. It has no mode and no links; its other fields mean nothing.

use super::Check;
use crate::fs::ext::format::bytes::le32;
use crate::fs::ext::format::checksum::crc32c_raw;
use crate::fs::ext::format::extents::Extent;
use crate::fs::ext::format::features::{DIR_NLINK, EXTENTS, LARGE_FILE};
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::volume::VolumeError;

/// The block of mounts: 0 magic   4 number of the mount, or one of these   1020 checksum.
const MOUNT_MAGIC: u32 = 0x004D_4D50;
const MOUNT_SUM: usize = 1020;
const CHECKED: u32 = 0xE24D_4D50;
/// The inode of bad blocks.
const BAD_BLOCKS: u32 = 1;

impl Check<'_> {
    /// Marks bad blocks, and the block of mounts. A bad block of the volume's own structures stays theirs.
    pub(super) fn place_bad_blocks(&mut self) -> Result<(), VolumeError> {
        if let Some(block) = self.parts.metadata.shape.mount_block {
            self.place_mount_block(block)?;
        }
        let mut inode = self.inode(BAD_BLOCKS)?;
        if inode.bytes().iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let sums = self.parts.metadata.shape.checksums;
        let is_sound = inode.checksum(BAD_BLOCKS, sums).is_none_or(|sum| sum == inode.said_checksum());
        let is_list = inode.mode() == 0 && inode.links() == 0 && inode.user() == 0 && inode.group() == 0;
        if !is_list || !is_sound || inode.attribute_block() != 0 || inode.has(flag::INLINE) {
            self.found("the inode of bad blocks is damaged", "the list of bad blocks becomes empty");
            inode = Inode::empty(self.parts.metadata.shape.inode_bytes, 0);
            return self.put_inode(BAD_BLOCKS, &inode);
        }
        let map = self.read_map(BAD_BLOCKS, &inode)?;
        if map.is_damaged {
            self.walk.rebuilds.insert(BAD_BLOCKS, Vec::new());
        }
        let (own, first) = (self.place_of_inode(BAD_BLOCKS).0, self.parts.metadata.shape.superblock_block(0));
        let head = first..first + 1 + self.parts.metadata.shape.descriptor_blocks();
        let is_needed = |extent: &Extent| {
            let bad = extent.place..extent.place + u64::from(extent.count);
            bad.contains(&own) || bad.start < head.end && head.start < bad.end
        };
        if map.extents.iter().any(is_needed) {
            let what = "the list of bad blocks names the superblock, its descriptors, or its own inode";
            self.found(what, "the list becomes empty: there is no other place for these");
            inode = Inode::empty(self.parts.metadata.shape.inode_bytes, 0);
            return self.put_inode(BAD_BLOCKS, &inode);
        }
        for node in &map.nodes {
            // A node in a place that is taken gets another.
            if !self.mark(*node..node + 1).is_empty() {
                self.found(format!("block {node} of the map of bad blocks is in use otherwise"), "it is copied");
                self.walk.rebuilds.entry(BAD_BLOCKS).or_default().push(*node..node + 1);
            }
        }
        for extent in &map.extents {
            let blocks = extent.place..extent.place + u64::from(extent.count);
            self.mark(blocks.clone());
            self.walk.bad_blocks.push(blocks);
        }
        Ok(())
    }

    /// Marks the block in which a mount, or a check, says that it has the volume. Only e2fsck mends it.
    fn place_mount_block(&mut self, block: u64) -> Result<(), VolumeError> {
        if !self.parts.metadata.shape.holds(block, 1) {
            self.found(format!("the block of mounts is block {block}, which the volume has not"), "another is taken");
            return Ok(());
        }
        self.mark(block..block + 1);
        let bytes = self.read(block)?;
        let seed = self.parts.metadata.shape.checksums.seed();
        let is_sound = seed.is_none_or(|seed| crc32c_raw(seed, &bytes[..MOUNT_SUM]) == le32(&bytes, MOUNT_SUM));
        if le32(&bytes, 0) != MOUNT_MAGIC || !is_sound {
            self.found(format!("block {block}, that of mounts, is damaged"), "it is made anew");
        } else if le32(&bytes, 4) == CHECKED {
            let why = format!("block {block}, that of mounts, says that e2fsck checks it now, or was cut off");
            self.walk.unknown.get_or_insert(why);
        }
        Ok(())
    }

    /// Adds features to the superblock that files need, and the revision that has features.
    pub(super) fn features(&mut self) {
        for (is_used, feature, what) in [
            (self.walk.has_extents, EXTENTS, "files with extents"),
            (self.walk.has_long_files, LARGE_FILE, "files of 2 GiB or more"),
            (self.walk.has_many_links, DIR_NLINK, "directories with more links than can be counted"),
        ] {
            let is_old = self.superblock.u32(76) == 0;
            if !is_used || self.superblock.features().has(feature) && !is_old {
                continue;
            }
            self.found(format!("the volume has {what}, and its superblock does not say so"), "it does now");
            if is_old {
                self.superblock.set32(76, 1);
                self.superblock.set32(84, self.parts.metadata.shape.first_inode);
                self.superblock.set16(88, self.parts.metadata.shape.inode_bytes as u16);
            }
            let features = self.superblock.features().with(feature);
            self.superblock.set_features(features);
            self.superblock.sum();
            self.parts.metadata.shape.features = features;
        }
    }
}
