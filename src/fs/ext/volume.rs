//! The calls of a mounted volume, behind its gates.

use super::Ext;
use super::allocation::space::KEPT_FOR_MAPS;
use super::fast_tags::Wanted;
use super::files::node::{File, Node, inode_of, number_of};
use super::format::superblock::{OnErrors, state};
use super::names::gates::{Gates, Seen};
use super::settings::KIND;
use crate::device::Account;
use crate::fs::Durable;
use crate::fs::nodes::names::Removal;
use crate::fs::volume::steps::{self, Steps};
use crate::fs::volume::{
    Allocation, Attributes, Call, ChangeRule, DirectoryEntry, FileKind, FullEntry, Hold, InodeNumber, LONGEST_NAME,
    Name, NameRule, NewFile, NewFileRule, ReadBytes, RenameRule, Renaming, Seek, Space, State, TakeEntry,
    TakeFullEntry, Times, Timestamp, Volume, VolumeError,
};
use crate::label::{Content, Label, Tally};
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries of a directory that are taken out of it at once: about as many as fit into 4 KiB.
const ENTRIES_AT_ONCE: usize = 64;

/// An entry of a directory, taken out of its block.
struct Taken {
    next: u64,
    inode: u32,
    kind: FileKind,
    name: Vec<u8>,
}

