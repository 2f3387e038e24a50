//! Changes of the log that the device makes later: a volume that threads share queues them behind its gate, and leaves
//! the gate before the device makes them. Until then reads find queued blocks here.
//!
//! One task at a time queues changes, and makes them in the order in which they were queued. After a failure the rest
//! stays here: its blocks can be read, and are never stored.

use crate::label::Label;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Blocks that are written at once, one behind the other from an address on.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs) struct BlockRun {
    /// The first block's address in the log.
    pub address: u64,
    /// Their bytes in the buffer.
    pub bytes: Range<usize>,
    /// What they hold, and why they are written.
    pub label: Label,
}

/// A change of the log.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Writes these blocks.
    Write(Arc<Vec<u8>>, Vec<BlockRun>),
    /// Begins to write a segment.
    Begin(u32),
    /// Ends a segment.
    End(u32),
    /// Discards a segment.
    Discard(u32),
}

/// Changes in the order in which they are to be made.
#[derive(Debug, Default)]
pub(super) struct Queue {
    changes: Mutex<VecDeque<Change>>,
    /// Changes in it: readers look at this first.
    length: AtomicUsize,
    /// True if changes are queued, and not made at once.
    is_used: AtomicBool,
    has_failed: AtomicBool,
}

impl Queue {
    fn changes(&self) -> MutexGuard<'_, VecDeque<Change>> {
        self.changes.lock().expect("no thread panics while it holds the queue")
    }

    /// Changes are queued from now on, or made at once again.
    pub fn set_used(&self, is_used: bool) {
        assert!(self.is_empty() || is_used || self.has_failed(), "queued changes are made first");
        self.is_used.store(is_used, Ordering::Relaxed);
    }

    /// True if changes are queued.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// True if nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// True if a change has failed: no other is made.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// No further change is made.
    pub fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Queues a change.
    pub fn push(&self, change: Change) {
        let mut changes = self.changes();
        changes.push_back(change);
        self.length.store(changes.len(), Ordering::Release);
    }

    /// The change that is to be made next. It stays in the queue until it [was made](Queue::pop).
    pub fn first(&self) -> Option<Change> {
        if self.is_empty() || self.has_failed() { None } else { self.changes().front().cloned() }
    }

    /// The first change was made.
    pub fn pop(&self) {
        let mut changes = self.changes();
        changes.pop_front().expect("the change that was made is the first");
        self.length.store(changes.len(), Ordering::Release);
    }

    /// Queued versions of `blocks` blocks of `width` bytes from an address on, as pairs of a block's number among them
    /// and its bytes. The newest of a block is the last.
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
