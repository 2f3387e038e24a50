//! The check of a volume: everything that is named, against everything that is said to be in use. Nothing is changed.
//!
//! 1. *Inodes*: every one in use, with its checksum; its map is walked, and each block may be named once.
//! 2. *Names*: from the root down; `.` and `..`, kinds, the order of hashed directories; how often each inode is named.
//! 3. *Links*: what names an inode against what it says; inodes in use that nothing names.
//! 4. *Bitmaps*: blocks and inodes in use against the bitmaps, and the counts of groups and of the superblock.

use crate::fs::ext::Ext;
use crate::fs::ext::allocation::bits;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::attributes::{has_sound_block_hashes, has_sound_inode_hashes, sharers};
use crate::fs::ext::format::extents::Node;
use crate::fs::ext::format::features::NEEDS_RECOVERY;
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::ext::format::shape::{JOURNAL, ROOT};
use crate::fs::ext::names::blocks::BlockKind;
use crate::fs::volume::{Damage, FileKind, VolumeError};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Findings that are told: a volume may be damaged all over.
const MOST_FINDINGS: usize = 1000;
/// The inode that reserves blocks for more descriptors.
const RESIZE: u32 = 7;

/// What the check has seen.
struct Check<'e> {
    ext: &'e Ext,
    task: &'e Task<'e>,
    findings: Vec<Damage>,
    /// A bit for each block: it is metadata, or named by an inode.
    used: Vec<u8>,
    /// Inodes in use, and their kind.
    inodes: BTreeMap<u32, (Inode, FileKind)>,
    /// How often an inode is named.
    named: BTreeMap<u32, u32>,
    /// Blocks of attributes, and how many inodes have them.
    attributes: BTreeMap<u64, u32>,
    /// The blocks of the file at hand.
    count: u64,
    /// Inodes that a mount would free, or cut off.
    orphans: BTreeSet<u32>,
}

impl Ext {
    /// Checks a volume that was opened to be read.
    pub fn check_all(&self, task: &Task<'_>) -> Result<Vec<Damage>, VolumeError> {
        if self.shape.blocks > u64::from(u32::MAX) {
            return Err(VolumeError::Unsupported("volumes of more than 2^32 blocks are checked by e2fsck"));
        }
        let bytes = (self.shape.blocks as usize).div_ceil(8);
        let mut check = Check {
            ext: self,
            task,
            findings: self.damage.clone(),
            used: vec![0; bytes],
            inodes: BTreeMap::new(),
            named: BTreeMap::new(),
            attributes: BTreeMap::new(),
            count: 0,
            orphans: BTreeSet::new(),
        };
        let orphans = check.ext.listed_orphans(task);
        check.orphans = check.note(orphans)?.unwrap_or_default().into_iter().collect();
        check.metadata()?;
        check.inodes()?;
        check.names()?;
        check.links();
        check.bitmaps()?;
        Ok(check.findings)
    }
}

