//! Traces of real programs on real devices, as streams of operations.
//!
//! | file | what it is |
//! |---|---|
//! | `open` | decompression, lines, records |
//! | `recognise` | the format of a file, by its content |
//! | `reader` | one pass over a trace: [`TraceReader`] |
//! | `format`, `table` | a format, and the table of formats: [`Format`], [`FORMATS`] |
//! | `records`, `lines` | the interfaces of the formats: records, and a parser of one line |
//! | `intake` | common to all formats: times, devices, rejections |
//! | `captured`, `comma_separated`, `columns`, `blkparse`, `ftrace`, `nvme`, `biosnoop`, `iolog`, `strace`, `thesios`, `tectonic` | the text formats |
//! | `column_option`, `column_lines`, `delimited`, `operation_words` | any text, by the columns that the user describes: [`Columns`] |
//! | `event_line`, `block_line`, `rwbs`, `stage` | what the formats of the kernel's block layer have in common |
//! | `vscsi`, `blktrace`, `lcs`, `log_writes`, `columnar` | the binary formats |
//! | `summary` | a counting pass: [`scan`] |
//! | `placement`, `replay` | a trace on a device of another size: [`TraceWorkload`] |
//! | `decoded` | a trace that several replays share: [`DecodedTrace`] |
//! | `writer` | writes CSV and Parquet: [`TraceWriter`] |
//! | `keys` | traces of a cache's keys, which have no addresses: [`KeyReader`] |
//! | `strace_files` | the calls of strace as a recording of calls to a file system: [`convert_calls`] |
//! | `convert` | converts any trace to these: [`convert()`] |
//!
//! Every number is checked where it is read: an [`Operation`](crate::workload::Operation) other than a flush has bytes
//! and an end that fits 64 bits. Rejected lines are counted, and the first are kept; a trace without a valid line is an
//! error. `docs/traces.md` describes each format.

mod biosnoop;
mod blkparse;
mod blktrace;
mod block_line;
mod captured;
mod column_lines;
mod column_option;
mod columnar;
mod columnar_writer;
mod columns;
mod comma_separated;
mod convert;
mod decoded;
mod delimited;
mod event_line;
mod fields;
mod format;
mod ftrace;
mod intake;
mod iolog;
mod keys;
mod lcs;
mod lines;
mod log_writes;
mod numbering;
mod nvme;
mod open;
mod operation_words;
mod placement;
mod reader;
mod recognise;
mod records;
mod rejected;
mod replay;
mod rwbs;
mod stage;
mod strace;
mod strace_call;
mod strace_files;
mod summary;
mod table;
mod tectonic;
mod thesios;
mod vscsi;
mod writer;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod testing;

pub use column_option::Columns;
pub use convert::{ConvertSummary, convert};
pub use decoded::{DecodedTrace, MOST_DECODED};
pub use fields::{Extent, Reason};
pub use format::Format;
pub use intake::Request;
pub(crate) use keys::mixed;
pub use keys::{KeyAction, KeyReader, KeyRequest};
pub use lines::LineParser;
pub use open::Compression;
pub use placement::Addresses;
pub use reader::TraceReader;
pub use rejected::{KEPT_REJECTIONS, Place, Rejected};
pub use replay::TraceWorkload;
pub use rwbs::Letters;
pub use stage::Stage;
pub use strace_files::{RecordingSummary, convert_calls};
pub use summary::{DeviceSummary, TraceSummary, scan};
pub use table::FORMATS;
pub use writer::{OutputFormat, TraceWriter};

use super::WorkloadError;
use std::path::Path;

/// The options for reading and replaying a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// The table of known formats.
    pub formats: &'static [Format],
    /// The format; `None` to recognise it.
    pub format: Option<&'static Format>,
    /// Read only this device, numbered from 0 in order of appearance.
    pub device: Option<u32>,
    /// The columns of a text; `None` for a known format. An error with the name of another format than `columns`.
    pub columns: Option<Columns>,
    /// The stage of requests to read; by default the first that the trace has for all requests. An error for formats without
    /// stages.
    pub stage: Option<Stage>,
    /// The name of the file in messages; `None` for its path.
    pub name: Option<String>,
    /// The treatment of addresses beyond the end of the device.
    pub addresses: Addresses,
    /// Read only this many operations.
    pub limit: Option<u64>,
    /// The number of replays; at least 1.
    pub repeat: u64,
}

impl TraceOptions {
    /// The name of the file at `path` in messages.
    fn name_of(&self, path: &Path) -> String {
        self.name.clone().unwrap_or_else(|| path.display().to_string())
    }
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            formats: FORMATS,
            format: None,
            columns: None,
            device: None,
            stage: None,
            name: None,
            addresses: Addresses::default(),
            limit: None,
            repeat: 1,
        }
    }
}

fn unusable(file: &str, reason: String) -> WorkloadError {
    WorkloadError::Unusable { file: file.to_string(), reason }
}
