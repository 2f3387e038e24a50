//! Errors of a run, by their fault: the input's, such as a path that cannot be opened, or the run's.

use super::threads::ThreadsFault;
use crate::device::DeviceError;
use crate::device::station::StationError;
use crate::expression::ExpressionError;
use crate::fs::FileSystemError;
use crate::fs::station::VolumeFault;
use crate::fs::volume::VolumeError;
use crate::report::WriteError;
use crate::translation::TranslationError;
use crate::units::human_size;
use crate::workload::WorkloadError;

/// The reason why a run failed, on any path and with any workload.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The command line or an input is invalid.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// The input is valid, but the run failed.
    #[error(transparent)]
    Run(#[from] RunFault),
}

impl RunError {
    /// The first unit that could not be read, if that is why a request failed: the run goes on.
    pub(super) fn unreadable_unit(&self) -> Option<u64> {
        match self {
            RunError::Run(RunFault::Translation(TranslationError::Uncorrectable { page })) => Some((*page).into()),
            RunError::Run(RunFault::Device(DeviceError::Uncorrectable { first, .. })) => Some(first.0),
            _ => None,
        }
    }

    /// True if the command line or an input is invalid.
    pub fn is_input(&self) -> bool {
        matches!(self, RunError::Input(_))
    }
}

/// An invalid command line or input.
#[derive(Debug, thiserror::Error)]
pub enum InputFault {
    /// The text of a path or a workload is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The path cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The work, or an option, does not fit its place or this machine.
    #[error("{what}")]
    Refused {
        /// The reason.
        what: String,
        /// The remedy, if it is not in the reason.
        help: Option<String>,
    },
    /// The workload failed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload has no requests.
    #[error("the workload {0} has no requests")]
    Empty(String),
    /// The workload ended during preconditioning.
    #[error(
        "the workload {0} ended while preconditioning, and nothing was left to count: precondition with less, or make the workload longer"
    )]
    Spent(String),
    /// A request exceeds the exported space.
    #[error("request {request} ends at byte {end}, and the path exports {exported} bytes: take a drive that exports {}", human_size(*end as f64))]
    BeyondEnd {
        /// The number of the request, from 1.
        request: u64,
        /// The end of the request, in bytes.
        end: u64,
        /// The exported bytes.
        exported: u64,
    },
    /// The root directory of the file workload exists already.
    #[error("it holds {0} already, left by an earlier run or by others: remove it, or take another directory")]
    Occupied(&'static str),
    /// The files of the setup are missing or changed.
    #[error("{0}: --only counted continues --only setup of the same workload, options and seed, once")]
    NotSetUp(SetupFault),
    /// The setup keeps a file open for the counted part.
    #[error("the workload {0} keeps files open from its setup on, and cannot be run in parts")]
    Inseparable(String),
    /// The files of the setup do not fit.
    #[error(
        "the workload begins with {files} files of {} or more, and there is room for {room} of them: take fewer files or a larger file system",
        human_size(*bytes_each as f64)
    )]
    TooMany {
        /// The minimum number of files that the setup makes.
        files: u64,
        /// Bytes of each file.
        bytes_each: u64,
        /// The number of files that fit.
        room: u64,
    },
}

/// The reason why a path cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] ExpressionError),
    /// A station cannot be opened or made.
    #[error(transparent)]
    Station(StationError),
    /// The volume of a file system cannot be made or opened.
    #[error("{path}: {fault}")]
    FileSystem {
        /// The path.
        path: String,
        /// The fault.
        #[source]
        fault: VolumeFault,
    },
    /// The top station of a path does not offer what the run needs.
    #[error("{path}: {what}")]
    Unfit {
        /// The path.
        path: String,
        /// The remedy.
        what: String,
    },
    /// The top station is not a file system of this program.
    #[error("{0} has no file system of this program on top: write sfs/ before it")]
    NoFileSystem(String),
    /// The path has no volume that could be made, checked or inspected.
    #[error("{path} names no volume on images: {what}")]
    NoVolume {
        /// The path.
        path: String,
        /// The reason.
        what: String,
    },
    /// A file system of the kernel cannot be simulated.
    #[error("{0} is the running kernel's: a path with it on top is run on this machine, and cannot be simulated")]
    NeedsKernel(String),
}

/// A failure during the run.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    /// The log of requests cannot be written.
    #[error(transparent)]
    Log(WriteError),
    /// The translation layer failed.
    #[error(transparent)]
    Translation(#[from] TranslationError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The volume below a block workload failed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The file system rejected an operation of a file workload.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// The file system is full.
    #[error("{0}: the file system is full; take a smaller workload or a larger file system")]
    Full(FileSystemError),
    /// A file is shorter than its written length.
    #[error("{path} ends at byte {found}, and {expected} bytes were written: data is lost")]
    Short {
        /// The file.
        path: String,
        /// Its end, in bytes.
        found: u64,
        /// The written length, in bytes.
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
    /// A thread of a workload with several failed.
    #[error("thread {number}: {fault}")]
    InThread {
        /// Its number, from 1.
        number: u32,
        /// The fault.
        fault: Box<RunFault>,
    },
    /// A thread could not be started.
    #[error("cannot start thread {number}: {source}")]
    Thread {
        /// Its number, from 1.
        number: usize,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The threads of a simulated run did not come to their end.
    #[error(transparent)]
    Threads(#[from] ThreadsFault),
    /// A program that did the work failed: its name and error.
    #[error("{0}")]
    Program(String),
    /// A step of this machine failed, such as a mount.
    #[error("{0}")]
    Machine(String),
    /// A sum of the ledger does not hold.
    #[error("the ledger does not add up: {0}")]
    Sum(String),
}

/// Converts the error of a part into the fault that it belongs to.
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
    ExpressionError => InputFault,
    OpenError => InputFault,
    WorkloadError => InputFault,
    TranslationError => RunFault,
    DeviceError => RunFault,
    VolumeError => RunFault,
    FileSystemError => RunFault,
    ThreadsFault => RunFault,
}

/// A difference from the state after the setup.
#[derive(Debug, thiserror::Error)]
pub enum SetupFault {
    /// A file or directory is missing.
    #[error("{0} is missing")]
    Missing(String),
    /// The length of a file differs.
    #[error("{path} has {found} bytes, and the setup leaves {expected}")]
    Length {
        /// The file.
        path: String,
        /// Its length, in bytes.
        found: u64,
        /// The length after the setup, in bytes.
        expected: u64,
    },
    /// The contents of a file differ.
    #[error("{0} does not hold what the setup writes")]
    Contents(String),
    /// An additional file or directory exists.
    #[error("{0} is there, and the setup does not leave it")]
    Unexpected(String),
}
