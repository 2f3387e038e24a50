//! dm-zoned: a block device on zones, in the kernel's on-disk format (version 2) and with the kernel's policies.
//!
//! The address space is divided into chunks of the size of a zone. A chunk has a data zone and, if needed, a buffer
//! zone; each block is valid in one of them or in none. First writes go to a conventional zone; reclaim moves the least
//! recently used chunks to sequential zones, with holes filled; a write that the sequential zone cannot take goes to a
//! buffer.
//!
//! | file | role |
//! |---|---|
//! | `settings` | the options |
//! | `media` | the devices as one address space of zones |
//! | `metadata` | map and bitmaps, in memory and as blocks |
//! | `superblock` | the super block, byte by byte |
//! | `zones`, `lru` | the state of each zone: free, reserved, mapped; the order of use |
//! | `format` | mkfs |
//! | `open` | selects and validates a metadata set |
//! | `commit` | commits changed metadata to both sets |
//! | `place` | selects the zone of a write |
//! | `victim` | selects the zone to reclaim |
//! | `reclaim` | the reclaim worker |
//! | `room` | frees a zone for a write that waits |
//! | `lost` | lost blocks and worn-out zones |
//! | `join` | merges the two zones of a chunk at once |
//! | `journal` | zones reserved for the file system's journal |
//! | `check` | fsck and inspect |
//! | `station` | dm-zoned in a path: its devices, mkfs and open |
//! | `device` | the volume behind its lock, as a block device |
//! | `error` | errors of making and opening a volume |
//!
//! It guarantees more than the kernel: a freed zone is written again only after the metadata without it is committed,
//! data is flushed before the map that names it, and opening makes the older metadata set equal to the newer one before
//! anything else is written.

mod check;
mod commit;
mod device;
mod error;
mod format;
mod join;
mod journal;
mod lost;
mod lru;
mod media;
mod metadata;
mod open;
mod place;
mod reclaim;
mod room;
mod settings;
pub(crate) mod station;
mod superblock;
mod victim;
mod zones;

pub use check::{ChunkSurvey, Finding, Remedy, Survey, ZoneSurvey, check, repair, survey};
pub use device::DmZoned;
pub use error::ZonedVolumeError;
pub use format::{Uuids, mkfs};
pub use media::{Devices, ZoneClass, ZoneId};
pub use metadata::Entry;
pub use settings::{KIND, ZonedSettings};
pub use superblock::{Identity, SuperBlock};
pub use zones::Use;

use crate::device::{Account, DeviceError, Extent, Lba, Warnings, check_range};
use crate::label::{Label, Provenance, Tally};
use crate::time::Time;
use journal::Journals;
use media::Media;
use metadata::Metadata;
use reclaim::Worker;
use std::collections::BTreeSet;
use zones::Zones;

/// The two metadata sets on the media.
#[derive(Debug)]
struct Sets {
    /// The common fields of both super blocks.
    superblock: SuperBlock,
    /// The first zones of the sets.
    first_zones: [u32; 2],
    /// The newer set, which is never written first.
    primary: usize,
}

/// Counters beyond reads and writes.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    reclaimed_zones: u64,
    interrupted: u64,
    emptied: u64,
    moved: u64,
    merged_into_buffer: u64,
    merged_into_data: u64,
    commits: u64,
    resets: u64,
    waits: u64,
    /// Blocks of zeros written for holes, so that later blocks keep their offsets.
    zero_filled: u64,
    journal_zones_taken: u64,
    journal_blocks_elsewhere: u64,
}

/// A volume, used by one thread at a time.
struct Volume {
    media: Media,
    metadata: Metadata,
    zones: Zones,
    sets: Sets,
    settings: ZonedSettings,
    worker: Worker,
    journals: Journals,
    /// The provenance of each block of a chunk, as far as it was written since the volume was opened. The format on the
    /// media has no place for it.
    provenances: Vec<Option<Box<[Provenance]>>>,
    received: Tally,
    read_blocks: u64,
    events: Events,
    last_commit: Time,
    /// The reason why the volume is read-only: a commit failed, and the state of the media is unknown.
    broken: Option<String>,
    warnings: Warnings,
    /// Sequential data zones with lost blocks: valid beyond the write pointer.
    lost: BTreeSet<ZoneId>,
}

impl Volume {
    /// Makes a new volume and opens it.
    fn create(devices: Devices, settings: &ZonedSettings, seed: u64) -> Result<Volume, ZonedVolumeError> {
        let numbers = Uuids::from_seed(seed, devices.zoned.len());
        let (media, sets, metadata) = format::format(devices, settings, &numbers)?;
        let uses = open::uses(&media, &sets, &metadata)?;
        Ok(Volume::assemble(media, sets, metadata, uses, settings))
    }

