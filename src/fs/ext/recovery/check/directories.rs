//! Directories: their blocks, the chains of entries, and each name. An entry is mended in its place if it can be; a
//! directory whose structure is damaged is written anew, as a list, which gets an index at the end of the walk
//! (`indexing`).

use super::Check;
use super::index::Index;
use super::maps::FileMap;
use super::tree::LOST_AND_FOUND;
use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::format::bytes::{le16, le32, put32};
use crate::fs::ext::format::entries::{self, Entries, Entry, kind_number};
use crate::fs::ext::format::extents::Extent;
use crate::fs::ext::format::group::flag as group_flag;
use crate::fs::ext::format::index;
use crate::fs::ext::format::inode::{Inode, flag};
use crate::fs::ext::format::shape::ROOT;
use crate::fs::ext::names::Directories;
use crate::fs::volume::{FileKind, VolumeError};
use std::collections::BTreeSet;

/// The length of `.`, and the place of `..`.
pub(super) const DOT: usize = 12;
const LONGEST_NAME: usize = 255;

/// A name of a directory.
#[derive(Clone)]
pub(super) struct Name {
    pub(super) text: Vec<u8>,
    pub(super) inode: u32,
    pub(super) kind: u8,
}

/// A change of an entry in its place.
enum Patch {
    Free,
    Number(u32),
    Kind(u8),
    /// The byte behind its name is zero.
    End,
}

/// The names that were read of a directory, and the changes that it needs.
#[derive(Default)]
struct Reading {
    /// The number of the block, and the entry's first byte there.
    patches: Vec<(usize, usize, Patch)>,
    /// Blocks of which only the checksum is wrong.
    sums: BTreeSet<usize>,
    names: Vec<Name>,
    texts: BTreeSet<Vec<u8>>,
    must_rewrite: bool,
}

