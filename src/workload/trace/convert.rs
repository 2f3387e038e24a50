//! Any trace as one of two formats of ours, which say what their columns are.

use super::summary::{TraceSummary, summarise};
use super::writer::{OutputFormat, TraceWriter};
use super::{TraceOptions, TraceReader};
use crate::workload::WorkloadError;
use std::path::Path;

/// What was converted.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertSummary {
    /// What the input holds.
    pub input: TraceSummary,
    /// The size of the output in bytes.
    pub output_bytes: u64,
}

/// Reads the trace at `input` and writes its operations to `output`, which is replaced.
///
/// Times, devices and order are those that a [`TraceReader`] gives, and reading the output gives the same operations
/// again; only if the options choose one device does its number become 0. The output is written beside its place and
/// renamed when it is complete. Fails as [`scan`](super::scan) does, and if the output cannot be written.
pub fn convert(
    input: &Path,
    options: &TraceOptions,
    output: &Path,
    format: OutputFormat,
) -> Result<ConvertSummary, WorkloadError> {
    let reader = TraceReader::open(input, options)?;
    let mut writer = TraceWriter::create(output, format)?;
    let name = input.display().to_string();
    let input = summarise(reader, &name, |batch| writer.write(batch))?;
    let output_bytes = writer.finish()?;
    Ok(ConvertSummary { input, output_bytes })
}
