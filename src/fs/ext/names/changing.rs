//! Names are put into a directory, taken out of it, and given to another inode.

use super::blocks::{BlockKind, DirectoryBlock, FoundName, PARENT};
use super::index_growth::GrowingIndex;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::bytes::put32;
use crate::fs::ext::format::entries;
use crate::fs::ext::journal::Handle;
use crate::fs::ext::names::Directories;
use crate::fs::volume::{FileKind, VolumeError};

/// Blocks that are changed where a name is put into a directory: those of names and of the index, and a new one's place.
pub const NAME_BLOCKS: usize = 64;
/// Blocks that a directory may need for a name.
pub const NEW_BLOCKS: u64 = 16;

impl Directories<'_> {
    /// Puts a name into a directory that has it not. Blocks for it were promised; the directory's inode is stored by the
    /// caller.
    pub fn add_name(
        &self,
        handle: &Handle<'_>,
        directory: &mut File,
        entry: (&[u8], u32, FileKind),
    ) -> Result<(), VolumeError> {
        if self.is_indexed(directory) {
            return GrowingIndex { directories: *self, handle, directory }.add(entry);
        }
        for number in 0..self.directory_blocks(directory) {
            let block = self.directory_block(handle.task, directory, number, BlockKind::Names)?;
            if self.put_entry(handle, directory, &block, entry)? {
                return Ok(());
            }
        }
        if self.directory_blocks(directory) == 1
            && self.metadata.shape.has_indexes()
            && self.metadata.shape.hasher.kind.is_some()
        {
            let mut index = GrowingIndex { directories: *self, handle, directory };
            index.make()?;
            return index.add(entry);
        }
        let (number, place) = self.add_directory_block(handle, directory)?;
        let mut bytes = vec![0; self.metadata.shape.block_bytes];
        entries::clear(&mut bytes, self.metadata.shape.has_checksums());
        let block = DirectoryBlock { number, place, bytes: bytes.into() };
        let is_put = self.put_entry(handle, directory, &block, entry)?;
        assert!(is_put, "an empty block has room for a name");
        Ok(())
    }

    /// Takes a name out of a directory.
    /// The task is alone behind the gate of the file that loses it.
    pub fn remove_name(&self, handle: &Handle<'_>, directory: &File, found: &FoundName) -> Result<(), VolumeError> {
        self.known_names.forget(directory.number, found.entry.name(&found.block.bytes));
        let mut bytes = found.block.bytes.to_vec();
        let what = || format!("block {} of {}", found.block.number, Directories::directory_name(directory.number));
        entries::remove(&mut bytes, self.metadata.shape.has_checksums(), found.entry.at)
            .map_err(|why| damaged(what(), why))?;
        self.put_directory_block(handle, directory, found.block.place, bytes, BlockKind::Names);
        Ok(())
    }

    /// Gives a name to another inode. The task is alone behind the gate of the file that loses it.
    pub fn set_name(&self, handle: &Handle<'_>, directory: &File, found: &FoundName, (inode, kind): (u32, FileKind)) {
        self.known_names.forget(directory.number, found.entry.name(&found.block.bytes));
        let mut bytes = found.block.bytes.to_vec();
        put32(&mut bytes, found.entry.at, inode);
        bytes[found.entry.at + 7] = self.entry_kind(kind);
        self.put_directory_block(handle, directory, found.block.place, bytes, BlockKind::Names);
    }

    /// Sets the `..` of a directory.
    pub fn set_parent(&self, handle: &Handle<'_>, directory: &File, parent: u32) -> Result<(), VolumeError> {
        let kind = if self.is_indexed(directory) { BlockKind::Root } else { BlockKind::Names };
        let block = self.directory_block(handle.task, directory, 0, kind)?;
        let mut bytes = block.bytes.to_vec();
        put32(&mut bytes, PARENT, parent);
        self.put_directory_block(handle, directory, block.place, bytes, kind);
        Ok(())
    }

    /// Fills a new directory's first block: `.` and `..`.
    pub fn fill_directory(&self, handle: &Handle<'_>, directory: &mut File, parent: u32) -> Result<(), VolumeError> {
        let (_, place) = self.add_directory_block(handle, directory)?;
        let bytes = self.first_directory_block(directory.number, parent);
        self.put_directory_block(handle, directory, place, bytes, BlockKind::Names);
        Ok(())
    }

    /// The first block of a directory without names.
    pub fn first_directory_block(&self, own: u32, parent: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.metadata.shape.block_bytes];
        let has_tail = self.metadata.shape.has_checksums();
        let end = entries::room(bytes.len(), has_tail).end;
        let kind = self.entry_kind(FileKind::Directory);
        entries::write_entry(&mut bytes, 0, PARENT, own, b".", kind);
        entries::write_entry(&mut bytes, PARENT, end - PARENT, parent, b"..", kind);
        if has_tail {
            entries::write_tail(&mut bytes);
        }
        bytes
    }
}
