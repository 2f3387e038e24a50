//! The issue times of requests, and the requests in flight.

use crate::time::Time;
use crate::workload::Operation;
use std::collections::VecDeque;

/// The source of issue times.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// A closed loop: `depth` requests are in flight, and the next one waits for the first of them.
    Closed {
        /// The number of requests in flight.
        depth: usize,
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
        Pace::Closed { depth, last: start }
    }
}

/// A request, from its issue until it is done and all issued before it are.
#[derive(Debug, Clone, Copy)]
pub struct Flight<M> {
    pub operation: Operation,
    pub issued: Time,
    /// Stands for its end.
    pub moment: M,
    done: Option<Time>,
}

/// The requests that are in flight, or done before one that was issued earlier.
#[derive(Debug)]
pub struct Flights<M> {
    requests: VecDeque<Flight<M>>,
    /// The number of the first of them.
    first: u64,
    in_flight: usize,
}

impl<M: Copy> Flights<M> {
    /// No request so far.
    pub fn new() -> Flights<M> {
        Flights { requests: VecDeque::new(), first: 0, in_flight: 0 }
    }

    /// The number of requests in flight.
    #[inline]
    pub fn count(&self) -> usize {
        self.in_flight
    }

    /// The issue of the earliest request that is not told yet.
    pub fn oldest(&self) -> Option<Time> {
        self.requests.front().map(|flight| flight.issued)
    }

    /// Handles for the ends of the requests in flight.
    pub fn moments(&self) -> impl Iterator<Item = M> + '_ {
        self.requests.iter().filter(|flight| flight.done.is_none()).map(|flight| flight.moment)
    }

    /// Those of a tenant alone.
    pub fn moments_of(&self, tenant: u32) -> impl Iterator<Item = M> + '_ {
        let of_tenant = move |flight: &&Flight<M>| flight.done.is_none() && flight.operation.device == tenant;
        self.requests.iter().filter(of_tenant).map(|flight| flight.moment)
    }

    /// Adds a request that is in flight. Returns its number.
    #[inline]
    pub fn add(&mut self, operation: Operation, issued: Time, moment: M) -> u64 {
        self.requests.push_back(Flight { operation, issued, moment, done: None });
        self.in_flight += 1;
        self.next_number() - 1
    }

    /// The request of this number is done. Returns its device or tenant.
    #[inline]
    pub fn land(&mut self, number: u64, at: Time) -> u32 {
        let place = number.checked_sub(self.first).expect("a request is told once");
        let flight = &mut self.requests[place as usize];
        debug_assert!(flight.done.is_none() && at >= flight.issued, "request {number} is done once, after its issue");
        flight.done = Some(at);
        self.in_flight -= 1;
        flight.operation.device
    }

    /// The number that the next request gets.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// The next request, in the order of issue, that is done; its number, and when.
    #[inline]
    pub fn next_landed(&mut self) -> Option<(u64, Flight<M>, Time)> {
        let flight = *self.requests.front()?;
        let done = flight.done?;
        self.requests.pop_front();
        self.first += 1;
        Some((self.first - 1, flight, done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Content;
    use crate::workload::Action;

    #[test]
    fn requests_are_told_in_the_order_of_their_issue() {
        let mut flights = Flights::new();
        let content = Content::Data;
        let (time_ns, offset_bytes, length_bytes, stream, device) = (0, 0, 0, 0, 0);
        let flush = Operation { time_ns, offset_bytes, length_bytes, action: Action::Flush, content, stream, device };
        let numbers = [5, 6, 7].map(|at| flights.add(flush, Time(at), ()));
        flights.land(numbers[1], Time(20));
        assert!(flights.next_landed().is_none() && flights.count() == 2);
        flights.land(numbers[0], Time(30));
        let mut told = || flights.next_landed().map(|(_, flight, done)| (flight.issued, done));
        assert_eq!((told(), told(), told()), (Some((Time(5), Time(30))), Some((Time(6), Time(20))), None));
        assert_eq!((flights.count(), flights.oldest()), (1, Some(Time(7))));
    }
}
