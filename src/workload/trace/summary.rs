//! One pass over a trace that counts what it holds.

use super::{Compression, Format, Rejected, TraceOptions, TraceReader};
use crate::units::human_duration;
use crate::workload::{Action, Operation, WorkloadError};
use std::path::Path;

/// Operations that are read at once.
const BATCH: usize = 4096;

/// What a trace holds on one of its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSummary {
    /// How many operations there are.
    pub operations: u64,
    /// The first byte behind all operations: the size that the device must have had at least.
    pub span_bytes: u64,
    /// The first byte behind all writes.
    pub written_span_bytes: u64,
}

/// What a trace holds, under the options with which it was scanned.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    /// The file.
    pub file: String,
    /// The format that was recognised or named.
    pub format: Format,
    /// What the file is compressed with.
    pub compression: Compression,
    /// Operations, after the filters of the options.
    pub operations: u64,
    /// Lines or records that could not be read.
    pub rejected: u64,
    /// The first of these.
    pub first_rejected: Vec<Rejected>,
    /// Lines or records of the format that hold no operation.
    pub without_operation: u64,
    /// How many operations read.
    pub reads: u64,
    /// How many operations write.
    pub writes: u64,
    /// How many operations discard.
    pub discards: u64,
    /// How many operations flush.
    pub flushes: u64,
    /// Bytes that are read.
    pub read_bytes: u64,
    /// Bytes that are written.
    pub written_bytes: u64,
    /// Bytes that are discarded.
    pub discarded_bytes: u64,
    /// By device. Devices that the options leave out hold nothing.
    pub devices: Vec<DeviceSummary>,
    /// The time of the first operation, in nanoseconds since the first record.
    pub first_time_ns: u64,
    /// The time of the last operation, in nanoseconds since the first record.
    pub last_time_ns: u64,
    /// Operations whose time is before that of an earlier one; they were given the later time.
    pub backward_times: u64,
    /// What the reader has to say of the format.
    pub notes: Vec<String>,
}

impl TraceSummary {
    /// The sum of what the devices span, in bytes; the largest number if it does not fit.
    pub fn span_bytes(&self) -> u64 {
        self.devices.iter().fold(0, |sum, device| sum.saturating_add(device.span_bytes))
    }

    /// The sum of what the writes on the devices span, in bytes; the largest number if it does not fit.
    pub fn written_span_bytes(&self) -> u64 {
        self.devices.iter().fold(0, |sum, device| sum.saturating_add(device.written_span_bytes))
    }

    /// What a user should know: rejections, times that go back, a trace that writes nothing.
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
                "{}: the times of {} operations go back, and were raised to the latest time before them",
                self.file, self.backward_times
            ));
        }
        if self.writes == 0 {
            warnings.push(format!("{}: it writes nothing", self.file));
        }
        warnings
    }

    /// One line for people.
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

    fn add(&mut self, operation: &Operation) {
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

/// Reads a whole trace and counts. Fails as [`TraceReader`] does, above all for a trace that holds no operation.
pub fn scan(path: &Path, options: &TraceOptions) -> Result<TraceSummary, WorkloadError> {
    summarise(TraceReader::open(path, options)?, &path.display().to_string(), |_| Ok(()))
}

/// Counts what `reader` yields, and shows every batch to `see`.
pub(super) fn summarise(
    mut reader: TraceReader,
    file: &str,
    mut see: impl FnMut(&[Operation]) -> Result<(), WorkloadError>,
) -> Result<TraceSummary, WorkloadError> {
    let mut summary = TraceSummary {
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
    };
    let mut batch = Vec::with_capacity(BATCH);
    while reader.read_batch(&mut batch, BATCH)? > 0 {
        if let (0, Some(first)) = (summary.operations, batch.first()) {
            summary.first_time_ns = first.time_ns;
        }
        summary.last_time_ns = batch.last().map_or(summary.last_time_ns, |last| last.time_ns);
        summary.operations += batch.len() as u64;
        for operation in &batch {
            summary.add(operation);
        }
        see(&batch)?;
        batch.clear();
    }
    summary.rejected = reader.rejected();
    summary.first_rejected = reader.first_rejected().to_vec();
    summary.without_operation = reader.without_operation();
    summary.backward_times = reader.backward_times();
    summary.notes = reader.notes();
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
    fn warnings_tell_of_rejections_backward_times_and_missing_writes() {
        let summary = summary_of(b"5,R,8,8,a\n3,R,8,8,a\nnonsense\n9,R,8,0,a\n9,R,8,8,a");
        let warnings = summary.warnings();
        assert!(
            warnings.iter().any(|warning| warning.contains("line 3: the time is not") && warning.contains("line 4"))
        );
        assert!(warnings.iter().any(|warning| warning.contains("the times of 1 operations go back")));
        assert!(warnings.iter().any(|warning| warning.contains("writes nothing")));
        assert_eq!((summary.operations, summary.rejected), (3, 2));
    }
}
