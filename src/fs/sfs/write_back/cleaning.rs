//! Segment cleaning (section 3.6): live blocks of victims become dirty, and are grouped and written like any others.
//!
//! A victim is free only when all its blocks are stored elsewhere, and either a checkpoint no longer refers to it or
//! the log durably records the new addresses. So no block is overwritten before its new copy is written: the rule of
//! section 3.5 about the next allocated segment holds without a check, and a crash loses no block.

use super::room::Room;
use super::writer::Writer;
use super::{Turns, WriteBack};
use crate::crc;
use crate::fs::sfs::files::Files;
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

/// Cleans some segments at once. Returns false if no victim is worth it.
pub(super) fn clean_some<T: Turns>(write_back: &mut WriteBack<'_, T>) -> Result<bool, SfsError> {
    let (mut any, task) = (false, write_back.task);
    for _ in 0..write_back.read_state(|sfs| sfs.settings.at_once.min(sfs.writer.limits.shares.at_once))? {
        if any && write_back.read_state(|sfs| !Room::of(sfs).has_room_for_cleaned())? {
            break;
        }
        let Some(victim) = write_back.read_state(|sfs| Cleaning::of(task, sfs).begin())? else { break };
        clean(write_back, victim)?;
        any = true;
    }
    Ok(any)
}

/// Makes the live blocks of a segment dirty, so that they are written again. Reads them between two turns: no other
/// task writes the log or frees a segment meanwhile. Blocks that die meanwhile are skipped.
fn clean<T: Turns>(write_back: &mut WriteBack<'_, T>, segment: u32) -> Result<(), SfsError> {
    let contents = contents_of(write_back, segment)?;
    let live = write_back.turn(|sfs, task| Cleaning::of(task, sfs).live_blocks(segment, &contents))?;
    for block in live.metadata {
        let mut bytes = format::zeroed();
        write_back.media.read(write_back.task, block.address, &mut bytes[..])?;
        write_back.turn(|sfs, task| Cleaning::of(task, sfs).dirty_metadata(&block, bytes))?;
    }
    let (task, width) = (write_back.task, write_back.media.block_width());
    let mut done = task.now();
    let mut read = Vec::new();
    for run in live.data.chunk_by(|one, next| one.address + 1 == next.address) {
        let mut bytes = vec![0; run.len() * width];
        // All requests are issued at once.
        done = done.max(write_back.media.begin_read(task, run[0].address, &mut bytes)?);
        read.push((run, bytes));
    }
    task.wait_until(done);
    write_back.turn(|sfs, task| {
        let group = sfs.files.segments.get(segment).group;
        for (run, bytes) in &read {
            for (block, bytes) in run.iter().zip(bytes.chunks_exact(width)) {
                Cleaning::of(task, sfs).buffer(block, bytes, group)?;
            }
        }
        sfs.files.is_changed = true;
        Ok(())
    })
}

/// The blocks of a segment according to its summaries: index in the segment, and record.
fn contents_of<T: Turns>(write_back: &mut WriteBack<'_, T>, segment: u32) -> Result<Vec<(u32, BlockRecord)>, SfsError> {
    let (identity, in_memory) = write_back
        .read_state(|sfs| (sfs.writer.superblock.identity, sfs.writer.log.contents_of(segment).map(<[_]>::to_vec)))?;
    Ok(LogReader::new(write_back.task, &write_back.media, identity).contents(segment, in_memory.as_deref())?)
}

/// The cleaner.
struct Cleaning<'c> {
    task: &'c Task<'c>,
    files: &'c mut Files,
    writer: &'c mut Writer,
    policy: &'c dyn Cleaner,
}

