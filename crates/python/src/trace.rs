//! A trace: its summary, and its requests as a stream of Arrow batches.

use crate::fault;
use crate::plan::reading;
use crate::table;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, StringArray, UInt8Array, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use flashpath::workload::trace::{TraceOptions, TraceReader, scan};
use flashpath::workload::{Action, Operation};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// The requests of a batch.
const BATCH: usize = 1 << 16;

/// A trace, which was read once.
#[pyclass(frozen, module = "flashpath._native")]
pub struct Trace {
    file: PathBuf,
    options: TraceOptions,
    summary: String,
}

fn requests_schema() -> SchemaRef {
    let field = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        field("time_ns", DataType::UInt64),
        field("action", DataType::Utf8),
        field("offset_bytes", DataType::UInt64),
        field("length_bytes", DataType::UInt64),
        field("device", DataType::UInt32),
        field("content", DataType::Utf8),
        field("stream", DataType::UInt8),
    ]))
}

/// Reads a trace in batches.
struct Requests {
    reader: TraceReader,
    schema: SchemaRef,
    operations: Vec<Operation>,
}

impl Requests {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.operations.clear();
        let failed = |error| ArrowError::ExternalError(Box::new(error));
        // A reader may answer fewer than there are.
        while self.operations.len() < BATCH {
            let room = BATCH - self.operations.len();
            if self.reader.read_batch(&mut self.operations, room).map_err(failed)? == 0 {
                break;
            }
        }
        let of = &self.operations;
        if of.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(of.iter().map(|operation| operation.time_ns))),
            Arc::new(StringArray::from_iter_values(of.iter().map(|operation| word(operation.action)))),
            Arc::new(UInt64Array::from_iter_values(of.iter().map(|operation| operation.offset_bytes))),
            Arc::new(UInt64Array::from_iter_values(of.iter().map(|operation| operation.length_bytes))),
            Arc::new(UInt32Array::from_iter_values(of.iter().map(|operation| operation.device))),
            Arc::new(StringArray::from_iter_values(of.iter().map(|operation| operation.content.name()))),
            Arc::new(UInt8Array::from_iter_values(of.iter().map(|operation| operation.stream))),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }
}

impl Iterator for Requests {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl RecordBatchReader for Requests {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Discard => "discard",
        Action::Flush => "flush",
    }
}

#[pymethods]
impl Trace {
    /// Reads the trace once, for its summary.
    #[new]
    #[pyo3(signature = (file, *, format=None, columns=None, stage=None, device=None, limit=None))]
    fn new(
        py: Python<'_>,
        file: PathBuf,
        format: Option<&str>,
        columns: Option<&str>,
        stage: Option<&str>,
        device: Option<u32>,
        limit: Option<u64>,
    ) -> PyResult<Trace> {
        let options = TraceOptions { device, limit, ..reading(format, columns, stage)? };
        let found = py.detach(|| scan(&file, &options)).map_err(fault::workload)?;
        let summary = json!({
            "file": found.file, "format": found.format.name(), "compression": format!("{:?}", found.compression).to_lowercase(),
            "requests": found.operations, "rejected_lines": found.rejected,
            "first_rejected": found.first_rejected.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "reads": found.reads, "writes": found.writes, "discards": found.discards, "flushes": found.flushes,
            "read_bytes": found.read_bytes, "written_bytes": found.written_bytes, "discarded_bytes": found.discarded_bytes,
            "devices": found.devices.len(), "span_bytes": found.span_bytes(),
            "first_time_ns": found.first_time_ns, "last_time_ns": found.last_time_ns, "warnings": found.warnings(),
        });
        Ok(Trace { file, options, summary: summary.to_string() })
    }

    /// The summary, as JSON.
    fn summary(&self) -> &str {
        &self.summary
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        table::schema(py, &requests_schema())
    }

    /// The requests, read from the file as they are taken.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = TraceReader::open(&self.file, &self.options).map_err(fault::workload)?;
        table::stream(
            py,
            Box::new(Requests { reader, schema: requests_schema(), operations: Vec::with_capacity(BATCH) }),
        )
    }
}
