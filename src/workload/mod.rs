//! What asks: generators and traces, as streams of [`Operation`]s.
//!
//! A workload knows nothing of paths. It is told how many bytes it may address, and emits operations in batches, so
//! that the engine pays one dynamic call for a thousand operations.

pub mod trace;

use crate::label::Content;

pub mod files;
pub mod fio_job;
pub mod generator;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the bytes.
    Read,
    /// Writes the bytes.
    Write,
    /// Says that the bytes are no longer needed (trim).
    Discard,
    /// Makes what was written durable; it has no bytes.
    Flush,
}

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When it is issued, in nanoseconds since the workload began. Zero in generators, which have no times.
    pub time_ns: u64,
    /// The first byte.
    pub offset_bytes: u64,
    /// The number of bytes; zero only for a flush.
    pub length_bytes: u64,
    /// What it does.
    pub action: Action,
    /// What a write holds, as far as the source tells.
    pub content: Content,
    /// The placement hint of a write (a stream or placement handle); 0 where there is none.
    pub stream: u8,
    /// The device of a trace that has several, counted from 0 in the order in which they appear.
    pub device: u32,
}

impl Operation {
    /// The first byte behind the operation.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }
}

/// A stream of operations.
pub trait Workload: Send {
    /// The name in reports: the expression of a generator, the file's name of a trace.
    fn name(&self) -> &str;

    /// Appends at most `limit` operations to `batch` and says how many; 0 means that the workload has ended.
    ///
    /// Errors name the file, the place in it, and what is wrong there.
    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError>;

    /// The share of the workload that has been emitted, from 0 to 1, if it is known.
    fn progress(&self) -> Option<f64>;

    /// How many requests the source keeps in flight at this point, if it has an opinion: a fio job has one. It may
    /// change between batches, never inside one.
    fn queue_depth(&self) -> Option<u32> {
        None
    }

    /// The placement hint that this workload's writes to `offset_bytes` carry: a fill before the run carries the same.
    fn stream_at(&self, _offset_bytes: u64) -> u8 {
        0
    }

    /// Lines or records that could not be read so far.
    fn rejected(&self) -> u64 {
        0
    }

    /// What a user should know of the input, such as the first lines that were rejected; asked for at the end.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a workload cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file cannot be opened or read, or what is compressed in it is damaged.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The input is understood, and cannot serve. The text says why and what would.
    #[error("{file}: {reason}")]
    Unusable {
        /// The file, or the workload's expression.
        file: String,
        /// Why, and what would do.
        reason: String,
    },
}