impl<'c> Cleaning<'c> {
    /// Of this volume.
    fn of(task: &'c Task<'c>, volume: &'c mut Sfs) -> Cleaning<'c> {
        let Sfs { files, writer, settings, .. } = volume;
        Cleaning { task, files, writer, policy: &*settings.cleaner }
    }

    /// Selects a victim for cleaning.
    fn begin(&mut self) -> Option<u32> {
        let segment = self.victim()?;
        let view: SegmentView = self.files.segments.view(segment, self.files.segments.get(segment));
        self.writer.grouping.cleaning_begins(&view, self.files.clock.tick);
        self.files.segments.begin_cleaning(segment);
        self.writer.events.segments_cleaned += 1;
        Some(segment)
    }

    fn victim(&mut self) -> Option<u32> {
        let segments = &self.files.segments;
        let candidates = || segments.views().filter(|view| !segments.get(view.number).is_being_cleaned);
        // A policy may select nearly full segments, for their lower cost later. When the free segments hardly suffice
        // for a checkpoint, the immediate gain decides; otherwise the log could fill up although much of it is dead,
        // for example after repeated crashes, each of which leaves a nearly empty segment of metadata.
        let policy: &dyn Cleaner = match self.files.segments.free() < self.writer.limits.of_checkpoint() {
            true => &Greedy,
            false => self.policy,
        };
        let (lives, now) = (&self.files.segments.lives, self.files.clock.tick);
        let group = self.writer.grouping.victim_group(&mut candidates(), now);
        let of_group =
            group.and_then(|group| victim::choose(policy, candidates().filter(|view| view.group == group), lives, now));
        of_group.or_else(|| victim::choose(policy, candidates(), lives, now))
    }

    /// Determines the live blocks of a victim. Metadata already in memory is marked dirty, for the next checkpoint.
    fn live_blocks(&mut self, segment: u32, contents: &[(u32, BlockRecord)]) -> Result<LiveBlocks, SfsError> {
        let first = u64::from(segment) * u64::from(self.files.media.segment_blocks());
        let mut live = LiveBlocks::default();
        for (block, record) in contents {
            let (address, number) = (first + u64::from(*block), record.number.get());
            if !self.files.metadata.is_live_at(self.task, record, address)? {
                continue;
            }
            match Kind::of_number(record.kind) {
                Some(kind @ (Kind::Data | Kind::Metadata)) => {
                    let block = LiveBlock {
                        address,
                        record: *record,
                        crc: self.files.metadata.dat.get(self.task, number)?.crc.get(),
                    };
                    if kind == Kind::Data {
                        live.data.push(block);
                    } else if self.files.metadata.blocks.used(number).is_some() {
                        self.files.metadata_block_mut(self.task, number, record.inode.get(), record.place.get())?;
                        self.writer.events.blocks_cleaned += 1;
                    } else {
                        live.metadata.push(block);
                    }
                }
                Some(kind) => {
                    self.files.is_changed = true;
                    self.files.metadata.paged(kind).mark_dirty(self.task, number)?;
                    self.writer.events.blocks_cleaned += 1;
                }
                None => {}
            }
        }
        Ok(live)
    }

    /// Marks a metadata block that was read as dirty, for the next checkpoint.
    fn dirty_metadata(&mut self, block: &LiveBlock, bytes: Box<BlockBytes>) -> Result<(), SfsError> {
        let record = &block.record;
        let number = record.number.get();
        if !self.files.metadata.is_live_at(self.task, record, block.address)? {
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
        self.files.metadata_block_mut(self.task, number, record.inode.get(), record.place.get())?;
        self.writer.events.blocks_cleaned += 1;
        Ok(())
    }

    /// Makes a data block that was read dirty.
    fn buffer(&mut self, block: &LiveBlock, bytes: &[u8], group: u8) -> Result<(), SfsError> {
        self.files.reads.blocks += 1;
        let record = &block.record;
        if !self.files.metadata.is_live_at(self.task, record, block.address)? {
            return Ok(());
        }
        let number = record.number.get();
        let mut entry = self.files.metadata.dat.get(self.task, number)?;
        let slot = self.files.dirty_blocks.add_cleaned(number, record.inode.get(), record.place.get(), group);
        self.files.dirty_blocks.load(slot, bytes);
        let waits = self.files.dirty_blocks.slot_mut(slot);
        waits.before = block.address;
        waits.crc_before = entry.crc.get();
        entry.address = (DIRTY | u64::from(slot)).into();
        self.writer.events.blocks_cleaned += 1;
        self.files.metadata.dat.set(self.task, number, &entry)
    }
}
