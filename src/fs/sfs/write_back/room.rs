//! Room: which piece of writing back comes next when segments or memory run short.

use super::{Turns, WriteBack};
use crate::fs::sfs::log::segments::Segment;
use crate::fs::sfs::media::format::BLOCK;
use crate::fs::sfs::{Sfs, SfsError};
use crate::time::Time;
use std::collections::BTreeSet;

/// The next piece of making room.
enum Piece {
    /// There is enough.
    None,
    /// Frees segments whose blocks were taken up. `true`: that is the last piece.
    Gain(bool),
    /// Cleans segments.
    Clean,
}

/// What is due in the background.
enum Due {
    Nothing,
    WriteOut,
    Checkpoint,
}

/// True if an emptied segment is free once the log is told: it holds nothing of the log since the last checkpoint, and
/// no metadata. Rolling forward begins with that checkpoint's directories and maps, and reads them, even those of files
/// that the log says are gone.
fn is_freed_by_log(segment: &Segment, epoch: u64) -> bool {
    segment.epoch < epoch && !segment.is_metadata
}

impl<T: Turns> WriteBack<'_, T> {
    /// Cleans until enough segments are free for what waits, and as many beside them as there should always be.
    pub fn make_room(&mut self) -> Result<(), SfsError> {
        let (epoch, most) = self.look(|sfs| (sfs.log.epoch, 4 * sfs.log.segments.count()))?;
        for _ in 0..most {
            match self.look(|sfs| sfs.next_piece(epoch))? {
                Piece::None => break,
                Piece::Gain(is_last) => {
                    self.gain()?;
                    if is_last {
                        break;
                    }
                }
                Piece::Clean if self.clean_some()? => {}
                Piece::Clean => {
                    if !self.look(|sfs| sfs.has_room())? {
                        self.gain()?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Before a checkpoint that is taken for another reason than that there is too little room: calls that change
    /// little, each of them synced, must not use up what is kept free.
    pub fn keep_room(&mut self) -> Result<(), SfsError> {
        match self.look(|sfs| sfs.log.segments.free() < sfs.limits.floor / 2)? {
            true => self.make_room(),
            false => Ok(()),
        }
    }

    /// Takes a checkpoint for which room is made, unless making room took one: that has stored all that was changed.
    pub fn checkpoint_behind(&mut self, makes_room: fn(&mut Self) -> Result<(), SfsError>) -> Result<(), SfsError> {
        let epoch = self.look(|sfs| sfs.log.epoch)?;
        makes_room(self)?;
        if self.look(|sfs| sfs.log.epoch)? == epoch { self.checkpoint(false) } else { Ok(()) }
    }

    /// Makes segments free whose blocks were taken up.
    fn gain(&mut self) -> Result<(), SfsError> {
        let (free, waited, has_room) = self.look(|sfs| (sfs.log.segments.free(), sfs.waiting.len(), sfs.has_room()))?;
        if has_room {
            self.write_groups()?;
        }
        if self.look(|sfs| sfs.can_free_by_log())? {
            self.free_by_log()?;
        }
        let is_enough = self.look(|sfs| {
            let is_done = sfs.log.segments.free() > free || sfs.waiting.len() < waited;
            sfs.has_room() && is_done
        })?;
        if is_enough { Ok(()) } else { self.checkpoint(false) }
    }

    /// Frees emptied segments without a checkpoint: those that hold nothing of the log since the last one. All that
    /// died in them is told in the log since, or lies there anew; once that is durable, rolling forward needs them no
    /// more.
    fn free_by_log(&mut self) -> Result<(), SfsError> {
        self.flush_behind(|sfs, task| {
            sfs.check_emptied(task)?;
            sfs.tell_log(task, BTreeSet::new())?;
            // What is emptied after this turn was not told.
            sfs.log.segments.apply_frees();
            Ok(())
        })?;
        self.turn(|sfs, task| {
            let epoch = sfs.log.epoch;
            let freed = sfs.log.segments.release(|segment| segment.is_settled && is_freed_by_log(segment, epoch));
            freed.into_iter().try_for_each(|segment| sfs.discard(task, segment))
        })
    }

    /// Writes the groups that fill segments, and takes a checkpoint if one is due then.
    fn write_out(&mut self) -> Result<(), SfsError> {
        self.make_room()?;
        self.write_groups()?;
        match self.look(|sfs| sfs.log.segments_since_checkpoint >= sfs.settings.checkpoint_segments)? {
            true => self.checkpoint(false),
            false => Ok(()),
        }
    }

    /// Writes out buffered blocks, or takes a checkpoint, if there is too much in memory.
    pub fn relieve(&mut self) -> Result<(), SfsError> {
        // It may have failed since the change.
        self.turn(|sfs, _| sfs.check_writable())?;
        if self.look(Sfs::is_much_changed)? {
            return self.checkpoint_behind(Self::make_room);
        }
        if self.look(|sfs| sfs.is_much_waiting())? {
            let epoch = self.look(|sfs| sfs.log.epoch)?;
            self.write_out()?;
            // Groups that fill no segment stay buffered; should they be all that is, they must go.
            if self.look(|sfs| sfs.log.epoch == epoch && sfs.is_much_waiting())? {
                self.write_all_groups()?;
            }
        }
        Ok(())
    }

    /// The same, if there still is too much.
    pub fn relieve_if_pressed(&mut self) -> Result<(), SfsError> {
        if self.look(Sfs::is_pressed)? { self.relieve() } else { Ok(()) }
    }

    /// Does a bounded piece of what is due in the background now: writes buffered blocks (every five seconds), takes a
    /// checkpoint (every thirty), discards a segment. Returns the time at which there will be more to do.
    pub fn work(&mut self) -> Result<Option<Time>, SfsError> {
        if self.look(|sfs| sfs.faults.read_only.is_some())? {
            return Ok(None);
        }
        let more = self.media.work(self.task)?;
        let now = self.task.now();
        match self.look(|sfs| sfs.due(now))? {
            Due::Nothing => {}
            Due::WriteOut => self.write_out()?,
            Due::Checkpoint => self.checkpoint_behind(Self::keep_room)?,
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
    /// The next piece of making room that was begun at this epoch.
    fn next_piece(&mut self, epoch: u64) -> Piece {
        let is_plenty = self.expected_free() >= self.low();
        // A call that has waited for one checkpoint leaves the rest to the next calls.
        if self.has_room() && (is_plenty || self.log.epoch != epoch) {
            return Piece::None;
        }
        let is_too_much = self.waiting.len() >= 2 * self.limits.waiting
            || self.metadata.blocks.dirty() >= self.limits.metadata
            || self.changed_bytes() > self.limits.shares.changed;
        if is_plenty || is_too_much { Piece::Gain(is_plenty) } else { Piece::Clean }
    }

    /// What is due now.
    fn due(&mut self, now: Time) -> Due {
        if now >= self.next_checkpoint {
            self.next_checkpoint = now + self.settings.checkpoint_ns;
            self.next_flush = now + self.settings.flush_ns;
            if self.is_changed { Due::Checkpoint } else { Due::Nothing }
        } else if now >= self.next_flush {
            self.next_flush = now + self.settings.flush_ns;
            Due::WriteOut
        } else {
            Due::Nothing
        }
    }

    /// True if what waits can be written, and a checkpoint behind it.
    fn has_room(&self) -> bool {
        self.log.segments.free() >= self.limits.floor + self.segments_to_write()
    }

    fn can_free_by_log(&self) -> bool {
        let epoch = self.log.epoch;
        self.log.segments.has_emptied(|segment| is_freed_by_log(segment, epoch))
    }

    /// Emptied segments of which the log tells all are free, in memory. What it tells must be durable before they are
    /// written.
    pub(in crate::fs::sfs) fn release_by_log(&mut self) -> Vec<u32> {
        let epoch = self.log.epoch;
        self.log.segments.release(|segment| is_freed_by_log(segment, epoch))
    }

    /// Segments that will be free after the next checkpoint, less those that what waits will take.
    fn expected_free(&self) -> u32 {
        let free = self.log.segments.free() + self.log.segments.emptied() + self.log.segments.cleaning();
        free.saturating_sub(self.segments_to_write())
    }

    fn segments_to_write(&self) -> u32 {
        self.waiting.len().div_ceil(self.limits.segment_capacity as usize) as u32
    }

    /// Free segments below which it cleans: what is above the watermark, but no more than half of what is not live, so
    /// that there is something to gain by cleaning on a full volume, too.
    fn low(&self) -> u32 {
        let count = self.log.segments.count();
        let above = (f64::from(count) * (1.0 - self.settings.watermark)) as u32;
        let live = self.log.segments.live().div_ceil(u64::from(self.limits.segment_capacity)) as u32;
        above.min(count.saturating_sub(live) / 2).max(self.limits.floor)
    }

    /// True if so much metadata is changed that a checkpoint must be taken.
    pub(in crate::fs::sfs) fn is_much_changed(&mut self) -> bool {
        let changed = self.metadata.blocks.dirty()
            + self.metadata.dat.file().dirty_pages()
            + self.metadata.inode_file.file().dirty_pages();
        let is_much = changed + self.log.records.len() / BLOCK > self.limits.metadata;
        is_much || self.changed_bytes() > self.limits.shares.changed
    }

    fn is_much_waiting(&self) -> bool {
        self.waiting.len() >= self.limits.waiting
    }

    /// True if so many blocks are buffered or changed that some must be written.
    pub(in crate::fs::sfs) fn is_pressed(&mut self) -> bool {
        self.is_much_changed() || self.is_much_waiting()
    }
}
