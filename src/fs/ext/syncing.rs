//! Dirty files become durable: one, all, those that are old enough; and the end of a mount.

use super::Ext;
use super::fast_tags::Wanted;
use super::files::node::{Node, inode_of};
use super::marking::mark_superblock;
use crate::fs::Durable;
use crate::fs::volume::{InodeNumber, VolumeError};
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
        let node = self.parts.inodes().node(task, inode_of(inode)?)?;
        let id = {
            let mut file = self.parts.write_back().enter_alone(task, &node);
            if file.is_freed {
                return Err(VolumeError::NotFound);
            }
            let waits_for_times = file.pages.is_empty() && file.stored_size == file.inode.size();
            if !(what == Durable::Data && waits_for_times) {
                self.parts.write_back().write_out(task, &node, &mut file)?;
            }
            if what == Durable::Data { file.needed_in } else { file.changed_in }
        };
        if let (Some(id), Ok(journal)) = (id, self.parts.changes.journal()) {
            self.parts.write_back().write_out_rewritten(task)?;
            self.parts.inodes().commit_of(task, journal, id, node.number, wanted)?;
        }
        let is_behind = self.parts.metadata.media.is_data_unflushed();
        match (wanted, self.parts.changes.journal()) {
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
        let Ok(journal) = self.parts.changes.journal() else { return Ok(()) };
        self.parts.write_back().write_out_all(task)?;
        journal.commit(task, journal.running())?;
        if self.parts.metadata.media.is_data_unflushed() { journal.commit_data(task) } else { Ok(()) }
    }

    /// A piece of the background work that is due, and when there will be more.
    pub fn work_once(&self, task: &Task<'_>) -> Result<Option<Time>, VolumeError> {
        let volume = self.parts.metadata.media.work(task.now())?;
        let journals = self.below.media.as_ref().map_or(Ok(None), |media| media.work(task.now()))?;
        let below = [volume, journals].into_iter().flatten().min();
        let Ok(journal) = self.parts.changes.journal() else { return Ok(below) };
        if journal.common().aborted().is_some() {
            return Ok(below);
        }
        if task.is_simulated() {
            // Checkpoint threads work beside this one, up to its clock.
            journal.checkpoint(task)?;
        }
        let every = self.parts.settings.commit_ns;
        let is_due = |since: Option<Time>| since.is_some_and(|since| since + every <= task.now());
        if is_due(self.parts.waiting.first()) {
            for _ in 0..FILES_AT_ONCE {
                let Some(number) = self.parts.waiting.oldest().filter(|_| is_due(self.parts.waiting.first())) else {
                    break;
                };
                self.parts.write_back().sweep(task, number)?;
            }
        } else if is_due(journal.begun()) {
            self.parts.write_back().write_out_rewritten(task)?;
            journal.commit(task, journal.running())?;
        } else if !task.is_simulated() && journal.wants_checkpoint() {
            journal.checkpoint(task)?;
        } else {
            // A large file is written out piece by piece, small ones several at once.
            for _ in 0..FILES_AT_ONCE {
                if !self.parts.write_back().half_waits() || !self.parts.write_back().write_oldest(task)? {
                    break;
                }
            }
        }
        let own = [self.parts.waiting.first(), journal.begun()].into_iter().flatten().min().map(|since| since + every);
        let now = self.parts.write_back().half_waits().then(|| task.now());
        // Memory that nobody keeps any more has to be noticed, though nobody calls.
        let soon = self.below.monitor().map(|_| task.now() + LOOKS_AT_MONITOR);
        Ok([own, below, now, soon].into_iter().flatten().min())
    }

    /// Makes everything durable at its place, and marks the volume as clean.
    pub fn end(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        if let Ok(journal) = self.parts.changes.journal() {
            if let Some(why) = journal.common().aborted() {
                return Err(VolumeError::ReadOnly(why));
            }
            let orphans = self.parts.head.enter(task).orphans.all();
            for number in orphans {
                self.free_held_orphan(task, &*self.parts.inodes().node(task, number)?)?;
            }
            self.parts.write_back().write_out_all(task)?;
            journal.end(task)?;
            mark_superblock(task, &self.parts, &self.below, false)?;
            journal.closed()?;
        }
        Ok(())
    }

    /// Frees a file without a name that somebody held: nobody comes any more.
    fn free_held_orphan(&self, task: &Task<'_>, node: &Node) -> Result<(), VolumeError> {
        let mut file = self.parts.write_back().enter_alone(task, node);
        if file.inode.links() > 0 || file.is_freed {
            return Ok(());
        }
        self.parts.writes().free_file(task, &mut file)
    }
}
