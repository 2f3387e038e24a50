//! SFS: the log-structured file system that groups blocks by hotness (Min, Kim, Cho, Lee, Eom: "SFS: Random Write
//! Considered Harmful in Solid State Drives", FAST 2012).
//!
//! Everything is written in segments, one behind the other. Buffered blocks are sorted into groups of like hotness, and a
//! segment is filled from one group; a checkpoint makes the whole durable and writes a superblock; between two of them an
//! fsync adds to the log, which a mount after a crash rolls forward; when few segments are free, others are cleaned.
//!
//! Rooms, each of which imports only those above it:
//!
//! | room | what it is |
//! |---|---|
//! | `media` | what lies on the device, byte by byte, and what must hold of it; the device, cut into segments |
//! | [`placement`] | which group a block is written in, and which segment is cleaned |
//! | `metadata` | the metadata files: pages under a root in the superblock |
//! | `log` | segments, and partial segments: how they are written and read |
//! | `files` | files and names: the calls |
//! | `write_back` | buffered blocks and metadata go to the log, segments become free |
//! | `recovery` | opening a volume, strict or lenient; roll forward, survey, check, repair |
//!
//! | file | what it is |
//! |---|---|
//! | `settings` | the options |
//! | `station` | sfs as a station of a path |
//! | `volume` | a mounted volume that threads share |
//! | `make` | mkfs |
//! | `memory`, `space` | how much memory, and how much of the device, each part may take |
//! | `failure` | a failed write or flush, and what it costs |
//! | `segment_table` | what lives in the segments, for people to look at |
//! | `error` | why a call fails |
//!
//! With stamps instead of bytes the code is the same; metadata then stays in memory, as a stamp cannot be read back.

mod error;
mod failure;
mod files;
mod log;
mod make;
mod media;
mod memory;
mod metadata;
pub mod placement;
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
pub use settings::{KIND, SfsSettings};
pub use volume::SfsVolume;

use crate::device::Account;
use crate::label::Tally;
use crate::task::Task;
use crate::time::Time;
use failure::Faults;
use files::inodes::Inodes;
use files::waiting::Waiting;
use log::Log;
use media::Media;
use media::format::Superblock;
use memory::Shares;
use metadata::MetadataFiles;
use metadata::paged::PagedFile;
use placement::{Grouping, Tick};
use std::collections::BTreeSet;
use std::sync::Arc;
use write_back::Discards;

/// What is counted beside writes.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    segments_written: u64,
    segments_cleaned: u64,
    blocks_cleaned: u64,
    checkpoints: u64,
    syncs: u64,
    damaged_blocks: u64,
}

/// Numbers that hold for a volume as long as it is mounted.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Blocks of files that fill a segment.
    segment_capacity: u32,
    /// Blocks that may wait.
    waiting: usize,
    /// Blocks of metadata that may be changed between two checkpoints.
    metadata: usize,
    /// Free segments below which only a checkpoint and the cleaner may take one.
    floor: u32,
    /// Blocks that files and their metadata can have.
    usable: u64,
    /// What each part may take of memory.
    shares: Shares,
}

/// The one that writes out buffered blocks, or takes a checkpoint, when there is too much in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    /// The change after which there is too much, at its end.
    AtOnce,
    /// The caller that shares the volume, once the change has left its gate.
    ByCaller,
}

/// What is counted.
#[derive(Default)]
struct Counts {
    received: Tally,
    sent: Tally,
    read_blocks: u64,
    events: Events,
}

/// A mounted volume.
pub struct Sfs {
    settings: SfsSettings,
    limits: Limits,
    media: Arc<Media>,
    superblock: Superblock,
    log: Log,
    metadata: MetadataFiles,
    /// Inodes in memory.
    inodes: Inodes,
    /// Buffered blocks of files.
    waiting: Waiting,
    /// Files that took the name of another since the log was last told: they go with it, so that a crash does not leave
    /// an empty one.
    renamed: BTreeSet<u64>,
    /// Inodes without a name that are held.
    orphans: BTreeSet<u64>,
    grouping: Box<dyn Grouping>,
    /// The time on the wall clock when a task's was zero.
    origin: Timestamp,
    tick: Tick,
    next_flush: Time,
    next_checkpoint: Time,
    discards: Discards,
    /// The caller or the change itself writes out buffered blocks when there are too many.
    relief: Relief,
    /// True if a call failed for want of space that a checkpoint gives back.
    wants_checkpoint: bool,
    /// True if anything changed since the last checkpoint.
    is_changed: bool,
    faults: Faults,
    /// What the mount has found damaged in the log.
    damage: Vec<Finding>,
    counts: Counts,
}

