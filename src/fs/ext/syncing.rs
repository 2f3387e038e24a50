//! Dirty files become durable: one, all, those that are old enough; and the end of a mount.

use super::Ext;
use super::fast_tags::Wanted;
use super::files::node::{Node, inode_of};
use super::format::features::NEEDS_RECOVERY;
use super::format::superblock::{LENGTH, PLACE, state};
use crate::fs::Durable;
use crate::fs::volume::{InodeNumber, VolumeError};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;

/// Files that one piece of background work writes out, if they are small.
const FILES_AT_ONCE: usize = 16;
/// Nanoseconds between two looks at a monitor that keeps the volume's memory.
const LOOKS_AT_MONITOR: u64 = 1_000_000_000;

impl Ext {
    /// Makes a file durable, with its name, or puts it in order.
    pub fn sync_one(
        &self,
        task: &Task<'_>,
        inode: InodeNumber,
        what: Durable,
        wanted: Wanted,
    ) -> Result<(), VolumeError> {
        let node = self.inodes().node(task, inode_of(inode)?)?;
        let id = {
            let mut file = self.write_back().enter_alone(task, &node);
            if file.is_freed {
                return Err(VolumeError::NotFound);
            }
            let waits_for_times = file.pages.is_empty() && file.stored_size == file.inode.size();
            if !(what == Durable::Data && waits_for_times) {
                self.write_back().write_out(task, &node, &mut file)?;
            }
            if what == Durable::Data { file.needed_in } else { file.changed_in }
        };
        if let (Some(id), Ok(journal)) = (id, self.changes.journal()) {
            self.write_back().write_out_rewritten(task)?;
            self.inodes().commit_of(task, journal, id, node.number, wanted)?;
        }
        let is_behind = self.metadata.media.is_data_unflushed();
        match (wanted, self.changes.journal()) {
            (Wanted::Durability, Ok(journal)) if is_behind => journal.commit_data(task),
            (Wanted::Order, Ok(journal)) => {
                if is_behind {
                    journal.order_data(task)?;
                }
                journal.tell_order();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes everything durable.
    pub fn sync_all(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        let Ok(journal) = self.changes.journal() else { return Ok(()) };
        self.write_back().write_out_all(task)?;
        journal.commit(task, journal.running())?;
        if self.metadata.media.is_data_unflushed() { journal.commit_data(task) } else { Ok(()) }
    }

    /// A piece of the background work that is due, and when there will be more.
    pub fn work_once(&self, task: &Task<'_>) -> Result<Option<Time>, VolumeError> {
        let volume = self.metadata.media.work(task.now())?;
        let journals = self.journal_media.as_ref().map_or(Ok(None), |media| media.work(task.now()))?;
        let below = [volume, journals].into_iter().flatten().min();
        let Ok(journal) = self.changes.journal() else { return Ok(below) };
        if journal.common().aborted().is_some() {
            return Ok(below);
        }
        if task.is_simulated() {
            // Checkpoint threads work beside this one, up to its clock.
            journal.checkpoint(task)?;
        }
        let every = self.settings.commit_ns;
        let is_due = |since: Option<Time>| since.is_some_and(|since| since + every <= task.now());
        if is_due(self.waiting.first()) {
            for _ in 0..FILES_AT_ONCE {
                let Some(number) = self.waiting.oldest().filter(|_| is_due(self.waiting.first())) else { break };
                self.write_back().sweep(task, number)?;
            }
        } else if is_due(journal.begun()) {
            self.write_back().write_out_rewritten(task)?;
            journal.commit(task, journal.running())?;
        } else if !task.is_simulated() && journal.wants_checkpoint() {
            journal.checkpoint(task)?;
        } else {
            // A large file is written out piece by piece, small ones several at once.
            for _ in 0..FILES_AT_ONCE {
                if !self.write_back().half_waits() || !self.write_back().write_oldest(task)? {
                    break;
                }
            }
        }
        let own = [self.waiting.first(), journal.begun()].into_iter().flatten().min().map(|since| since + every);
        let now = self.write_back().half_waits().then(|| task.now());
        // Memory that nobody keeps any more has to be noticed, though nobody calls.
        let soon = self.monitor().map(|_| task.now() + LOOKS_AT_MONITOR);
        Ok([own, below, now, soon].into_iter().flatten().min())
    }

    /// Makes everything durable at its place, and marks the volume as clean.
    pub fn end(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if let Ok(journal) = self.changes.journal() {
            if let Some(why) = journal.common().aborted() {
                return Err(VolumeError::ReadOnly(why));
            }
            let orphans = self.head.enter(task).orphans.all();
            for number in orphans {
                self.free_held_orphan(task, &*self.inodes().node(task, number)?)?;
            }
            self.write_back().write_out_all(task)?;
            journal.end(task)?;
            self.mark_superblock(task, false)?;
            journal.closed()?;
        }
        Ok(())
    }

    /// Frees a file without a name that somebody held: nobody comes any more.
    fn free_held_orphan(&self, task: &Task<'_>, node: &Node) -> Result<(), VolumeError> {
        let mut file = self.write_back().enter_alone(task, node);
        if file.inode.links() > 0 || file.is_freed {
            return Ok(());
        }
        self.writes().free_file(task, &mut file)
    }

    /// Marks the superblock as that of a volume in use, whose log may have to be replayed, or of a clean one. It is
    /// written past the journal, which is empty.
    pub fn mark_superblock(&self, task: &Task<'_>, is_in_use: bool) -> Result<(), VolumeError> {
        use std::sync::atomic::Ordering::SeqCst;
        let now = self.wall(task.now()).0.div_euclid(1_000_000_000) as u32;
        let mut head = self.head.enter(task);
        let features = head.superblock.features();
        let features = if is_in_use { features.with(NEEDS_RECOVERY) } else { features.without(NEEDS_RECOVERY) };
        let named = head.named_memory(&self.changes).filter(|_| is_in_use);
        let superblock = &mut head.superblock;
        superblock.set_features(features);
        superblock.set32(48, now);
        if is_in_use {
            superblock.set32(44, now);
            superblock.set16(52, superblock.u16(52).saturating_add(1));
        } else {
            superblock.set_free(self.space.free.blocks.load(SeqCst), self.space.free.inodes.load(SeqCst) as u32);
            superblock.set16(58, superblock.state() | state::CLEAN);
        }
        if self.memory.is_some() {
            superblock.name_memory(named);
        }
        superblock.set_mount_number(self.mount_number);
        superblock.sum();
        let superblock = &*superblock;
        self.tell_copies(task, superblock)?;
        let (place, at) = (self.metadata.shape.superblock_block(0), PLACE as usize % self.metadata.shape.block_bytes);
        self.metadata.superblock_block(task)?;
        self.metadata.blocks.change(place, |block| block[at..at + LENGTH].copy_from_slice(superblock.bytes()));
        let bytes = self.metadata.superblock_block(task)?;
        let label = Label::first(Cause::Checkpoint, Content::Metadata);
        self.metadata.media.write_metadata(task, place, &bytes, label)?;
        self.metadata.media.flush(task)?;
        self.metadata.blocks.release(place);
        Ok(())
    }
}
