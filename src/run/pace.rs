//! The issue time of the next request: its time stamp, or the next free place in the queue.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The source of issue times.
pub enum Pace {
    /// A closed loop: `depth` requests are in flight, and the next one waits for the first of them.
    Closed {
        /// The number of requests in flight.
        depth: usize,
        /// The completion time of each.
        in_flight: BinaryHeap<Reverse<Time>>,
        /// The time of the last issue: requests keep their order.
        last: Time,
    },
    /// An open loop: each request is issued at `start` plus its time stamp times `scale`, whatever the drive does.
    Open {
        /// The start of the workload.
        start: Time,
        /// The factor for recorded times.
        scale: f64,
    },
}

impl Pace {
    /// A closed loop of `depth` requests that begins at `start`.
    pub fn closed(depth: usize, start: Time) -> Pace {
        debug_assert!(depth > 0, "a request is in flight, or none is ever done");
        Pace::Closed { depth, in_flight: BinaryHeap::with_capacity(depth + 1), last: start }
    }

    /// The issue time of a request with this time stamp.
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

    /// Records the completion time of the request that was issued last.
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
