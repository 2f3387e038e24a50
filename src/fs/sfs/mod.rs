//! SFS: the log-structured file system that groups blocks by hotness (Min, Kim, Cho, Lee, Eom: "SFS: Random Write
//! Considered Harmful in Solid State Drives", FAST 2012).
//!
//! All data is written sequentially into segments. Dirty blocks are sorted into groups of similar hotness, and each
//! segment is filled from one group. A checkpoint makes everything durable and writes a superblock. Between checkpoints
//! an fsync appends to the log, which a mount after a crash rolls forward. When few segments are free, segments are
//! cleaned.
//!
//! Rooms, each of which imports only those above it:
//!
//! | room | content |
//! |---|---|
//! | `media` | on-media structures and their invariants; the device, divided into segments |
//! | [`placement`] | the group of a written block, and the victims of cleaning |
//! | `metadata` | metadata files: trees of pages under a root in the superblock |
//! | `log` | segments and partial segments, and their reader |
//! | `files` | the files in memory: inodes, maps, names, data |
//! | `write_back` | dirty blocks and metadata are written to the log, and segments are freed |
//! | `calls` | the calls of a volume |
//! | `recovery` | opening a volume, strict or lenient; roll forward, survey, check and repair |
//!
//! Types, each of which can be read by itself:
//!
//! | type | content |
//! |---|---|
//! | `files::Files` | inodes, maps, dirty blocks and records of changes as they are in memory, and the methods that change them there |
//! | `files::names::Names`, `files::attribute_blocks::AttributeBlocks` | names and links; extended attributes. They borrow the files |
//! | `metadata::MetadataFiles` | what the three metadata files say of blocks and inodes |
//! | `log::Log`, `log::LogReader` | the ends of the log; partial segments as they were written |
//! | `write_back::Writer` | owns the log, the grouping, the superblock, the discards and the faults: blocks get addresses and are written |
//! | `write_back`: `GroupWriter`, `Syncing`, `Cleaning`, `Checkpoint`, `Room` | what one turn writes or decides. They borrow the files and the writer |
//! | `write_back::WriteBack` | the steps of writeback, in turns |
//! | `Limits`, `Faults`, `Clock`, `write_back::Schedule` | limits of memory and of space; failures; wall-clock time and the clock of hotness; times of background work |
//! | `recovery`: `Loading`, `CheckpointFields`, `RollForward`, `Surveyor`, `Mending` | steps of opening, checking and repairing; each borrows what it needs |
//! | [`Sfs`] | the calls: may the volume be written, is there space, what goes to the log, and is memory short |
//!
//! A call goes one way: `Sfs`, a step of `WriteBack`, a checkpoint, the cleaner or a sync, the groups, the writer, the media.
//!
//! | file | content |
//! |---|---|
//! | `clock` | the clocks of a mounted volume |
//! | `settings`, `preset` | the options; values of several by one word |
//! | `station` | sfs as a station of a path |
//! | `volume` | a mounted volume, shared by threads |
//! | `make` | mkfs |
//! | `memory`, `space` | limits of memory and of space on the device |
//! | `failure` | handling of a failed write or flush |
//! | `segment_table` | a description of the segments for people |
//! | `error` | errors of calls and mounts |
//!
//! The code is the same for stamps and bytes. With stamps, metadata stays in memory, since stamps cannot be read back.

mod calls;
mod clock;
mod error;
mod failure;
mod files;
mod log;
mod make;
mod media;
mod memory;
mod metadata;
pub mod placement;
mod preset;
mod recovery;
mod segment_table;
mod settings;
mod space;
mod station;
mod volume;
mod write_back;

pub use crate::device::Medium;
pub use crate::fs::volume::Lost;
pub use error::{OpenSfsError, SfsError};
pub use files::attributes::{
    Attributes, Change, DirectoryEntry, FileKind, IfExists, InodeNumber, NewFile, Space, Timestamp,
};
pub use make::Identity;
pub use memory::MemoryUse;
pub use recovery::{
    Census, Finding, GroupRow, Repaired, SegmentMap, SegmentRow, Structure, check, mark_lost, repair, segment_map,
};
pub use settings::{Fsync, KIND, SfsSettings};
pub use volume::SfsVolume;

use crate::device::Account;
use crate::fs::Durable;
use crate::label::Tally;
use crate::task::Task;
use crate::time::Time;
use files::Files;
use files::removal::free_inode;
use log::records::Record;
use memory::Shares;
use placement::{Future, Hint};
use std::sync::Arc;
use write_back::{Exclusive, Schedule, WriteBack, Writer};

/// Counters other than those of writes.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    segments_written: u64,
    segments_cleaned: u64,
    blocks_cleaned: u64,
    checkpoints: u64,
    syncs: u64,
    /// Blocks whose changes a sync wrote as log records.
    blocks_logged: u64,
}

