//! Segment cleaning (section 3.6): live blocks of victims become dirty, and are grouped and written like any others.
//!
//! A victim is free only when all its blocks are stored elsewhere, and either a checkpoint no longer refers to it or
//! the log durably records the new addresses. So no block is overwritten before its new copy is written: the rule of
//! section 3.5 about the next allocated segment holds without a check, and a crash loses no block.

use super::{Turns, WriteBack};
use crate::crc;
use crate::fs::sfs::log::LogReader;
use crate::fs::sfs::media::format::{self, BlockBytes, BlockRecord, DIRTY, Kind};
use crate::fs::sfs::placement::cleaners::Greedy;
use crate::fs::sfs::placement::{Cleaner, SegmentView, victim};
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;

/// A live block of a victim.
#[derive(Clone, Copy)]
struct LiveBlock {
    address: u64,
    record: BlockRecord,
    /// Its checksum in the DAT.
    crc: u32,
}

/// The live blocks of a victim that are not in memory.
#[derive(Default)]
struct LiveBlocks {
    data: Vec<LiveBlock>,
    metadata: Vec<LiveBlock>,
}

impl<T: Turns> WriteBack<'_, T> {
    /// Cleans some segments at once. Returns false if no victim is worth it.
    pub(super) fn clean_some(&mut self) -> Result<bool, SfsError> {
        let mut any = false;
        for _ in 0..self.read_state(|sfs| sfs.settings.at_once.min(sfs.limits.shares.at_once))? {
            if any && self.read_state(|sfs| !sfs.has_room_for_cleaned())? {
                break;
            }
            let Some(victim) = self.read_state(Sfs::begin_cleaning)? else { break };
            self.clean(victim)?;
            any = true;
        }
        Ok(any)
    }

    /// Makes the live blocks of a segment dirty, so that they are written again. Reads them between two turns: no other
    /// task writes the log or frees a segment meanwhile. Blocks that die meanwhile are skipped.
    fn clean(&mut self, segment: u32) -> Result<(), SfsError> {
        let contents = self.contents_of(segment)?;
        let live = self.turn(|sfs, task| sfs.live_blocks(task, segment, &contents))?;
        for block in live.metadata {
            let mut bytes = format::zeroed();
            self.media.read(self.task, block.address, &mut bytes[..])?;
            self.turn(|sfs, task| sfs.dirty_cleaned_metadata(task, &block, bytes))?;
        }
        let (task, width) = (self.task, self.media.block_width());
        let mut done = task.now();
        let mut read = Vec::new();
        for run in live.data.chunk_by(|one, next| one.address + 1 == next.address) {
            let mut bytes = vec![0; run.len() * width];
            // All requests are issued at once.
            done = done.max(self.media.begin_read(task, run[0].address, &mut bytes)?);
            read.push((run, bytes));
        }
        task.wait_until(done);
        self.turn(|sfs, task| {
            let group = sfs.files.segments.get(segment).group;
            for (run, bytes) in &read {
                for (block, bytes) in run.iter().zip(bytes.chunks_exact(width)) {
                    sfs.buffer_cleaned(task, block, bytes, group)?;
                }
            }
            sfs.files.is_changed = true;
            Ok(())
        })
    }

    /// The blocks of a segment according to its summaries: index in the segment, and record.
    fn contents_of(&mut self, segment: u32) -> Result<Vec<(u32, BlockRecord)>, SfsError> {
        let (identity, in_memory) =
            self.read_state(|sfs| (sfs.superblock.identity, sfs.log.contents_of(segment).map(<[_]>::to_vec)))?;
        Ok(LogReader::new(self.task, &self.media, identity).contents(segment, in_memory.as_deref())?)
    }
}

impl Sfs {
    /// Selects a victim for cleaning.
    fn begin_cleaning(&mut self) -> Option<u32> {
        let segment = self.victim()?;
        let view: SegmentView = self.files.segments.view(segment, self.files.segments.get(segment));
        self.grouping.cleaning_begins(&view, self.files.clock.tick);
        self.files.segments.begin_cleaning(segment);
        self.counts.events.segments_cleaned += 1;
        Some(segment)
    }

