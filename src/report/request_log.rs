//! The log of requests: a Parquet file with a row for each, written in row groups while the run goes on.
//!
//! docs/results-format.md has the columns. The file is written beside its place, and moved there when it is complete.

use super::file::{WriteError, beside, is_special};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCHEMA: &str = "message requests {
    OPTIONAL INT64 issued_ns (INTEGER(64,false));
    OPTIONAL INT64 done_ns (INTEGER(64,false));
    REQUIRED INT32 thread (INTEGER(32,false));
    REQUIRED BYTE_ARRAY action (UTF8);
    OPTIONAL INT64 file (INTEGER(64,false));
    OPTIONAL INT64 offset_bytes (INTEGER(64,false));
    OPTIONAL INT64 length_bytes (INTEGER(64,false));
    OPTIONAL BYTE_ARRAY content (UTF8);
    OPTIONAL INT64 die_wait_ns (INTEGER(64,false));
    OPTIONAL INT64 channel_wait_ns (INTEGER(64,false));
    OPTIONAL INT64 collection_ns (INTEGER(64,false));
    OPTIONAL INT64 mapping_ns (INTEGER(64,false));
    OPTIONAL INT64 service_ns (INTEGER(64,false));
    OPTIONAL INT64 other_ns (INTEGER(64,false));
    OPTIONAL INT64 erase_ns (INTEGER(64,false));
    OPTIONAL INT64 buffer_ns (INTEGER(64,false));
    OPTIONAL INT64 retry_ns (INTEGER(64,false));
}";

/// Rows of a group: enough for effective dictionaries and deltas, few enough for memory (20 MB).
const GROUP_ROWS: usize = 128 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRow {
    /// The thread that made it, from 1.
    pub thread: u32,
    /// Its kind: `read`, `write`, `discard`, `flush`, or the class of an operation on files.
    pub action: &'static str,
    /// The number of its file, for an operation on files.
    pub file: Option<u64>,
    /// Its first byte on the device or in the file.
    pub offset_bytes: Option<u64>,
    /// Its length.
    pub length_bytes: Option<u64>,
    /// The content of a write: see [`crate::label::Content`].
    pub content: Option<&'static str>,
    /// Its time; `None` without a timing model.
    pub time: Option<LogTime>,
}

/// The time of a request, in nanoseconds. The parts from `die_wait` on add up to the time from issue to completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogTime {
    /// The issue, from the start of the count.
    pub issued: u64,
    /// The completion, from the start of the count.
    pub done: u64,
    /// Waiting for a die.
    pub die_wait: u64,
    /// Waiting for a channel.
    pub channel_wait: u64,
    /// Waiting for collection, or doing it.
    pub collection: u64,
    /// Waiting for an erase, or doing it.
    pub erase: u64,
    /// Waiting for the map of a translation layer.
    pub mapping: u64,
    /// Waiting for a place in a drive's write buffer.
    pub buffer: u64,
    /// Reading again what could not be corrected.
    pub retry: u64,
    /// The device's work for the request itself.
    pub service: u64,
    /// Outside of the devices.
    pub other: u64,
}

/// A log that is being written. Dropped before [`RequestLog::finish`], it leaves no file.
pub struct RequestLog {
    path: PathBuf,
    /// The file that is written; `None` if it is written in its place.
    beside: Option<PathBuf>,
    /// `None` after [`RequestLog::finish`].
    file: Option<SerializedFileWriter<BufWriter<File>>>,
    rows: Vec<LogRow>,
}

impl RequestLog {
    /// Creates the file.
    pub fn create(path: &Path) -> Result<RequestLog, WriteError> {
        let beside = (!is_special(path)).then(|| beside(path));
        let output = match &beside {
            Some(beside) => File::create(beside),
            None => File::options().write(true).open(path),
        };
        let output = output.map_err(|error| WriteError::new(path, error))?;
        // From here on the file is removed if anything fails.
        let mut log = RequestLog { path: path.to_path_buf(), beside, file: None, rows: Vec::new() };
        log.file = Some(writer(output).map_err(|error| log.failed(error))?);
        Ok(log)
    }

    fn failed(&self, error: ParquetError) -> WriteError {
        WriteError::new(&self.path, std::io::Error::other(error))
    }

    /// Adds a request.
    pub fn write(&mut self, row: LogRow) -> Result<(), WriteError> {
        self.rows.push(row);
        if self.rows.len() >= GROUP_ROWS { self.write_rows() } else { Ok(()) }
    }

    fn write_rows(&mut self) -> Result<(), WriteError> {
        let Some(file) = self.file.as_mut().filter(|_| !self.rows.is_empty()) else { return Ok(()) };
        let written = write_group(file, &self.rows);
        self.rows.clear();
        written.map_err(|error| self.failed(error))
    }

