//! Sync and fsync.
//!
//! An fsync writes log records of all changes since the last ones, then the file's changed blocks, so that the names
//! after a crash are those of one instant, at or after the last fsync. Few changed bytes are log records, too
//! (`small_syncs`). Dirty blocks of other files stay buffered. The
//! last partial segment seals the log: a mount after a crash rolls forward to the last seal. So an fsync is atomic,
//! whatever its length. Blocks written out meanwhile count only together with earlier changes of their files, such as a
//! truncation.

use super::groups::GroupWriter;
use super::small_syncs::log_small_changes;
use super::writer::{Destination, Writer};
use crate::fs::Durable;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::log::records::{Record, RecordsToWrite};
use crate::fs::sfs::settings::Fsync;
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;
use std::collections::BTreeSet;

/// The work that a sync of a file requires.
pub(super) enum SyncWork {
    /// Flush.
    Flush,
    /// Write log records and dirty blocks, then flush.
    Log,
    /// A checkpoint.
    Checkpoint,
}

/// A sync of a volume.
pub(super) struct Syncing<'s> {
    task: &'s Task<'s>,
    files: &'s mut Files,
    writer: &'s mut Writer,
    fsync: Fsync,
}

impl<'s> Syncing<'s> {
    /// Of this volume.
    pub fn of(task: &'s Task<'s>, volume: &'s mut Sfs) -> Syncing<'s> {
        Syncing { task, files: &mut volume.files, writer: &mut volume.writer, fsync: volume.settings.fsync }
    }

    fn groups(&mut self) -> GroupWriter<'_> {
        GroupWriter { task: self.task, files: self.files, writer: self.writer }
    }

    /// Determines the work needed to make a file durable.
    pub fn begin(&mut self, number: u64, what: Durable) -> Result<SyncWork, SfsError> {
        let file = self.files.inode(self.task, number)?;
        // New access times alone need not be durable for fdatasync; all other changes are in records.
        let (is_unlogged, has_grown) = (file.is_unlogged, file.safe_size != file.size);
        if self.writer.faults.read_only.is_some() {
            self.check_all_stored()?;
            return Ok(SyncWork::Flush);
        }
        self.writer.events.syncs += 1;
        let waits = self.files.dirty_blocks.has_changed(number);
        // Its blocks may be written, but after the last seal.
        let must_tell = waits
            || has_grown
            || self.writer.log.is_unsealed
            || self.files.records.touches(number)
            || is_unlogged && what == Durable::All;
        if !must_tell {
            return Ok(SyncWork::Flush);
        }
        if self.fsync == Fsync::Checkpoint
            || self.writer.is_log_long()
            || self.files.records.len() > self.writer.limits.segment_capacity as usize * 1024
        {
            return Ok(SyncWork::Checkpoint);
        }
        if what == Durable::All {
            self.files.records.touch(number);
        }
        Ok(SyncWork::Log)
    }

    /// Fails if a read-only volume holds changes that will never be durable: a sync must not report success.
    pub fn check_all_stored(&self) -> Result<(), SfsError> {
        if self.files.is_changed || self.writer.log.is_unflushed { self.writer.faults.check_writable() } else { Ok(()) }
    }

    /// Writes all log records, then the changed blocks of these files, and seals the log.
    pub fn write_log(&mut self, mut files: BTreeSet<u64>) -> Result<(), SfsError> {
        let mut slots = Vec::new();
        // A file renamed over another is written with its new name.
        self.files.renamed.iter().for_each(|file| self.files.records.touch(*file));
        files.append(&mut self.files.renamed);
        for file in files {
            if self.files.inodes.contains(file) {
                slots.extend(self.files.dirty_blocks.changed_of(file));
                let inode = self.files.inode_mut(self.task, file)?;
                // Of a file that is as long as before, an fdatasync needs no new times.
                let has_grown = inode.safe_size != inode.size;
                inode.safe_size = inode.size;
                if has_grown {
                    self.files.records.touch(file);
                }
                let is_told = self.files.records.touches(file);
                self.files.inode_mut(self.task, file)?.is_unlogged &= !is_told;
            }
        }
        let before = self.writer.superblock.next_partial.get();
        let (mut told, touched) = self.files.records.take();
        for touched in touched {
            match self.files.inode(self.task, touched) {
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
        if self.fsync == Fsync::Log {
            log_small_changes(self.files, self.writer, &mut slots, &mut told);
        }
        if self.writer.log.is_unsealed && told.is_empty() && slots.is_empty() {
            // A seal needs at least one record or block.
            let root = self.files.inode(self.task, InodeNumber::ROOT.0)?.image(0);
            told.add(&Record::Inode(&root), before);
        }
        let mut parts = self.groups().parts_of_sync(&slots)?;
        if parts.is_empty() {
            // Records alone go where the last group goes, which that of new blocks is in most groupings.
            let groups = self.writer.grouping.groups();
            let of_last =
                self.writer.log.rest_head().unwrap_or(self.writer.log.head_of(groups.saturating_sub(1), groups));
            parts.push((self.writer.log.open_heads().last().map_or(of_last, |(number, _)| number), Vec::new()));
        }
        let mut left = parts.len();
        for (head, mut slots) in parts {
            left -= 1;
            // The records come first: their partial segment has the lower number.
            let told = std::mem::replace(&mut told, RecordsToWrite::nothing());
            let written = self.groups().write_slots(Destination::Head(head), &mut slots, told, left == 0);
            written.inspect_err(|error| {
                // The records were taken, and a later sync would not write them.
                self.writer.fail(self.files, format!("a sync failed: {error}"));
            })?;
        }
        Ok(())
    }
}
