//! Maps with damaged nodes, and blocks that two files name. The first file keeps such a block, and each other one gets a
//! copy, since its bytes do not tell whose they are.

use super::Check;
use super::maps::FileMap;
use crate::fs::ext::format::attributes::set_sharers;
use crate::fs::ext::format::extents::Extent;
use crate::fs::ext::format::features::SHARED_BLOCKS;
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::format::shape::ROOT;
use crate::fs::volume::VolumeError;
use std::ops::Range;

/// Blocks of a file that are copied at the most, as the copies wait in memory. The others are left out.
const MOST_COPIED: u64 = 1 << 14;

impl Check<'_> {
    /// Marks the blocks of a file. If some of them were used before, or the map is damaged, the map is written anew when
    /// all used blocks are known.
    pub(super) fn claim(&mut self, number: u32, map: &FileMap) {
        let mut taken = Vec::new();
        for node in &map.nodes {
            taken.extend(self.mark(*node..node + 1));
        }
        for extent in &map.extents {
            taken.extend(self.mark(extent.place..extent.place + u64::from(extent.count)));
        }
        if self.parts.metadata.shape.features.has(SHARED_BLOCKS) {
            taken.clear();
        }
        if let Some(first) = taken.first() {
            let count: u64 = taken.iter().map(|range| range.end - range.start).sum();
            let what = format!("{count} blocks of inode {number}, from block {} on, are in use otherwise", first.start);
            self.found(what, "the inode gets copies of them");
        }
        if map.is_damaged || !taken.is_empty() {
            self.walk.rebuilds.insert(number, taken);
        }
    }

    /// Writes the maps anew that need it. All blocks in use are marked.
    pub(super) fn rebuild_maps(&mut self) -> Result<(), VolumeError> {
        for (number, taken) in std::mem::take(&mut self.walk.rebuilds) {
            self.rebuild_map(number, &taken)?;
        }
        for number in std::mem::take(&mut self.walk.attribute_copies) {
            self.copy_attributes(number)?;
        }
        Ok(())
    }

    /// Reads the map of a file without a report: its faults are known.
    fn known_map(&mut self, number: u32) -> Result<FileMap, VolumeError> {
        let inode = self.inode(number)?;
        let known = self.walk.findings.len();
        let map = self.read_map(number, &inode)?;
        self.walk.findings.truncate(known);
        Ok(map)
    }

    fn rebuild_map(&mut self, number: u32, taken: &[Range<u64>]) -> Result<(), VolumeError> {
        let mut map = self.known_map(number)?;
        if self.is_directory(number) && !map.is_gapless() {
            map.close_holes();
        }
        let is_taken = |block: u64| taken.iter().any(|range| range.contains(&block));
        for node in map.nodes.iter().filter(|node| !is_taken(**node)) {
            self.unmark(*node..node + 1);
        }
        let mut kept = FileMap::default();
        let mut copies = 0;
        for extent in &map.extents {
            for at in 0..extent.count {
                let place = extent.place + u64::from(at);
                let place = match is_taken(place) {
                    false => Some(place),
                    true if copies == MOST_COPIED => None,
                    true => {
                        copies += 1;
                        self.copy_block(place)?
                    }
                };
                match place {
                    Some(place) => {
                        kept.push(Extent { first: extent.first + at, count: 1, place, is_written: extent.is_written });
                    }
                    None => self.found(
                        format!("no room is left for a copy of block {place:?} of inode {number}"),
                        "the block reads as zeros",
                    ),
                }
            }
        }
        if self.is_directory(number) && kept.extents.is_empty() {
            return self.put_empty_directory(number);
        }
        self.put_map(number, &kept)
    }

    /// Gives a directory without blocks one of no names. The tree tells its parent later.
    fn put_empty_directory(&mut self, number: u32) -> Result<(), VolumeError> {
        let Some(place) = self.take_block() else {
            self.found(format!("no block is free for the directory with inode {number}"), "it is freed");
            self.walk.files.remove(&number);
            return self.free_inode(number);
        };
        let mut inode = self.inode(number)?;
        inode.set_flags(inode.flags() & !flag::INDEX);
        self.put_inode(number, &inode)?;
        self.put_first_block(number, &inode, place, ROOT)?;
        let mut map = FileMap::default();
        map.push(Extent { first: 0, count: 1, place, is_written: true });
        self.put_map(number, &map)
    }

    /// Copies a block to a free one; `None` if no block is free.
    fn copy_block(&mut self, from: u64) -> Result<Option<u64>, VolumeError> {
        let bytes = self.read(from)?.to_vec();
        let place = self.take_block();
        if let Some(place) = place {
            self.write(place, bytes);
        }
        Ok(place)
    }

    /// Gives a file a map of these extents. Extents that no map has room for are left out.
    pub(super) fn put_map(&mut self, number: u32, map: &FileMap) -> Result<(), VolumeError> {
        let mut inode = self.inode(number)?;
        let extents = &map.extents[..];
        let blocks = match self.write_map(number, &mut inode, extents) {
            Some(nodes) => nodes + extents.iter().map(|extent| u64::from(extent.count)).sum::<u64>(),
            None => {
                let what = format!("no block is free for the map of inode {number}");
                self.found(what, "the file loses its bytes");
                for extent in extents {
                    self.unmark(extent.place..extent.place + u64::from(extent.count));
                }
                let nodes = self.write_map(number, &mut inode, &[]);
                debug_assert_eq!(nodes, Some(0), "an empty map is in the inode");
                0
            }
        };
        let blocks = blocks + u64::from(inode.attribute_block() != 0);
        inode.set_blocks(blocks, self.parts.metadata.shape.block_bytes);
        if self.is_directory(number) {
            let end = extents.last().map_or(0, |extent| extent.end());
            inode.set_size(end * self.parts.metadata.shape.block_bytes as u64);
        }
        self.put_inode(number, &inode)
    }

    fn copy_attributes(&mut self, number: u32) -> Result<(), VolumeError> {
        let mut inode = self.inode(number)?;
        let mut block = self.read(inode.attribute_block())?.to_vec();
        let mut blocks =
            inode.sectors(self.parts.metadata.shape.block_bytes) * 512 / self.parts.metadata.shape.block_bytes as u64;
        match self.take_block() {
            Some(place) => {
                set_sharers(&mut block, 1);
                self.put_attributes(place, block);
                inode.set_attribute_block(place);
                self.walk.attributes.insert(place, 1);
            }
            None => {
                self.found(format!("no block is free for the attributes of inode {number}"), "they are lost");
                inode.set_attribute_block(0);
                blocks = blocks.saturating_sub(1);
            }
        }
        inode.set_blocks(blocks, self.parts.metadata.shape.block_bytes);
        self.put_inode(number, &inode)
    }

    pub(super) fn is_directory(&self, number: u32) -> bool {
        self.walk.files.get(&number).is_some_and(|file| file.kind == crate::fs::volume::FileKind::Directory)
    }
}
