//! Exceptions: each says whether the input is wrong or the run failed, and points at the wrong characters.

use flashpath::expression::ExpressionError;
use flashpath::run::{InputFault, OpenError, RunError};
use flashpath::workload::WorkloadError;
use flashpath_sweep::{JournalFault, SweepError};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

pyo3::import_exception!(flashpath._errors, InputError);

/// A wrong input, with the remedy.
pub fn input(message: impl Into<String>, help: Option<String>) -> PyErr {
    InputError::new_err((message.into(), help))
}

/// An error that points into the user's text. Python counts characters.
pub fn expression(error: ExpressionError) -> PyErr {
    let ExpressionError { source_text, span, message, help } = error;
    let at = |byte: usize| source_text[..byte].chars().count();
    let span = (at(span.start), at(span.end));
    InputError::new_err((message, Some(help), Some(source_text), Some(span)))
}

/// The exception of a job that cannot be run.
pub fn refused(error: RunError) -> PyErr {
    match error {
        RunError::Input(InputFault::Expression(error) | InputFault::Open(OpenError::Path(error))) => expression(error),
        RunError::Input(InputFault::Refused { what, help }) => input(what, help),
        error => input(error.to_string(), None),
    }
}

/// The exception of a trace that cannot be read.
pub fn workload(error: WorkloadError) -> PyErr {
    input(error.to_string(), None)
}

/// The exception of a sweep that cannot begin or go on.
pub fn sweep(error: SweepError) -> PyErr {
    match error {
        SweepError::Input { message, help } => input(message, Some(help)),
        SweepError::Expression(error) => expression(error),
        SweepError::Workload(error) => workload(error),
        SweepError::Run { error, run } => match *error {
            RunError::Input(InputFault::Expression(error)) => expression(error),
            RunError::Input(InputFault::Refused { what, help }) => input(format!("{what}; in {run}"), help),
            error => input(format!("{error}; in {run}"), None),
        },
        SweepError::Journal { file, fault: JournalFault::System(error) } => {
            PyOSError::new_err((error.raw_os_error().unwrap_or(0), error.to_string(), file))
        }
        error @ SweepError::Journal { .. } => input(error.to_string(), None),
    }
}
