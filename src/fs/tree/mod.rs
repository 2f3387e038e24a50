//! `tree`: a minimal complete file system in memory.
//!
//! It is the reference model of the tests, and measures a front end's own cost. One shared lock protects all files:
//! readers run concurrently.
//!
//! | file | content |
//! |---|---|
//! | `mod` | the calls, under the lock |
//! | `files` | the files, and the operations on them by inode |
//! | `bytes` | the data of a file |
//! | `entries` | the names in a directory |
//! | `renames` | create, link, unlink and rename |
//! | `settings` | the options |

mod bytes;
mod entries;
mod files;
mod renames;
mod settings;

pub use settings::{KIND, TreeSettings};

use super::Durable;
use super::nodes::names::{self, Removal};
use super::station::Mounting;
use super::volume::steps::{self, Steps};
use super::volume::{
    Allocation, Attributes, Call, ChangeRule, DirectoryEntry, FileKind, Found, FullEntry, Hold, InodeNumber, Locked,
    Name, NameRule, NewFile, NewFileRule, ReadBytes, RenameRule, Renaming, Seek, Space, State, TakeEntry,
    TakeFullEntry, Times, Timestamp, Volume, VolumeError,
};
use crate::device::Account;
use crate::label::{Content as Stored, Label, Tally};
use crate::task::SharedGate;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use files::{Content, Files};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file system in memory.
pub struct Tree {
    /// `None` after the unmount.
    files: SharedGate<Option<Files>>,
    number: [u8; 16],
    /// Wall-clock time at [`Time::ZERO`].
    origin: Timestamp,
    written_blocks: AtomicU64,
    read_blocks: AtomicU64,
}

impl Tree {
    /// An empty file system of `size_bytes`.
    pub fn new(size_bytes: u64, mounting: &Mounting) -> Tree {
        let mut number = [0; 16];
        number[..8].copy_from_slice(&mounting.seed.to_le_bytes());
        Tree {
            files: SharedGate::new("tree", Some(Files::new(size_bytes / BLOCK_BYTES, mounting.origin))),
            number,
            origin: mounting.origin,
            written_blocks: AtomicU64::new(0),
            read_blocks: AtomicU64::new(0),
        }
    }

    /// Reads the files under the shared lock.
    fn read_files<T>(
        &self,
        call: &Call,
        steps: &Steps,
        read: impl FnOnce(&Files) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let files = self.files.read(call.task);
        let files = files.as_ref().ok_or(VolumeError::Unmounted)?;
        call.spend_in_memory(steps);
        read(files)
    }

    /// Changes the files under the exclusive lock. `act` receives the wall-clock time.
    fn change_files<T>(
        &self,
        call: &Call,
        steps: &Steps,
        change: impl FnOnce(&mut Files, Timestamp) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let mut files = self.files.write(call.task);
        let files = files.as_mut().ok_or(VolumeError::Unmounted)?;
        call.spend_in_memory(steps);
        change(files, self.timestamp(call.task.now()))
    }
}

impl Locked for Files {
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        Ok(self.get(inode.0)?.attributes(inode.0))
    }

    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        Ok(self.get(inode.0)?.extended(name).cloned())
    }
}

fn ask(files: &mut Files, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    let file = names::lookup(&mut &*files, name)?;
    rule(files, Found { file, existing: None })
}

/// Applies the change of attributes made with a write.
fn apply_change_rule(
    files: &mut Files,
    inode: InodeNumber,
    rule: Option<ChangeRule>,
    now: Timestamp,
) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    match rule(files)? {
        Some(change) => files.change(inode.0, &change, now).map(drop),
        None => Ok(()),
    }
}

