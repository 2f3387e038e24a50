//! What names data: where files live.
//!
//! Two seams. File workloads run by paths, on whatever is a [`FileSystem`]; a mounted file system of this program is a
//! [`Volume`](volume::Volume), by inode and name.
//!
//! | file | what it is |
//! |---|---|
//! | [`volume`] | the seam of a mounted file system, and the words of its calls |
//! | [`station`] | a file system as a path names it, and what can be done with its volumes |
//! | [`posix`] | the rules that are every file system's, around a volume |
//! | [`sfs`] | the log-structured file system that groups blocks by hotness |
//! | [`ext`] | a journaling file system that writes in place, compatible with ext4 |
//! | [`tree`] | a file system in memory: the reference model, and a front end's own cost |
//! | [`directory`] | a real directory as a [`FileSystem`], and so any file system that this machine has mounted |
//! | [`in_process`] | a volume as a [`FileSystem`], without a kernel between |
//!
//! [`kernel`] are the stations of the running kernel's file systems, of which only the options are read here.
//!
//! A path is text relative to the file system's root: names joined by `/`, none of them empty, `.` or `..`. Whatever is
//! acknowledged may still be lost in a cut of power until [`FileSystem::sync_file`] or [`FileSystem::sync`] has
//! returned.

pub mod directory;
pub mod ext;
pub mod in_process;
pub mod kernel;
pub mod posix;
pub mod sfs;
pub mod station;
pub mod tree;
pub mod volume;

use crate::task::Task;
use std::io;

/// Files and directories under one root. Threads may share it: each call says for which task it is made, and in simulated
/// time begins when that task's clock stands, and moves it to when the call is answered.
pub trait FileSystem: Send + Sync {
    /// An open file. It is given back with [`close`](FileSystem::close).
    type File: Send;

    /// Makes a directory. Its parent must be there, and nothing of its name.
    fn make_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// Removes a directory, which must be empty.
    fn remove_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// Makes an empty file, and opens it to be read and written. Nothing of its name may be there.
    fn create(&self, task: &Task<'_>, path: &str) -> Result<Self::File, FileSystemError>;

    /// Opens a file that is there, to be read and written.
    fn open(&self, task: &Task<'_>, path: &str) -> Result<Self::File, FileSystemError>;

    /// Closes a file. What was written need not be durable.
    fn close(&self, task: &Task<'_>, file: Self::File) -> Result<(), FileSystemError>;

    /// Reads from `offset` into `bytes`, and says how much: less than asked for only at the end of the file.
    fn read_at(
        &self,
        task: &Task<'_>,
        file: &Self::File,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError>;

    /// Writes all of `bytes` from `offset` on. The file grows where it must.
    fn write_at(&self, task: &Task<'_>, file: &Self::File, offset: u64, bytes: &[u8]) -> Result<(), FileSystemError>;

    /// Makes a file durable: its data, its size and whatever else a reader needs; with [`Durable::All`] its times too.
    fn sync_file(&self, task: &Task<'_>, file: &Self::File, what: Durable) -> Result<(), FileSystemError>;

    /// Cuts a file off at `length` bytes, or lengthens it by zeros.
    fn truncate(&self, task: &Task<'_>, file: &Self::File, length: u64) -> Result<(), FileSystemError>;

    /// Reserves space from `offset` on, and lengthens the file to its end where it is shorter. What was not written
    /// reads as zeros.
    fn preallocate(&self, task: &Task<'_>, file: &Self::File, offset: u64, length: u64) -> Result<(), FileSystemError>;

    /// Gives the space of these bytes back, which read as zeros from then on. The length of the file stays.
    fn discard(&self, task: &Task<'_>, file: &Self::File, offset: u64, length: u64) -> Result<(), FileSystemError>;

    /// Takes a file's name away.
    fn unlink(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError>;

    /// Renames a file or directory. A file that has the new name is replaced.
    fn rename(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError>;

    /// The length of a file, in bytes.
    fn length(&self, task: &Task<'_>, path: &str) -> Result<u64, FileSystemError>;

    /// Makes everything durable.
    fn sync(&self, task: &Task<'_>) -> Result<(), FileSystemError>;

    /// How much there is room for, if that is known.
    fn room(&self) -> Option<Room> {
        None
    }
}

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Files, if nothing is written to them; `None` if there is no such limit.
    pub files: Option<u64>,
    /// Bytes of files.
    pub bytes: u64,
}

impl Room {
    /// How many files of `bytes_each` there is room for at the most.
    pub fn files_of(&self, bytes_each: u64) -> u64 {
        let in_bytes = self.bytes.checked_div(bytes_each).unwrap_or(u64::MAX);
        self.files.map_or(in_bytes, |files| files.min(in_bytes))
    }
}

/// How much of a file is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The data, and what is needed to read it (fdatasync).
    Data,
    /// The data and all that is known of the file (fsync).
    All,
}

/// An operation that failed: which, on what, and what the system says.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}")]
pub struct FileSystemError {
    /// What was asked for, such as `create`.
    pub operation: &'static str,
    /// The path, as it was given, behind the root.
    pub path: String,
    /// What the system says.
    pub source: io::Error,
}

impl FileSystemError {
    /// Whether there is no space left, or no name can be added any more.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether something of the name is there already.
    pub fn is_there_already(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}
