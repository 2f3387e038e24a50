//! A mounted volume of sfs as a [`Volume`], behind one gate: calls go through it one after the other.

use super::{InodeNumber, NewFile, Sfs, Timestamp};
use crate::device::Account;
use crate::fs::Durable;
use crate::fs::volume::steps::{self, Steps};
use crate::fs::volume::{
    Allocation, Attributes, Call, ChangeRule, Damage, Found, FullEntry, Hold, Locked, Name, NameRule, NewFileRule,
    ReadBytes, Renaming, Seek, Space, State, TakeEntry, TakeFullEntry, Times, Volume, VolumeError,
};
use crate::task::Gate;
use crate::time::Time;

/// Entries of a directory that are taken before their attributes are looked up: about what fits into 4 KiB.
const ENTRIES_AT_ONCE: usize = 32;

/// A mounted volume, which threads share.
pub struct SfsVolume {
    /// `None` when it is unmounted.
    mounted: Gate<Option<Sfs>>,
    number: [u8; 16],
    is_timed: bool,
    /// The time on the wall clock at [`Time::ZERO`].
    origin: Timestamp,
}

impl SfsVolume {
    /// Shares a mounted volume.
    pub fn new(sfs: Sfs) -> SfsVolume {
        let (number, is_timed, origin) = (sfs.number(), sfs.is_timed(), sfs.origin);
        SfsVolume { mounted: Gate::new("volume", Some(sfs)), number, is_timed, origin }
    }

    /// The volume, for one that has it alone.
    ///
    /// # Panics
    ///
    /// If it is unmounted.
    pub fn into_inner(self) -> Sfs {
        self.mounted.into_inner().expect("it is mounted")
    }

    /// Makes a call: it begins when its task comes, or when the call before it has ended.
    fn turn<T>(
        &self,
        call: &Call,
        steps: &Steps,
        act: impl FnOnce(&mut Sfs) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let mut mounted = self.mounted.enter(call.task);
        let sfs = mounted.as_mut().ok_or(VolumeError::Unmounted)?;
        call.spend(steps);
        sfs.begin(call.task.now());
        let answer = act(sfs);
        call.task.wait_until(sfs.now());
        answer
    }
}

/// All files are behind the one gate.
struct Inside<'s>(&'s mut Sfs);

