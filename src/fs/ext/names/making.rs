//! Files are made, linked and unlinked.

use super::changing::{NAME_BLOCKS, NEW_BLOCKS};
use super::gates::{Gates, LookedUp, Seen};
use crate::crc;
use crate::fs::ext::files::attributes::Division;
use crate::fs::ext::files::node::{File, Node, inode_of, number_of};
use crate::fs::ext::files::placing::MAP_BLOCKS;
use crate::fs::ext::format::extents;
use crate::fs::ext::format::fast_commit::{Change, NameChange};
use crate::fs::ext::format::inode::{Inode, MAP_BYTES, Stamp, flag};
use crate::fs::ext::journal::{Handle, Reason};
use crate::fs::ext::names::Directories;
use crate::fs::ext::names::Names;
use crate::fs::nodes::names::{self, Entry, Removal, subdirectories};
use crate::fs::volume::{
    Attributes, ExtendedChange, FileKind, Found, Hold, InodeNumber, MOST_LINKS, Name, NameRule, NewFile, NewFileRule,
    Timestamp, VolumeError, check_name,
};
use crate::label::Content;
use crate::task::Task;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Blocks that a call changes that makes a file: its inode, bitmaps, attributes, and the blocks of its name.
const MAKE_BLOCKS: usize = NAME_BLOCKS + MAP_BLOCKS;

