//! Parquet with `convert`'s columns, written by any program.

use super::captured::{OPERATIONS_HEADER, action_named, content_named, request_of_columns};
use super::fields::Reason;
use super::intake::{Intake, Request};
use super::numbering::Numbering;
use super::records::RecordReader;
use super::rejected::Place;
use crate::workload::Operation;
use bytes::Bytes;
use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The first and the last four bytes of a Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// The largest Parquet trace held in memory if it is not a regular file, in bytes.
pub(super) const MOST_STREAMED_BYTES: u64 = 1 << 30;

const COLUMNS: usize = 7;
const ROWS_AT_ONCE: usize = 8192;

fn damaged(error: ParquetError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Calls the Parquet library and turns its panics, which damaged files can cause, into errors.
fn guarded<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(invalid("its Parquet pages are damaged".to_string())))
}

/// True if the sizes and offsets of all column chunks are possible. The library panics otherwise.
fn has_possible_chunks(metadata: &ParquetMetaData) -> bool {
    metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).all(|chunk| {
        chunk.data_page_offset() >= 0
            && chunk.dictionary_page_offset().is_none_or(|offset| offset >= 0)
            && chunk.compressed_size() >= 0
            && chunk.uncompressed_size() >= 0
            && chunk.num_values() >= 0
    })
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// A column of one row group, and the values of the current rows.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Column<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Column<T> {
        Column { reader, values: Vec::new(), levels: Vec::new() }
    }

    fn fill(&mut self, rows: usize) -> io::Result<usize> {
        self.values.clear();
        self.levels.clear();
        while self.values.len() < rows {
            let wanted = rows - self.values.len();
            let levels = Some(&mut self.levels);
            let (records, values, _) =
                self.reader.read_records(wanted, levels, None, &mut self.values).map_err(damaged)?;
            if values != records {
                return Err(invalid("a column has rows without a value".to_string()));
            }
            if records == 0 {
                break;
            }
        }
        Ok(self.values.len())
    }
}

/// A column of 32-bit or 64-bit integers; true: unsigned.
enum Numbers {
    Narrow(Column<Int32Type>, bool),
    Wide(Column<Int64Type>, bool),
}

impl Numbers {
    fn fill(&mut self, rows: usize) -> io::Result<usize> {
        match self {
            Numbers::Narrow(column, _) => column.fill(rows),
            Numbers::Wide(column, _) => column.fill(rows),
        }
    }

    fn get(&self, row: usize) -> Option<u64> {
        match self {
            Numbers::Narrow(column, true) => column.values.get(row).map(|value| u64::from(*value as u32)),
            Numbers::Wide(column, true) => column.values.get(row).map(|value| *value as u64),
            Numbers::Narrow(column, false) => column.values.get(row).and_then(|value| u64::try_from(*value).ok()),
            Numbers::Wide(column, false) => column.values.get(row).and_then(|value| u64::try_from(*value).ok()),
        }
    }
}

/// The columns of one row group.
struct Group {
    time: Numbers,
    device: Numbers,
    action: Column<ByteArrayType>,
    offset: Numbers,
    length: Numbers,
    content: Column<ByteArrayType>,
    stream: Numbers,
}

impl Group {
    /// Reads the next rows of all columns and returns their number.
    fn fill(&mut self) -> io::Result<usize> {
        let rows = self.time.fill(ROWS_AT_ONCE)?;
        let others = [
            self.device.fill(rows)?,
            self.action.fill(rows)?,
            self.offset.fill(rows)?,
            self.length.fill(rows)?,
            self.content.fill(rows)?,
            self.stream.fill(rows)?,
        ];
        if others.iter().any(|other| *other != rows) {
            return Err(invalid("its columns differ in length".to_string()));
        }
        Ok(rows)
    }

