//! `flashpath convert`: any trace format to CSV or Parquet, calls to a recording, a configuration of MQSim to a path, its flows to
//! jobs of fio.

mod mqsim;
mod mqsim_flows;

use crate::failure::Failure;
use crate::trace_file::TraceFile;
use crate::workload::Reading;
use flashpath::units::human_size;
use flashpath::workload::trace::{OutputFormat, TraceOptions, convert, convert_calls};
use std::path::PathBuf;

/// The extension of recordings of calls.
const RECORDING: &str = "fpcalls";

/// The extension of configurations of MQSim.
const CONFIGURATION: &str = "xml";

/// Convert a trace of any format to CSV or Parquet, calls of strace to a recording of calls, a drive of MQSim to a path, or its flows to fio jobs
#[derive(clap::Args)]
pub struct Convert {
    /// The trace, or - for standard input; its format is recognised by its content. NAME.xml: MQSim's ssdconfig.xml, whose
    /// path is printed, or its workload.xml, whose flows are printed as jobs of fio
    trace: PathBuf,
    /// The file to write: NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet; of strace -f -ttt -yy -T also NAME.fpcalls
    output: Option<PathBuf>,
    /// The scenario of a workload.xml, counted from 1, if it has several
    #[arg(long, value_name = "N")]
    scenario: Option<usize>,
    #[command(flatten)]
    reading: Reading,
}

impl Convert {
    /// Converts, and prints a summary on standard error.
    pub fn run(self) -> Result<(), Failure> {
        if self.trace.extension().is_some_and(|extension| extension == CONFIGURATION) {
            return self.convert_configuration();
        }
        if self.scenario.is_some() {
            let help = "leave it out, or name MQSim's workload.xml".to_string();
            return Err(Failure::input("--scenario is of flows of MQSim".to_string(), Some(help)));
        }
        let Some(output) = self.output.clone() else {
            let message = "there is no file to write".to_string();
            return Err(Failure::input(
                message,
                Some("name it behind the trace: NAME.csv or NAME.parquet".to_string()),
            ));
        };
        Conversion { trace: self.trace, output, reading: self.reading }.run()
    }

    /// Prints the path of a drive of MQSim, or its flows, or writes that to a file; what it leaves out, on standard error.
    fn convert_configuration(self) -> Result<(), Failure> {
        let text = std::fs::read_to_string(&self.trace)
            .map_err(|error| Failure::input(format!("cannot read {}: {error}", self.trace.display()), None))?;
        let (converted, notes) = match mqsim_flows::convert(&text, self.scenario) {
            Some(flows) => flows.map(|flows| (flows.jobs, flows.notes))?,
            None => mqsim::convert(&text).map(|drive| (format!("{}\n", drive.path), drive.notes))?,
        };
        match &self.output {
            None => crate::print(&converted)?,
            Some(output) if crate::is_same_file(&self.trace, output) => {
                let message = format!("{} is the configuration: the conversion would replace it", output.display());
                return Err(Failure::input(message, Some("choose another name for the output".to_string())));
            }
            Some(output) => flashpath::report::write_file(output, converted)?,
        }
        for note in notes {
            crate::print_message(&format!("warning: {}: {note}", self.trace.display()));
        }
        Ok(())
    }
}

/// A conversion of a trace to a file.
struct Conversion {
    trace: PathBuf,
    output: PathBuf,
    reading: Reading,
}

impl Conversion {
    fn run(self) -> Result<(), Failure> {
        if self.output.extension().is_some_and(|extension| extension == RECORDING) {
            return self.convert_calls();
        }
        let Some(format) = OutputFormat::of_path(&self.output) else {
            let help = "name it NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet".to_string();
            return Err(Failure::input(
                format!("the name {} has no known extension", self.output.display()),
                Some(help),
            ));
        };
        self.check_output()?;
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

    /// Converts strace's calls to a recording.
    fn convert_calls(self) -> Result<(), Failure> {
        self.check_output()?;
        let summary = convert_calls(&self.trace, &self.output)?;
        for rejected in &summary.first_rejected {
            crate::print_message(&format!("warning: {rejected}"));
        }
        if summary.relative > 0 {
            crate::print_message(&format!(
                "warning: {} calls with relative paths are left out, as strace does not print the working directory",
                summary.relative
            ));
        }
        crate::print_message(&format!(
            "{}: {} calls to files, {} lines rejected; wrote {}",
            self.trace.display(),
            summary.calls,
            summary.rejected,
            self.output.display()
        ));
        Ok(())
    }

    /// Refuses to replace the input.
    fn check_output(&self) -> Result<(), Failure> {
        if crate::is_same_file(&self.trace, &self.output) {
            let message = format!("{} is the input trace: the conversion would replace it", self.output.display());
            return Err(Failure::input(message, Some("choose another name for the output".to_string())));
        }
        Ok(())
    }
}
