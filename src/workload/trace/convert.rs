//! Converts any trace to CSV or Parquet with named columns.

use super::summary::{TraceSummary, summarise};
use super::writer::{OutputFormat, TraceWriter};
use super::{TraceOptions, TraceReader};
use crate::workload::WorkloadError;
use std::path::Path;

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertSummary {
    /// The summary of the input.
    pub input: TraceSummary,
    /// The size of the output in bytes.
    pub output_bytes: u64,
}

/// Reads the trace at `input` and writes its operations to `output`, which is replaced.
///
/// Times, devices and order are a [`TraceReader`]'s; reading the output gives the same operations, except that a device
/// chosen by the options becomes number 0. The output is written to a temporary file beside `output` and renamed when
/// complete. Fails as [`scan`](super::scan) does, and if the output cannot be written.
pub fn convert(
    input: &Path,
    options: &TraceOptions,
    output: &Path,
    format: OutputFormat,
) -> Result<ConvertSummary, WorkloadError> {
    let reader = TraceReader::open(input, options)?;
    let mut writer = TraceWriter::create(output, format)?;
    let name = options.name_of(input);
    let input = summarise(reader, &name, |batch| writer.write(batch))?;
    let output_bytes = writer.finish()?;
    Ok(ConvertSummary { input, output_bytes })
}
