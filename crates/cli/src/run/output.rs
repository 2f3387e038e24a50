//! The results of a command: printed, and written to the requested files.

use super::Run;
use crate::failure::{Failure, exit_code};
use crate::workload::Source;
use flashpath::report::{self, RunResult};
use flashpath::run::{Outcome, RunError};
use std::io::IsTerminal;
use std::path::Path;

/// The name of a file that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

impl Run {
    /// Checks the output files before a run that may take hours.
    pub fn check_outputs(&self, source: &Source) -> Result<(), Failure> {
        let json = self.json.as_deref().filter(|file| *file != Path::new(STANDARD_OUTPUT));
        let report = self.report.as_deref();
        for file in [json, report].into_iter().flatten() {
            report::check_writable(file)?;
            if source.file().is_some_and(|workload| crate::is_same_file(workload, file)) {
                let message = format!("{} is the workload's file: the results would replace it", file.display());
                return Err(Failure::input(message, Some("choose another name for the results".to_string())));
            }
        }
        if let (Some(json), Some(report)) = (json, report)
            && (json == report && !report::is_special(json) || crate::is_same_file(json, report))
        {
            let message = format!("--json and --report both write {}", json.display());
            return Err(Failure::input(message, Some("choose a name for each".to_string())));
        }
        Ok(())
    }

    /// Prints the results, writes the files, and returns the worst failure.
    pub fn print_results(&self, outcomes: Vec<Outcome>) -> Result<(), Failure> {
        let interrupted = outcomes.iter().any(|outcome| outcome.result.interrupted);
        let (results, failures): (Vec<_>, Vec<_>) =
            outcomes.into_iter().map(|outcome| (outcome.result, outcome.failure)).unzip();
        // What a directory refused has no results.
        let is_refused = self.directory.is_some() && failures.iter().flatten().any(RunError::is_input);
        if !is_refused {
            self.print_tables(&results)?;
        }
        self.print_warnings(&results);
        for (result, failure) in results.iter().zip(&failures) {
            if let Some(error) = failure {
                crate::print_message(&format!("error: {}: {error}", result.path));
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
                let (path, warning) = (report::visible(&result.path), report::visible(warning));
                crate::print_message(&format!("warning: {path}: {warning}"));
            }
        }
    }

    /// Prints the results in all requested forms.
    fn print_tables(&self, results: &[RunResult]) -> Result<(), Failure> {
        let on_stdout = self.json.as_deref() == Some(Path::new(STANDARD_OUTPUT));
        if on_stdout {
            crate::print(&report::json(results))?;
        } else {
            let terminal = std::io::stdout().is_terminal();
            let width = if terminal { usize::from(console::Term::stdout().size().1) } else { 120 };
            crate::print(&report::table(results, width, terminal && console::colors_enabled()))?;
        }
        if let Some(file) = self.json.as_ref().filter(|_| !on_stdout) {
            report::write_file(file, &report::json(results))?;
        }
        if let Some(file) = &self.report {
            report::write_file(file, &report::html(results))?;
            if !self.quiet {
                crate::print_message(&format!("wrote {}", file.display()));
            }
        }
        Ok(())
    }
}
