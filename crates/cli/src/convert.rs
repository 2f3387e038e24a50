//! `flashpath convert`: any trace format to CSV or parquet.

use crate::failure::Failure;
use crate::workload::Reading;
use flashpath::units::human_size;
use flashpath::workload::trace::{OutputFormat, convert};
use std::path::PathBuf;

/// Convert a trace of any format to CSV or parquet
#[derive(clap::Args)]
pub struct Convert {
    /// The trace; its format is recognised by its content
    trace: PathBuf,
    /// The file to write: NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet
    output: PathBuf,
    #[command(flatten)]
    reading: Reading,
}

impl Convert {
    /// Converts, and says what was read and written on standard error.
    pub fn run(self) -> Result<(), Failure> {
        let Some(format) = OutputFormat::of_path(&self.output) else {
            let help = "name it NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet".to_string();
            return Err(Failure::input(format!("{} says no format", self.output.display()), Some(help)));
        };
        if crate::is_same_file(&self.trace, &self.output) {
            let message = format!("{} is the trace itself: the conversion would replace it", self.output.display());
            return Err(Failure::input(message, Some("give the output a name of its own".to_string())));
        }
        let summary = convert(&self.trace, &self.reading.options(), &self.output, format)?;
        for warning in summary.input.warnings() {
            crate::tell(&format!("warning: {warning}"));
        }
        crate::tell(&format!(
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
