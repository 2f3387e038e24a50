//! Where the time of requests goes: each operation of a device that has a timing model, with its waits.
//!
//! A device is opened with a [`WaitLog`] only if somebody asks for the waits of requests. It then records each operation:
//! when it was asked for, when it was done, and what it waited for. A caller that waits goes on from an operation's end,
//! so the path of a request through time can be found afterwards, from its end back to its issue, by the ends of
//! operations. No caller in between passes anything on, and the parts of a request always add up to its latency.

use crate::label::{Cause, Label};
use crate::time::Time;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an operation is done for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A request.
    #[default]
    Host,
    /// To make room: garbage collection, folds, merges, wear levelling, segment cleaning, reclaim; to keep data readable:
    /// refresh, scrub, bad blocks.
    Collection,
    /// To erase a block.
    Erase,
    /// To read or write the map of a translation layer.
    Mapping,
    /// To empty a drive's write buffer, for whose places requests wait.
    Buffer,
    /// To read a page again whose bits could not be corrected.
    Retry,
}

impl Purpose {
    /// That of a cause.
    pub fn of_cause(cause: Cause) -> Purpose {
        match cause {
            Cause::SegmentCleaning
            | Cause::Reclaim
            | Cause::Merge
            | Cause::GarbageCollection
            | Cause::WearLevelling
            | Cause::Fold
            | Cause::Refresh
            | Cause::Scrub
            | Cause::BadBlock => Purpose::Collection,
            Cause::Mapping => Purpose::Mapping,
            Cause::HostWrite
            | Cause::JournalCommit
            | Cause::Checkpoint
            | Cause::CacheFill
            | Cause::Padding
            | Cause::Joined => Purpose::Host,
        }
    }

    /// That of a write: of its cause or, if that is the host's, of its origin.
    pub fn of(label: Label) -> Purpose {
        match Purpose::of_cause(label.cause) {
            Purpose::Host => Purpose::of_cause(label.origin),
            purpose => purpose,
        }
    }
}

/// The parts of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Waiting for a die (a plane) that other requests used.
    pub die_ns: u64,
    /// Waiting for a channel that other requests used.
    pub channel_ns: u64,
    /// Waiting for a die or channel in use for collection; operations for collection.
    pub collection_ns: u64,
    /// The same of erases.
    pub erase_ns: u64,
    /// The same of the map of a translation layer.
    pub mapping_ns: u64,
    /// Waiting for a place in a drive's write buffer: programs that empty it.
    pub buffer_ns: u64,
    /// Reads again of pages that could not be corrected.
    pub retry_ns: u64,
    /// The device's work for the request itself: reading, programming, transfers.
    pub service_ns: u64,
    /// Outside of devices with a timing model: CPU time, memory, gates of the file system.
    pub other_ns: u64,
}

impl Waits {
    /// The parts in the order in which they pass, if they all do.
    fn parts(&mut self) -> [&mut u64; 9] {
        let Waits {
            die_ns,
            channel_ns,
            collection_ns,
            erase_ns,
            mapping_ns,
            buffer_ns,
            retry_ns,
            service_ns,
            other_ns,
        } = self;
        [die_ns, channel_ns, collection_ns, erase_ns, mapping_ns, buffer_ns, service_ns, retry_ns, other_ns]
    }

    /// The sum of all parts.
    pub fn total_ns(mut self) -> u64 {
        self.parts().into_iter().map(|part| *part).sum()
    }

    /// Adds those of another time.
    pub(crate) fn add(&mut self, mut other: Waits) {
        self.parts().into_iter().zip(other.parts()).for_each(|(sum, part)| *sum += *part);
    }

    /// Takes off the first nanoseconds.
    fn without_first(mut self, mut first_ns: u64) -> Waits {
        for part in self.parts() {
            let taken = first_ns.min(*part);
            *part -= taken;
            first_ns -= taken;
        }
        self
    }
}

/// An operation of a device.
#[derive(Clone, Copy, Debug)]
struct Operation {
    /// The issuer.
    asker: u32,
    at: Time,
    done: Time,
    waits: Waits,
}

/// The operations of all devices of a path, as long as a request may have waited for them. All clones are one log.
#[derive(Clone, Debug, Default)]
pub struct WaitLog {
    recorded: Arc<Mutex<Recorded>>,
    /// True for a drive with a write buffer: what it programs for requests makes places in that.
    is_of_buffer: bool,
}

#[derive(Debug, Default)]
struct Recorded {
    operations: Vec<Operation>,
    /// The number of operations at which those that no request can wait for any more are dropped.
    drop_at: usize,
    /// The issuer of the next operations: a thread, or a request of a run without threads.
    asker: u32,
    /// The issue of each thread's request, or of the oldest request.
    issued: Vec<Time>,
}

/// The least number of operations that are kept.
const LEAST_KEPT: usize = 1024;
/// The number of operations beyond which the oldest are dropped, though a request may still wait for them. Without a
/// limit, a trace that is replayed faster than its drive serves would fill the memory.
const MOST_KEPT: usize = 1 << 18;