/// Limits that hold while the volume is mounted.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Data blocks that fill a segment.
    segment_capacity: u32,
    /// Maximum dirty data blocks.
    dirty_blocks: usize,
    /// Maximum dirty metadata blocks between two checkpoints.
    metadata: usize,
    /// Free segments reserved for checkpoints and the cleaner.
    floor: u32,
    /// Segments written between checkpoints.
    log_segments: u32,
    /// Blocks available to files and their metadata.
    usable: u64,
    /// The memory shares.
    shares: Shares,
}

/// The caller that writes out dirty blocks or takes a checkpoint when memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    /// The change that exceeds the limit, at its end.
    AtOnce,
    /// The caller that shares the volume, after the change left its gate.
    ByCaller,
}

/// A mounted volume.
pub struct Sfs {
    settings: SfsSettings,
    /// The files as they are in memory.
    files: Files,
    /// The writer of their log.
    writer: Writer,
    schedule: Schedule,
    /// The caller that writes out dirty blocks when there are too many.
    relief: Relief,
    /// True if a call failed for lack of space that a checkpoint would free.
    wants_checkpoint: bool,
    /// Damage of the log found by the mount.
    damage: Vec<Finding>,
    /// Blocks that were received from the workload.
    received: Tally,
}

impl Sfs {
    /// Makes an empty volume on a medium, discarding its content, and mounts it.
    pub fn create(
        task: &Task<'_>,
        medium: Medium,
        settings: &SfsSettings,
        identity: Identity,
    ) -> Result<Sfs, OpenSfsError> {
        make::create(task, medium, settings, identity)
    }

    /// Mounts the volume on a medium. After a crash, it rolls the log forward, and takes a checkpoint; if it may only
    /// be read, in memory alone.
    ///
    /// If parts of the log are [damaged](Sfs::damage), what is whole is applied, in memory alone, and the volume can
    /// only be read.
    pub fn open(
        task: &Task<'_>,
        medium: Medium,
        settings: &SfsSettings,
        identity: Identity,
        read_only: bool,
    ) -> Result<Sfs, OpenSfsError> {
        recovery::open_whole(task, medium, settings, identity, read_only)
    }

    /// Mounts the volume on a medium, and goes on although parts of its log are [damaged](Sfs::damage): what could not
    /// be applied of it is lost then.
    pub fn open_despite_damage(
        task: &Task<'_>,
        medium: Medium,
        settings: &SfsSettings,
        identity: Identity,
    ) -> Result<Sfs, OpenSfsError> {
        recovery::open_damaged(task, medium, settings, identity)
    }

    /// Checks all that a mounted volume names: structures in memory against each other, and blocks on the media against
    /// their checksums. Changes nothing. An empty list: nothing is wrong. Fails only if a device does where no finding
    /// can stand for it.
    pub fn check(&mut self, task: &Task<'_>) -> Result<Vec<Finding>, SfsError> {
        recovery::check_mounted(task, self)
    }

    /// Bytes per block in a buffer: those of a block, or of a stamp.
    pub fn block_width(&self) -> usize {
        self.files.media.block_width()
    }

    /// True if the device below has a timing model.
    pub fn is_timed(&self) -> bool {
        self.files.media.is_timed()
    }

    /// Tells the grouping when the blocks of a file will die.
    pub fn foresee(&mut self, inode: InodeNumber, deaths: Vec<Vec<u32>>) {
        let future = Future { origin: self.files.clock.tick, deaths: Arc::new(deaths) };
        self.writer.grouping.foresee(inode.0, future);
    }

    /// True if the grouping needs to know future writes: see [`foresee`](Sfs::foresee).
    pub fn needs_future(&self) -> bool {
        self.settings.grouping.needs_future()
    }

    /// The lifetime that a placement hint of a workload states.
    pub fn hint_of_stream(&self, stream: u8) -> Hint {
        match self.settings.hints_are_lifetimes && stream > 0 {
            true => Hint::of_number(stream.saturating_add(1)),
            false => Hint::None,
        }
    }

    /// True if anything changed since the last checkpoint.
    pub fn is_changed(&self) -> bool {
        self.files.is_changed
    }

    /// The medium of the volume.
    #[cfg(test)]
    fn into_medium(self) -> crate::device::Medium {
        let media = Arc::clone(&self.files.media);
        drop(self);
        Arc::into_inner(media).expect("all other references to the media are dropped").into_medium()
    }

    /// The reason why the volume is read-only, if it is.
    pub fn read_only(&self) -> Option<&str> {
        self.writer.faults.read_only.as_deref()
    }

    /// Damage of the log found by the mount. The volume is then read-only, unless it was [opened despite
    /// that](Sfs::open_despite_damage).
    pub fn damage(&self) -> &[Finding] {
        &self.damage
    }

    /// True if the clock of hotness counts written blocks.
    pub fn counts_writes(&self) -> bool {
        self.files.clock.counts_writes
    }

    /// Adds a log record.
    fn log_record(&mut self, record: &Record) {
        self.files.records.add(record, self.writer.superblock.next_partial.get());
    }