impl Ext {
    /// Makes a call of a mounted volume.
    fn turn<T>(
        &self,
        call: &Call,
        steps: &Steps,
        act: impl FnOnce(&Task<'_>) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let mounted = self.mounted.read(call.task);
        if !*mounted {
            return Err(VolumeError::Unmounted);
        }
        call.spend(steps);
        let done = act(call.task);
        if let Err(error @ VolumeError::Damaged { .. }) = &done {
            self.note_damage(call.task, error);
        }
        done
    }

    /// Notes damage that a call has found: the superblock says that there are errors, and a volume with
    /// `errors=remount-ro` is not changed any more. The call is behind no gate.
    fn note_damage(&self, task: &Task<'_>, error: &VolumeError) {
        let Ok(journal) = self.parts.changes.journal() else { return };
        let (was_marked, ends_writing) = {
            let superblock = &mut self.parts.head.enter(task).superblock;
            let before = superblock.state();
            superblock.set16(58, before | state::ERRORS);
            (before & state::ERRORS != 0, superblock.on_errors() == OnErrors::ReadOnly)
        };
        if !was_marked && journal.common().aborted().is_none() {
            // If this fails, the next mount learns nothing; the error itself is returned in any case.
            let _ = self
                .parts
                .changes
                .within(task, 1, |handle| self.parts.inodes().store_head(handle, &mut self.parts.head.enter(task)));
            if ends_writing {
                let _ = journal.commit(task, journal.running());
            }
        }
        if ends_writing {
            journal.common().abort(&format!("{error}, and the volume has errors=remount-ro"));
        }
    }

    /// Refuses a change of a volume that can only be read.
    fn check_writable(&self) -> Result<(), VolumeError> {
        match &self.parts.changes.read_only {
            Some(why) => Err(VolumeError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Looks at a file behind its gate, beside other readers.
    fn look<T>(
        &self,
        task: &Task<'_>,
        inode: InodeNumber,
        look: impl FnOnce(&File) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let node = self.parts.inodes().node(task, inode_of(inode)?)?;
        let file = node.gate.read(task);
        if file.is_freed { Err(VolumeError::NotFound) } else { look(&file) }
    }

    /// Looks up a name that is known, without the directory's gate; `None` if it has to be looked up in the directory.
    fn look_up_known(
        &self,
        task: &Task<'_>,
        directory: u32,
        name: &[u8],
        hold: Hold,
    ) -> Result<Option<Attributes>, VolumeError> {
        let Some(number) = self.parts.known_names.get(directory, name) else { return Ok(None) };
        // The inode may be freed or another file's by now.
        let node = match self.parts.inodes().node(task, number) {
            Ok(node) => node,
            Err(VolumeError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let file = node.gate.read(task);
        match self.parts.known_names.get(directory, name) {
            Some(still) if still == number => self.tell(&file, hold).map(Some),
            _ => Ok(None),
        }
    }

    /// The attributes of an inode that a directory names, whose gate the task is in; it is held if `hold` says so.
    fn held(&self, task: &Task<'_>, node: &Arc<Node>, hold: Hold) -> Result<Attributes, VolumeError> {
        self.tell(&node.gate.read(task), hold)
    }

    /// The attributes of a file whose gate the task is in.
    fn tell(&self, file: &File, hold: Hold) -> Result<Attributes, VolumeError> {
        if file.is_freed {
            return Err(VolumeError::NotFound);
        }
        if hold == Hold::Yes && number_of(file.number) != InodeNumber::ROOT {
            self.parts.nodes.hold(file.number);
        }
        Ok(file.attributes(self.parts.metadata.shape.block_bytes))
    }

    /// Changes a file behind its gate, alone, with the change of the rule. A write goes on beside a flight of the file.
    fn alter(
        &self,
        task: &Task<'_>,
        inode: InodeNumber,
        is_write: bool,
        rule: Option<ChangeRule>,
        alter: impl FnOnce(&mut File) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let node = self.parts.inodes().node(task, inode_of(inode)?)?;
        let mut gates = Gates::new(self.parts.names());
        match is_write {
            true => gates.enter_to_write(task, &node)?,
            false => gates.enter(task, &node)?,
        }
        gates.get(node.number).check_regular()?;
        let change = match rule {
            Some(rule) => rule(&mut Seen { names: self.parts.names(), task, gates: &gates })?,
            None => None,
        };
        let file = gates.get_mut(node.number);
        let beside = change.map_or(Ok(()), |change| self.parts.writes().apply(task, file, &change));
        let altered = beside.and_then(|()| alter(file));
        self.note_waiting(task, &node, file);
        altered
    }

    /// Makes the change of the rule.
    fn change_file(&self, task: &Task<'_>, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError> {
        let node = self.parts.inodes().node(task, inode_of(inode)?)?;
        let mut gates = Gates::new(self.parts.names());
        gates.enter(task, &node)?;
        let change = rule(&mut Seen { names: self.parts.names(), task, gates: &gates })?;
        let file = gates.get_mut(node.number);
        if let Some(change) = change {
            self.check_writable()?;
            let changed = self.parts.writes().apply(task, file, &change);
            self.note_waiting(task, &node, file);
            changed?;
        }
        Ok(file.attributes(self.parts.metadata.shape.block_bytes))
    }

    /// Keeps in mind that a file waits, if it does.
    fn note_waiting(&self, task: &Task<'_>, node: &Node, file: &File) {
        if file.is_unstored || !file.pages.is_empty() {
            self.parts.write_back().waits(task, node);
        }
    }

    /// The entries of a directory from `from` on: at most so many.
    fn entries_from(&self, task: &Task<'_>, file: &File, from: u64, most: usize) -> Result<Vec<Taken>, VolumeError> {
        file.check_directory()?;
        let mut taken = Vec::new();
        let kind = FileKind::Directory;
        if from < 1 {
            taken.push(Taken { next: 1, inode: file.number, kind, name: b".".to_vec() });
        }
        if from < 2 {
            taken.push(Taken {
                next: 2,
                inode: self.parts.directories().parent_of(task, file)?,
                kind,
                name: b"..".to_vec(),
            });
        }
        self.parts.directories().list_names(task, file, from, &mut |next, inode, kind, name| {
            let kind = match kind {
                Some(kind) => kind,
                // The directory does not say.
                None => self.parts.metadata.read_inode(task, inode)?.kind().unwrap_or(FileKind::Regular),
            };
            taken.push(Taken { next, inode, kind, name: name.to_vec() });
            Ok(taken.len() < most)
        })?;
        Ok(taken)
    }
}

/// The entry that a listing tells.
fn told(taken: &Taken) -> DirectoryEntry<'_> {
    DirectoryEntry { next: taken.next, inode: number_of(taken.inode), kind: taken.kind, name: &taken.name }
}

/// Events of the account that are no counts.
const STATES: &[&str] =
    &["blocks kept by the monitor", "most blocks kept", "most orders that a cut of power could take"];

impl Volume for Ext {
    fn lookup(&self, call: &Call, (directory, name): Name, hold: Hold) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOKUP, |task| {
            let directory = inode_of(directory)?;
            if let Some(known) = self.look_up_known(task, directory, name, hold)? {
                return Ok(known);
            }
            let directory = self.parts.inodes().node(task, directory)?;
            let file = directory.gate.read(task);
            file.check_directory()?;
            if name.len() > LONGEST_NAME {
                return Err(VolumeError::NameTooLong);
            }
            let number = self.parts.directories().inode_named(task, &file, name)?.ok_or(VolumeError::NotFound)?;
            if number == directory.number {
                return Ok(file.attributes(self.parts.metadata.shape.block_bytes));
            }
            if name == b".." {
                // Its gate comes before this one.
                drop(file);
            } else {
                self.parts.known_names.note(directory.number, name, number);
            }
            self.held(task, &self.parts.inodes().node(task, number)?, hold)
        })
    }

    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| Ok(file.attributes(self.parts.metadata.shape.block_bytes)))
        })
    }

    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::CHANGE, |task| {
            let attributes = self.change_file(task, inode, rule)?;
            self.parts.write_back().relieve(task)?;
            Ok(attributes)
        })
    }

    fn make(
        &self,
        call: &Call,
        name: Name,
        new: &NewFile,
        hold: Hold,
        rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::NAME, |task| {
            self.check_writable()?;
            self.parts.names().make_file(task, name, new, hold, rule)
        })
    }

    fn link(
        &self,
        call: &Call,
        inode: InodeNumber,
        name: Name,
        hold: Hold,
        rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::NAME, |task| {
            self.check_writable()?;
            self.parts.names().link_file(task, inode, name, hold, rule)
        })
    }

    fn unlink(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.turn(call, steps::NAME, |task| {
            self.check_writable()?;
            self.parts.names().unlink_name(task, name, Removal::File, rule)
        })
    }

    fn remove_directory(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.turn(call, steps::NAME, |task| {
            self.check_writable()?;
            self.parts.names().unlink_name(task, name, Removal::Directory, rule)
        })
    }

    fn rename(
        &self,
        call: &Call,
        from: Name,
        to: Name,
        how: Renaming,
        rule: Option<RenameRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, steps::RENAME, |task| {
            self.check_writable()?;
            self.parts.names().rename_name(task, from, to, how, rule)
        })
    }

    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| Ok((self.parts.write_back().reads().target_of(task, file)?, file.times())))
        })
    }

    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError> {
        self.turn(call, steps::LOOKUP, |task| {
            let mut from = from;
            loop {
                let (taken, times) = self.look(task, directory, |file| {
                    Ok((self.entries_from(task, file, from, ENTRIES_AT_ONCE)?, file.times()))
                })?;
                let is_all = taken.len() < ENTRIES_AT_ONCE;
                from = taken.last().map_or(from, |last| last.next);
                if !taken.iter().all(|taken| take(told(taken))) || is_all {
                    return Ok(times);
                }
            }
        })
    }

    fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        hold: Hold,
        take: TakeFullEntry,
    ) -> Result<Times, VolumeError> {
        self.turn(call, steps::LOOKUP, |task| {
            let mut from = from;
            loop {
                // The gates of the files come behind that of the directory, but that of its parent before it.
                let (taken, times) = self.look(task, directory, |file| {
                    Ok((self.entries_from(task, file, from, ENTRIES_AT_ONCE)?, file.times()))
                })?;
                let is_all = taken.len() < ENTRIES_AT_ONCE;
                for taken in &taken {
                    from = taken.next;
                    let is_dot = told(taken).is_dot();
                    let held = if is_dot { Hold::No } else { hold };
                    let node = match self.parts.inodes().node(task, taken.inode) {
                        // It was removed meanwhile.
                        Err(VolumeError::NotFound) => continue,
                        node => node?,
                    };
                    let attributes = match self.held(task, &node, held) {
                        Err(VolumeError::NotFound) => continue,
                        attributes => attributes?,
                    };
                    if !take(&FullEntry { entry: told(taken), attributes }) {
                        if held == Hold::Yes {
                            self.parts.nodes.let_go(node.number, 1);
                        }
                        return Ok(times);
                    }
                }
                if is_all {
                    return Ok(times);
                }
            }
        })
    }

    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError> {
        self.turn(call, &steps::read(offset, bytes.len()), |task| {
            self.look(task, inode, |file| {
                file.check_regular()?;
                let length = self.parts.write_back().reads().read_file(task, file, offset, bytes)?;
                Ok(ReadBytes { length, times: file.times() })
            })
        })
    }

    fn write(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, &steps::write(offset, bytes.len()), |task| {
            self.check_writable()?;
            let blocks = (bytes.len() as u64).div_ceil(BLOCK_BYTES);
            self.received_blocks.fetch_add(blocks, Ordering::Relaxed);
            self.alter(task, inode, true, rule, |file| {
                if bytes.is_empty() {
                    return Ok(());
                }
                self.parts.writes().write_file(task, file, offset, bytes)?;
                file.was_written(self.parts.wall(task.now()));
                Ok(())
            })?;
            self.parts.write_back().relieve(task)
        })
    }

    fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        (offset, length): (u64, u64),
        how: Allocation,
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, &steps::allocate(offset, length), |task| {
            self.check_writable()?;
            self.alter(task, inode, false, rule, |file| {
                self.parts.writes().allocate_range(task, file, (offset, length), how)?;
                file.was_written(self.parts.wall(task.now()));
                Ok(())
            })?;
            self.parts.write_back().relieve(task)
        })
    }

    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| {
                file.check_regular()?;
                self.parts.write_back().reads().seek_file(task, file, offset, what)
            })
        })
    }

    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| {
                self.parts.inodes().attribute_of(task, file, name)?.ok_or(VolumeError::NoAttribute)
            })
        })
    }

    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| self.parts.inodes().attribute_names(task, file))
        })
    }

    fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, |task| self.sync_one(task, inode, what, Wanted::Durability))
    }

    fn order_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, |task| self.sync_one(task, inode, what, Wanted::Order))
    }

    fn sync(&self, call: &Call) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, |task| self.sync_all(task))
    }

    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.held(task, &self.parts.inodes().node(task, inode_of(inode)?)?, Hold::Yes)
        })
    }

    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        if inode == InodeNumber::ROOT {
            return Ok(());
        }
        self.turn(call, steps::LOOK, |task| {
            let number = inode_of(inode)?;
            if !self.parts.nodes.let_go(number, times) || !self.parts.inodes().is_orphan(task, number) {
                return Ok(());
            }
            match self.parts.inodes().node(task, number) {
                // Another may hold it again meanwhile: then it stays.
                Ok(node) => {
                    self.parts.writes().free_if_gone(task, &mut self.parts.write_back().enter_alone(task, &node))
                }
                Err(VolumeError::NotFound) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.turn(call, steps::NONE, |_| {
            let units = |blocks: u64| blocks * self.parts.metadata.shape.block_bytes as u64 / BLOCK_BYTES;
            let free =
                self.parts.space.free.blocks.load(Ordering::SeqCst).saturating_sub(self.parts.space.free.promised());
            let free_inodes = self.parts.space.free.inodes.load(Ordering::SeqCst);
            Ok(Space {
                blocks: units(self.parts.metadata.shape.blocks),
                free_blocks: units(free),
                available_blocks: units(free.saturating_sub(KEPT_FOR_MAPS)),
                inodes: self.parts.metadata.shape.inodes.into(),
                free_inodes,
            })
        })
    }

    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError> {
        self.turn(call, steps::NONE, |task| self.work_once(task))
    }

    fn watch(&self, call: &Call) -> bool {
        self.parts.changes.journal().is_ok_and(|journal| journal.watch(call.task))
    }

    fn workers(&self) -> usize {
        self.parts.changes.journal().map_or(1, |journal| journal.workers())
    }

    fn is_changed(&self, call: &Call) -> bool {
        self.turn(call, steps::NONE, |_| {
            let is_waiting = self.parts.waiting.first().is_some();
            Ok(self
                .parts
                .changes
                .journal()
                .is_ok_and(|journal| journal.common().aborted().is_none() && (is_waiting || journal.begun().is_some())))
        })
        .unwrap_or(false)
    }

    fn unmount(&self, call: &Call) -> Result<(), VolumeError> {
        let mut mounted = self.mounted.write(call.task);
        if !std::mem::replace(&mut *mounted, false) {
            return Err(VolumeError::Unmounted);
        }
        let ended = self.end(call.task);
        let closed = self.parts.metadata.media.close(call.task);
        let journals = self.below.media.as_ref().map_or(Ok(()), |media| media.close(call.task));
        ended?;
        closed?;
        Ok(journals?)
    }

    fn account(&self, call: &Call) -> Result<Account, VolumeError> {
        self.turn(call, steps::NONE, |_| {
            let (volume, mut sent, mut read_blocks) = self.parts.metadata.media.account();
            let mut below = vec![volume];
            if let Some(media) = &self.below.media {
                let (journal, sent_there, read_there) = media.account();
                sent = sent.entries().chain(sent_there.entries()).collect();
                read_blocks += read_there;
                below.push(journal);
            }
            below.extend(self.below.nvm().map(|nvm| nvm.account()));
            below.extend(self.below.monitor().and_then(|monitor| monitor.account()));
            let mut received = Tally::default();
            received.add(Label::host(Content::Data), self.received_blocks.load(Ordering::Relaxed));
            let counts = self.parts.changes.journal().map(|journal| journal.counts()).unwrap_or_default();
            let mut events = vec![
                ("commits", counts.commits),
                ("checkpoints", counts.checkpoints),
                ("blocks logged", counts.logged_blocks),
                ("blocks revoked", counts.revokes),
                ("commits that waited for room in the log", counts.waits),
            ];
            events.extend(self.parts.changes.journal().map(|journal| journal.own_counts()).unwrap_or_default());
            let chosen = Some((&KIND, self.below.chosen(&self.parts.settings)));
            let (station, states) = (KIND.name, STATES);
            Ok(Account { station, received, sent, read_blocks, events, states, chosen, below, ..Account::default() })
        })
    }

    fn state(&self, call: &Call) -> Result<State, VolumeError> {
        self.turn(call, steps::NONE, |_| {
            let aborted = self.parts.changes.journal().ok().and_then(|journal| journal.common().aborted());
            let (read_only, damage) = (self.parts.changes.read_only.clone().or(aborted), self.damage.clone());
            Ok(State { read_only, damage, has_lost_before: false })
        })
    }

    fn number(&self) -> [u8; 16] {
        self.below.volume
    }

    fn is_timed(&self) -> bool {
        self.parts.metadata.media.is_timed() || self.below.media.as_ref().is_some_and(|media| media.is_timed())
    }

    fn timestamp(&self, at: Time) -> Timestamp {
        self.parts.wall(at)
    }
}