    /// Writes the last rows, and moves the file to its place.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.write_rows()?;
        let Some(file) = self.file.take() else { return Ok(()) };
        let output = file.into_inner().map_err(|error| self.failed(error))?;
        output.into_inner().map_err(|error| WriteError::new(&self.path, error.into_error()))?;
        if let Some(beside) = &self.beside {
            std::fs::rename(beside, &self.path).map_err(|error| WriteError::new(&self.path, error))?;
            self.beside = None;
        }
        Ok(())
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Best effort: the error of the run matters more.
            let _ = std::fs::remove_file(beside);
        }
    }
}

fn writer(output: File) -> Result<SerializedFileWriter<BufWriter<File>>, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    SerializedFileWriter::new(BufWriter::new(output), Arc::new(parse_message_type(SCHEMA)?), properties)
}

type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn write_group(file: &mut SerializedFileWriter<BufWriter<File>>, rows: &[LogRow]) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    write_time(&mut group, rows, |time| time.issued)?;
    write_time(&mut group, rows, |time| time.done)?;
    let threads: Vec<i32> = rows.iter().map(|row| row.thread as i32).collect();
    write_column::<Int32Type>(&mut group, &threads, None)?;
    let actions: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(row.action)).collect();
    write_column::<ByteArrayType>(&mut group, &actions, None)?;
    write_optional::<Int64Type>(&mut group, rows, |row| row.file.map(|value| value as i64))?;
    write_optional::<Int64Type>(&mut group, rows, |row| row.offset_bytes.map(|value| value as i64))?;
    write_optional::<Int64Type>(&mut group, rows, |row| row.length_bytes.map(|value| value as i64))?;
    write_optional::<ByteArrayType>(&mut group, rows, |row| row.content.map(ByteArray::from))?;
    for part in [
        |time: &LogTime| time.die_wait,
        |time: &LogTime| time.channel_wait,
        |time: &LogTime| time.collection,
        |time: &LogTime| time.mapping,
        |time: &LogTime| time.service,
        |time: &LogTime| time.other,
        |time: &LogTime| time.erase,
        |time: &LogTime| time.buffer,
        |time: &LogTime| time.retry,
    ] {
        write_time(&mut group, rows, part)?;
    }
    group.close()?;
    Ok(())
}

fn write_time(group: &mut Group<'_>, rows: &[LogRow], of: fn(&LogTime) -> u64) -> Result<(), ParquetError> {
    write_optional::<Int64Type>(group, rows, |row| row.time.as_ref().map(|time| of(time) as i64))
}

/// Each value has a level: 1 if it is there, 0 if not.
fn write_optional<T: DataType>(
    group: &mut Group<'_>,
    rows: &[LogRow],
    value: impl Fn(&LogRow) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let cells = rows.iter().map(value);
    let (mut values, mut levels) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    write_column::<T>(group, &values, Some(&levels))
}

fn write_column<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than the rows".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    fn row(number: u64) -> LogRow {
        let time = LogTime {
            issued: number,
            done: number + 45,
            die_wait: 1,
            channel_wait: 2,
            collection: 3,
            mapping: 4,
            service: 5,
            other: 6,
            erase: 7,
            buffer: 8,
            retry: 9,
        };
        LogRow {
            thread: 2,
            action: "write",
            file: None,
            offset_bytes: Some(4096 * number),
            length_bytes: Some(4096),
            content: Some("journal"),
            time: Some(time),
        }
    }

    #[test]
    fn the_rows_come_back_in_groups_and_the_file_is_there_only_when_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log.parquet");
        let mut log = RequestLog::create(&path).unwrap();
        let count = GROUP_ROWS as u64 * 2 + 3;
        (0..count).try_for_each(|number| log.write(row(number))).unwrap();
        log.write(LogRow {
            action: "sync",
            offset_bytes: None,
            length_bytes: None,
            content: None,
            time: None,
            ..row(0)
        })
        .unwrap();
        assert!(!path.exists() && log.rows.len() == 4, "the groups are written as they fill");
        log.finish().unwrap();
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        assert_eq!((file.num_row_groups(), file.metadata().file_metadata().num_rows()), (3, count as i64 + 1));
        let rows: Vec<String> = file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows[7],
            "{issued_ns: 7, done_ns: 52, thread: 2, action: \"write\", file: null, offset_bytes: 28672, length_bytes: 4096, \
             content: \"journal\", die_wait_ns: 1, channel_wait_ns: 2, collection_ns: 3, mapping_ns: 4, service_ns: 5, \
             other_ns: 6, erase_ns: 7, buffer_ns: 8, retry_ns: 9}"
        );
        assert!(rows.last().unwrap().starts_with("{issued_ns: null, done_ns: null, thread: 2, action: \"sync\""));
    }

    #[test]
    fn a_log_that_is_not_finished_leaves_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log.parquet");
        std::fs::write(&path, "earlier").unwrap();
        let mut log = RequestLog::create(&path).unwrap();
        log.write(row(1)).unwrap();
        drop(log);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "earlier");
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
        assert!(RequestLog::create(&place.path().join("no/log.parquet")).is_err());
    }
}
