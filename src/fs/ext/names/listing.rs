//! Names are found in a directory, and listed in an order that lasts: a place in it stays one while names come and go.
//!
//! Names that are hashed, or will be when the directory has a second block, are in the order of their hashes; those of
//! other directories in the order of their places, which they do not leave.

use super::blocks::{BlockKind, DirectoryBlock, FoundName};
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::hash::{Hash, HashKind};
use crate::fs::ext::names::Directories;
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::Task;

/// Places up to this one are those of `.` and `..`.
const DOTS: u64 = 2;

/// Takes the place behind a name, its inode, its kind if the directory says it, and the name. False: no more.
pub type TakeName<'t> = &'t mut dyn FnMut(u64, u32, Option<FileKind>, &[u8]) -> Result<bool, VolumeError>;

/// The place of a hash. The lowest bit of the first half is free, so that it is no negative number.
fn place_of(hash: Hash) -> u64 {
    DOTS + 1 + (u64::from(hash.major >> 1) << 32 | u64::from(hash.minor))
}

impl Directories<'_> {
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

    /// Lists the names behind place `from`, without `.` and `..`.
    pub fn list_names(&self, task: &Task<'_>, file: &File, from: u64, take: TakeName) -> Result<(), VolumeError> {
        let from = from.max(DOTS);
        if self.is_indexed(file) {
            return self.list_indexed(task, file, from, take);
        }
        match self.metadata.shape.hasher.kind {
            Some(kind) if self.metadata.shape.has_indexes() && self.directory_blocks(file) == 1 => {
                let block = self.directory_block(task, file, 0, BlockKind::Names)?;
                self.list_hashed(file, &[block], kind, from, take).map(drop)
            }
            _ => self.list_placed(task, file, from, take),
        }
    }

    /// Lists the names of blocks in the order of their hashes. False: no more are wanted.
    fn list_hashed(
        &self,
        file: &File,
        blocks: &[DirectoryBlock],
        kind: HashKind,
        from: u64,
        take: TakeName,
    ) -> Result<bool, VolumeError> {
        let mut names = Vec::new();
        for block in blocks {
            let hashed = self.hashed_names(file, block, kind)?;
            names.extend(hashed.into_iter().map(|(hash, entry)| (place_of(hash), block, entry)));
        }
        names.sort_by_key(|(place, ..)| *place);
        for (place, block, entry) in names.iter().filter(|(place, ..)| *place > from) {
            self.check_number(entry.inode, || Directories::directory_name(file.number))?;
            if !take(*place, entry.inode, entry.kind, entry.name(&block.bytes))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn list_indexed(&self, task: &Task<'_>, file: &File, from: u64, take: TakeName) -> Result<(), VolumeError> {
        let begin = (from.saturating_sub(DOTS + 1) >> 32) as u32;
        let mut way = self.way_to(task, file, |_| begin << 1)?;
        let mut more = Some(());
        while more.is_some() {
            let mut blocks = vec![self.directory_block(task, file, way.leaf(), BlockKind::Names)?];
            // Blocks that share a hash are listed together.
            more = loop {
                match self.go_on(task, file, &mut way)? {
                    Some(hash) if hash & 1 == 1 => {
                        blocks.push(self.directory_block(task, file, way.leaf(), BlockKind::Names)?);
                    }
                    next => break next.map(drop),
                }
            };
            if !self.list_hashed(file, &blocks, way.kind, from, take)? {
                break;
            }
        }
        Ok(())
    }

    fn list_placed(&self, task: &Task<'_>, file: &File, from: u64, take: TakeName) -> Result<(), VolumeError> {
        let block_bytes = self.metadata.shape.block_bytes as u64;
        let first = (from - DOTS).saturating_mul(4) / block_bytes;
        for number in first..self.directory_blocks(file) {
            let block = self.directory_block(task, file, number, BlockKind::Names)?;
            for entry in self.entries(file, &block) {
                let entry = entry?;
                let place = DOTS + 1 + (number * block_bytes + entry.at as u64) / 4;
                let name = entry.name(&block.bytes);
                if place <= from || !entry.is_used() || name == b"." || name == b".." {
                    continue;
                }
                self.check_number(entry.inode, || Directories::directory_name(file.number))?;
                if !take(place, entry.inode, entry.kind, name)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
