//! Rolling forward: a mount after a crash applies the log since the last checkpoint.
//!
//! `log_tail` finds the log's partial segments, up to the last one that seals the log. What follows it was never
//! answered for: a part of an fsync, blocks of files whose names are not in the log, or a checkpoint that was not
//! ended.
//!
//! Of what the checkpoint names, only blocks of files that are dead by the log were overwritten since, and no number
//! was given out again. So the log's blocks and records can be applied in order to the checkpoint's state in memory, as
//! often as need be, until the checkpoint that ends the mount is durable.
//!
//! Bytes of log records make blocks dirty: the checkpoint that ends the mount writes them.
//!
//! Parts of the log may be damaged. Whole parts are applied all the same, and `lost_parts` gives up what is unknown
//! then.

use super::applied::Applied;
use super::finding::Finding;
use super::left_out::tolerate;
use super::log_tail;
use super::logged_bytes::LoggedBytes;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::files::attribute_blocks::AttributeBlocks;
use crate::fs::sfs::files::inode::Inode;
use crate::fs::sfs::files::names::Names;
use crate::fs::sfs::files::removal::free_inode;
use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::log::segments::State;
use crate::fs::sfs::log::{Log, LogReader, PartialSegment};
use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::format::MOST_BLOCKS;
use crate::fs::sfs::media::format::{BLOCK, BlockRecord, Kind, NO_GROUP, Superblock};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::placement::Tick;
use crate::fs::sfs::write_back::Writer;
use crate::fs::sfs::{FileKind, InodeNumber, Sfs, SfsError, Timestamp};
use crate::task::Task;
use std::collections::BTreeSet;

/// Applies the log since the last checkpoint, in memory. Answers which parts of it are damaged.
///
/// Fails if the device does.
pub(super) fn roll_forward(task: &Task<'_>, volume: &mut Sfs) -> Result<Vec<Finding>, SfsError> {
    let Sfs { files, writer: Writer { superblock, log: Log { flushed, epoch, .. }, limits, .. }, .. } = volume;
    let followed =
        log_tail::behind(superblock, LogReader::new(task, &files.media, superblock.identity), &files.segments)?;
    let mut damage = followed.damage;
    // No number that is anywhere on the media is given out again.
    superblock.next_partial = (followed.highest + files.media.log_blocks() + 1).into();
    *flushed = superblock.next_partial.get();
    let log = followed.partials;
    if log.is_empty() && files.orphans.is_empty() {
        return Ok(damage);
    }
    let most_taken = limits.most_taken(files.media.log_blocks());
    let mut rolling = RollForward { task, files, most_taken };
    rolling.reserve_places(superblock, *epoch, &log)?;
    rolling.make_inodes(&log)?;
    rolling.apply_log(&log, followed.lost, &mut damage)?;
    rolling.give_back_unused(&log)?;
    let segments: BTreeSet<u32> = log.iter().map(|found| found.segment).collect();
    for segment in segments {
        if files.segments.get(segment).state == State::Open {
            files.segments.close(segment);
        }
    }
    files.is_changed = true;
    Ok(damage)
}

/// Files to which a log is applied.
struct RollForward<'a> {
    task: &'a Task<'a>,
    files: &'a mut Files,
    /// Virtual blocks that there can be.
    most_taken: u64,
}

