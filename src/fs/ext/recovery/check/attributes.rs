//! Extended attributes of an inode, and the block that several inodes may share.

use super::Check;
use crate::fs::ext::format::attributes::{
    has_sound_block_entries, is_sound, keep_sound_inode_entries, read_block, set_sharers, sharers, sum, value_inode,
};
use crate::fs::ext::format::features::EXT_ATTR;
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::volume::VolumeError;

impl Check<'_> {
    /// Checks the attributes of an inode, and returns the blocks that they take.
    pub(super) fn check_attributes(&mut self, number: u32, inode: &mut Inode) -> Result<u64, VolumeError> {
        if let Some(room) = inode.attribute_room() {
            if let Some(value) = value_inode(&inode.bytes()[room.clone()])
                && (1..=self.parts.metadata.shape.inodes).contains(&value)
                && self.inode(value)?.has(flag::ATTRIBUTE_VALUE)
            {
                let why = format!("an attribute of inode {number} has its value in inode {value}");
                self.walk.unknown.get_or_insert(why);
            } else if let Some(why) = keep_sound_inode_entries(&mut inode.bytes_mut()[room]) {
                let what = format!("the attributes in inode {number}: {why}");
                self.found(what, "attributes that can be read are kept");
            }
        }
        let place = inode.attribute_block();
        if place == 0 {
            return Ok(0);
        }
        if !self.parts.metadata.shape.features.has(EXT_ATTR) {
            let what = format!("inode {number} has block {place} of attributes, and the volume has no such feature");
            self.found(what, "the inode loses these attributes");
            inode.set_attribute_block(0);
            return Ok(0);
        }
        if let Some(times) = self.walk.attributes.get_mut(&place) {
            *times += 1;
            return Ok(1);
        }
        if let Some(why) = self.attribute_fault(place)? {
            let what = format!("block {place}, the attributes of inode {number}: {why}");
            self.found(what, "the inode loses these attributes");
            inode.set_attribute_block(0);
            return Ok(0);
        }
        if self.mark(place..place + 1).is_empty() {
            self.walk.attributes.insert(place, 1);
        } else {
            let what = format!("block {place}, the attributes of inode {number}, is in use otherwise");
            self.found(what, "the inode gets a copy");
            self.walk.attribute_copies.push(number);
        }
        Ok(1)
    }

    /// Says why a block cannot hold attributes. One of which only the checksum is wrong gets another.
    fn attribute_fault(&mut self, place: u64) -> Result<Option<String>, VolumeError> {
        if !self.parts.metadata.shape.holds(place, 1) {
            return Ok(Some("the volume has no such block".to_string()));
        }
        let block = self.read(place)?;
        if let Err(why) = read_block(&block) {
            return Ok(Some(why));
        }
        if !has_sound_block_entries(&block) {
            return Ok(Some("an attribute has no prefix, or another hash than its name and value".to_string()));
        }
        if let Some(seed) = self.parts.metadata.shape.checksums.seed()
            && !is_sound(&block, place, seed)
        {
            self.found(format!("block {place} of attributes: its checksum is wrong"), "it gets a new one");
            self.put_attributes(place, block.to_vec());
        }
        Ok(None)
    }

    /// Puts a block of attributes into its place, with its checksum.
    pub(super) fn put_attributes(&mut self, place: u64, mut block: Vec<u8>) {
        if let Some(seed) = self.parts.metadata.shape.checksums.seed() {
            sum(&mut block, place, seed);
        }
        self.write(place, block);
    }

    /// Compares the number of inodes that share each block of attributes with the count in the block.
    pub(super) fn count_sharers(&mut self) -> Result<(), VolumeError> {
        for (place, times) in std::mem::take(&mut self.walk.attributes) {
            let mut block = self.read(place)?.to_vec();
            let said = sharers(&block);
            if said != times {
                let what = format!("block {place} of attributes counts {said} inodes, and has {times}");
                self.found(what, "the count is corrected");
                set_sharers(&mut block, times);
                self.put_attributes(place, block);
            }
        }
        Ok(())
    }
}
