//! A counting pass over a trace.

use super::{Compression, Format, Rejected, TraceOptions, TraceReader};
use crate::units::human_duration;
use crate::workload::{Action, Operation, WorkloadError};
use std::path::Path;

/// Operations in a batch.
const BATCH: usize = 4096;

/// The operations of a trace on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSummary {
    /// The number of operations.
    pub operations: u64,
    /// The end of the last byte addressed: the least size of the device.
    pub span_bytes: u64,
    /// The end of the last byte written.
    pub written_span_bytes: u64,
}

/// The content of a trace, under the options of the scan.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    /// The file.
    pub file: String,
    /// The format, recognised or given.
    pub format: &'static Format,
    /// The compression of the file.
    pub compression: Compression,
    /// The number of operations selected by the options.
    pub operations: u64,
    /// The number of rejected lines or records.
    pub rejected: u64,
    /// The first rejected ones.
    pub first_rejected: Vec<Rejected>,
    /// The number of valid lines or records without an operation.
    pub without_operation: u64,
    /// The number of reads.
    pub reads: u64,
    /// The number of writes.
    pub writes: u64,
    /// The number of discards.
    pub discards: u64,
    /// The number of flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// By device; empty for devices that the options exclude.
    pub devices: Vec<DeviceSummary>,
    /// The time of the first operation, in nanoseconds since the first record.
    pub first_time_ns: u64,
    /// The time of the last operation, in nanoseconds since the first record.
    pub last_time_ns: u64,
    /// The number of operations with a time before that of an earlier one; they got the later time.
    pub backward_times: u64,
    /// The reader's notes.
    pub notes: Vec<String>,
}

impl TraceSummary {
    /// The sum of the devices' spans, in bytes; saturating.
    pub fn span_bytes(&self) -> u64 {
        self.devices.iter().fold(0, |sum, device| sum.saturating_add(device.span_bytes))
    }

    /// The sum of the spans of the devices' writes, in bytes; saturating.
    pub fn written_span_bytes(&self) -> u64 {
        self.devices.iter().fold(0, |sum, device| sum.saturating_add(device.written_span_bytes))
    }

    /// Warnings: rejections, times that go back, a trace without writes.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.notes.iter().map(|note| format!("{}: {note}", self.file)).collect();
        if self.rejected > 0 {
            let first: Vec<String> = self.first_rejected.iter().map(Rejected::to_string).collect();
            let more = if self.rejected > first.len() as u64 { "; ..." } else { "" };
            let first = first.join("; ");
            warnings.push(format!("{}: {} lines or records rejected: {first}{more}", self.file, self.rejected));
        }
        if self.backward_times > 0 {
            warnings.push(format!(
                "{}: {} operations have a time before that of an earlier one, and got the later time",
                self.file, self.backward_times
            ));
        }
        if self.writes == 0 {
            warnings.push(format!("{}: the trace has no writes", self.file));
        }
        warnings
    }

    /// A one-line description.
    pub fn describe(&self) -> String {
        format!(
            "{} ({}, compression {}): {} reads, {} writes, {} discards, {} flushes; devices {}; duration {}",
            self.file,
            self.format,
            self.compression,
            self.reads,
            self.writes,
            self.discards,
            self.flushes,
            self.devices.iter().filter(|device| device.operations > 0).count(),
            human_duration((self.last_time_ns - self.first_time_ns) as f64),
        )
    }

    /// The summary before the first operation of a reader.
    pub(super) fn of_nothing(reader: &TraceReader, file: &str) -> TraceSummary {
        TraceSummary {
            file: file.to_string(),
            format: reader.format(),
            compression: reader.compression(),
            operations: 0,
            rejected: 0,
            first_rejected: Vec::new(),
            without_operation: 0,
            reads: 0,
            writes: 0,
            discards: 0,
            flushes: 0,
            read_bytes: 0,
            written_bytes: 0,
            discarded_bytes: 0,
            devices: Vec::new(),
            first_time_ns: 0,
            last_time_ns: 0,
            backward_times: 0,
            notes: Vec::new(),
        }
    }

    /// Takes what the reader knows of the whole trace at its end.
    pub(super) fn end(&mut self, reader: &TraceReader) {
        self.rejected = reader.rejected();
        self.first_rejected = reader.first_rejected().to_vec();
        self.without_operation = reader.without_operation();
        self.backward_times = reader.backward_times();
        self.notes = reader.notes();
    }

    /// Counts the next operation.
    pub(super) fn add(&mut self, operation: &Operation) {
        if self.operations == 0 {
            self.first_time_ns = operation.time_ns;
        }
        self.operations += 1;
        self.last_time_ns = operation.time_ns;
        let number = operation.device as usize;
        if number >= self.devices.len() {
            self.devices.resize(number + 1, DeviceSummary::default());
        }
        let device = &mut self.devices[number];
        device.operations += 1;
        device.span_bytes = device.span_bytes.max(operation.end_bytes());
        let (count, bytes) = match operation.action {
            Action::Read => (&mut self.reads, &mut self.read_bytes),
            Action::Write => {
                device.written_span_bytes = device.written_span_bytes.max(operation.end_bytes());
                (&mut self.writes, &mut self.written_bytes)
            }
            Action::Discard => (&mut self.discards, &mut self.discarded_bytes),
            Action::Flush => {
                self.flushes += 1;
                return;
            }
        };
        *count += 1;
        *bytes = bytes.saturating_add(operation.length_bytes);
    }
}

