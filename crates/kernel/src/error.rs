//! Why the kernel did not do what was asked.

use std::io;

/// Why the kernel did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A right, a program or a feature of the kernel is not there.
    #[error("{what}")]
    Missing {
        /// What is not there.
        what: String,
        /// What would help.
        help: String,
    },
    /// What was asked for cannot be, whoever asks.
    #[error("{what}")]
    Unfit {
        /// Why.
        what: String,
        /// What would do.
        help: String,
    },
    /// The kernel, or a program, failed on the way.
    #[error("cannot {doing}: {source}")]
    Failed {
        /// What was being done.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
}

impl KernelError {
    pub(crate) fn missing(what: impl Into<String>, help: impl Into<String>) -> KernelError {
        KernelError::Missing { what: what.into(), help: help.into() }
    }
}

/// Turns what the system says into an error that says what was being done.
pub(crate) fn failed<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> KernelError {
    let doing = doing.into();
    move |source| {
        let source = source.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            let help = "run it as root, in a container that may do so (CAP_SYS_ADMIN)";
            return KernelError::missing(format!("the right to {doing} is missing: {source}"), help);
        }
        KernelError::Failed { doing, source }
    }
}
