//! A trace that was decoded once, in records of one size: several replays share it.
//!
//! ```text
//!     bytes of a record   0        8         16        24        28      29       30      31    32
//!                         | time   | offset  | length  | device  | action| content| stream| 0   |
//! ```

use super::summary::{TraceSummary, summarise};
use super::{TraceOptions, TraceReader, unusable};
use crate::label::Content;
use crate::workload::{Action, Operation, WorkloadError};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a record.
const RECORD: usize = 32;

/// Operations in a batch.
const BATCH: usize = 4096;

/// The actions by their number in a record.
const ACTIONS: [Action; 4] = [Action::Read, Action::Write, Action::Discard, Action::Flush];

/// Records of a chunk: those of one device lie together, and chunks of several devices in one file.
const CHUNK: usize = 512;

/// The most devices of a trace that are decoded in one pass: each has a chunk in memory.
pub const MOST_DECODED: usize = 1 << 16;

/// A decoded trace. Its records are in a file, so that a trace of any length fits; the system keeps what is read often in
/// memory.
#[derive(Debug)]
pub struct DecodedTrace {
    summary: TraceSummary,
    options: TraceOptions,
    name: String,
    records: Arc<File>,
    /// The places of its chunks in the file; `None` if the file has its records alone.
    chunks: Option<Vec<u64>>,
}

/// A device of a trace that is being decoded.
struct Device {
    summary: TraceSummary,
    chunks: Vec<u64>,
    /// The records that are not in the file yet.
    bytes: Vec<u8>,
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
        Ok(DecodedTrace { summary, options, name: name_of(path), records: Arc::new(records), chunks: None })
    }

    /// Decodes each device of the trace at `path` in one pass into `records`, an empty file that nobody else writes: what
    /// [`decode`](Self::decode) gives for each of them, in the order of their numbers. Devices without an operation are `None`.
    ///
    /// Errors: those of `decode`; the trace has more than [`MOST_DECODED`] devices.
    pub fn decode_devices(
        path: &Path,
        options: &TraceOptions,
        records: File,
    ) -> Result<Vec<Option<DecodedTrace>>, WorkloadError> {
        let file = options.name_of(path);
        let unwritable = |source| WorkloadError::Read { file: format!("{file}, into a temporary file"), source };
        let mut reader = TraceReader::open(path, options)?;
        let (mut devices, mut end, mut batch): (Vec<Device>, u64, _) = (Vec::new(), 0, Vec::with_capacity(BATCH));
        while reader.read_batch(&mut batch, BATCH)? > 0 {
            for operation in &batch {
                let number = operation.device as usize;
                if number >= MOST_DECODED {
                    let why = format!("the trace has more than {MOST_DECODED} devices, which are not decoded at once");
                    return Err(unusable(&file, why));
                }
                while devices.len() <= number {
                    let summary = TraceSummary::of_nothing(&reader, &file);
                    devices.push(Device { summary, chunks: Vec::new(), bytes: Vec::new() });
                }
                let device = &mut devices[number];
                device.summary.add(operation);
                device.bytes.extend(record_of(operation));
                if device.bytes.len() == CHUNK * RECORD {
                    end = device.store(&records, end).map_err(unwritable)?;
                }
            }
            batch.clear();
        }
        for device in &mut devices {
            device.summary.end(&reader);
            end = device.store(&records, end).map_err(unwritable)?;
        }
        let records = Arc::new(records);
        let decoded = devices.into_iter().enumerate().map(|(number, device)| {
            let options = TraceOptions { device: Some(number as u32), ..options.clone() };
            let Device { summary, chunks, .. } = device;
            let (name, records) = (name_of(path), Arc::clone(&records));
            (summary.operations > 0).then_some(DecodedTrace { summary, options, name, records, chunks: Some(chunks) })
        });
        Ok(decoded.collect())
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
        let mut count = (self.summary.operations.saturating_sub(first)).min(limit as u64) as usize;
        let mut at = first * RECORD as u64;
        if let Some(chunks) = self.chunks.as_ref().filter(|_| count > 0) {
            let (chunk, within) = (first as usize / CHUNK, first as usize % CHUNK);
            count = count.min(CHUNK - within);
            at = chunks[chunk] + (within * RECORD) as u64;
        }
        let mut bytes = vec![0; count * RECORD];
        let failed = |source| WorkloadError::Read { file: format!("{}, decoded", self.summary.file), source };
        self.records.read_exact_at(&mut bytes, at).map_err(failed)?;
        for record in bytes.chunks_exact(RECORD) {
            let operation = operation_of(record).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
            batch.push(operation);
        }
        Ok(count)
    }
}

impl Device {
    /// Appends its records to the file, of `end` bytes; returns its new length.
    fn store(&mut self, records: &File, end: u64) -> io::Result<u64> {
        if self.bytes.is_empty() {
            return Ok(end);
        }
        records.write_all_at(&self.bytes, end)?;
        self.chunks.push(end);
        let length = self.bytes.len() as u64;
        // Most devices have few operations, and the next chunk may be far away.
        self.bytes = Vec::new();
        Ok(end + length)
    }
}

/// The name of a file without its folders.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
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

    /// Operations of three devices, of which one has several chunks.
    #[test]
    fn devices_that_are_decoded_at_once_are_those_that_are_decoded_alone() {
        let mut text = String::from("time_ns,device,action,offset_bytes,length_bytes,content,stream\n");
        for number in 0..4000u64 {
            let device = if number % 100 == 7 { 2 } else { number % 2 };
            let action = if number % 3 == 0 { "read" } else { "write" };
            text += &format!("{},{device},{action},{},4096,data,0\n", number * 1000, number % 333 * 4096);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let options = TraceOptions::default();
        let at_once = DecodedTrace::decode_devices(file.path(), &options, tempfile::tempfile().unwrap()).unwrap();
        assert_eq!(at_once.len(), 3);
        for (number, decoded) in at_once.into_iter().enumerate() {
            let options = TraceOptions { device: Some(number as u32), ..TraceOptions::default() };
            let alone = DecodedTrace::decode(file.path(), options, tempfile::tempfile().unwrap()).unwrap();
            let decoded = decoded.expect("each has operations");
            assert_eq!(decoded.summary(), alone.summary());
            let replay = |decoded: DecodedTrace| {
                all(&mut TraceWorkload::decoded(&Arc::new(decoded), Addresses::Refuse, 2, 1 << 30).unwrap())
            };
            assert_eq!(replay(decoded), replay(alone));
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
