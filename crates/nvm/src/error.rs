//! Errors of making and opening a region.

use std::io;

/// The reason why a region cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The system reported an error.
    #[error("cannot {doing} {name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// The failed action.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process, or another region of this one, has it open.
    #[error("{name} is in use: another process, or another region of this one, has it open")]
    InUse {
        /// The file.
        name: String,
    },
    /// The file exists, and would be overwritten.
    #[error("{name} exists already, with {bytes} bytes")]
    Exists {
        /// The file.
        name: String,
        /// Its length.
        bytes: u64,
    },
    /// The file is smaller than the region.
    #[error("{name} has {found} bytes, and the region takes {needed} at least")]
    TooSmall {
        /// The file.
        name: String,
        /// Its length.
        found: u64,
        /// The length that it must have.
        needed: u64,
    },
    /// It is neither a regular file nor a device of memory.
    #[error("{name} is {kind}: a region is a regular file, or a device of memory such as /dev/dax0.0")]
    Kind {
        /// The file.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
}

impl RegionError {
    /// Wraps an error of the system with the failed action.
    pub(crate) fn io<E: Into<io::Error>>(name: &str, doing: &'static str) -> impl FnOnce(E) -> RegionError {
        let name = name.to_string();
        move |source| RegionError::Io { name, doing, source: source.into() }
    }
}
