//! Reads a trace of any format as a stream of operations.

use super::column_lines::ColumnLines;
use super::columnar::{self, ParquetReader};
use super::format::{Format, Records};
use super::intake::Intake;
use super::lines::{Lines, Parsed};
use super::open::{Compression, Input};
use super::recognise;
use super::records::RecordReader;
use super::rejected::Rejected;
use super::stage::Stage;
use super::table;
use super::{TraceOptions, unusable};
use crate::workload::{Operation, WorkloadError};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The format of a text with described columns, in any table of formats.
static DESCRIBED: Format = table::COLUMNS;
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

struct TextReader {
    input: Input,
    lines: Box<dyn Lines>,
    intake: Intake,
}

impl RecordReader for TextReader {
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()> {
        self.lines.read(&mut self.input, &mut self.intake, out, limit)
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn decompressed_bytes(&self) -> u64 {
        self.input.decompressed_bytes()
    }

    fn notes(&self) -> Vec<String> {
        self.lines.notes()
    }
}

/// Reads one trace once, from its first operation to its last.
///
/// Times begin at zero and never go back, devices are numbered in order of appearance, and invalid requests are counted
/// and skipped. The options of replay ([`addresses`](TraceOptions::addresses) and [`repeat`](TraceOptions::repeat)) are
/// ignored here.
pub struct TraceReader {
    name: String,
    format: &'static Format,
    compression: Compression,
    records: Box<dyn RecordReader>,
    emitted: u64,
    limit: u64,
    only_device: Option<u32>,
    recognition_notes: Vec<String>,
}

impl TraceReader {
    /// Opens a file, compressed or not, and recognises its format unless the options name it.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<TraceReader, WorkloadError> {
        let name = options.name_of(path);
        let read = |source| WorkloadError::Read { file: name.clone(), source };
        let mut file = File::open(path).map_err(read)?;
        // A Parquet file is read from its end, and so not as a stream.
        let mut head = Vec::with_capacity(columnar::MAGIC.len());
        file.by_ref().take(columnar::MAGIC.len() as u64).read_to_end(&mut head).map_err(read)?;
        if head == columnar::MAGIC {
            return TraceReader::of_parquet(&name, file, options);
        }
        TraceReader::from_reader(&name, Box::new(io::Cursor::new(head).chain(file)), options)
    }

    /// Reads from a byte stream, compressed or not; errors name it `name`.
    pub fn from_reader(
        name: &str,
        source: Box<dyn Read + Send>,
        options: &TraceOptions,
    ) -> Result<TraceReader, WorkloadError> {
        let read = |source| WorkloadError::Read { file: name.to_string(), source };
        let mut input = Input::new(source).map_err(read)?;
        let compression = input.compression();
        let damaged = |error: io::Error| read(at_byte(&error, 0, 0));
        if input.peek(BYTE_ORDER_MARK.len()).map_err(damaged)?.starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        let head = input.peek(recognise::HEAD_BYTES).map_err(damaged)?.to_vec();
        if head.is_empty() {
            return Err(unusable(name, "the file is empty".to_string()));
        }
        let (format, recognition_notes) = match named_format(name, options)? {
            Some(format) => (format, Vec::new()),
            None => {
                let stage = options.stage.unwrap_or_default();
                recognise::recognise(options.formats, &head, input.shows_the_end(), stage)
                    .map_err(|reason| unusable(name, reason))?
            }
        };
        let is_whole = input.shows_the_end();
        let chosen = stage_of(name, format, options)?;
        let stage = chosen.or_else(|| recognise::earliest_stage(format, &head, is_whole)).unwrap_or_default();
        let intake = Intake::new(options.device);
        let intake = if format.times_from_zero { intake.with_times_from_zero() } else { intake };
        let records: Box<dyn RecordReader> = match &format.records {
            Records::Refused { why, .. } => return Err(unusable(name, (*why).to_string())),
            Records::Parquet => {
                let bytes = input.read_to_end(columnar::MOST_STREAMED_BYTES).map_err(damaged)?;
                let bytes = bytes.ok_or_else(|| {
                    let why = "a Parquet trace of more than 1 GiB must be an uncompressed file";
                    unusable(name, why.to_string())
                })?;
                Box::new(ParquetReader::of_bytes(bytes.into(), intake).map_err(|reason| unusable(name, reason))?)
            }
            Records::Binary { open, .. } => open(input, intake, stage),
            Records::Lines(open) => Box::new(TextReader { input, lines: open(stage), intake }),
            Records::Described => {
                let columns = options.columns.clone().ok_or_else(|| {
                    let why = "the format columns needs their description: --columns time=1,op=3,offset=4,size=5";
                    unusable(name, why.to_string())
                })?;
                Box::new(TextReader { input, lines: Box::new(Parsed(ColumnLines::new(columns))), intake })
            }
        };
        Ok(TraceReader::new(name, format, compression, records, recognition_notes, options))
    }

