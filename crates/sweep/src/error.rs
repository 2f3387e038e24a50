//! Errors of a sweep.

use flashpath::expression::ExpressionError;
use flashpath::run::RunError;
use flashpath::workload::WorkloadError;
use std::path::Path;

/// The reason why a sweep cannot begin or go on. A run that fails is none: it is a row of the table.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A part of the description is wrong.
    #[error("{message}")]
    Input {
        /// The fault.
        message: String,
        /// The remedy.
        help: String,
    },
    /// A path, a workload or an option is wrong at a place in its text.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A run does not fit its place.
    #[error("{error}; in {run}")]
    Run {
        /// The fault.
        error: Box<RunError>,
        /// The run.
        run: String,
    },
    /// A workload's file cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The journal cannot be used.
    #[error("{file}: {fault}")]
    Journal {
        /// Its file.
        file: String,
        /// The fault.
        fault: JournalFault,
    },
}

/// The reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalFault {
    /// It cannot be read or written.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// The file is something else.
    #[error("not a journal of a sweep: it would be overwritten. Remove it, or take another name with --journal")]
    Foreign,
    /// Another process writes it.
    #[error("another sweep is writing it")]
    Locked,
    /// It is that of another sweep.
    #[error(
        "it has the rows of another sweep: {of}. Repeat that one, remove the file, or take another name with --journal"
    )]
    OtherSweep {
        /// The command of that sweep.
        of: String,
    },
    /// Another program wrote it.
    #[error(
        "its rows are of {of}, and this is {this}: rows of two versions are not compared. Remove the file, or take another name with --journal"
    )]
    OtherVersion {
        /// The program that wrote it.
        of: String,
        /// This program.
        this: String,
    },
}

impl SweepError {
    /// A wrong input, with the remedy.
    pub fn input(message: impl Into<String>, help: impl Into<String>) -> SweepError {
        SweepError::Input { message: message.into(), help: help.into() }
    }

    pub(crate) fn journal(file: &Path, fault: impl Into<JournalFault>) -> SweepError {
        SweepError::Journal { file: file.display().to_string(), fault: fault.into() }
    }
}
