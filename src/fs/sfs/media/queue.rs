//! Queue of changes of the log. A shared volume queues changes inside its gate, and the device makes them after the
//! gate is left. Until then, reads find queued blocks here.
//!
//! One task at a time queues changes, and makes them in order. After a failure the rest stays queued: its blocks can be
//! read, and are never stored.

use crate::label::Label;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Consecutive blocks of one write.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs) struct BlockRun {
    /// The first block's address in the log.
    pub address: u64,
    /// The blocks' bytes in the buffer.
    pub bytes: Range<usize>,
    /// Content and cause of the write.
    pub label: Label,
}

/// A change of the log.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Writes these blocks.
    Write(Arc<Vec<u8>>, Vec<BlockRun>),
    /// Begins a segment.
    Begin(u32),
    /// Ends a segment.
    End(u32),
    /// Discards a segment.
    Discard(u32),
}

/// Changes in the order in which they are made.
#[derive(Debug, Default)]
pub(super) struct Queue {
    changes: Mutex<VecDeque<Change>>,
    /// Number of queued changes, which readers check first.
    length: AtomicUsize,
    /// True if changes are queued instead of made at once.
    is_used: AtomicBool,
    has_failed: AtomicBool,
}

impl Queue {
    fn changes(&self) -> MutexGuard<'_, VecDeque<Change>> {
        self.changes.lock().expect("no thread panics while it holds the queue")
    }

    /// Starts or stops queueing.
    pub fn set_used(&self, is_used: bool) {
        assert!(self.is_empty() || is_used || self.has_failed(), "the queue is empty when queueing stops");
        self.is_used.store(is_used, Ordering::Relaxed);
    }

    /// True if changes are queued instead of made at once.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// True if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// True if a change failed, so that no further one is made.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Stops all further changes.
    pub fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Queues a change.
    pub fn push(&self, change: Change) {
        let mut changes = self.changes();
        changes.push_back(change);
        self.length.store(changes.len(), Ordering::Release);
    }

    /// The next change to make. It stays queued until [`pop`](Queue::pop).
    pub fn first(&self) -> Option<Change> {
        if self.is_empty() || self.has_failed() { None } else { self.changes().front().cloned() }
    }

    /// Removes the first change after it was made.
    pub fn pop(&self) {
        let mut changes = self.changes();
        changes.pop_front().expect("a change was queued");
        self.length.store(changes.len(), Ordering::Release);
    }

    /// Queued versions of `blocks` blocks of `width` bytes from an address: pairs of a block's index in that range and
    /// its bytes, oldest first.
    pub fn find(&self, address: u64, blocks: u64, width: usize) -> Vec<(u64, Arc<Vec<u8>>, Range<usize>)> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        for change in self.changes().iter() {
            let Change::Write(bytes, runs) = change else { continue };
            for run in runs {
                let end = run.address + (run.bytes.len() / width) as u64;
                for block in run.address.max(address)..end.min(address + blocks) {
                    let from = run.bytes.start + (block - run.address) as usize * width;
                    found.push((block - address, Arc::clone(bytes), from..from + width));
                }
            }
        }
        found
    }
}
