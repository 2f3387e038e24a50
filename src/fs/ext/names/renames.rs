//! Names are moved.
//!
//! The gates of both directories come first, that of an ancestor before the other's; who moves something to another
//! directory goes through the gate `renames` before, so that nobody's ancestors change meanwhile. Then those of the
//! files that have the names: directories, then others, by number.

use super::changing::{NAME_BLOCKS, NEW_BLOCKS};
use super::gates::{Gates, Seen};
use super::making::{dots, name_change};
use crate::fs::ext::Ext;
use crate::fs::ext::error::damaged;
use crate::fs::ext::files::node::{File, Node, inode_of, number_of};
use crate::fs::ext::files::placing::MAP_BLOCKS;
use crate::fs::ext::format::fast_commit::Change;
use crate::fs::ext::format::inode::{Inode, Stamp};
use crate::fs::ext::format::shape::ROOT;
use crate::fs::ext::journal::{Handle, Reason};
use crate::fs::volume::{FileKind, Found, IfExists, Name, RenameRule, Renaming, Timestamp, VolumeError, check_name};
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

impl Ext {
    /// Moves a name.
    pub fn rename_name(
        &self,
        task: &Task<'_>,
        (from, from_name): Name,
        (to, to_name): Name,
        mut how: Renaming,
        rule: Option<RenameRule>,
    ) -> Result<(), VolumeError> {
        if how.whiteout.is_some() && how.if_exists == IfExists::Exchange {
            return Err(VolumeError::Invalid("an exchange leaves no name for a whiteout"));
        }
        check_name(from_name)?;
        check_name(to_name)?;
        let is_across = from != to;
        let _alone = is_across.then(|| self.renames.enter(task));
        let directories = [self.node(task, inode_of(from)?)?, self.node(task, inode_of(to)?)?];
        // Their gates are left before they are let go.
        let files: Vec<Arc<Node>>;
        let mut gates = Gates::new(self);
        let [first, second] = match is_across && self.is_within(task, directories[0].number, directories[1].number)? {
            true => [1, 0],
            false => [0, 1],
        };
        gates.enter(task, &directories[first])?;
        gates.enter(task, &directories[second])?;
        let from = self.side(task, &gates, directories[0].number, from_name)?;
        gates.get(directories[1].number).check_directory()?;
        let to = self.side(task, &gates, directories[1].number, to_name)?;
        // The gate of a directory above those of the call comes before theirs: such a rename fails without it.
        let is_into_itself = is_across && self.is_above(task, from.file, to.directory)?;
        let is_over_itself = is_across && self.is_above(task, to.file, from.directory)?;
        files = match is_into_itself || is_over_itself {
            true => Vec::new(),
            false => self.files_of(task, &gates, [&from, &to])?,
        };
        for node in &files {
            gates.enter(task, node)?;
        }
        if let Some(rule) = rule {
            let number = |side: &Side| side.file.map(|(number, _)| number_of(number));
            let found = Found { file: number(&from), existing: number(&to) };
            how = rule(&mut Seen { ext: self, task, gates: &gates }, found)?;
        }
        self.check_open(gates.get(to.directory))?;
        let file = from.file.ok_or(VolumeError::NotFound)?;
        let into_itself = VolumeError::Invalid("a directory cannot be moved into itself");
        if is_into_itself {
            return Err(into_itself);
        }
        match (to.file, how.if_exists) {
            (None, IfExists::Exchange) => return Err(VolumeError::NotFound),
            (Some(_), IfExists::Refuse) => return Err(VolumeError::Exists),
            (Some((there, _)), _) if there == file.0 => return Ok(()),
            (Some(_), IfExists::Exchange) if is_over_itself => return Err(into_itself),
            (Some(there), IfExists::Exchange) => {
                self.write_out_renamed(task, &mut gates, &files, &[file.0, there.0])?;
                return self.exchange(task, &mut gates, from, to);
            }
            (Some(_), IfExists::Replace) if is_over_itself && file.1 == FileKind::Directory => {
                return Err(VolumeError::NotEmpty);
            }
            (Some(_), IfExists::Replace) if is_over_itself => return Err(VolumeError::IsDirectory),
            (Some(there), IfExists::Replace) => self.check_replaced(task, &gates, file, there)?,
            (None, _) => {}
        }
        if to.file.is_some() {
            self.write_out_renamed(task, &mut gates, &files, &[file.0])?;
        }
        self.replace(task, &mut gates, from, to, how.whiteout)?;
        if let Some((there, _)) = to.file {
            self.free_if_gone(task, gates.get_mut(there))?;
        }
        Ok(())
    }