impl Sfs {
    /// Bytes of a buffer that are a block: those of a block, or of a stamp.
    pub fn block_width(&self) -> usize {
        self.media.block_width()
    }

    /// Whether the device below has a timing model.
    pub fn is_timed(&self) -> bool {
        self.media.is_timed()
    }

    /// True if something has changed since the last checkpoint.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The medium that it lies on.
    #[cfg(test)]
    fn into_medium(self) -> crate::device::Medium {
        let media = Arc::clone(&self.media);
        drop(self);
        Arc::into_inner(media).expect("its parts are dropped").into_medium()
    }

    /// Why the volume can only be read, if so.
    pub fn read_only(&self) -> Option<&str> {
        self.faults.read_only.as_deref()
    }

    /// What the mount has found damaged. Then it can only be read, unless it was
    /// [opened despite that](Sfs::open_despite_damage).
    pub fn damage(&self) -> &[Finding] {
        &self.damage
    }

    /// Blocks of all segments.
    fn log_blocks(&self) -> u64 {
        self.media.log_blocks()
    }

    /// The time on the wall clock.
    fn wall(&self, task: &Task<'_>) -> Timestamp {
        Timestamp(self.origin.0.saturating_add(i64::try_from(task.now().0).unwrap_or(i64::MAX)))
    }

    /// A block is written: the clock of hotness goes on.
    fn tick(&mut self, task: &Task<'_>) -> Tick {
        let passed = match self.settings.counts_writes || !self.media.is_timed() && self.origin.0 == 0 {
            true => 0,
            // Since the volume was made, so that it goes on over mounts.
            false => (self.wall(task).0.saturating_sub(self.superblock.created.get())).max(0) as u64 / 1000,
        };
        self.tick = Tick((self.tick.0 + 1).max(passed));
        self.tick
    }

    fn check_writable(&self) -> Result<(), SfsError> {
        match &self.faults.read_only {
            Some(why) => Err(SfsError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Does a bounded piece of what is due in the background now: writes buffered blocks (every five seconds), takes a
    /// checkpoint (every thirty). Returns the time at which there will be more to do.
    pub fn work(&mut self, task: &Task<'_>) -> Result<Option<Time>, SfsError> {
        self.write_back(task).work()
    }

    /// Ends in good order: a last checkpoint, marked as an unmount. Inodes that are held without a name are freed.
    ///
    /// Fails if a write or flush has failed since the mount, and says what that has cost.
    pub fn unmount(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let stored = if self.faults.read_only.is_none() { self.store_for_good(task) } else { Ok(()) };
        let closed = self.media.close(task);
        if let Some(lost) = &self.faults.lost {
            return Err(SfsError::Lost(Box::new(lost.clone())));
        }
        stored?;
        Ok(closed?)
    }

    fn store_for_good(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        for inode in std::mem::take(&mut self.orphans) {
            self.free_inode(task, inode)?;
        }
        let mut write_back = self.write_back(task);
        write_back.keep_room()?;
        write_back.checkpoint(true)
    }

    /// What it, and what is below it, has counted since it was mounted.
    pub fn account(&self) -> Account {
        let events = vec![
            ("segments written", self.counts.events.segments_written),
            ("segments cleaned", self.counts.events.segments_cleaned),
            ("blocks cleaned", self.counts.events.blocks_cleaned),
            ("checkpoints", self.counts.events.checkpoints),
            ("syncs", self.counts.events.syncs),
            ("damaged blocks", self.counts.events.damaged_blocks),
        ];
        Account {
            station: KIND.name,
            received: self.counts.received.clone(),
            sent: self.counts.sent.clone(),
            read_blocks: self.counts.read_blocks,
            events,
            below: vec![self.media.account()],
            ..Account::default()
        }
    }
}
