//! A trace that was decoded once, in records of one size: several replays share it.
//!
//! ```text
//!     bytes of a record   0        8         16        24        28      29       30      31    32
//!                         | time   | offset  | length  | device  | action| content| stream| 0   |
//! ```

use super::summary::{TraceSummary, summarise};
use super::{TraceOptions, TraceReader};
use crate::label::Content;
use crate::workload::{Action, Operation, WorkloadError};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a record.
const RECORD: usize = 32;

/// The actions by their number in a record.
const ACTIONS: [Action; 4] = [Action::Read, Action::Write, Action::Discard, Action::Flush];

/// A decoded trace. Its records are in a file, so that a trace of any length fits; the system keeps what is read often in
/// memory.
#[derive(Debug)]
pub struct DecodedTrace {
    summary: TraceSummary,
    options: TraceOptions,
    name: String,
    records: File,
}

impl DecodedTrace {
    /// Decodes the trace at `path` with these options for reading into `records`, an empty file that nobody else writes.
    ///
    /// Errors: those of [`scan`](super::scan); `records` cannot be written.
    pub fn decode(path: &Path, options: TraceOptions, records: File) -> Result<DecodedTrace, WorkloadError> {
        let file = options.name_of(path);
        let unwritable = |source| WorkloadError::Read { file: format!("{file}, into a temporary file"), source };
        let mut bytes = Vec::new();
        let summary = summarise(TraceReader::open(path, &options)?, &file, |batch| {
            bytes.clear();
            batch.iter().for_each(|operation| bytes.extend(record_of(operation)));
            (&records).write_all(&bytes).map_err(unwritable)
        })?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(DecodedTrace { summary, options, name, records })
    }

    /// The result of the pass over the trace.
    pub fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    /// The options with which it was read.
    pub(super) fn options(&self) -> &TraceOptions {
        &self.options
    }

    /// The name of its file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Appends at most `limit` operations from number `first` on; returns their number, 0 at the end.
    pub(super) fn read(&self, first: u64, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let count = (self.summary.operations.saturating_sub(first)).min(limit as u64) as usize;
        let mut bytes = vec![0; count * RECORD];
        let failed = |source| WorkloadError::Read { file: format!("{}, decoded", self.summary.file), source };
        self.records.read_exact_at(&mut bytes, first * RECORD as u64).map_err(failed)?;
        for record in bytes.chunks_exact(RECORD) {
            let operation = operation_of(record).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
            batch.push(operation);
        }
        Ok(count)
    }
}

fn record_of(operation: &Operation) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&operation.time_ns.to_le_bytes());
    record[8..16].copy_from_slice(&operation.offset_bytes.to_le_bytes());
    record[16..24].copy_from_slice(&operation.length_bytes.to_le_bytes());
    record[24..28].copy_from_slice(&operation.device.to_le_bytes());
    let action = ACTIONS.iter().position(|action| *action == operation.action).expect("all actions are in the table");
    record[28..31].copy_from_slice(&[action as u8, operation.content as u8, operation.stream]);
    record
}

/// The operation of a record; `None` if it is not one that [`record_of`] writes.
fn operation_of(record: &[u8]) -> Option<Operation> {
    let number = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
    Some(Operation {
        time_ns: number(0)?,
        offset_bytes: number(8)?,
        length_bytes: number(16)?,
        device: u32::from_le_bytes(record.get(24..28)?.try_into().ok()?),
        action: *ACTIONS.get(usize::from(record[28]))?,
        content: *Content::ALL.get(usize::from(record[29]))?,
        stream: record[30],
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Addresses, TraceWorkload, samples};
    use super::*;
    use crate::workload::Workload;
    use std::sync::Arc;

    fn all(workload: &mut TraceWorkload) -> Vec<Operation> {
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch, 3).unwrap() > 0 {}
        batch
    }

    #[test]
    fn a_decoded_trace_replays_as_its_file_does() {
        for (sample, device_bytes, addresses) in [
            (samples::CAPTURED, 1 << 40, Addresses::Refuse),
            (samples::CAPTURED, 1 << 20, Addresses::Wrap),
            (samples::SPC, 1 << 20, Addresses::Scale),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), sample).unwrap();
            let options = TraceOptions { addresses, repeat: 2, ..TraceOptions::default() };
            let records = tempfile::tempfile().unwrap();
            let decoded = Arc::new(DecodedTrace::decode(file.path(), TraceOptions::default(), records).unwrap());
            let mut from_file = TraceWorkload::open(file.path(), options, device_bytes).unwrap();
            let mut shared = TraceWorkload::decoded(&decoded, addresses, 2, device_bytes).unwrap();
            assert_eq!(all(&mut shared), all(&mut from_file));
            assert_eq!((shared.name(), shared.warnings()), (from_file.name(), from_file.warnings()));
            assert_eq!(shared.progress(), Some(1.0));
        }
    }

    #[test]
    fn a_record_that_is_none_is_refused() {
        let mut record = record_of(&Operation {
            time_ns: 1,
            offset_bytes: 2,
            length_bytes: u64::MAX,
            action: Action::Discard,
            content: Content::Journal,
            stream: 9,
            device: 7,
        });
        assert_eq!(record_of(&operation_of(&record).unwrap()), record);
        record[28] = 4;
        assert!(operation_of(&record).is_none());
    }
}
