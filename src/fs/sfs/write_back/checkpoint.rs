//! A checkpoint (section 3.7): all changes are written, then a superblock that refers to them. Blocks freed before it
//! become available.
//!
//! Full segments of groups are written first, one per turn, then all other changes in a single turn
//! ([`Checkpoint::begin`]), so that the checkpoint is of one instant. The gate is free while they and the
//! superblocks become durable ([`WrittenCheckpoint::store`]). The last turn frees the segments that the checkpoint does
//! not refer to ([`Checkpoint::end`]).

use super::groups::{GroupWriter, write_full_segments};
use super::writer::{Destination, Item, Writer};
use super::{Turns, WriteBack};
use crate::fs::sfs::failure::changes;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::Head;
use crate::fs::sfs::log::records::{Record, RecordsToWrite};
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::usage_pages;
use crate::fs::sfs::media::format::{Kind, OpenEnd, Superblock, VERSION};
use crate::fs::sfs::metadata::paged::LEVEL_SHIFT;
use crate::fs::sfs::{Sfs, SfsError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use zerocopy::little_endian::F64;

impl<T: Turns> WriteBack<'_, T> {
    /// Takes a checkpoint. `clean`: the volume is being unmounted, so no log follows.
    pub fn checkpoint(&mut self, clean: bool) -> Result<(), SfsError> {
        self.turn(|sfs, task| Checkpoint::of(task, sfs).prepare())?;
        let grouped = write_full_segments(self);
        let task = self.task;
        let written = match grouped {
            // The device makes the changes of this turn in the flush.
            Ok(()) => self.turns.turn(|sfs| Checkpoint::of(task, sfs).begin(clean)),
            Err(error) => Err(error),
        };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                // The checkpoint is partly written, and memory is ahead of the media.
                self.turn(|sfs, _| {
                    sfs.writer.fail(&sfs.files, format!("a checkpoint failed: {error}"));
                    Ok(())
                })?;
                return Err(error);
            }
        };
        let stored = written.store(task, &self.media);
        self.turn(|sfs, task| {
            Checkpoint::of(task, sfs).end(stored)?;
            sfs.schedule.checkpoint_taken(task.now());
            Ok(())
        })
    }
}

/// A checkpoint that is being taken.
pub(in crate::fs::sfs) struct Checkpoint<'c> {
    task: &'c Task<'c>,
    files: &'c mut Files,
    writer: &'c mut Writer,
}

