//! File systems: the seams, the rules of POSIX, and the implementations.
//!
//! There are two seams. File workloads address files by path, through [`FileSystem`]. A mounted file system of this
//! program is a [`Volume`](volume::Volume), addressed by inode and name.
//!
//! | file | content |
//! |---|---|
//! | [`volume`] | the seam of a mounted file system, and the types of its calls |
//! | [`station`] | a file system in a path expression, and the operations on its volumes |
//! | [`posix`] | the rules common to all file systems, applied around a volume |
//! | `nodes` | what every file system does with its inodes: the rules of names |
//! | [`sfs`] | the log-structured file system that groups blocks by hotness |
//! | [`ext`] | a journaling file system that writes in place, compatible with ext4 |
//! | [`tree`] | a file system in memory: reference model, and measure of a front end's own cost |
//! | [`directory`] | a directory of this machine as a [`FileSystem`], and so any file system mounted here |
//! | [`in_process`] | a volume as a [`FileSystem`], without a kernel in between |
//!
//! [`kernel`] holds the stations of the running kernel's file systems. Only their options are read here.
//!
//! A path is text relative to the file system's root: names joined by `/`, none of them empty, `.` or `..`. An
//! acknowledged change can be lost in a power cut until [`FileSystem::sync_file`] or [`FileSystem::sync`] returns.

pub mod directory;
pub mod ext;
pub mod in_process;
pub mod kernel;
mod nodes;
pub mod posix;
pub mod sfs;
pub mod station;
pub mod tree;
pub mod volume;

use crate::task::Task;
use std::io;

/// Files and directories under one root, shared by threads. Each call names its task. In simulated time, a call begins
/// at its task's clock and advances that clock to the time of its answer.
pub trait FileSystem: Send + Sync {
    /// An open file. [`close`](FileSystem::close) closes it.
    type File: Send;

    /// Makes a directory. Its parent must exist, and its name must be free.
    fn make_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// Removes a directory, which must be empty.
    fn remove_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// Makes an empty file and opens it for reading and writing. Its name must be free.
    fn create(&self, task: &Task<'_>, path: &str) -> Result<Self::File, FileSystemError>;

    /// Opens an existing file for reading and writing.
    fn open(&self, task: &Task<'_>, path: &str) -> Result<Self::File, FileSystemError>;

    /// Closes a file. Its data need not be durable.
    fn close(&self, task: &Task<'_>, file: Self::File) -> Result<(), FileSystemError>;

    /// Reads from `offset` into `bytes` and returns the number of bytes read: fewer than requested only at the end of
    /// the file.
    fn read_at(
        &self,
        task: &Task<'_>,
        file: &Self::File,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError>;

    /// Writes all of `bytes` at `offset`. The file grows as needed.
    fn write_at(&self, task: &Task<'_>, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<(), FileSystemError>;

    /// Makes a file durable: data, size and all that a reader needs; with [`Durable::All`] also its times.
    fn sync_file(&self, task: &Task<'_>, file: &Self::File, what: Durable) -> Result<(), FileSystemError>;

    /// Puts a file in order: what it has now is there after a crash if anything is that is changed after this has returned
    /// (fbarrier; with [`Durable::Data`] fdatabarrier). By default it is durable, which promises more.
    fn order_file(&self, task: &Task<'_>, file: &Self::File, what: Durable) -> Result<(), FileSystemError> {
        self.sync_file(task, file, what)
    }

    /// Truncates a file to `length` bytes, or extends it with zeros.
    fn truncate(&self, task: &Task<'_>, file: &Self::File, length: u64) -> Result<(), FileSystemError>;

    /// Reserves `length` bytes from `offset`, and extends the file to their end. Unwritten bytes read as zeros.
    fn preallocate(&self, task: &Task<'_>, file: &Self::File, offset: u64, length: u64) -> Result<(), FileSystemError>;

    /// Punches a hole of `length` bytes at `offset`: the bytes read as zeros and their space is freed. The file keeps
    /// its length.
    fn discard(&self, task: &Task<'_>, file: &Self::File, offset: u64, length: u64) -> Result<(), FileSystemError>;

    /// Removes a file's name.
    fn unlink(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// Renames a file or directory. An existing file of the new name is replaced.
    fn rename(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError>;

    /// Gives a file another name, which must be free.
    fn link(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError>;

    /// Makes a symbolic link. Its name must be free.
    fn symlink(&self, task: &Task<'_>, path: &str, target: &str) -> Result<(), FileSystemError>;

    /// Makes a directory durable.
    fn sync_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// The length of a file, in bytes.
    fn length(&self, task: &Task<'_>, path: &str) -> Result<u64, FileSystemError>;

    /// Makes everything durable.
    fn sync(&self, task: &Task<'_>) -> Result<(), FileSystemError>;

    /// The space that is left, if known.
    fn room(&self) -> Option<Room> {
        None
    }
}

/// Free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of empty files; `None` if there is no limit.
    pub files: Option<u64>,
    /// Bytes of file data.
    pub bytes: u64,
}

impl Room {
    /// The maximum number of files of `bytes_each` that fit.
    pub fn files_of(&self, bytes_each: u64) -> u64 {
        let in_bytes = self.bytes.checked_div(bytes_each).unwrap_or(u64::MAX);
        self.files.map_or(in_bytes, |files| files.min(in_bytes))
    }
}

/// The part of a file that a sync makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The data, and the metadata needed to read it (fdatasync).
    Data,
    /// The data and all metadata (fsync).
    All,
}

/// A failed operation: its name, its path, and the system's error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}")]
pub struct FileSystemError {
    /// The operation, such as `create`.
    pub operation: &'static str,
    /// The path as given, relative to the root.
    pub path: String,
    /// The system's error.
    pub source: io::Error,
}

impl FileSystemError {
    /// True if no space is left, or no name can be added.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// True if the name exists.
    pub fn is_name_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}
