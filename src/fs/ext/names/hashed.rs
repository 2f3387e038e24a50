//! The way through the index of a hashed directory.

use super::blocks::{BlockKind, DirectoryBlock, FoundName};
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::hash::{Hash, HashKind};
use crate::fs::ext::format::index::{self, Child, RootInfo};
use crate::fs::ext::names::Directories;
use crate::fs::volume::VolumeError;
use crate::task::Task;

/// A node on the way, and the child that the way takes.
#[derive(Clone)]
pub struct Level {
    pub block: DirectoryBlock,
    pub children: Vec<Child>,
    pub at: usize,
}

/// The way from the root of an index to a block of names.
#[derive(Clone)]
pub struct Way {
    pub levels: Vec<Level>,
    pub kind: HashKind,
}

impl Way {
    /// The block of names that it leads to.
    pub fn leaf(&self) -> u64 {
        let last = self.levels.last().expect("a way begins at the root");
        u64::from(last.children[last.at].block)
    }
}

impl Directories<'_> {
    /// The fields of the root of a directory's index, and the hash of its names.
    pub fn index_root(&self, file: &File, root: &DirectoryBlock) -> Result<(RootInfo, HashKind), VolumeError> {
        let what = || format!("the index of {}", Directories::directory_name(file.number));
        let info = index::read_root_info(&root.bytes).map_err(|why| damaged(what(), why))?;
        let kind = HashKind::of(info.hash_number, self.metadata.shape.has_unsigned_hashes);
        let kind = kind.ok_or_else(|| damaged(what(), format!("its hash has the number {}", info.hash_number)))?;
        Ok((info, kind))
    }

    fn index_level(
        &self,
        task: &Task<'_>,
        file: &File,
        number: u64,
        kind: BlockKind,
    ) -> Result<(DirectoryBlock, Vec<Child>), VolumeError> {
        let block = self.directory_block(task, file, number, kind)?;
        let is_root = kind == BlockKind::Root;
        let children =
            index::read(&block.bytes, is_root, self.metadata.shape.has_checksums(), self.directory_blocks(file));
        let what = || format!("block {number} of {}", Directories::directory_name(file.number));
        Ok((block, children.map_err(|why| damaged(what(), why))?))
    }

    /// The way to the block of names with this hash.
    pub fn way_to(&self, task: &Task<'_>, file: &File, major: impl Fn(HashKind) -> u32) -> Result<Way, VolumeError> {
        let (root, children) = self.index_level(task, file, 0, BlockKind::Root)?;
        let (info, kind) = self.index_root(file, &root)?;
        let major = major(kind);
        // A mark on the hash says that it goes on from the block before: the first of them is meant.
        let child = |children: &[Child]| children[1..].partition_point(|child| child.hash <= major);
        let at = child(&children);
        let mut levels = vec![Level { block: root, children, at }];
        for _ in 0..info.levels {
            let last = &levels[levels.len() - 1];
            let number = u64::from(last.children[last.at].block);
            let (block, children) = self.index_level(task, file, number, BlockKind::Node)?;
            let at = child(&children);
            levels.push(Level { block, children, at });
        }
        Ok(Way { levels, kind })
    }

    /// Goes on to the next block of names, and answers the hash that it begins with; `None` at the end.
    pub fn go_on(&self, task: &Task<'_>, file: &File, way: &mut Way) -> Result<Option<u32>, VolumeError> {
        let Some(level) = way.levels.iter().rposition(|level| level.at + 1 < level.children.len()) else {
            return Ok(None);
        };
        way.levels[level].at += 1;
        let hash = way.levels[level].children[way.levels[level].at].hash;
        for below in level + 1..way.levels.len() {
            let above = &way.levels[below - 1];
            let number = u64::from(above.children[above.at].block);
            let (block, children) = self.index_level(task, file, number, BlockKind::Node)?;
            way.levels[below] = Level { block, children, at: 0 };
        }
        Ok(Some(hash))
    }

    /// Finds a name through the index.
    pub fn find_hashed(&self, task: &Task<'_>, file: &File, name: &[u8]) -> Result<Option<FoundName>, VolumeError> {
        let seed = self.metadata.shape.hasher.seed;
        let mut way = self.way_to(task, file, |kind| kind.hash(name, seed).major)?;
        let major = way.kind.hash(name, seed).major;
        loop {
            let block = self.directory_block(task, file, way.leaf(), BlockKind::Names)?;
            if let Some(entry) = self.find_in(file, &block, name)? {
                return Ok(Some(FoundName { block, entry }));
            }
            // The same hash may go on in the next block.
            match self.go_on(task, file, &mut way)? {
                Some(hash) if hash == major | 1 => {}
                _ => return Ok(None),
            }
        }
    }

    /// The names of a block with their hashes, sorted by them.
    pub fn hashed_names(
        &self,
        file: &File,
        block: &DirectoryBlock,
        kind: HashKind,
    ) -> Result<Vec<(Hash, crate::fs::ext::format::entries::Entry)>, VolumeError> {
        let seed = self.metadata.shape.hasher.seed;
        let mut names = Vec::new();
        for entry in self.entries(file, block) {
            let entry = entry?;
            let name = if entry.is_used() { entry.name(&block.bytes) } else { b"." };
            if name != b"." && name != b".." {
                names.push((kind.hash(name, seed), entry));
            }
        }
        names.sort_by_key(|(hash, entry)| (*hash, entry.at));
        Ok(names)
    }
}
