//! What writeback does: syncs, background work, and the steps that free segments or memory when they run short.

use super::cleaning::clean_some;
use super::groups::{GroupWriter, write_all_groups, write_groups};
use super::room::{Piece, Room, freed_by_log, is_freed_by_log};
use super::schedule::Due;
use super::syncs::{SyncWork, Syncing};
use super::{Turns, WriteBack};
use crate::fs::Durable;
use crate::fs::sfs::files::attributes::InodeNumber;
use crate::fs::sfs::{Sfs, SfsError};
use crate::time::Time;
use std::collections::BTreeSet;

impl<T: Turns> WriteBack<'_, T> {
    /// Makes a file and its names durable.
    pub fn sync_file(&mut self, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        match self.turn(|sfs, task| Syncing::of(task, sfs).begin(inode.0, what))? {
            SyncWork::Checkpoint => {
                self.checkpoint_after(Self::keep_room)?;
                self.flush()
            }
            SyncWork::Flush => self.flush(),
            SyncWork::Log => {
                self.make_room()?;
                self.flush_after(|sfs, task| match sfs.files.is_changed {
                    true => Syncing::of(task, sfs).write_log(BTreeSet::from([inode.0])),
                    // A checkpoint taken to free segments has stored it.
                    false => Ok(()),
                })
            }
        }
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self) -> Result<(), SfsError> {
        let is_changed = self.turn(|sfs, task| {
            if sfs.read_only().is_some() {
                Syncing::of(task, sfs).check_all_stored()?;
                return Ok(false);
            }
            sfs.writer.events.syncs += 1;
            Ok(sfs.files.is_changed)
        })?;
        if is_changed { self.checkpoint_after(Self::keep_room) } else { self.flush() }
    }

    /// Cleans until there are enough free segments for all dirty data, and the reserve.
    pub fn make_room(&mut self) -> Result<(), SfsError> {
        let (epoch, most) = self.read_state(|sfs| (sfs.writer.log.epoch, 4 * sfs.files.segments.count()))?;
        for _ in 0..most {
            match self.read_state(|sfs| Room::of(sfs).next_piece(epoch))? {
                Piece::None => break,
                Piece::FreeCleaned(is_last) => {
                    self.free_cleaned()?;
                    if is_last {
                        break;
                    }
                }
                Piece::Clean if clean_some(self)? => {}
                Piece::Clean => {
                    if !self.read_state(|sfs| Room::of(sfs).has_room())? {
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
        match self.read_state(|sfs| sfs.files.segments.free() < sfs.writer.limits.of_checkpoint())? {
            true => self.make_room(),
            false => Ok(()),
        }
    }

    /// Frees segments, then takes a checkpoint, unless freeing took one, which stored all changes. Restores the reserve
    /// after it, too: little is dirty then, so that room is made in less room.
    pub fn checkpoint_after(&mut self, makes_room: fn(&mut Self) -> Result<(), SfsError>) -> Result<(), SfsError> {
        let epoch = self.read_state(|sfs| sfs.writer.log.epoch)?;
        makes_room(self)?;
        if self.read_state(|sfs| sfs.writer.log.epoch)? == epoch {
            self.checkpoint(false)?;
        }
        self.keep_room()
    }

    /// Frees segments whose live blocks were read: by the log as long as there is room, as a checkpoint writes most of the
    /// DAT under random writes.
    fn free_cleaned(&mut self) -> Result<(), SfsError> {
        let (free, waited, can_write) = self.read_state(|sfs| {
            (sfs.files.segments.free(), sfs.files.dirty_blocks.len(), Room::of(sfs).can_write_without_checkpoint())
        })?;
        if can_write {
            write_groups(self)?;
        }
        if self.read_state(|sfs| freed_by_log(&sfs.files, &sfs.writer.log) > 0)? {
            self.free_by_log()?;
        }
        let is_enough = |sfs: &mut Sfs| {
            Room::of(sfs).has_room() && (sfs.files.segments.free() > free || sfs.files.dirty_blocks.len() < waited)
        };
        if self.read_state(is_enough)? {
            return Ok(());
        }
        // No group fills a segment: what was cleaned is written at the heads of its groups, which costs less than a
        // checkpoint.
        if can_write && waited > 0 {
            self.turn(|sfs, task| GroupWriter::of(task, sfs).write_rest())?;
            if self.read_state(|sfs| freed_by_log(&sfs.files, &sfs.writer.log) > 0)? {
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
            sfs.writer.check_emptied(task, &mut sfs.files)?;
            Syncing::of(task, sfs).write_log(BTreeSet::new())?;
            // Segments emptied after this turn are not covered by its records.
            sfs.files.segments.apply_frees();
            Ok(())
        })?;
        self.turn(|sfs, task| {
            let epoch = sfs.writer.log.epoch;
            let freed = sfs.files.segments.release(|segment| segment.is_settled && is_freed_by_log(segment, epoch));
            freed.into_iter().try_for_each(|segment| sfs.writer.discards.discard(task, &sfs.files, segment))
        })
    }

    /// Writes the groups that fill segments, and takes a checkpoint if one is due.
    fn write_out(&mut self) -> Result<(), SfsError> {
        self.make_room()?;
        write_groups(self)?;
        match self.read_state(|sfs| sfs.writer.is_log_long())? {
            true => self.checkpoint_after(|_| Ok(())),
            false => Ok(()),
        }
    }

    /// Writes out dirty blocks, or takes a checkpoint, if memory is short.
    pub fn relieve(&mut self) -> Result<(), SfsError> {
        // The volume may have failed since the change.
        self.turn(|sfs, _| sfs.writer.faults.check_writable())?;
        if self.read_state(|sfs| Room::of(sfs).is_metadata_full())? {
            return self.checkpoint_after(Self::make_room);
        }
        if self.read_state(|sfs| Room::of(sfs).is_data_full())? {
            let epoch = self.read_state(|sfs| sfs.writer.log.epoch)?;
            self.write_out()?;
            // Partial groups stay buffered; if there are only partial groups, they are written, too.
            if self.read_state(|sfs| sfs.writer.log.epoch == epoch && Room::of(sfs).is_data_full())? {
                write_all_groups(self)?;
            }
        }
        Ok(())
    }

    /// Does the same if memory is still short.
    pub fn relieve_if_needed(&mut self) -> Result<(), SfsError> {
        if self.read_state(|sfs| Room::of(sfs).is_memory_short())? { self.relieve() } else { Ok(()) }
    }

    /// Does a bounded piece of background work that is due: writes out dirty blocks (every five seconds), takes a
    /// checkpoint (every thirty), discards a segment. Returns the time of the next work.
    pub fn work(&mut self) -> Result<Option<Time>, SfsError> {
        if self.read_state(|sfs| sfs.read_only().is_some())? {
            return Ok(None);
        }
        let more = self.media.work(self.task)?;
        let now = self.task.now();
        match self.read_state(|sfs| sfs.schedule.take_due(now, sfs.files.is_changed))? {
            Due::Nothing => {}
            Due::WriteOut => self.write_out()?,
            Due::Checkpoint => self.checkpoint_after(Self::keep_room)?,
        }
        self.turn(|sfs, task| {
            if sfs.read_only().is_some() {
                return Ok(None);
            }
            sfs.writer.discards.discard_one(task, &sfs.files)?;
            let own = sfs.schedule.next();
            let own = sfs.writer.discards.due().map_or(own, |due| due.min(own));
            Ok(Some(more.map_or(own, |more| more.min(own))))
        })
    }
}
