//! A checkpoint (section 3.7): all that is changed is written, then a superblock that names it. What was freed before
//! is free from then on.
//!
//! Full segments of groups are written first, a segment a turn; all other changes in one turn
//! ([`Sfs::begin_checkpoint`]), so that the checkpoint is of one instant. Nobody needs the volume while they and the
//! superblocks are made durable ([`WrittenCheckpoint::store`]). The last turn frees the segments that the checkpoint no
//! longer names ([`Sfs::end_checkpoint`]).

use super::{Turns, WriteBack};
use crate::fs::sfs::log::records::{Record, Told};
use crate::fs::sfs::log::{Destination, Item};
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::usage_pages;
use crate::fs::sfs::media::format::{Kind, Superblock, VERSION};
use crate::fs::sfs::metadata::paged::LEVEL_SHIFT;
use crate::fs::sfs::{Sfs, SfsError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use zerocopy::little_endian::F64;

impl<T: Turns> WriteBack<'_, T> {
    /// Takes a checkpoint. `clean`: the volume is unmounted, and nothing follows in the log.
    pub fn checkpoint(&mut self, clean: bool) -> Result<(), SfsError> {
        self.turn(|sfs, _| sfs.prepare_checkpoint())?;
        let grouped = self.write_full_segments();
        let task = self.task;
        let written = match grouped {
            // The device makes the changes of this turn when it is flushed.
            Ok(()) => self.turns.turn(|sfs| sfs.begin_checkpoint(task, clean)),
            Err(error) => Err(error),
        };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                // It is written in part, and memory is ahead of it.
                self.turn(|sfs, _| {
                    sfs.fail(format!("a checkpoint failed: {error}"));
                    Ok(())
                })?;
                return Err(error);
            }
        };
        let stored = written.store(task, &self.media);
        self.turn(|sfs, task| sfs.end_checkpoint(task, stored))
    }
}

impl Sfs {
    /// Takes a checkpoint while nobody else uses the volume.
    pub(in crate::fs::sfs) fn checkpoint(&mut self, task: &Task<'_>, clean: bool) -> Result<(), SfsError> {
        self.write_back(task).checkpoint(clean)
    }

    fn prepare_checkpoint(&mut self) -> Result<(), SfsError> {
        self.check_writable()?;
        // On its way it takes for stored what is only written.
        self.faults.at_stake = Some(self.changes());
        Ok(())
    }

    /// Writes all changes. Until the checkpoint is [stored](WrittenCheckpoint::store) and [ended](Sfs::end_checkpoint)
    /// nothing is written to the log, no segment is freed, and no freed inode number is given out; later changes belong to
    /// the next checkpoint.
    fn begin_checkpoint(&mut self, task: &Task<'_>, clean: bool) -> Result<WrittenCheckpoint, SfsError> {
        // Blocks of files that fill no segment of a group.
        self.write_rest(task)?;
        debug_assert_eq!(self.waiting.len(), 0, "a checkpoint leaves no block of a file in memory alone");
        // Metadata that the DAT knows.
        let blocks: Vec<Item> = self.metadata.blocks.dirty_numbers().into_iter().map(Item::Metadata).collect();
        self.write_blocks(task, Destination::Metadata, &blocks)?;
        debug_assert_eq!(self.metadata.blocks.dirty(), 0, "a checkpoint leaves no block of metadata in memory alone");
        // Inodes, as they are now. Numbers of inodes and virtual blocks that were freed are free.
        self.store_inodes(task)?;
        debug_assert_eq!(self.inodes.changed(), 0, "a checkpoint leaves no inode in memory alone");
        self.metadata.dat.settle(task)?;
        self.free_pages();
        self.write_paged(task, Kind::InodeFile)?;
        self.write_paged(task, Kind::Dat)?;
        self.check_emptied(task)?;
        self.write_usage(task)?;

        self.is_changed = false;
        self.log.records.clear();
        self.renamed.clear();
        self.log.segments.end_cleaning();
        self.log.segments.settle();
        self.inodes.checkpoint();
        self.log.is_flushing = true;
        Ok(WrittenCheckpoint { superblocks: self.next_superblocks(clean) })
    }

    /// Ends a checkpoint that was stored, or could not be: frees the segments that it no longer names.
    fn end_checkpoint(&mut self, task: &Task<'_>, stored: Result<Superblock, SfsError>) -> Result<(), SfsError> {
        assert!(self.log.is_flushing, "a checkpoint was begun");
        self.log.is_flushing = false;
        self.superblock = stored.inspect_err(|error| {
            self.is_changed = true;
            self.fail(format!("a checkpoint failed: {error}"));
        })?;
        self.all_is_flushed();
        self.counts.sent.add(Label::first(Cause::Checkpoint, Content::Metadata), 2);
        self.log.is_unsealed = false;
        self.faults.at_stake = None;
        self.metadata.inode_file.end_checkpoint();
        self.log.epoch += 1;
        for segment in self.log.segments.release(|segment| segment.is_settled) {
            self.discard(task, segment)?;
        }
        self.log.segments_since_checkpoint = 0;
        self.next_checkpoint = task.now() + self.settings.checkpoint_ns;
        self.counts.events.checkpoints += 1;
        Ok(())
    }

    /// Puts changed inodes into the pages of the inode file, and chains those without a name.
    fn store_inodes(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        self.metadata.inode_file.settle(task)?;
        for number in self.inodes.take_changed() {
            let next = match self.orphans.contains(&number) {
                true => self.orphans.range(number + 1..).next().copied().unwrap_or(0),
                false => 0,
            };
            let image = self.inodes.peek(number).expect("it was just listed").image(next);
            self.metadata.inode_file.set(task, number, &image)?;
        }
        Ok(())
    }

