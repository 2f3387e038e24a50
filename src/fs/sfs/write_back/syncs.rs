//! Sync and fsync.
//!
//! An fsync writes log records of all changes since the last ones, then the file's changed blocks, so that the names
//! after a crash are those of one instant, at or after the last fsync. Few changed bytes are log records, too
//! (`small_syncs`). Dirty blocks of other files stay buffered. The
//! last partial segment seals the log: a mount after a crash rolls forward to the last seal. So an fsync is atomic,
//! whatever its length. Blocks written out meanwhile count only together with earlier changes of their files, such as a
//! truncation.

use super::{Turns, WriteBack};
use crate::device::DeviceError;
use crate::fs::Durable;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::log::Destination;
use crate::fs::sfs::log::records::{Record, RecordsToWrite};
use crate::fs::sfs::settings::Fsync;
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;
use std::collections::BTreeSet;

/// The work that a sync of a file requires.
enum SyncWork {
    /// Flush.
    Flush,
    /// Write log records and dirty blocks, then flush.
    Log,
    /// A checkpoint.
    Checkpoint,
}

impl<T: Turns> WriteBack<'_, T> {
    /// Makes a file and its names durable.
    pub fn sync_file(&mut self, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        match self.turn(|sfs, task| sfs.begin_sync_file(task, inode.0, what))? {
            SyncWork::Checkpoint => {
                self.checkpoint_after(Self::keep_room)?;
                self.flush()
            }
            SyncWork::Flush => self.flush(),
            SyncWork::Log => {
                self.make_room()?;
                self.flush_after(|sfs, task| match sfs.files.is_changed {
                    true => sfs.write_log(task, BTreeSet::from([inode.0])),
                    // A checkpoint taken to free segments has stored it.
                    false => Ok(()),
                })
            }
        }
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self) -> Result<(), SfsError> {
        let is_changed = self.turn(|sfs, _| {
            if sfs.faults.read_only.is_some() {
                sfs.check_all_stored()?;
                return Ok(false);
            }
            sfs.counts.events.syncs += 1;
            Ok(sfs.files.is_changed)
        })?;
        if is_changed { self.checkpoint_after(Self::keep_room) } else { self.flush() }
    }

    /// Makes all log writes durable.
    fn flush(&mut self) -> Result<(), SfsError> {
        self.flush_after(|_, _| Ok(()))
    }

    /// Runs a turn, then makes all log writes durable.
    pub(super) fn flush_after(
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
                // The flush makes the changes of this turn.
                let flushed = self.media.flush(task);
                self.turn(|sfs, _| sfs.end_flush(flushed))
            }
            Ok(false) => Ok(()),
            // Changes queued before the failure are still written.
            Err(error) => self.turn(|_, _| Err(error)),
        }
    }
}

impl Sfs {
    /// Makes a file and its names durable.
    pub fn sync_file(&mut self, task: &Task<'_>, inode: InodeNumber, what: Durable) -> Result<(), SfsError> {
        self.write_back(task).sync_file(inode, what)
    }

    /// Makes everything durable: a checkpoint.
    pub fn sync(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.write_back(task).sync()
    }

    /// Determines the work needed to make a file durable.
    fn begin_sync_file(&mut self, task: &Task<'_>, number: u64, what: Durable) -> Result<SyncWork, SfsError> {
        let file = self.files.inode(task, number)?;
        // New access times alone need not be durable for fdatasync; all other changes are in records.
        let (is_unlogged, has_grown) = (file.is_unlogged, file.safe_size != file.size);
        if self.faults.read_only.is_some() {
            self.check_all_stored()?;
            return Ok(SyncWork::Flush);
        }
        self.counts.events.syncs += 1;
        let waits = self.files.dirty_blocks.has_changed(number);
        // Its blocks may be written, but after the last seal.
        let must_tell = waits
            || has_grown
            || self.log.is_unsealed
            || self.files.records.touches(number)
            || is_unlogged && what == Durable::All;
        if !must_tell {
            return Ok(SyncWork::Flush);
        }
        if self.settings.fsync == Fsync::Checkpoint
            || self.is_log_long()
            || self.files.records.len() > self.limits.segment_capacity as usize * 1024
        {
            return Ok(SyncWork::Checkpoint);
        }
        if what == Durable::All {
            self.files.records.touch(number);
        }
        Ok(SyncWork::Log)
    }

