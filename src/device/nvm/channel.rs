//! A direction of memory, or of the flash behind it: accesses that queue for its bandwidth.

use crate::time::Time;
use std::sync::{Mutex, PoisonError};

const PS_PER_NS: u128 = 1000;
/// A byte at one MB/s takes so many picoseconds.
const PS_OF_A_BYTE: u128 = 1_000_000;

/// The times of one direction: reads, or stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// The time of an access of one line to idle memory, in nanoseconds, without its transfer.
    pub latency_ns: u64,
    /// Bytes that all threads together transfer in a second, in units of 10^6 bytes.
    pub megabytes_per_second: u64,
}

/// A direction at work.
#[derive(Debug)]
pub(super) struct Channel {
    times: Direction,
    unit_bytes: u64,
    /// The time, in picoseconds, at which all earlier accesses are transferred.
    free_at_ps: Mutex<u128>,
}

impl Channel {
    pub(super) fn new(times: Direction, unit_bytes: u64) -> Channel {
        assert!(times.megabytes_per_second > 0 && unit_bytes > 0, "memory transfers something");
        Channel { times, unit_bytes, free_at_ps: Mutex::new(0) }
    }

    /// The end of an access of so many bytes that is asked for `at`.
    pub(super) fn done_at(&self, at: Time, bytes: u64) -> Time {
        if bytes == 0 {
            return at;
        }
        let units = u128::from(bytes.div_ceil(self.unit_bytes));
        let rate = u128::from(self.times.megabytes_per_second);
        let takes_ps = (units * u128::from(self.unit_bytes) * PS_OF_A_BYTE).div_ceil(rate);
        let mut free_at_ps = self.free_at_ps.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at_ps = (u128::from(at.0) * PS_PER_NS).max(*free_at_ps) + takes_ps;
        Time(free_at_ps.div_ceil(PS_PER_NS) as u64) + self.times.latency_ns
    }
}
