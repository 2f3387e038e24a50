//! Inodes: fields, flags, sizes. An inode that cannot be a file is freed; its names go with it.

use super::directories::DOT;
use super::groups::UNPLACED;
use super::{Check, FileEntry, seconds};
use crate::fs::ext::allocation::bits;
use crate::fs::ext::format::attributes::has_inline_data;
use crate::fs::ext::format::bytes::{le16, le32, put16, put32};
use crate::fs::ext::format::extents::{self, Extent, Node};
use crate::fs::ext::format::features::{HAS_JOURNAL, HUGE_FILE, IMAGIC, WIDE};
use crate::fs::ext::format::group::flag as group_flag;
use crate::fs::ext::format::inode::{Inode, MAP_BYTES, flag};
use crate::fs::ext::format::shape::{JOURNAL, ROOT};
use crate::fs::volume::{FileKind, VolumeError};

/// The extra bytes that the field itself and the checksum take.
const LEAST_EXTRA: usize = 4;
/// The place of an inode's fragment, which no volume has.
const FRAGMENT: usize = 112;
/// Bytes of the map that hold a device's number, in an old and a new form, and two that programs leave as they are.
const DEVICE_NUMBERS: usize = 16;
const BLOCKS_HIGH: usize = 116;
const ATTRIBUTES_HIGH: usize = 118;

/// The result of a look at an inode's own fields.
enum Fields {
    /// It is a file; its fields are mended.
    File(FileKind),
    /// It cannot be a file, for this reason.
    Nothing(String),
}

