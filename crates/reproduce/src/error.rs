//! Errors of the experiments.

use flashpath::expression::ExpressionError;
use flashpath::report::WriteError;
use flashpath::run::{OpenError, RunError};
use flashpath::workload::WorkloadError;
use flashpath_sweep::SweepError;

/// An error of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The command line or an input is wrong.
    #[error("{message}")]
    Input {
        /// The fault.
        message: String,
        /// The remedy.
        help: Option<String>,
    },
    /// A path or a workload cannot be read.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A workload cannot be opened.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A path cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A run could not begin.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The journal of an experiment cannot be used.
    #[error(transparent)]
    Journal(#[from] SweepError),
    /// An experiment failed.
    #[error("{0}")]
    Failed(String),
    /// A capture ended with this exit code, and printed the reason on standard error.
    #[error("a capture ended with exit code {0}")]
    Capture(u8),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

impl ReproduceError {
    pub(crate) fn input(message: impl Into<String>, help: Option<String>) -> ReproduceError {
        ReproduceError::Input { message: message.into(), help }
    }

    pub(crate) fn failed(message: impl Into<String>) -> ReproduceError {
        ReproduceError::Failed(message.into())
    }
}
