//! Errors of the kernel and of its tools.

use std::io;

/// The reason why a request to the kernel failed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A right, a program or a feature of the kernel is missing.
    #[error("{what}")]
    Missing {
        /// The missing thing.
        what: String,
        /// A remedy.
        help: String,
    },
    /// The request is invalid, even for root.
    #[error("{what}")]
    Invalid {
        /// The reason.
        what: String,
        /// A valid alternative.
        help: String,
    },
    /// The kernel, or a program, failed.
    #[error("cannot {doing}: {source}")]
    Failed {
        /// The failed action.
        doing: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl KernelError {
    pub(crate) fn missing(what: impl Into<String>, help: impl Into<String>) -> KernelError {
        KernelError::Missing { what: what.into(), help: help.into() }
    }
}

/// Wraps an error of the system with the failed action.
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