impl Names<'_> {
    /// Changes the links of a directory. With so many that they cannot be counted, it says 1.
    pub fn add_links(&self, directory: &mut File, links: i32) {
        let now = i32::from(directory.inode.links());
        if now == 1 || links == 0 {
            return;
        }
        let then = (now + links).max(0);
        directory.inode.set_links(if then > MOST_LINKS as i32 { 1 } else { then as u16 });
    }

    /// Asks a rule about names before anything is done.
    fn ask(
        &self,
        task: &Task<'_>,
        gates: &Gates<'_>,
        rule: Option<NameRule>,
        file: Option<u32>,
    ) -> Result<(), VolumeError> {
        let Some(rule) = rule else { return Ok(()) };
        let found = Found { file: file.map(number_of), existing: None };
        rule(&mut Seen { names: *self, task, gates }, found)
    }

    /// Makes a file, and gives it a name.
    pub fn make_file(
        &self,
        task: &Task<'_>,
        (directory, name): Name,
        new: &NewFile,
        hold: Hold,
        rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError> {
        check_name(name)?;
        let parent = self.inodes().node(task, inode_of(directory)?)?;
        let there;
        let mut gates = Gates::new(*self);
        gates.enter(task, &parent)?;
        names::check_open(&mut looked_up(*self, task, &gates, &[]), directory)?;
        let found = self.directories().inode_named(task, gates.get(parent.number), name)?;
        let mut new = *new;
        let inherited;
        let attributes: Vec<(&[u8], &[u8])>;
        if let Some(rule) = rule {
            if let Some(found) = found {
                there = self.inodes().node(task, found)?;
                gates.enter(task, &there)?;
            }
            let found = Found { file: found.map(number_of), existing: None };
            inherited = rule(&mut Seen { names: *self, task, gates: &gates }, found)?;
            attributes = inherited.attributes.iter().map(|(name, value)| (*name, &value[..])).collect();
            (new.permissions, new.group, new.attributes) = (inherited.permissions, inherited.group, &attributes);
        }
        names::make(&mut looked_up(*self, task, &gates, &[((directory, name), found)]), (directory, name), &new)?;
        let mut file = self.new_file(&new, self.writes.origin.after(task.now()));
        let changes: Vec<ExtendedChange> = new
            .attributes
            .iter()
            .map(|(name, value)| ExtendedChange { name, value: Some(Cow::Borrowed(value)) })
            .collect();
        let plan = self.inodes().plan_attributes(task, &file, &changes)?;
        let promise = self.allocation().promise(task, NEW_BLOCKS, false)?;
        let made = self.changes.within(task, MAKE_BLOCKS, |handle| {
            file.number = self.allocation().take_inode(handle, parent.number, new.kind == FileKind::Directory)?;
            let directory = gates.get_mut(parent.number);
            self.changes.changing(|| self.store_new(handle, directory, (name, &new), &mut file, plan))?;
            handle.tracked(|tracker| match new.kind {
                FileKind::Directory => tracker.exclude(Reason::Directory),
                _ if !new.attributes.is_empty() => tracker.exclude(Reason::Attributes),
                _ => tracker.name(Change::Create(name_change(parent.number, name, file.number))),
            });
            let made = file.attributes(self.metadata.shape.block_bytes);
            let number = file.number;
            self.inodes().nodes.add(file);
            if hold == Hold::Yes {
                self.inodes().nodes.hold(number);
            }
            self.known_names.note(parent.number, name, number);
            // The handle ends behind no gate: a journal may store its changes then, and others need not wait for that.
            gates.leave(parent.number);
            Ok(made)
        });
        drop(promise);
        made
    }

    /// Stores a new file, which has a number, and its name.
    fn store_new(
        &self,
        handle: &Handle<'_>,
        directory: &mut File,
        (name, new): (&[u8], &NewFile),
        file: &mut File,
        plan: Division,
    ) -> Result<(), VolumeError> {
        let named = self.directories().add_name(handle, directory, (name, file.number, new.kind));
        if let Err(error) = named {
            self.allocation().free_inode(handle, file.number, new.kind == FileKind::Directory)?;
            return Err(error);
        }
        self.inodes().store_attributes(handle, file, plan)?;
        match new.kind {
            FileKind::Directory => self.directories().fill_directory(handle, file, directory.number)?,
            FileKind::Symlink => self.put_target(handle, file, new.target)?,
            _ => {}
        }
        self.inodes().store_inode(handle, file, true)?;
        self.add_links(directory, subdirectories(new.kind));
        directory.was_written(self.writes.origin.after(handle.task.now()));
        self.inodes().store_inode(handle, directory, true)
    }

    /// A new file, without a number.
    fn new_file(&self, new: &NewFile, now: Timestamp) -> File {
        let mut inode = Inode::empty(self.metadata.shape.inode_bytes, self.metadata.shape.extra_bytes);
        inode.set_mode(new.kind, new.permissions);
        inode.set_user(new.user);
        inode.set_group(new.group);
        inode.set_links(1 + subdirectories(new.kind) as u16);
        for stamp in [Stamp::Accessed, Stamp::Changed, Stamp::Modified, Stamp::Created] {
            inode.set_stamp(stamp, now);
        }
        // A generation tells files apart that had the same inode, also in checksums of their blocks.
        let count = self.generations.fetch_add(1, Ordering::Relaxed);
        inode.set_generation(crc::crc32c(&[count.to_le_bytes(), now.0.to_le_bytes()].concat()));
        match new.kind {
            FileKind::CharacterDevice | FileKind::BlockDevice => inode.set_device(new.device),
            FileKind::Regular | FileKind::Directory if self.metadata.shape.has_extents() => clear_extents(&mut inode),
            FileKind::Symlink if self.metadata.shape.has_extents() && new.target.len() >= MAP_BYTES => {
                clear_extents(&mut inode)
            }
            _ => {}
        }
        File::new(0, inode)
    }

    fn put_target(&self, handle: &Handle<'_>, file: &mut File, target: &[u8]) -> Result<(), VolumeError> {
        file.inode.set_size(target.len() as u64);
        if target.len() < MAP_BYTES {
            file.inode.map_mut()[..target.len()].copy_from_slice(target);
            return Ok(());
        }
        let goal = self.maps().goal(handle.task, file, 0)?;
        let run = self.allocation().take_blocks(handle, goal, 1)?;
        let mut bytes = target.to_vec();
        bytes.resize(self.metadata.shape.block_bytes, 0);
        handle.set(run.start, Content::Metadata, &bytes);
        self.maps().put_run(handle, file, 0, run, true)
    }

    /// Gives a file one more name.
    pub fn link_file(
        &self,
        task: &Task<'_>,
        inode: InodeNumber,
        (directory, name): Name,
        hold: Hold,
        rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError> {
        check_name(name)?;
        let parent = self.inodes().node(task, inode_of(directory)?)?;
        let node = self.inodes().node(task, inode_of(inode)?)?;
        let there;
        let mut gates = Gates::new(*self);
        gates.enter(task, &parent)?;
        names::check_open(&mut looked_up(*self, task, &gates, &[]), directory)?;
        let found = self.directories().inode_named(task, gates.get(parent.number), name)?;
        if let Some(found) = found.filter(|_| rule.is_some()) {
            there = self.inodes().node(task, found)?;
            let kind = self.metadata.read_inode(task, found)?.kind();
            // A directory comes before a file, and files go by number.
            if kind != Some(FileKind::Directory) && found > node.number && found != node.number {
                self.enter_file(task, &mut gates, &node)?;
            }
            gates.enter(task, &there)?;
        }
        self.enter_file(task, &mut gates, &node)?;
        self.ask(task, &gates, rule, found)?;
        let Entry { kind, .. } =
            names::link(&mut looked_up(*self, task, &gates, &[((directory, name), found)]), inode, (directory, name))?;
        let (links, now) = (gates.get(node.number).inode.links(), self.writes.origin.after(task.now()));
        let promise = self.allocation().promise(task, NEW_BLOCKS, false)?;
        let linked = self.changes.within(task, NAME_BLOCKS, |handle| {
            self.changes.changing(|| {
                let directory = gates.get_mut(parent.number);
                self.directories().add_name(handle, directory, (name, node.number, kind))?;
                directory.was_written(now);
                self.inodes().store_inode(handle, directory, true)?;
                let file = gates.get_mut(node.number);
                file.inode.set_links(links + 1);
                file.was_changed(now);
                self.inodes().store_inode(handle, file, true)
            })?;
            handle.tracked(|tracker| tracker.name(Change::Link(name_change(parent.number, name, node.number))));
            if hold == Hold::Yes {
                self.inodes().nodes.hold(node.number);
            }
            let linked = gates.get(node.number).attributes(self.metadata.shape.block_bytes);
            drop(gates);
            Ok(linked)
        });
        drop(promise);
        linked
    }

    /// Goes through the gate of a file that gets a name. A directory has one name.
    fn enter_file<'g>(
        &self,
        task: &'g Task<'_>,
        gates: &mut Gates<'g>,
        node: &'g Arc<Node>,
    ) -> Result<(), VolumeError> {
        if gates.has(node.number) || self.metadata.read_inode(task, node.number)?.kind() == Some(FileKind::Directory) {
            return Err(VolumeError::NotPermitted("a directory has one name"));
        }
        gates.enter(task, node)
    }

    /// Takes a name away: of a directory, which must be empty, or of anything else.
    pub fn unlink_name(
        &self,
        task: &Task<'_>,
        (directory, name): Name,
        what: Removal,
        rule: Option<NameRule>,
    ) -> Result<(), VolumeError> {
        names::check_removal(name, what)?;
        let parent = self.inodes().node(task, inode_of(directory)?)?;
        // Its gate is left before it is let go.
        let node;
        let mut gates = Gates::new(*self);
        gates.enter(task, &parent)?;
        let names_of = gates.get(parent.number);
        names_of.check_directory()?;
        let Some(found) = self.directories().find_name(task, names_of, name)? else {
            self.ask(task, &gates, rule, None)?;
            return Err(VolumeError::NotFound);
        };
        self.directories().check_number(found.entry.inode, || Directories::directory_name(parent.number))?;
        node = self.inodes().node(task, found.entry.inode)?;
        gates.enter(task, &node)?;
        self.ask(task, &gates, rule, Some(node.number))?;
        let named = [((directory, name), Some(node.number))];
        let Entry { kind, .. } = names::unlink(&mut looked_up(*self, task, &gates, &named), (directory, name), what)?;
        let now = self.writes.origin.after(task.now());
        self.changes.within(task, NAME_BLOCKS, |handle| {
            handle.tracked(|tracker| match what {
                Removal::Directory => tracker.exclude(Reason::Directory),
                Removal::File => tracker.name(Change::Unlink(name_change(parent.number, name, node.number))),
            });
            self.changes.changing(|| {
                let directory = gates.get_mut(parent.number);
                self.directories().remove_name(handle, directory, &found)?;
                self.add_links(directory, -subdirectories(kind));
                directory.was_written(now);
                self.inodes().store_inode(handle, directory, true)?;
                self.lose_name(handle, gates.get_mut(node.number), now)
            })?;
            gates.leave(parent.number);
            Ok(())
        })?;
        self.writes.free_if_gone(task, gates.get_mut(node.number))
    }

    /// A file has lost a name, which the tracker knows already; without one it is an orphan.
    pub fn lose_name(&self, handle: &Handle<'_>, file: &mut File, now: Timestamp) -> Result<(), VolumeError> {
        let is_directory = file.kind() == FileKind::Directory;
        let links = if is_directory { 0 } else { file.inode.links().saturating_sub(1) };
        file.inode.set_links(links);
        file.was_changed(now);
        if links == 0 {
            self.inodes().add_orphan(handle, file)?;
            handle.tracker().into_iter().for_each(|tracker| tracker.loses_names(file.number));
        }
        self.inodes().store_inode(handle, file, true)
    }
}

/// The names that a call has looked up, for the rules of names.
fn looked_up<'s, 'g>(
    names: Names<'s>,
    task: &'s Task<'s>,
    gates: &'s Gates<'g>,
    found: &'s [(Name<'s>, Option<u32>)],
) -> LookedUp<'s, 'g> {
    LookedUp { seen: Seen { names, task, gates }, names: found, within: &[] }
}

/// A change of a name, as a fast commit tells it.
pub fn name_change(directory: u32, name: &[u8], inode: u32) -> NameChange {
    NameChange { directory, inode, name: name.to_vec() }
}

/// Gives an inode an empty tree of extents.
pub fn clear_extents(inode: &mut Inode) {
    inode.set_flags(inode.flags() | flag::EXTENTS);
    extents::Node::Leaf(Vec::new()).write(inode.map_mut(), false);
}
