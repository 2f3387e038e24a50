//! Maps of files: read as far as they can be, and written anew.

use super::Check;
use crate::fs::ext::format::block_map::DIRECT;
use crate::fs::ext::format::bytes::{le16, le32, put32};
use crate::fs::ext::format::extents::{
    Child, DEEPEST, ENTRY, Extent, HEADER, MAGIC, Node, is_sound, most_entries, sum,
};
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::volume::VolumeError;
use std::ops::Range;

/// Nodes above a leaf that are followed. More than [`DEEPEST`] are not read by a mount, here and elsewhere.
const DEEPEST_FOLLOWED: u16 = 16;
/// Entries that a node may have room for, and does not use.
const SLACK: u16 = 2;

/// The blocks of a file that its map names.
#[derive(Debug, Default)]
pub(super) struct FileMap {
    /// In their order in the file, without overlaps.
    pub extents: Vec<Extent>,
    /// Blocks of the map itself.
    pub nodes: Vec<u64>,
    /// A part was left out, or is not where its parent says: the map must be written anew.
    pub is_damaged: bool,
}

impl FileMap {
    /// Blocks that it takes, its own among them.
    pub fn blocks(&self) -> u64 {
        self.nodes.len() as u64 + self.extents.iter().map(|extent| u64::from(extent.count)).sum::<u64>()
    }

    /// The block of the file behind the last one.
    pub fn end(&self) -> u64 {
        self.extents.last().map_or(0, Extent::end)
    }

    /// The last written block of the file.
    pub fn last_written(&self) -> Option<u64> {
        self.extents.iter().rfind(|extent| extent.is_written).map(|extent| extent.end() - 1)
    }

    /// True if all blocks up to the last one are written.
    pub fn is_gapless(&self) -> bool {
        let mut next = 0;
        self.extents.iter().all(|extent| {
            let follows = u64::from(extent.first) == next && extent.is_written;
            next = extent.end();
            follows
        })
    }

    /// Closes holes: the blocks that follow a hole move up.
    pub fn close_holes(&mut self) {
        let mut next = 0;
        for extent in &mut self.extents {
            extent.first = next;
            extent.is_written = true;
            next += extent.count;
        }
        self.is_damaged = true;
    }

    /// The block of the volume that holds a block of the file.
    pub fn place(&self, at: u64) -> Option<u64> {
        let next = self.extents.partition_point(|extent| u64::from(extent.first) <= at);
        let extent = &self.extents[next.checked_sub(1)?];
        extent.part(at, u64::MAX).map(|part| part.place)
    }

    /// Adds an extent, joined with the last one if they are one.
    pub fn push(&mut self, extent: Extent) {
        match self.extents.last_mut() {
            Some(last) if last.joins(&extent) => last.count += extent.count,
            _ => self.extents.push(extent),
        }
    }
}