    /// Ends a flush, successful or failed.
    fn end_flush(&mut self, flushed: Result<(), DeviceError>) -> Result<(), SfsError> {
        self.log.is_flushing = false;
        flushed.inspect_err(|error| {
            // An unknown part of the writes may be lost.
            self.fail(format!("a flush failed: {error}"));
        })?;
        self.note_flushed();
        Ok(())
    }

    /// Fails if a read-only volume holds changes that will never be durable: a sync must not report success.
    fn check_all_stored(&self) -> Result<(), SfsError> {
        if self.files.is_changed || self.log.is_unflushed { self.check_writable() } else { Ok(()) }
    }

    /// Flushes the device: all written partial segments become durable.
    pub(in crate::fs::sfs) fn flush_device(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.files.media.flush(task)?;
        self.note_flushed();
        Ok(())
    }

    /// Notes that the whole log is durable.
    pub(in crate::fs::sfs) fn note_flushed(&mut self) {
        self.log.end_flush(self.superblock.next_partial.get());
    }

    /// Writes all log records, then the changed blocks of these files, and seals the log.
    pub(in crate::fs::sfs) fn write_log(&mut self, task: &Task<'_>, mut files: BTreeSet<u64>) -> Result<(), SfsError> {
        let mut slots = Vec::new();
        // A file renamed over another is written with its new name.
        self.renamed.iter().for_each(|file| self.files.records.touch(*file));
        files.append(&mut self.renamed);
        for file in files {
            if self.files.inodes.contains(file) {
                slots.extend(self.files.dirty_blocks.changed_of(file));
                let inode = self.files.inode_mut(task, file)?;
                // Of a file that is as long as before, an fdatasync needs no new times.
                let has_grown = inode.safe_size != inode.size;
                inode.safe_size = inode.size;
                if has_grown {
                    self.files.records.touch(file);
                }
                let is_told = self.files.records.touches(file);
                self.files.inode_mut(task, file)?.is_unlogged &= !is_told;
            }
        }
        let before = self.superblock.next_partial.get();
        let (mut told, touched) = self.files.records.take();
        for touched in touched {
            match self.files.inode(task, touched) {
                Ok(file) => {
                    let mut image = file.image(0);
                    if file.kind == FileKind::Regular {
                        // Unwritten dirty blocks must not become holes.
                        image.size = file.size.min(file.safe_size).into();
                    }
                    told.add(&Record::Inode(&image), before);
                }
                Err(SfsError::NotFound) => told.add(&Record::Freed { inode: touched }, before),
                Err(error) => return Err(error),
            }
        }
        self.log_small_changes(&mut slots, &mut told);
        if self.log.is_unsealed && told.is_empty() && slots.is_empty() {
            // A seal needs at least one record or block.
            let root = self.files.inode(task, InodeNumber::ROOT.0)?.image(0);
            told.add(&Record::Inode(&root), before);
        }
        let mut parts = self.parts_of_sync(task, &slots)?;
        if parts.is_empty() {
            // Records alone go where the last group goes, which that of new blocks is in most groupings.
            let groups = self.grouping.groups();
            let of_last = self.log.rest_head().unwrap_or(self.log.head_of(groups.saturating_sub(1), groups));
            parts.push((self.log.open_heads().last().map_or(of_last, |(number, _)| number), Vec::new()));
        }
        let mut left = parts.len();
        for (head, mut slots) in parts {
            left -= 1;
            // The records come first: their partial segment has the lower number.
            let told = std::mem::replace(&mut told, RecordsToWrite::nothing());
            let written = self.write_slots(task, Destination::Head(head), &mut slots, told, left == 0);
            written.inspect_err(|error| {
                // The records were taken, and a later sync would not write them.
                self.fail(format!("a sync failed: {error}"));
            })?;
        }
        Ok(())
    }
}