impl<'c> Checkpoint<'c> {
    /// Of this volume.
    pub fn of(task: &'c Task<'c>, volume: &'c mut Sfs) -> Checkpoint<'c> {
        Checkpoint { task, files: &mut volume.files, writer: &mut volume.writer }
    }

    /// Prepares to write full segments, and then all other changes.
    pub fn prepare(&mut self) -> Result<(), SfsError> {
        self.writer.faults.check_writable()?;
        // While the checkpoint is in progress, its changes count as stored.
        self.writer.faults.in_checkpoint = Some(changes(self.files, &self.writer.log));
        Ok(())
    }

    /// Writes all changes. Until the checkpoint is [stored](WrittenCheckpoint::store) and [ended](Checkpoint::end),
    /// nothing is written to the log, no segment is freed, and no freed inode number is allocated; later changes belong
    /// to the next checkpoint.
    pub fn begin(&mut self, clean: bool) -> Result<WrittenCheckpoint, SfsError> {
        // Data blocks of groups that do not fill a segment.
        GroupWriter { task: self.task, files: self.files, writer: self.writer }.write_rest()?;
        debug_assert_eq!(self.files.dirty_blocks.len(), 0, "a checkpoint leaves no dirty data block");
        // Metadata blocks, which change the DAT.
        let blocks: Vec<Item> = self.files.metadata.blocks.dirty_numbers().into_iter().map(Item::Metadata).collect();
        self.writer.write_blocks(self.task, self.files, Destination::Metadata, &blocks)?;
        debug_assert_eq!(self.files.metadata.blocks.dirty(), 0, "a checkpoint leaves no dirty metadata block");
        // Inodes in their current state. Freed numbers of inodes and virtual blocks become free.
        self.store_inodes()?;
        debug_assert_eq!(self.files.inodes.changed(), 0, "a checkpoint leaves no dirty inode");
        self.files.metadata.dat.apply_frees(self.task)?;
        self.free_pages();
        self.write_paged(Kind::InodeFile)?;
        self.write_paged(Kind::Dat)?;
        self.writer.check_emptied(self.task, self.files)?;
        self.write_usage()?;

        self.files.is_changed = false;
        self.files.records.clear();
        self.files.renamed.clear();
        self.files.segments.end_cleaning();
        self.files.segments.apply_frees();
        self.files.inodes.checkpoint();
        self.writer.log.is_flushing = true;
        Ok(WrittenCheckpoint { superblocks: self.next_superblocks(clean) })
    }

    /// Ends a checkpoint that was stored or failed: frees the segments that it does not refer to.
    pub fn end(&mut self, stored: Result<Superblock, SfsError>) -> Result<(), SfsError> {
        assert!(self.writer.log.is_flushing, "a checkpoint is in progress");
        self.writer.log.is_flushing = false;
        self.writer.superblock = stored.inspect_err(|error| {
            self.files.is_changed = true;
            self.writer.fail(self.files, format!("a checkpoint failed: {error}"));
        })?;
        self.writer.note_flushed();
        self.writer.sent.add(Label::first(Cause::Checkpoint, Content::Metadata), 2);
        self.writer.log.is_unsealed = false;
        self.writer.faults.in_checkpoint = None;
        self.files.metadata.inode_file.end_checkpoint();
        self.writer.log.epoch += 1;
        for segment in self.files.segments.release(|segment| segment.is_settled) {
            self.writer.discards.discard(self.task, self.files, segment)?;
        }
        self.writer.log.segments_since_checkpoint = 0;
        self.writer.events.checkpoints += 1;
        Ok(())
    }

    /// Stores dirty inodes in the pages of the inode file, and links those without a name.
    fn store_inodes(&mut self) -> Result<(), SfsError> {
        self.files.metadata.inode_file.apply_frees(self.task)?;
        for number in self.files.inodes.take_changed() {
            let next = match self.files.orphans.contains(&number) {
                true => self.files.orphans.range(number + 1..).next().copied().unwrap_or(0),
                false => 0,
            };
            let image = self.files.inodes.peek(number).expect("the inode was just listed").image(next);
            self.files.metadata.inode_file.set(self.task, number, &image)?;
        }
        Ok(())
    }

    /// Frees pages of the DAT and of the inode file that hold nothing.
    fn free_pages(&mut self) {
        let segment_blocks = u64::from(self.files.media.segment_blocks());
        for (kind, addresses) in [
            (Kind::Dat, self.files.metadata.dat.free_pages()),
            (Kind::InodeFile, self.files.metadata.inode_file.free_pages()),
        ] {
            for address in addresses {
                self.files.segments.lose((address / segment_blocks) as u32, kind, 0, 0);
            }
        }
    }

    fn write_paged(&mut self, kind: Kind) -> Result<(), SfsError> {
        let numbers = self.files.metadata.paged(kind).list_to_write();
        let items: Vec<Item> = numbers.iter().map(|number| Item::Paged(kind, *number)).collect();
        let before = self.writer.superblock.next_partial.get();
        let mut told = RecordsToWrite::nothing();
        let pages = numbers.iter().take_while(|number| **number >> LEVEL_SHIFT == 0).count();
        for number in &numbers[pages..] {
            let holes = self.files.metadata.paged(kind).holes(*number);
            if holes.iter().any(|holes| *holes != 0) {
                told.add(&Record::Holes { kind: kind as u8, number: *number, holes: &holes }, before);
            }
        }
        // Records of holes are written with the tree, and so live as long as it does.
        let together = if told.is_empty() { 0 } else { pages };
        self.writer.write_blocks(self.task, self.files, Destination::Metadata, &items[..together])?;
        self.writer.write_with_records(
            self.task,
            self.files,
            Destination::Metadata,
            &items[together..],
            told,
            false,
        )?;
        self.files.metadata.paged(kind).written();
        Ok(())
    }

    /// Writes the usage file in one partial segment: its own blocks are part of the usage.
    fn write_usage(&mut self) -> Result<(), SfsError> {
        let pages = usage_pages(self.files.segments.count());
        self.files.metadata.usage_file.grow(pages);
        for page in 0..pages {
            self.files.metadata.usage_file.page_mut(self.task, page)?;
        }
        let items: Vec<Item> = self
            .files
            .metadata
            .usage_file
            .list_to_write()
            .into_iter()
            .map(|number| Item::Paged(Kind::UsageFile, number))
            .collect();
        if (self.writer.room_at(self.files.media.segment_blocks(), Destination::Metadata) as usize) < items.len() {
            self.writer.close_head(self.task, self.files, Destination::Metadata)?;
        }
        // Its pages are filled when all addresses are assigned: see `fill_usage`.
        self.writer.write_blocks(self.task, self.files, Destination::Metadata, &items)?;
        self.files.metadata.usage_file.written();
        Ok(())
    }

    /// Writes the superblock of all durable changes to both places.
    pub fn write_superblocks(&mut self, clean: bool) -> Result<(), SfsError> {
        let written = WrittenCheckpoint { superblocks: self.next_superblocks(clean) };
        self.writer.superblock = written.store_superblocks(self.task, &self.files.media)?;
        self.writer.note_flushed();
        self.writer.sent.add(Label::first(Cause::Checkpoint, Content::Metadata), 2);
        Ok(())
    }

    /// The next two superblocks, one for each place, for a checkpoint of all written changes.
    fn next_superblocks(&self, clean: bool) -> [Superblock; 2] {
        let memory = self.writer.grouping.state();
        let mut superblock = self.writer.superblock;
        superblock.version = VERSION.into();
        superblock.clean = u32::from(clean).into();
        superblock.tick = self.files.clock.tick.0.into();
        (superblock.open_segment, superblock.open_block) = (u32::MAX.into(), 0.into());
        superblock.heads = self.writer.log.heads.map(|head| match head {
            Some(Head { segment, block }) => OpenEnd { segment: segment.into(), block: block.into() },
            None => OpenEnd::default(),
        });
        superblock.next_segment = self.files.segments.next().map_or(0, |next| next + 1).into();
        superblock.first_orphan = self.files.orphans.first().copied().unwrap_or(0).into();
        superblock.unused = 0.into();
        superblock.inodes = self.files.metadata.inode_file.count().into();
        superblock.used_inodes = self.files.metadata.inode_file.used().into();
        superblock.used_blocks = self.files.metadata.dat.used().into();
        superblock.inode_file = self.files.metadata.inode_file.root();
        superblock.dat = self.files.metadata.dat.root();
        superblock.usage_file = self.files.metadata.usage_file.root();
        superblock.memories = (memory.len().min(crate::fs::sfs::media::format::MEMORY) as u32).into();
        for (place, number) in superblock.memory.iter_mut().zip(memory) {
            *place = F64::new(number);
        }
        superblock.sequence += 1;
        let mut second = superblock;
        second.sequence += 1;
        [superblock, second]
    }
}

/// A written checkpoint without its superblocks.
#[must_use = "a checkpoint is valid after it is stored"]
pub(in crate::fs::sfs) struct WrittenCheckpoint {
    superblocks: [Superblock; 2],
}

impl WrittenCheckpoint {
    /// Flushes the device, then writes and flushes the superblocks. Returns the last one. It does not need the gate.
    pub fn store(&self, task: &Task<'_>, media: &Media) -> Result<Superblock, SfsError> {
        media.flush(task)?;
        self.store_superblocks(task, media)
    }

    /// Writes the superblock to both places, making the first durable before the second is overwritten. If one is
    /// damaged later, the other is equivalent; the previous checkpoint is not, as its freed blocks are reused from now
    /// on.
    fn store_superblocks(&self, task: &Task<'_>, media: &Media) -> Result<Superblock, SfsError> {
        media.wipe_damaged_place(task, self.superblocks[0].sequence.get())?;
        media.keep_superblocks_together();
        for superblock in &self.superblocks {
            media.write_superblock(task, superblock.sequence.get(), &superblock.with_checksum())?;
            media.flush(task)?;
        }
        Ok(self.superblocks[1])
    }
}
