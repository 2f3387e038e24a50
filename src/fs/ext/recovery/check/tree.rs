//! The tree of directories: the root, directories that no other names or several do, files without a name, `..`, and the
//! number of links.

use super::maps::FileMap;
use super::{Check, FileEntry};
use crate::fs::ext::allocation::bits;
use crate::fs::ext::format::extents::Extent;
use crate::fs::ext::format::group::flag as group_flag;
use crate::fs::ext::format::inode::{Inode, Stamp, flag};
use crate::fs::ext::format::shape::ROOT;
use crate::fs::volume::{FileKind, VolumeError};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const LOST_AND_FOUND: &[u8] = b"lost+found";
/// Links of a directory from which on it says one link (`dir_nlink`).
const MOST_LINKS: u32 = 65_000;

impl Check<'_> {
    /// Makes all directories and files reachable from the root.
    pub(super) fn tree(&mut self) -> Result<(), VolumeError> {
        if !self.is_directory(ROOT) {
            self.found("the root directory is missing", "an empty one is made; files get names in lost+found");
            if !self.make_directory(ROOT, ROOT, 0o755)? {
                return Ok(());
            }
            self.lost_and_found()?;
        }
        self.keep_one_parent()?;
        for number in self.unreachable() {
            let what = format!("no name leads to the directory with inode {number}");
            self.find_home(number, what)?;
        }
        let unnamed: Vec<u32> = self
            .walk
            .files
            .iter()
            .filter(|(number, file)| {
                let named = self.walk.named.get(number).is_some_and(|count| *count > 0);
                let needs_none = self.orphans.contains(number) || self.walk.numbered.contains(number);
                !named && file.kind != FileKind::Directory && !needs_none
            })
            .map(|(number, _)| *number)
            .collect();
        for number in unnamed {
            self.find_home(number, format!("inode {number} is in use, and has no name"))?;
        }
        self.dot_dots()?;
        self.index_lists()
    }

    /// Removes names of directories that have several.
    fn keep_one_parent(&mut self) -> Result<(), VolumeError> {
        let several: Vec<(u32, Vec<u32>)> = self
            .walk
            .parents
            .iter()
            .filter(|(_, parents)| parents.len() > 1)
            .map(|(number, parents)| (*number, parents.clone()))
            .collect();
        for (number, parents) in several {
            let said = self.walk.dot_dots.get(&number).copied().unwrap_or(0);
            let kept = if parents.contains(&said) { said } else { parents[0] };
            let mut is_kept = false;
            for parent in parents {
                if parent == kept && !is_kept {
                    is_kept = true;
                    continue;
                }
                let what = format!("the directory with inode {parent} has one more name of directory {number}");
                self.found(what, "the name is removed");
                self.remove_name(parent, number)?;
            }
            self.walk.parents.insert(number, vec![kept]);
        }
        Ok(())
    }

    /// Directories to which no way leads from the root: of each tree or ring of them one.
    fn unreachable(&self) -> Vec<u32> {
        let directories = self.walk.files.iter().filter(|(_, file)| file.kind == FileKind::Directory);
        let mut left: BTreeSet<u32> = directories.map(|(number, _)| *number).collect();
        let mut below: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, parents) in &self.walk.parents {
            below.entry(parents[0]).or_default().push(*number);
        }
        let reach = |from: u32, left: &mut BTreeSet<u32>| {
            let mut next = vec![from];
            while let Some(number) = next.pop() {
                if left.remove(&number) {
                    next.extend(below.get(&number).into_iter().flatten());
                }
            }
        };
        reach(ROOT, &mut left);
        let mut tops = Vec::new();
        while let Some(first) = left.first().copied() {
            let top = left.iter().copied().find(|number| !self.walk.parents.contains_key(number)).unwrap_or(first);
            tops.push(top);
            reach(top, &mut left);
        }
        tops
    }

    /// Gives an inode a name in lost+found.
    fn find_home(&mut self, number: u32, what: String) -> Result<(), VolumeError> {
        let (home, title) = match self.lost_and_found()? {
            Some(home) => (home, "lost+found"),
            None => (ROOT, "the root, as there is no room for lost+found"),
        };
        // A ring of directories is cut open here.
        if let Some(parent) = self.walk.parents.get(&number).map(|parents| parents[0]) {
            self.remove_name(parent, number)?;
        }
        let name = format!("#{number}");
        self.found(what, format!("it gets the name '{name}' in {title}"));
        self.add_name(home, name.as_bytes(), number)
    }

    /// The directory lost+found, which is made if it is missing; `None` if there is no room.
    fn lost_and_found(&mut self) -> Result<Option<u32>, VolumeError> {
        if let Some(number) = self.walk.lost_and_found {
            return Ok(Some(number));
        }
        let Some(number) = self.take_inode()? else { return Ok(None) };
        self.found("there is no lost+found", "it is made");
        if !self.make_directory(number, ROOT, 0o700)? {
            return Ok(None);
        }
        let places = self.directory_places(ROOT)?;
        let other = self.names_in(&places)?.into_iter().find(|name| name.text == LOST_AND_FOUND);
        if let Some(other) = &other {
            self.remove_name(ROOT, other.inode)?;
        }
        self.add_name(ROOT, LOST_AND_FOUND, number)?;
        self.walk.lost_and_found = Some(number);
        if let Some(file) = other.filter(|other| self.walk.files.contains_key(&other.inode)) {
            let name = format!("#{}", file.inode);
            self.found("lost+found is a file", format!("it gets the name '{name}' in a directory of that name"));
            self.add_name(number, name.as_bytes(), file.inode)?;
        }
        Ok(Some(number))
    }

    /// Makes an empty directory. False if no block is free.
    fn make_directory(&mut self, number: u32, parent: u32, permissions: u16) -> Result<bool, VolumeError> {
        let Some(place) = self.take_block() else {
            self.found(format!("no block is free for the directory with inode {number}"), "it is not made");
            return Ok(false);
        };
        let shape = &self.parts.metadata.shape;
        let mut inode = Inode::empty(shape.inode_bytes, shape.extra_bytes);
        inode.set_mode(FileKind::Directory, permissions);
        inode.set_links(2);
        if shape.has_extents() {
            inode.set_flags(flag::EXTENTS);
        }
        for stamp in [Stamp::Accessed, Stamp::Changed, Stamp::Modified, Stamp::Created] {
            inode.set_stamp(stamp, self.now);
        }
        self.put_inode(number, &inode)?;
        self.walk.files.insert(number, FileEntry { kind: FileKind::Directory, links: 2 });
        bits::put(&mut self.walk.used_inodes, number - 1..number, true);
        let map =
            FileMap { extents: vec![Extent { first: 0, count: 1, place, is_written: true }], ..FileMap::default() };
        self.put_map(number, &map)?;
        let inode = self.inode(number)?;
        self.put_first_block(number, &inode, place, parent)?;
        self.walk.dot_dots.insert(number, parent);
        Ok(true)
    }

    /// A free inode; `None` if all are in use. The first one of a table that was never written is not taken.
    fn take_inode(&mut self) -> Result<Option<u32>, VolumeError> {
        let has_flags = self.parts.metadata.shape.checksums.cover_groups();
        for group in 0..self.parts.metadata.shape.groups {
            let mut descriptor = self.groups[group as usize];
            if has_flags && descriptor.has(group_flag::NO_INODES) {
                continue;
            }
            let first = group * self.parts.metadata.shape.group_inodes;
            let free = bits::next_clear(&self.walk.used_inodes, first, first + self.parts.metadata.shape.group_inodes);
            let Some(free) = free else { continue };
            let rest = self.parts.metadata.shape.group_inodes - (free - first) - 1;
            if has_flags && descriptor.never_used > rest {
                descriptor.never_used = rest;
                self.groups[group as usize] = descriptor;
                self.store_descriptor(group, &descriptor)?;
            }
            return Ok(Some(free + 1));
        }
        Ok(None)
    }

    /// Compares each `..` with the directory that names its directory.
    fn dot_dots(&mut self) -> Result<(), VolumeError> {
        let all: Vec<(u32, u32)> = self.walk.dot_dots.iter().map(|(number, said)| (*number, *said)).collect();
        for (number, said) in all {
            let parent = match self.walk.parents.get(&number) {
                _ if number == ROOT => ROOT,
                Some(parents) => parents[0],
                None => continue,
            };
            if said != parent {
                let what = format!("the directory with inode {number}: its '..' is inode {said}, and not {parent}");
                self.found(what, "the number is corrected");
                self.set_parent(number, parent)?;
            }
            // `.` names it, and `..` its parent.
            *self.walk.named.entry(number).or_insert(0) += 1;
            *self.walk.named.entry(parent).or_insert(0) += 1;
        }
        Ok(())
    }

    fn is_indexed(&self, number: u32) -> Result<bool, VolumeError> {
        Ok(self.inode(number)?.has(flag::INDEX))
    }

    /// Compares the links of inodes with their names.
    pub(super) fn count_links(&mut self) -> Result<(), VolumeError> {
        let all: Vec<(u32, FileEntry)> = self.walk.files.iter().map(|(number, file)| (*number, *file)).collect();
        for (number, file) in all {
            let named = self.walk.named.get(&number).copied().unwrap_or(0);
            let is_uncounted = file.kind == FileKind::Directory && named > MOST_LINKS;
            let right = if is_uncounted { 1 } else { named };
            self.walk.has_many_links |= is_uncounted;
            // A directory that had too many to count keeps 1 when it has fewer.
            let is_kept =
                file.kind == FileKind::Directory && file.links == 1 && named > 1 && self.is_indexed(number)?;
            if is_kept || right == u32::from(file.links) || self.orphans.contains(&number) && named == 0 {
                continue;
            }
            // A file that found no room in lost+found.
            if named == 0 {
                continue;
            }
            self.found(format!("inode {number} says {} links, and has {right}", file.links), "the number is corrected");
            let mut inode = self.inode(number)?;
            inode.set_links(right.min(u32::from(u16::MAX)) as u16);
            self.put_inode(number, &inode)?;
        }
        self.count_sharers()
    }
}
