//! Errors of the program: messages and exit codes.

use flashpath::expression::ExpressionError;
use flashpath::report::WriteError;
use flashpath::run::{InputFault, OpenError, RunError, RunFault};
use flashpath::workload::WorkloadError;
use flashpath_kernel::KernelError;
use flashpath_reproduce::ReproduceError;
use miette::{Diagnostic, SourceSpan};

/// The exit code if the command line or an input is wrong.
const WRONG_INPUT: u8 = 2;
/// The exit code if the operation failed.
const FAILED: u8 = 1;

/// An error that ends the program.
#[derive(Debug)]
pub enum Failure {
    /// The command line or an input is wrong.
    Input(miette::Report),
    /// The operation failed.
    Failed(miette::Report),
    /// The error has been printed already; the exit code remains.
    Quiet(u8),
}

/// An error that points into the user's text.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
struct LocatedError {
    message: String,
    #[source_code]
    source_text: String,
    #[label("here")]
    span: SourceSpan,
    #[help]
    help: String,
}

/// An error without a location.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
struct PlainError {
    message: String,
    #[help]
    help: Option<String>,
}

impl Failure {
    /// A wrong input, with the remedy.
    pub fn input(message: impl Into<String>, help: Option<String>) -> Failure {
        Failure::Input(PlainError { message: message.into(), help }.into())
    }

    /// The operation failed.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed(PlainError { message: message.into(), help: None }.into())
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

    /// The message on one line, unless it has been printed already.
    pub fn message(&self) -> Option<String> {
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
        Failure::Input(LocatedError { message, source_text, span: span.into(), help }.into())
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

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Input(InputFault::Expression(error)) => error.into(),
            RunError::Input(InputFault::Open(error)) => error.into(),
            RunError::Input(InputFault::Refused { what, help }) => Failure::input(what, help),
            RunError::Input(fault) => Failure::input(fault.to_string(), None),
            RunError::Run(fault) => Failure::failed(fault.to_string()),
        }
    }
}

/// For the library, whose runs call this program to mount and to run others.
impl From<Failure> for RunError {
    fn from(failure: Failure) -> RunError {
        match failure {
            Failure::Input(report) => {
                let help = report.help().map(|help| help.to_string());
                InputFault::Refused { what: report.to_string(), help }.into()
            }
            Failure::Failed(report) => RunFault::Machine(report.to_string()).into(),
            Failure::Quiet(code) => RunFault::Machine(format!("it ended with exit code {code}")).into(),
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
            ReproduceError::Run(error) => error.into(),
            ReproduceError::Write(error) => error.into(),
            ReproduceError::Journal(error) => error.into(),
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
                Failure::Failed(PlainError { message: error.to_string(), help: None }.into())
            }
        }
    }
}
