//! Time as a value.
//!
//! There is no global clock: a caller passes a [`Time`] with a request, and a device returns the completion time. A caller
//! that waits continues from there. Only the inside of a drive has events ([`crate::device::nand::Scheduled`]).

use std::ops::{Add, Sub};

/// A point in a run's own time: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The instant at which a run begins.
    pub const ZERO: Time = Time(0);

    /// Nanoseconds from `earlier` to `self`; zero if `earlier` is the later one.
    pub fn since_ns(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Seconds since the run began.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<u64> for Time {
    type Output = Time;

    fn add(self, nanoseconds: u64) -> Time {
        Time(self.0 + nanoseconds)
    }
}

impl Sub<u64> for Time {
    type Output = Time;

    fn sub(self, nanoseconds: u64) -> Time {
        Time(self.0.saturating_sub(nanoseconds))
    }
}
