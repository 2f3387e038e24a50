//! Sizes of files against their maps, and the targets of symbolic links.

use super::Check;
use super::maps::FileMap;
use crate::fs::ext::format::features::VERITY;
use crate::fs::ext::format::inode::{Inode, MAP_BYTES, flag};
use crate::fs::volume::{FileKind, VolumeError};

impl Check<'_> {
    /// Compares the size of a file with its map. `None`: it cannot be a file, and was reported.
    pub(super) fn check_size(
        &mut self,
        number: u32,
        kind: FileKind,
        inode: &mut Inode,
        mut map: FileMap,
    ) -> Result<Option<FileMap>, VolumeError> {
        let block_bytes = self.parts.metadata.shape.block_bytes as u64;
        let size = inode.size();
        match kind {
            FileKind::Directory => {
                if map.extents.is_empty() && !map.nodes.is_empty() {
                    let what = format!("inode {number} is a directory of a map without blocks");
                    self.found(what, "it gets a block, without names");
                    map.is_damaged = true;
                    return Ok(Some(map));
                }
                if map.extents.is_empty() {
                    let what = format!("inode {number} is a directory without blocks");
                    self.found(what, "it is freed; files that it named get names in lost+found");
                    return Ok(None);
                }
                if !map.is_gapless() {
                    let what = format!("inode {number} is a directory with holes");
                    self.found(what, "the holes are closed");
                    map.close_holes();
                }
                let right = map.end() * block_bytes;
                if size != right {
                    let what = format!("inode {number} is a directory of {size} bytes, and has blocks for {right}");
                    self.found(what, "its size is corrected");
                    inode.set_size(right);
                }
            }
            FileKind::Symlink => {
                let target = self.target(&map)?;
                let right = target.len() as u64;
                if right == 0 {
                    let what = format!("inode {number} is a symbolic link without a target");
                    self.found(what, "the inode is freed");
                    return Ok(None);
                }
                if size != right {
                    let what = format!("inode {number} is a symbolic link of {size} bytes, and its target has {right}");
                    self.found(what, "its size is corrected");
                    inode.set_size(right);
                }
                // So short a target is in the inode.
                if right < MAP_BYTES as u64 {
                    if size == right {
                        let what = format!("inode {number} is a symbolic link whose short target has a block");
                        self.found(what, "the target moves into the inode");
                    }
                    inode.set_flags(inode.flags() & !flag::EXTENTS);
                    inode.map_mut().fill(0);
                    inode.map_mut()[..target.len()].copy_from_slice(&target);
                    return Ok(Some(FileMap::default()));
                }
            }
            _ => {
                let longest = self.parts.metadata.shape.longest_map(inode.has(flag::EXTENTS));
                self.walk.has_long_files |= size >= 1 << 31;
                let end = map.last_written().map_or(0, |last| last + 1) * block_bytes;
                // The last block may begin behind the end by a power cut, but not more of them.
                let has_hashes = inode.has(flag::VERITY) && self.parts.metadata.shape.features.has(VERITY);
                let is_short = !has_hashes && !self.orphans.contains(&number) && size + block_bytes < end;
                if size > longest || is_short {
                    let what = format!("inode {number} has {size} bytes, and blocks for {end}");
                    self.found(what, "its size is corrected");
                    inode.set_size(end);
                }
            }
        }
        Ok(Some(map))
    }

    /// The target in the only block of a symbolic link; empty if it has none that can be.
    fn target(&self, map: &FileMap) -> Result<Vec<u8>, VolumeError> {
        match map.place(0) {
            Some(place) if map.end() == 1 => {
                let block = self.read(place)?;
                let length = block.iter().position(|byte| *byte == 0).unwrap_or(0);
                Ok(block[..length].to_vec())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Checks a symbolic link whose target is in its inode. False if it has no target.
    pub(super) fn check_short_link(&mut self, number: u32, inode: &mut Inode) -> bool {
        if !inode.is_short_link() {
            return true;
        }
        let map = inode.map();
        let right = map.iter().position(|byte| *byte == 0).unwrap_or(map.len()) as u64;
        if right == 0 || right == map.len() as u64 {
            self.found(format!("inode {number} is a symbolic link without a target"), "the inode is freed");
            return false;
        }
        if inode.size() != right {
            let what =
                format!("inode {number} is a symbolic link of {} bytes, and its target has {right}", inode.size());
            self.found(what, "its size is corrected");
            inode.set_size(right);
        }
        true
    }
}