/// Counts a whole trace. Errors: those of [`TraceReader`], such as a trace without operations.
pub fn scan(path: &Path, options: &TraceOptions) -> Result<TraceSummary, WorkloadError> {
    summarise(TraceReader::open(path, options)?, &options.name_of(path), |_| Ok(()))
}

/// Counts the operations of `reader` and passes every batch to `see`.
pub(super) fn summarise(
    mut reader: TraceReader,
    file: &str,
    mut see: impl FnMut(&[Operation]) -> Result<(), WorkloadError>,
) -> Result<TraceSummary, WorkloadError> {
    let mut summary = TraceSummary::of_nothing(&reader, file);
    let mut batch = Vec::with_capacity(BATCH);
    while reader.read_batch(&mut batch, BATCH)? > 0 {
        batch.iter().for_each(|operation| summary.add(operation));
        see(&batch)?;
        batch.clear();
    }
    summary.end(&reader);
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::reader_of;
    use super::*;

    fn summary_of(bytes: &[u8]) -> TraceSummary {
        summarise(reader_of(bytes, TraceOptions::default()), "sample", |_| Ok(())).unwrap()
    }

    #[test]
    fn a_summary_counts_by_action_and_device() {
        let summary = summary_of(samples::CAPTURED);
        assert_eq!((summary.reads, summary.writes, summary.discards, summary.flushes), (1, 3, 1, 2));
        assert_eq!((summary.read_bytes, summary.written_bytes, summary.discarded_bytes), (4096, 24_576, 8192));
        assert_eq!(summary.operations, 7);
        assert_eq!((summary.without_operation, summary.rejected), (1, 0));
        assert_eq!((summary.first_time_ns, summary.last_time_ns), (0, 960_000));
        assert_eq!(summary.devices.len(), 1);
        assert_eq!(summary.span_bytes(), 4_456_448 * 512 + 16_384);
        assert_eq!(summary.warnings(), [] as [String; 0]);
    }

    #[test]
    fn each_device_has_its_own_span() {
        let spans: Vec<u64> = summary_of(samples::SPC).devices.iter().map(|device| device.written_span_bytes).collect();
        assert_eq!(spans, [303_567 * 512 + 3584, 0]);
    }

    #[test]
    fn warnings_name_rejections_backward_times_and_missing_writes() {
        let summary = summary_of(b"5,R,8,8,a\n3,R,8,8,a\nnonsense\n9,R,8,0,a\n9,R,8,8,a");
        let warnings = summary.warnings();
        assert!(
            warnings.iter().any(|warning| warning.contains("line 3: the time is not") && warning.contains("line 4"))
        );
        assert!(warnings.iter().any(|warning| warning.contains("1 operations have a time before")));
        assert!(warnings.iter().any(|warning| warning.contains("has no writes")));
        assert_eq!((summary.operations, summary.rejected), (3, 2));
    }
}
