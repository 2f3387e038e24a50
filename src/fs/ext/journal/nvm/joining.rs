//! Joining: a block that a transaction changes several times is stored once, as it is when the transaction is closed.
//!
//! A handle that ends only notes which blocks it has changed, by partition. The task that closes the transaction takes a slot and a
//! snapshot for each: nobody is inside then, so that the blocks are as the last handle has left them. The slots are
//! filled by the task that has closed it and by all tasks that wait for it, a partition each. A change that is not committed was never
//! promised to survive, so that nothing is lost by storing it later.

use super::NvmJournal;
use super::atomic::{AtomicBool, Mutex, Padded, locked};
use super::storing::Taken;
use crate::fs::ext::journal::TransactionId;
use crate::fs::ext::journal::handle::Done;
use crate::label::Content;
use crate::task::{Step, Task};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The part of a partition's slots that a transaction may take before it is closed.
const SHARE: u64 = 4;

/// Changes that are not stored yet.
pub(super) struct Joining {
    /// Of the running transaction, by partition.
    running: Box<[Padded<Mutex<Waiting>>]>,
    /// The running transaction is so large that it is to be closed.
    is_enough: Padded<AtomicBool>,
    /// Of closed transactions, the oldest first.
    closed: Mutex<VecDeque<Arc<Closed>>>,
}

#[derive(Default)]
struct Waiting {
    blocks: FxHashMap<u64, Content>,
    revokes: Vec<Taken>,
}

/// The slots of a closed transaction, by partition, until somebody fills them.
struct Closed {
    id: TransactionId,
    parts: Vec<Mutex<Vec<Taken>>>,
}

impl Joining {
    pub(super) fn new(partitions: u32) -> Joining {
        Joining {
            running: (0..partitions).map(|_| Padded(Mutex::default())).collect(),
            is_enough: Padded(AtomicBool::new(false)),
            closed: Mutex::new(VecDeque::new()),
        }
    }
}

impl NvmJournal {
    /// Notes the changes of a handle. Returns the number of slots that it needs beyond those of handles before it.
    pub(super) fn join(&self, task: &Task<'_>, id: TransactionId, done: Done) -> usize {
        let partition_of = |block: u64| self.shape().partition_of(block) as usize;
        let Done { mut changed, revoked, .. } = done;
        changed.sort_unstable_by_key(|(block, _)| (partition_of(*block), *block));
        let mut needed = 0;
        for blocks in changed.chunk_by(|one, other| partition_of(one.0) == partition_of(other.0)) {
            let partition = partition_of(blocks[0].0);
            let mut waiting = locked(&self.joining.running[partition].0);
            let before = waiting.blocks.len();
            waiting.blocks.extend(blocks.iter().copied());
            let new = waiting.blocks.len() - before;
            self.wait_for_slots(partition, new as u64);
            needed += new;
            task.spend(Step::LineShared, 1);
        }
        for revoke in self.revokes(id, &revoked) {
            let partition = revoke.partition as usize;
            locked(&self.joining.running[partition].0).revokes.push(revoke);
            self.wait_for_slots(partition, 1);
            needed += 1;
            task.spend(Step::LineShared, 1);
        }
        needed
    }

    fn wait_for_slots(&self, partition: usize, count: u64) {
        let ring = &self.rings[partition];
        ring.wait(count);
        if ring.waiting() > ring.slots() / SHARE && !self.is_joined_enough() {
            self.joining.is_enough.0.store(true, Relaxed);
        }
    }

    /// True if the running transaction is so large that it is to be closed.
    pub(super) fn is_joined_enough(&self) -> bool {
        self.joining.is_enough.0.load(Relaxed)
    }

    /// Takes slots for all that the running transaction has changed. Its handles have left, and none has entered since.
    pub(super) fn take_joined(&self, id: TransactionId) {
        self.joining.is_enough.0.store(false, Relaxed);
        let mut parts = Vec::with_capacity(self.rings.len());
        for (ring, waiting) in self.rings.iter().zip(&self.joining.running) {
            let Waiting { blocks, revokes } = std::mem::take(&mut *locked(&waiting.0));
            let waited = (blocks.len() + revokes.len()) as u64;
            let images = blocks.into_iter().filter_map(|(block, content)| self.image(block, content));
            let mut slots: Vec<Taken> = images.chain(revokes).collect();
            self.take_of_partition(&mut slots);
            ring.wait_no_more(waited);
            parts.push(Mutex::new(slots));
        }
        locked(&self.joining.closed).push_back(Arc::new(Closed { id, parts }));
    }

    /// Fills slots of closed transactions up to `last`, as long as there are some that nobody fills.
    pub(super) fn fill_joined(&self, task: &Task<'_>, last: TransactionId) {
        loop {
            let Some(closed) = locked(&self.joining.closed).front().filter(|closed| !closed.id.is_after(last)).cloned()
            else {
                return;
            };
            for part in &closed.parts {
                let slots = std::mem::take(&mut *locked(part));
                if slots.is_empty() {
                    continue;
                }
                let lock = self.slots_lock.as_ref().map(|lock| lock.enter(task));
                self.store_slots(task, closed.id, &slots);
                drop(lock);
                // Waiting tasks fill the slots of other partitions meanwhile.
                task.give_way();
            }
            // All are taken: the task that has taken the last of them completes them.
            let mut all = locked(&self.joining.closed);
            if all.front().is_some_and(|first| Arc::ptr_eq(first, &closed)) {
                all.pop_front();
            }
        }
    }
}
