//! Names are moved.
//!
//! The gates of both directories come first, that of an ancestor before the other's; a call that moves a name to another
//! directory goes through the gate `renames` before, so that nobody's ancestors change meanwhile. Then those of the
//! files that have the names: directories, then others, by number.

use super::changing::{NAME_BLOCKS, NEW_BLOCKS};
use super::gates::{Gates, LookedUp, Seen, Unguarded};
use super::making::name_change;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::{File, Node, inode_of, number_of};
use crate::fs::ext::files::placing::MAP_BLOCKS;
use crate::fs::ext::format::fast_commit::Change;
use crate::fs::ext::format::inode::{Inode, Stamp};
use crate::fs::ext::journal::{Handle, Reason};
use crate::fs::ext::names::Names;
use crate::fs::nodes::names::{self, MovedLinks, Parents, Rename};
use crate::fs::volume::{FileKind, Found, InodeNumber, Name, RenameRule, Renaming, Timestamp, VolumeError, check_name};
use crate::task::Task;
use std::sync::Arc;

/// Blocks that a rename changes.
const RENAME_BLOCKS: usize = NAME_BLOCKS + MAP_BLOCKS;

/// A name of a rename: its directory, and the file that has it.
#[derive(Clone, Copy)]
struct Side<'n> {
    directory: u32,
    name: &'n [u8],
    file: Option<(u32, FileKind)>,
}