    fn victim(&mut self) -> Option<u32> {
        let segments = &self.files.segments;
        let candidates = || segments.views().filter(|view| !segments.get(view.number).is_being_cleaned);
        // A policy may select nearly full segments, for their lower cost later. When the free segments hardly suffice
        // for a checkpoint, the immediate gain decides; otherwise the log could fill up although much of it is dead,
        // for example after repeated crashes, each of which leaves a nearly empty segment of metadata.
        let policy: &dyn Cleaner = match self.files.segments.free() < self.limits.of_checkpoint() {
            true => &Greedy,
            false => &*self.settings.cleaner,
        };
        let (lives, now) = (&self.files.segments.lives, self.files.clock.tick);
        let group = self.grouping.victim_group(&mut candidates(), now);
        let of_group =
            group.and_then(|group| victim::choose(policy, candidates().filter(|view| view.group == group), lives, now));
        of_group.or_else(|| victim::choose(policy, candidates(), lives, now))
    }

    /// Determines the live blocks of a victim. Metadata already in memory is marked dirty, for the next checkpoint.
    fn live_blocks(
        &mut self,
        task: &Task<'_>,
        segment: u32,
        contents: &[(u32, BlockRecord)],
    ) -> Result<LiveBlocks, SfsError> {
        let first = u64::from(segment) * u64::from(self.files.media.segment_blocks());
        let mut live = LiveBlocks::default();
        for (block, record) in contents {
            let (address, number) = (first + u64::from(*block), record.number.get());
            if !self.files.metadata.is_live_at(task, record, address)? {
                continue;
            }
            match Kind::of_number(record.kind) {
                Some(kind @ (Kind::Data | Kind::Metadata)) => {
                    let block = LiveBlock {
                        address,
                        record: *record,
                        crc: self.files.metadata.dat.get(task, number)?.crc.get(),
                    };
                    if kind == Kind::Data {
                        live.data.push(block);
                    } else if self.files.metadata.blocks.used(number).is_some() {
                        self.files.metadata_block_mut(task, number, record.inode.get(), record.place.get())?;
                        self.counts.events.blocks_cleaned += 1;
                    } else {
                        live.metadata.push(block);
                    }
                }
                Some(kind) => {
                    self.files.is_changed = true;
                    self.files.metadata.paged(kind).mark_dirty(task, number)?;
                    self.counts.events.blocks_cleaned += 1;
                }
                None => {}
            }
        }
        Ok(live)
    }

    /// Marks a metadata block that was read as dirty, for the next checkpoint.
    fn dirty_cleaned_metadata(
        &mut self,
        task: &Task<'_>,
        block: &LiveBlock,
        bytes: Box<BlockBytes>,
    ) -> Result<(), SfsError> {
        let record = &block.record;
        let number = record.number.get();
        if !self.files.metadata.is_live_at(task, record, block.address)? {
            return Ok(());
        }
        if self.files.metadata.blocks.used(number).is_none() {
            self.files.reads.blocks += 1;
            if crc::crc32c(&bytes[..]) != block.crc {
                // No caller receives this error.
                self.files.reads.damaged += 1;
                return Ok(());
            }
            self.files.metadata.blocks.insert(number, record.inode.get(), record.place.get(), bytes);
        }
        self.files.metadata_block_mut(task, number, record.inode.get(), record.place.get())?;
        self.counts.events.blocks_cleaned += 1;
        Ok(())
    }

    /// Makes a data block that was read dirty.
    fn buffer_cleaned(&mut self, task: &Task<'_>, block: &LiveBlock, bytes: &[u8], group: u8) -> Result<(), SfsError> {
        self.files.reads.blocks += 1;
        let record = &block.record;
        if !self.files.metadata.is_live_at(task, record, block.address)? {
            return Ok(());
        }
        let number = record.number.get();
        let mut entry = self.files.metadata.dat.get(task, number)?;
        let slot = self.files.dirty_blocks.add_cleaned(number, record.inode.get(), record.place.get(), group);
        self.files.dirty_blocks.load(slot, bytes);
        let waits = self.files.dirty_blocks.slot_mut(slot);
        waits.before = block.address;
        waits.crc_before = entry.crc.get();
        entry.address = (DIRTY | u64::from(slot)).into();
        self.counts.events.blocks_cleaned += 1;
        self.files.metadata.dat.set(task, number, &entry)
    }

    /// Checks that emptied segments, not written since the mount, hold no live blocks before they are freed.
    pub(in crate::fs::sfs) fn check_emptied(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.files.media.holds_stamps() {
            return Ok(());
        }
        for segment in self.files.segments.take_unchecked() {
            let first = u64::from(segment) * u64::from(self.files.media.segment_blocks());
            for (block, record) in self.log_reader(task).contents(segment, self.log.contents_of(segment))? {
                if self.files.metadata.is_live_at(task, &record, first + u64::from(block))? {
                    let why = format!("it says 0 blocks are live, and block {block} is");
                    return Err(SfsError::Damaged { what: format!("the usage of segment {segment}"), why });
                }
            }
        }
        Ok(())
    }
}