impl Check<'_> {
    /// Reads the map of a file. Parts that cannot be are reported and left out.
    pub(super) fn read_map(&mut self, number: u32, inode: &Inode) -> Result<FileMap, VolumeError> {
        let mut map = FileMap::default();
        let root = inode.map().to_vec();
        if inode.has(flag::EXTENTS) {
            self.read_extents(number, inode, &root, None, 0..u64::from(u32::MAX), &mut map)?;
        } else {
            let pointers = self.parts.metadata.shape.block_bytes as u64 / 4;
            for place in 0..DIRECT {
                self.read_number(number, le32(&root, 4 * place as usize), 0, place, &mut map)?;
            }
            let mut first = DIRECT;
            for level in 1..=3u32 {
                let place = DIRECT as usize + level as usize - 1;
                self.read_number(number, le32(&root, 4 * place), level, first, &mut map)?;
                first += pointers.pow(level);
            }
        }
        Ok(map)
    }

    fn map_fault(&mut self, number: u32, why: String, map: &mut FileMap) {
        map.is_damaged = true;
        self.found(format!("the map of inode {number}: {why}"), "the map is written anew, without this part");
    }

    /// Reads a node of extents for blocks of the file `within`, at `depth` if its parent says so.
    fn read_extents(
        &mut self,
        number: u32,
        inode: &Inode,
        bytes: &[u8],
        depth: Option<u16>,
        within: Range<u64>,
        map: &mut FileMap,
    ) -> Result<(), VolumeError> {
        let (magic, count, most, at) = (le16(bytes, 0), le16(bytes, 2), le16(bytes, 4), le16(bytes, 6));
        let room = most_entries(bytes.len(), false) as u16;
        if magic != MAGIC || at > DEEPEST_FOLLOWED || depth.is_some_and(|depth| depth != at) {
            let why = format!("a node has the magic number {magic:#06x} and depth {at}");
            self.map_fault(number, why, map);
            return Ok(());
        }
        if at > DEEPEST && depth.is_none() {
            let what = format!("the map of inode {number}: its depth is {at}, and {DEEPEST} is the most");
            map.is_damaged = true;
            self.found(what, "the map is written anew");
        }
        if most > room || most + SLACK < room || count > most || depth.is_some() && at > 0 && count == 0 {
            self.map_fault(number, format!("a node says {count} of {most} entries, and has room for {room}"), map);
        }
        let entries: Vec<&[u8]> = bytes[HEADER..].chunks_exact(ENTRY).take(count.min(room).into()).collect();
        let mut next = within.start;
        for (place, entry) in entries.iter().enumerate() {
            if at == 0 {
                let extent = Extent::read(entry);
                let fits = extent.count > 0 && u64::from(extent.first) >= next && extent.end() <= within.end;
                if !fits || !self.parts.metadata.shape.holds(extent.place, extent.count.into()) {
                    self.map_fault(number, format!("{extent:?} is out of order, or out of the volume"), map);
                    continue;
                }
                next = extent.end();
                map.extents.push(extent);
                continue;
            }
            let child = Child::read(entry);
            let end = entries.get(place + 1).map_or(within.end, |next| Child::read(next).first.into());
            let is_inside = u64::from(child.first) >= next && end <= within.end && u64::from(child.first) < end;
            if !is_inside || !self.parts.metadata.shape.holds(child.block, 1) || map.nodes.contains(&child.block) {
                self.map_fault(number, format!("{child:?} is out of order, out of the volume, or twice there"), map);
                continue;
            }
            next = child.first.into();
            map.nodes.push(child.block);
            let below = self.read(child.block)?;
            if let Some(seed) = self.parts.metadata.shape.checksums.inode_seed(number, inode.generation())
                && !is_sound(&below, seed)
            {
                let what = format!("the map of inode {number}: the checksum of block {} is wrong", child.block);
                map.is_damaged = true;
                self.found(what, "its entries that can be are kept");
            }
            if le16(&below, 0) == MAGIC && le16(&below, 2) > 0 && le32(&below, HEADER) != child.first {
                let first = le32(&below, HEADER);
                let what =
                    format!("the map of inode {number}: a node begins at {first}, and should at {}", child.first);
                map.is_damaged = true;
                self.found(what, "the map is written anew");
            }
            self.read_extents(number, inode, &below, Some(at - 1), next..end, map)?;
        }
        Ok(())
    }

    /// Reads a number of a block map, `level` levels above the file's blocks, of which the first is `first`.
    fn read_number(
        &mut self,
        number: u32,
        block: u32,
        level: u32,
        first: u64,
        map: &mut FileMap,
    ) -> Result<(), VolumeError> {
        if block == 0 {
            return Ok(());
        }
        let block = u64::from(block);
        let fits = self.parts.metadata.shape.holds(block, 1) && first < u64::from(u32::MAX);
        if !fits || level > 0 && map.nodes.contains(&block) {
            let why = format!("it names block {block} of a volume of {}", self.parts.metadata.shape.blocks);
            self.map_fault(number, why, map);
            return Ok(());
        }
        if level == 0 {
            map.push(Extent { first: first as u32, count: 1, place: block, is_written: true });
            return Ok(());
        }
        map.nodes.push(block);
        let numbers = self.read(block)?;
        let span = (self.parts.metadata.shape.block_bytes as u64 / 4).pow(level - 1);
        for (place, below) in numbers.chunks_exact(4).enumerate() {
            self.read_number(number, le32(below, 0), level - 1, first + place as u64 * span, map)?;
        }
        Ok(())
    }

    /// Writes a map of these extents into an inode, with new blocks for its nodes, and returns the number of these;
    /// `None` if too few blocks are free.
    pub(super) fn write_map(&mut self, number: u32, inode: &mut Inode, extents: &[Extent]) -> Option<u64> {
        if !inode.has(flag::EXTENTS) {
            return self.write_numbers(inode, extents);
        }
        let (block_bytes, has_tail) =
            (self.parts.metadata.shape.block_bytes, self.parts.metadata.shape.has_checksums());
        let seed = self.parts.metadata.shape.checksums.inode_seed(number, inode.generation());
        let in_root = most_entries(inode.map().len(), false);
        let in_block = most_entries(block_bytes, has_tail);
        let mut nodes = 0;
        let mut level: Vec<Node> = match extents.len() <= in_root {
            true => vec![Node::Leaf(extents.to_vec())],
            false => extents.chunks(in_block).map(|part| Node::Leaf(part.to_vec())).collect(),
        };
        // The last level that is left fits into the inode.
        while level.len() > 1 || level[0].len() > in_root {
            let mut children = Vec::new();
            for node in &level {
                let block = self.take_block()?;
                nodes += 1;
                let mut bytes = vec![0; block_bytes];
                node.write(&mut bytes, has_tail);
                if let Some(seed) = seed {
                    sum(&mut bytes, seed);
                }
                self.write(block, bytes);
                children.push(Child { first: node.first().expect("a node above a root has entries"), block });
            }
            let depth = level[0].depth() + 1;
            let most = if children.len() <= in_root { in_root } else { in_block };
            level = children.chunks(most).map(|part| Node::Index(depth, part.to_vec())).collect();
        }
        level[0].write(inode.map_mut(), false);
        Some(nodes)
    }

    fn write_numbers(&mut self, inode: &mut Inode, extents: &[Extent]) -> Option<u64> {
        let mut blocks = Vec::new();
        for extent in extents {
            let each = (0..u64::from(extent.count)).map(|at| (u64::from(extent.first) + at, extent.place + at));
            blocks.extend(each);
        }
        inode.map_mut().fill(0);
        let pointers = self.parts.metadata.shape.block_bytes as u64 / 4;
        let (mut first, mut nodes) = (0, 0);
        for place in 0..15u32 {
            let level = place.saturating_sub(DIRECT as u32 - 1);
            let end = first + pointers.pow(level);
            let from = blocks.partition_point(|(at, _)| *at < first);
            let to = blocks.partition_point(|(at, _)| *at < end);
            let block = self.write_number(&blocks[from..to], first, level, &mut nodes)?;
            put32(inode.map_mut(), 4 * place as usize, block as u32);
            first = end;
        }
        Some(nodes)
    }

    /// The number of a map for these blocks of the file, the first of which can be `first`.
    fn write_number(&mut self, blocks: &[(u64, u64)], first: u64, level: u32, nodes: &mut u64) -> Option<u64> {
        let Some((_, place)) = blocks.first() else { return Some(0) };
        if level == 0 {
            return Some(*place);
        }
        let (pointers, mut rest) = (self.parts.metadata.shape.block_bytes / 4, blocks);
        let span = (pointers as u64).pow(level - 1);
        let block = self.take_block()?;
        *nodes += 1;
        let mut bytes = vec![0; self.parts.metadata.shape.block_bytes];
        for place in 0..pointers {
            let at = first + place as u64 * span;
            let (part, behind) = rest.split_at(rest.partition_point(|(block, _)| *block < at + span));
            let below = self.write_number(part, at, level - 1, nodes)?;
            put32(&mut bytes, 4 * place, below as u32);
            rest = behind;
        }
        self.write(block, bytes);
        Some(block)
    }
}
