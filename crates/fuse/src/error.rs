//! Why a request or a mount fails.

use flashpath::fs::sfs::SfsError;
use fuser::Errno;
use std::io;
use std::path::PathBuf;

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The volume fails.
    #[error(transparent)]
    Volume(#[from] SfsError),
    /// The request makes no sense to a file system.
    #[error("error {}", .0.code())]
    Refused(Errno),
    /// An earlier request went wrong within the volume.
    #[error("an earlier request has broken the volume: what was not synced before is lost")]
    Broken,
    /// It is unmounted.
    #[error("the volume is unmounted")]
    Unmounted,
}

impl CallError {
    /// What the system call fails with.
    pub fn errno(&self) -> Errno {
        match self {
            CallError::Volume(error) => Errno::from_i32(error.errno().raw_os_error()),
            CallError::Refused(errno) => *errno,
            CallError::Broken | CallError::Unmounted => Errno::EIO,
        }
    }
}

impl From<Errno> for CallError {
    fn from(errno: Errno) -> CallError {
        CallError::Refused(errno)
    }
}

/// Why it could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// What is written is no file in a directory.
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
        /// What is mounted there.
        what: String,
    },
    /// The directory cannot be used, or made.
    #[error("cannot use the directory {directory}: {source}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system does not mount it.
    #[error("cannot mount at {directory}: {source}")]
    Mount {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