    /// Pages of the DAT and of the inode file that hold nothing any more lie nowhere.
    fn free_pages(&mut self) {
        let segment_blocks = u64::from(self.media.segment_blocks());
        for (kind, addresses) in
            [(Kind::Dat, self.metadata.dat.free_pages()), (Kind::InodeFile, self.metadata.inode_file.free_pages())]
        {
            for address in addresses {
                self.log.segments.lose((address / segment_blocks) as u32, kind, 0, 0);
            }
        }
    }

    fn write_paged(&mut self, task: &Task<'_>, kind: Kind) -> Result<(), SfsError> {
        let numbers = self.paged(kind).list_to_write();
        let items: Vec<Item> = numbers.iter().map(|number| Item::Paged(kind, *number)).collect();
        let before = self.superblock.next_partial.get();
        let mut told = Told::nothing();
        let pages = numbers.iter().take_while(|number| **number >> LEVEL_SHIFT == 0).count();
        for number in &numbers[pages..] {
            let holes = self.paged(kind).holes(*number);
            if holes.iter().any(|holes| *holes != 0) {
                told.add(&Record::Holes { kind: kind as u8, number: *number, holes: &holes }, before);
            }
        }
        // What is told of the tree stands beside it, and so for as long as it is live.
        let together = if told.is_empty() { 0 } else { pages };
        self.write_blocks(task, Destination::Metadata, &items[..together])?;
        self.write_told(task, Destination::Metadata, &items[together..], told, false)?;
        self.paged(kind).written();
        Ok(())
    }

    /// Writes the whole usage file, in one partial segment: its own place is part of what it says.
    fn write_usage(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let pages = usage_pages(self.log.segments.count());
        self.metadata.usage_file.grow(pages);
        for page in 0..pages {
            self.metadata.usage_file.page_mut(task, page)?;
        }
        let items: Vec<Item> = self
            .metadata
            .usage_file
            .list_to_write()
            .into_iter()
            .map(|number| Item::Paged(Kind::UsageFile, number))
            .collect();
        if (self.room_for_metadata() as usize) < items.len() {
            self.close_head(task, Destination::Metadata)?;
        }
        // Its pages are filled when their places are known: see `fill_usage`.
        self.write_blocks(task, Destination::Metadata, &items)?;
        self.metadata.usage_file.written();
        Ok(())
    }

    /// Fills the pages of the usage file with what holds once all of them have their places.
    pub(in crate::fs::sfs) fn fill_usage(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        for page in 0..self.metadata.usage_file.len() {
            let bytes = self.metadata.usage_file.page_mut(task, page)?;
            self.log.segments.fill_page(page, bytes);
        }
        Ok(())
    }

    /// Writes the superblock of all that is durable to both places.
    pub(in crate::fs::sfs) fn write_superblocks(&mut self, task: &Task<'_>, clean: bool) -> Result<(), SfsError> {
        let written = WrittenCheckpoint { superblocks: self.next_superblocks(clean) };
        self.superblock = written.store_superblocks(task, &self.media)?;
        self.all_is_flushed();
        self.counts.sent.add(Label::first(Cause::Checkpoint, Content::Metadata), 2);
        Ok(())
    }

    /// The next two superblocks, one for each place, of a checkpoint that names all that is written now.
    fn next_superblocks(&self, clean: bool) -> [Superblock; 2] {
        let memory = self.grouping.memory();
        let mut superblock = self.superblock;
        superblock.version = VERSION.into();
        superblock.clean = u32::from(clean).into();
        superblock.tick = self.tick.0.into();
        superblock.open_segment = self.log.mixed.map_or(u32::MAX, |head| head.segment).into();
        superblock.open_block = self.log.mixed.map_or(0, |head| head.block).into();
        superblock.next_segment = self.log.segments.next().map_or(0, |next| next + 1).into();
        superblock.first_orphan = self.orphans.first().copied().unwrap_or(0).into();
        superblock.unused = 0.into();
        superblock.inodes = self.metadata.inode_file.count().into();
        superblock.used_inodes = self.metadata.inode_file.used().into();
        superblock.used_blocks = self.metadata.dat.used().into();
        superblock.inode_file = self.metadata.inode_file.root();
        superblock.dat = self.metadata.dat.root();
        superblock.usage_file = self.metadata.usage_file.root();
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

/// A checkpoint that is written, without its superblocks.
#[must_use = "it counts once it is stored"]
struct WrittenCheckpoint {
    superblocks: [Superblock; 2],
}

impl WrittenCheckpoint {
    /// Flushes the device, then writes and flushes the superblocks. Returns the last of them. It does not need the volume.
    pub fn store(&self, task: &Task<'_>, media: &Media) -> Result<Superblock, SfsError> {
        media.flush(task)?;
        self.store_superblocks(task, media)
    }

    /// Writes the superblock to both places, one durably before the other is touched. Should one be damaged later, the
    /// other is as good; the checkpoint before this one is not, as what it names is free from now on.
    fn store_superblocks(&self, task: &Task<'_>, media: &Media) -> Result<Superblock, SfsError> {
        for superblock in &self.superblocks {
            media.write_superblock(task, superblock.sequence.get(), &superblock.with_checksum())?;
            media.flush(task)?;
        }
        Ok(self.superblocks[1])
    }
}
