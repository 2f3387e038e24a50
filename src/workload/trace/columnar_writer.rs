//! Writes operations as Parquet: the columns of `convert`, each with a value in every row.

use super::captured::action_name;
use crate::workload::Operation;
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

const SCHEMA: &str = "message operations {
    REQUIRED INT64 time_ns (INTEGER(64,false));
    REQUIRED INT32 device (INTEGER(32,false));
    REQUIRED BYTE_ARRAY action (UTF8);
    REQUIRED INT64 offset_bytes (INTEGER(64,false));
    REQUIRED INT64 length_bytes (INTEGER(64,false));
    REQUIRED BYTE_ARRAY content (UTF8);
    REQUIRED INT32 stream (INTEGER(8,false));
}";
/// Rows of a group: enough for effective dictionaries and deltas, few enough for memory.
const GROUP_ROWS: usize = 256 << 10;

/// Writes a Parquet file.
pub(super) struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<Operation>,
}

impl<W: Write + Send> ParquetWriter<W> {
    pub fn new(output: W) -> Result<ParquetWriter<W>, ParquetError> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        Ok(ParquetWriter { file: SerializedFileWriter::new(output, schema, properties)?, rows: Vec::new() })
    }

    /// Adds rows; writes a group when it is full.
    pub fn write(&mut self, operations: &[Operation]) -> Result<(), ParquetError> {
        self.rows.extend_from_slice(operations);
        if self.rows.len() >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Writes the remaining rows and the index.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.into_inner()
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let rows = &self.rows;
        let mut group = self.file.next_row_group()?;
        write_column::<Int64Type, W>(&mut group, rows, |row| row.time_ns as i64)?;
        write_column::<Int32Type, W>(&mut group, rows, |row| row.device as i32)?;
        write_column::<ByteArrayType, W>(&mut group, rows, |row| word(action_name(row.action)))?;
        write_column::<Int64Type, W>(&mut group, rows, |row| row.offset_bytes as i64)?;
        write_column::<Int64Type, W>(&mut group, rows, |row| row.length_bytes as i64)?;
        write_column::<ByteArrayType, W>(&mut group, rows, |row| word(row.content.name()))?;
        write_column::<Int32Type, W>(&mut group, rows, |row| i32::from(row.stream))?;
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

fn word(name: &'static str) -> ByteArray {
    Bytes::from_static(name.as_bytes()).into()
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Operation],
    value: impl Fn(&Operation) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    let missing = || ParquetError::General("the schema has fewer columns than the rows".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}
