//! Errors of a guest and of the monitor.

use std::io;

/// The reason why memory is not kept.
#[derive(Debug, thiserror::Error)]
pub enum VmmError {
    /// A call of the system failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The call, in words.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The monitor refused a request.
    #[error("the monitor refuses: {0}")]
    Refused(String),
    /// The monitor has closed the connection, or has never answered.
    #[error("the monitor is gone: {0}")]
    Gone(String),
    /// The monitor has said that it ends.
    #[error("the monitor ends: {0}")]
    Ends(String),
    /// The other process has ended in the middle of a request.
    #[error("the process at the other end has ended")]
    Died,
    /// The other side sent bytes that are no message of this protocol.
    #[error("{0}")]
    Protocol(String),
    /// The memory cannot be protected, and is to be.
    #[error("the memory cannot be protected through a userfaultfd: {0}; protect=best takes mprotect in its place")]
    Unprotected(String),
    /// All frames are in use.
    #[error("block {block} is in no frame of the shared memory: all {frames} frames are in use")]
    NoFrame {
        /// The block.
        block: u64,
        /// The frames of the arena.
        frames: u32,
    },
}

/// Converts the error of a system call.
pub(crate) fn cannot<E: Into<io::Error>>(doing: &str) -> impl FnOnce(E) -> VmmError + '_ {
    move |source| VmmError::System { doing: doing.to_string(), source: source.into() }
}
