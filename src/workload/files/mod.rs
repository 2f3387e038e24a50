//! File workloads: operations of programs on a file system, written as a name and options, such as
//! `varmail:files=10000,threads=4`.
//!
//! | file | what it is |
//! |---|---|
//! | `kinds` | the names and options |
//! | [`contents`] | the bytes of files |
//! | `sync_call` | the call by which a file is synced |
//! | `draws` | random sizes: log-normal and gamma |
//! | `one_file` | `seq_write`, `rnd_write` |
//! | `varmail`, `tokubench`, `postmark`, `dbench` | the benchmarks of these names |
//! | `source_tree` | the tree of the next two |
//! | `untar`, `compile` | a source tree unpacked, and built |
//! | [`recorded`] | the calls to a mounted volume, recorded |
//!
//! A workload has a [`Lane`] for each thread, and [`Stage`]s that all lanes go through together. A lane emits
//! [`FileOperation`]s without a file system: it tracks the existing files and their lengths itself. Lanes share no file
//! that any of them changes, so that the result does not depend on their order. The same expression and seed give the
//! same operations on every machine.
//!
//! A workload creates files under the one name [`FileWorkload::root`] only.

mod compile;
pub mod contents;
mod dbench;
mod draws;
mod kinds;
mod one_file;
mod postmark;
pub mod recorded;
mod source_tree;
mod sync_call;
mod tokubench;
mod untar;
mod varmail;

use super::WorkloadError;
use crate::expression::{ExpressionError, Kind, Settings, Term};
use std::ops::Range;

/// The number of a file or directory. It is the same in all lanes of a workload; [`Lane::write_path`] gives the path.
pub type Name = u64;

/// The root directory of the workload.
pub const ROOT: Name = 0;

/// An operation on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// Creates a directory.
    MakeDirectory(Name),
    /// Creates an empty file and opens it. The name is free.
    Create(Name),
    /// Opens an existing file.
    Open(Name),
    /// Gets a file's length.
    Stat(Name),
    /// Reads from an open file, within its length.
    Read {
        /// The file.
        file: Name,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Writes the bytes of [`contents::fill`] to an open file.
    Write {
        /// The file.
        file: Name,
        /// The first byte; the file's length for an append.
        offset: u64,
        /// The number of bytes.
        length: u64,
        /// The version of the bytes, which differs from earlier writes of them.
        version: u32,
    },
    /// Makes an open file durable (fsync).
    Fsync(Name),
    /// Makes the data of an open file durable (fdatasync).
    Fdatasync(Name),
    /// Puts an open file in order before all that follows, durable or not (fbarrier).
    Fbarrier(Name),
    /// Puts the data of an open file in order before all that follows, durable or not (fdatabarrier).
    Fdatabarrier(Name),
    /// Closes an open file.
    Close(Name),
    /// Removes an empty directory.
    RemoveDirectory(Name),
    /// Makes a directory durable.
    SyncDirectory(Name),
    /// Gives a file another name.
    Link {
        /// A name that it has.
        from: Name,
        /// The new name, which is free.
        to: Name,
    },
    /// Makes a symbolic link. Its target leads nowhere.
    Symlink {
        /// The name, which is free.
        name: Name,
        /// The bytes of the target.
        length: u64,
    },
    /// Sets the length of an open file.
    Truncate {
        /// The file.
        file: Name,
        /// The number of bytes.
        length: u64,
    },
    /// Waits, without a call: it is not counted.
    Idle {
        /// Nanoseconds.
        ns: u64,
    },
    /// Removes the name of a file.
    Unlink(Name),
    /// Renames a closed file, replacing a file at the new name.
    Rename {
        /// The old name.
        from: Name,
        /// The new name.
        to: Name,
    },
    /// Reserves the first bytes of an open file.
    Preallocate {
        /// The file.
        file: Name,
        /// The number of bytes.
        length: u64,
    },
    /// Frees the space of some bytes of an open file.
    Discard {
        /// The file.
        file: Name,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Makes everything durable.
    Sync,
}

/// A phase of a workload. It begins when all lanes have ended the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The name in reports.
    pub name: &'static str,
    /// True if it is counted; false if it prepares the counted stages.
    pub counted: bool,
}

/// The least that a setup creates. A file system too small for it is refused before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The number of files that exist at once.
    pub files: u64,
    /// The bytes of each.
    pub bytes_each: u64,
}

/// The operations of one thread.
pub trait Lane: Send {
    /// Appends the next operations of a stage, such as those of one transaction; appends nothing and returns false when
    /// the lane has ended the stage. Stages are numbered from 0 and called in order.
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError>;

    /// Appends the path of a name to `path`. This lane has emitted the name.
    fn write_path(&self, name: Name, path: &mut String);