    /// Opens a volume. A metadata set that is older than the other, or damaged, is made equal to it before this
    /// returns.
    ///
    /// Fails if both are damaged, if the devices do not belong to one volume, and if the map is inconsistent.
    fn open(devices: Devices, settings: &ZonedSettings) -> Result<Volume, ZonedVolumeError> {
        let opened = open::open(Media::new(devices)?)?;
        let mut volume = Volume::assemble(opened.media, opened.sets, opened.metadata, opened.uses, settings);
        volume.warnings = opened.warnings;
        volume.warn_of_worn_out_zones();
        volume.recover(opened.are_equal)?;
        Ok(volume)
    }

    fn assemble(media: Media, sets: Sets, metadata: Metadata, uses: Vec<Use>, settings: &ZonedSettings) -> Volume {
        let zones = Zones::new(&media, uses, sets.superblock.reserved_zones);
        let chunks = metadata.shape.chunks as usize;
        Volume {
            media,
            metadata,
            zones,
            sets,
            settings: settings.clone(),
            worker: Worker::default(),
            journals: Journals::new(chunks),
            provenances: vec![None; chunks],
            received: Tally::default(),
            read_blocks: 0,
            events: Events::default(),
            last_commit: Time::ZERO,
            broken: None,
            warnings: Warnings::default(),
            lost: BTreeSet::new(),
        }
    }

    /// The status line that the kernel's device mapper prints for the same state.
    fn status(&self) -> String {
        self.zones.status(self.metadata.shape.chunks, self.media.zone_blocks)
    }

    /// Splits a request into chunks: the chunk, the first block in it, and the number of blocks.
    fn parts(&self, first: Lba, count: u64) -> impl Iterator<Item = (u32, u32, u32)> + use<> {
        let zone_blocks = u64::from(self.media.zone_blocks);
        let (mut next, end) = (first.0, first.0 + count);
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let within = next % zone_blocks;
                let part = (zone_blocks - within).min(end - next);
                let chunk = next / zone_blocks;
                next += part;
                (chunk as u32, within as u32, part as u32)
            })
        })
    }

    /// The zone in which the block at `from` is valid, and the end of the run of blocks for which it is the same, at
    /// most `end`.
    #[inline]
    fn locate(&self, entry: Entry, from: u32, end: u32) -> (Option<ZoneId>, u32) {
        let Some(data) = entry.data.some() else { return (None, end) };
        let (is_valid, data_end) = self.metadata.run(data, from, end);
        if is_valid {
            return (Some(data), data_end);
        }
        let Some(buffer) = entry.buffer.some() else { return (None, data_end) };
        let (is_valid, end) = self.metadata.run(buffer, from, data_end);
        (is_valid.then_some(buffer), end)
    }

    /// The provenance of a block of a chunk, as far as it is known, and the end of the run of blocks with the same
    /// provenance, at most `end`.
    fn provenance_run(&self, chunk: u32, from: u32, end: u32) -> (Provenance, u32) {
        let Some(known) = &self.provenances[chunk as usize] else { return (Provenance::UNKNOWN, end) };
        let provenance = known[from as usize];
        let same = known[from as usize..end as usize].iter().take_while(|other| **other == provenance).count();
        (provenance, from + same as u32)
    }

    fn record_provenance(&mut self, chunk: u32, from: u32, end: u32, provenance: Provenance) {
        let known = &mut self.provenances[chunk as usize];
        if known.is_none() && provenance == Provenance::UNKNOWN {
            return;
        }
        let blocks = self.media.zone_blocks as usize;
        let known = known.get_or_insert_with(|| vec![Provenance::UNKNOWN; blocks].into());
        known[from as usize..end as usize].fill(provenance);
    }

    fn check_writable(&self) -> Result<(), DeviceError> {
        match &self.broken {
            Some(why) => Err(DeviceError::ReadOnly { what: "the volume".to_string(), why: why.clone() }),
            None => Ok(()),
        }
    }

    fn read_part(
        &mut self,
        (chunk, from, count): (u32, u32, u32),
        buffer: &mut [u8],
        at: Time,
    ) -> Result<Time, DeviceError> {
        self.touch(chunk, at);
        let entry = self.metadata.entry(chunk);
        let (mut block, end, mut done) = (from, from + count, at);
        while block < end {
            let (zone, run_end) = self.locate(entry, block, end);
            let width = self.media.width;
            let part = &mut buffer[(block - from) as usize * width..(run_end - from) as usize * width];
            match zone {
                Some(zone) => {
                    self.check_not_lost(zone, run_end)?;
                    done = done.max(self.media.read(zone, block, part, at)?);
                }
                None => part.fill(0),
            }
            block = run_end;
        }
        if let Some(data) = entry.data.some() {
            self.zones.keep_busy(data, done);
        }
        Ok(done)
    }

    fn discard_part(&mut self, (chunk, from, count): (u32, u32, u32), at: Time) -> Result<Time, DeviceError> {
        let at = self.begin_change(chunk, at)?;
        let Entry { data, buffer } = self.metadata.entry(chunk);
        for zone in [data, buffer].into_iter().filter_map(ZoneId::some) {
            self.metadata.invalidate(zone, from, from + count);
        }
        self.record_provenance(chunk, from, from + count, Provenance::UNKNOWN);
        self.drop_empty(chunk);
        Ok(at)
    }
}

