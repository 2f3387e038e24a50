//! Why a run did not end well, by whose fault it is.

use crate::device::DeviceError;
use crate::fs::FileSystemError;
use crate::fs::sfs::SfsError;
use crate::translation::TranslationError;
use crate::units::human_size;
use crate::workload::WorkloadError;

/// Why a run did not end well, on whatever path and with whatever workload.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The command line or an input is wrong: another one would do.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// What was asked for is right, and failed on its way.
    #[error(transparent)]
    Run(#[from] RunFault),
}

impl RunError {
    /// True if the command line or an input is wrong.
    pub fn is_input(&self) -> bool {
        matches!(self, RunError::Input(_))
    }
}

/// What is wrong with the command line or an input.
#[derive(Debug, thiserror::Error)]
pub enum InputFault {
    /// The workload cannot go on.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload asked for nothing at all.
    #[error("the workload {0} has no requests")]
    Empty(String),
    /// The preconditioning took all that the workload had.
    #[error(
        "the workload {0} ended while preconditioning, and nothing was left to count: precondition with less, or make the workload longer"
    )]
    Spent(String),
    /// The workload asks for more than the path exports.
    #[error("request {request} ends at byte {end}, and the path exports {exported} bytes: a drive that exports {} would do", human_size(*end as f64))]
    BeyondEnd {
        /// The number of the request, from 1.
        request: u64,
        /// The first byte behind it.
        end: u64,
        /// Bytes of the path.
        exported: u64,
    },
    /// What a file workload would make is there: its root.
    #[error("it holds {0} already, left by an earlier run or someone else's: take it away, or take another directory")]
    Occupied(&'static str),
    /// The counted part of a file workload does not find what its setup leaves.
    #[error("{0}: --only counted goes on from --only setup of the same workload, options and seed, once")]
    NotSetUp(SetupFault),
    /// The setup of a file workload leaves a file open for what is counted.
    #[error("the workload {0} keeps files open from its setup on, and cannot be run in parts")]
    Inseparable(String),
    /// The setup of a file workload alone needs more than there is.
    #[error(
        "the workload begins with {files} files of {} or more, and there is room for {room} of them: take fewer files or a larger file system",
        human_size(*bytes_each as f64)
    )]
    TooMany {
        /// Files that the setup makes at the least.
        files: u64,
        /// Bytes of each.
        bytes_each: u64,
        /// How many of them there is room for.
        room: u64,
    },
}

/// What failed on the way.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    /// The translation layer cannot go on.
    #[error(transparent)]
    Translation(#[from] TranslationError),
    /// The device cannot go on.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The volume of sfs in which a block workload runs cannot go on.
    #[error(transparent)]
    Volume(#[from] SfsError),
    /// The file system refuses an operation of a file workload.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// There is no space left for a file workload.
    #[error("{0}: the file system is full; a smaller workload or a larger file system would do")]
    Full(FileSystemError),
    /// A file is shorter than what was written.
    #[error("{path} ends at byte {found}, and {expected} bytes were written: data is lost")]
    Short {
        /// The file.
        path: String,
        /// Where it ends, as far as it was read.
        found: u64,
        /// Where what was written ends.
        expected: u64,
    },
    /// A read returned something other than the newest write.
    #[error(
        "logical page {page} returned the write with stamp {found:?}, and the newest has {expected:?}: data is lost"
    )]
    WrongData {
        /// The page, or the block of a block device.
        page: u64,
        /// The stamp of the newest write; `None` if there is none.
        expected: Option<u32>,
        /// The stamp that was returned.
        found: Option<u32>,
    },
    /// A thread cannot be had.
    #[error("cannot start thread {number}: {source}")]
    Thread {
        /// Its number, from 1.
        number: usize,
        /// What the system says.
        source: std::io::Error,
    },
    /// A program that did the work failed: which, and how.
    #[error("{0}")]
    Program(String),
    /// A sum of the ledger does not hold.
    #[error("the ledger does not add up: {0}")]
    Sum(String),
}

/// An error of a part is the fault of what it belongs to.
macro_rules! fault {
    ($($error:ty => $fault:ident,)*) => {
        $(impl From<$error> for RunError {
            fn from(error: $error) -> RunError {
                $fault::from(error).into()
            }
        })*
    };
}

fault! {
    WorkloadError => InputFault,
    TranslationError => RunFault,
    DeviceError => RunFault,
    SfsError => RunFault,
    FileSystemError => RunFault,
}

/// What is not as the setup leaves it.
#[derive(Debug, thiserror::Error)]
pub enum SetupFault {
    /// A file or directory is not there.
    #[error("{0} is missing")]
    Missing(String),
    /// A file is longer or shorter.
    #[error("{path} has {found} bytes, and the setup leaves {expected}")]
    Length {
        /// The file.
        path: String,
        /// Its length, in bytes.
        found: u64,
        /// The length that the setup gives it, in bytes.
        expected: u64,
    },
    /// A file holds something else.
    #[error("{0} does not hold what the setup writes")]
    Contents(String),
    /// Something is there that the setup does not make.
    #[error("{0} is there, and the setup does not leave it")]
    Unexpected(String),
}
