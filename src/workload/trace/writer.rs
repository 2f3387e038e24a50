//! Writes operations as a trace in CSV or Parquet.

use super::captured::{OPERATIONS_HEADER, action_name};
use super::columnar_writer::ParquetWriter;
use super::unusable;
use crate::workload::{Operation, WorkloadError};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The format of a written trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Lines `time_ns,device,action,offset_bytes,length_bytes,content,stream` with a header; compressed if the output's
    /// name ends in `.gz` or `.zst`.
    Csv,
    /// The same columns as Parquet, which compresses them itself.
    Parquet,
}

impl OutputFormat {
    /// The format by a file's name: `.parquet`, or `.csv`, `.csv.gz` and `.csv.zst`.
    pub fn of_path(path: &Path) -> Option<OutputFormat> {
        let name = path.file_name()?.to_str()?;
        let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(name);
        match Path::new(plain).extension()?.to_str()? {
            "csv" => Some(OutputFormat::Csv),
            "parquet" if plain == name => Some(OutputFormat::Parquet),
            _ => None,
        }
    }
}

/// Writes a trace to a temporary file beside the output, and renames it when it is complete.
pub struct TraceWriter {
    output: PathBuf,
    temporary: Temporary,
    writer: Writer,
}

impl TraceWriter {
    /// Begins a trace that will replace `output`. Fails if the temporary file cannot be created.
    pub fn create(output: &Path, format: OutputFormat) -> Result<TraceWriter, WorkloadError> {
        let begin = || {
            let (temporary, file) = Temporary::create(output)?;
            let writer = Writer::new(file, output, format)?;
            Ok(TraceWriter { output: output.to_path_buf(), temporary, writer })
        };
        begin().map_err(|error| unwritable(output, error))
    }

    /// Appends operations.
    pub fn write(&mut self, operations: &[Operation]) -> Result<(), WorkloadError> {
        self.writer.write(operations).map_err(|error| unwritable(&self.output, error))
    }

    /// Syncs and renames the trace; returns its size in bytes.
    pub fn finish(self) -> Result<u64, WorkloadError> {
        let output = self.output.clone();
        self.finish_as(&output)
    }

    /// As [`finish`](Self::finish), under another name in the same directory.
    pub fn finish_as(self, output: &Path) -> Result<u64, WorkloadError> {
        let TraceWriter { temporary, writer, .. } = self;
        let end = || {
            let file = writer.finish()?;
            let bytes = file.metadata()?.len();
            file.sync_all()?;
            temporary.rename(output)?;
            Ok(bytes)
        };
        end().map_err(|error| unwritable(output, error))
    }
}

fn unwritable(output: &Path, error: io::Error) -> WorkloadError {
    unusable(&output.display().to_string(), format!("cannot write it: {error}"))
}

/// A temporary file beside the output. It is removed unless it is renamed.
struct Temporary {
    path: Option<PathBuf>,
}

impl Temporary {
    fn create(output: &Path) -> io::Result<(Temporary, File)> {
        let name = output.file_name().ok_or_else(|| io::Error::other("not a file name"))?;
        let hidden = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let path = output.with_file_name(hidden);
        let file = File::create_new(&path)?;
        Ok((Temporary { path: Some(path) }, file))
    }

    fn rename(mut self, output: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, output)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The conversion has failed already; its error matters more.
            let _ = fs::remove_file(path);
        }
    }
}

enum Writer {
    Plain(CsvWriter<BufWriter<File>>),
    Gzip(CsvWriter<flate2::write::GzEncoder<BufWriter<File>>>),
    Zstd(CsvWriter<zstd::stream::write::Encoder<'static, BufWriter<File>>>),
    Parquet(Box<ParquetWriter<BufWriter<File>>>),
}

impl Writer {
    fn new(file: File, output: &Path, format: OutputFormat) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(256 << 10, file);
        let extension = output.extension().and_then(|extension| extension.to_str());
        Ok(match (format, extension) {
            (OutputFormat::Parquet, _) => {
                Writer::Parquet(Box::new(ParquetWriter::new(file).map_err(io::Error::other)?))
            }
            (OutputFormat::Csv, Some("gz")) => {
                Writer::Gzip(CsvWriter::new(flate2::write::GzEncoder::new(file, flate2::Compression::default())))
            }
            (OutputFormat::Csv, Some("zst")) => {
                Writer::Zstd(CsvWriter::new(zstd::stream::write::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?))
            }
            (OutputFormat::Csv, _) => Writer::Plain(CsvWriter::new(file)),
        })
    }

    fn write(&mut self, operations: &[Operation]) -> io::Result<()> {
        match self {
            Writer::Plain(writer) => writer.write(operations),
            Writer::Gzip(writer) => writer.write(operations),
            Writer::Zstd(writer) => writer.write(operations),
            Writer::Parquet(writer) => writer.write(operations).map_err(io::Error::other),
        }
    }

    fn finish(self) -> io::Result<File> {
        let buffered = match self {
            Writer::Plain(writer) => writer.finish()?,
            Writer::Gzip(writer) => writer.finish()?.finish()?,
            Writer::Zstd(writer) => writer.finish()?.finish()?,
            Writer::Parquet(writer) => writer.finish().map_err(io::Error::other)?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

struct CsvWriter<W: Write> {
    output: W,
    text: Vec<u8>,
}

impl<W: Write> CsvWriter<W> {
    fn new(output: W) -> CsvWriter<W> {
        CsvWriter { output, text: format!("{OPERATIONS_HEADER}\n").into_bytes() }
    }

    fn write(&mut self, operations: &[Operation]) -> io::Result<()> {
        for operation in operations {
            writeln!(
                self.text,
                "{},{},{},{},{},{},{}",
                operation.time_ns,
                operation.device,
                action_name(operation.action),
                operation.offset_bytes,
                operation.length_bytes,
                operation.content.name(),
                operation.stream
            )?;
        }
        self.output.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<W> {
        self.output.write_all(&self.text)?;
        Ok(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_output_tells_its_format() {
        let format = |name: &str| OutputFormat::of_path(Path::new(name));
        assert_eq!(format("a.csv"), Some(OutputFormat::Csv));
        assert_eq!(format("a.csv.zst"), Some(OutputFormat::Csv));
        assert_eq!(format("a/b.parquet"), Some(OutputFormat::Parquet));
        assert_eq!([format("a.parquet.gz"), format("csv"), format("a.txt"), format("/")], [None; 4]);
    }
}