impl RollForward<'_> {
    /// Applies the blocks and records of a log in order: each record before the blocks of the partial segment that it
    /// names.
    fn apply_log(&mut self, log: &[PartialSegment], lost: Vec<u64>, damage: &mut Vec<Finding>) -> Result<(), SfsError> {
        let exact_up_to = lost.first().map_or(u64::MAX, |lost| {
            let sealed = log.iter().filter(|found| found.seals() && found.number() < *lost);
            sealed.map(PartialSegment::number).max().unwrap_or(0)
        });
        let records =
            log.iter().flat_map(|found| found.records().map(|(before, record)| (before, found.number(), record)));
        let mut records: Vec<(u64, u64, Record)> = records.collect();
        records.sort_by_key(|(before, ..)| *before);
        let mut records = records.into_iter().peekable();
        let mut applied = Applied::nothing(exact_up_to, lost);
        for found in log {
            while let Some((_, partial, record)) = records.next_if(|(before, ..)| *before <= found.number()) {
                self.apply_record(&record, partial, &mut applied, damage)?;
            }
            self.files.clock.tick = self.files.clock.tick.max(Tick(found.header.tick.get()));
            for (block, record) in found.blocks().filter(|(_, record)| record.kind == Kind::Data as u8) {
                let done = self.apply_block(found, block, &record, &mut applied);
                tolerate(done, damage)?;
                applied.writes(record.inode.get(), record.place.get(), found.number());
            }
        }
        for (_, partial, record) in records {
            self.apply_record(&record, partial, &mut applied, damage)?;
        }
        applied.report_missed(damage);
        self.trim_inodes(&applied.filled, damage)?;
        applied.after_gap.give_up_unknown(self.task, self.files, damage)
    }

    fn apply_record(
        &mut self,
        record: &Record,
        partial: u64,
        applied: &mut Applied,
        damage: &mut Vec<Finding>,
    ) -> Result<(), SfsError> {
        let can_be = match partial > applied.exact_up_to {
            true => applied.after_gap.note(self.task, self.files, record, partial),
            false => Ok(true),
        };
        let done = can_be.and_then(|can_be| if can_be { self.apply(record, applied) } else { Ok(false) });
        if let (Ok(true), Record::Bytes { inode, place, .. }) = (&done, record) {
            applied.writes(*inode, *place, partial);
        }
        tolerate(done.map(drop), damage)
    }

    /// Reserves the segments and virtual blocks that the log uses, so that nothing else is put there.
    fn reserve_places(&mut self, superblock: &Superblock, epoch: u64, log: &[PartialSegment]) -> Result<(), SfsError> {
        let open: BTreeSet<u32> = superblock.open_ends().map(|(_, segment, _)| segment).collect();
        for found in log {
            if open.contains(&found.segment) && self.files.segments.get(found.segment).state != State::Open {
                self.files.segments.reopen(found.segment);
            }
            self.files.segments.take_found(found.segment, Tick(found.header.tick.get()), found.header.group);
            // It holds a part of the log until the checkpoint that ends the mount.
            self.files.segments.touch(found.segment, epoch);
            for (_, record) in found.blocks().filter(|(_, record)| record.kind == Kind::Data as u8) {
                if self.can_be_taken(record.number.get()) {
                    self.files.metadata.dat.take_found(self.task, record.number.get())?;
                }
            }
        }
        Ok(())
    }

    /// True if a virtual block can have this number.
    pub(super) fn can_be_taken(&self, number: u64) -> bool {
        number != 0 && number < self.most_taken
    }

    /// True if an inode can have this number.
    fn can_be_inode(&self, number: u64) -> bool {
        number != 0 && number < self.most_taken * INODES
    }

    /// Makes the inodes that are in the log and not in the checkpoint.
    fn make_inodes(&mut self, log: &[PartialSegment]) -> Result<(), SfsError> {
        for found in log {
            for (_, record) in found.records() {
                let Record::Inode(image) = record else { continue };
                let number = image.number.get();
                if !self.can_be_inode(number) || self.files.is_inode(self.task, number)? {
                    continue;
                }
                let Some(kind) = FileKind::of_number(image.kind) else { continue };
                self.files.metadata.inode_file.take_found(number);
                self.files.inodes.insert(Inode::new(number, image.generation.get(), kind, Timestamp(0)));
            }
        }
        Ok(())
    }

    /// Applies a record. Returns false if it has no effect: its inode is freed, or it cannot be applied to it.
    fn apply(&mut self, record: &Record, applied: &mut Applied) -> Result<bool, SfsError> {
        let number = match record {
            Record::Name { directory, .. } | Record::NoName { directory, .. } => *directory,
            Record::Unmap { inode, .. } | Record::Reserve { inode, .. } | Record::Target { inode, .. } => *inode,
            Record::Attributes { inode, .. } | Record::Freed { inode } | Record::Bytes { inode, .. } => *inode,
            Record::Inode(image) => image.number.get(),
            Record::Holes { .. } => return Ok(false),
        };
        // The log speaks of what was freed, too.
        if !self.files.is_inode(self.task, number)? {
            return Ok(false);
        }
        match record {
            Record::Bytes { inode, place, at, crc, bytes } => {
                let logged = LoggedBytes { inode: *inode, place: *place, at: *at, crc: *crc, bytes: *bytes };
                return logged.apply(self.task, self.files, applied);
            }
            Record::Name { directory, inode, kind, name } => {
                if self.files.inode(self.task, *directory)?.kind != FileKind::Directory {
                    return Ok(false);
                }
                Names::of(self.task, self.files).remove_name(*directory, name)?;
                Names::of(self.task, self.files).add_name(*directory, name, *inode, *kind)
            }
            Record::NoName { directory, name } => match self.files.inode(self.task, *directory)?.kind {
                FileKind::Directory => Names::of(self.task, self.files).remove_name(*directory, name).map(drop),
                _ => return Ok(false),
            },
            Record::Unmap { inode, places } => {
                applied.frees(*inode, places);
                self.files.unmap(self.task, *inode, places.clone())
            }
            Record::Reserve { inode, places } => {
                let is_sane =
                    self.files.inode(self.task, *inode)?.kind == FileKind::Regular && places.end <= MOST_BLOCKS;
                let most = u64::from(self.files.media.segments()) * u64::from(self.files.media.segment_blocks());
                match is_sane && places.end.saturating_sub(places.start) <= most {
                    // The numbers need not be those that it had: what was written there since is in the log.
                    true => self.files.reserve(self.task, *inode, places.clone()),
                    false => return Ok(false),
                }
            }
            Record::Target { inode, bytes } => Names::of(self.task, self.files).store_target(*inode, bytes),
            Record::Attributes { inode, length, at, bytes } => {
                AttributeBlocks::of(self.task, self.files, *inode).store(*length as usize, *at as usize, bytes)
            }
            Record::Inode(image) => {
                let holds = invariants::inode(image, number);
                holds.map_err(|why| SfsError::Damaged { what: format!("inode {number} in the log"), why })?;
                let file = self.files.inode_mut(self.task, number)?;
                file.take(image);
                match file.links {
                    0 => self.files.orphans.insert(number),
                    _ => self.files.orphans.remove(&number),
                };
                Ok(())
            }
            Record::Freed { inode } => {
                applied.frees(*inode, &(0..u64::MAX));
                self.files.orphans.remove(inode);
                match InodeNumber(*inode) {
                    InodeNumber::ROOT => Ok(()),
                    _ => self.free_whatever_it_names(*inode),
                }
            }
            Record::Holes { .. } => Ok(()),
        }
        .map(|()| true)
    }

    /// A block of the log takes its place in its file.
    fn apply_block(
        &mut self,
        found: &PartialSegment,
        block: u32,
        record: &BlockRecord,
        applied: &mut Applied,
    ) -> Result<(), SfsError> {
        let (number, place) = (record.number.get(), record.place.get());
        if !self.can_be_taken(number) || place > MOST_BLOCKS {
            return Ok(());
        }
        let owner = record.inode.get();
        if !self.files.is_inode(self.task, owner)? || self.files.inode(self.task, owner)?.holds_metadata() {
            return Ok(());
        }
        let mut entry = self.files.metadata.dat.get(self.task, number)?;
        if entry.is_taken != 1 {
            return Ok(());
        }
        let mapped = match self.files.mapped(self.task, owner, place) {
            Err(error @ SfsError::Damaged { .. }) if entry.address.get() == 0 => {
                self.files.miss_a_block(self.task, owner)?;
                return Err(error);
            }
            mapped => mapped?,
        };
        if mapped != number {
            if mapped != 0 {
                self.files.free_block(self.task, owner, mapped)?;
            }
            if mapped == 0 || applied.filled.contains(&mapped) {
                applied.filled.insert(number);
            }
            self.files.map(self.task, owner, place, number)?;
            self.files.inode_mut(self.task, owner)?.blocks += 1;
        }
        applied.missed.remove(&(owner, place));
        self.files.drop_dirty(&mut entry);
        let segment_blocks = u64::from(self.files.media.segment_blocks());
        let before = entry.address.get();
        if before != 0 {
            self.files.segments.lose(
                (before / segment_blocks) as u32,
                Kind::Data,
                entry.writes.get(),
                entry.modified.get(),
            );
        }
        if record.is_counted() {
            self.files.count_write(self.task, &mut entry, owner, Tick(found.header.tick.get()))?;
        }
        if !record.is_copy() {
            // What was cleaned should be what it was before, and may have been damaged then.
            entry.crc = record.crc;
        }
        entry.address = (u64::from(found.segment) * segment_blocks + u64::from(block)).into();
        entry.is_lost = 0;
        entry.group = if record.group < NO_GROUP { record.group } else { NO_GROUP };
        self.files.segments.gain(found.segment, Kind::Data, entry.writes.get(), entry.modified.get());
        self.files.metadata.dat.set(self.task, number, &entry)
    }

    /// Frees an inode, although parts of its map cannot be followed: with some of its blocks taken away, the rest of it
    /// would read as zeros. What its map names there is named by nothing from then on, and a repair frees it.
    fn free_whatever_it_names(&mut self, number: u64) -> Result<(), SfsError> {
        let freed = free_inode(self.task, self.files, number);
        if let Err(SfsError::Damaged { .. }) = freed {
            self.files.orphans.remove(&number);
            self.files.inodes.remove(number);
            self.files.metadata.inode_file.free(number);
            self.files.is_changed = true;
        }
        freed
    }

    /// Inodes without a name are held by nobody any more, and are freed. Of the others blocks behind the end go.
    fn trim_inodes(&mut self, filled: &BTreeSet<u64>, damage: &mut Vec<Finding>) -> Result<(), SfsError> {
        for orphan in std::mem::take(&mut self.files.orphans) {
            let freed = match self.files.inode(self.task, orphan).map(|inode| inode.links) {
                Ok(0) => self.free_whatever_it_names(orphan),
                Ok(_) | Err(SfsError::NotFound) => Ok(()),
                Err(error) => Err(error),
            };
            tolerate(freed, damage)?;
        }
        let mut loaded: Vec<u64> =
            self.files.inodes.iter().filter(|inode| inode.is_dirty).map(|inode| inode.number).collect();
        loaded.sort_unstable();
        for number in loaded {
            let trimmed = self.trim(number, filled);
            tolerate(trimmed, damage)?;
        }
        Ok(())
    }

    /// Blocks behind the end of a file were written and never synced: those at places where there was none go, the
    /// others are reserved as before.
    fn trim(&mut self, number: u64, filled: &BTreeSet<u64>) -> Result<(), SfsError> {
        let inode = self.files.inode(self.task, number)?;
        if inode.kind != FileKind::Regular {
            return Ok(());
        }
        let (mut at, mut gone) = (inode.size.div_ceil(BLOCK as u64), 0..0);
        while let Some((place, virtual_block)) = self.files.next_mapped(self.task, number, at, MOST_BLOCKS)? {
            at = place + 1;
            if !filled.contains(&virtual_block) {
                self.unwrite(virtual_block)?;
            } else if gone.end == place {
                gone.end = at;
            } else {
                self.files.unmap(self.task, number, std::mem::replace(&mut gone, place..at))?;
            }
        }
        self.files.unmap(self.task, number, gone)
    }

    /// A virtual block of a file is reserved, as if it had never been written.
    fn unwrite(&mut self, number: u64) -> Result<(), SfsError> {
        let mut entry = self.files.metadata.dat.get(self.task, number)?;
        self.files.drop_dirty(&mut entry);
        let address = entry.address.get();
        if address != 0 {
            let segment = (address / u64::from(self.files.media.segment_blocks())) as u32;
            self.files.segments.lose(segment, Kind::Data, entry.writes.get(), entry.modified.get());
            (entry.address, entry.crc) = (0.into(), 0.into());
        }
        self.files.metadata.dat.set(self.task, number, &entry)
    }

    /// Gives back virtual blocks that are in the log, and that no file has.
    fn give_back_unused(&mut self, log: &[PartialSegment]) -> Result<(), SfsError> {
        for found in log {
            for (_, record) in found.blocks().filter(|(_, record)| record.kind == Kind::Data as u8) {
                let number = record.number.get();
                if !self.can_be_taken(number) {
                    continue;
                }
                let entry = self.files.metadata.dat.get(self.task, number)?;
                let lies_nowhere = entry.is_taken == 1 && entry.address.get() == 0 && !entry.is_given_up();
                if lies_nowhere && self.is_unmapped(&record)? {
                    self.files.metadata.dat.free_unlogged(self.task, number)?;
                }
            }
        }
        Ok(())
    }

    /// True if the file of a block record does not name that virtual block. One whose map cannot be followed may name
    /// it.
    fn is_unmapped(&mut self, record: &BlockRecord) -> Result<bool, SfsError> {
        match self.files.mapped(self.task, record.inode.get(), record.place.get()) {
            Ok(mapped) => Ok(mapped != record.number.get()),
            Err(SfsError::NotFound) => Ok(true),
            Err(SfsError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
