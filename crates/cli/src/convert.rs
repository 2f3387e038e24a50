//! `flashpath convert`: any trace format to CSV or Parquet.

use crate::failure::Failure;
use crate::trace_file::TraceFile;
use crate::workload::Reading;
use flashpath::units::human_size;
use flashpath::workload::trace::{OutputFormat, TraceOptions, convert};
use std::path::PathBuf;

/// Convert a trace of any format to CSV or Parquet
#[derive(clap::Args)]
pub struct Convert {
    /// The trace, or - for standard input; its format is recognised by its content
    trace: PathBuf,
    /// The file to write: NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet
    output: PathBuf,
    #[command(flatten)]
    reading: Reading,
}

impl Convert {
    /// Converts, and prints a summary on standard error.
    pub fn run(self) -> Result<(), Failure> {
        let Some(format) = OutputFormat::of_path(&self.output) else {
            let help = "name it NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet".to_string();
            return Err(Failure::input(
                format!("the name {} has no known extension", self.output.display()),
                Some(help),
            ));
        };
        if crate::is_same_file(&self.trace, &self.output) {
            let message = format!("{} is the input trace: the conversion would replace it", self.output.display());
            return Err(Failure::input(message, Some("choose another name for the output".to_string())));
        }
        let trace = TraceFile::open(&self.trace)?;
        let options = TraceOptions { name: trace.name().map(str::to_string), ..self.reading.options() };
        let summary = convert(trace.path(), &options, &self.output, format)?;
        for warning in summary.input.warnings() {
            crate::print_message(&format!("warning: {warning}"));
        }
        crate::print_message(&format!(
            "{}: {} operations in format {}, {} lines rejected; wrote {}, {}",
            self.trace.display(),
            summary.input.operations,
            summary.input.format.name(),
            summary.input.rejected,
            self.output.display(),
            human_size(summary.output_bytes as f64)
        ));
        Ok(())
    }
}
