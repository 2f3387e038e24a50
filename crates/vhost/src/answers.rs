//! Answers that wait for their time: the emulated drive answers as late as the real one would.

use flashpath::run::shared::{DueQueue, SharedDevice};
use flashpath::time::Time;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use vhost_user_backend::{VringMutex, VringT};

/// The most answers that wait; the next request waits until some are given.
const MOST: usize = 1 << 16;

/// An answered request.
pub struct Answer {
    /// The queue's number.
    pub queue: usize,
    /// The queue.
    pub ring: VringMutex,
    /// The first descriptor of the request.
    pub head: u16,
    /// Bytes that were written to the guest's memory.
    pub written: u32,
}

/// Puts an answer into the used ring. A ring that the guest has made unusable has no answers.
pub fn give(ring: &VringMutex, head: u16, written: u32) {
    let _ = ring.add_used(head, written);
}

/// Wakes the guest, if it wants to be for the answers that were given.
pub fn notify(ring: &VringMutex) {
    if ring.needs_notification().unwrap_or(true) {
        // It fails if the guest has given no event, and polls.
        let _ = ring.signal_used_queue();
    }
}

/// Answers of all queues of a client.
pub struct Answers {
    due: DueQueue<Answer>,
    /// Those that wait, by queue.
    waiting: Mutex<Vec<usize>>,
    given: Condvar,
}

impl Answers {
    /// None, of so many queues.
    pub fn new(queues: usize) -> Answers {
        Answers { due: DueQueue::new(MOST), waiting: Mutex::new(vec![0; queues]), given: Condvar::new() }
    }

    /// Adds an answer. It is dropped if the client is gone.
    pub fn add(&self, done: Time, answer: Answer) {
        self.waiting()[answer.queue] += 1;
        let _ = self.due.push(done, 1, answer);
    }

    /// Gives each answer at its time, until the client is gone.
    pub fn give_all(&self, device: &SharedDevice) {
        // Without this, the kernel wakes a sleeping thread up to 50 us late. If the call fails, answers are that much later.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut ready = Vec::new();
        while self.due.take(|| device.now(), &mut ready) {
            for answer in &ready {
                give(&answer.ring, answer.head, answer.written);
                notify(&answer.ring);
            }
            let mut waiting = self.waiting();
            // They may have been abandoned meanwhile.
            ready.iter().for_each(|answer| waiting[answer.queue] = waiting[answer.queue].saturating_sub(1));
            drop(waiting);
            self.given.notify_all();
        }
    }

    /// Waits until all answers of these queues are given.
    pub fn wait(&self, queues: std::ops::Range<usize>) {
        let mut waiting = self.waiting();
        while waiting[queues.clone()].iter().any(|count| *count > 0) {
            waiting = self.given.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The client is gone: drops the answers that wait.
    pub fn abandon(&self) {
        self.due.abandon();
        self.waiting().fill(0);
        self.given.notify_all();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<usize>> {
        // Counts are valid after any panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
