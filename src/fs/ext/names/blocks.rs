//! The blocks of a directory, read and stored, and an entry in them.

use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::bytes::le32;
use crate::fs::ext::format::entries::{self, Entries, Entry};
use crate::fs::ext::format::index;
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::journal::{Handle, Reason};
use crate::fs::ext::names::Directories;
use crate::fs::volume::{FileKind, VolumeError};
use crate::label::Content;
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

    /// The number that entries have for a kind.
    pub fn entry_kind(&self, kind: FileKind) -> u8 {
        if self.metadata.shape.has_file_types() { entries::kind_number(kind) } else { 0 }
    }

    /// Stores a block of a directory.
    pub fn put_directory_block(
        &self,
        handle: &Handle<'_>,
        directory: &File,
        place: u64,
        mut bytes: Vec<u8>,
        kind: BlockKind,
    ) {
        if let Some(seed) = self.maps.seed_of(directory) {
            match kind {
                BlockKind::Names => entries::sum(&mut bytes, seed),
                BlockKind::Root => index::sum(&mut bytes, true, seed),
                BlockKind::Node => index::sum(&mut bytes, false, seed),
            }
        }
        handle.set(place, Content::Metadata, &bytes);
    }

    /// Adds a block to a directory, and says its number and its place. The caller fills it.
    pub fn add_directory_block(&self, handle: &Handle<'_>, directory: &mut File) -> Result<(u64, u64), VolumeError> {
        let number = self.directory_blocks(directory);
        if number > 0 {
            handle.tracker().into_iter().for_each(|tracker| tracker.exclude(Reason::GrownDirectory));
        }
        let goal = self.maps.goal(handle.task, directory, number)?;
        let run = self.maps.allocation.take_blocks(handle, goal, 1)?;
        let place = run.start;
        self.maps.put_run(handle, directory, number, run, true)?;
        directory.inode.set_size((number + 1) * self.metadata.shape.block_bytes as u64);
        directory.stored_size = directory.inode.size();
        Ok((number, place))
    }

    /// Puts an entry into a block of names, if there is room.
    pub fn put_entry(
        &self,
        handle: &Handle<'_>,
        directory: &File,
        block: &DirectoryBlock,
        (name, inode, kind): (&[u8], u32, FileKind),
    ) -> Result<bool, VolumeError> {
        let mut bytes = block.bytes.to_vec();
        let what = || format!("block {} of {}", block.number, Directories::directory_name(directory.number));
        let is_put = entries::put(&mut bytes, self.metadata.shape.has_checksums(), inode, name, self.entry_kind(kind));
        let is_put = is_put.map_err(|why| damaged(what(), why))?;
        if is_put {
            self.put_directory_block(handle, directory, block.place, bytes, BlockKind::Names);
        }
        Ok(is_put)
    }
}
