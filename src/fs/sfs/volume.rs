//! A mounted volume of sfs as a [`Volume`], shared by threads.
//!
//! | gate | entered by | held during |
//! |---|---|---|
//! | `log` | the task that writes back: syncs, checkpoints, cleaning, background work, memory reclaim | the whole operation |
//! | `mounted` | every call | work in memory |
//!
//! Gates are entered in this order. A task that writes back holds the volume in turns ([`Turns`]): between two turns
//! the device writes, flushes, discards, and reads victims, under `log` alone. A read leaves `mounted` while the device
//! reads a file's blocks, so that many reads overlap ([`data`](crate::fs::sfs::files::data) explains why that is
//! safe).

use super::media::{FetchedBlocks, Media};
use super::write_back::{Room, Turns, WriteBack};
use super::{DirectoryEntry, FileKind, InodeNumber, NewFile, Relief, Sfs, Timestamp};
use crate::device::Account;
use crate::fs::Durable;
use crate::fs::sfs::files::data::Covered;
use crate::fs::volume::steps::{self, Steps};
use crate::fs::volume::{
    Allocation, Attributes, Call, ChangeRule, Damage, Found, FullEntry, Hold, Locked, Name, NameRule, NewFileRule,
    ReadBytes, RenameRule, Renaming, Seek, Space, State, TakeEntry, TakeFullEntry, Times, Volume, VolumeError,
};
use crate::task::{Gate, GateGuard, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// Directory entries collected before their attributes are looked up: about those of one 4 KiB reply.
const ENTRIES_AT_ONCE: usize = 32;
/// Maximum checkpoints that one call takes for the space they free, since other calls can use it first.
const MOST_CHECKPOINTS: u32 = 3;
/// Maximum times that a call leaves the gate to fetch metadata.
const MOST_FETCHES: u32 = 16;
/// Maximum times that a read looks up its blocks and leaves the gate, before it holds the gate throughout.
const MOST_LOOKUPS: u32 = 3;

/// A mounted volume, shared by threads.
pub struct SfsVolume {
    /// Held by the task that writes back.
    log: Gate<()>,
    /// `None` after the unmount.
    mounted: Gate<Option<Sfs>>,
    /// The device is closed by the unmount.
    media: Weak<Media>,
    /// True if all metadata is always in memory.
    is_in_memory: bool,
    number: [u8; 16],
    is_timed: bool,
    /// Wall-clock time at [`Time::ZERO`].
    origin: Timestamp,
}

impl SfsVolume {
    /// Shares a mounted volume. Its first call begins at `now` or later.
    pub fn new(mut sfs: Sfs, now: Time) -> SfsVolume {
        sfs.relief = Relief::ByCaller;
        let (number, is_timed, origin) = (sfs.number(), sfs.is_timed(), sfs.files.clock.origin);
        let media = Arc::clone(&sfs.files.media);
        media.queue_changes(true);
        let is_in_memory = media.holds_stamps();
        let mounted = Gate::new("volume", Some(sfs));
        drop(mounted.enter(&Task::at(now)));
        SfsVolume {
            log: Gate::new("log", ()),
            mounted,
            media: Arc::downgrade(&media),
            is_in_memory,
            number,
            is_timed,
            origin,
        }
    }

    /// The volume, for a single owner.
    ///
    /// # Panics
    ///
    /// If the volume is unmounted.
    pub fn into_inner(self) -> Sfs {
        let mut sfs = self.mounted.into_inner().expect("the volume is mounted");
        sfs.relief = Relief::AtOnce;
        sfs.files.media.queue_changes(false);
        sfs
    }

    fn media(&self) -> Result<Arc<Media>, VolumeError> {
        self.media.upgrade().ok_or(VolumeError::Unmounted)
    }

    /// Makes a call inside the gate. It begins at its task's time, or when the previous call ends.
    fn call_in_gate<T>(
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

    /// Makes a call that changes nothing. Missing metadata is fetched outside the gate.
    fn call_read<T>(
        &self,
        call: &Call,
        steps: &Steps,
        mut act: impl FnMut(&mut Sfs) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let (mut steps, mut fetched) = (steps, Vec::new());
        for fetches in 0.. {
            let steps = std::mem::replace(&mut steps, steps::NONE);
            let (answer, missed) = self.call_in_gate(call, steps, |sfs| {
                // A small cache may not hold all fetched blocks: the last turn reads the device inside the gate.
                sfs.files.media.begin_turn(std::mem::take(&mut fetched), fetches < MOST_FETCHES);
                let answer = act(sfs);
                Ok((answer, sfs.files.media.end_turn().0))
            })?;
            if missed.is_empty() {
                return answer;
            }
            fetched = self.media()?.fetch(call.task, missed)?;
        }
        unreachable!("the last turn may read the device, and misses nothing")
    }

    /// Prefetches the metadata of a change, so that the change does not wait for the device inside the gate. Returns
    /// the blocks that it changes partly. The change itself reports errors again.
    fn prefetch(
        &self,
        call: &Call,
        mut touch: impl FnMut(&mut Sfs) -> Result<(), VolumeError>,
    ) -> Result<Vec<FetchedBlocks>, VolumeError> {
        let mut fetched = Vec::new();
        for _ in 0..if self.is_in_memory { 0 } else { MOST_FETCHES } {
            let (missed, offered) = self.call_in_gate(call, steps::NONE, |sfs| {
                sfs.files.media.begin_turn(std::mem::take(&mut fetched), true);
                let _ = touch(sfs);
                Ok(sfs.files.media.end_turn())
            })?;
            if missed.is_empty() {
                return Ok(offered);
            }
            fetched = self.media()?.fetch(call.task, missed)?;
        }
        Ok(Vec::new())
    }

    /// Prefetches the metadata of names and of their files.
    fn prefetch_names(&self, call: &Call, names: &[Name]) -> Result<(), VolumeError> {
        let touched = self.prefetch(call, |sfs| {
            for name in names {
                let _ = sfs.attributes(call.task, name.0);
                let file = sfs.lookup(call.task, name.0, name.1);
                let _ = file.and_then(|file| sfs.attributes(call.task, file));
            }
            Ok(())
        });
        touched.map(drop)
    }

    /// Prefetches the map of a range of a file's blocks, and their entries in the DAT.
    fn prefetch_blocks(&self, call: &Call, inode: InodeNumber, blocks: Range<u64>) -> Result<(), VolumeError> {
        let mut next = if self.is_in_memory { None } else { Some(blocks.start) };
        while let Some(from) = next {
            self.prefetch(call, |sfs| {
                next = None;
                next = sfs.files.touch_blocks(call.task, inode.0, from..blocks.end)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Prefetches the metadata needed to free a file, if this is its last name.
    fn prefetch_removal(&self, call: &Call, name: Name) -> Result<(), VolumeError> {
        if self.is_in_memory {
            return Ok(());
        }
        self.prefetch_names(call, &[name])?;
        let found = self.call_read(call, steps::NONE, |sfs| {
            let file = sfs.lookup(call.task, name.0, name.1)?;
            sfs.attributes(call.task, file)
        });
        match found {
            Ok(file) if file.links <= 1 => self.prefetch_blocks(call, file.inode, 0..u64::MAX),
            _ => Ok(()),
        }
    }

    /// Makes a call that changes something. Takes a checkpoint before it if that frees the needed space, and writes
    /// back after it if too much memory is dirty.
    fn call_change<T>(
        &self,
        call: &Call,
        steps: &Steps,
        act: impl FnMut(&mut Sfs) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        self.call_change_with(call, steps, Vec::new(), act)
    }

    /// Makes a changing call with fetched blocks.
    fn call_change_with<T>(
        &self,
        call: &Call,
        steps: &Steps,
        mut fetched: Vec<FetchedBlocks>,
        mut act: impl FnMut(&mut Sfs) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let (mut writer, mut checkpoints, mut steps) = (None, 0, steps);
        loop {
            let mut is_memory_short = false;
            let mut wants_checkpoint = false;
            let answer = self.call_in_gate(call, std::mem::replace(&mut steps, steps::NONE), |sfs| {
                sfs.files.media.begin_turn(std::mem::take(&mut fetched), false);
                let answer = act(sfs);
                sfs.files.media.end_turn();
                wants_checkpoint = std::mem::take(&mut sfs.wants_checkpoint);
                is_memory_short = answer.is_ok() && Room::of(sfs).is_memory_short();
                answer
            });
            if answer.is_err() && wants_checkpoint && checkpoints < MOST_CHECKPOINTS {
                // From here on this call alone takes checkpoints, so that others cannot use their space first.
                let mut taken = writer.take().map_or_else(|| self.write_back(call), Ok)?;
                taken.checkpoint_after(WriteBack::keep_room)?;
                writer = Some(taken);
                checkpoints += 1;
                continue;
            }
            if is_memory_short {
                writer.map_or_else(|| self.write_back(call), Ok)?.relieve_if_needed()?;
            }
            return answer;
        }
    }

    /// Waits for the task that writes back, and takes its place.
    fn write_back<'c>(&'c self, call: &'c Call) -> Result<WriteBack<'c, SharedTurns<'c>>, VolumeError> {
        let turns = SharedTurns { volume: self, call, _log: self.log.enter(call.task) };
        Ok(WriteBack::new(turns, call.task, self.media()?))
    }

    /// Reads outside the gate. `None` if blocks moved during the read, and must be looked up again.
    fn read_outside_gate(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<Option<ReadBytes>, VolumeError> {
        let (mut whole, media) = (Vec::new(), self.media()?);
        let (covered, planned, times) = self.call_read(call, &steps::read(offset, bytes.len()), |sfs| {
            let covered = sfs.files.covered(call.task, inode, offset, bytes.len())?;
            let times = sfs.attributes(call.task, inode)?.times;
            let buffer = buffer_of(&covered, &media, bytes, &mut whole);
            let planned = sfs.files.plan_read(call.task, inode.0, covered.blocks.start, buffer)?;
            Ok((covered, planned, times))
        })?;
        let buffer = buffer_of(&covered, &media, bytes, &mut whole);
        let wrong = planned.fetch(call.task, &media, buffer)?;
        if !wrong.is_empty() {
            self.call_in_gate(call, steps::NONE, |sfs| {
                for wrong in &wrong {
                    if sfs.files.is_unmoved(call.task, inode.0, wrong)? {
                        return Err(sfs.files.damaged_block(inode.0, wrong));
                    }
                }
                Ok(())
            })?;
            return Ok(None);
        }
        match (whole.is_empty(), media.holds_stamps()) {
            (true, _) => {}
            (false, true) => bytes[..covered.length].fill(0),
            (false, false) => covered.copy(&whole, bytes),
        }
        Ok(Some(ReadBytes { length: covered.length, times }))
    }
}

/// Turns of the task that writes back a shared volume.
struct SharedTurns<'v> {
    volume: &'v SfsVolume,
    call: &'v Call<'v>,
    _log: GateGuard<'v, ()>,
}

impl Turns for SharedTurns<'_> {
    fn turn<R>(&mut self, act: impl FnOnce(&mut Sfs) -> Result<R, VolumeError>) -> Result<R, VolumeError> {
        self.volume.call_in_gate(self.call, steps::NONE, act)
    }
}

/// The buffer for the blocks of a read: the caller's, or `whole` if the blocks exceed the request or hold stamps.
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

/// The files of a volume, all under its one gate.
struct UnderGate<'s>(&'s mut Sfs, &'s Task<'s>);

impl Locked for UnderGate<'_> {
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

/// The file of a name, if it exists.
fn found(task: &Task<'_>, sfs: &mut Sfs, (directory, name): Name) -> Result<Option<InodeNumber>, VolumeError> {
    match sfs.lookup(task, directory, name) {
        Ok(inode) => Ok(Some(inode)),
        Err(VolumeError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn ask(task: &Task<'_>, sfs: &mut Sfs, name: Name, rule: &mut Option<NameRule>) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    let file = found(task, sfs, name)?;
    rule(&mut UnderGate(sfs, task), Found { file, existing: None })
}

fn held(task: &Task<'_>, sfs: &mut Sfs, inode: InodeNumber, hold: Hold) -> Result<Attributes, VolumeError> {
    let attributes = sfs.attributes(task, inode)?;
    if hold == Hold::Yes && inode != InodeNumber::ROOT {
        sfs.retain(task, inode)?;
    }
    Ok(attributes)
}

/// Applies the change of attributes made with a write.
fn apply_change_rule(
    task: &Task<'_>,
    sfs: &mut Sfs,
    inode: InodeNumber,
    rule: &mut Option<ChangeRule>,
) -> Result<(), VolumeError> {
    let Some(rule) = rule else { return Ok(()) };
    match rule(&mut UnderGate(sfs, task))? {
        Some(change) => sfs.change(task, inode, &change).map(drop),
        None => Ok(()),
    }
}

impl Volume for SfsVolume {
    fn lookup(&self, call: &Call, (directory, name): Name, hold: Hold) -> Result<Attributes, VolumeError> {
        self.call_read(call, steps::LOOKUP, |sfs| {
            let inode = sfs.lookup(call.task, directory, name)?;
            held(call.task, sfs, inode, hold)
        })
    }

    fn attributes(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.call_read(call, steps::LOOK, |sfs| sfs.attributes(call.task, inode))
    }

    fn change(&self, call: &Call, inode: InodeNumber, rule: ChangeRule) -> Result<Attributes, VolumeError> {
        self.prefetch(call, |sfs| sfs.attributes(call.task, inode).map(drop))?;
        self.call_change(call, steps::CHANGE, |sfs| match rule(&mut UnderGate(sfs, call.task))? {
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
        mut rule: Option<NewFileRule>,
    ) -> Result<Attributes, VolumeError> {
        self.prefetch_names(call, &[(directory, name)])?;
        self.call_change(call, steps::NAME, |sfs| {
            let inode = match &mut rule {
                None => sfs.make(call.task, directory, name, new)?,
                Some(rule) => {
                    let file = found(call.task, sfs, (directory, name))?;
                    let inherited = rule(&mut UnderGate(sfs, call.task), Found { file, existing: None })?;
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
        mut rule: Option<NameRule>,
    ) -> Result<Attributes, VolumeError> {
        self.prefetch_names(call, &[(directory, name)])?;
        self.call_change(call, steps::NAME, |sfs| {
            ask(call.task, sfs, (directory, name), &mut rule)?;
            sfs.link(call.task, inode, directory, name)?;
            held(call.task, sfs, inode, hold)
        })
    }

    fn unlink(&self, call: &Call, (directory, name): Name, mut rule: Option<NameRule>) -> Result<(), VolumeError> {
        self.prefetch_removal(call, (directory, name))?;
        self.call_change(call, steps::NAME, |sfs| {
            ask(call.task, sfs, (directory, name), &mut rule)?;
            sfs.unlink(call.task, directory, name)
        })
    }

    fn remove_directory(
        &self,
        call: &Call,
        (directory, name): Name,
        mut rule: Option<NameRule>,
    ) -> Result<(), VolumeError> {
        self.prefetch_removal(call, (directory, name))?;
        self.call_change(call, steps::NAME, |sfs| {
            ask(call.task, sfs, (directory, name), &mut rule)?;
            sfs.remove_directory(call.task, directory, name)
        })
    }

    fn rename(
        &self,
        call: &Call,
        from: Name,
        to: Name,
        how: Renaming,
        mut rule: Option<RenameRule>,
    ) -> Result<(), VolumeError> {
        self.prefetch_names(call, &[from])?;
        self.prefetch_removal(call, to)?;
        self.call_change(call, steps::RENAME, |sfs| {
            let how = match &mut rule {
                None => how,
                Some(rule) => {
                    let found = Found { file: found(call.task, sfs, from)?, existing: found(call.task, sfs, to)? };
                    rule(&mut UnderGate(sfs, call.task), found)?
                }
            };
            match how.whiteout {
                Some(owner) => sfs.rename_with_whiteout(call.task, from, to, how.if_exists, owner),
                None => sfs.rename(call.task, from, to, how.if_exists),
            }
        })
    }

    fn target(&self, call: &Call, inode: InodeNumber) -> Result<(Vec<u8>, Times), VolumeError> {
        self.call_read(call, steps::LOOK, |sfs| {
            Ok((sfs.target(call.task, inode)?, sfs.attributes(call.task, inode)?.times))
        })
    }

    fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<Times, VolumeError> {
        let (mut from, mut steps) = (from, steps::LOOKUP);
        while let Some(next) = self.call_read(call, std::mem::replace(&mut steps, steps::NONE), |sfs| {
            let page = Page::read(call.task, sfs, directory, from)?;
            page.hand_out(&mut |entry| Ok(take(entry)))
        })? {
            from = next;
        }
        self.call_read(call, steps::NONE, |sfs| Ok(sfs.attributes(call.task, directory)?.times))
    }

    fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        hold: Hold,
        take: TakeFullEntry,
    ) -> Result<Times, VolumeError> {
        let (mut next, mut steps) = (from, steps::LOOKUP);
        while let Some(behind) = self.call_read(call, std::mem::replace(&mut steps, steps::NONE), |sfs| {
            let page = Page::read(call.task, sfs, directory, next)?;
            let attributes = page.attributes(call.task, sfs, next == from)?;
            let mut attributes = attributes.into_iter();
            // Entries already returned are not returned again.
            sfs.files.media.allow_reads();
            page.hand_out(&mut |entry| {
                // The next listing begins with the first entry that failed, and returns its error.
                let Some(attributes) = attributes.next() else { return Ok(false) };
                let held = (hold == Hold::Yes && !entry.is_dot()).then_some(entry.inode);
                let is_taken = take(&FullEntry { entry, attributes });
                match held.filter(|_| is_taken) {
                    Some(inode) => sfs.retain(call.task, inode).map(|()| true),
                    None => Ok(is_taken),
                }
            })
        })? {
            next = behind;
        }
        self.call_read(call, steps::NONE, |sfs| Ok(sfs.attributes(call.task, directory)?.times))
    }

    fn read(&self, call: &Call, inode: InodeNumber, offset: u64, bytes: &mut [u8]) -> Result<ReadBytes, VolumeError> {
        for _ in 0..MOST_LOOKUPS {
            if let Some(read) = self.read_outside_gate(call, inode, offset, bytes)? {
                return Ok(read);
            }
        }
        // Its blocks keep moving: this read holds the gate throughout.
        self.call_in_gate(call, steps::NONE, |sfs| {
            let length = sfs.read(call.task, inode, offset, bytes)?;
            debug_assert!(length <= bytes.len(), "a read returns at most the requested bytes");
            Ok(ReadBytes { length, times: sfs.attributes(call.task, inode)?.times })
        })
    }

    fn write(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        mut rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        let fetched = self.prefetch(call, |sfs| sfs.files.touch_bytes(call.task, inode, offset, bytes.len() as u64))?;
        self.call_change_with(call, &steps::write(offset, bytes.len()), fetched, |sfs| {
            apply_change_rule(call.task, sfs, inode, &mut rule)?;
            sfs.write(call.task, inode, offset, bytes)
        })
    }

    fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        (offset, length): (u64, u64),
        how: Allocation,
        mut rule: Option<ChangeRule>,
    ) -> Result<(), VolumeError> {
        let (reserves, keep_size) = match how {
            Allocation::Punch => (false, true),
            Allocation::Reserve { keep_size } => (true, keep_size),
            Allocation::Zero { keep_size } => (true, keep_size),
        };
        self.prefetch_blocks(call, inode, blocks_of(offset, length))?;
        self.call_change(call, &steps::allocate(offset, length), |sfs| {
            apply_change_rule(call.task, sfs, inode, &mut rule)?;
            if reserves {
                sfs.check_reservation(call.task, inode, offset, length)?;
            }
            match how {
                Allocation::Reserve { .. } => Ok(()),
                Allocation::Punch | Allocation::Zero { .. } => sfs.punch(call.task, inode, offset, length),
            }
        })?;
        // A long range is processed in parts, so that a checkpoint never exceeds its space.
        let (mut from, end) = (offset, offset.saturating_add(length));
        while reserves && from < end {
            let part = self
                .call_in_gate(call, steps::NONE, |sfs| Ok(sfs.writer.limits.most_reserved_at_once() * BLOCK_BYTES))?;
            let to = end.min(from.saturating_add(part));
            self.call_change(call, steps::NONE, |sfs| {
                sfs.allocate(call.task, inode, from, to - from, keep_size || to < end)
            })?;
            from = to;
        }
        Ok(())
    }

    fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.call_read(call, steps::LOOK, |sfs| sfs.seek(call.task, inode, offset, what == Seek::Data))
    }

    fn extended_attribute(&self, call: &Call, inode: InodeNumber, name: &[u8]) -> Result<Vec<u8>, VolumeError> {
        self.call_read(call, steps::LOOK, |sfs| sfs.extended_attribute(call.task, inode, name))
    }

    fn extended_attributes(&self, call: &Call, inode: InodeNumber) -> Result<Vec<Vec<u8>>, VolumeError> {
        self.call_read(call, steps::LOOK, |sfs| sfs.extended_attributes(call.task, inode))
    }

    fn sync_file(&self, call: &Call, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        let mut writer = self.write_back(call)?;
        call.spend(steps::SYNC);
        writer.sync_file(inode, what)
    }

    fn sync(&self, call: &Call) -> Result<(), VolumeError> {
        let mut writer = self.write_back(call)?;
        call.spend(steps::SYNC);
        writer.sync()
    }

    fn hold(&self, call: &Call, inode: InodeNumber) -> Result<Attributes, VolumeError> {
        self.call_read(call, steps::LOOK, |sfs| held(call.task, sfs, inode, Hold::Yes))
    }

    fn forget(&self, call: &Call, inode: InodeNumber, times: u64) -> Result<(), VolumeError> {
        match inode {
            InodeNumber::ROOT => Ok(()),
            inode => {
                let is_released = self.call_in_gate(call, steps::LOOK, |sfs| match sfs.files.is_orphan(inode) {
                    true => Ok(false),
                    false => sfs.release(call.task, inode, times).map(|()| true),
                })?;
                if is_released {
                    return Ok(());
                }
                self.prefetch_blocks(call, inode, 0..u64::MAX)?;
                self.call_change(call, steps::NONE, |sfs| sfs.release(call.task, inode, times))
            }
        }
    }

    fn space(&self, call: &Call) -> Result<Space, VolumeError> {
        self.call_in_gate(call, steps::NONE, |sfs| Ok(sfs.space()))
    }

    fn work(&self, call: &Call) -> Result<Option<Time>, VolumeError> {
        self.write_back(call)?.work()
    }

    fn is_changed(&self, call: &Call) -> bool {
        self.call_in_gate(call, steps::NONE, |sfs| Ok(sfs.is_changed() && sfs.read_only().is_none())).unwrap_or(false)
    }

    fn unmount(&self, call: &Call) -> Result<(), VolumeError> {
        let _log = self.log.enter(call.task);
        let mut mounted = self.mounted.enter(call.task);
        let mut sfs = mounted.take().ok_or(VolumeError::Unmounted)?;
        sfs.unmount(call.task)
    }

    fn account(&self, call: &Call) -> Result<Account, VolumeError> {
        self.call_in_gate(call, steps::NONE, |sfs| Ok(sfs.account()))
    }

    fn state(&self, call: &Call) -> Result<State, VolumeError> {
        self.call_in_gate(call, steps::NONE, |sfs| {
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
        self.origin.after(at)
    }
}

/// The blocks that overlap this range of bytes.
fn blocks_of(offset: u64, length: u64) -> Range<u64> {
    offset / BLOCK_BYTES..offset.saturating_add(length).div_ceil(BLOCK_BYTES)
}

/// Entries of a directory, collected before any is returned: collecting them may have to start again.
struct Page {
    names: Vec<u8>,
    /// The next entry's offset, the inode, its kind, and the end of the name in `names`.
    entries: Vec<(u64, InodeNumber, FileKind, usize)>,
}

impl Page {
    fn read(task: &Task<'_>, sfs: &mut Sfs, directory: InodeNumber, from: u64) -> Result<Page, VolumeError> {
        let mut page = Page { names: Vec::new(), entries: Vec::with_capacity(ENTRIES_AT_ONCE) };
        sfs.list(task, directory, from, &mut |entry| {
            let has_room = page.entries.len() < ENTRIES_AT_ONCE;
            if has_room {
                page.names.extend_from_slice(entry.name);
                page.entries.push((entry.next, entry.inode, entry.kind, page.names.len()));
            }
            has_room
        })?;
        Ok(page)
    }

    /// The attributes of the entries, up to the first that fails: an error if that is the first of the listing.
    fn attributes(&self, task: &Task<'_>, sfs: &mut Sfs, is_first: bool) -> Result<Vec<Attributes>, VolumeError> {
        let all: Vec<_> = self.entries.iter().map(|(_, inode, ..)| sfs.attributes(task, *inode)).collect();
        let mut found = Vec::with_capacity(all.len());
        for attributes in all {
            match attributes {
                Ok(attributes) => found.push(attributes),
                // The block is fetched, and the call starts again.
                Err(error) if sfs.files.media.has_missed() => return Err(error),
                Err(error) if is_first && found.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(found)
    }

    /// Passes the entries to `take`. Returns the offset of the next one; `None` at the end, or if `take` returns false.
    fn hand_out(
        &self,
        take: &mut dyn FnMut(DirectoryEntry) -> Result<bool, VolumeError>,
    ) -> Result<Option<u64>, VolumeError> {
        let mut begin = 0;
        for (next, inode, kind, end) in &self.entries {
            let entry = DirectoryEntry { next: *next, inode: *inode, kind: *kind, name: &self.names[begin..*end] };
            if !take(entry)? {
                return Ok(None);
            }
            begin = *end;
        }
        Ok(self.entries.last().map(|(next, ..)| *next))
    }
}