    fn check_writable(&self) -> Result<(), SfsError> {
        self.writer.faults.check_writable()
    }

    /// Writes back a volume that is not shared.
    fn write_back<'t>(&'t mut self, task: &'t Task<'t>) -> WriteBack<'t, Exclusive<'t>> {
        Exclusive::write_back(self, task)
    }

    /// Makes a file and its names durable.
    pub fn sync_file(&mut self, task: &Task<'_>, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        self.write_back(task).sync_file(inode, what)
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.write_back(task).sync()
    }

    /// Writes out dirty blocks after a change, or takes a checkpoint, if they exceed the limits.
    fn relieve(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.relief == Relief::ByCaller {
            return Ok(());
        }
        self.write_back(task).relieve()
    }

    /// Fails unless `blocks` new blocks fit. Takes a checkpoint if they fit after it.
    fn check_space(&mut self, task: &Task<'_>, blocks: u64) -> Result<(), SfsError> {
        if self.writer.limits.fits(&self.files.metadata, blocks, 0) {
            return Ok(());
        }
        if !self.writer.limits.fits(&self.files.metadata, blocks, self.files.metadata.reclaimable()) {
            let free = self.writer.limits.usable.saturating_sub(self.files.metadata.used_blocks());
            return Err(SfsError::NoSpace { free, blocks: self.writer.limits.usable });
        }
        if self.relief == Relief::ByCaller {
            // A caller that shares the volume takes the checkpoint outside the gate, and repeats the call.
            self.wants_checkpoint = true;
            return Err(SfsError::NoSpace { free: 0, blocks: self.writer.limits.usable });
        }
        self.write_back(task).checkpoint_after(WriteBack::keep_room)
    }

    /// Total and free space.
    pub fn space(&self) -> Space {
        self.writer.limits.space(&self.files.metadata)
    }

    /// Memory in use now.
    pub fn memory_use(&mut self) -> MemoryUse {
        MemoryUse::of(&mut self.files)
    }

    /// Changes lost by a failed write or flush, if one failed.
    pub fn lost(&self) -> Option<&Lost> {
        self.writer.faults.lost.as_ref()
    }

    /// True if the previous mount lost changes and marked the volume.
    pub fn has_lost_before(&self) -> bool {
        self.writer.faults.has_lost_before
    }

    /// The identifier of the volume.
    pub fn number(&self) -> [u8; 16] {
        self.writer.superblock.identity
    }

    /// Does a bounded piece of background work that is due: writes out dirty blocks (every five seconds), takes a
    /// checkpoint (every thirty). Returns the time of the next work.
    pub fn work(&mut self, task: &Task<'_>) -> Result<Option<Time>, SfsError> {
        self.write_back(task).work()
    }

    /// Unmounts: takes a last checkpoint, marked as clean. Referenced inodes without a name are freed.
    ///
    /// Fails with the lost changes if a write or flush failed since the mount.
    pub fn unmount(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let stored = if self.writer.faults.read_only.is_none() { self.take_last_checkpoint(task) } else { Ok(()) };
        let closed = self.files.media.close(task);
        if let Some(lost) = &self.writer.faults.lost {
            return Err(SfsError::Lost(Box::new(lost.clone())));
        }
        stored?;
        Ok(closed?)
    }

    fn take_last_checkpoint(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        for inode in std::mem::take(&mut self.files.orphans) {
            free_inode(task, &mut self.files, inode)?;
        }
        let mut write_back = self.write_back(task);
        write_back.keep_room()?;
        write_back.checkpoint(true)
    }

    /// Counts what lives in the segments. Those that are free, open, empty or of metadata are left out.
    pub fn census(&self) -> Census {
        Census {
            tick: self.files.clock.tick,
            segments: self
                .files
                .segments
                .views()
                .filter(|view| !self.files.segments.get(view.number).is_metadata)
                .collect(),
            centres: self.writer.grouping.centres().to_vec(),
        }
    }

    /// Counters of the volume and of the stations below since the mount.
    pub fn account(&self) -> Account {
        let events = vec![
            ("segments written", self.writer.events.segments_written),
            ("segments cleaned", self.writer.events.segments_cleaned),
            ("blocks cleaned", self.writer.events.blocks_cleaned),
            ("checkpoints", self.writer.events.checkpoints),
            ("syncs", self.writer.events.syncs),
            ("blocks logged", self.writer.events.blocks_logged),
            ("damaged blocks", self.files.reads.damaged),
        ];
        Account {
            station: KIND.name,
            received: self.received.clone(),
            sent: self.writer.sent.clone(),
            read_blocks: self.files.reads.blocks,
            events,
            chosen: Some((&KIND, self.settings.chosen(&self.writer.limits, self.files.media.segment_blocks()))),
            map: Some(self.files.segments.unit_map(self.writer.limits.segment_capacity)),
            below: vec![self.files.media.account()],
            ..Account::default()
        }
    }
}
