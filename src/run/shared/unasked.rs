//! When changes are made durable although nobody syncs: once no request has come for a while, and soon after a file was
//! closed.
//!
//! FUSE hands neither sync(2) nor syncfs(2) on to a file system like this, and lets umount(8) return before the last
//! checkpoint is taken. So changes must not wait for long in memory.

use crate::time::Time;
use std::sync::atomic::{AtomicU64, Ordering};

/// Without a request for so long, changes are made durable.
const IDLE_NS: u64 = 2_000_000_000;
/// So long after a new file was closed it is durable, although requests go on: each is not worth a checkpoint.
const CLOSED_NS: u64 = 5_000_000_000;
/// No file was closed since the last checkpoint.
const NONE: u64 = u64::MAX;

/// The times of the kernel's requests.
pub struct Unasked {
    last_request_ns: AtomicU64,
    /// When the first file was closed since changes were last made durable.
    closed_ns: AtomicU64,
}

impl Unasked {
    /// Nothing was asked for.
    pub fn new() -> Unasked {
        Unasked { last_request_ns: AtomicU64::new(0), closed_ns: AtomicU64::new(NONE) }
    }

    /// A request comes.
    pub fn request(&self, now: Time) {
        self.last_request_ns.store(now.0, Ordering::Relaxed);
    }

    /// A file that was made is closed.
    pub fn closed(&self, now: Time) {
        self.closed_ns.fetch_min(now.0, Ordering::Relaxed);
    }

    /// Changes are being made durable.
    pub fn stored(&self) {
        self.closed_ns.store(NONE, Ordering::Relaxed);
    }

    /// When changes are to be made durable.
    pub fn due(&self) -> Time {
        let idle = self.last_request_ns.load(Ordering::Relaxed) + IDLE_NS;
        Time(idle.min(self.closed_ns.load(Ordering::Relaxed).saturating_add(CLOSED_NS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn changes_are_due_when_requests_pause_or_soon_after_a_close() {
        let unasked = Unasked::new();
        unasked.request(Time(10 * SECOND));
        assert_eq!(unasked.due(), Time(12 * SECOND));
        unasked.closed(Time(10 * SECOND));
        for second in 11..20 {
            unasked.request(Time(second * SECOND));
            unasked.closed(Time(second * SECOND));
        }
        assert_eq!(unasked.due(), Time(15 * SECOND), "the first close counts");
        unasked.stored();
        assert_eq!(unasked.due(), Time(21 * SECOND));
    }
}