impl Recorded {
    /// The issue of the oldest request.
    fn oldest(&self) -> Time {
        self.issued.iter().copied().min().unwrap_or(Time::ZERO)
    }

    fn drop_old(&mut self) {
        let oldest = self.oldest();
        self.operations.retain(|operation| operation.done > oldest);
        let surplus = self.operations.len().saturating_sub(MOST_KEPT / 2);
        self.operations.drain(..surplus);
        self.drop_at = (self.operations.len() * 2).max(LEAST_KEPT);
    }
}

impl WaitLog {
    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same log, for a drive with a write buffer if there is one.
    pub fn with_buffer(&self, is_of_buffer: bool) -> WaitLog {
        WaitLog { is_of_buffer, ..self.clone() }
    }

    /// The purpose of a program that is made for this one.
    pub fn purpose_of_program(&self, purpose: Purpose) -> Purpose {
        if self.is_of_buffer && purpose == Purpose::Host { Purpose::Buffer } else { purpose }
    }

    /// The next operations are those of this thread, from 0.
    pub fn turn(&self, thread: u32) {
        self.recorded().asker = thread;
    }

    /// The next operations are those of this request, in a run without threads. `oldest`: the issue of the oldest request
    /// whose parts may still be asked for.
    pub fn request(&self, number: u32, oldest: Time) {
        let mut recorded = self.recorded();
        recorded.asker = number;
        recorded.issued.clear();
        recorded.issued.push(oldest);
    }

    /// The issuer of operations from now on.
    pub fn asker(&self) -> u32 {
        self.recorded().asker
    }

    /// The thread issues a request.
    pub fn issue(&self, at: Time) {
        let mut recorded = self.recorded();
        let thread = recorded.asker as usize;
        if recorded.issued.len() <= thread {
            recorded.issued.resize(thread + 1, at);
        }
        recorded.issued[thread] = at;
    }

    /// The issue of the oldest request.
    pub fn oldest(&self) -> Time {
        self.recorded().oldest()
    }

    /// Records an operation that is issued now, and takes from `at` until `done`, the sum of its waits.
    pub fn record(&self, purpose: Purpose, at: Time, done: Time, waits: Waits) {
        self.record_of(self.asker(), purpose, (at, done), waits);
    }

    /// Records an operation that `asker` issued, and that took from the first instant until the second.
    pub fn record_of(&self, asker: u32, purpose: Purpose, (at, done): (Time, Time), waits: Waits) {
        let took = done.since_ns(at);
        debug_assert_eq!(waits.total_ns(), took, "{waits:?} are the whole time");
        let mut of_purpose = match purpose {
            Purpose::Host => waits,
            // What it waited for is told; the rest is its own.
            Purpose::Buffer | Purpose::Retry => Waits { die_ns: 0, channel_ns: 0, service_ns: 0, ..waits },
            Purpose::Collection | Purpose::Erase | Purpose::Mapping => Waits::default(),
        };
        let rest = took - of_purpose.total_ns();
        *part(&mut of_purpose, purpose, |waits| &mut waits.service_ns) += rest;
        let waits = of_purpose;
        let mut recorded = self.recorded();
        recorded.operations.push(Operation { asker, at, done, waits });
        if recorded.operations.len() >= recorded.drop_at.clamp(LEAST_KEPT, MOST_KEPT) {
            recorded.drop_old();
        }
    }

    /// The parts of the time of the asker's request from `issued` until `done`; their sum is that time.
    pub fn of_request(&self, asker: u32, issued: Time, done: Time) -> Waits {
        let recorded = self.recorded();
        let (mut sum, mut until, mut earlier) = (Waits::default(), done, &recorded.operations[..]);
        while until > issued {
            let is_end = |operation: &Operation| operation.done == until && operation.at < until;
            let own = |operation: &Operation| operation.asker == asker;
            // Another thread's operation is waited for in a gate that the other held.
            let found = earlier
                .iter()
                .rposition(|operation| is_end(operation) && own(operation))
                .or_else(|| earlier.iter().rposition(is_end));
            if let Some(place) = found {
                let operation = earlier[place];
                sum.add(operation.waits.without_first(issued.0.saturating_sub(operation.at.0)));
                (until, earlier) = (operation.at.max(issued), &earlier[..place]);
                continue;
            }
            let before = earlier.iter().filter(|operation| operation.done < until && own(operation));
            let resumed = before.map(|operation| operation.done).max().unwrap_or(issued).max(issued);
            sum.other_ns += until.since_ns(resumed);
            until = resumed;
        }
        debug_assert_eq!(sum.total_ns(), done.since_ns(issued), "the parts are the whole time");
        sum
    }
}

/// Who holds a resource, such as a die, until when.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    /// In order; each hold begins where the one before ends.
    until: VecDeque<(Time, Purpose)>,
}

/// The number of changes of purpose that are remembered.
const MOST_HOLDS: usize = 4096;

impl Holds {
    /// The resource is held until `end`. Nobody asks for times before `oldest` any more.
    pub fn hold(&mut self, end: Time, purpose: Purpose, oldest: Time) {
        match self.until.back_mut() {
            Some(last) if last.1 == purpose => last.0 = end,
            _ => self.until.push_back((end, purpose)),
        }
        while self.until.len() > MOST_HOLDS || self.until.front().is_some_and(|first| first.0 <= oldest) {
            self.until.pop_front();
        }
    }