impl Check<'_> {
    fn found(&mut self, what: impl Into<String>) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(Damage { what: what.into(), repair: "e2fsck -f puts it right".to_string() });
        }
    }

    /// Notes an error that is damage; any other ends the check.
    fn note<T>(&mut self, result: Result<T, VolumeError>) -> Result<Option<T>, VolumeError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error @ VolumeError::Damaged { .. }) => {
                self.found(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Marks blocks as used. Each may be once.
    fn mark(&mut self, blocks: Range<u64>, what: &dyn Fn() -> String) {
        self.count += blocks.end - blocks.start;
        for block in blocks {
            if bits::is_set(&self.used, block as u32) {
                self.found(format!("block {block} of {} is something else's, too", what()));
                return;
            }
            bits::put(&mut self.used, block as u32..block as u32 + 1, true);
        }
    }

    /// What has a place of its own.
    fn metadata(&mut self) -> Result<(), VolumeError> {
        let shape = &self.ext.shape;
        self.mark(0..shape.first_data_block, &|| "the boot record".to_string());
        for group in 0..shape.groups {
            let first = shape.group_start(group);
            let what = move || format!("group {group}");
            self.mark(first..first + shape.blocks_before(group), &what);
            let descriptor = self.ext.descriptor(self.task, group)?;
            for (place, count) in [
                (descriptor.block_bitmap, 1),
                (descriptor.inode_bitmap, 1),
                (descriptor.inode_table, shape.table_blocks()),
            ] {
                self.mark(place..place + count, &what);
            }
        }
        Ok(())
    }

    fn inodes(&mut self) -> Result<(), VolumeError> {
        let shape = &self.ext.shape;
        for group in 0..shape.groups {
            let descriptor = self.ext.descriptor(self.task, group)?;
            let read = self.ext.inode_bitmap(self.task, group, &descriptor);
            let Some(bits) = self.note(read)? else { continue };
            for at in (0..shape.group_inodes).filter(|at| bits::is_set(&bits, *at)) {
                let number = group * shape.group_inodes + at + 1;
                if at >= shape.group_inodes - descriptor.never_used && shape.checksums.cover_groups() {
                    self.found(format!("inode {number} is in use, and group {group} says that it never was"));
                }
                self.inode(number)?;
            }
        }
        if !self.inodes.contains_key(&ROOT) {
            self.found("the root directory is missing");
        }
        Ok(())
    }

    fn inode(&mut self, number: u32) -> Result<(), VolumeError> {
        let read = self.ext.read_inode(self.task, number);
        let Some(inode) = self.note(read)? else { return Ok(()) };
        let is_own = self.ext.shape.is_reserved(number);
        if is_own && (inode.mode() == 0 || inode.links() == 0) {
            return Ok(());
        }
        let is_orphan = self.orphans.contains(&number);
        if inode.links() == 0 && !is_orphan {
            self.found(format!("inode {number} is marked as in use, and has no links"));
            return Ok(());
        }
        if self.note(self.ext.check_inode(number, &inode))?.is_none() {
            return Ok(());
        }
        if inode.deleted() != 0 && !is_orphan {
            self.found(format!("inode {number} is in use, and has a time of deletion"));
        }
        let file = File::new(number, inode.clone());
        self.count = 0;
        if number == RESIZE {
            // The blocks that it names are those reserved for descriptors, but for the one that names them.
            let block = self.ext.pointer(&file, file.inode.map(), 13);
            if let Some(block) = self.note(block)?.filter(|block| *block != 0) {
                self.mark(block..block + 1, &|| format!("inode {number}"));
            }
            return Ok(());
        }
        if inode.has_map() {
            let walked = self.map(&file);
            self.note(walked)?;
        }
        self.attribute_block(&file)?;
        let sectors = self.count * self.ext.shape.block_bytes as u64 / 512;
        if sectors != inode.sectors(self.ext.shape.block_bytes) {
            let said = inode.sectors(self.ext.shape.block_bytes);
            self.found(format!("inode {number} says {said} blocks of 512 bytes, and has {sectors}"));
        }
        if !is_own || number == JOURNAL {
            let kind = file.kind();
            self.inodes.insert(number, (inode, kind));
        }
        Ok(())
    }

    fn attribute_block(&mut self, file: &File) -> Result<(), VolumeError> {
        let read = self.ext.stored_attributes(self.task, file);
        let is_read = self.note(read)?.is_some();
        let block = if is_read { self.ext.attribute_block(self.task, file)? } else { None };
        let room = file.inode.attribute_room().map(|room| &file.inode.bytes()[room]);
        let is_sound =
            room.is_none_or(has_sound_inode_hashes) && block.is_none_or(|(_, block)| has_sound_block_hashes(&block));
        if is_read && !is_sound {
            self.found(format!("inode {} has an attribute whose hash is not that of its value", file.number));
        }
        let place = file.inode.attribute_block();
        if place == 0 || !self.ext.shape.holds(place, 1) {
            return Ok(());
        }
        let times = self.attributes.entry(place).or_insert(0);
        *times += 1;
        if *times == 1 {
            self.mark(place..place + 1, &|| "attributes".to_string());
        } else {
            self.count += 1;
        }
        Ok(())
    }

    fn map(&mut self, file: &File) -> Result<(), VolumeError> {
        let name = move || format!("inode {}", file.number);
        if file.inode.has(flag::EXTENTS) {
            let root = self.ext.extent_root(file)?;
            return self.extents(file, root, 0..u64::from(u32::MAX) + 1);
        }
        let levels = (0..15u32).map(|place| (place, place.saturating_sub(11)));
        let levels: Vec<(u32, u32)> = levels.collect();
        for (place, level) in levels {
            let block = self.ext.pointer(file, file.inode.map(), place)?;
            self.numbers(file, block, level, &name)?;
        }
        Ok(())
    }

    /// Marks what a number of a block map names, `level` levels above the bytes.
    fn numbers(&mut self, file: &File, block: u64, level: u32, name: &dyn Fn() -> String) -> Result<(), VolumeError> {
        if block == 0 {
            return Ok(());
        }
        self.mark(block..block + 1, name);
        if level > 0 {
            let numbers = self.ext.pointer_block(self.task, file, block)?;
            for place in 0..numbers.len() as u32 / 4 {
                let below = self.ext.pointer(file, &numbers, place)?;
                self.numbers(file, below, level - 1, name)?;
            }
        }
        Ok(())
    }

    /// Marks what a node of extents names, all of it within these blocks of the file.
    fn extents(&mut self, file: &File, node: Node, within: Range<u64>) -> Result<(), VolumeError> {
        let name = || format!("inode {}", file.number);
        let is_inside = |first: u64, end: u64| within.start <= first && end <= within.end;
        match node {
            Node::Leaf(extents) => {
                for extent in extents {
                    if !is_inside(extent.first.into(), extent.end()) {
                        self.found(format!("{}: {extent:?} is not within {within:?}", name()));
                    }
                    self.mark(extent.place..extent.place + u64::from(extent.count), &name);
                }
            }
            Node::Index(depth, children) => {
                for (at, child) in children.iter().enumerate() {
                    let end = children.get(at + 1).map_or(within.end, |next| next.first.into());
                    self.mark(child.block..child.block + 1, &name);
                    let below = self.ext.extent_block(self.task, file, child.block, depth - 1)?;
                    if below.first() != Some(child.first) || !is_inside(child.first.into(), end) {
                        let found = below.first();
                        self.found(format!(
                            "{}: a node of its extents begins at {found:?}, not {}",
                            name(),
                            child.first
                        ));
                    }
                    self.extents(file, below, u64::from(child.first)..end)?;
                }
            }
        }
        Ok(())
    }

    /// All names, from the root down.
    fn names(&mut self) -> Result<(), VolumeError> {
        let mut seen = BTreeSet::from([ROOT]);
        let mut next = vec![(ROOT, ROOT)];
        *self.named.entry(ROOT).or_insert(0) += 1;
        while let Some((number, parent)) = next.pop() {
            let Some((inode, FileKind::Directory)) = self.inodes.get(&number).cloned() else { continue };
            let file = File::new(number, inode);
            let listed = self.directory(&file, parent, &mut seen);
            if let Some(below) = self.note(listed)? {
                next.extend(below.into_iter().map(|below| (below, number)));
            }
        }
        Ok(())
    }

    /// The names of a directory; answers the directories among them.
    fn directory(&mut self, file: &File, parent: u32, seen: &mut BTreeSet<u32>) -> Result<Vec<u32>, VolumeError> {
        let name = Ext::directory_name(file.number);
        // `.` names it, and `..` its parent.
        *self.named.entry(file.number).or_insert(0) += 1;
        *self.named.entry(parent).or_insert(0) += u32::from(file.number != ROOT);
        if self.ext.parent_of(self.task, file)? != parent {
            self.found(format!("{name}: its '..' is not inode {parent}"));
        }
        let mut below = Vec::new();
        let mut entries = Vec::new();
        for number in 0..self.ext.directory_blocks(file) {
            let kind = if self.ext.is_indexed(file) { None } else { Some(BlockKind::Names) };
            let Some(kind) = kind else { break };
            let block = self.ext.directory_block(self.task, file, number, kind)?;
            for entry in self.ext.entries(file, &block) {
                let entry = entry?;
                let text = entry.name(&block.bytes).to_vec();
                if entry.is_used() && text != b"." && text != b".." {
                    entries.push((text, entry.inode, entry.kind));
                }
            }
        }
        if self.ext.is_indexed(file) {
            self.ext.list_names(self.task, file, 0, &mut |_, inode, kind, text| {
                entries.push((text.to_vec(), inode, kind));
                Ok(true)
            })?;
        }
        let mut names = BTreeSet::new();
        for (text, number, kind) in entries {
            let shown = String::from_utf8_lossy(&text).into_owned();
            if text.is_empty() || text.contains(&b'/') || text.contains(&0) || !names.insert(text) {
                self.found(format!("{name}: the name '{shown}' cannot be, or is there twice"));
            }
            let Some((_, is)) = self.inodes.get(&number) else {
                self.found(format!("{name}: '{shown}' names inode {number}, which is not in use"));
                continue;
            };
            let is = *is;
            if kind.is_some_and(|kind| kind != is) || kind.is_none() && self.ext.shape.has_file_types() {
                self.found(format!("{name}: '{shown}' is said to be {kind:?}, and is {is:?}"));
            }
            *self.named.entry(number).or_insert(0) += 1;
            if is == FileKind::Directory {
                match seen.insert(number) {
                    true => below.push(number),
                    false => self.found(format!("{name}: '{shown}' is one more name of directory {number}")),
                }
            }
        }
        if self.ext.is_indexed(file) {
            self.index(file)?;
        }
        Ok(below)
    }

    /// The blocks of names of an index: each has the hashes that the index says.
    fn index(&mut self, file: &File) -> Result<(), VolumeError> {
        let mut way = self.ext.way_to(self.task, file, |_| 0)?;
        let mut begin = 0;
        let mut leaves = BTreeSet::new();
        loop {
            let block = self.ext.directory_block(self.task, file, way.leaf(), BlockKind::Names)?;
            if !leaves.insert(way.leaf()) {
                self.found(format!(
                    "the index of {} names block {} twice",
                    Ext::directory_name(file.number),
                    way.leaf()
                ));
                return Ok(());
            }
            let hashes = self.ext.hashed_names(file, &block, way.kind)?;
            let next = self.ext.go_on(self.task, file, &mut way)?;
            let end = next.map_or(u64::from(u32::MAX), |next| u64::from(next & !1) + u64::from(next & 1));
            let is_outside = |major: u32| major < begin & !1 || u64::from(major) >= end && next.is_some();
            if let Some((hash, _)) = hashes.iter().find(|(hash, _)| is_outside(hash.major)) {
                let (name, number) = (Ext::directory_name(file.number), block.number);
                self.found(format!(
                    "block {number} of {name} has a name with hash {:08x} that the index puts elsewhere",
                    hash.major
                ));
            }
            match next {
                Some(next) => begin = next,
                None => return Ok(()),
            }
        }
    }

    /// How often each inode is named, against its links.
    fn links(&mut self) {
        let rows: Vec<(u32, u16, FileKind)> =
            self.inodes.iter().map(|(number, (inode, kind))| (*number, inode.links(), *kind)).collect();
        for (number, links, kind) in rows.into_iter().filter(|(number, ..)| *number != JOURNAL) {
            let named = self.named.get(&number).copied().unwrap_or(0);
            let is_uncounted = kind == FileKind::Directory && links == 1 && named > 65_000;
            if named == 0 && self.orphans.contains(&number) {
                continue;
            }
            if named == 0 {
                self.found(format!("inode {number} is in use, and nothing names it"));
            } else if u32::from(links) != named && !is_uncounted {
                self.found(format!("inode {number} says {links} links, and has {named}"));
            }
        }
        let shared: Vec<(u64, u32)> = self.attributes.iter().map(|(place, times)| (*place, *times)).collect();
        for (place, times) in shared {
            let said = self.ext.blocks.get(place).ok().map(|block| sharers(&block));
            if said.is_some_and(|said| said != times) {
                self.found(format!("block {place} of attributes says {said:?} inodes, and has {times}"));
            }
        }
    }

    /// Blocks and inodes in use, against bitmaps and counts.
    fn bitmaps(&mut self) -> Result<(), VolumeError> {
        let shape = &self.ext.shape;
        let (mut free_blocks, mut free_inodes) = (0u64, 0u64);
        for group in 0..shape.groups {
            let descriptor = self.ext.descriptor(self.task, group)?;
            let read = self.ext.block_bitmap(self.task, group, &descriptor);
            let Some(bits) = self.note(read)? else { continue };
            let (first, count) = (shape.group_start(group), shape.blocks_of_group(group) as u32);
            let differ = (0..count).find(|at| bits::is_set(&bits, *at) != bits::is_set(&self.used, first as u32 + *at));
            if let Some(at) = differ {
                let block = first + u64::from(at);
                let is = if bits::is_set(&bits, at) { "in use, and nothing names it" } else { "free, and is used" };
                self.found(format!("the block bitmap of group {group}: block {block} is said to be {is}"));
            }
            let free = bits::count_clear(&bits, count);
            free_blocks += u64::from(free);
            let read = self.ext.inode_bitmap(self.task, group, &descriptor);
            let Some(inode_bits) = self.note(read)? else { continue };
            let unused = bits::count_clear(&inode_bits, shape.group_inodes);
            free_inodes += u64::from(unused);
            let first_inode = group * shape.group_inodes + 1;
            let last = first_inode + shape.group_inodes - 1;
            let in_group = self.inodes.range(first_inode..=last);
            let directories = in_group.filter(|(_, (_, kind))| *kind == FileKind::Directory).count() as u32;
            for (what, said, is) in [
                ("free blocks", descriptor.free_blocks, free),
                ("free inodes", descriptor.free_inodes, unused),
                ("directories", descriptor.directories, directories),
            ] {
                if said != is {
                    self.found(format!("group {group} says {said} {what}, and has {is}"));
                }
            }
        }
        let head = self.ext.head.enter(self.task);
        let said =
            (u64::from(head.superblock.u32(344)) << 32 | u64::from(head.superblock.u32(12)), head.superblock.u32(16));
        let is_in_use = head.superblock.features().has(NEEDS_RECOVERY);
        drop(head);
        // A volume in use counts in memory.
        if !is_in_use && said != (free_blocks, free_inodes as u32) {
            let (blocks, inodes) = said;
            self.found(format!(
                "the superblock says {blocks} free blocks and {inodes} free inodes, and there are {free_blocks} and {free_inodes}"
            ));
        }
        Ok(())
    }
}
