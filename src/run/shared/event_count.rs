//! A count of events that can be waited for: an eventcount (Reed and Kanodia, Synchronization with eventcounts and
//! sequencers, CACM 22:2, 1979). Whoever has seen so many events sleeps until there are more, and an event that nobody waits
//! for costs no more than to be counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A count of events.
#[derive(Debug, Default)]
pub struct EventCount {
    count: AtomicU64,
    /// How many wait, or are about to.
    waiting: AtomicU64,
    /// Held by whoever goes to sleep, from its last look at the count on, and by whoever wakes.
    falling_asleep: Mutex<()>,
    advanced: Condvar,
}

impl EventCount {
    /// One more event.
    pub fn advance(&self) {
        // Either this sees who waits, or who waits sees this: all four accesses are in one order.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    /// Events so far.
    pub fn read(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until there are more than `seen` events, `most` has passed, or `is_over` holds, of which [`wake`](EventCount::wake)
    /// tells. It may also end early for no reason: who needs one looks again.
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

    /// Lets all who wait look again, without an event.
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
    fn whoever_waits_sees_every_event_however_it_falls_asleep() {
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
    fn who_is_told_that_it_is_over_stops_waiting_for_events_that_never_come() {
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
    fn nobody_waits_longer_than_it_wants_to() {
        EventCount::default().wait(0, Some(Duration::from_millis(1)), || false);
        let before = EventCount::default();
        before.advance();
        before.wait(0, None, || false);
    }
}
