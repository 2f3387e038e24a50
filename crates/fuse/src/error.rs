//! Why a mount fails.

use std::io;
use std::path::PathBuf;

/// Why it could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The place names no file in a directory.
    #[error("{0} names no file in a directory")]
    Name(PathBuf),
    /// The directory is used for something else.
    #[error("{0} is not empty")]
    NotEmpty(PathBuf),
    /// Something is mounted there.
    #[error("{directory} is a mount point already, of {what}")]
    Taken {
        /// The directory.
        directory: PathBuf,
        /// The mount that is there.
        what: String,
    },
    /// The directory cannot be used, or made.
    #[error("cannot use the directory {directory}: {source}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system does not mount it.
    #[error("cannot mount at {directory}: {source}")]
    Mount {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
