//! Traces: what real programs asked of real devices, as streams of operations.
//!
//! | file | what it is |
//! |---|---|
//! | `open` | decompression, lines, records |
//! | `recognise` | which format a file is of, by its content |
//! | `reader` | one trace, read once; [`TraceReader`] |
//! | `records`, `parsers` | the seam of the formats, and which parser each text format has |
//! | `intake` | what all formats share: times, devices, rejections |
//! | `captured`, `comma_separated`, `columns`, `blkparse`, `iolog`, `strace` | the text formats |
//! | `vscsi`, `blktrace`, `columnar` | the binary formats |
//! | `summary` | one pass that counts: [`scan`] |
//! | `placement`, `replay` | a trace on a device of another size: [`TraceWorkload`] |
//! | `writer` | operations as a trace in one of our two formats: [`TraceWriter`] |
//! | `convert` | any trace as one of these: [`convert()`] |
//!
//! Every number of a trace is checked where it is read, so that an [`Operation`](crate::workload::Operation) has bytes
//! (but for a flush), and an end that fits 64 bits. A line that fails is counted and kept as an example; a trace without
//! one good line is an error. `docs/traces.md` describes each format.

mod blkparse;
mod blktrace;
mod captured;
mod columnar;
mod columnar_writer;
mod columns;
mod comma_separated;
mod convert;
mod fields;
mod format;
mod intake;
mod iolog;
mod lines;
mod numbering;
mod open;
mod parsers;
mod placement;
mod reader;
mod recognise;
mod records;
mod rejected;
mod replay;
mod rwbs;
mod strace;
mod strace_call;
mod summary;
mod vscsi;
mod writer;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod testing;

pub use convert::{ConvertSummary, convert};
pub use format::{Format, Stage};
pub use open::Compression;
pub use placement::Addresses;
pub use reader::TraceReader;
pub use rejected::{KEPT_REJECTIONS, Place, Rejected};
pub use replay::TraceWorkload;
pub use rwbs::Letters;
pub use summary::{DeviceSummary, TraceSummary, scan};
pub use writer::{OutputFormat, TraceWriter};

use super::WorkloadError;

/// How a trace is read and replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// The format, if it is not to be recognised.
    pub format: Option<Format>,
    /// Only the operations of this device, counted from 0 in the order in which the trace's devices appear.
    pub device: Option<u32>,
    /// Which of blktrace's stages of a request is taken; [`Stage::Queue`] if none is named. An error for other formats.
    pub stage: Option<Stage>,
    /// What happens to addresses beyond the end of the device.
    pub addresses: Addresses,
    /// Only the first so many operations.
    pub limit: Option<u64>,
    /// How many times the trace is replayed; at least 1.
    pub repeat: u64,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            format: None,
            device: None,
            stage: None,
            addresses: Addresses::default(),
            limit: None,
            repeat: 1,
        }
    }
}

fn unusable(file: &str, reason: String) -> WorkloadError {
    WorkloadError::Unusable { file: file.to_string(), reason }
}
