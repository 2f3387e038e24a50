//! The changes of fast commits, made in a volume whose journal keeps them in memory. Each is checked against the volume
//! before it is made: a tag may be right by its checksum and be one of another life of the device.
//!
//! A change that was made already is none: the volume may have some of them.

use crate::fs::ext::error::damaged;
use crate::fs::ext::fast_tags::{CLOCK_SECONDS, MADE_AT};
use crate::fs::ext::files::map::Maps;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::bytes::le16;
use crate::fs::ext::format::extents::Extent;
use crate::fs::ext::format::fast_commit::{Change, NameChange};
use crate::fs::ext::format::features::{ORPHAN_FILE, ORPHAN_PRESENT};
use crate::fs::ext::format::inode::{Inode, MAP, MAP_BYTES, Stamp, flag};
use crate::fs::ext::format::orphans;
use crate::fs::ext::journal::Handle;
use crate::fs::ext::names::Directories;
use crate::fs::ext::names::making::clear_extents;
use crate::fs::ext::parts::Parts;
use crate::fs::volume::{FileKind, LONGEST_NAME, VolumeError};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bytes of an inode before its map, and the place of the bytes behind it.
const BEFORE_MAP: usize = MAP;
const BEHIND_MAP: usize = MAP + MAP_BYTES;
const OLD_BYTES: usize = 128;

/// A replay of fast commits.
pub struct FastReplay<'r> {
    parts: &'r Parts,
    handle: &'r Handle<'r>,
    task: &'r Task<'r>,
    /// Files that the volume's lists of orphans name: the mount frees them.
    orphans: BTreeSet<u32>,
    /// Names that directories have got beside their own one: one of the two goes later.
    second_names: BTreeMap<u32, u32>,
    /// Files that were freed.
    gone: BTreeSet<u32>,
    /// Directories that have no block yet.
    new_directories: BTreeSet<u32>,
    /// Symbolic links whose target is in a block.
    links: BTreeSet<u32>,
    /// No inode was changed before this time, in seconds: the volume was not there.
    made_at: i64,
}