/// The requests of [`BlockDevice`](crate::device::BlockDevice), for [`DmZoned`].
impl Volume {
    fn blocks(&self) -> u64 {
        u64::from(self.metadata.shape.chunks) * u64::from(self.media.zone_blocks)
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let width = self.media.width;
        let count = crate::device::blocks_in(buffer.len(), width);
        check_range(first, count, self.blocks())?;
        self.read_blocks += count;
        let (mut done, mut rest) = (at, buffer);
        for part in self.parts(first, count) {
            let (bytes, after) = rest.split_at_mut(part.2 as usize * width);
            done = done.max(self.read_part(part, bytes, at)?);
            rest = after;
        }
        Ok(done)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let width = self.media.width;
        let count = crate::device::blocks_in(buffer.len(), width);
        check_range(first, count, self.blocks())?;
        self.check_writable()?;
        let (mut done, mut rest) = (at, buffer);
        for part in self.parts(first, count) {
            let (bytes, after) = rest.split_at(part.2 as usize * width);
            done = done.max(self.write_part(part, bytes, label, at)?);
            self.received.add(label, u64::from(part.2));
            rest = after;
        }
        Ok(done)
    }

    fn discard(&mut self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.blocks())?;
        self.check_writable()?;
        let mut done = at;
        for part in self.parts(first, blocks) {
            done = done.max(self.discard_part(part, at)?);
        }
        Ok(done)
    }

    fn extent(&mut self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.blocks())?;
        let mut found: Option<Extent> = None;
        for (chunk, from, count) in self.parts(first, blocks) {
            let entry = self.metadata.entry(chunk);
            let (mut block, end) = (from, from + count);
            while block < end {
                let (zone, run_end) = self.locate(entry, block, end);
                let extent = found.get_or_insert(Extent { blocks: 0, is_stored: zone.is_some() });
                if extent.is_stored != zone.is_some() {
                    return Ok(*extent);
                }
                extent.blocks += u64::from(run_end - block);
                block = run_end;
            }
        }
        Ok(found.unwrap_or(Extent { blocks, is_stored: false }))
    }

    fn close(&mut self, at: Time) -> Result<Time, DeviceError> {
        let at = self.merge_journal_zones(at)?;
        self.commit(at)
    }

    fn account(&self) -> Account {
        let events = &self.events;
        Account {
            station: "dm-zoned",
            received: self.received.clone(),
            sent: self.media.sent().clone(),
            covered: None,
            buffer: None,
            cover: None,
            write_requests: None,
            read_blocks: self.read_blocks,
            states: &[],
            events: vec![
                ("reclaimed_zones", events.reclaimed_zones),
                ("reclaims_of_empty_zones", events.emptied),
                ("reclaims_to_a_sequential_zone", events.moved),
                ("reclaims_into_the_buffer", events.merged_into_buffer),
                ("reclaims_into_the_data_zone", events.merged_into_data),
                ("reclaims_interrupted", events.interrupted),
                ("writes_that_waited_for_reclaim", events.waits),
                ("metadata_commits", events.commits),
                ("zone_resets", events.resets),
                ("zero_filled_blocks", events.zero_filled),
                ("journal_zones_taken", events.journal_zones_taken),
                ("journal_blocks_outside_their_zones", events.journal_blocks_elsewhere),
            ],
            chosen: None,
            warnings: self.warnings.clone(),
            flash: None,
            drive: None,
            placement: None,
            map: None,
            below: self.media.accounts(),
        }
    }
}
