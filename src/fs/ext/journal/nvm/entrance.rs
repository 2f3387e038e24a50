//! The entrance to the running transaction: handles go in and out without a lock, and the task that closes the transaction waits
//! until none is inside (J6).
//!
//! Each handle counts itself in one of several cells, so that threads on several processors do not share a line. It goes
//! in first and looks then if the entrance is being closed; the task that closes says so first and looks then at the cells. Of two
//! that do so at once, at least one sees the other.

use super::atomic::{AtomicU64, Padded, fence};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// More than there are processors in most machines, and few to look at.
const CELLS: usize = if cfg!(feature = "checked-slots") { 2 } else { 16 };

/// Where handles go in and out.
#[derive(Debug)]
pub struct Entrance {
    inside: Box<[Padded<AtomicU64>]>,
    /// 1 while somebody closes it.
    closing: Padded<AtomicU64>,
}

/// The end of an attempt to go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    Yes,
    /// It is closed.
    No,
    /// It is closed, and the task that has closed it may have seen the caller inside.
    AndLeft,
}

impl Entrance {
    /// It is open, and nobody is inside.
    pub fn new() -> Entrance {
        let inside = (0..CELLS).map(|_| Padded(AtomicU64::new(0))).collect();
        Entrance { inside, closing: Padded(AtomicU64::new(0)) }
    }

    /// The cell for a caller: another one for most others.
    pub fn cell<T>(caller: &T) -> usize {
        // Stacks of threads lie far from each other. The multiplier is 2^64 over the golden ratio.
        (std::ptr::from_ref(caller).addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 40 & (CELLS - 1)
    }

    /// Goes in, and counts in this cell, unless the entrance is closed.
    pub fn enter(&self, cell: usize) -> Entered {
        if self.is_closing() {
            return Entered::No;
        }
        self.inside[cell].0.fetch_add(1, Relaxed);
        fence(SeqCst);
        if !self.is_closing() {
            return Entered::Yes;
        }
        self.inside[cell].0.fetch_sub(1, Release);
        Entered::AndLeft
    }

    /// Goes out. True if somebody closes it, and may wait for that.
    pub fn leave(&self, cell: usize) -> bool {
        self.inside[cell].0.fetch_sub(1, Release);
        fence(SeqCst);
        self.is_closing()
    }

    fn is_closing(&self) -> bool {
        self.closing.0.load(Acquire) != 0
    }

    /// Closes the entrance; false if another has closed it.
    pub fn close(&self) -> bool {
        let is_closed = self.closing.0.compare_exchange(0, 1, AcqRel, Relaxed).is_ok();
        fence(SeqCst);
        is_closed
    }

    /// True if nobody is inside. The caller has closed it.
    pub fn is_empty(&self) -> bool {
        self.inside.iter().all(|cell| cell.0.load(Acquire) == 0)
    }

    /// Opens it again.
    pub fn open(&self) {
        self.closing.0.store(0, Release);
    }
}
