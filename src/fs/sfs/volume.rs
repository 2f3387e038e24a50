//! A mounted volume of sfs as a [`Volume`], which threads share.
//!
//! | gate | entered by | held during |
//! |---|---|---|
//! | `log` | syncs, checkpoints, background work, writing out of too many buffered blocks | writes to the log, and flushes |
//! | `mounted` | every call | reads of metadata, and writes to the log; not reads of a file's blocks, and not flushes |
//!
//! They are entered in this order. A read leaves `mounted` while the device reads a file's blocks, so that many blocks are
//! read at once ([`reading`](super::reading) says why that is safe). A flush leaves `mounted`, too, and keeps `log`: until
//! it is done nothing is written to the log and no segment is freed ([`Sfs::begin_checkpoint`], [`Sfs::begin_flush`]),
//! and calls that do neither go on.

use super::checkpoint::WrittenCheckpoint;
use super::media::Media;
use super::reading::Covered;
use super::{InodeNumber, NewFile, Relief, Sfs, Timestamp};
use crate::device::Account;
use crate::fs::Durable;
use crate::fs::volume::steps::{self, Steps};
use crate::fs::volume::{
    Allocation, Attributes, Call, ChangeRule, Damage, Found, FullEntry, Hold, Locked, Name, NameRule, NewFileRule,
    ReadBytes, RenameRule, Renaming, Seek, Space, State, TakeEntry, TakeFullEntry, Times, Volume, VolumeError,
};
use crate::task::{Gate, GateGuard, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::Arc;

/// Entries of a directory that are taken before their attributes are looked up: about what fits into 4 KiB.
const ENTRIES_AT_ONCE: usize = 32;
/// New blocks that a change of a name or of what is known of a file takes at most: those of its extended attributes, of
/// its directory, and of maps.
const MOST_NEW: u64 = 1024;
/// Times that a read looks up its blocks and leaves the gate before it holds the gate to its end.
const MOST_LOOKS: u32 = 3;

/// A mounted volume, which threads share.
pub struct SfsVolume {
    /// Held by the one task that writes the log, or flushes it.
    log: Gate<()>,
    /// `None` when it is unmounted.
    mounted: Gate<Option<Sfs>>,
    media: Arc<Media>,
    number: [u8; 16],
    is_timed: bool,
    /// The time on the wall clock at [`Time::ZERO`].
    origin: Timestamp,
}

impl SfsVolume {
    /// Shares a mounted volume. Its first call begins at `now` or later.
    pub fn new(mut sfs: Sfs, now: Time) -> SfsVolume {
        sfs.relief = Relief::ByCaller;
        let (number, is_timed, origin) = (sfs.number(), sfs.is_timed(), sfs.origin);
        let media = Arc::clone(&sfs.media);
        let mounted = Gate::new("volume", Some(sfs));
        drop(mounted.enter(&Task::at(now)));
        SfsVolume { log: Gate::new("log", ()), mounted, media, number, is_timed, origin }
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
        act(sfs)
    }

    /// Makes a call that changes something, and takes at most `blocks` new blocks. Writes out buffered blocks, or takes a
    /// checkpoint, behind it if there is too much to keep in memory.
    fn turn_of_change<T>(
        &self,
        call: &Call,
        steps: &Steps,
        blocks: u64,
        act: impl FnOnce(&mut Sfs) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let (mut log, mut mounted) = (None, self.mounted.enter(call.task));
        if mounted.as_ref().is_some_and(|sfs| sfs.is_flushing && !sfs.has_space(blocks)) {
            // A checkpoint may free space, and cannot be taken before the flush is done.
            drop(mounted);
            log = Some(self.log.enter(call.task));
            mounted = self.mounted.enter(call.task);
        }
        let sfs = mounted.as_mut().ok_or(VolumeError::Unmounted)?;
        call.spend(steps);
        let answer = act(sfs)?;
        let is_pressed = sfs.is_pressed();
        drop(mounted);
        if is_pressed {
            let log = log.unwrap_or_else(|| self.log.enter(call.task));
            let written = self.turn(call, steps::NONE, |sfs| match sfs.is_pressed() {
                true => sfs.begin_relief(call.task),
                false => Ok(None),
            })?;
            self.store(call, &log, written)?;
        }
        Ok(answer)
    }

    /// Makes a call that writes to the log on its way. Nobody flushes meanwhile.
    fn turn_alone<T>(
        &self,
        call: &Call,
        steps: &Steps,
        act: impl FnOnce(&mut Sfs) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let _log = self.log.enter(call.task);
        self.turn(call, steps, |sfs| {
            sfs.relief = Relief::AtOnce;
            let answer = act(sfs);
            sfs.relief = Relief::ByCaller;
            answer
        })
    }

    /// Stores a checkpoint, if one was written.
    fn store(
        &self,
        call: &Call,
        _log: &GateGuard<'_, ()>,
        written: Option<WrittenCheckpoint>,
    ) -> Result<(), VolumeError> {
        let Some(written) = written else { return Ok(()) };
        let stored = written.store(call.task, &self.media);
        self.turn(call, steps::NONE, |sfs| sfs.end_checkpoint(call.task, stored))
    }

    /// Flushes the device, if that is begun.
    fn flush(&self, call: &Call, _log: &GateGuard<'_, ()>, is_begun: bool) -> Result<(), VolumeError> {
        if !is_begun {
            return Ok(());
        }
        let flushed = self.media.flush(call.task);
        self.turn(call, steps::NONE, |sfs| sfs.end_flush(flushed))
    }

    /// Reads, and leaves the gate while the device does. `None` if blocks were moved meanwhile, and must be looked up
    /// again.
    fn read_aside(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<Option<ReadBytes>, VolumeError> {
        let mut whole = Vec::new();
        let (covered, planned, times) = self.turn(call, &steps::read(offset, bytes.len()), |sfs| {
            let covered = sfs.covered(call.task, inode, offset, bytes.len())?;
            let times = sfs.attributes(call.task, inode)?.times;
            let buffer = buffer_of(&covered, &self.media, bytes, &mut whole);
            let planned = sfs.plan_read(call.task, inode.0, covered.blocks.start, buffer)?;
            Ok((covered, planned, times))
        })?;
        let buffer = buffer_of(&covered, &self.media, bytes, &mut whole);
        let wrong = planned.fetch(call.task, &self.media, buffer)?;
        if !wrong.is_empty() {
            self.turn(call, steps::NONE, |sfs| {
                for wrong in &wrong {
                    if sfs.is_unmoved(call.task, inode.0, wrong)? {
                        return Err(sfs.damaged_block(inode.0, wrong));
                    }
                }
                Ok(())
            })?;
            return Ok(None);
        }
        match (whole.is_empty(), self.media.holds_stamps()) {
            (true, _) => {}
            (false, true) => bytes[..covered.length].fill(0),
            (false, false) => covered.copy(&whole, bytes),
        }
        Ok(Some(ReadBytes { length: covered.length, times }))
    }
}

/// The buffer for the blocks of a read: the caller's, or `whole` if they are more than the caller asked for, or stamps.
fn buffer_of<'b>(covered: &Covered, media: &Media, bytes: &'b mut [u8], whole: &'b mut Vec<u8>) -> &'b mut [u8] {
    if covered.length == 0 {
        return &mut [];
    }
    if covered.is_whole() && !media.holds_stamps() {
        return &mut bytes[..covered.length];
    }
    whole.resize((covered.blocks.end - covered.blocks.start) as usize * media.block_width(), 0);
    whole
}

/// All files are behind the one gate.
struct Inside<'s>(&'s mut Sfs, &'s Task<'s>);

impl Locked for Inside<'_> {
    fn attributes(&mut self, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.0.attributes(self.1, inode)
    }

    fn extended_attribute(&mut self, inode: InodeNumber, name: &[u8]) -> Result<Option<Vec<u8>>, VolumeError> {
        match self.0.extended_attribute(self.1, inode, name) {
            Ok(value) => Ok(Some(value)),
            Err(VolumeError::NoAttribute) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The file of a name, if there is one.
fn found(task: &Task<'_>, sfs: &mut Sfs, (directory, name): Name) -> Result<Option<InodeNumber>, VolumeError> {
    match sfs.lookup(task, directory, name) {
        Ok(inode) => Ok(Some(inode)),
        Err(VolumeError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn ask(task: &Task<'_>, sfs: &mut Sfs, name: Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    let file = found(task, sfs, name)?;
    rule(&mut Inside(sfs, task), Found { file, there: None })
}

fn held(task: &Task<'_>, sfs: &mut Sfs, inode: InodeNumber, hold: Hold) -> Result<Attributes, VolumeError> {
    let attributes = sfs.attributes(task, inode)?;
    if hold == Hold::Yes && inode != InodeNumber::ROOT {
        sfs.retain(task, inode)?;
    }
    Ok(attributes)
}

/// What is changed beside the bytes that are written.
fn change_beside(
    task: &Task<'_>,
    sfs: &mut Sfs,
    inode: InodeNumber,
    rule: Option<ChangeRule>,
) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    match rule(&mut Inside(sfs, task))? {
        Some(change) => sfs.change(task, inode, &change).map(drop),
        None => Ok(()),
    }
}

impl Volume for SfsVolume {
    fn lookup(&self, call: &Call, (directory, name): Name, hold: Hold) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOKUP, |sfs| {
            let inode = sfs.lookup(call.task, directory, name)?;
            held(call.task, sfs, inode, hold)
        })
    }

    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.attributes(call.task, inode))
    }

    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError> {
        self.turn_of_change(call, steps::CHANGE, MOST_NEW, |sfs| match rule(&mut Inside(sfs, call.task))? {
            Some(change) => sfs.change(call.task, inode, &change),
            None => sfs.attributes(call.task, inode),
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
        self.turn_of_change(call, steps::NAME, MOST_NEW, |sfs| {
            let inode = match rule {
                None => sfs.make(call.task, directory, name, new)?,
                Some(rule) => {
                    let file = found(call.task, sfs, (directory, name))?;
                    let inherited = rule(&mut Inside(sfs, call.task), Found { file, there: None })?;
                    let (permissions, group) = (inherited.permissions, inherited.group);
                    let attributes: Vec<(&[u8], &[u8])> =
                        inherited.attributes.iter().map(|(name, value)| (*name, &value[..])).collect();
                    sfs.make(
                        call.task,
                        directory,
                        name,
                        &NewFile { permissions, group, attributes: &attributes, ..*new },
                    )?
                }
            };
            held(call.task, sfs, inode, hold)
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
        self.turn_of_change(call, steps::NAME, MOST_NEW, |sfs| {
            ask(call.task, sfs, (directory, name), rule)?;
            sfs.link(call.task, inode, directory, name)?;
            held(call.task, sfs, inode, hold)
        })
    }

    fn unlink(&self, call: &Call, (directory, name): Name, rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.turn_of_change(call, steps::NAME, MOST_NEW, |sfs| {
            ask(call.task, sfs, (directory, name), rule)?;
            sfs.unlink(call.task, directory, name)
        })
    }

    fn remove_directory(
        &self,
        call: &Call,
        (directory, name): Name,
        rule: Option<NameRule>,
    ) -> Result<(), VolumeError> {
        self.turn_of_change(call, steps::NAME, MOST_NEW, |sfs| {
            ask(call.task, sfs, (directory, name), rule)?;
            sfs.remove_directory(call.task, directory, name)
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
        self.turn_of_change(call, steps::RENAME, MOST_NEW, |sfs| {
            let how = match rule {
                None => how,
                Some(rule) => {
                    let found = Found { file: found(call.task, sfs, from)?, there: found(call.task, sfs, to)? };
                    rule(&mut Inside(sfs, call.task), found)?
                }
            };
            match how.whiteout {
                Some(owner) => sfs.rename_with_whiteout(call.task, from, to, how.taken, owner),
                None => sfs.rename(call.task, from, to, how.taken),
            }
        })
    }

    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError> {
        self.turn(call, steps::LOOK, |sfs| Ok((sfs.target(call.task, inode)?, sfs.attributes(call.task, inode)?.times)))
    }

    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError> {
        self.turn(call, steps::LOOKUP, |sfs| {
            sfs.list(call.task, directory, from, take)?;
            Ok(sfs.attributes(call.task, directory)?.times)
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
            list_with_attributes(call.task, sfs, directory, from, hold, take)?;
            Ok(sfs.attributes(call.task, directory)?.times)
        })
    }

    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError> {
        for _ in 0..MOST_LOOKS {
            if let Some(read) = self.read_aside(call, inode, offset, bytes)? {
                return Ok(read);
            }
        }
        // Its blocks are moved again and again: this time nobody comes between.
        self.turn(call, steps::NONE, |sfs| {
            let length = sfs.read(call.task, inode, offset, bytes)?;
            debug_assert!(length <= bytes.len(), "no more is read than was asked for");
            Ok(ReadBytes { length, times: sfs.attributes(call.task, inode)?.times })
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
        let blocks = MOST_NEW + bytes.len() as u64 / BLOCK_BYTES;
        self.turn_of_change(call, &steps::write(offset, bytes.len()), blocks, |sfs| {
            change_beside(call.task, sfs, inode, rule)?;
            sfs.write(call.task, inode, offset, bytes)
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
        self.turn_alone(call, &steps::allocate(offset, length), |sfs| {
            change_beside(call.task, sfs, inode, rule)?;
            match how {
                Allocation::Reserve { keep_size } => sfs.allocate(call.task, inode, offset, length, keep_size),
                Allocation::Punch => sfs.punch(call.task, inode, offset, length),
                Allocation::Zero { keep_size } => {
                    sfs.punch(call.task, inode, offset, length)?;
                    sfs.allocate(call.task, inode, offset, length, keep_size)
                }
            }
        })
    }

    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.seek(call.task, inode, offset, what == Seek::Data))
    }

    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.extended_attribute(call.task, inode, name))
    }

    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| sfs.extended_attributes(call.task, inode))
    }

    fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        let log = self.log.enter(call.task);
        let is_begun = self.turn(call, steps::SYNC, |sfs| {
            sfs.write_file(call.task, inode, what)?;
            Ok(sfs.begin_flush())
        })?;
        self.flush(call, &log, is_begun)
    }

    fn sync(&self, call: &Call) -> Result<(), VolumeError> {
        let log = self.log.enter(call.task);
        let (written, is_begun) = self.turn(call, steps::SYNC, |sfs| match sfs.begin_sync(call.task)? {
            Some(written) => Ok((Some(written), false)),
            None => Ok((None, sfs.begin_flush())),
        })?;
        self.store(call, &log, written)?;
        self.flush(call, &log, is_begun)
    }

    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.turn(call, steps::LOOK, |sfs| held(call.task, sfs, inode, Hold::Yes))
    }

    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        match inode {
            InodeNumber::ROOT => Ok(()),
            inode => self.turn(call, steps::LOOK, |sfs| sfs.release(call.task, inode, times)),
        }
    }

    fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.turn(call, steps::NONE, |sfs| Ok(sfs.space()))
    }

    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError> {
        let log = self.log.enter(call.task);
        let mut begun = self.turn(call, steps::NONE, |sfs| sfs.begin_work(call.task))?;
        self.store(call, &log, begun.written.take())?;
        self.turn(call, steps::NONE, |sfs| sfs.end_work(call.task, &begun))
    }

    fn is_changed(&self, call: &Call) -> bool {
        self.turn(call, steps::NONE, |sfs| Ok(sfs.is_changed() && sfs.read_only().is_none())).unwrap_or(false)
    }

    fn unmount(&self, call: &Call) -> Result<(), VolumeError> {
        let _log = self.log.enter(call.task);
        let mut mounted = self.mounted.enter(call.task);
        let mut sfs = mounted.take().ok_or(VolumeError::Unmounted)?;
        sfs.unmount(call.task)
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
    task: &Task<'_>,
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
        sfs.list(task, directory, from, &mut |entry| {
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
            let attributes = match sfs.attributes(task, inode) {
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
                sfs.retain(task, inode)?;
            }
            (from, begin, is_first) = (next, end, false);
        }
    }
}
