//! Causes of failed mounts.

use std::io;
use std::path::PathBuf;

/// The cause of a failed mount.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The path names no file in a directory.
    #[error("{0} names no file in a directory")]
    Name(PathBuf),
    /// The directory has entries.
    #[error("{0} is not empty")]
    NotEmpty(PathBuf),
    /// A file system is mounted there.
    #[error("{directory} is a mount point already, of {what}")]
    Taken {
        /// The directory.
        directory: PathBuf,
        /// Its source and type.
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
    /// The system's mount call failed.
    #[error("cannot mount at {directory}: {source}")]
    Mount {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
