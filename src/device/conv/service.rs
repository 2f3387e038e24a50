//! The timing model of a conventional device: parallel units, each serving one block at a time.
//!
//! A block is read from the unit of its address. A write goes to the next unit in turn. A request is done when its last
//! block is. Nothing else takes time: no collection, no bus.

use crate::device::Lba;
use crate::device::wait_log::{Holds, Purpose, WaitLog};
use crate::time::Time;

/// The times of a conventional device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceTimes {
    /// The time to read a block, in nanoseconds.
    pub read_ns: u64,
    /// The time to write a block, in nanoseconds.
    pub write_ns: u64,
    /// The number of units: blocks that are read or written in parallel.
    pub units: u32,
}

/// The record of waits.
#[derive(Clone, Debug)]
struct Record {
    log: WaitLog,
    holds: Vec<Holds>,
}

impl Record {
    /// A unit serves a block that was asked for `at`, from `begin` until `done`.
    fn add(&mut self, unit: usize, purpose: Purpose, (at, begin): (Time, Time), done: Time) {
        let oldest = self.log.oldest();
        let mut waits = self.holds[unit].wait(at, begin, |waits| &mut waits.die_ns);
        waits.service_ns += done.since_ns(begin);
        self.holds[unit].hold(done, purpose, oldest);
        self.log.record(purpose, at, done, waits);
    }
}

/// The units, each with the time until which it is busy.
#[derive(Clone, Debug)]
pub struct Service {
    times: ServiceTimes,
    free_at: Box<[Time]>,
    record: Option<Record>,
    /// The unit of the next write.
    next: usize,
}

impl Service {
    /// All units idle.
    pub fn new(times: ServiceTimes) -> Service {
        Service { times, free_at: vec![Time::ZERO; times.units as usize].into(), record: None, next: 0 }
    }

    /// The same, which records its waits.
    pub fn recording(self, log: WaitLog) -> Service {
        let holds = vec![Holds::default(); self.free_at.len()];
        Service { record: Some(Record { log, holds }), ..self }
    }

    /// Reads `count` blocks from `first` on; returns the completion time.
    #[inline]
    pub fn read(&mut self, first: Lba, count: u64, at: Time) -> Time {
        let unit = (first.0 % self.free_at.len() as u64) as usize;
        self.pass(unit, count, self.times.read_ns, Purpose::Host, at).1
    }

    /// Writes `count` blocks; returns the completion time.
    #[inline]
    pub fn write(&mut self, count: u64, purpose: Purpose, at: Time) -> Time {
        let (next, done) = self.pass(self.next, count, self.times.write_ns, purpose, at);
        self.next = next;
        done
    }

    /// Serves `count` blocks on the units from `unit` on; returns the next unit and the completion time.
    #[inline]
    fn pass(&mut self, mut unit: usize, count: u64, takes_ns: u64, purpose: Purpose, at: Time) -> (usize, Time) {
        let mut done = at;
        for _ in 0..count {
            let free_at = &mut self.free_at[unit];
            let begin = at.max(*free_at);
            *free_at = begin + takes_ns;
            if let Some(record) = &mut self.record {
                record.add(unit, purpose, (at, begin), *free_at);
            }
            done = done.max(*free_at);
            unit += 1;
            if unit == self.free_at.len() {
                unit = 0;
            }
        }
        (unit, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service::new(ServiceTimes { read_ns: 40, write_ns: 200, units: 4 })
    }

    #[test]
    fn as_many_writes_go_at_once_as_there_are_units() {
        let mut service = service();
        assert_eq!(service.write(4, Purpose::Host, Time(0)), Time(200));
        assert_eq!(service.write(1, Purpose::Host, Time(0)), Time(400));
        assert_eq!(service.write(1, Purpose::Host, Time(1000)), Time(1200));
    }

    #[test]
    fn reads_of_one_place_wait_for_each_other() {
        let mut service = service();
        assert_eq!(service.read(Lba(3), 1, Time(0)), Time(40));
        assert_eq!(service.read(Lba(7), 1, Time(0)), Time(80));
        assert_eq!(service.read(Lba(0), 1, Time(0)), Time(40));
    }
}