    /// Writes out what waits of files that get the name of another: no crash leaves that name with neither the old bytes
    /// nor the new ones.
    fn write_out_renamed(
        &self,
        task: &Task<'_>,
        gates: &mut Gates<'_>,
        files: &[Arc<Node>],
        renamed: &[u32],
    ) -> Result<(), VolumeError> {
        if !self.settings.auto_da_alloc {
            return Ok(());
        }
        for node in files.iter().filter(|node| renamed.contains(&node.number)) {
            let file = gates.get_mut(node.number);
            if file.kind() == FileKind::Regular && !file.pages.is_empty() {
                self.write_out(task, node, file)?;
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
        let file = match self.inode_named(task, file, name)? {
            Some(number) => {
                let damage = || damaged(format!("inode {number}"), "a name has it, and its mode has no kind");
                Some((number, self.read_inode(task, number)?.kind().ok_or_else(damage)?))
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
        numbers.into_iter().map(|(_, number)| self.node(task, number)).collect()
    }

    /// True if a directory lies within another one, at any depth. Nobody moves directories meanwhile.
    fn is_within(&self, task: &Task<'_>, directory: u32, other: u32) -> Result<bool, VolumeError> {
        let mut at = directory;
        for _ in 0..self.shape.inodes {
            if at == other || at == ROOT {
                return Ok(at == other);
            }
            at = self.parent_unguarded(task, at)?;
        }
        Err(damaged(Ext::directory_name(directory), "its parents make a circle"))
    }

    /// True if a file is a directory in which another lies, or is that.
    fn is_above(&self, task: &Task<'_>, file: Option<(u32, FileKind)>, directory: u32) -> Result<bool, VolumeError> {
        match file {
            Some((number, FileKind::Directory)) => self.is_within(task, directory, number),
            _ => Ok(false),
        }
    }

    /// The parent of a directory whose gate the task is not behind, as it is in the table.
    fn parent_unguarded(&self, task: &Task<'_>, number: u32) -> Result<u32, VolumeError> {
        let file = File::new(number, self.read_inode(task, number)?);
        file.check_directory()?;
        self.parent_of(task, &file)
    }

    fn check_replaced(
        &self,
        task: &Task<'_>,
        gates: &Gates<'_>,
        file: (u32, FileKind),
        there: (u32, FileKind),
    ) -> Result<(), VolumeError> {
        match (file.1 == FileKind::Directory, there.1 == FileKind::Directory) {
            (true, false) => Err(VolumeError::NotDirectory),
            (false, true) => Err(VolumeError::IsDirectory),
            (true, true) if !self.is_empty_directory(task, gates.get(there.0))? => Err(VolumeError::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Moves a name to one that is free, or whose file loses it. Leaves the gates of both directories.
    fn replace(
        &self,
        task: &Task<'_>,
        gates: &mut Gates<'_>,
        from: Side,
        to: Side,
        whiteout: Option<(u32, u32)>,
    ) -> Result<(), VolumeError> {
        let file = from.file.expect("it was found");
        let now = self.wall(task.now());
        if from.directory != to.directory {
            self.check_links(gates.get(to.directory), file.1)?;
        }
        let promise = self.promise(task, NEW_BLOCKS, false)?;
        let moved = self.within(task, RENAME_BLOCKS, |handle| {
            let whiteout = match whiteout {
                Some(owner) => Some((self.take_inode(handle, from.directory, false)?, owner)),
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
            self.changing(|| {
                match to.file {
                    Some((there, kind)) => {
                        self.rename_entry(task, handle, gates.get(to.directory), to.name, file)?;
                        self.add_links(gates.get_mut(to.directory), -dots(kind));
                        self.lose_name(handle, gates.get_mut(there), now)?;
                    }
                    None => self.add_name(handle, gates.get_mut(to.directory), (to.name, file.0, file.1))?,
                }
                match whiteout {
                    Some((number, owner)) => {
                        self.put_whiteout(handle, number, owner, now)?;
                        let new = (number, FileKind::CharacterDevice);
                        self.rename_entry(task, handle, gates.get(from.directory), from.name, new)?;
                    }
                    None => {
                        let directory = gates.get(from.directory);
                        let found = self.find_name(task, directory, from.name)?.ok_or(VolumeError::NotFound)?;
                        self.remove_name(handle, directory, &found)?;
                    }
                }
                self.moved(handle, gates, file, (from.directory, to.directory), now)?;
                self.names_changed(handle, gates, (from.directory, to.directory), now)
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
        let found = self.find_name(task, directory, name)?.ok_or(VolumeError::NotFound)?;
        self.set_name(handle, directory, &found, file);
        Ok(())
    }

    /// A file has another name now, in this directory: if it is a directory, its `..` follows, and so do links.
    fn moved(
        &self,
        handle: &Handle<'_>,
        gates: &mut Gates<'_>,
        (number, kind): (u32, FileKind),
        (from, to): (u32, u32),
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        if from != to && kind == FileKind::Directory {
            self.set_parent(handle, gates.get(number), to)?;
            self.add_links(gates.get_mut(from), -1);
            self.add_links(gates.get_mut(to), 1);
        }
        let file = gates.get_mut(number);
        file.was_changed(now);
        self.store_inode(handle, file, true)
    }

    fn names_changed(
        &self,
        handle: &Handle<'_>,
        gates: &mut Gates<'_>,
        (from, to): (u32, u32),
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        for number in if from == to { vec![from] } else { vec![from, to] } {
            let directory = gates.get_mut(number);
            directory.was_written(now);
            self.store_inode(handle, directory, true)?;
        }
        Ok(())
    }

    fn exchange(&self, task: &Task<'_>, gates: &mut Gates<'_>, from: Side, to: Side) -> Result<(), VolumeError> {
        let (file, there) = (from.file.expect("it was found"), to.file.expect("it was found"));
        let now = self.wall(task.now());
        self.within(task, RENAME_BLOCKS, |handle| {
            handle.tracked(|tracker| tracker.exclude(Reason::Exchange));
            self.changing(|| {
                self.rename_entry(task, handle, gates.get(from.directory), from.name, there)?;
                self.rename_entry(task, handle, gates.get(to.directory), to.name, file)?;
                self.moved(handle, gates, file, (from.directory, to.directory), now)?;
                self.moved(handle, gates, there, (to.directory, from.directory), now)?;
                self.names_changed(handle, gates, (from.directory, to.directory), now)
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
        let mut inode = Inode::empty(self.shape.inode_bytes, self.shape.extra_bytes);
        inode.set_mode(FileKind::CharacterDevice, 0);
        inode.set_user(user);
        inode.set_group(group);
        inode.set_links(1);
        for stamp in [Stamp::Accessed, Stamp::Changed, Stamp::Modified, Stamp::Created] {
            inode.set_stamp(stamp, now);
        }
        self.put_inode(handle, number, inode)
    }
}