impl Locked for Inside<'_> {
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.0.attributes(inode)
    }

    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        match self.0.extended_attribute(inode, name) {
            Ok(value) => Ok(Some(value)),
            Err(VolumeError::NoAttribute) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The file of a name, if there is one.
fn found(sfs: &mut Sfs, (directory, name): Name) -> Result<Option<InodeNumber>, VolumeError> {
    match sfs.lookup(directory, name) {
        Ok(inode) => Ok(Some(inode)),
        Err(VolumeError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn ask(sfs: &mut Sfs, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    let file = found(sfs, name)?;
    rule(&mut Inside(sfs), Found { file, there: None })
}

fn held(sfs: &mut Sfs, inode: InodeNumber, hold: Hold) -> Result<Attributes, VolumeError> {
    let attributes = sfs.attributes(inode)?;
    if hold == Hold::Yes && inode != InodeNumber::ROOT {
        sfs.retain(inode)?;
    }
    Ok(attributes)
}

/// Makes the change that goes with a write.
fn change_beside(sfs: &mut Sfs, inode: InodeNumber, rule: Option<ChangeRule>) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    match rule(&mut Inside(sfs))? {
        Some(change) => sfs.change(inode, &change).map(drop),
        None => Ok(()),
    }
}

impl Volume for SfsVolume {
    fn lookup(&self, call: &Call, (directory, name): Name, hold: Hold) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOKUP, |sfs| {
            let inode = sfs.lookup(directory, name)?;
            held(sfs, inode, hold)
        })
    }

    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.attributes(inode))
    }

    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::CHANGE, |sfs| match rule(&mut Inside(sfs))? {
            Some(change) => sfs.change(inode, &change),
            None => sfs.attributes(inode),
        })
    }

    fn make(
        &self,
        call: &Call,
        (directory, name): Name,
        new: &NewFile,
        hold: Hold,
        rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::NAME, |sfs| {
            let inode = match rule {
                None => sfs.make(directory, name, new)?,
                Some(rule) => {
                    let file = found(sfs, (directory, name))?;
                    let inherited = rule(&mut Inside(sfs), Found { file, there: None })?;
                    let (permissions, group) = (inherited.permissions, inherited.group);
                    let attributes: Vec<(&[u8], &[u8])> =
                        inherited.attributes.iter().map(|(name, value)| (*name, &value[..])).collect();
                    sfs.make(directory, name, &NewFile { permissions, group, attributes: &attributes, ..*new })?
                }
            };
            held(sfs, inode, hold)
        })
    }

    fn link(
        &self,
        call: &Call,
        inode: InodeNumber,
        (directory, name): Name,
        hold: Hold,
        rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::NAME, |sfs| {
            ask(sfs, (directory, name), rule)?;
            sfs.link(inode, directory, name)?;
            held(sfs, inode, hold)
        })
    }

    fn unlink(&self, call: &Call, (directory, name): Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.turn(call, steps::NAME, |sfs| {
            ask(sfs, (directory, name), rule)?;
            sfs.unlink(directory, name)
        })
    }

    fn remove_directory(
        &self,
        call: &Call,
        (directory, name): Name,
        rule: Option<NameRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, steps::NAME, |sfs| {
            ask(sfs, (directory, name), rule)?;
            sfs.remove_directory(directory, name)
        })
    }

    fn rename(
        &self,
        call: &Call,
        from: Name,
        to: Name,
        how: Renaming,
        rule: Option<NameRule>,
    ) -> Result<(), VolumeError> {
        self.turn(call, steps::RENAME, |sfs| {
            if let Some(rule) = rule {
                let found = Found { file: found(sfs, from)?, there: found(sfs, to)? };
                rule(&mut Inside(sfs), found)?;
            }
            match how.whiteout {
                Some(owner) => sfs.rename_with_whiteout(from, to, how.taken, owner),
                None => sfs.rename(from, to, how.taken),
            }
        })
    }

    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError> {
        self.turn(call, steps::LOOK, |sfs| Ok((sfs.target(inode)?, sfs.attributes(inode)?.times)))
    }

    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError> {
        self.turn(call, steps::LOOKUP, |sfs| {
            sfs.list(directory, from, take)?;
            Ok(sfs.attributes(directory)?.times)
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
        self.turn(call, steps::LOOKUP, |sfs| {
            list_with_attributes(sfs, directory, from, hold, take)?;
            Ok(sfs.attributes(directory)?.times)
        })
    }

    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError> {
        self.turn(call, &steps::read(offset, bytes.len()), |sfs| {
            let length = sfs.read(inode, offset, bytes)?;
            debug_assert!(length <= bytes.len(), "no more is read than was asked for");
            Ok(ReadBytes { length, times: sfs.attributes(inode)?.times })
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
        self.turn(call, &steps::write(offset, bytes.len()), |sfs| {
            change_beside(sfs, inode, rule)?;
            sfs.write(inode, offset, bytes)
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
        self.turn(call, &steps::allocate(offset, length), |sfs| {
            change_beside(sfs, inode, rule)?;
            match how {
                Allocation::Reserve { keep_size } => sfs.allocate(inode, offset, length, keep_size),
                Allocation::Punch => sfs.punch(inode, offset, length),
                Allocation::Zero { keep_size } => {
                    sfs.punch(inode, offset, length)?;
                    sfs.allocate(inode, offset, length, keep_size)
                }
            }
        })
    }

    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.seek(inode, offset, what == Seek::Data))
    }

    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.extended_attribute(inode, name))
    }

    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.extended_attributes(inode))
    }

    fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, |sfs| sfs.sync_file(inode, what))
    }

    fn sync(&self, call: &Call) -> Result<(), VolumeError> {
        self.turn(call, steps::SYNC, Sfs::sync)
    }

    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| held(sfs, inode, Hold::Yes))
    }

    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        match inode {
            InodeNumber::ROOT => Ok(()),
            inode => self.turn(call, steps::LOOK, |sfs| sfs.release(inode, times)),
        }
    }

    fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.turn(call, steps::NONE, |sfs| Ok(sfs.space()))
    }

    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError> {
        self.turn(call, steps::NONE, Sfs::work)
    }

    fn is_changed(&self, call: &Call) -> bool {
        self.turn(call, steps::NONE, |sfs| Ok(sfs.is_changed() && sfs.read_only().is_none())).unwrap_or(false)
    }

    fn unmount(&self, call: &Call) -> Result<(), VolumeError> {
        let mut mounted = self.mounted.enter(call.task);
        let mut sfs = mounted.take().ok_or(VolumeError::Unmounted)?;
        sfs.begin(call.task.now());
        let ended = sfs.unmount();
        call.task.wait_until(sfs.now());
        ended
    }

    fn account(&self, call: &Call) -> Result<Account, VolumeError> {
        self.turn(call, steps::NONE, |sfs| Ok(sfs.account()))
    }

    fn state(&self, call: &Call) -> Result<State, VolumeError> {
        self.turn(call, steps::NONE, |sfs| {
            let damage = sfs.damage().iter().map(Damage::from).collect();
            let read_only = sfs.read_only().map(str::to_string);
            Ok(State { read_only, damage, has_lost_before: sfs.has_lost_before() })
        })
    }

    fn number(&self) -> [u8; 16] {
        self.number
    }

    fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn timestamp(&self, at: Time) -> Timestamp {
        Timestamp(self.origin.0.saturating_add(i64::try_from(at.0).unwrap_or(i64::MAX)))
    }
}

fn list_with_attributes(
    sfs: &mut Sfs,
    directory: InodeNumber,
    mut from: u64,
    hold: Hold,
    take: TakeFullEntry,
) -> Result<(), VolumeError> {
    let mut is_first = true;
    loop {
        let mut names: Vec<u8> = Vec::new();
        let mut page: Vec<(u64, InodeNumber, super::FileKind, usize)> = Vec::with_capacity(ENTRIES_AT_ONCE);
        sfs.list(directory, from, &mut |entry| {
            let has_room = page.len() < ENTRIES_AT_ONCE;
            if has_room {
                names.extend_from_slice(entry.name);
                page.push((entry.next, entry.inode, entry.kind, names.len()));
            }
            has_room
        })?;
        if page.is_empty() {
            return Ok(());
        }
        let mut begin = 0;
        for (next, inode, kind, end) in page {
            let attributes = match sfs.attributes(inode) {
                Ok(attributes) => attributes,
                Err(error) if is_first => return Err(error),
                // The next listing begins with it, and says so.
                Err(_) => return Ok(()),
            };
            let entry = super::DirectoryEntry { next, inode, kind, name: &names[begin..end] };
            let is_held = hold == Hold::Yes && !entry.is_dot();
            if !take(&FullEntry { entry, attributes }) {
                return Ok(());
            }
            if is_held {
                sfs.retain(inode)?;
            }
            (from, begin, is_first) = (next, end, false);
        }
    }
}
