//! Syncs: one file, or everything, becomes durable.
//!
//! An fsync writes the file's waiting blocks and, before them, all that was done to names since the log was last told:
//! so the names after a crash are those of one instant, at or after the last fsync. Other files' blocks wait on. The
//! last partial segment that is written seals the log: a mount after a crash rolls forward as far as the last one that
//! does. So an fsync is atomic, however long it is; and blocks that were written out meanwhile count only with what was
//! done to their files before, such as a truncation.

use super::{Turns, WriteBack};
use crate::device::DeviceError;
use crate::fs::Durable;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::log::records::{Record, RecordsToWrite};
use crate::fs::sfs::log::{Destination, Item};
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;
use std::collections::BTreeSet;

/// What a sync of a file needs.
enum Needs {
    /// A flush.
    Flush,
    /// The log is told of it, then flushed.
    Log,
    /// A checkpoint.
    Checkpoint,
}

impl<T: Turns> WriteBack<'_, T> {
    /// Makes a file durable, with its name.
    pub fn sync_file(&mut self, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        match self.turn(|sfs, task| sfs.begin_sync_file(task, inode.0, what))? {
            Needs::Checkpoint => {
                self.checkpoint_behind(Self::keep_room)?;
                self.flush()
            }
            Needs::Flush => self.flush(),
            Needs::Log => {
                self.make_room()?;
                self.flush_behind(|sfs, task| match sfs.is_changed {
                    true => sfs.tell_log(task, BTreeSet::from([inode.0])),
                    // A checkpoint that made room has stored it.
                    false => Ok(()),
                })
            }
        }
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self) -> Result<(), SfsError> {
        let is_changed = self.turn(|sfs, _| {
            if sfs.faults.read_only.is_some() {
                sfs.check_nothing_waits()?;
                return Ok(false);
            }
            sfs.counts.events.syncs += 1;
            Ok(sfs.is_changed)
        })?;
        if is_changed { self.checkpoint_behind(Self::keep_room) } else { self.flush() }
    }

    /// Makes durable what was written to the log.
    fn flush(&mut self) -> Result<(), SfsError> {
        self.flush_behind(|_, _| Ok(()))
    }

    /// Has a turn, then makes durable what was written to the log up to its end.
    pub(super) fn flush_behind(
        &mut self,
        act: impl FnOnce(&mut Sfs, &Task<'_>) -> Result<(), SfsError>,
    ) -> Result<(), SfsError> {
        let task = self.task;
        let begun = self.turns.turn(|sfs| {
            act(sfs, task)?;
            Ok(sfs.log.begin_flush())
        });
        match begun {
            Ok(true) => {
                // That makes the changes of this turn.
                let flushed = self.media.flush(task);
                self.turn(|sfs, _| sfs.end_flush(flushed))
            }
            Ok(false) => Ok(()),
            // What was queued before the failure is written all the same.
            Err(error) => self.turn(|_, _| Err(error)),
        }
    }
}

impl Sfs {
    /// Makes a file durable, with its name.
    pub fn sync_file(&mut self, task: &Task<'_>, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        self.write_back(task).sync_file(inode, what)
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.write_back(task).sync()
    }

    /// Looks what it takes to make a file durable.
    fn begin_sync_file(&mut self, task: &Task<'_>, number: u64, what: Durable) -> Result<Needs, SfsError> {
        let file = self.inode(task, number)?;
        // New times alone need not be durable for fdatasync; all else is in the records.
        let (is_unlogged, has_grown) = (file.is_unlogged, file.safe_size != file.size);
        if self.faults.read_only.is_some() {
            self.check_nothing_waits()?;
            return Ok(Needs::Flush);
        }
        self.counts.events.syncs += 1;
        let waits = self.waiting.has(number);
        // Its blocks may have been written, and not count yet.
        let must_tell = waits
            || has_grown
            || self.log.is_unsealed
            || self.log.records.touches(number)
            || is_unlogged && what == Durable::All;
        if !must_tell {
            return Ok(Needs::Flush);
        }
        if self.settings.fsync_is_checkpoint || self.log.records.len() > self.limits.segment_capacity as usize * 1024 {
            return Ok(Needs::Checkpoint);
        }
        self.log.records.touch(number);
        Ok(Needs::Log)
    }

    /// Ends a flush: the device did it, or failed.
    fn end_flush(&mut self, flushed: Result<(), DeviceError>) -> Result<(), SfsError> {
        self.log.is_flushing = false;
        flushed.inspect_err(|error| {
            // What was written may be lost, and nobody knows what.
            self.fail(format!("a flush failed: {error}"));
        })?;
        self.note_flushed();
        Ok(())
    }

    /// A volume that can only be read since a write failed holds changes in memory that will never be durable: a sync
    /// must not be answered as if they were.
    fn check_nothing_waits(&self) -> Result<(), SfsError> {
        if self.is_changed || self.log.is_unflushed { self.check_writable() } else { Ok(()) }
    }

    /// Flushes the device: all partial segments that were written are durable.
    pub(in crate::fs::sfs) fn flush_device(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.media.flush(task)?;
        self.note_flushed();
        Ok(())
    }

    /// Notes that all of the log is durable.
    pub(in crate::fs::sfs) fn note_flushed(&mut self) {
        self.log.end_flush(self.superblock.next_partial.get());
    }

    /// Tells the log all that it has yet to say, writes what waits of these files behind it, and seals it.
    pub(in crate::fs::sfs) fn tell_log(&mut self, task: &Task<'_>, mut files: BTreeSet<u64>) -> Result<(), SfsError> {
        let mut slots = Vec::new();
        // A renamed file that replaced another goes with the name that it took.
        files.append(&mut self.renamed);
        for file in files {
            if self.inodes.contains(file) {
                slots.extend(self.waiting.of(file));
                let inode = self.inode_mut(task, file)?;
                inode.safe_size = inode.size;
                inode.is_unlogged = false;
                self.log.records.touch(file);
            }
        }
        if self.log.is_unsealed && self.log.records.is_empty() {
            // There must be something that seals what was written.
            self.log.records.touch(InodeNumber::ROOT.0);
        }
        let before = self.superblock.next_partial.get();
        let (mut told, touched) = self.log.records.take();
        for touched in touched {
            match self.inode(task, touched) {
                Ok(file) => {
                    let mut image = file.image(0);
                    if file.kind == FileKind::Regular {
                        // Blocks that still wait must not become holes.
                        image.size = file.size.min(file.safe_size).into();
                    }
                    told.add(&Record::Inode(&image), before);
                }
                Err(SfsError::NotFound) => told.add(&Record::Freed { inode: touched }, before),
                Err(error) => return Err(error),
            }
        }
        let capacity = self.limits.segment_capacity as usize;
        slots.sort_unstable_by_key(|slot| {
            let slot = self.waiting.slot(*slot);
            (slot.is_cleaned, slot.inode, slot.place)
        });
        // What is told must come first: its partial segment has the lower number.
        let (head, rest) = slots.split_at(slots.len().min(capacity));
        let items: Vec<Item> = head.iter().map(|slot| Item::Waiting(*slot)).collect();
        self.write_with_records(task, Destination::Mixed, &items, told, rest.is_empty())?;
        let parts = rest.chunks(capacity);
        for (left, part) in (0..parts.len()).rev().zip(parts) {
            let items: Vec<Item> = part.iter().map(|slot| Item::Waiting(*slot)).collect();
            self.write_with_records(task, Destination::Mixed, &items, RecordsToWrite::nothing(), left == 0)?;
        }
        Ok(())
    }
}
