//! Keeps a read of a block of an image from overlapping a write of it, and two writes from each other. The kernel's page cache
//! does not: a read could return a part of a concurrent write.

use crate::device::Lba;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Code that holds the lock does not panic.
const UNBROKEN: &str = "no thread panicked between two requests";

/// The requests under way, and those that wait for them.
#[derive(Default)]
pub(super) struct UnderWay {
    queue: Mutex<Queue>,
    left: Condvar,
}

#[derive(Default)]
struct Queue {
    came: u64,
    requests: Vec<Request>,
    /// The number of waiting requests.
    waiting: u32,
}

struct Request {
    number: u64,
    first: u64,
    end: u64,
    is_write: bool,
}

impl Request {
    /// True if `self` must end before `other` begins.
    fn blocks(&self, other: &Request) -> bool {
        let overlap = self.first < other.end && other.first < self.end;
        overlap && (self.is_write || other.is_write) && self.number < other.number
    }
}

impl Queue {
    fn is_blocked(&self, number: u64) -> bool {
        let request = self.requests.iter().find(|request| request.number == number);
        let request = request.expect("a request is in the queue until it ends");
        self.requests.iter().any(|earlier| earlier.blocks(request))
    }
}

/// A request that has begun; it ends when this is dropped.
pub(super) struct Turn<'a> {
    under_way: &'a UnderWay,
    number: u64,
}

impl UnderWay {
    /// Begins a request as soon as no earlier one conflicts with it.
    pub fn begin(&self, first: Lba, blocks: u64, is_write: bool) -> Turn<'_> {
        let mut queue = self.queue();
        queue.came += 1;
        let number = queue.came;
        // It is in the queue while it waits, so that no later request overtakes it.
        queue.requests.push(Request { number, first: first.0, end: first.0 + blocks, is_write });
        while queue.is_blocked(number) {
            queue.waiting += 1;
            queue = self.left.wait(queue).expect(UNBROKEN);
            queue.waiting -= 1;
        }
        Turn { under_way: self, number }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect(UNBROKEN)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.under_way.queue();
        let at = queue.requests.iter().position(|request| request.number == self.number);
        queue.requests.swap_remove(at.expect("a request is in the queue until it ends"));
        if queue.waiting > 0 {
            self.under_way.left.notify_all();
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test has threads")]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[test]
    fn requests_for_other_blocks_and_reads_of_the_same_begin_at_once() {
        let under_way = UnderWay::default();
        let write = under_way.begin(Lba(0), 8, true);
        let (reads, other) = (under_way.begin(Lba(8), 8, false), under_way.begin(Lba(8), 8, false));
        let behind = under_way.begin(Lba(16), 1, true);
        drop((write, reads, other, behind));
        assert!(under_way.queue().requests.is_empty());
    }

    #[test]
    fn a_read_waits_for_an_earlier_write_of_its_blocks_and_a_later_write_waits_for_the_read() {
        let (under_way, has_left) = (UnderWay::default(), AtomicBool::new(false));
        let wait_until = |waiting: u32| {
            while under_way.queue().waiting < waiting {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let write = under_way.begin(Lba(4), 1, true);
            let read = scope.spawn(|| {
                let _turn = under_way.begin(Lba(0), 5, false);
                assert!(has_left.load(SeqCst), "the write was under way");
            });
            wait_until(1);
            // Block 0 is free, but for the read that waits.
            let later = scope.spawn(|| {
                let _turn = under_way.begin(Lba(0), 1, true);
                assert!(has_left.load(SeqCst), "it passed the read that came before it");
            });
            wait_until(2);
            has_left.store(true, SeqCst);
            drop(write);
            read.join().unwrap();
            later.join().unwrap();
        });
    }
}
