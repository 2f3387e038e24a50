//! Segment cleaning (section 3.6): the live blocks of victims wait to be written like any others, and are grouped anew.
//!
//! A victim is free only when all its blocks lie elsewhere, and either a checkpoint no longer names it or the log tells
//! durably where they went. So no block is overwritten before it is written anew: the rule of section 3.5 about the
//! next segment that is allocated holds without looking, and a crash finds every block.

use super::checkpoint::WrittenCheckpoint;
use super::format::{BlockRecord, Kind, WAITS};
use super::placement::cleaners::Greedy;
use super::placement::{Cleaner, SegmentView, victim};
use super::segments::Segment;
use super::{Sfs, SfsError};
use crate::task::Task;
use std::collections::BTreeSet;

/// Whether an emptied segment is free once the log is told: it holds nothing of the log since the last checkpoint, and
/// no metadata. Rolling forward begins with that checkpoint's directories and maps, and reads them, even those of files
/// that the log says are gone.
fn is_freed_by_log(segment: &Segment, epoch: u64) -> bool {
    segment.epoch < epoch && !segment.is_metadata
}

/// Makes room for a checkpoint.
type MakesRoom = fn(&mut Sfs, &Task<'_>) -> Result<(), SfsError>;

impl Sfs {
    /// Cleans until enough segments are free for what waits, and as many beside them as there should always be.
    pub(super) fn make_room(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let epoch = self.epoch;
        for _ in 0..4 * self.segments.count() {
            let is_plenty = self.expected_free() >= self.low();
            // A call that has waited for one checkpoint leaves the rest to the next calls.
            if self.has_room() && (is_plenty || self.epoch != epoch) {
                break;
            }
            let is_too_much = self.waiting.len() >= 2 * self.limits.waiting
                || self.metadata.dirty() >= self.limits.metadata
                || self.changed_bytes() > self.limits.shares.changed;
            if is_plenty || is_too_much {
                self.gain(task)?;
                if is_plenty {
                    break;
                }
            } else if !self.clean_some(task)? {
                if !self.has_room() {
                    self.gain(task)?;
                }
                break;
            }
        }
        Ok(())
    }

    /// Before a checkpoint that is taken for another reason than that there is too little room: calls that change
    /// little, each of them synced, must not use up what is kept free.
    pub(super) fn keep_room(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.segments.free() < self.limits.floor / 2 { self.make_room(task) } else { Ok(()) }
    }

    /// Takes a checkpoint for which room is made, unless making room took one: that has stored all that was changed.
    pub(super) fn checkpoint_behind(&mut self, task: &Task<'_>, makes_room: MakesRoom) -> Result<(), SfsError> {
        match self.begin_checkpoint_behind(task, makes_room)? {
            Some(written) => {
                let stored = written.store(task, &self.media);
                self.end_checkpoint(task, stored)
            }
            None => Ok(()),
        }
    }

    /// Writes such a checkpoint.
    pub(super) fn begin_checkpoint_behind(
        &mut self,
        task: &Task<'_>,
        makes_room: MakesRoom,
    ) -> Result<Option<WrittenCheckpoint>, SfsError> {
        let epoch = self.epoch;
        makes_room(self, task)?;
        if self.epoch == epoch { self.begin_checkpoint(task, false).map(Some) } else { Ok(None) }
    }

    /// Whether what waits can be written, and a checkpoint behind it.
    fn has_room(&self) -> bool {
        self.segments.free() >= self.limits.floor + self.segments_to_write()
    }

    /// Makes segments free whose blocks were taken up.
    fn gain(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let (free, waited) = (self.segments.free(), self.waiting.len());
        if self.has_room() {
            self.write_groups(task, false)?;
        }
        let epoch = self.epoch;
        if self.segments.has_emptied(|segment| is_freed_by_log(segment, epoch)) {
            self.free_by_log(task)?;
        }
        let is_done = self.segments.free() > free || self.waiting.len() < waited;
        if !self.has_room() || !is_done {
            self.checkpoint(task, false)?;
        }
        Ok(())
    }

    /// Frees emptied segments without a checkpoint: those that hold nothing of the log since the last one. All that
    /// died in them is told in the log since, or lies there anew; once that is durable, rolling forward needs them no
    /// more.
    fn free_by_log(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.check_emptied(task)?;
        self.tell_log(task, BTreeSet::new())?;
        self.flush(task)?;
        for segment in self.release_by_log() {
            self.discard(task, segment)?;
        }
        Ok(())
    }

    /// Emptied segments of which the log tells all are free, in memory. What it tells must be durable before they are
    /// written.
    pub(super) fn release_by_log(&mut self) -> Vec<u32> {
        let epoch = self.epoch;
        self.segments.release(|segment| is_freed_by_log(segment, epoch))
    }

    /// Segments that will be free after the next checkpoint, less those that what waits will take.
    fn expected_free(&self) -> u32 {
        let free = self.segments.free() + self.segments.emptied() + self.segments.cleaning();
        free.saturating_sub(self.segments_to_write())
    }

    fn segments_to_write(&self) -> u32 {
        self.waiting.len().div_ceil(self.limits.segment_capacity as usize) as u32
    }

    /// Free segments below which it cleans: what is above the watermark, but no more than half of what is not live, so
    /// that there is something to gain by cleaning on a full volume, too.
    fn low(&self) -> u32 {
        let count = self.segments.count();
        let above = (f64::from(count) * (1.0 - self.settings.watermark)) as u32;
        let live = self.segments.live().div_ceil(u64::from(self.limits.segment_capacity)) as u32;
        above.min(count.saturating_sub(live) / 2).max(self.limits.floor)
    }

    /// Cleans some segments at once. Answers false if none is worth it.
    fn clean_some(&mut self, task: &Task<'_>) -> Result<bool, SfsError> {
        let mut any = false;
        for _ in 0..self.settings.at_once.min(self.limits.shares.at_once) {
            let Some(victim) = self.victim() else { break };
            self.clean(task, victim)?;
            any = true;
        }
        Ok(any)
    }

    fn victim(&mut self) -> Option<u32> {
        let candidates = self.segments.views().filter(|view| !self.segments.get(view.number).is_being_cleaned);
        // A policy may choose segments that are nearly full, for what they cost later. When hardly enough is left for a
        // checkpoint, what counts is what is gained now, or the log comes to a stand although much of it is dead: after
        // crashes in a row, for one, each of which leaves a segment of metadata that is nearly empty.
        let policy: &dyn Cleaner = match self.segments.free() < self.limits.floor / 2 {
            true => &Greedy,
            false => &*self.settings.cleaner,
        };
        victim::choose(policy, candidates, self.tick)
    }

    /// Takes the live blocks of a segment up, so that they are written anew.
    fn clean(&mut self, task: &Task<'_>, segment: u32) -> Result<(), SfsError> {
        let view: SegmentView = self.segments.view(segment, self.segments.get(segment));
        self.grouping.collects(&view, self.tick);
        self.segments.begin_cleaning(segment);
        self.events.segments_cleaned += 1;
        let first = u64::from(segment) * u64::from(self.media.segment_blocks());
        let mut live: Vec<(u64, BlockRecord)> = Vec::new();
        for (block, record) in self.contents_of(task, segment)? {
            let address = first + u64::from(block);
            match Kind::of_number(record.kind) {
                Some(Kind::Data | Kind::Metadata) => {
                    let number = record.number.get();
                    if number == 0 || number >= self.dat.len() {
                        continue;
                    }
                    let entry = self.dat.get(task, number)?;
                    if entry.is_taken != 1 || entry.address.get() != address {
                        continue;
                    }
                    if record.kind == Kind::Data as u8 {
                        live.push((address, record));
                    } else {
                        // It is written with the next checkpoint.
                        match self.metadata_block_mut(task, number, record.inode.get(), record.place.get()) {
                            Ok(_) => self.events.blocks_cleaned += 1,
                            // No caller is told of it.
                            Err(SfsError::Damaged { .. }) => self.events.damaged_blocks += 1,
                            Err(error) => return Err(error),
                        }
                    }
                }
                Some(kind) if self.paged(kind).is_live(record.number.get(), address) => {
                    self.move_away(task, kind, record.number.get())?;
                    self.events.blocks_cleaned += 1;
                }
                _ => {}
            }
        }
        self.take_up(task, segment, &live)
    }

    /// True if what a block record tells of lives at an address.
    pub(super) fn lives_at(&mut self, task: &Task<'_>, record: &BlockRecord, address: u64) -> Result<bool, SfsError> {
        let number = record.number.get();
        match Kind::of_number(record.kind) {
            Some(Kind::Data | Kind::Metadata) if number == 0 || number >= self.dat.len() => Ok(false),
            Some(Kind::Data | Kind::Metadata) => {
                let entry = self.dat.get(task, number)?;
                Ok(entry.is_taken == 1 && entry.address.get() == address)
            }
            Some(kind) => Ok(self.paged(kind).is_live(number, address)),
            None => Ok(false),
        }
    }

    /// Checks that nothing lives in segments that are about to be freed, and that were not written since the mount.
    pub(super) fn check_emptied(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.media.holds_stamps() {
            return Ok(());
        }
        for segment in self.segments.take_unchecked() {
            let first = u64::from(segment) * u64::from(self.media.segment_blocks());
            for (block, record) in self.contents_of(task, segment)? {
                if self.lives_at(task, &record, first + u64::from(block))? {
                    let why = format!("nothing lives there, it says, and block {block} does");
                    return Err(SfsError::Damaged { what: format!("the usage of segment {segment}"), why });
                }
            }
        }
        Ok(())
    }

    fn move_away(&mut self, task: &Task<'_>, kind: Kind, number: u64) -> Result<(), SfsError> {
        self.is_changed = true;
        let file = match kind {
            Kind::Dat => self.dat.file(),
            Kind::InodeFile => self.inode_file.file(),
            _ => &mut self.usage_file,
        };
        file.move_away(task, number)
    }

    /// Reads live blocks, neighbours at once, and lets them wait.
    fn take_up(&mut self, task: &Task<'_>, segment: u32, live: &[(u64, BlockRecord)]) -> Result<(), SfsError> {
        let width = self.media.block_width();
        let group = self.segments.get(segment).group;
        let mut done = task.now();
        for run in live.chunk_by(|one, next| one.0 + 1 == next.0) {
            let mut bytes = vec![0; run.len() * width];
            done = done.max(self.media.begin_read(task, run[0].0, &mut bytes)?);
            self.read_blocks += run.len() as u64;
            for ((address, record), block) in run.iter().zip(bytes.chunks_exact(width)) {
                let number = record.number.get();
                let mut entry = self.dat.get(task, number)?;
                debug_assert_eq!(entry.address.get(), *address, "virtual block {number} lives where it is read");
                let slot = self.waiting.add(number, record.inode.get(), record.place.get());
                self.waiting.bytes_mut(slot).copy_from_slice(block);
                let waits = self.waiting.slot_mut(slot);
                waits.before = *address;
                waits.crc_before = entry.crc.get();
                waits.cleaned_from = group;
                waits.is_cleaned = true;
                entry.address = (WAITS | u64::from(slot)).into();
                self.dat.set(task, number, &entry)?;
            }
        }
        self.events.blocks_cleaned += live.len() as u64;
        self.is_changed = true;
        task.wait_until(done);
        Ok(())
    }

    /// What the summaries of a segment say lies in it: each block's place in the segment, and its record.
    pub(super) fn contents_of(&mut self, task: &Task<'_>, segment: u32) -> Result<Vec<(u32, BlockRecord)>, SfsError> {
        if self.media.holds_stamps() {
            return self.contents_in_memory(task, segment);
        }
        Ok(self.log_reader(task).contents(segment)?)
    }

    /// Of stamps. The summaries are read all the same, for the time it takes.
    fn contents_in_memory(&mut self, task: &Task<'_>, segment: u32) -> Result<Vec<(u32, BlockRecord)>, SfsError> {
        let contents = self.contents[segment as usize].clone();
        let first = u64::from(segment) * u64::from(self.media.segment_blocks());
        let mut stamp = vec![0; self.media.block_width()];
        let summaries = super::format::summary_blocks(contents.len() as u32, 0);
        for block in 0..summaries {
            self.media.read(task, first + u64::from(block), &mut stamp)?;
        }
        Ok(contents)
    }
}