impl Check<'_> {
    /// The block of an inode in its table, and its first byte there.
    pub(super) fn place_of_inode(&self, number: u32) -> (u64, usize) {
        let shape = &self.parts.metadata.shape;
        let (group, at) = shape.place_of_inode(number);
        let in_block = shape.inodes_of_block();
        let block = self.groups[group as usize].inode_table + u64::from(at / in_block);
        (block, (at % in_block) as usize * shape.inode_bytes)
    }

    /// Reads an inode.
    pub(super) fn inode(&self, number: u32) -> Result<Inode, VolumeError> {
        if self.groups[self.parts.metadata.shape.place_of_inode(number).0 as usize].inode_table == UNPLACED {
            return Ok(Inode::empty(self.parts.metadata.shape.inode_bytes, 0));
        }
        let (block, at) = self.place_of_inode(number);
        Ok(Inode::new(&self.read(block)?[at..at + self.parts.metadata.shape.inode_bytes]))
    }

    /// Puts an inode into its table, with its checksum.
    pub(super) fn put_inode(&mut self, number: u32, inode: &Inode) -> Result<(), VolumeError> {
        let (block, at) = self.place_of_inode(number);
        let mut summed = inode.clone();
        summed.sum(number, self.parts.metadata.shape.checksums);
        let mut bytes = self.read(block)?.to_vec();
        bytes[at..at + summed.bytes().len()].copy_from_slice(summed.bytes());
        self.write(block, bytes);
        Ok(())
    }

    /// Frees an inode.
    pub(super) fn free_inode(&mut self, number: u32) -> Result<(), VolumeError> {
        let mut inode = Inode::empty(self.parts.metadata.shape.inode_bytes, 0);
        inode.set_deleted(seconds(self.now));
        self.put_inode(number, &inode)
    }

    /// Looks at all inodes.
    pub(super) fn inodes(&mut self) -> Result<(), VolumeError> {
        let shape = &self.parts.metadata.shape;
        bits::put(&mut self.walk.used_inodes, 0..shape.first_inode - 1, true);
        let (group_inodes, in_block, has_flags) =
            (shape.group_inodes, shape.inodes_of_block(), shape.checksums.cover_groups());
        for group in 0..self.parts.metadata.shape.groups {
            let descriptor = self.groups[group as usize];
            if has_flags && descriptor.has(group_flag::NO_INODES) || descriptor.inode_table == UNPLACED {
                continue;
            }
            let count = group_inodes - if has_flags { descriptor.never_used } else { 0 };
            for first in (0..count).step_by(in_block as usize) {
                let place = descriptor.inode_table + u64::from(first / in_block);
                if self.walk.bad_blocks.iter().any(|bad| bad.contains(&place)) {
                    // Nobody knows which inodes are there, so that all of them are in use.
                    let inodes = group * group_inodes + first;
                    bits::put(&mut self.walk.used_inodes, inodes..inodes + in_block, true);
                    continue;
                }
                let block = self.read(place)?;
                if block.iter().all(|byte| *byte == 0) {
                    continue;
                }
                let inodes = block.chunks_exact(self.parts.metadata.shape.inode_bytes);
                for (at, bytes) in (first..count).zip(inodes) {
                    let number = group * group_inodes + at + 1;
                    self.check_inode(number, Inode::new(bytes))?;
                }
            }
        }
        Ok(())
    }

    fn check_inode(&mut self, number: u32, stored: Inode) -> Result<(), VolumeError> {
        let is_reserved = self.parts.metadata.shape.is_reserved(number);
        let sums = self.parts.metadata.shape.checksums;
        let has_sum = stored.checksum(number, sums).is_none_or(|sum| sum == stored.said_checksum());
        // (The inode of bad blocks has a map, but no mode: `uses`.)
        if is_reserved && (stored.mode() == 0 || stored.links() == 0) {
            return self.check_unused_reserved(number, stored);
        }
        if stored.links() == 0 && !self.orphans.contains(&number) {
            return self.check_free_inode(number, stored, has_sum);
        }
        let before = self.walk.findings.len();
        let mut inode = stored.clone();
        let fields = if is_reserved { Self::reserved_fields(&inode) } else { self.fields(number, &mut inode) };
        // A journal that the superblock names may become one again.
        if number == JOURNAL
            && !self.parts.metadata.shape.features.has(HAS_JOURNAL)
            && self.parts.metadata.shape.journal_inode == 0
        {
            self.found("the journal's inode is in use, and the volume has no journal", "it is freed");
            return self.free_inode(number);
        }
        let kind = match fields {
            Fields::File(kind) => kind,
            Fields::Nothing(why) => {
                self.found(format!("inode {number}: {why}"), "the inode is freed");
                return self.free_inode(number);
            }
        };
        if number == super::reserved::RESIZE {
            return self.resize_inode(number, inode, has_sum);
        }
        let Some(blocks) = self.blocks_of(number, kind, &mut inode)? else {
            return self.free_inode(number);
        };
        let block_bytes = self.parts.metadata.shape.block_bytes;
        let sectors = blocks * block_bytes as u64 / 512;
        let is_whole = !self.walk.rebuilds.contains_key(&number) && !self.walk.attribute_copies.contains(&number);
        if is_whole && sectors != inode.sectors(block_bytes) {
            let said = inode.sectors(block_bytes);
            let what = format!("inode {number} counts {said} blocks of 512 bytes, and has {sectors}");
            self.found(what, "the count is corrected");
            inode.set_blocks(blocks, block_bytes);
        }
        if !has_sum && self.walk.findings.len() == before {
            let (said, sum) = (stored.said_checksum(), stored.checksum(number, sums).unwrap_or(0));
            let what = format!("inode {number}: its checksum is {said:08x}, and should be {sum:08x}");
            self.found(what, "its fields can be those of a file, and get a new checksum");
        }
        if !has_sum || inode != stored {
            self.put_inode(number, &inode)?;
        }
        bits::put(&mut self.walk.used_inodes, number - 1..number, true);
        if !is_reserved {
            // One that is named by its number needs no name, and has no links to count.
            if inode.has(flag::IMAGIC) {
                self.walk.numbered.insert(number);
            }
            self.walk.files.insert(number, FileEntry { kind, links: inode.links() });
        }
        Ok(())
    }

    /// A reserved inode that is no file has no flag of one.
    fn check_unused_reserved(&mut self, number: u32, mut inode: Inode) -> Result<(), VolumeError> {
        if !inode.has(flag::CASEFOLD) {
            return Ok(());
        }
        self.found(format!("inode {number} is reserved, and has the flag of a directory"), "the flag is cleared");
        inode.set_flags(inode.flags() & !flag::CASEFOLD);
        self.put_inode(number, &inode)
    }

    /// An inode without links has the time of its deletion, which is no inode's number: the list of orphans keeps
    /// numbers there.
    fn check_free_inode(&mut self, number: u32, mut inode: Inode, has_sum: bool) -> Result<(), VolumeError> {
        let (mode, deleted) = (inode.mode(), inode.deleted());
        let is_time = deleted == 0 || deleted >= self.parts.metadata.shape.inodes || !self.has_real_times();
        if (mode == 0 || deleted != 0) && is_time {
            if !has_sum && inode.bytes().iter().any(|byte| *byte != 0) {
                self.found(format!("inode {number} is free, and its checksum is wrong"), "it gets a new one");
                self.put_inode(number, &inode)?;
            }
            return Ok(());
        }
        let what = format!("inode {number} has no links, and says {deleted} for the time of its deletion");
        self.found(what, "the time of the repair is put there");
        inode.set_deleted(seconds(self.now));
        self.put_inode(number, &inode)
    }

    /// True if the volume was made and used at times that cannot be numbers of inodes.
    fn has_real_times(&self) -> bool {
        [44, 48, 64, 264].into_iter().all(|at| match self.superblock.u32(at) {
            0 => at != 48,
            time => time >= self.parts.metadata.shape.inodes,
        })
    }

    /// Mends the fields of an inode in use, but for its map and its attributes.
    fn fields(&mut self, number: u32, inode: &mut Inode) -> Fields {
        let Some(mut kind) = inode.kind() else {
            return Fields::Nothing(format!("its mode is {:#o}", inode.mode()));
        };
        if self.is_really_a_directory(number, kind, inode) {
            self.found(format!("inode {number} is a {kind:?}, and its map begins with a directory"), "it becomes one");
            kind = FileKind::Directory;
            inode.set_mode(kind, inode.permissions());
        }
        if inode.has(flag::ENCRYPTED) {
            return Fields::Nothing("it is flagged as encrypted, and the volume has no such feature".to_string());
        }
        if inode.has(flag::INLINE) {
            if inode.attribute_room().is_some_and(|room| has_inline_data(&inode.bytes()[room])) {
                self.walk.unknown.get_or_insert(format!("inode {number} has its bytes in itself (inline data)"));
            }
            let what = format!("inode {number} is flagged as inline data, and the volume has no such feature");
            self.found(what, "the flag is cleared");
            inode.set_flags(inode.flags() & !flag::INLINE);
        }
        self.extra_bytes(number, inode);
        if inode.deleted() != 0 && !self.orphans.contains(&number) {
            self.found(format!("inode {number} is in use, and has a time of deletion"), "the time is cleared");
            inode.set_deleted(0);
        }
        self.unused_fields(number, inode);
        self.flags(number, kind, inode);
        if !matches!(kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink) {
            self.special_fields(number, kind, inode);
        }
        if kind == FileKind::Directory && number != ROOT && le32(inode.bytes(), 108) != 0 {
            let what = format!("inode {number} is a directory of {} bytes", inode.size());
            self.found(what, "the high half of its size is cleared");
            inode.set_size(inode.size() & u64::from(u32::MAX));
        }
        Fields::File(kind)
    }

    /// Mends the fields of a device or the like, which has no bytes and no map.
    fn special_fields(&mut self, number: u32, kind: FileKind, inode: &mut Inode) {
        if inode.size() != 0 {
            let what = format!("inode {number} is a {kind:?} of {} bytes", inode.size());
            self.found(what, "its size is set to 0");
            inode.set_size(0);
        }
        // Older kernels left blocks there, but none set these flags of a device.
        let is_flagged = inode.has(flag::IMMUTABLE) || inode.has(flag::APPEND_ONLY);
        if is_flagged && inode.map()[DEVICE_NUMBERS..].iter().any(|byte| *byte != 0) {
            let what = format!("inode {number} is a {kind:?} that never changes, and has blocks");
            self.found(what, "all of its map but the device's number is cleared");
            inode.map_mut()[DEVICE_NUMBERS..].fill(0);
        }
    }

    /// True if the mode of an inode is that of a device or the like, and the first block of its map begins with its `.` and
    /// a `..`.
    fn is_really_a_directory(&self, number: u32, kind: FileKind, inode: &Inode) -> bool {
        if matches!(kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink) {
            return false;
        }
        let first = match le16(inode.map(), 0) {
            extents::MAGIC => Extent::read(&inode.map()[extents::HEADER..]).place,
            _ => u64::from(le32(inode.map(), 0)),
        };
        let is_free = self.parts.metadata.shape.holds(first, 1) && !self.is_used(first);
        is_free
            && self.read(first).is_ok_and(|block| {
                let begins = |at: usize, name: &[u8]| {
                    usize::from(block[at + 6]) == name.len() && block[at + 8..].starts_with(name)
                };
                begins(0, b".") && le16(&block, 4) == DOT as u16 && le32(&block, 0) == number && begins(DOT, b"..")
            })
    }

    /// The kind of an inode that the volume needs for itself.
    fn reserved_fields(inode: &Inode) -> Fields {
        match inode.kind() {
            Some(kind @ FileKind::Regular) => Fields::File(kind),
            _ => Fields::Nothing(format!("its mode is {:#o}, and it is one of the volume's own", inode.mode())),
        }
    }

    fn extra_bytes(&mut self, number: u32, inode: &mut Inode) {
        let bytes = inode.bytes().len();
        let extra = inode.extra();
        let can_be = extra == 0 || extra >= LEAST_EXTRA && 128 + extra <= bytes && extra.is_multiple_of(4);
        if bytes > 128 && !can_be {
            let right = self.parts.metadata.shape.extra_bytes;
            let what = format!("inode {number} has {extra} extra bytes of {}", bytes - 128);
            self.found(what, format!("{right} are set, as new inodes have"));
            put16(inode.bytes_mut(), 128, right);
        }
    }

    /// Clears fields that a volume of these features does not use.
    fn unused_fields(&mut self, number: u32, inode: &mut Inode) {
        if le32(inode.bytes(), FRAGMENT) != 0 {
            self.found(format!("inode {number} has a fragment, which no volume has"), "the field is cleared");
            put32(inode.bytes_mut(), FRAGMENT, 0);
        }
        for (at, feature, what) in [
            (BLOCKS_HIGH, HUGE_FILE, "more than 2^32 blocks of 512 bytes"),
            (ATTRIBUTES_HIGH, WIDE, "a block of attributes above 2^32"),
        ] {
            if le16(inode.bytes(), at) != 0 && !self.parts.metadata.shape.features.has(feature) {
                let what = format!("inode {number} has {what}, and the volume has no such feature");
                self.found(what, "the field is cleared");
                put16(inode.bytes_mut(), at, 0);
            }
        }
    }

    /// Mends flags that the kind of a file, or the form of its map, contradicts.
    fn flags(&mut self, number: u32, kind: FileKind, inode: &mut Inode) {
        let has_map = matches!(kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink);
        let root = self.looks_like_extents(inode);
        let has_extents = inode.has(flag::EXTENTS);
        let is_link_text = kind == FileKind::Symlink && inode.size() < MAP_BYTES as u64 && !root;
        let should_have = match self.parts.metadata.shape.has_extents() {
            // The volume gets the feature, rather than the file another map.
            false => {
                let is_used = has_map && has_extents && root && !is_link_text;
                self.walk.has_extents |= is_used;
                is_used
            }
            true if !has_map || is_link_text => false,
            true if has_extents => root || !self.looks_like_numbers(inode),
            true => root,
        };
        let mut wanted = inode.flags();
        let mut set = |bit: u32, is_set: bool| wanted = if is_set { wanted | bit } else { wanted & !bit };
        set(flag::EXTENTS, should_have);
        if kind != FileKind::Directory || !self.parts.metadata.shape.has_indexes() {
            set(flag::INDEX, false);
        }
        // Features that no volume has that is repaired here.
        set(flag::CASEFOLD, false);
        if !self.parts.metadata.shape.features.has(IMAGIC) {
            set(flag::IMAGIC, false);
        }
        if wanted != inode.flags() {
            let what = format!("inode {number} is a {kind:?} with flags {:#x}", inode.flags());
            self.found(what, format!("flags {wanted:#x} are set, which its map has"));
            inode.set_flags(wanted);
        }
    }

    /// True if a map begins as a node of extents does.
    fn looks_like_extents(&self, inode: &Inode) -> bool {
        let map = inode.map();
        le16(map, 0) == extents::MAGIC && Node::read(map, None, |_, _| true).is_ok()
            || le16(map, 0) == extents::MAGIC && le16(map, 4) == extents::most_entries(MAP_BYTES, false) as u16
    }

    /// True if a map has blocks of the volume, or holes, alone.
    fn looks_like_numbers(&self, inode: &Inode) -> bool {
        let numbers = inode.map().chunks_exact(4).map(|number| u64::from(le32(number, 0)));
        let mut named = 0;
        let all = numbers.into_iter().all(|block| {
            named += u32::from(block != 0);
            block == 0 || self.parts.metadata.shape.holds(block, 1)
        });
        all && named > 0
    }

    /// Checks the map and the attributes of a file, and returns the blocks that it takes; `None` if it cannot be a file.
    fn blocks_of(&mut self, number: u32, kind: FileKind, inode: &mut Inode) -> Result<Option<u64>, VolumeError> {
        let mut blocks = 0;
        if kind == FileKind::Symlink && !self.check_short_link(number, inode) {
            return Ok(None);
        }
        if inode.has_map() {
            let map = self.read_map(number, inode)?;
            let Some(map) = self.check_size(number, kind, inode, map)? else { return Ok(None) };
            blocks += map.blocks();
            if kind == FileKind::Regular {
                self.settle_doubtful(number, &map);
            }
            self.claim(number, &map);
        }
        blocks += self.check_attributes(number, inode)?;
        Ok(Some(blocks))
    }
}
