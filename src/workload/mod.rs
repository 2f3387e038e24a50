//! Workloads: generators and traces as streams of [`Operation`]s.
//!
//! A workload knows no path. It gets the size of the device, and emits operations in batches: the engine pays one
//! dynamic call for a thousand operations.

pub mod trace;

use crate::label::Content;

mod cache_counts;
mod draw;
pub mod files;
pub mod fio_job;
pub mod generator;
mod merging;

pub use cache_counts::{CacheCounts, EngineCounts};
pub use merging::Merging;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the bytes.
    Read,
    /// Writes the bytes.
    Write,
    /// Declares the bytes unused (trim).
    Discard,
    /// Makes earlier writes durable. It has no bytes.
    Flush,
}

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Time of issue, in nanoseconds since the workload began. Zero in generators, which have no times.
    pub time_ns: u64,
    /// The first byte.
    pub offset_bytes: u64,
    /// The number of bytes; zero only for a flush.
    pub length_bytes: u64,
    /// The kind.
    pub action: Action,
    /// The content of a write, if the source states it.
    pub content: Content,
    /// The placement hint of a write (a stream or placement handle); 0 for none.
    pub stream: u8,
    /// The device in a trace of several, numbered from 0 in order of appearance; the tenant in a workload of several.
    pub device: u32,
}

impl Operation {
    /// The offset of the first byte after the operation.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }
}

/// The part of the time of the run in a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// None.
    Unheard,
    /// Its requests end at a time, if times are told.
    Heard,
    /// It has no end without times.
    Needed,
}

/// A source of requests with a queue of its own, beside others on one device: a job of fio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The most requests that it has in flight.
    pub queue_depth: u32,
    /// The parts of the device that it uses: the first byte and the length of each.
    pub regions: Vec<(u64, u64)>,
}

/// The answer of a tenant that could issue a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextOf {
    /// This one, not before its time.
    Request(Operation),
    /// None yet: it begins when others are done.
    Waits,
    /// It has ended.
    Ended,
}

/// A stream of operations.
pub trait Workload: Send {
    /// The name in reports: a generator's expression or a trace's file name.
    fn name(&self) -> &str;

    /// Appends at most `limit` operations to `batch` and returns their number; 0 at the end of the workload.
    ///
    /// Errors name the file, the line or offset, and the fault.
    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError>;

    /// The share of the workload emitted so far, from 0 to 1, if known.
    fn progress(&self) -> Option<f64>;

    /// The source's queue depth at this point, if it sets one, as a fio job does. It changes between batches only.
    fn queue_depth(&self) -> Option<u32> {
        None
    }

    /// Its tenants, if it has several queues; [`Operation::device`] is their number. Empty: it has one.
    fn tenants(&self) -> &[Tenant] {
        &[]
    }

    /// The next operation of a tenant whose queue has room; its time is that before which it is not issued, on the clock of
    /// [`Workload::tell_time`]. `is_idle`: no request is in flight. A caller with times asks each tenant; one without takes
    /// batches, in which tenants take turns.
    fn next_of(&mut self, _tenant: usize, _is_idle: bool) -> Result<NextOf, WorkloadError> {
        Ok(NextOf::Ended)
    }

    /// True if its requests follow the time of the run.
    fn clock(&self) -> Clock {
        Clock::Unheard
    }

    /// The time at which the next operation is issued, in nanoseconds of the run. A caller with times tells it before each
    /// operation of a workload that hears it, and takes one operation at a time.
    fn tell_time(&mut self, _elapsed_ns: u64) {}

    /// The placement hint of this workload's writes to `offset_bytes`. A fill before the run carries the same.
    fn stream_at(&self, _offset_bytes: u64) -> u8 {
        0
    }

    /// The number of lines or records rejected so far.
    fn rejected(&self) -> u64 {
        0
    }

    /// The counts of a cache whose drive is asked, from its first request on.
    fn cache(&self) -> Option<CacheCounts> {
        None
    }

    /// Warnings about the input, such as the first rejected lines. Call it after the last batch.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Errors of a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file cannot be opened or read, or its compressed data is damaged.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The input is readable but cannot be used.
    #[error("{file}: {reason}")]
    Unusable {
        /// The file, or the workload's expression.
        file: String,
        /// The reason and the remedy.
        reason: String,
    },
}