impl Check<'_> {
    /// Checks all directories.
    pub(super) fn directories(&mut self) -> Result<(), VolumeError> {
        let all: Vec<u32> =
            self.walk.files.iter().filter(|(_, file)| file.kind == FileKind::Directory).map(|(n, _)| *n).collect();
        for number in all {
            self.directory(number)?;
        }
        Ok(())
    }

    /// The blocks of a directory on the volume.
    pub(super) fn directory_places(&mut self, number: u32) -> Result<Vec<u64>, VolumeError> {
        let inode = self.inode(number)?;
        let known = self.walk.findings.len();
        let map = self.read_map(number, &inode)?;
        self.walk.findings.truncate(known);
        Ok((0..map.end()).filter_map(|at| map.place(at)).collect())
    }

    pub(super) fn seed(&self, number: u32, inode: &Inode) -> Option<u32> {
        self.parts.metadata.shape.checksums.inode_seed(number, inode.generation())
    }

    /// The entries of a block as far as they are a chain, and why they do not go on.
    fn entries(&self, block: &[u8]) -> (Vec<Entry>, Option<String>) {
        let mut found = Vec::new();
        for entry in Entries::of(block, self.parts.metadata.shape.has_checksums(), true) {
            match entry {
                Ok(entry) => found.push(entry),
                Err(why) if !self.parts.metadata.shape.has_checksums() => {
                    return (self.with_those_behind(block, found), Some(why));
                }
                Err(why) => {
                    // A volume that was given checksums later has blocks without room for one.
                    let whole: Result<Vec<Entry>, String> = Entries::of(block, false, true).collect();
                    return match whole {
                        Ok(whole) => (whole, Some("it has no room for its checksum".to_string())),
                        Err(_) => (self.with_those_behind(block, found), Some(why)),
                    };
                }
            }
        }
        (found, None)
    }

    /// The entries of a chain that breaks off, and those behind the break that name files.
    fn with_those_behind(&self, block: &[u8], mut found: Vec<Entry>) -> Vec<Entry> {
        let broken = found.last().map_or(0, |last| last.at + last.length);
        let can_be = |entry: &Entry| {
            let name = entry.name(block);
            let is_name = !name.is_empty() && !name.iter().any(|byte| [0, b'/'].contains(byte));
            is_name && name != b"." && name != b".." && self.walk.files.contains_key(&entry.inode)
        };
        found.extend(
            entries::behind(block, broken, self.parts.metadata.shape.has_checksums()).into_iter().filter(can_be),
        );
        found
    }

    fn directory(&mut self, number: u32) -> Result<(), VolumeError> {
        let title = Directories::directory_name(number);
        let mut inode = self.inode(number)?;
        let seed = self.seed(number, &inode);
        let places = self.directory_places(number)?;
        let blocks: Vec<Bytes> = places.iter().map(|place| self.read(*place)).collect::<Result<_, _>>()?;
        let mut reading = Reading::default();
        let Some(first) = blocks.first().cloned() else { return Ok(()) };
        let mut found_index = None;
        if inode.has(flag::INDEX) {
            match self.read_index(&blocks, seed) {
                Ok(read) => found_index = Some(read),
                Err(why) => {
                    self.found(format!("the index of {title}: {why}"), "the directory is written anew");
                    reading.must_rewrite = true;
                }
            }
        }
        let parent = self.dots(number, &first, &mut reading);
        for (at, block) in blocks.iter().enumerate() {
            if found_index.as_ref().is_some_and(|index| index.nodes.contains(&(at as u64))) {
                continue;
            }
            self.names_of_block(number, at, block, seed, found_index.as_ref(), &mut reading)?;
            if self.walk.starts_again {
                return Ok(());
            }
        }
        if reading.must_rewrite {
            self.walk.dot_dots.insert(number, parent);
            inode.set_flags(inode.flags() & !flag::INDEX);
            self.put_inode(number, &inode)?;
            self.rewrite(number, parent, &reading.names)?;
        } else {
            self.walk.dot_dots.insert(number, parent);
            self.patch(number, &inode, &places, reading.patches, &reading.sums)?;
        }
        for name in reading.names {
            *self.walk.named.entry(name.inode).or_insert(0) += 1;
            if self.is_directory(name.inode) {
                self.walk.parents.entry(name.inode).or_default().push(number);
            }
            if number == ROOT && name.text == LOST_AND_FOUND && self.is_directory(name.inode) {
                self.walk.lost_and_found = Some(name.inode);
            }
        }
        Ok(())
    }

    /// Checks `.` and `..`, and returns the inode of `..`, or 0.
    fn dots(&mut self, number: u32, block: &[u8], reading: &mut Reading) -> u32 {
        let title = Directories::directory_name(number);
        let is_dot = |at: usize, name: &[u8]| {
            let length = name.len();
            usize::from(block[at + 6]) == length && &block[at + 8..at + 8 + length] == name
        };
        if !is_dot(0, b".") || le16(block, 4) != DOT as u16 || !is_dot(DOT, b"..") {
            self.found(format!("{title} does not begin with '.' and '..'"), "the directory is written anew");
            reading.must_rewrite = true;
            return if is_dot(DOT, b"..") { le32(block, DOT) } else { 0 };
        }
        if le32(block, 0) != number {
            self.found(format!("{title}: its '.' is inode {}", le32(block, 0)), "the number is corrected");
            reading.patches.push((0, 0, Patch::Number(number)));
        }
        let kind = self.entry_kind(FileKind::Directory);
        for (at, name) in [(0, "."), (DOT, "..")] {
            if ![kind, 0].contains(&block[at + 7]) {
                let what = format!("{title}: its '{name}' has kind {}", block[at + 7]);
                self.found(what, "the kind is corrected");
                reading.patches.push((0, at, Patch::Kind(kind)));
            }
            if block[at + entries::HEAD + name.len()] != 0 {
                self.found(format!("{title}: the byte behind '{name}' is not zero"), "it is cleared");
                reading.patches.push((0, at, Patch::End));
            }
        }
        let parent = le32(block, DOT);
        if parent == 0 {
            // An entry without an inode is free, and a name might be put there. The tree tells the right one.
            reading.patches.push((0, DOT, Patch::Number(ROOT)));
        }
        parent
    }

    /// The number of a kind in an entry: 0 on a volume whose entries do not have it.
    pub(super) fn entry_kind(&self, kind: FileKind) -> u8 {
        if self.parts.metadata.shape.has_file_types() { kind_number(kind) } else { 0 }
    }

    fn names_of_block(
        &mut self,
        number: u32,
        at: usize,
        block: &Bytes,
        seed: Option<u32>,
        index: Option<&Index>,
        reading: &mut Reading,
    ) -> Result<(), VolumeError> {
        let title = Directories::directory_name(number);
        let (found, fault) = self.entries(block);
        if let Some(why) = fault {
            // The index is given up: its nodes look like blocks without names.
            if !reading.must_rewrite || found.iter().any(Entry::is_used) {
                self.found(
                    format!("block {at} of {title}: {why}"),
                    "entries before it are kept, the directory is written anew",
                );
            }
            reading.must_rewrite = true;
        } else if seed.is_some_and(|seed| !entries::is_sound(block, seed)) {
            self.found(format!("block {at} of {title}: its checksum is wrong"), "it gets a new one");
            reading.sums.insert(at);
        }
        for entry in found.iter().filter(|entry| entry.is_used()) {
            let is_dot = at == 0 && (entry.at == 0 || entry.at == DOT);
            if is_dot {
                continue;
            }
            let text = entry.name(block);
            if let Some((index, (begin, end))) = index.and_then(|index| Some((index, *index.ranges.get(&(at as u64))?)))
            {
                let major = index.kind.hash(text, self.parts.metadata.shape.hasher.seed).major;
                if major < begin || end.is_some_and(|end| u64::from(major) >= end) {
                    let what =
                        format!("block {at} of {title} has a name with hash {major:08x}, which belongs elsewhere");
                    self.found(what, "the directory is written anew");
                    reading.must_rewrite = true;
                }
            }
            let stored = Name { text: text.to_vec(), inode: entry.inode, kind: block[entry.at + 7] };
            self.name(number, at, entry.at, stored, reading)?;
        }
        Ok(())
    }

    /// Checks a name.
    fn name(
        &mut self,
        number: u32,
        block: usize,
        at: usize,
        mut name: Name,
        reading: &mut Reading,
    ) -> Result<(), VolumeError> {
        let title = Directories::directory_name(number);
        let shown = String::from_utf8_lossy(&name.text).into_owned();
        let named = name.inode;
        let drop = |check: &mut Self, reading: &mut Reading, why: String| {
            check.found(format!("{title}: '{shown}' {why}"), "the name is removed");
            reading.patches.push((block, at, Patch::Free));
        };
        if name.text.is_empty() || name.text == b"." || name.text == b".." {
            drop(self, reading, format!("for inode {named} cannot be there"));
            return Ok(());
        }
        if named > self.parts.metadata.shape.inodes
            || self.parts.metadata.shape.is_reserved(named)
            || named == ROOT
            || named == number
        {
            drop(self, reading, format!("names inode {named}, which cannot be"));
            return Ok(());
        }
        let Some(file) = self.walk.files.get(&named).copied() else {
            if self.find_unseen(named)? {
                return Ok(());
            }
            drop(self, reading, format!("names inode {named}, which is not in use"));
            return Ok(());
        };
        let kind = self.entry_kind(file.kind);
        // An entry need not have its kind.
        if ![kind, 0].contains(&name.kind) {
            let what = format!("{title}: '{shown}' has kind {}, and is a {:?}", name.kind, file.kind);
            self.found(what, "the kind is corrected");
            name.kind = kind;
            reading.patches.push((block, at, Patch::Kind(kind)));
        }
        if name.text.iter().any(|byte| [0, b'/'].contains(byte)) {
            self.found(format!("{title}: '{shown}' cannot be a name"), "the bytes that cannot be are replaced");
            name.text.iter_mut().filter(|byte| [0, b'/'].contains(byte)).for_each(|byte| *byte = b'.');
            reading.must_rewrite = true;
        }
        let is_same = |known: &Name| known.text == name.text && known.inode == named;
        if reading.texts.contains(&name.text) && reading.names.iter().any(is_same) {
            drop(self, reading, format!("is there twice for inode {named}"));
            return Ok(());
        }
        if reading.texts.contains(&name.text) {
            self.found(format!("{title}: '{shown}' is there twice"), "the second gets another name");
            name.text = other_name(&name.text, &reading.texts);
            reading.must_rewrite = true;
        }
        reading.texts.insert(name.text.clone());
        reading.names.push(name);
        Ok(())
    }

    /// Looks at an inode in a part of its table that its group calls unused. True if it is in use: the walk begins again
    /// with that part.
    fn find_unseen(&mut self, number: u32) -> Result<bool, VolumeError> {
        let shape = &self.parts.metadata.shape;
        let (group, at) = shape.place_of_inode(number);
        let mut descriptor = self.groups[group as usize];
        let has_no_inodes = descriptor.has(group_flag::NO_INODES);
        let is_unseen =
            shape.checksums.cover_groups() && (has_no_inodes || at >= shape.group_inodes - descriptor.never_used);
        if !is_unseen {
            return Ok(false);
        }
        let (inode, sums) = (self.inode(number)?, shape.checksums);
        let has_sum = inode.checksum(number, sums).is_none_or(|sum| sum == inode.said_checksum());
        if inode.kind().is_none() || inode.links() == 0 || !has_sum {
            return Ok(false);
        }
        let what = format!("inode {number} is in use, and group {group} says that it never was");
        self.found(what, "the group is corrected");
        descriptor.flags &= !group_flag::NO_INODES;
        descriptor.never_used =
            shape_rest(self.parts.metadata.shape.group_inodes, at, has_no_inodes, descriptor.never_used);
        self.groups[group as usize] = descriptor;
        self.store_descriptor(group, &descriptor)?;
        self.walk.starts_again = true;
        Ok(true)
    }

    /// Applies changes of entries in their places.
    fn patch(
        &mut self,
        number: u32,
        inode: &Inode,
        places: &[u64],
        patches: Vec<(usize, usize, Patch)>,
        sums: &BTreeSet<usize>,
    ) -> Result<(), VolumeError> {
        let mut changed = sums.clone();
        for (block, at, patch) in patches {
            let mut bytes = self.read(places[block])?.to_vec();
            match patch {
                Patch::Free => put32(&mut bytes, at, 0),
                Patch::Number(number) => put32(&mut bytes, at, number),
                Patch::Kind(kind) => bytes[at + 7] = kind,
                Patch::End => {
                    let end = at + entries::HEAD + usize::from(bytes[at + 6]);
                    bytes[end] = 0;
                }
            }
            self.write(places[block], bytes);
            changed.insert(block);
        }
        for block in changed {
            let bytes = self.read(places[block])?.to_vec();
            self.put_directory_block(number, inode, places[block], block, bytes)?;
        }
        Ok(())
    }

    /// Puts a block of a directory into its place, with its checksum.
    pub(super) fn put_directory_block(
        &mut self,
        number: u32,
        inode: &Inode,
        place: u64,
        at: usize,
        mut bytes: Vec<u8>,
    ) -> Result<(), VolumeError> {
        if let Some(seed) = self.seed(number, inode) {
            match at == 0 && inode.has(flag::INDEX) {
                true => index::sum(&mut bytes, true, seed),
                false => {
                    entries::write_tail(&mut bytes);
                    entries::sum(&mut bytes, seed);
                }
            }
        }
        self.write(place, bytes);
        Ok(())
    }

    /// Writes a directory anew: a list of names in its blocks, and in more of them if they do not suffice. It gets an index
    /// at the end of the walk.
    fn rewrite(&mut self, number: u32, parent: u32, names: &[Name]) -> Result<(), VolumeError> {
        self.walk.lists.insert(number);
        let inode = self.inode(number)?;
        let has_tail = self.parts.metadata.shape.has_checksums();
        let empty = self.empty_directory(number, if parent == 0 { ROOT } else { parent });
        let mut left = names.iter().peekable();
        let mut block = empty;
        let mut places = self.directory_places(number)?;
        let mut at = 0;
        while at < places.len() || left.peek().is_some() {
            if at == places.len() {
                let Some(place) = self.take_block() else {
                    for name in left {
                        let what = format!("no block is free for '{}'", String::from_utf8_lossy(&name.text));
                        self.found(what, "the file gets a name in lost+found");
                    }
                    break;
                };
                places.push(place);
            }
            while let Some(name) = left.peek() {
                let is_put = entries::put(&mut block, has_tail, name.inode, &name.text, name.kind);
                if !is_put.expect("the block was made here") {
                    break;
                }
                left.next();
            }
            self.put_directory_block(number, &inode, places[at], at, block)?;
            block = vec![0; self.parts.metadata.shape.block_bytes];
            entries::clear(&mut block, has_tail);
            at += 1;
        }
        self.put_directory_map(number, &places)
    }

    /// Gives a directory these blocks, in this order, if it has others.
    pub(super) fn put_directory_map(&mut self, number: u32, places: &[u64]) -> Result<(), VolumeError> {
        let inode = self.inode(number)?;
        let known = self.walk.findings.len();
        let old = self.read_map(number, &inode)?;
        self.walk.findings.truncate(known);
        if old.end() == places.len() as u64 {
            return Ok(());
        }
        for node in old.nodes {
            self.unmark(node..node + 1);
        }
        let mut map = FileMap::default();
        for (first, place) in (0..).zip(places) {
            map.push(Extent { first, count: 1, place: *place, is_written: true });
        }
        self.put_map(number, &map)
    }

    /// The first block of an empty directory.
    pub(super) fn empty_directory(&self, number: u32, parent: u32) -> Vec<u8> {
        let has_tail = self.parts.metadata.shape.has_checksums();
        let mut block = vec![0; self.parts.metadata.shape.block_bytes];
        entries::clear(&mut block, has_tail);
        let (end, kind) = (entries::room(block.len(), has_tail).end, self.entry_kind(FileKind::Directory));
        entries::write_entry(&mut block, 0, DOT, number, b".", kind);
        entries::write_entry(&mut block, DOT, end - DOT, parent, b"..", kind);
        block
    }

    /// Puts the first block of a new directory into its place.
    pub(super) fn put_first_block(
        &mut self,
        number: u32,
        inode: &Inode,
        place: u64,
        parent: u32,
    ) -> Result<(), VolumeError> {
        let block = self.empty_directory(number, parent);
        self.put_directory_block(number, inode, place, 0, block)
    }

    /// Sets the `..` of a directory.
    pub(super) fn set_parent(&mut self, number: u32, parent: u32) -> Result<(), VolumeError> {
        let inode = self.inode(number)?;
        let places = self.directory_places(number)?;
        self.patch(number, &inode, &places, vec![(0, DOT, Patch::Number(parent))], &BTreeSet::new())?;
        self.walk.dot_dots.insert(number, parent);
        Ok(())
    }

    /// Takes the last name of an inode out of a directory.
    pub(super) fn remove_name(&mut self, directory: u32, named: u32) -> Result<(), VolumeError> {
        let inode = self.inode(directory)?;
        let places = self.directory_places(directory)?;
        let mut last = None;
        for (number, place) in places.iter().enumerate() {
            let block = self.read(*place)?;
            for entry in self.entries(&block).0.iter().filter(|entry| entry.inode == named) {
                if number > 0 || entry.at > DOT {
                    last = Some((number, entry.at, Patch::Free));
                }
            }
        }
        let found = last.is_some();
        debug_assert!(found, "the directory was read with this name");
        self.patch(directory, &inode, &places, last.into_iter().collect(), &BTreeSet::new())?;
        if let Some(count) = self.walk.named.get_mut(&named) {
            *count -= u32::from(found);
        }
        Ok(())
    }

    /// Puts a name into a directory. One with an index becomes a list until the end of the walk.
    pub(super) fn add_name(&mut self, directory: u32, text: &[u8], named: u32) -> Result<(), VolumeError> {
        let kind = self.entry_kind(self.walk.files[&named].kind);
        let mut inode = self.inode(directory)?;
        let places = self.directory_places(directory)?;
        if inode.has(flag::INDEX) {
            let parent = self.walk.dot_dots[&directory];
            let mut names = self.names_in(&places)?;
            names.push(Name { text: text.to_vec(), inode: named, kind });
            inode.set_flags(inode.flags() & !flag::INDEX);
            self.put_inode(directory, &inode)?;
            self.rewrite(directory, parent, &names)?;
        } else if !self.put_into(directory, &inode, &places, text, named, kind)? {
            let Some(place) = self.take_block() else {
                self.found(format!("no block is free for a name of inode {named}"), "the file stays without a name");
                return Ok(());
            };
            let mut block = vec![0; self.parts.metadata.shape.block_bytes];
            entries::clear(&mut block, self.parts.metadata.shape.has_checksums());
            self.put_directory_block(directory, &inode, place, places.len(), block)?;
            let places = [places, vec![place]].concat();
            self.put_directory_map(directory, &places)?;
            let is_put = self.put_into(directory, &inode, &places[places.len() - 1..], text, named, kind)?;
            debug_assert!(is_put, "an empty block has room");
        }
        *self.walk.named.entry(named).or_insert(0) += 1;
        if self.is_directory(named) {
            self.walk.parents.insert(named, vec![directory]);
        }
        Ok(())
    }

    /// Puts a name into the first of these blocks with room for it. False if none has.
    fn put_into(
        &mut self,
        directory: u32,
        inode: &Inode,
        places: &[u64],
        text: &[u8],
        named: u32,
        kind: u8,
    ) -> Result<bool, VolumeError> {
        let has_tail = self.parts.metadata.shape.has_checksums();
        for place in places {
            let mut block = self.read(*place)?.to_vec();
            if entries::put(&mut block, has_tail, named, text, kind) == Ok(true) {
                // The directory has no index: all its blocks are alike.
                self.put_directory_block(directory, inode, *place, 1, block)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All names in these blocks of a directory, but `.` and `..`. Nodes of an index look like blocks without names.
    pub(super) fn names_in(&self, places: &[u64]) -> Result<Vec<Name>, VolumeError> {
        let mut names = Vec::new();
        for (number, place) in places.iter().enumerate() {
            let block = self.read(*place)?;
            for entry in self.entries(&block).0.iter().filter(|entry| entry.is_used()) {
                if number > 0 || entry.at > DOT {
                    let (text, kind) = (entry.name(&block).to_vec(), block[entry.at + 7]);
                    names.push(Name { text, inode: entry.inode, kind });
                }
            }
        }
        Ok(names)
    }
}

/// Inodes behind inode `at` that stay unused, if that one is in use.
fn shape_rest(group_inodes: u32, at: u32, had_none: bool, never_used: u32) -> u32 {
    let rest = group_inodes - at - 1;
    if had_none { rest } else { rest.min(never_used) }
}

/// A name that is not among these: the old one with a number behind it.
fn other_name(name: &[u8], known: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let numbered = |number: u32| {
        let tail = format!("~{number}").into_bytes();
        [&name[..name.len().min(LONGEST_NAME - tail.len())], &tail[..]].concat()
    };
    (1..).map(numbered).find(|name| !known.contains(name)).expect("there are more numbers than names")
}