    /// Reads a Parquet file from its end.
    fn of_parquet(name: &str, file: File, options: &TraceOptions) -> Result<TraceReader, WorkloadError> {
        let is_parquet = |format: &Format| matches!(format.records, Records::Parquet);
        let known = options.formats.iter().find(|format| is_parquet(format));
        let format = match (named_format(name, options)?, known) {
            (None, Some(format)) => format,
            (Some(format), _) if is_parquet(format) => format,
            (Some(format), _) => {
                return Err(unusable(name, format!("a Parquet file, not of the format {format}")));
            }
            (None, None) => {
                return Err(unusable(name, "a Parquet file, which is none of the known formats".to_string()));
            }
        };
        stage_of(name, format, options)?;
        let intake = Intake::new(options.device).with_times_from_zero();
        let records = Box::new(ParquetReader::open(file, intake).map_err(|reason| unusable(name, reason))?);
        Ok(TraceReader::new(name, format, Compression::None, records, Vec::new(), options))
    }

    fn new(
        name: &str,
        format: &'static Format,
        compression: Compression,
        records: Box<dyn RecordReader>,
        recognition_notes: Vec<String>,
        options: &TraceOptions,
    ) -> TraceReader {
        TraceReader {
            name: name.to_string(),
            format,
            compression,
            records,
            emitted: 0,
            limit: options.limit.unwrap_or(u64::MAX),
            only_device: options.device,
            recognition_notes,
        }
    }

    /// Appends at most `limit` operations to `batch` and returns their number; 0 at the end of the trace.
    ///
    /// Errors: the file cannot be read, its compressed data is damaged, or the trace ends without an operation.
    /// Operations appended before an error are valid.
    pub fn read_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let limit = limit.min(usize::try_from(self.limit - self.emitted).unwrap_or(usize::MAX));
        let before = batch.len();
        let result = self.records.read_batch(batch, limit);
        let count = batch.len() - before;
        self.emitted += count as u64;
        if let Err(error) = result {
            let source = at_byte(&error, self.records.decompressed_bytes(), self.emitted);
            return Err(WorkloadError::Read { file: self.name.clone(), source });
        }
        if self.emitted == 0 && limit > 0 {
            return Err(unusable(&self.name, self.why_nothing()));
        }
        Ok(count)
    }

    /// The format of the trace.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The number of rejected lines or records so far.
    pub fn rejected(&self) -> u64 {
        self.records.intake().rejections.count
    }

    /// The first rejected lines or records.
    pub fn first_rejected(&self) -> &[Rejected] {
        &self.records.intake().rejections.first
    }

    /// The number of valid lines or records without an operation: headers, comments, other events.
    pub fn without_operation(&self) -> u64 {
        self.records.intake().others
    }

    /// The number of operations with a time before that of an earlier one; they got the later time.
    pub fn backward_times(&self) -> u64 {
        self.records.intake().backward_times
    }

    /// Notes for the user about the reading, except rejections.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.recognition_notes.clone();
        notes.extend(self.records.notes());
        notes
    }

    /// The reason why the trace has no operation.
    fn why_nothing(&self) -> String {
        let intake = self.records.intake();
        let mut reason = match (self.only_device, intake.rejections.first.first()) {
            (Some(device), _) if intake.on_other_devices > 0 => {
                format!("device {device} has no operation: the trace has the devices 0 to {}", intake.devices - 1)
            }
            (_, Some(first)) => {
                format!("no line is of the format {}: {} rejected, first {first}", self.format, intake.rejections.count)
            }
            _ => format!("the format is {}, but there is no operation", self.format),
        };
        for note in self.records.notes() {
            reason.push_str("; ");
            reason.push_str(&note);
        }
        reason
    }
}

/// The format that the user named, or whose columns are described.
fn named_format(name: &str, options: &TraceOptions) -> Result<Option<&'static Format>, WorkloadError> {
    match (&options.columns, options.format) {
        (None, format) => Ok(format),
        (Some(_), None) => Ok(Some(&DESCRIBED)),
        (Some(_), Some(format)) if matches!(format.records, Records::Described) => Ok(Some(format)),
        (Some(_), Some(format)) => {
            Err(unusable(name, format!("columns are described, and the format {format} has its own: give one of them")))
        }
    }
}

/// The stage that the user chose.
fn stage_of(name: &str, format: &Format, options: &TraceOptions) -> Result<Option<Stage>, WorkloadError> {
    match options.stage {
        Some(_) if !format.has_stages => {
            let names: Vec<&str> =
                options.formats.iter().filter(|format| format.has_stages).map(Format::name).collect();
            let names = names.join(", ");
            Err(unusable(name, format!("the format {format} has no stages of a request: only {names} have")))
        }
        stage => Ok(stage),
    }
}

/// The same error, with its place.
fn at_byte(error: &io::Error, bytes: u64, operations: u64) -> io::Error {
    let place = format!("{error} (after {bytes} decompressed bytes and {operations} operations)");
    io::Error::new(error.kind(), place)
}