    fn request(&self, row: usize, devices: &mut Numbering<u64>) -> Result<Option<Request>, Reason> {
        let text =
            |column: &Column<ByteArrayType>| column.values.get(row).map(ByteArray::data).unwrap_or_default().to_vec();
        let time_ns = self.time.get(row).ok_or("time_ns is negative")?;
        let device = self.device.get(row).ok_or("device is negative")?;
        let action = action_named(&text(&self.action))?;
        let offset_bytes = self.offset.get(row).ok_or("offset_bytes is negative")?;
        let length_bytes = self.length.get(row).ok_or("length_bytes is negative")?;
        let content = content_named(&text(&self.content))?;
        let stream = self.stream.get(row).and_then(|stream| u8::try_from(stream).ok());
        let stream = stream.ok_or("stream is not a whole number up to 255")?;
        let request = request_of_columns(time_ns, 0, action, (offset_bytes, length_bytes), content, stream)?;
        Ok(Some(request.on(devices.number(&device)?)))
    }
}

/// The rows of a Parquet file.
pub(super) struct ParquetReader {
    file: Box<dyn FileReader>,
    intake: Intake,
    devices: Numbering<u64>,
    columns: [usize; COLUMNS],
    next_group: usize,
    group: Option<Group>,
    rows: usize,
    next_row: usize,
    rows_before: u64,
}

impl ParquetReader {
    /// Reads from a file.
    pub fn open(file: File, intake: Intake) -> Result<ParquetReader, String> {
        ParquetReader::new(file, intake)
    }

    /// Reads from memory.
    pub fn of_bytes(bytes: Bytes, intake: Intake) -> Result<ParquetReader, String> {
        ParquetReader::new(bytes, intake)
    }

    fn new<R: ChunkReader + 'static>(source: R, intake: Intake) -> Result<ParquetReader, String> {
        let file = guarded(|| SerializedFileReader::new(source).map_err(damaged))
            .map_err(|error| format!("its Parquet index is damaged: {error}"))?;
        if !has_possible_chunks(file.metadata()) {
            return Err("its Parquet index is damaged: a column has an impossible offset or size".to_string());
        }
        let schema = file.metadata().file_metadata().schema_descr();
        let mut columns = [0; COLUMNS];
        for (place, name) in columns.iter_mut().zip(OPERATIONS_HEADER.split(',')) {
            *place = (0..schema.num_columns())
                .find(|column| schema.column(*column).path().parts() == [name])
                .filter(|column| schema.column(*column).max_rep_level() == 0)
                .ok_or_else(|| format!("no column {name}: a Parquet trace has the columns {OPERATIONS_HEADER}"))?;
            let kind = schema.column(*place).physical_type();
            let is_text = matches!(name, "action" | "content");
            let fits = if is_text { kind == Type::BYTE_ARRAY } else { matches!(kind, Type::INT32 | Type::INT64) };
            if !fits {
                let expected = if is_text { "text" } else { "a whole number" };
                return Err(format!("its column {name} is of type {kind}, not {expected}"));
            }
        }
        Ok(ParquetReader {
            file: Box::new(file),
            intake,
            devices: Numbering::default(),
            columns,
            next_group: 0,
            group: None,
            rows: 0,
            next_row: 0,
            rows_before: 0,
        })
    }

    /// Reads the next rows; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.rows_before += self.rows as u64;
        (self.rows, self.next_row) = (0, 0);
        loop {
            if let Some(group) = &mut self.group {
                self.rows = group.fill()?;
                if self.rows > 0 {
                    return Ok(true);
                }
            }
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            self.group = Some(self.open_group(self.next_group)?);
            self.next_group += 1;
        }
    }

    fn open_group(&self, number: usize) -> io::Result<Group> {
        let [time, device, action, offset, length, content, stream] = self.columns;
        Ok(Group {
            time: self.numbers(number, time)?,
            device: self.numbers(number, device)?,
            action: self.text(number, action)?,
            offset: self.numbers(number, offset)?,
            length: self.numbers(number, length)?,
            content: self.text(number, content)?,
            stream: self.numbers(number, stream)?,
        })
    }

    fn column(&self, group: usize, column: usize) -> io::Result<ColumnReader> {
        self.file.get_row_group(group).and_then(|group| group.get_column_reader(column)).map_err(damaged)
    }

    fn numbers(&self, group: usize, column: usize) -> io::Result<Numbers> {
        let kind = self.file.metadata().file_metadata().schema_descr().column(column).converted_type();
        let unsigned = matches!(
            kind,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        );
        match self.column(group, column)? {
            ColumnReader::Int32ColumnReader(reader) => Ok(Numbers::Narrow(Column::new(reader), unsigned)),
            ColumnReader::Int64ColumnReader(reader) => Ok(Numbers::Wide(Column::new(reader), unsigned)),
            _ => Err(invalid("a column changes its type".to_string())),
        }
    }

    fn text(&self, group: usize, column: usize) -> io::Result<Column<ByteArrayType>> {
        match self.column(group, column)? {
            ColumnReader::ByteArrayColumnReader(reader) => Ok(Column::new(reader)),
            _ => Err(invalid("a column changes its type".to_string())),
        }
    }
}