impl Names<'_> {
    /// Moves a name.
    pub fn rename_name(
        &self,
        task: &Task<'_>,
        (from, from_name): Name,
        (to, to_name): Name,
        mut how: Renaming,
        rule: Option<RenameRule>,
    ) -> Result<(), VolumeError> {
        names::check_renaming(&how)?;
        check_name(from_name)?;
        check_name(to_name)?;
        let is_across = from != to;
        let _alone = is_across.then(|| self.renames.enter(task));
        let directories = [self.inodes().node(task, inode_of(from)?)?, self.inodes().node(task, inode_of(to)?)?];
        // Their gates are left before they are let go.
        let files: Vec<Arc<Node>>;
        let mut gates = Gates::new(*self);
        let mut tree = Unguarded { names: *self, task };
        let [first, second] = match is_across && tree.is_within(from, to)? {
            true => [1, 0],
            false => [0, 1],
        };
        gates.enter(task, &directories[first])?;
        gates.enter(task, &directories[second])?;
        let names = [(from, from_name), (to, to_name)];
        let from = self.side(task, &gates, directories[0].number, from_name)?;
        gates.get(directories[1].number).check_directory()?;
        let to = self.side(task, &gates, directories[1].number, to_name)?;
        // The gate of a directory above those of the call comes before theirs: such a rename fails without it.
        let mut within = Vec::new();
        for (side, (directory, _)) in [from, to].into_iter().zip([names[1], names[0]]) {
            if let Some((number, FileKind::Directory)) = side.file
                && is_across
                && tree.is_within(directory, number_of(number))?
            {
                within.push((directory, number_of(number)));
            }
        }
        files = match within.is_empty() {
            true => self.files_of(task, &gates, [&from, &to])?,
            false => Vec::new(),
        };
        for node in &files {
            gates.enter(task, node)?;
        }
        let number = |side: &Side| side.file.map(|(number, _)| number);
        let seen = Seen { names: *self, task, gates: &gates };
        if let Some(rule) = rule {
            let found = Found { file: number(&from).map(number_of), existing: number(&to).map(number_of) };
            how = rule(&mut { seen }, found)?;
        }
        let looked_up = [(names[0], number(&from)), (names[1], number(&to))];
        let mut found = LookedUp { seen, names: &looked_up, within: &within };
        match names::rename(&mut found, names[0], names[1], &how)? {
            Rename::Nothing => Ok(()),
            Rename::Exchange { file, other, links } => {
                self.write_out_renamed(task, &mut gates, &files, &[file.inode, other.inode])?;
                self.exchange(task, &mut gates, from, to, links)
            }
            Rename::Move { file, replaced, links } => {
                if replaced.is_some() {
                    self.write_out_renamed(task, &mut gates, &files, &[file.inode])?;
                }
                self.replace(task, &mut gates, (from, to, links), how.whiteout)?;
                match to.file {
                    Some((there, _)) => self.writes.free_if_gone(task, gates.get_mut(there)),
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes out the dirty pages of files that get the name of another: no crash leaves that name with neither the old bytes
    /// nor the new ones.
    fn write_out_renamed(
        &self,
        task: &Task<'_>,
        gates: &mut Gates<'_>,
        files: &[Arc<Node>],
        renamed: &[InodeNumber],
    ) -> Result<(), VolumeError> {
        if !self.settings.auto_da_alloc {
            return Ok(());
        }
        for node in files.iter().filter(|node| renamed.contains(&number_of(node.number))) {
            let file = gates.get_mut(node.number);
            if file.kind() == FileKind::Regular && !file.pages.is_empty() {
                self.writes.write_back.write_out(task, node, file)?;
            }
        }
        Ok(())
    }

    fn side<'n>(
        &self,
        task: &Task<'_>,
        gates: &Gates<'_>,
        directory: u32,
        name: &'n [u8],
    ) -> Result<Side<'n>, VolumeError> {
        let file = gates.get(directory);
        file.check_directory()?;
        let file = match self.directories().inode_named(task, file, name)? {
            Some(number) => {
                let damage = || damaged(format!("inode {number}"), "a name has it, and its mode has no kind");
                Some((number, self.metadata.read_inode(task, number)?.kind().ok_or_else(damage)?))
            }
            None => None,
        };
        Ok(Side { directory, name, file })
    }

    /// The inodes of the names, in the order of their gates.
    fn files_of(&self, task: &Task<'_>, gates: &Gates<'_>, sides: [&Side; 2]) -> Result<Vec<Arc<Node>>, VolumeError> {
        let mut numbers: Vec<(bool, u32)> = Vec::new();
        for (number, kind) in sides.into_iter().filter_map(|side| side.file) {
            if !gates.has(number) {
                numbers.push((kind != FileKind::Directory, number));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|(_, number)| self.inodes().node(task, number)).collect()
    }

    /// Moves a name to one that is free, or whose file loses it. Leaves the gates of both directories.
    fn replace(
        &self,
        task: &Task<'_>,
        gates: &mut Gates<'_>,
        (from, to, links): (Side, Side, MovedLinks),
        whiteout: Option<(u32, u32)>,
    ) -> Result<(), VolumeError> {
        let file = from.file.expect("it was found");
        let now = self.writes.origin.after(task.now());
        let promise = self.allocation().promise(task, NEW_BLOCKS, false)?;
        let moved = self.changes.within(task, RENAME_BLOCKS, |handle| {
            let whiteout = match whiteout {
                Some(owner) => Some((self.allocation().take_inode(handle, from.directory, false)?, owner)),
                None => None,
            };
            let there = to.file.map(|(number, _)| number);
            handle.tracked(|tracker| match whiteout {
                Some(_) => tracker.exclude(Reason::Whiteout),
                None if file.1 == FileKind::Directory => tracker.exclude(Reason::Directory),
                None => {
                    let change = |side: Side, inode| name_change(side.directory, side.name, inode);
                    there.into_iter().for_each(|there| tracker.name(Change::Unlink(change(to, there))));
                    // Before its old name goes: a file without a name is freed.
                    tracker.name(Change::Link(change(to, file.0)));
                    tracker.name(Change::Unlink(change(from, file.0)));
                }
            });
            self.changes.changing(|| {
                match to.file {
                    Some((there, _)) => {
                        self.rename_entry(task, handle, gates.get(to.directory), to.name, file)?;
                        self.lose_name(handle, gates.get_mut(there), now)?;
                    }
                    None => {
                        self.directories().add_name(handle, gates.get_mut(to.directory), (to.name, file.0, file.1))?
                    }
                }
                match whiteout {
                    Some((number, owner)) => {
                        self.put_whiteout(handle, number, owner, now)?;
                        let new = (number, FileKind::CharacterDevice);
                        self.rename_entry(task, handle, gates.get(from.directory), from.name, new)?;
                    }
                    None => {
                        let directory = gates.get(from.directory);
                        let found =
                            self.directories().find_name(task, directory, from.name)?.ok_or(VolumeError::NotFound)?;
                        self.directories().remove_name(handle, directory, &found)?;
                    }
                }
                self.moved(handle, gates, file, (from.directory, to.directory), now)?;
                self.names_changed(handle, gates, (from.directory, to.directory, links), now)
            })?;
            // Before the handle ends, as where a file is made.
            gates.leave(from.directory);
            gates.leave(to.directory);
            Ok(())
        });
        drop(promise);
        moved
    }

    /// Gives a name of a directory to another file.
    fn rename_entry(
        &self,
        task: &Task<'_>,
        handle: &Handle<'_>,
        directory: &File,
        name: &[u8],
        file: (u32, FileKind),
    ) -> Result<(), VolumeError> {
        let found = self.directories().find_name(task, directory, name)?.ok_or(VolumeError::NotFound)?;
        self.directories().set_name(handle, directory, &found, file);
        Ok(())
    }

    /// A file has another name now, in directory `to`: if it is a directory, its `..` follows.
    fn moved(
        &self,
        handle: &Handle<'_>,
        gates: &mut Gates<'_>,
        (number, kind): (u32, FileKind),
        (from, to): (u32, u32),
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        if from != to && kind == FileKind::Directory {
            self.directories().set_parent(handle, gates.get(number), to)?;
        }
        let file = gates.get_mut(number);
        file.was_changed(now);
        self.inodes().store_inode(handle, file, true)
    }

    fn names_changed(
        &self,
        handle: &Handle<'_>,
        gates: &mut Gates<'_>,
        (from, to, links): (u32, u32, MovedLinks),
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        let changed: &[(u32, i32)] = match from == to {
            true => &[(to, links.from + links.to)],
            false => &[(from, links.from), (to, links.to)],
        };
        for (number, links) in changed {
            let directory = gates.get_mut(*number);
            self.add_links(directory, *links);
            directory.was_written(now);
            self.inodes().store_inode(handle, directory, true)?;
        }
        Ok(())
    }

    fn exchange(
        &self,
        task: &Task<'_>,
        gates: &mut Gates<'_>,
        from: Side,
        to: Side,
        links: MovedLinks,
    ) -> Result<(), VolumeError> {
        let (file, there) = (from.file.expect("it was found"), to.file.expect("it was found"));
        let now = self.writes.origin.after(task.now());
        self.changes.within(task, RENAME_BLOCKS, |handle| {
            handle.tracked(|tracker| tracker.exclude(Reason::Exchange));
            self.changes.changing(|| {
                self.rename_entry(task, handle, gates.get(from.directory), from.name, there)?;
                self.rename_entry(task, handle, gates.get(to.directory), to.name, file)?;
                self.moved(handle, gates, file, (from.directory, to.directory), now)?;
                self.moved(handle, gates, there, (to.directory, from.directory), now)?;
                self.names_changed(handle, gates, (from.directory, to.directory, links), now)
            })
        })
    }

    /// Makes a whiteout: a character device 0.
    fn put_whiteout(
        &self,
        handle: &Handle<'_>,
        number: u32,
        (user, group): (u32, u32),
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        let mut inode = Inode::empty(self.metadata.shape.inode_bytes, self.metadata.shape.extra_bytes);
        inode.set_mode(FileKind::CharacterDevice, 0);
        inode.set_user(user);
        inode.set_group(group);
        inode.set_links(1);
        for stamp in [Stamp::Accessed, Stamp::Changed, Stamp::Modified, Stamp::Created] {
            inode.set_stamp(stamp, now);
        }
        self.inodes().put_inode(handle, number, inode)
    }
}
