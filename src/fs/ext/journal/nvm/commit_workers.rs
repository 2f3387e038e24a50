//! The commit workers of `scheme=paper`: a thread for each partition looks at the flags of its slots without a pause, and
//! a task that commits reads how far each of them is. It looks itself at a partition that has no thread at the moment.
//!
//! The threads are lent, as those of checkpoints are. A thread watches a partition for some looks and goes back to its
//! lender, which may want to stop it.

use super::atomic::{AtomicBool, Padded, relax};
use super::{NvmJournal, Scheme};
use crate::task::Task;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// Looks of a thread before it goes back to its lender.
const LOOKS: u32 = if cfg!(feature = "checked-gates") { 4 } else { 1000 };

/// For each partition: a thread watches it. There are none with other schemes.
pub(super) struct CommitWorkers(Box<[Padded<AtomicBool>]>);

impl CommitWorkers {
    pub(super) fn new(scheme: Scheme, partitions: u32) -> CommitWorkers {
        let workers = if scheme == Scheme::Paper { partitions } else { 0 };
        CommitWorkers((0..workers).map(|_| Padded(AtomicBool::new(false))).collect())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// A partition that nobody watches. The caller does from now on, until the answer is dropped.
    fn take(&self) -> Option<Watched<'_>> {
        let free = |worker: &&Padded<AtomicBool>| !worker.0.load(Acquire) && !worker.0.swap(true, AcqRel);
        let partition = self.0.iter().position(|worker| free(&worker))?;
        Some(Watched { workers: self, partition })
    }

    fn has(&self, partition: usize) -> bool {
        self.0.get(partition).is_some_and(|worker| worker.0.load(Acquire))
    }
}

struct Watched<'w> {
    workers: &'w CommitWorkers,
    partition: usize,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.workers.0[self.partition].0.store(false, Release);
    }
}

impl NvmJournal {
    /// Lends a thread to a partition that has none, for some looks. True if it did look.
    pub(super) fn watch_a_partition(&self, task: &Task<'_>) -> bool {
        // A simulated thread beside the others would cost them no time.
        let Some(watched) = self.commit_workers.take().filter(|_| !task.is_simulated()) else { return false };
        let ring = &self.rings[watched.partition];
        for _ in 0..LOOKS {
            ring.check(ring.tail());
            relax(task);
        }
        true
    }

    /// True if all slots of a partition below `end` are complete.
    pub(super) fn is_complete(&self, partition: usize, end: u64) -> bool {
        let ring = &self.rings[partition];
        ring.checked() >= end || !self.commit_workers.has(partition) && ring.check(end) >= end
    }
}