impl RecordReader for ParquetReader {
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()> {
        let full = out.len() + limit;
        while out.len() < full {
            if self.next_row == self.rows && !guarded(|| self.advance())? {
                break;
            }
            let Some(group) = &self.group else { break };
            let parsed = group.request(self.next_row, &mut self.devices);
            self.next_row += 1;
            let number = self.rows_before + self.next_row as u64;
            self.intake.settle(parsed, || Place::Record(number), b"", out);
        }
        Ok(())
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn decompressed_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::operation;
    use super::*;
    use crate::label::Content;
    use crate::workload::Action;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;
    use std::sync::Arc;

    /// Writes a column of optional values, as most programs do.
    fn write<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, rows: &[Option<T::T>]) {
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
        let values: Vec<T::T> = rows.iter().flatten().cloned().collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
    }

    /// Two rows as data frame libraries write them: signed, optional, in another order, with an extra column.
    fn foreign(second_length: Option<i64>, stream_name: &str) -> Bytes {
        let schema = format!(
            "message frame {{ OPTIONAL BYTE_ARRAY content (UTF8); OPTIONAL INT64 time_ns; OPTIONAL INT64 device;
             OPTIONAL BYTE_ARRAY action (UTF8); OPTIONAL INT64 index; OPTIONAL INT64 offset_bytes;
             OPTIONAL INT64 length_bytes; OPTIONAL INT32 {stream_name}; }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
        let mut group = file.next_row_group().unwrap();
        write::<ByteArrayType>(&mut group, &[Some("metadata".into()), Some("data".into())]);
        write::<Int64Type>(&mut group, &[Some(7), Some(9)]);
        write::<Int64Type>(&mut group, &[Some(40), Some(3)]);
        write::<ByteArrayType>(&mut group, &[Some("write".into()), Some("read".into())]);
        write::<Int64Type>(&mut group, &[None, Some(1)]);
        write::<Int64Type>(&mut group, &[Some(4096), Some(0)]);
        write::<Int64Type>(&mut group, &[Some(512), second_length]);
        write::<Int32Type>(&mut group, &[Some(1), Some(0)]);
        group.close().unwrap();
        file.into_inner().unwrap().into()
    }

    fn read(bytes: Bytes) -> (io::Result<Vec<Operation>>, u64) {
        let mut reader = ParquetReader::of_bytes(bytes, Intake::new(None).with_times_from_zero()).unwrap();
        let mut out = Vec::new();
        let result = reader.read_batch(&mut out, 100).map(|()| out);
        (result, reader.intake.rejections.count)
    }

    #[test]
    fn a_file_of_another_program_serves_if_it_has_the_columns() {
        let first = Operation { content: Content::Metadata, stream: 1, ..operation(7, Action::Write, 4096, 512) };
        let second = Operation { device: 1, ..operation(9, Action::Read, 0, 8192) };
        let (operations, rejected) = read(foreign(Some(8192), "stream"));
        assert_eq!((operations.unwrap(), rejected), (vec![first, second], 0));
    }

    #[test]
    fn a_row_of_negative_length_is_rejected_and_one_without_a_length_is_an_error() {
        let (operations, rejected) = read(foreign(Some(-8192), "stream"));
        assert_eq!((operations.unwrap().len(), rejected), (1, 1));
        assert!(read(foreign(None, "stream")).0.unwrap_err().to_string().contains("rows without a value"));
    }

    #[test]
    fn a_file_without_one_of_the_columns_is_an_error_that_names_it() {
        let error = ParquetReader::of_bytes(foreign(Some(1), "lane"), Intake::new(None)).err().unwrap();
        assert!(error.contains("no column stream"), "{error}");
    }
}
