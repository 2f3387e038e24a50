//! Answers that wait for their time, so that an emulated drive answers when the real one would.
//!
//! Requests are served as they come, and the device sees as many at once as the clients keep in flight; each answer waits
//! here. Answers overtake each other as they do on a drive. The library has no threads: a front end lends one to
//! [`DueQueue::take`].

use crate::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// An answer and its due time.
struct Entry<T> {
    due: Time,
    /// Of two answers due at once, the earlier one goes first.
    number: u64,
    weight: usize,
    answer: T,
}

// A heap has its greatest on top: the greatest is the one that is due first.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

struct Waiting<T> {
    answers: BinaryHeap<Entry<T>>,
    weight: usize,
    count: u64,
    is_closed: bool,
    is_abandoned: bool,
}

/// Answers that wait for their time.
pub struct DueQueue<T> {
    most_weight: usize,
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

/// Nobody takes answers from the queue any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandoned;

impl<T> DueQueue<T> {
    /// An empty queue in which answers of at most `most_weight` together may wait, or a single one of any weight.
    pub fn new(most_weight: usize) -> DueQueue<T> {
        let waiting =
            Waiting { answers: BinaryHeap::new(), weight: 0, count: 0, is_closed: false, is_abandoned: false };
        DueQueue { most_weight, waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    /// Adds `answer`, which is due at `due`. Waits while there is no room.
    pub fn push(&self, due: Time, weight: usize, answer: T) -> Result<(), Abandoned> {
        let mut waiting = self.lock();
        while waiting.weight > 0 && waiting.weight + weight > self.most_weight && !waiting.is_abandoned {
            waiting = self.changed.wait(waiting).unwrap_or_else(|broken| broken.into_inner());
        }
        if waiting.is_abandoned {
            return Err(Abandoned);
        }
        waiting.weight += weight;
        waiting.count += 1;
        let number = waiting.count;
        waiting.answers.push(Entry { due, number, weight, answer });
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until an answer is due by the clock `now`, and moves all due answers to `ready`. False when the queue is closed
    /// and empty.
    pub fn take(&self, now: impl Fn() -> Time, ready: &mut Vec<T>) -> bool {
        ready.clear();
        let mut waiting = self.lock();
        loop {
            let at = now();
            while waiting.answers.peek().is_some_and(|entry| entry.due <= at) {
                if let Some(entry) = waiting.answers.pop() {
                    debug_assert!(entry.weight <= waiting.weight, "each answer that waits is weighed");
                    waiting.weight -= entry.weight;
                    ready.push(entry.answer);
                }
            }
            if !ready.is_empty() {
                drop(waiting);
                self.changed.notify_all();
                return true;
            }
            waiting = match waiting.answers.peek() {
                None if waiting.is_closed => return false,
                None => self.changed.wait(waiting).unwrap_or_else(|broken| broken.into_inner()),
                Some(entry) => {
                    let left = Duration::from_nanos(entry.due.since_ns(at));
                    self.changed.wait_timeout(waiting, left).unwrap_or_else(|broken| broken.into_inner()).0
                }
            };
        }
    }

    /// Closes the queue: [`take`](DueQueue::take) ends after the last answer.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Abandons the queue: waiting answers are dropped, and no more can be added.
    pub fn abandon(&self) {
        let mut waiting = self.lock();
        waiting.is_abandoned = true;
        waiting.is_closed = true;
        waiting.answers.clear();
        drop(waiting);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        // Nothing that holds the lock can panic; and the queue would still be one.
        self.waiting.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_when_they_are_due_and_in_that_order() {
        let queue = DueQueue::new(100);
        for (due, answer) in [(30, 'c'), (10, 'a'), (20, 'b'), (10, 'A')] {
            queue.push(Time(due), 1, answer).unwrap();
        }
        let mut ready = Vec::new();
        assert!(queue.take(|| Time(10), &mut ready));
        assert_eq!(ready, ['a', 'A']);
        queue.close();
        assert!(queue.take(|| Time(40), &mut ready));
        assert_eq!(ready, ['b', 'c']);
        assert!(!queue.take(|| Time(40), &mut ready));
    }

    #[test]
    fn an_answer_of_any_weight_finds_room_in_an_empty_queue_and_none_in_an_abandoned_one() {
        let queue = DueQueue::new(10);
        queue.push(Time(1), 1000, ()).unwrap();
        queue.abandon();
        assert_eq!(queue.push(Time(1), 1, ()), Err(Abandoned));
        assert!(!queue.take(|| Time(5), &mut Vec::new()));
    }
}
