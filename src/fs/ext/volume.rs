//! The calls of a mounted volume, behind its gates.

use super::Ext;
use super::files::node::{File, Node, inode_of, number_of};
use super::settings::KIND;
use crate::device::Account;
use crate::fs::Durable;
use crate::fs::volume::steps::{self, Steps};
use crate::fs::volume::{
    Allocation, Attributes, Call, ChangeRule, DirectoryEntry, FileKind, FullEntry, Hold, InodeNumber, LONGEST_NAME,
    Name, NameRule, NewFile, NewFileRule, ReadBytes, Renaming, Seek, Space, State, TakeEntry, TakeFullEntry, Times,
    Timestamp, Volume, VolumeError,
};
use crate::label::{Cause, Content, Tally};
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries of a directory that are taken out of it at once: about what fits into 4 KiB.
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
        act(call.task)
    }

    /// Refuses a change of a volume that can only be read.
    fn check_writable(&self) -> Result<(), VolumeError> {
        match &self.read_only {
            Some(why) => Err(VolumeError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Looks at a file behind its gate, beside others who do.
    fn look<T>(
        &self,
        task: &Task<'_>,
        inode: InodeNumber,
        look: impl FnOnce(&File) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let node = self.node(task, inode_of(inode)?)?;
        let file = node.gate.read(task);
        if file.is_freed { Err(VolumeError::NotFound) } else { look(&file) }
    }

    /// What is known of an inode that a directory names, whose gate the task is in; it is held if `hold` says so.
    fn held(&self, task: &Task<'_>, node: &Arc<Node>, hold: Hold) -> Result<Attributes, VolumeError> {
        let file = node.gate.read(task);
        if file.is_freed {
            return Err(VolumeError::NotFound);
        }
        if hold == Hold::Yes && number_of(node.number) != InodeNumber::ROOT {
            node.hold(1);
        }
        Ok(file.attributes(self.shape.block_bytes))
    }

    /// The entries of a directory from `from` on: at most so many.
    fn entries_from(
        &self,
        task: &Task<'_>,
        file: &File,
        from: u64,
        most: usize,
    ) -> Result<Vec<Taken>, VolumeError> {
        file.check_directory()?;
        let mut taken = Vec::new();
        let kind = FileKind::Directory;
        if from < 1 {
            taken.push(Taken { next: 1, inode: file.number, kind, name: b".".to_vec() });
        }
        if from < 2 {
            taken.push(Taken { next: 2, inode: self.parent_of(task, file)?, kind, name: b"..".to_vec() });
        }
        self.list_names(task, file, from, &mut |next, inode, kind, name| {
            let kind = match kind {
                Some(kind) => kind,
                // The directory does not say.
                None => self.read_inode(task, inode)?.kind().unwrap_or(FileKind::Regular),
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

impl Volume for Ext {
    fn lookup(&self, call: &Call, (directory, name): Name, hold: Hold) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOKUP, |task| {
            let directory = self.node(task, inode_of(directory)?)?;
            let file = directory.gate.read(task);
            file.check_directory()?;
            if name.len() > LONGEST_NAME {
                return Err(VolumeError::NameTooLong);
            }
            let number = self.inode_named(task, &file, name)?.ok_or(VolumeError::NotFound)?;
            if number == directory.number {
                return Ok(file.attributes(self.shape.block_bytes));
            }
            if name == b".." {
                // Its gate comes before this one.
                drop(file);
            }
            self.held(task, &self.node(task, number)?, hold)
        })
    }

    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| Ok(file.attributes(self.shape.block_bytes)))
        })
    }

    fn change(&self, call: &Call, _inode: InodeNumber, _rule: ChangeRule) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::CHANGE, |_| {
            self.check_writable()?;
            unreachable!("it can only be read")
        })
    }

    fn make(
        &self,
        call: &Call,
        _name: Name,
        _new: &NewFile,
        _hold: Hold,
        _rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::NAME, |_| {
            self.check_writable()?;
            unreachable!("it can only be read")
        })
    }

    fn link(
        &self,
        call: &Call,
        _inode: InodeNumber,
        _name: Name,
        _hold: Hold,
        _rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::NAME, |_| {
            self.check_writable()?;
            unreachable!("it can only be read")
        })
    }

    fn unlink(&self, call: &Call, _name: Name, _rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.turn(call, steps::NAME, |_| self.check_writable())
    }

    fn remove_directory(&self, call: &Call, _name: Name, _rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.turn(call, steps::NAME, |_| self.check_writable())
    }

    fn rename(
        &self,
        call: &Call,
        _from: Name,
        _to: Name,
        _how: Renaming,
        _rule: Option<NameRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, steps::RENAME, |_| self.check_writable())
    }

    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| Ok((self.target_of(task, file)?, file.times())))
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
                    let node = match self.node(task, taken.inode) {
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
                            node.let_go(1);
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
                let length = self.read_file(task, file, offset, bytes)?;
                Ok(ReadBytes { length, times: file.times() })
            })
        })
    }

    fn write(
        &self,
        call: &Call,
        _inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        _rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, &steps::write(offset, bytes.len()), |_| self.check_writable())
    }

    fn allocate(
        &self,
        call: &Call,
        _inode: InodeNumber,
        (offset, length): (u64, u64),
        _how: Allocation,
        _rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, &steps::allocate(offset, length), |_| self.check_writable())
    }

    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| {
                file.check_regular()?;
                self.seek_file(task, file, offset, what)
            })
        })
    }

    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        self.turn(call, steps::LOOK, |task| {
            self.look(task, inode, |file| self.attribute_of(task, file, name)?.ok_or(VolumeError::NoAttribute))
        })
    }

    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError> {
        self.turn(call, steps::LOOK, |task| self.look(task, inode, |file| self.attribute_names(task, file)))
    }

    fn sync_file(&self, call: &Call, inode: InodeNumber, _what: Durable) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, |task| self.look(task, inode, |_| Ok(())))
    }

    fn sync(&self, call: &Call) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, |_| Ok(()))
    }

    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |task| self.held(task, &self.node(task, inode_of(inode)?)?, Hold::Yes))
    }

    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        if inode == InodeNumber::ROOT {
            return Ok(());
        }
        self.turn(call, steps::LOOK, |_| {
            if let Ok(node) = self.nodes.get(inode_of(inode)?) {
                node.let_go(times);
            }
            Ok(())
        })
    }

    fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.turn(call, steps::NONE, |task| {
            let superblock = self.superblock.enter(task);
            let units = |blocks: u64| blocks * self.shape.block_bytes as u64 / BLOCK_BYTES;
            let free = units(u64::from(superblock.u32(344)) << 32 | u64::from(superblock.u32(12)));
            Ok(Space {
                blocks: units(self.shape.blocks),
                free_blocks: free,
                available_blocks: free,
                inodes: self.shape.inodes.into(),
                free_inodes: superblock.u32(16).into(),
            })
        })
    }

    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError> {
        self.turn(call, steps::NONE, |task| Ok(self.media.work(task.now())?))
    }

    fn is_changed(&self, _: &Call) -> bool {
        false
    }

    fn unmount(&self, call: &Call) -> Result<(), VolumeError> {
        let mut mounted = self.mounted.write(call.task);
        if !std::mem::replace(&mut *mounted, false) {
            return Err(VolumeError::Unmounted);
        }
        Ok(self.media.close(call.task)?)
    }

    fn account(&self, call: &Call) -> Result<Account, VolumeError> {
        self.turn(call, steps::NONE, |_| {
            let (below, sent, read_blocks) = self.media.account();
            let mut received = Tally::default();
            received.add(Cause::HostWrite, Content::Data, self.received_blocks.load(Ordering::Relaxed));
            let below = vec![below];
            Ok(Account { station: KIND.name, received, sent, read_blocks, below, ..Account::default() })
        })
    }

    fn state(&self, call: &Call) -> Result<State, VolumeError> {
        self.turn(call, steps::NONE, |_| {
            let (read_only, damage) = (self.read_only.clone(), self.damage.clone());
            Ok(State { read_only, damage, has_lost_before: false })
        })
    }

    fn number(&self) -> [u8; 16] {
        self.uuid
    }

    fn is_timed(&self) -> bool {
        self.media.is_timed()
    }

    fn timestamp(&self, at: Time) -> Timestamp {
        self.wall(at)
    }
}
