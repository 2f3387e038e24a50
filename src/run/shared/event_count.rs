//! A count of events that can be waited for: an eventcount (Reed and Kanodia, Synchronization with eventcounts and
//! sequencers, CACM 22:2, 1979). A thread that has seen a number of events sleeps until there are more. An event that nobody waits
//! for costs one increment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A count of events.
#[derive(Debug, Default)]
pub struct EventCount {
    count: AtomicU64,
    /// The number of threads that wait or are about to.
    waiting: AtomicU64,
    /// Held by a thread that falls asleep, from its last look at the count on, and by one that wakes others.
    falling_asleep: Mutex<()>,
    advanced: Condvar,
}

impl EventCount {
    /// Counts an event.
    pub fn advance(&self) {
        // Either this sees the waiter, or the waiter sees this: all four accesses are in one order.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    /// The number of events so far.
    pub fn read(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until there are more than `seen` events, `most` has passed, or `is_over` holds, of which [`wake`](EventCount::wake)
    /// tells. It may also end early without a reason: check again.
    pub fn wait(&self, seen: u64, most: Option<Duration>, is_over: impl Fn() -> bool) {
        let asleep = self.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.read() == seen && !is_over() {
            let woken = match most {
                Some(most) => self.advanced.wait_timeout(asleep, most).unwrap_or_else(PoisonError::into_inner).0,
                None => self.advanced.wait(asleep).unwrap_or_else(PoisonError::into_inner),
            };
            drop(woken);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes all waiting threads without an event.
    pub fn wake(&self) {
        drop(self.lock());
        self.advanced.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // It protects nothing that could be broken.
        self.falling_asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test has threads")]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_waiter_misses_no_event_while_it_falls_asleep() {
        const EVENTS: u64 = 20_000;
        let (there, back) = (EventCount::default(), EventCount::default());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for event in 0..EVENTS {
                    while there.read() == event {
                        there.wait(event, None, || false);
                    }
                    back.advance();
                }
            });
            for event in 0..EVENTS {
                there.advance();
                while back.read() == event {
                    back.wait(event, None, || false);
                }
            }
        });
        assert_eq!((there.read(), back.read()), (EVENTS, EVENTS));
    }

    #[test]
    fn a_waiter_that_is_told_of_the_end_stops_waiting() {
        let (events, is_over) = (EventCount::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    events.wait(0, None, || is_over.load(Ordering::SeqCst));
                }
            });
            is_over.store(true, Ordering::SeqCst);
            events.wake();
        });
    }

    #[test]
    fn a_wait_ends_at_its_time_limit() {
        EventCount::default().wait(0, Some(Duration::from_millis(1)), || false);
        let before = EventCount::default();
        before.advance();
        before.wait(0, None, || false);
    }
}
