//! A trace as a workload: scanned once, then read for each replay.

use super::decoded::DecodedTrace;
use super::placement::{Addresses, Placement};
use super::summary::{TraceSummary, scan};
use super::{TraceOptions, TraceReader, unusable};
use crate::workload::{Operation, Workload, WorkloadError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The batch size for operations that are mapped one by one.
const BATCH: usize = 1024;

/// One pass over the operations of a trace.
enum Pass {
    /// Over its file.
    File(TraceReader),
    /// Over its records, from this one on.
    Decoded(Arc<DecodedTrace>, u64),
}

impl Pass {
    fn read_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        match self {
            Pass::File(reader) => reader.read_batch(batch, limit),
            Pass::Decoded(trace, next) => {
                let count = trace.read(*next, batch, limit)?;
                *next += count as u64;
                Ok(count)
            }
        }
    }
}

/// A trace replayed on a device.
///
/// Each repetition begins at the end time of the previous one.
pub struct TraceWorkload {
    name: String,
    path: PathBuf,
    options: TraceOptions,
    summary: TraceSummary,
    placement: Placement,
    decoded: Option<Arc<DecodedTrace>>,
    reader: Option<Pass>,
    repetition: u64,
    read_in_repetition: u64,
    scratch: Vec<Operation>,
    next_in_scratch: usize,
    held: Option<Operation>,
}

impl TraceWorkload {
    /// Scans the trace and maps it to a device of `device_bytes`.
    ///
    /// Errors: those of [`scan`]; the trace spans more than the device and the options refuse that; the path is not a
    /// regular file, since a trace is read at least twice.
    pub fn open(path: &Path, options: TraceOptions, device_bytes: u64) -> Result<TraceWorkload, WorkloadError> {
        let file = options.name_of(path);
        let metadata = std::fs::metadata(path).map_err(|source| WorkloadError::Read { file: file.clone(), source })?;
        if !metadata.is_file() {
            return Err(unusable(
                &file,
                "not a regular file, and a trace is read twice: send it to standard input, and name it -".to_string(),
            ));
        }
        if options.repeat == 0 || options.limit == Some(0) {
            return Err(unusable(&file, "0 replays, or a limit of 0 operations, request nothing".to_string()));
        }
        let summary = scan(path, &options)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        TraceWorkload::new(name, path.to_path_buf(), options, summary, device_bytes)
    }

    /// Maps a decoded trace to a device of `device_bytes`, for `repeat` replays (at least 1).
    ///
    /// Fails if the trace spans more than the device and `addresses` refuses that.
    pub fn decoded(
        trace: &Arc<DecodedTrace>,
        addresses: Addresses,
        repeat: u64,
        device_bytes: u64,
    ) -> Result<TraceWorkload, WorkloadError> {
        let options = TraceOptions { addresses, repeat, ..trace.options().clone() };
        let (name, summary) = (trace.name().to_string(), trace.summary().clone());
        let workload = TraceWorkload::new(name, PathBuf::new(), options, summary, device_bytes)?;
        Ok(TraceWorkload { decoded: Some(Arc::clone(trace)), ..workload })
    }

    fn new(
        name: String,
        path: PathBuf,
        options: TraceOptions,
        summary: TraceSummary,
        device_bytes: u64,
    ) -> Result<TraceWorkload, WorkloadError> {
        let placement = Placement::new(&summary, device_bytes, options.addresses)?;
        Ok(TraceWorkload {
            name,
            path,
            options,
            summary,
            placement,
            decoded: None,
            reader: None,
            repetition: 0,
            read_in_repetition: 0,
            scratch: Vec::new(),
            next_in_scratch: 0,
            held: None,
        })
    }

    /// The result of the scan.
    pub fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    /// Appends operations with the trace's addresses and the replay's times; 0 after the last repetition.
    fn read(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        while self.repetition < self.options.repeat {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(match &self.decoded {
                    Some(trace) => Pass::Decoded(Arc::clone(trace), 0),
                    None => Pass::File(TraceReader::open(&self.path, &self.options)?),
                }),
            };
            let before = batch.len();
            let count = reader.read_batch(batch, limit)?;
            if count > 0 {
                let later_ns = self.summary.last_time_ns.saturating_mul(self.repetition);
                for operation in &mut batch[before..] {
                    operation.time_ns = operation.time_ns.saturating_add(later_ns);
                }
                self.read_in_repetition += count as u64;
                return Ok(count);
            }
            if self.read_in_repetition != self.summary.operations {
                return Err(self.changed());
            }
            self.reader = None;
            self.repetition += 1;
            self.read_in_repetition = 0;
        }
        Ok(0)
    }

    fn changed(&self) -> WorkloadError {
        unusable(&self.summary.file, "the file has changed since it was scanned".to_string())
    }

    /// Maps the operations of a batch in place.
    fn read_direct(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let before = batch.len();
        let count = self.read(batch, limit)?;
        for operation in &mut batch[before..] {
            (*operation, _) = self.placement.place(*operation).ok_or_else(|| self.changed())?;
        }
        Ok(count)
    }

    /// Maps operations one by one, since one may become two.
    fn read_mapped(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let before = batch.len();
        while batch.len() - before < limit {
            if let Some(rest) = self.held.take() {
                batch.push(rest);
                continue;
            }
            if self.next_in_scratch == self.scratch.len() && !self.refill()? {
                break;
            }
            let operation = self.scratch[self.next_in_scratch];
            self.next_in_scratch += 1;
            let (placed, rest) = self.placement.place(operation).ok_or_else(|| self.changed())?;
            batch.push(placed);
            self.held = rest;
        }
        Ok(batch.len() - before)
    }

    fn refill(&mut self) -> Result<bool, WorkloadError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let count = self.read(&mut scratch, BATCH);
        self.scratch = scratch;
        self.next_in_scratch = 0;
        Ok(count? > 0)
    }
}

impl Workload for TraceWorkload {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        if limit == 0 {
            return Ok(0);
        }
        if self.placement.is_direct() { self.read_direct(batch, limit) } else { self.read_mapped(batch, limit) }
    }

    fn progress(&self) -> Option<f64> {
        let whole = self.summary.operations as f64 * self.options.repeat as f64;
        let done = self.summary.operations as f64 * self.repetition as f64 + self.read_in_repetition as f64;
        Some(done / whole)
    }

    fn rejected(&self) -> u64 {
        self.summary.rejected
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.summary.warnings();
        warnings.extend(self.placement.note().map(|note| format!("{}: {note}", self.summary.file)));
        warnings
    }
}
