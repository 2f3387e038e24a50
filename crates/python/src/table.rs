//! Rows as a table of typed columns, which other libraries read without a copy through Arrow's C stream interface.

use crate::fault;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
};
use arrow_array::{RecordBatchOptions, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use flashpath::expression::nearest;
use flashpath::report::sweep::{self, Figure, FlatCells, Group, SweepRow, Unit, groups};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table with a row for each run, or for each item of a list.
#[pyclass(frozen, module = "flashpath._native")]
pub struct Table {
    rows: Vec<SweepRow>,
    first: Vec<String>,
    batch: RecordBatch,
}

/// A stream of batches in a capsule: a consumer takes it out, and frees it.
pub fn stream<'py>(py: Python<'py>, batches: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}

/// A schema in a capsule.
pub fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(broken)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn broken(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl Table {
    /// The table of these rows. The columns of `first` come first.
    pub fn of(rows: Vec<SweepRow>, first: Vec<String>) -> PyResult<Table> {
        let table = sweep::flat_table(&rows, &first);
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for column in table.columns {
            let (kind, array): (DataType, ArrayRef) = match column.cells {
                FlatCells::Integers(values) => (DataType::Int64, Arc::new(Int64Array::from(values))),
                FlatCells::Numbers(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
                FlatCells::Flags(values) => (DataType::Boolean, Arc::new(BooleanArray::from(values))),
                FlatCells::Texts(values) => (DataType::Utf8, Arc::new(StringArray::from(values))),
            };
            fields.push(Field::new(column.name, kind, true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(table.rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        Ok(Table { rows, first, batch: batch.map_err(broken)? })
    }
}

/// Refuses a name that no run has as a number, unless all runs failed.
fn check_number(column: &str, groups: &[Group]) -> PyResult<()> {
    let numbers = || groups.iter().flat_map(|group| group.means.keys()).map(String::as_str);
    if numbers().next().is_none() || numbers().any(|known| known == column) {
        return Ok(());
    }
    let near = nearest(column, numbers()).map_or(String::new(), |near| format!("did you mean {near}? "));
    let help = format!("{near}means() has all numbers");
    Err(fault::input(format!("no run has the number {column}"), Some(help)))
}

#[pymethods]
impl Table {
    /// The table of JSON objects.
    #[staticmethod]
    fn from_json(text: &str, first: Vec<String>) -> PyResult<Table> {
        let rows =
            serde_json::from_str(text).map_err(|error| fault::input(format!("not a list of rows: {error}"), None))?;
        Table::of(rows, first)
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The columns that come first.
    #[getter]
    fn first(&self) -> Vec<String> {
        self.first.clone()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The rows as JSON.
    fn json(&self) -> String {
        serde_json::to_string(&self.rows).expect("a row holds only text, numbers and lists")
    }

    /// What the runs warn of: the first warning of each kind, and the rows that have one.
    fn warnings(&self) -> Vec<(String, Vec<usize>)> {
        sweep::warned(&self.rows).into_iter().map(|warned| (warned.text, warned.rows)).collect()
    }

    /// The table as comma-separated text.
    fn csv(&self) -> String {
        sweep::csv(&self.rows, &self.first)
    }

    /// The table as the bytes of a Parquet file.
    fn parquet(&self, name: &str) -> PyResult<Vec<u8>> {
        sweep::parquet(&self.rows, &self.first, name).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The means of runs that differ in their seeds alone.
    fn means(&self, columns: Vec<String>) -> PyResult<Table> {
        let mut first = columns.clone();
        first.extend(["runs", "failed", "warned"].map(String::from));
        Table::of(sweep::means(&groups(&self.rows, &columns)), first)
    }

    /// A page with a figure and the means, as HTML. `said` stands above all else; `axes` are the titles of the axes, x and y.
    #[pyo3(signature = (title, columns, units, said, x, y, by, axes))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a page")]
    fn report(
        &self,
        title: &str,
        columns: Vec<String>,
        units: Vec<(String, String)>,
        said: Vec<String>,
        x: Option<&str>,
        y: Option<&str>,
        by: Option<&str>,
        axes: (Option<String>, Option<String>),
    ) -> PyResult<String> {
        if let Some(column) = [x, by].into_iter().flatten().find(|column| !columns.iter().any(|known| known == column))
        {
            return Err(fault::input(
                format!("{column} is not a varied option"),
                Some(format!("there are: {}", columns.join(", "))),
            ));
        }
        if x.is_some() && x == by {
            return Err(fault::input("x= and by= name the same column", Some("leave by= out, or name another".into())));
        }
        let groups = groups(&self.rows, &columns);
        if let Some(y) = y {
            check_number(y, &groups)?;
        }
        let units: sweep::Units =
            units.into_iter().filter_map(|(column, word)| Some((column, Unit::named(&word)?))).collect();
        let figure = Figure::choose(&columns, &groups, [x, y, by]).map(|figure| {
            let [x, y] = [axes.0, axes.1];
            figure.with_units(&units).with_titles(x, y)
        });
        Ok(sweep::page(title, &said, &self.rows, &groups, &figure, &units))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.batch.schema())
    }

    /// The types are those of the table: a consumer that asks for others casts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream(py, Box::new(RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema())))
    }
}
