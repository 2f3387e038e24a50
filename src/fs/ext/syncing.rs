//! What waits becomes durable: a file, everything, what is old enough; and the end of a mount.

use super::Ext;
use super::files::node::{Node, inode_of};
use super::format::features::NEEDS_RECOVERY;
use super::nvm_region::name_region;
use super::format::superblock::{LENGTH, PLACE, state};
use crate::fs::Durable;
use crate::fs::volume::{InodeNumber, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;

impl Ext {
    /// Makes a file durable, with its name.
    pub fn sync_one(&self, task: &Task<'_>, inode: InodeNumber, what: Durable) -> Result<(), VolumeError> {
        let node = self.node(task, inode_of(inode)?)?;
        let id = {
            let mut file = node.gate.write(task);
            if file.is_freed {
                return Err(VolumeError::NotFound);
            }
            let waits_for_times = file.pages.is_empty() && file.stored_size == file.inode.size();
            if !(what == Durable::Data && waits_for_times) {
                self.write_out(task, &node, &mut file)?;
            }
            if what == Durable::Data { file.needed_in } else { file.changed_in }
        };
        if let (Some(id), Ok(journal)) = (id, self.journal()) {
            journal.commit(task, id)?;
        }
        if self.media.is_unflushed() {
            self.media.flush(task)?;
        }
        Ok(())
    }

    /// Makes everything durable.
    pub fn sync_all(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let Ok(journal) = self.journal() else { return Ok(()) };
        self.write_out_since(task, Time(u64::MAX))?;
        journal.commit(task, journal.running())?;
        if self.media.is_unflushed() {
            self.media.flush(task)?;
        }
        Ok(())
    }

    /// Writes out all files that wait since `at` or before.
    fn write_out_since(&self, task: &Task<'_>, at: Time) -> Result<(), VolumeError> {
        self.waiting.since(at).into_iter().try_for_each(|number| self.write_out_number(task, number))
    }

    fn write_out_number(&self, task: &Task<'_>, number: u32) -> Result<(), VolumeError> {
        // One that has left meanwhile was freed.
        let Ok(node) = self.nodes.get(number) else { return Ok(()) };
        let mut file = node.gate.write(task);
        if file.is_freed { Ok(()) } else { self.write_out(task, &node, &mut file) }
    }

    /// Writes out the files that wait longest, if too much waits.
    pub fn relieve(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if self.waiting.bytes() <= self.settings.dirty_bytes {
            return Ok(());
        }
        for number in self.waiting.since(Time(u64::MAX)) {
            self.write_out_number(task, number)?;
            if self.waiting.bytes() <= self.settings.dirty_bytes {
                break;
            }
        }
        Ok(())
    }

    /// A piece of the background work that is due, and when there will be more.
    pub fn work_once(&self, task: &Task<'_>) -> Result<Option<Time>, VolumeError> {
        let volume = self.media.work(task.now())?;
        let journals = self.journal_media.as_ref().map_or(Ok(None), |media| media.work(task.now()))?;
        let below = [volume, journals].into_iter().flatten().min();
        let Ok(journal) = self.journal() else { return Ok(below) };
        if journal.common().aborted().is_some() {
            return Ok(below);
        }
        let every = self.settings.commit_ns;
        if self.waiting.first().is_some_and(|since| since + every <= task.now()) {
            let due = self.waiting.since(task.now());
            if let Some(first) = due.first() {
                self.write_out_number(task, *first)?;
            }
        } else if journal.begun().is_some_and(|begun| begun + every <= task.now()) {
            journal.commit(task, journal.running())?;
        } else if journal.wants_checkpoint() {
            journal.checkpoint(task)?;
        }
        let own = [self.waiting.first(), journal.begun()].into_iter().flatten().min().map(|since| since + every);
        Ok(match (own, below) {
            (Some(own), Some(below)) => Some(own.min(below)),
            (own, below) => own.or(below),
        })
    }

    /// Makes everything durable at its place, and marks the volume as clean.
    pub fn end(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if let Ok(journal) = self.journal() {
            if let Some(why) = journal.common().aborted() {
                return Err(VolumeError::ReadOnly(why));
            }
            for node in self.nodes.held() {
                self.free_held_orphan(task, &node)?;
            }
            self.write_out_since(task, Time(u64::MAX))?;
            journal.end(task)?;
            self.mark_superblock(task, false)?;
            journal.closed();
        }
        Ok(())
    }

    /// Frees a file without a name that somebody held: nobody comes any more.
    fn free_held_orphan(&self, task: &Task<'_>, node: &Node) -> Result<(), VolumeError> {
        let mut file = node.gate.write(task);
        if file.inode.links() > 0 || file.is_freed {
            return Ok(());
        }
        self.free_file(task, &mut file)
    }

    /// Marks the superblock as that of a volume in use, whose log may have to be replayed, or of a clean one. It is
    /// written past the journal, which is empty.
    pub fn mark_superblock(&self, task: &Task<'_>, is_in_use: bool) -> Result<(), VolumeError> {
        use std::sync::atomic::Ordering::SeqCst;
        let now = self.wall(task.now()).0.div_euclid(1_000_000_000) as u32;
        let mut head = self.head.enter(task);
        let features = head.superblock.features();
        let features = if is_in_use { features.with(NEEDS_RECOVERY) } else { features.without(NEEDS_RECOVERY) };
        let superblock = &mut head.superblock;
        superblock.set_features(features);
        superblock.set32(48, now);
        if is_in_use {
            superblock.set32(44, now);
            superblock.set16(52, superblock.u16(52).saturating_add(1));
        } else {
            superblock.set_free(self.free.blocks.load(SeqCst), self.free.inodes.load(SeqCst) as u32);
            superblock.set16(58, superblock.state() | state::CLEAN);
        }
        if let Some(region) = &self.region {
            name_region(superblock, region.named.filter(|_| is_in_use));
        }
        superblock.sum();
        let (place, at) = (self.shape.superblock_block(0), PLACE as usize % self.shape.block_bytes);
        self.superblock_block(task)?;
        self.blocks.change(place, |block| block[at..at + LENGTH].copy_from_slice(superblock.bytes()));
        let bytes = self.superblock_block(task)?;
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        self.media.write_metadata(task, place, &bytes, label)?;
        self.media.flush(task)?;
        self.blocks.release(place);
        Ok(())
    }
}