impl<'r> FastReplay<'r> {
    /// A replay in this volume, whose journal keeps changes in memory.
    pub fn new(parts: &'r Parts, task: &'r Task<'r>, handle: &'r Handle<'r>) -> Result<FastReplay<'r>, VolumeError> {
        let listed = parts.inodes().listed_orphans(task)?;
        parts.head.enter(task).orphans = listed.iter().rev().copied().collect();
        let made_at = parts.head.enter(task).superblock.u32(MADE_AT);
        let mut orphans: BTreeSet<u32> = listed.into_iter().collect();
        if parts.metadata.shape.features.has(ORPHAN_FILE)
            && parts.metadata.shape.features.has(ORPHAN_PRESENT)
            && parts.metadata.shape.orphan_file != 0
        {
            orphans.extend(filed_orphans(parts, task)?);
        }
        Ok(FastReplay {
            parts,
            handle,
            task,
            orphans,
            second_names: BTreeMap::new(),
            gone: BTreeSet::new(),
            new_directories: BTreeSet::new(),
            links: BTreeSet::new(),
            made_at: made_at.into(),
        })
    }

    /// Makes a change.
    pub fn change(&mut self, change: &Change) -> Result<(), VolumeError> {
        match change {
            Change::AddRange { inode, extent } => self.add_range(*inode, extent),
            Change::CutRange { inode, first, blocks } => {
                let first = u64::from(*first);
                self.cut_range(*inode, first..first + u64::from(*blocks))
            }
            Change::Create(name) => self.add_name(name, true),
            Change::Link(name) => self.add_name(name, false),
            Change::Unlink(name) => self.remove_name(name),
            Change::Inode { inode, bytes } => self.put_inode(*inode, bytes),
        }
    }

    /// Checks that new directories have names, and that the targets of links are there, which lie in blocks: fast commits
    /// do not have those.
    pub fn finish(&self) -> Result<(), VolumeError> {
        if let Some(number) = self.new_directories.first() {
            return Err(damaged(Directories::directory_name(*number), "it is new, and has no name"));
        }
        for number in &self.links {
            let file = self.file(*number)?;
            let target = self.parts.write_back().reads().target_of(self.task, &file)?;
            if target.len() as u64 != file.inode.size() || target.contains(&0) {
                return Err(damaged(format!("the symbolic link with inode {number}"), "its target was not stored"));
            }
        }
        Ok(())
    }

    fn file(&self, number: u32) -> Result<File, VolumeError> {
        let what = || format!("inode {number}");
        if number == 0 || number > self.parts.metadata.shape.inodes || self.parts.metadata.shape.is_reserved(number) {
            return Err(damaged(what(), "no file can have it"));
        }
        if !self.parts.allocation().is_inode_used(self.task, number)? {
            return Err(damaged(what(), "it is not in use"));
        }
        let inode = self.parts.metadata.read_inode(self.task, number)?;
        self.parts.metadata.check_inode(number, &inode)?;
        let is_orphan = self.parts.inodes().is_orphan(self.task, number);
        Ok(File { is_orphan, ..File::new(number, inode) })
    }

    /// A file whose map changes; `None` if it was freed before.
    fn mapped(&self, number: u32) -> Result<Option<File>, VolumeError> {
        if self.gone.contains(&number) {
            return Ok(None);
        }
        let file = self.file(number)?;
        if !matches!(file.kind(), FileKind::Regular | FileKind::Symlink) || !file.inode.has(flag::EXTENTS) {
            return Err(damaged(Maps::map_name(number), "it is no map of extents of a file"));
        }
        Ok(Some(file))
    }

    fn add_range(&mut self, number: u32, extent: &Extent) -> Result<(), VolumeError> {
        let Some(mut file) = self.mapped(number)? else { return Ok(()) };
        let is_some = (1..=32768).contains(&extent.count) && extent.end() <= u64::from(u32::MAX);
        if !is_some || !self.parts.metadata.can_be_a_files(extent.place, extent.count.into()) {
            return Err(damaged(Maps::map_name(number), format!("{extent:?} can be none of a file")));
        }
        let mut at = u64::from(extent.first);
        while at < extent.end() {
            let run = self.parts.maps().run(self.task, &file, at)?;
            let blocks = at..(at + run.count).min(extent.end());
            let place = extent.place + (at - u64::from(extent.first));
            match run.place {
                Some(here) if here == place => {
                    if extent.is_written && !run.is_written {
                        self.parts.maps().mark_written(self.handle, &mut file, blocks.clone())?;
                    } else if !extent.is_written && run.is_written {
                        self.parts.maps().mark_unwritten(self.handle, &mut file, blocks.clone())?;
                    }
                }
                other => {
                    if other.is_some() {
                        self.cut(&mut file, blocks.clone())?;
                    }
                    let places = place..place + (blocks.end - blocks.start);
                    self.parts.allocation().take_exactly(self.handle, places.clone())?;
                    self.parts.maps().put_run(self.handle, &mut file, at, places, extent.is_written)?;
                }
            }
            at = blocks.end;
        }
        if file.kind() == FileKind::Symlink {
            self.links.insert(number);
        }
        self.parts.inodes().store_inode(self.handle, &mut file, true)
    }

    fn cut_range(&mut self, number: u32, blocks: Range<u64>) -> Result<(), VolumeError> {
        let Some(mut file) = self.mapped(number)? else { return Ok(()) };
        self.cut(&mut file, blocks.start..blocks.end.min(u64::from(u32::MAX)))?;
        self.parts.inodes().store_inode(self.handle, &mut file, true)
    }

    fn cut(&self, file: &mut File, blocks: Range<u64>) -> Result<(), VolumeError> {
        while self.parts.maps().cut_some(self.handle, file, blocks.clone())? {}
        Ok(())
    }

    fn directory(&self, name: &NameChange) -> Result<File, VolumeError> {
        let NameChange { directory, name, .. } = name;
        let file = self.file(*directory)?;
        let what = || Directories::directory_name(*directory);
        if file.kind() != FileKind::Directory || file.inode.links() == 0 {
            return Err(damaged(what(), "it is none"));
        }
        let is_name = (1..=LONGEST_NAME).contains(&name.len())
            && !name.iter().any(|byte| [0, b'/'].contains(byte))
            && ![&b"."[..], b".."].contains(&&name[..]);
        if !is_name {
            return Err(damaged(what(), format!("no name can be {:?}", String::from_utf8_lossy(name))));
        }
        Ok(file)
    }

    fn add_name(&mut self, change: &NameChange, is_new: bool) -> Result<(), VolumeError> {
        let mut directory = self.directory(change)?;
        let mut file = self.file(change.inode)?;
        if let Some(found) = self.parts.directories().find_name(self.task, &directory, &change.name)? {
            if found.entry.inode == change.inode {
                return Ok(());
            }
            let why = format!(
                "{:?} is inode {}, and should become {}",
                String::from_utf8_lossy(&change.name),
                found.entry.inode,
                change.inode
            );
            return Err(damaged(Directories::directory_name(change.directory), why));
        }
        let (kind, now) = (file.kind(), self.parts.wall(self.task.now()));
        match (kind, is_new) {
            (FileKind::Directory, true) if self.new_directories.remove(&change.inode) => {
                file.inode.set_size(0);
                self.parts.directories().fill_directory(self.handle, &mut file, change.directory)?;
                file.inode.set_links(2);
                self.parts.names().add_links(&mut directory, 1);
            }
            (FileKind::Directory, true) => {
                return Err(damaged(format!("inode {}", change.inode), "it is a directory that has a name"));
            }
            (FileKind::Directory, false) => {
                if self.parts.directories().parent_of(self.task, &file)? != change.directory {
                    return Err(damaged(format!("inode {}", change.inode), "it is a directory of another one"));
                }
                *self.second_names.entry(change.inode).or_default() += 1;
            }
            (_, true) => {}
            (_, false) => {
                let links = file.inode.links().checked_add(1);
                let full = || damaged(format!("inode {}", change.inode), "it has too many names");
                file.inode.set_links(links.ok_or_else(full)?);
            }
        }
        self.parts.inodes().store_inode(self.handle, &mut file, true)?;
        self.parts.directories().add_name(self.handle, &mut directory, (&change.name, change.inode, kind))?;
        directory.was_written(now);
        self.parts.inodes().store_inode(self.handle, &mut directory, true)
    }

    fn remove_name(&mut self, change: &NameChange) -> Result<(), VolumeError> {
        let mut directory = self.directory(change)?;
        let Some(found) = self.parts.directories().find_name(self.task, &directory, &change.name)? else {
            return Ok(());
        };
        if found.entry.inode != change.inode {
            let why = format!("inode {} has the name that inode {} loses", found.entry.inode, change.inode);
            return Err(damaged(Directories::directory_name(change.directory), why));
        }
        let mut file = self.file(change.inode)?;
        self.parts.directories().remove_name(self.handle, &directory, &found)?;
        directory.was_written(self.parts.wall(self.task.now()));
        let is_directory = file.kind() == FileKind::Directory;
        let links = match (is_directory, self.second_names.get_mut(&change.inode)) {
            (true, Some(names)) if *names > 0 => {
                *names -= 1;
                file.inode.links()
            }
            (true, _) if !self.parts.directories().is_empty_directory(self.task, &file)? => {
                return Err(damaged(Directories::directory_name(change.inode), "it loses its name, and is not empty"));
            }
            (true, _) => {
                self.parts.names().add_links(&mut directory, -1);
                0
            }
            (false, _) => file.inode.links().saturating_sub(1),
        };
        self.parts.inodes().store_inode(self.handle, &mut directory, true)?;
        file.inode.set_links(links);
        self.parts.inodes().store_inode(self.handle, &mut file, true)?;
        if links == 0 { self.free(file) } else { Ok(()) }
    }

    /// Frees a file that has no name. Nobody holds one after a crash.
    fn free(&mut self, mut file: File) -> Result<(), VolumeError> {
        if self.orphans.contains(&file.number) {
            return Ok(());
        }
        self.gone.insert(file.number);
        self.links.remove(&file.number);
        self.parts.writes().free_file(self.task, &mut file)
    }

    fn put_inode(&mut self, number: u32, bytes: &[u8]) -> Result<(), VolumeError> {
        let (what, shape) = (|| format!("inode {number}"), &self.parts.metadata.shape);
        if number == 0 || number > shape.inodes || shape.is_reserved(number) {
            return Err(damaged(what(), "no file can have it"));
        }
        let extra = if bytes.len() > OLD_BYTES { usize::from(le16(bytes, OLD_BYTES)) } else { 0 };
        if bytes.len() > shape.inode_bytes || OLD_BYTES + extra > shape.inode_bytes {
            let why = format!("it has {} bytes and {extra} extra ones, of {}", bytes.len(), shape.inode_bytes);
            return Err(damaged(what(), why));
        }
        let mut whole = vec![0; shape.inode_bytes];
        whole[..bytes.len()].copy_from_slice(bytes);
        let image = Inode::new(&whole);
        let changed = image.stamp(Stamp::Changed).0.div_euclid(1_000_000_000);
        if changed + CLOCK_SECONDS < self.made_at {
            let why = format!("it was changed {} s before the volume was made", self.made_at - changed);
            return Err(damaged(what(), why));
        }
        let is_used = self.parts.allocation().is_inode_used(self.task, number)?;
        match (is_used, image.links()) {
            (false, 0) => Ok(()),
            (false, _) => self.make_inode(number, image),
            (true, _) => self.change_inode(number, &image, bytes.len()),
        }
    }

    /// A new file: its map and its blocks follow, and its names.
    fn make_inode(&mut self, number: u32, image: Inode) -> Result<(), VolumeError> {
        let what = || format!("inode {number}");
        let kind = image.kind().ok_or_else(|| damaged(what(), format!("its mode is {:#o}", image.mode())))?;
        if image.attribute_block() != 0 {
            return Err(damaged(what(), "it is new, and has a block of attributes"));
        }
        let mut inode = image;
        inode.set_deleted(0);
        inode.set_blocks(0, self.parts.metadata.shape.block_bytes);
        if inode.has_map() {
            inode.map_mut().fill(0);
            if inode.has(flag::EXTENTS) {
                clear_extents(&mut inode);
            }
        }
        if kind == FileKind::Directory {
            inode.set_flags(inode.flags() & !flag::INDEX);
            // The block comes with its name.
            inode.set_size(self.parts.metadata.shape.block_bytes as u64);
            self.new_directories.insert(number);
        }
        self.parts.metadata.check_inode(number, &inode)?;
        self.parts.allocation().take_inode_number(self.handle, number, kind == FileKind::Directory)?;
        self.gone.remove(&number);
        self.parts.inodes().store_inode(self.handle, &mut File::new(number, inode), true)
    }

    fn change_inode(&mut self, number: u32, image: &Inode, length: usize) -> Result<(), VolumeError> {
        let what = || format!("inode {number}");
        let stored = self.parts.metadata.read_inode(self.task, number)?;
        let kept = [flag::EXTENTS, flag::INLINE, flag::ENCRYPTED];
        let is_same = stored.kind() == image.kind()
            && stored.generation() == image.generation()
            && stored.attribute_block() == image.attribute_block()
            && kept.iter().all(|flag| stored.has(*flag) == image.has(*flag));
        if !is_same {
            return Err(damaged(what(), "it is another file's"));
        }
        let block_bytes = self.parts.metadata.shape.block_bytes;
        let blocks = stored.sectors(block_bytes) * 512 / block_bytes as u64;
        let mut inode = stored.clone();
        for range in [0..BEFORE_MAP, BEHIND_MAP..length] {
            inode.bytes_mut()[range.clone()].copy_from_slice(&image.bytes()[range]);
        }
        inode.set_deleted(stored.deleted());
        inode.set_blocks(blocks, block_bytes);
        if stored.kind() == Some(FileKind::Directory) {
            inode.set_flags(inode.flags() & !flag::INDEX | stored.flags() & flag::INDEX);
            inode.set_size(stored.size());
            inode.set_links(stored.links());
        } else if !inode.has_map() {
            inode.map_mut().copy_from_slice(image.map());
        }
        self.parts.metadata.check_inode(number, &inode)?;
        let links = inode.links();
        let is_orphan = self.parts.inodes().is_orphan(self.task, number);
        let mut file = File { is_orphan, ..File::new(number, inode) };
        self.parts.inodes().store_inode(self.handle, &mut file, true)?;
        if links == 0 { self.free(file) } else { Ok(()) }
    }
}

/// The files that the file of orphans names.
fn filed_orphans(parts: &Parts, task: &Task<'_>) -> Result<Vec<u32>, VolumeError> {
    let own = parts.metadata.shape.orphan_file;
    let file = File::new(own, parts.metadata.read_inode(task, own)?);
    let seed = parts.maps().seed_of(&file);
    let mut all = Vec::new();
    for number in 0..file.inode.size() / parts.metadata.shape.block_bytes as u64 {
        let what = || format!("block {number} of the file of orphans");
        let place = parts.maps().run(task, &file, number)?.stored().ok_or_else(|| damaged(what(), "it is a hole"))?;
        let block = parts.metadata.block(task, place, &what, &|_| Ok(()))?;
        all.extend(orphans::read(&block, place, seed).map_err(|why| damaged(what(), why))?);
    }
    Ok(all)
}
