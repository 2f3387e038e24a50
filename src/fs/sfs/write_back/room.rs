//! Choice of the next step of writeback when segments or memory run short.

use super::{Turns, WriteBack};
use crate::fs::sfs::log::segments::Segment;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::{Sfs, SfsError};
use crate::time::Time;
use std::collections::BTreeSet;

/// The next step of freeing segments.
enum Piece {
    /// Enough segments are free.
    None,
    /// Frees segments whose live blocks were read. `true`: this is the last step.
    FreeCleaned(bool),
    /// Cleans segments.
    Clean,
}

/// Background work that is due.
enum Due {
    Nothing,
    WriteOut,
    Checkpoint,
}

/// True if an emptied segment becomes free when the log records are durable: it holds no log since the last checkpoint,
/// and no metadata. Rolling forward starts from that checkpoint's directories and maps, and reads them, even those of
/// files that were deleted since.
fn is_freed_by_log(segment: &Segment, epoch: u64) -> bool {
    segment.epoch < epoch && !segment.is_metadata
}

impl<T: Turns> WriteBack<'_, T> {
    /// Cleans until there are enough free segments for all dirty data, and the reserve.
    pub fn make_room(&mut self) -> Result<(), SfsError> {
        let (epoch, most) = self.read_state(|sfs| (sfs.log.epoch, 4 * sfs.files.segments.count()))?;
        for _ in 0..most {
            match self.read_state(|sfs| sfs.next_piece(epoch))? {
                Piece::None => break,
                Piece::FreeCleaned(is_last) => {
                    self.free_cleaned()?;
                    if is_last {
                        break;
                    }
                }
                Piece::Clean if self.clean_some()? => {}
                Piece::Clean => {
                    if !self.read_state(|sfs| sfs.has_room())? {
                        self.free_cleaned()?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Restores the reserve before a checkpoint taken for another reason: many small synced changes must not use it up.
    pub fn keep_room(&mut self) -> Result<(), SfsError> {
        match self.read_state(|sfs| sfs.files.segments.free() < sfs.limits.of_checkpoint())? {
            true => self.make_room(),
            false => Ok(()),
        }
    }

    /// Frees segments, then takes a checkpoint, unless freeing took one, which stored all changes. Restores the reserve
    /// after it, too: little is dirty then, so that room is made in less room.
    pub fn checkpoint_after(&mut self, makes_room: fn(&mut Self) -> Result<(), SfsError>) -> Result<(), SfsError> {
        let epoch = self.read_state(|sfs| sfs.log.epoch)?;
        makes_room(self)?;
        if self.read_state(|sfs| sfs.log.epoch)? == epoch {
            self.checkpoint(false)?;
        }
        self.keep_room()
    }

    /// Frees segments whose live blocks were read: by the log as long as there is room, as a checkpoint writes most of the
    /// DAT under random writes.
    fn free_cleaned(&mut self) -> Result<(), SfsError> {
        let (free, waited, can_write) = self.read_state(|sfs| {
            (sfs.files.segments.free(), sfs.files.dirty_blocks.len(), sfs.can_write_without_checkpoint())
        })?;
        if can_write {
            self.write_groups()?;
        }
        if self.read_state(|sfs| sfs.freed_by_log() > 0)? {
            self.free_by_log()?;
        }
        let is_enough = |sfs: &mut Sfs| {
            sfs.has_room() && (sfs.files.segments.free() > free || sfs.files.dirty_blocks.len() < waited)
        };
        if self.read_state(is_enough)? {
            return Ok(());
        }
        // No group fills a segment: what was cleaned is written at the heads of its groups, which costs less than a
        // checkpoint.
        if can_write && waited > 0 {
            self.turn(|sfs, task| sfs.write_rest(task))?;
            if self.read_state(|sfs| sfs.freed_by_log() > 0)? {
                self.free_by_log()?;
            }
            if self.read_state(is_enough)? {
                return Ok(());
            }
        }
        self.checkpoint(false)
    }

    /// Frees emptied segments without a checkpoint: those without log since the last one. The log records all blocks
    /// that died in them, or holds their new copies; when it is durable, rolling forward does not need the segments.
    fn free_by_log(&mut self) -> Result<(), SfsError> {
        self.flush_after(|sfs, task| {
            sfs.check_emptied(task)?;
            sfs.write_log(task, BTreeSet::new())?;
            // Segments emptied after this turn are not covered by its records.
            sfs.files.segments.apply_frees();
            Ok(())
        })?;
        self.turn(|sfs, task| {
            let epoch = sfs.log.epoch;
            let freed = sfs.files.segments.release(|segment| segment.is_settled && is_freed_by_log(segment, epoch));
            freed.into_iter().try_for_each(|segment| sfs.discard(task, segment))
        })
    }

    /// Writes the groups that fill segments, and takes a checkpoint if one is due.
    fn write_out(&mut self) -> Result<(), SfsError> {
        self.make_room()?;
        self.write_groups()?;
        match self.read_state(|sfs| sfs.is_log_long())? {
            true => self.checkpoint_after(|_| Ok(())),
            false => Ok(()),
        }
    }

    /// Writes out dirty blocks, or takes a checkpoint, if memory is short.
    pub fn relieve(&mut self) -> Result<(), SfsError> {
        // The volume may have failed since the change.
        self.turn(|sfs, _| sfs.check_writable())?;
        if self.read_state(Sfs::is_metadata_full)? {
            return self.checkpoint_after(Self::make_room);
        }
        if self.read_state(|sfs| sfs.is_data_full())? {
            let epoch = self.read_state(|sfs| sfs.log.epoch)?;
            self.write_out()?;
            // Partial groups stay buffered; if there are only partial groups, they are written, too.
            if self.read_state(|sfs| sfs.log.epoch == epoch && sfs.is_data_full())? {
                self.write_all_groups()?;
            }
        }
        Ok(())
    }

    /// Does the same if memory is still short.
    pub fn relieve_if_needed(&mut self) -> Result<(), SfsError> {
        if self.read_state(Sfs::is_memory_short)? { self.relieve() } else { Ok(()) }
    }

    /// Does a bounded piece of background work that is due: writes out dirty blocks (every five seconds), takes a
    /// checkpoint (every thirty), discards a segment. Returns the time of the next work.
    pub fn work(&mut self) -> Result<Option<Time>, SfsError> {
        if self.read_state(|sfs| sfs.faults.read_only.is_some())? {
            return Ok(None);
        }
        let more = self.media.work(self.task)?;
        let now = self.task.now();
        match self.read_state(|sfs| sfs.due(now))? {
            Due::Nothing => {}
            Due::WriteOut => self.write_out()?,
            Due::Checkpoint => self.checkpoint_after(Self::keep_room)?,
        }
        self.turn(|sfs, task| {
            if sfs.faults.read_only.is_some() {
                return Ok(None);
            }
            sfs.discard_one(task)?;
            let own = sfs.next_flush.min(sfs.next_checkpoint);
            let own = sfs.discards.due().map_or(own, |due| due.min(own));
            Ok(Some(more.map_or(own, |more| more.min(own))))
        })
    }
}

impl Sfs {
    /// The next step of freeing segments, begun in this epoch.
    fn next_piece(&mut self, epoch: u64) -> Piece {
        let is_plenty = self.expected_free() >= self.cleaning_threshold();
        // A call that has taken one checkpoint leaves further steps to later calls.
        if self.has_room() && (is_plenty || self.log.epoch != epoch) {
            return Piece::None;
        }
        let is_too_much = !self.has_room_for_cleaned()
            || self.files.metadata.blocks.dirty() >= self.limits.metadata
            || self.changed_bytes() > self.limits.shares.changed;
        if is_plenty || is_too_much { Piece::FreeCleaned(is_plenty) } else { Piece::Clean }
    }

    /// The background work that is due.
    fn due(&mut self, now: Time) -> Due {
        if now >= self.next_checkpoint {
            self.next_checkpoint = now + self.settings.checkpoint_ns;
            self.next_flush = now + self.settings.flush_ns;
            if self.files.is_changed { Due::Checkpoint } else { Due::Nothing }
        } else if now >= self.next_flush {
            self.next_flush = now + self.settings.flush_ns;
            Due::WriteOut
        } else {
            Due::Nothing
        }
    }

    /// True if all dirty data fits, and checkpoints after it: see [`Limits::low`](crate::fs::sfs::Limits).
    fn has_room(&self) -> bool {
        self.files.segments.free() >= self.limits.low() + self.segments_to_write()
    }

    /// True if all dirty data fits, and one checkpoint after it.
    fn can_write_without_checkpoint(&self) -> bool {
        self.files.segments.free() >= self.limits.lowest() + self.segments_to_write()
    }

    /// Emptied segments that become free when the log records are durable.
    fn freed_by_log(&self) -> u32 {
        let epoch = self.log.epoch;
        self.files.segments.count_emptied(|segment| is_freed_by_log(segment, epoch))
    }

    /// Frees, in memory, the emptied segments covered by log records. The records must be durable before the segments
    /// are written.
    pub(in crate::fs::sfs) fn release_by_log(&mut self) -> Vec<u32> {
        let epoch = self.log.epoch;
        self.files.segments.release(|segment| is_freed_by_log(segment, epoch))
    }

    /// True if the live blocks of one more victim fit. When fewer segments are free than a checkpoint may need, all dirty
    /// data must fit into what it counts for that: [`Limits::of_checkpoint`](crate::fs::sfs::Limits).
    pub(super) fn has_room_for_cleaned(&self) -> bool {
        let most = 2 * self.limits.dirty_blocks;
        let is_short = self.files.segments.free() < self.limits.of_checkpoint();
        let more = if is_short { self.limits.segment_capacity as usize } else { 1 };
        self.files.dirty_blocks.len() + more <= most.max(more)
    }

    /// Segments free after the next checkpoint, less those needed for dirty data.
    fn expected_free(&self) -> u32 {
        let free = self.files.segments.free() + self.files.segments.emptied() + self.files.segments.cleaning();
        free.saturating_sub(self.segments_to_write())
    }

    fn segments_to_write(&self) -> u32 {
        self.files.dirty_blocks.len().div_ceil(self.limits.segment_capacity as usize) as u32
    }

    /// Number of free segments below which cleaning starts: those above the watermark, but at most half of the space
    /// that is not live, so that cleaning gains something on a full volume, too.
    fn cleaning_threshold(&self) -> u32 {
        let count = self.files.segments.count();
        let above = (f64::from(count) * (1.0 - self.settings.watermark)) as u32;
        let live = self.files.segments.live().div_ceil(u64::from(self.limits.segment_capacity)) as u32;
        above.min(count.saturating_sub(live) / 2).max(self.limits.floor)
    }

    /// True if so much log was written since the last checkpoint that a mount after a crash would take long.
    pub(super) fn is_log_long(&self) -> bool {
        self.log.segments_since_checkpoint >= self.limits.log_segments
    }

    /// True if the dirty metadata requires a checkpoint.
    pub(in crate::fs::sfs) fn is_metadata_full(&mut self) -> bool {
        let changed = self.files.metadata.blocks.dirty()
            + self.files.metadata.dat.file().dirty_pages()
            + self.files.metadata.inode_file.file().dirty_pages();
        let is_much = changed + self.files.records.len() / BLOCK > self.limits.metadata;
        is_much || self.changed_bytes() > self.limits.shares.changed
    }

    fn is_data_full(&self) -> bool {
        self.files.dirty_blocks.len() >= self.limits.dirty_blocks
    }

    /// True if dirty data or metadata exceeds its limit.
    pub(in crate::fs::sfs) fn is_memory_short(&mut self) -> bool {
        self.is_metadata_full() || self.is_data_full()
    }
}