    /// Splits a wait for the resource by the purposes for which it was held. `of_host` is the part for requests.
    pub fn wait(&self, from: Time, until: Time, of_host: fn(&mut Waits) -> &mut u64) -> Waits {
        let (mut waits, mut left) = (Waits::default(), until);
        let mut holds = self.until.iter().rev().peekable();
        while left > from
            && let Some((_, purpose)) = holds.next()
        {
            let begin = holds.peek().map_or(from, |(end, _)| *end).clamp(from, left);
            *part_of_hold(&mut waits, *purpose, of_host) += left.since_ns(begin);
            left = begin;
        }
        // What was forgotten.
        *of_host(&mut waits) += left.0.saturating_sub(from.0);
        waits
    }
}

/// The part of an operation of this purpose, of which a request's own have several.
fn part(waits: &mut Waits, purpose: Purpose, of_host: fn(&mut Waits) -> &mut u64) -> &mut u64 {
    match purpose {
        Purpose::Host => of_host(waits),
        Purpose::Collection => &mut waits.collection_ns,
        Purpose::Erase => &mut waits.erase_ns,
        Purpose::Mapping => &mut waits.mapping_ns,
        Purpose::Buffer => &mut waits.buffer_ns,
        Purpose::Retry => &mut waits.retry_ns,
    }
}

/// The part of a wait for a resource that is held for this purpose. Retries and programs out of a buffer are other requests' use
/// of it.
pub(super) fn part_of_hold(waits: &mut Waits, purpose: Purpose, of_host: fn(&mut Waits) -> &mut u64) -> &mut u64 {
    match purpose {
        Purpose::Buffer | Purpose::Retry => of_host(waits),
        purpose => part(waits, purpose, of_host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn die(waits: &mut Waits) -> &mut u64 {
        &mut waits.die_ns
    }

    fn service(ns: u64) -> Waits {
        Waits { service_ns: ns, ..Waits::default() }
    }

    #[test]
    fn a_wait_is_split_by_what_the_die_was_held_for() {
        let mut holds = Holds::default();
        for (end, purpose) in
            [(10, Purpose::Host), (30, Purpose::Collection), (35, Purpose::Mapping), (40, Purpose::Host)]
        {
            holds.hold(Time(end), purpose, Time::ZERO);
        }
        let expected = Waits { die_ns: 5, collection_ns: 18, mapping_ns: 5, ..Waits::default() };
        assert_eq!(holds.wait(Time(12), Time(40), die), expected);
        assert_eq!(holds.wait(Time(0), Time(40), die).die_ns, 15);
        holds.hold(Time(50), Purpose::Host, Time(32));
        let expected = Waits { die_ns: 15, mapping_ns: 1, ..Waits::default() };
        assert_eq!(holds.wait(Time(34), Time(50), die), expected);
    }

    #[test]
    fn the_path_of_a_request_is_found_from_its_end() {
        let log = WaitLog::default();
        log.issue(Time(100));
        let read = Waits { die_ns: 30, service_ns: 20, ..Waits::default() };
        log.record(Purpose::Mapping, Time(100), Time(150), read);
        log.record(Purpose::Host, Time(150), Time(190), service(40));
        // Beside it, and sooner done.
        log.record(Purpose::Collection, Time(150), Time(170), service(20));
        let waits = log.of_request(0, Time(100), Time(200));
        assert_eq!(waits, Waits { mapping_ns: 50, service_ns: 40, other_ns: 10, ..Waits::default() });
    }

    #[test]
    fn of_an_operation_that_began_before_the_request_only_the_rest_counts() {
        let log = WaitLog::default();
        log.record(Purpose::Host, Time(0), Time(100), Waits { die_ns: 60, service_ns: 40, ..Waits::default() });
        assert_eq!(log.of_request(0, Time(50), Time(100)), Waits { die_ns: 10, service_ns: 40, ..Waits::default() });
        assert_eq!(log.of_request(0, Time(80), Time(100)), service(20));
    }

    #[test]
    fn another_thread_s_operation_counts_only_if_it_ends_when_the_wait_does() {
        let log = WaitLog::default();
        log.turn(1);
        log.record(Purpose::Host, Time(0), Time(70), service(70));
        log.record(Purpose::Host, Time(0), Time(90), service(90));
        log.turn(0);
        assert_eq!(log.of_request(0, Time(10), Time(100)).other_ns, 90, "its end at 90 is nobody's here");
        assert_eq!(log.of_request(0, Time(10), Time(70)), service(60), "a gate was left at 70");
    }

    #[test]
    fn the_log_forgets_what_no_request_waits_for() {
        let log = WaitLog::default();
        for number in 0..100_000u64 {
            log.issue(Time(number * 10));
            log.record(Purpose::Host, Time(number * 10), Time(number * 10 + 500), service(500));
        }
        assert!(log.recorded().operations.len() < 4 * LEAST_KEPT);
    }
}
