//! How the program ends when it does not end well: what it says, and its exit code.

use flashpath::expression::ExpressionError;
use flashpath::report::WriteError;
use flashpath::run::{OpenError, RunError};
use flashpath::workload::WorkloadError;
use flashpath_kernel::KernelError;
use flashpath_reproduce::ReproduceError;
use miette::{Diagnostic, SourceSpan};

/// The exit code where the command line or an input is wrong.
const WRONG_INPUT: u8 = 2;
/// The exit code where what was asked for is right, and failed on its way.
const FAILED: u8 = 1;

/// Why the program cannot go on.
pub enum Failure {
    /// The command line or an input is wrong.
    Input(miette::Report),
    /// What was asked for is right, and failed on its way.
    Failed(miette::Report),
    /// All has been said already: only the exit code is left.
    Quiet(u8),
}

/// An error that points into what the user wrote.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
struct Pointed {
    message: String,
    #[source_code]
    source_text: String,
    #[label("here")]
    span: SourceSpan,
    #[help]
    help: String,
}

/// An error without a place.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
struct Plain {
    message: String,
    #[help]
    help: Option<String>,
}

impl Failure {
    /// An input that is wrong, and what would be right.
    pub fn input(message: impl Into<String>, help: Option<String>) -> Failure {
        Failure::Input(Plain { message: message.into(), help }.into())
    }

    /// What was asked for is right, and failed on its way.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed(Plain { message: message.into(), help: None }.into())
    }

    /// A file that cannot be written.
    pub fn write(name: &str, error: std::io::Error) -> Failure {
        Failure::input(format!("cannot write {name}: {error}"), None)
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => WRONG_INPUT,
            Failure::Failed(_) => FAILED,
            Failure::Quiet(code) => *code,
        }
    }

    /// What it says, on one line, if all has not been said already.
    pub fn words(&self) -> Option<String> {
        match self {
            Failure::Input(report) | Failure::Failed(report) => Some(report.to_string()),
            Failure::Quiet(_) => None,
        }
    }
}

/// The exit code of a run that failed.
pub fn exit_code(error: &RunError) -> u8 {
    match error {
        RunError::Input(_) => WRONG_INPUT,
        RunError::Run(_) => FAILED,
    }
}

impl From<ExpressionError> for Failure {
    fn from(error: ExpressionError) -> Failure {
        let ExpressionError { source_text, span, message, help } = error;
        Failure::Input(Pointed { message, source_text, span: span.into(), help }.into())
    }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Failure {
        Failure::input(error.to_string(), None)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Path(error) => error.into(),
            error => Failure::input(error.to_string(), None),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        Failure::input(error.to_string(), None)
    }
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Failure {
        match error {
            ReproduceError::Input { message, help } => Failure::input(message, help),
            ReproduceError::Expression(error) => error.into(),
            ReproduceError::Workload(error) => error.into(),
            ReproduceError::Open(error) => error.into(),
            ReproduceError::Write(error) => error.into(),
            ReproduceError::Failed(message) => Failure::failed(message),
            ReproduceError::Capture(code) => Failure::Quiet(code),
            ReproduceError::Stopped => Failure::Quiet(130),
        }
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Failure {
        match error {
            KernelError::Missing { what, help } | KernelError::Invalid { what, help } => {
                Failure::input(what, Some(help))
            }
            error @ KernelError::Failed { .. } => {
                Failure::Failed(Plain { message: error.to_string(), help: None }.into())
            }
        }
    }
}
