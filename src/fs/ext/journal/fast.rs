//! Fast commits: the changes of the running transaction so far are made durable in a few tags instead of copies of blocks.
//!
//! A fast commit goes through the gate `commit`, so that the transaction before is durable, and closes the running
//! transaction while it looks at the changes, as a full commit does: it has all changes of the handles that have ended,
//! and none of one that is open. New handles begin while it is written. No block that the transaction has freed is used again
//! before its full commit. Several syncs share a fast commit: a task that comes to the gate and finds its file durable is done.

use super::common::locked;
use super::reasons::Reason;
use super::transactions::{Committed, LoggedJournal};
use super::{FastArea, ReadTags, TransactionId};
use crate::fs::ext::format::fast_commit;
use crate::fs::volume::VolumeError;
use crate::task::Task;

/// Flushes in which others may join a fast commit: each that joins has bytes that one more makes durable.
const ROUNDS: usize = 3;

impl LoggedJournal {
    /// Makes a transaction's changes of a file durable by a fast commit, unless they are. False if that takes a full
    /// commit, which is counted.
    pub(super) fn try_fast(
        &self,
        task: &Task<'_>,
        id: TransactionId,
        inode: u32,
        read_tags: ReadTags<'_>,
    ) -> Result<bool, VolumeError> {
        let (Some(tracker), Some(area)) = (&self.tracker, self.log.fast_area()) else { return Ok(false) };
        let mut committed = self.commit.enter(task);
        self.common.check()?;
        if !id.is_after(committed.last) || tracker.is_durable(inode) {
            return Ok(true);
        }
        assert_eq!(id, committed.last.next(), "the transaction that follows the last one is the running one");
        let stored = self.store_fast(task, area, id, &mut committed, read_tags);
        let stored = stored.inspect_err(|error| self.common.abort(&format!("a fast commit failed: {error}")))?;
        if let Err(reason) = stored {
            // The changes that were taken out of the tracker are in none.
            tracker.exclude(reason);
            locked(&self.fast_counts).falls_back(reason);
        }
        Ok(stored.is_ok())
    }

    /// Stores all that the running transaction has changed since its last fast commit.
    fn store_fast(
        &self,
        task: &Task<'_>,
        area: &dyn FastArea,
        id: TransactionId,
        committed: &mut Committed,
        read_tags: ReadTags<'_>,
    ) -> Result<Result<(), Reason>, VolumeError> {
        let Some(tracker) = &self.tracker else { return Ok(Err(Reason::Other)) };
        let mut changes = Vec::new();
        let mut last = 0;
        for _ in 0..ROUNDS {
            // Others come while the bytes of files become durable, and share the fast commit.
            area.prepare(task)?;
            let _closed = self.open.write(task);
            let pending;
            (pending, last) = match tracker.take() {
                Ok(taken) => taken,
                Err(reason) => return Ok(Err(reason)),
            };
            match read_tags(task, &pending)? {
                Ok(more) => changes.extend(more),
                Err(reason) => return Ok(Err(reason)),
            }
            if !area.is_unsettled() {
                break;
            }
        }
        if changes.is_empty() {
            // Of files that have no name any more there is nothing to tell.
            tracker.are_durable(last);
            return Ok(Ok(()));
        }
        let at = committed.fast_blocks;
        let bytes = fast_commit::write(id.0, at == 0, &changes, area.block_bytes());
        let blocks = (bytes.len() / area.block_bytes()) as u32;
        if blocks > area.blocks() - at {
            return Ok(Err(Reason::Full));
        }
        area.store(task, id, at, &bytes)?;
        committed.fast_blocks += blocks;
        self.settled.has_stored(committed.last, task.now());
        tracker.are_durable(last);
        let mut counts = locked(&self.fast_counts);
        counts.commits += 1;
        counts.blocks += u64::from(blocks);
        Ok(Ok(()))
    }

    /// The transaction of the fast commits is durable in the log: they count no more.
    pub(super) fn end_fast(&self, task: &Task<'_>, committed: &mut Committed) -> Result<(), VolumeError> {
        match self.log.fast_area() {
            Some(area) if std::mem::take(&mut committed.fast_blocks) > 0 => area.clear(task),
            _ => Ok(()),
        }
    }
}