    /// The share of a stage emitted so far, from 0 to 1, if known.
    fn progress(&self, _stage: usize) -> Option<f64> {
        None
    }

    /// The number of rejected lines of a trace so far.
    fn rejected(&self) -> u64 {
        0
    }

    /// Warnings about the input. Call it at the end.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A workload for a file system.
pub struct FileWorkload {
    /// The name in reports.
    pub name: String,
    /// The one name in the root of the file system under which the workload works.
    pub root: &'static str,
    /// The seed of the written bytes: see [`contents::fill`].
    pub seed: u64,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The least that the uncounted stages create, if known.
    pub setup: Setup,
    /// The lanes, at least one.
    pub lanes: Vec<Box<dyn Lane>>,
}

/// All file workloads with their options.
pub fn kinds() -> Vec<&'static Kind> {
    kinds::ROWS.iter().map(|row| row.kind).collect()
}

/// The file workload that `term` describes.
///
/// Errors point at the option that is unknown, has an invalid value, or contradicts another.
pub fn file_workload(term: &Term, seed: u64) -> Result<FileWorkload, ExpressionError> {
    let kind = term.find("file workload", &kinds())?;
    let row = kinds::ROWS.iter().find(|row| std::ptr::eq(row.kind, kind)).expect("it is one of them");
    let settings = term.settle(kind)?;
    let (stages, lanes) = (row.lanes)(&settings, seed)?;
    let (name, root, stages, setup) = (term.as_written(), kind.name, stages.to_vec(), (row.setup)(&settings));
    let mut workload = FileWorkload { name, root, seed, stages, setup, lanes };
    if settings.switch("sync") {
        workload.sync_at_the_end();
    }
    Ok(workload)
}

/// The stages and lanes of a workload.
type Parts = (&'static [Stage], Vec<Box<dyn Lane>>);

impl FileWorkload {
    /// Adds a last stage that syncs the file system.
    fn sync_at_the_end(&mut self) {
        let stage = self.stages.len();
        self.stages.push(Stage { name: "sync", counted: true });
        self.lanes = std::mem::take(&mut self.lanes)
            .into_iter()
            .enumerate()
            .map(|(number, lane)| Box::new(Synced { lane, stage, is_left: number == 0 }) as Box<dyn Lane>)
            .collect();
    }
}

/// A lane with an additional last stage, in which the first lane syncs the file system.
struct Synced {
    lane: Box<dyn Lane>,
    stage: usize,
    is_left: bool,
}

impl Lane for Synced {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        if stage != self.stage {
            return self.lane.step(stage, operations);
        }
        if self.is_left {
            operations.push(FileOperation::Sync);
        }
        Ok(std::mem::take(&mut self.is_left))
    }

    fn write_path(&self, name: Name, path: &mut String) {
        self.lane.write_path(name, path);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        if stage == self.stage { None } else { self.lane.progress(stage) }
    }
}

/// The share of `0..all` of lane number `lane` of `lanes`: shares differ by one at most.
fn share_of(all: u64, lane: u64, lanes: u64) -> Range<u64> {
    let start = |lane: u64| (u128::from(all) * u128::from(lane) / u128::from(lanes)) as u64;
    start(lane)..start(lane + 1)
}

/// The progress of `done` of `all`.
fn part(done: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| done as f64 / all as f64)
}

/// Writes these bytes of a file, `block` at a time.
fn push_writes(operations: &mut Vec<FileOperation>, file: Name, bytes: Range<u64>, block: u64, version: u32) {
    let mut offset = bytes.start;
    while offset < bytes.end {
        let length = block.min(bytes.end - offset);
        operations.push(FileOperation::Write { file, offset, length, version });
        offset += length;
    }
}

/// Reads the first `size` bytes of a file, `block` at a time.
fn push_reads(operations: &mut Vec<FileOperation>, file: Name, size: u64, block: u64) {
    let mut offset = 0;
    while offset < size {
        let length = block.min(size - offset);
        operations.push(FileOperation::Read { file, offset, length });
        offset += length;
    }
}

/// Refuses more threads than files: each needs files of its own.
fn check_threads(settings: &Settings) -> Result<(), ExpressionError> {
    let (files, threads) = (settings.count("files"), settings.count("threads"));
    if files < threads {
        let message = format!("{threads} threads cannot share {files} files");
        let help = format!("take {threads} files or more: each thread works on files of its own");
        return Err(settings.error(if settings.is_given("threads") { "threads" } else { "files" }, message, help));
    }
    Ok(())
}

/// Creates the root once, if this lane has to.
fn root_once(is_left: &mut bool, operations: &mut Vec<FileOperation>) -> bool {
    if *is_left {
        operations.push(FileOperation::MakeDirectory(ROOT));
    }
    std::mem::take(is_left)
}
