//! The fields of an inode that classify its blocks.
//!
//! ```text
//! 0 mode   4 size (low)   26 links   32 flags   40 block map or extents (60 bytes)   104 attributes' block (low)
//! 108 size (high)   118 attributes' block (high)
//! ```

use super::super::bytes::Bytes;
use crate::fs::ext::format::inode::flag;

const MODE_TYPE: u16 = 0xF000;
const MODE_FILE: u16 = 0x8000;
const MODE_DIRECTORY: u16 = 0x4000;
const MODE_LINK: u16 = 0xA000;
/// The bytes of an inode that are parsed.
pub(super) const INODE_BYTES: usize = 128;

/// An inode.
pub(super) struct Inode(pub Bytes);

impl Inode {
    pub fn is_in_use(&self) -> bool {
        self.0.le16(0) != 0 && self.0.le16(26) != 0
    }

    pub fn is_file(&self) -> bool {
        self.0.le16(0) & MODE_TYPE == MODE_FILE
    }

    /// True for a regular file; directories, links and attribute inodes are metadata.
    pub fn holds_data(&self) -> bool {
        self.is_file() && self.flags() & flag::ATTRIBUTE_VALUE == 0
    }

    /// True if the map names blocks; devices and short links store something else there.
    pub fn has_blocks(&self) -> bool {
        let kind = self.0.le16(0) & MODE_TYPE;
        let is_short_link = kind == MODE_LINK && self.size() < 60 && !self.has_extents();
        matches!(kind, MODE_FILE | MODE_DIRECTORY | MODE_LINK) && !is_short_link && self.flags() & flag::INLINE == 0
    }

    pub fn has_extents(&self) -> bool {
        self.flags() & flag::EXTENTS != 0
    }

    pub fn size(&self) -> u64 {
        u64::from(self.0.le32(108)) << 32 | u64::from(self.0.le32(4))
    }

    pub fn map(&self) -> Bytes {
        Bytes(self.0.part(40, 60).unwrap_or_default().to_vec())
    }

    /// The block of extended attributes, or 0.
    pub fn attributes_block(&self) -> u64 {
        u64::from(self.0.le16(118)) << 32 | u64::from(self.0.le32(104))
    }

    fn flags(&self) -> u32 {
        self.0.le32(32)
    }
}
