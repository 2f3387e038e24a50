//! The results of a command: printed, and written to the requested files.

use super::{OutputFormat, Run};
use crate::failure::{Failure, exit_code};
use crate::workload::Source;
use flashpath::report::{self, Environment, RunResult};
use flashpath::run::{Outcome, RunError};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The name of a file that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

impl Run {
    /// Checks the output files before a run that may take hours.
    pub fn check_outputs(&self, source: &Source) -> Result<(), Failure> {
        let asked = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--parquet", &self.parquet),
            ("--windows", &self.windows),
            ("--log", &self.log),
            ("--report", &self.report),
        ];
        let outputs: Vec<(&str, &Path)> =
            asked.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?))).collect();
        for (option, _) in outputs.iter().filter(|(_, file)| *file == Path::new(STANDARD_OUTPUT)) {
            if !["--json", "--csv", "--windows"].contains(option) {
                let message = format!("{option} cannot be written to standard output");
                return Err(Failure::input(message, Some("give it the name of a file".to_string())));
            }
        }
        let to_standard_output = outputs.iter().find(|(_, file)| *file == Path::new(STANDARD_OUTPUT));
        if let Some((option, _)) = to_standard_output.filter(|_| self.output_format != OutputFormat::Table) {
            let message = format!("{option} - and --output-format both choose what standard output gets");
            return Err(Failure::input(message, Some(format!("leave one of them out, or name a file for {option}"))));
        }
        let is_file = |file: &Path| file != Path::new(STANDARD_OUTPUT);
        for (_, file) in outputs.iter().filter(|(_, file)| is_file(file)) {
            report::check_writable(file)?;
            if source.file().is_some_and(|workload| crate::is_same_file(&workload, file)) {
                let message = format!("{} is the workload's file: the results would replace it", file.display());
                return Err(Failure::input(message, Some("choose another name for the results".to_string())));
            }
        }
        for (at, (option, file)) in outputs.iter().enumerate() {
            let is_same =
                |other: &Path| other == *file && !report::is_special(file) || crate::is_same_file(other, file);
            if let Some((earlier, _)) = outputs[..at].iter().find(|(_, other)| is_same(other)) {
                let message = format!("{earlier} and {option} both write {}", file.display());
                return Err(Failure::input(message, Some("choose a name for each".to_string())));
            }
        }
        Ok(())
    }

    /// Prints the results, writes the files, and returns the worst failure.
    pub fn print_results(&self, outcomes: Vec<Outcome>, environment: &Environment) -> Result<(), Failure> {
        let interrupted = outcomes.iter().any(|outcome| outcome.result.interrupted);
        let (results, failures): (Vec<_>, Vec<_>) =
            outcomes.into_iter().map(|outcome| (outcome.result, outcome.failure)).unzip();
        // What a directory refused has no results.
        let is_refused = self.directory.is_some() && failures.iter().flatten().any(RunError::is_input);
        if !is_refused {
            self.print_tables(&results, environment)?;
        }
        self.print_warnings(&results);
        for (result, failure) in results.iter().zip(&failures) {
            if let Some(error) = failure {
                crate::print_message(&format!("error: {}: {error}", result.name.as_ref().unwrap_or(&result.path)));
            }
        }
        // A wrong input takes precedence over a failed run.
        match failures.iter().flatten().map(exit_code).max() {
            Some(code) => Err(Failure::Quiet(code)),
            None if interrupted => Err(Failure::Quiet(130)),
            None => Ok(()),
        }
    }

    /// Prints what the results warn of, on standard error.
    fn print_warnings(&self, results: &[RunResult]) {
        for result in results.iter().filter(|_| !self.quiet) {
            for warning in &result.warnings {
                let (path, warning) =
                    (report::visible(result.name.as_ref().unwrap_or(&result.path)), report::visible(warning));
                crate::print_message(&format!("warning: {path}: {warning}"));
            }
        }
    }

    /// Prints the results in all requested forms.
    fn print_tables(&self, results: &[RunResult], environment: &Environment) -> Result<(), Failure> {
        let json = || report::json(results, environment);
        let csv = || report::csv(results, environment);
        let is_stdout = |file: &&PathBuf| file.as_path() == Path::new(STANDARD_OUTPUT);
        let format = match self.output_format {
            OutputFormat::Table if self.json.as_ref().is_some_and(|file| is_stdout(&file)) => OutputFormat::Json,
            OutputFormat::Table if self.csv.as_ref().is_some_and(|file| is_stdout(&file)) => OutputFormat::Csv,
            format => format,
        };
        match format {
            OutputFormat::Json => crate::print(&json())?,
            OutputFormat::Csv => crate::print(&csv())?,
            OutputFormat::Fio => crate::print(&(report::fio_json(results, environment) + "\n"))?,
            OutputFormat::Openmetrics => crate::print(&report::open_metrics(results))?,
            OutputFormat::Table if self.windows.as_ref().is_some_and(|file| is_stdout(&file)) => {
                crate::print(&report::windows_csv(results))?;
            }
            OutputFormat::Table => {
                let terminal = std::io::stdout().is_terminal();
                let width = if terminal { usize::from(console::Term::stdout().size().1) } else { 120 };
                crate::print(&report::table(results, width, terminal && console::colors_enabled()))?;
                crate::print(&report::windows_text(results))?;
            }
        }
        if let Some(file) = self.json.as_ref().filter(|file| !is_stdout(file)) {
            report::write_file(file, json())?;
        }
        if let Some(file) = self.csv.as_ref().filter(|file| !is_stdout(file)) {
            report::write_file(file, csv())?;
        }
        if let Some(file) = &self.parquet {
            report::write_file(file, report::parquet(results, environment, &file.display().to_string())?)?;
        }
        if let Some(file) = self.windows.as_ref().filter(|file| !is_stdout(file)) {
            if file.extension().is_some_and(|extension| extension == "parquet") {
                report::write_file(file, report::windows_parquet(results, &file.display().to_string())?)?;
            } else {
                report::write_file(file, report::windows_csv(results))?;
            }
        }
        if let Some(file) = &self.report {
            report::write_file(file, report::html(results))?;
            if !self.quiet {
                crate::print_message(&format!("wrote {}", file.display()));
            }
        }
        Ok(())
    }
}