/// Lists a directory, until `take` returns false.
fn list(
    files: &Files,
    directory: InodeNumber,
    from: u64,
    mut take: impl FnMut(DirectoryEntry) -> Result<bool, VolumeError>,
) -> Result<Times, VolumeError> {
    let file = files.get(directory.0)?;
    let names = file.names()?;
    let kind = FileKind::Directory;
    let dots = [(1, directory, &b"."[..]), (2, InodeNumber(file.parent), b"..")];
    for (next, inode, name) in dots.into_iter().filter(|(next, ..)| *next > from) {
        if !take(DirectoryEntry { next, inode, kind, name })? {
            return Ok(file.times);
        }
    }
    for (next, entry) in names.entries_after(from) {
        let (inode, kind, name) = (InodeNumber(entry.inode), entry.kind, &entry.name[..]);
        if !take(DirectoryEntry { next, inode, kind, name })? {
            break;
        }
    }
    Ok(file.times)
}

impl Volume for Tree {
    fn lookup(&self, call: &Call, name: Name, hold: Hold) -> Result<Attributes, VolumeError> {
        self.read_files(call, steps::LOOKUP, |mut files| {
            let inode = names::lookup(&mut files, name)?.ok_or(VolumeError::NotFound)?;
            Ok(files.get(inode.0)?.held(inode.0, hold))
        })
    }

    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.read_files(call, steps::LOOK, |files| Ok(files.get(inode.0)?.attributes(inode.0)))
    }

    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError> {
        self.change_files(call, steps::CHANGE, |files, now| {
            files.get(inode.0)?;
            match rule(files)? {
                Some(change) => files.change(inode.0, &change, now),
                None => Ok(files.get(inode.0)?.attributes(inode.0)),
            }
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
        self.change_files(call, steps::NAME, |files, now| {
            let number = match rule {
                None => files.make(name, new, now)?,
                Some(rule) => {
                    let file = names::lookup(&mut &*files, name)?;
                    let inherited = rule(files, Found { file, existing: None })?;
                    let (permissions, group) = (inherited.permissions, inherited.group);
                    let attributes: Vec<(&[u8], &[u8])> =
                        inherited.attributes.iter().map(|(name, value)| (*name, &value[..])).collect();
                    files.make(name, &NewFile { permissions, group, attributes: &attributes, ..*new }, now)?
                }
            };
            Ok(files.get(number)?.held(number, hold))
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
        self.change_files(call, steps::NAME, |files, now| {
            ask(files, name, rule)?;
            files.link(inode.0, name, now)?;
            Ok(files.get(inode.0)?.held(inode.0, hold))
        })
    }

    fn unlink(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.change_files(call, steps::NAME, |files, now| {
            ask(files, name, rule)?;
            files.unlink(name, Removal::File, now)
        })
    }

    fn remove_directory(&self, call: &Call, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.change_files(call, steps::NAME, |files, now| {
            ask(files, name, rule)?;
            files.unlink(name, Removal::Directory, now)
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
        self.change_files(call, steps::RENAME, |files, now| {
            let how = match rule {
                None => how,
                Some(rule) => {
                    let mut seen = &*files;
                    let (file, existing) = (names::lookup(&mut seen, from)?, names::lookup(&mut seen, to)?);
                    rule(files, Found { file, existing })?
                }
            };
            files.rename(from, to, how, now)
        })
    }

    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError> {
        self.read_files(call, steps::LOOK, |files| {
            let file = files.get(inode.0)?;
            match &file.content {
                Content::Target(target) => Ok((target.clone(), file.times)),
                _ => Err(VolumeError::Invalid("not a symbolic link")),
            }
        })
    }

    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError> {
        self.read_files(call, steps::LOOKUP, |files| list(files, directory, from, |entry| Ok(take(entry))))
    }

    fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        hold: Hold,
        take: TakeFullEntry,
    ) -> Result<Times, VolumeError> {
        self.read_files(call, steps::LOOKUP, |files| {
            list(files, directory, from, |entry| {
                let (number, file) = (entry.inode.0, files.get(entry.inode.0)?);
                let is_taken = take(&FullEntry { entry, attributes: file.attributes(number) });
                if is_taken && !entry.is_dot() {
                    file.held(number, hold);
                }
                Ok(is_taken)
            })
        })
    }

    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError> {
        self.read_files(call, &steps::read(offset, bytes.len()), |files| {
            let file = files.get(inode.0)?;
            let stored = file.bytes()?;
            let length = file.size.saturating_sub(offset).min(bytes.len() as u64) as usize;
            stored.read(offset, &mut bytes[..length]);
            self.read_blocks.fetch_add((length as u64).div_ceil(BLOCK_BYTES), Ordering::Relaxed);
            Ok(ReadBytes { length, times: file.times })
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
        self.change_files(call, &steps::write(offset, bytes.len()), |files, now| {
            apply_change_rule(files, inode, rule, now)?;
            let blocks = files.write(inode.0, offset, bytes, now)?;
            self.written_blocks.fetch_add(blocks, Ordering::Relaxed);
            Ok(())
        })
    }

    fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        range: (u64, u64),
        how: Allocation,
        rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        self.change_files(call, &steps::allocate(range.0, range.1), |files, now| {
            apply_change_rule(files, inode, rule, now)?;
            files.allocate(inode.0, range, how, now)
        })
    }

    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.read_files(call, steps::LOOK, |files| {
            let file = files.get(inode.0)?;
            let bytes = file.bytes()?;
            Ok(if offset < file.size { bytes.seek(offset, file.size, what) } else { None })
        })
    }

    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        self.read_files(call, steps::LOOK, |files| {
            files.get(inode.0)?.extended(name).cloned().ok_or(VolumeError::NoAttribute)
        })
    }

    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError> {
        self.read_files(call, steps::LOOK, |files| Ok(files.get(inode.0)?.extended_names()))
    }

    /// Does nothing: memory is never durable.
    fn sync_file(&self, call: &Call, inode: InodeNumber, _: Durable) -> Result<(), VolumeError> {
        self.read_files(call, steps::SYNC, |files| files.get(inode.0).map(drop))
    }

    fn sync(&self, call: &Call) -> Result<(), VolumeError> {
        self.read_files(call, steps::SYNC, |_| Ok(()))
    }

    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.read_files(call, steps::LOOK, |files| Ok(files.get(inode.0)?.held(inode.0, Hold::Yes)))
    }

    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        if inode == InodeNumber::ROOT {
            return Ok(());
        }
        let is_gone = self.read_files(call, steps::LOOK, |files| {
            Ok(files.get(inode.0).is_ok_and(|file| file.drop_references(times)))
        })?;
        if is_gone {
            // Another task may have taken a reference since; then the file stays.
            self.change_files(call, steps::NONE, |files, _| {
                files.free_if_gone(inode.0);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.read_files(call, steps::NONE, |files| Ok(files.space()))
    }

    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError> {
        self.read_files(call, steps::NONE, |_| Ok(None))
    }

    fn is_changed(&self, _: &Call) -> bool {
        false
    }

    fn unmount(&self, call: &Call) -> Result<(), VolumeError> {
        self.files.write(call.task).take().map(drop).ok_or(VolumeError::Unmounted)
    }

    fn account(&self, call: &Call) -> Result<Account, VolumeError> {
        self.read_files(call, steps::NONE, |_| {
            let mut written = Tally::default();
            written.add(Label::host(Stored::Data), self.written_blocks.load(Ordering::Relaxed));
            let read_blocks = self.read_blocks.load(Ordering::Relaxed);
            Ok(Account {
                station: KIND.name,
                received: written.clone(),
                sent: written,
                read_blocks,
                ..Account::default()
            })
        })
    }

    fn state(&self, call: &Call) -> Result<State, VolumeError> {
        self.read_files(call, steps::NONE, |_| Ok(State::default()))
    }

    fn number(&self) -> [u8; 16] {
        self.number
    }

    fn is_timed(&self) -> bool {
        // No device is below: calls take only their own time.
        true
    }

    fn timestamp(&self, at: Time) -> Timestamp {
        self.origin.after(at)
    }
}
