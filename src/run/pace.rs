//! When the next request is issued: by its time stamp, or as soon as the queue has a place.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The source of issue times.
pub enum Pace {
    /// A closed loop: so many requests are in flight, and the next waits for the first of them to be done.
    Closed {
        /// Requests in flight.
        depth: usize,
        /// When each of them is done.
        in_flight: BinaryHeap<Reverse<Time>>,
        /// When the last request was issued: requests keep their order.
        last: Time,
    },
    /// An open loop: each request is issued at its time stamp times `scale` after `start`, whatever the drive does.
    Open {
        /// When the workload begins.
        start: Time,
        /// How much longer or shorter the recorded times are made.
        scale: f64,
    },
}

impl Pace {
    /// A closed loop with so many requests in flight, that begins at `start`.
    pub fn closed(depth: usize, start: Time) -> Pace {
        debug_assert!(depth > 0, "a request is in flight, or none is ever done");
        Pace::Closed { depth, in_flight: BinaryHeap::with_capacity(depth + 1), last: start }
    }

    /// When a request with this time stamp is issued.
    #[inline]
    pub fn issue(&mut self, stamp_ns: u64) -> Time {
        match self {
            Pace::Closed { depth, in_flight, last } => {
                if in_flight.len() >= *depth
                    && let Some(Reverse(first)) = in_flight.pop()
                {
                    *last = (*last).max(first);
                }
                *last
            }
            Pace::Open { start, scale } => *start + (stamp_ns as f64 * *scale) as u64,
        }
    }

    /// The request that was issued last is done at this time.
    #[inline]
    pub fn done(&mut self, at: Time) {
        if let Pace::Closed { in_flight, depth, .. } = self {
            in_flight.push(Reverse(at));
            debug_assert!(in_flight.len() <= *depth, "each request is issued before it is done");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_waits_for_the_first_of_its_requests() {
        let mut pace = Pace::closed(2, Time(100));
        assert_eq!(pace.issue(7), Time(100));
        pace.done(Time(500));
        assert_eq!(pace.issue(7), Time(100));
        pace.done(Time(300));
        assert_eq!(pace.issue(7), Time(300));
        pace.done(Time(310));
        assert_eq!(pace.issue(7), Time(310));
    }

    #[test]
    fn an_open_loop_scales_the_recorded_times() {
        let mut pace = Pace::Open { start: Time(100), scale: 0.5 };
        assert_eq!(pace.issue(1000), Time(600));
    }
}
