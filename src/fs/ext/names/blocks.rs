//! The blocks of a directory, and a name in them.

use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::bytes::le32;
use crate::fs::ext::format::entries::{self, Entries, Entry};
use crate::fs::ext::format::index;
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::names::Directories;
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::Task;

/// The place of `..` in a directory's first block: behind `.`.
pub const PARENT: usize = 12;

/// The kind of a block of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Names.
    Names,
    /// The root of an index.
    Root,
    /// A further node of one.
    Node,
}

/// A block of a directory.
#[derive(Clone)]
pub struct DirectoryBlock {
    /// Its number in the directory.
    pub number: u64,
    /// Its block on the volume.
    pub place: u64,
    pub bytes: Bytes,
}

/// A name that was found.
pub struct FoundName {
    pub block: DirectoryBlock,
    pub entry: Entry,
}

impl Directories<'_> {
    /// Names a directory in errors.
    pub fn directory_name(number: u32) -> String {
        format!("the directory with inode {number}")
    }

    /// Blocks of a directory.
    pub fn directory_blocks(&self, file: &File) -> u64 {
        file.inode.size() / self.metadata.shape.block_bytes as u64
    }

    /// True if a directory has an index that can be used.
    pub fn is_indexed(&self, file: &File) -> bool {
        file.inode.has(flag::INDEX) && self.metadata.shape.has_indexes()
    }

    /// Reads a block of a directory, which is of this kind.
    pub fn directory_block(
        &self,
        task: &Task<'_>,
        file: &File,
        number: u64,
        kind: BlockKind,
    ) -> Result<DirectoryBlock, VolumeError> {
        let what = || format!("block {number} of {}", Directories::directory_name(file.number));
        let place = self.maps.run(task, file, number)?.stored().ok_or_else(|| damaged(what(), "it is a hole"))?;
        let seed = self.maps.seed_of(file);
        let check = |bytes: &[u8]| {
            let is_sound = seed.is_none_or(|seed| match kind {
                BlockKind::Names => entries::is_sound(bytes, seed),
                BlockKind::Root => index::is_sound(bytes, true, seed),
                BlockKind::Node => index::is_sound(bytes, false, seed),
            });
            if is_sound { Ok(()) } else { Err("its checksum is wrong".to_string()) }
        };
        let bytes = self.metadata.block(task, place, &what, &check)?;
        Ok(DirectoryBlock { number, place, bytes })
    }

    /// The entries of a block of names.
    pub fn entries<'b>(
        &self,
        file: &File,
        block: &'b DirectoryBlock,
    ) -> impl Iterator<Item = Result<Entry, VolumeError>> + 'b {
        let (number, at) = (file.number, block.number);
        let entries =
            Entries::of(&block.bytes, self.metadata.shape.has_checksums(), self.metadata.shape.has_file_types());
        entries.map(move |entry| {
            entry.map_err(|why| damaged(format!("block {at} of {}", Directories::directory_name(number)), why))
        })
    }

    /// Finds a name in a block.
    pub fn find_in(&self, file: &File, block: &DirectoryBlock, name: &[u8]) -> Result<Option<Entry>, VolumeError> {
        for entry in self.entries(file, block) {
            let entry = entry?;
            if entry.is_used() && entry.name(&block.bytes) == name {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Finds a name that is no `.` or `..` in a directory.
    pub fn find_name(&self, task: &Task<'_>, file: &File, name: &[u8]) -> Result<Option<FoundName>, VolumeError> {
        if self.is_indexed(file) {
            return self.find_hashed(task, file, name);
        }
        for number in 0..self.directory_blocks(file) {
            let block = self.directory_block(task, file, number, BlockKind::Names)?;
            if let Some(entry) = self.find_in(file, &block, name)? {
                return Ok(Some(FoundName { block, entry }));
            }
        }
        Ok(None)
    }

    /// The inode of a directory's parent, as its `..` says.
    pub fn parent_of(&self, task: &Task<'_>, file: &File) -> Result<u32, VolumeError> {
        let kind = if self.is_indexed(file) { BlockKind::Root } else { BlockKind::Names };
        let block = self.directory_block(task, file, 0, kind)?.bytes;
        let parent = le32(&block, PARENT);
        if block[PARENT + 6] != 2 || &block[PARENT + 8..PARENT + 10] != b".." {
            return Err(damaged(Directories::directory_name(file.number), "its second name is not '..'"));
        }
        self.check_number(parent, || Directories::directory_name(file.number))?;
        Ok(parent)
    }

    /// Refuses the number of an inode that no name can have.
    pub fn check_number(&self, inode: u32, what: impl Fn() -> String) -> Result<(), VolumeError> {
        if inode == 0 || inode > self.metadata.shape.inodes || self.metadata.shape.is_reserved(inode) {
            return Err(damaged(what(), format!("it names inode {inode}")));
        }
        Ok(())
    }

    /// The inode that a name in a directory has, `.` and `..` among them; `None` if nothing has it.
    pub fn inode_named(&self, task: &Task<'_>, file: &File, name: &[u8]) -> Result<Option<u32>, VolumeError> {
        match name {
            b"." => Ok(Some(file.number)),
            b".." => self.parent_of(task, file).map(Some),
            name => match self.find_name(task, file, name)? {
                Some(found) => {
                    self.check_number(found.entry.inode, || Directories::directory_name(file.number))?;
                    Ok(Some(found.entry.inode))
                }
                None => Ok(None),
            },
        }
    }

    /// True if a directory has no names but `.` and `..`.
    pub fn is_empty_directory(&self, task: &Task<'_>, file: &File) -> Result<bool, VolumeError> {
        let mut is_empty = true;
        self.list_names(task, file, 2, &mut |_, _, _: Option<FileKind>, _| {
            is_empty = false;
            Ok(false)
        })?;
        Ok(is_empty)
    }
}
