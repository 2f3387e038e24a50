//! The requests of a shared device's clients, and their latencies.

use crate::device::DeviceError;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Request {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// A range becomes zeros.
    WriteZeroes,
    /// A range is no longer needed.
    Discard,
    /// All that was done becomes durable.
    Flush,
}

impl Request {
    /// The number of kinds.
    pub const COUNT: usize = 5;
    /// All kinds, in the order of their numbers.
    pub const ALL: [Request; Self::COUNT] =
        [Request::Read, Request::Write, Request::WriteZeroes, Request::Discard, Request::Flush];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Request::Read => "read",
            Request::Write => "write",
            Request::WriteZeroes => "write-zeroes",
            Request::Discard => "discard",
            Request::Flush => "flush",
        }
    }
}

/// The upper bounds of the latency classes, in nanoseconds: from 1 us to 10 s in steps of 1, 2 and 5.
pub const LATENCY_BOUNDS_NS: [u64; 22] = bounds();

const fn bounds() -> [u64; 22] {
    let mut bounds = [0; 22];
    let mut index = 0;
    let mut decade = 1_000;
    while index < bounds.len() {
        bounds[index] = decade * [1, 2, 5][index % 3];
        if index % 3 == 2 {
            decade *= 10;
        }
        index += 1;
    }
    bounds
}

/// The latencies of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Requests that took at most the bound of the same number, and more than the one before; the last is for those that
    /// took longer than all bounds.
    pub counts: [u64; LATENCY_BOUNDS_NS.len() + 1],
    /// The sum of all latencies, in nanoseconds.
    pub sum_ns: u64,
}

/// The counts of one kind of request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests that were served.
    pub served: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Requests at which the device failed.
    pub failed: u64,
    /// The latencies of served requests.
    pub latencies: Latencies,
}

/// The counts of all requests.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    requests: [RequestCounts; Request::COUNT],
    /// The device's last error.
    pub last_error: Option<String>,
}

impl Counts {
    /// The counts of this kind of request.
    pub fn of(&self, request: Request) -> &RequestCounts {
        &self.requests[request as usize]
    }

    /// Requests of all kinds that were served.
    pub fn served_in_all(&self) -> u64 {
        self.requests.iter().map(|counts| counts.served).sum()
    }

    /// Requests of all kinds at which the device failed.
    pub fn failed_in_all(&self) -> u64 {
        self.requests.iter().map(|counts| counts.failed).sum()
    }

    pub(super) fn served(&mut self, request: Request, bytes: u64, latency_ns: u64) {
        let counts = &mut self.requests[request as usize];
        counts.served += 1;
        counts.bytes += bytes;
        let bucket = LATENCY_BOUNDS_NS.partition_point(|bound| *bound < latency_ns);
        counts.latencies.counts[bucket] += 1;
        counts.latencies.sum_ns = counts.latencies.sum_ns.saturating_add(latency_ns);
    }

    pub(super) fn failed(&mut self, request: Request, error: &DeviceError) {
        self.requests[request as usize].failed += 1;
        self.last_error = Some(error.to_string());
    }
}
