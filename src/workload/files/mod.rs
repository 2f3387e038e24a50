//! File workloads: what programs ask of a file system, written down as a name and options, such as
//! `varmail:files=10000,threads=4`.
//!
//! | file | what it is |
//! |---|---|
//! | `kinds` | the names and options |
//! | [`contents`] | the bytes that files hold |
//! | `draws` | sizes: log-normal and gamma |
//! | `one_file` | `seq_write`, `rnd_write` |
//! | `varmail`, `tokubench`, `postmark` | the benchmarks of these names |
//! | `source_tree` | the tree that the next two share |
//! | `untar`, `compile` | a source tree unpacked, and built |
//!
//! A workload is a few [`Lane`]s, one for each thread, and [`Stage`]s that all lanes go through together. A lane emits
//! [`FileOperation`]s and knows nothing of a file system: it keeps account itself of which files are there and how long
//! they are. Lanes share no file that any of them changes, so that they run in any order, or at once, and leave the same.
//! The same expression and seed give the same operations on every machine.
//!
//! Everything a workload makes lies under the one name [`FileWorkload::root`].

mod compile;
pub mod contents;
mod draws;
mod kinds;
mod one_file;
mod postmark;
mod source_tree;
mod tokubench;
mod untar;
mod varmail;

use super::WorkloadError;
use crate::expression::{ExpressionError, Kind, Settings, Term};
use std::ops::Range;

/// The number of a file or directory. It is the same in all lanes of a workload; [`Lane::write_path`] tells the path.
pub type Name = u64;

/// The directory under which everything lies.
pub const ROOT: Name = 0;

/// One thing that is asked of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// Makes a directory.
    MakeDirectory(Name),
    /// Makes an empty file, and opens it. Nothing of its name is there.
    Create(Name),
    /// Opens a file that is there.
    Open(Name),
    /// Asks for a file's length.
    Stat(Name),
    /// Reads from an open file. All of the bytes are there.
    Read {
        /// The file.
        file: Name,
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Writes to an open file what [`contents::fill`] says.
    Write {
        /// The file.
        file: Name,
        /// The first byte; the file's length where it is appended to.
        offset: u64,
        /// How many.
        length: u64,
        /// Tells this writing of the bytes from earlier ones.
        version: u32,
    },
    /// Makes an open file durable (fsync).
    Fsync(Name),
    /// Makes the data of an open file durable (fdatasync).
    Fdatasync(Name),
    /// Closes an open file.
    Close(Name),
    /// Takes a closed file away.
    Unlink(Name),
    /// Gives a closed file another name, at which a file may be that it replaces.
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
        /// How many.
        length: u64,
    },
    /// Gives the space of bytes of an open file back.
    Discard {
        /// The file.
        file: Name,
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Makes everything durable.
    Sync,
}

/// A part of a workload. A stage begins when all lanes have ended the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What is done in it.
    pub name: &'static str,
    /// Whether it is counted, or makes what the counted ones need.
    pub counted: bool,
}

/// What a setup makes at the least. A file system that does not hold it need not be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Files that are there at once.
    pub files: u64,
    /// Bytes of each.
    pub bytes_each: u64,
}

/// What one thread asks for.
pub trait Lane: Send {
    /// Appends the operations that come next in a stage, such as those of one transaction; appends nothing and answers
    /// false when the lane has ended the stage. Stages are counted from 0, and asked for in order.
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError>;

    /// Writes a name's path behind what `path` holds. The name is one that this lane has emitted.
    fn write_path(&self, name: Name, path: &mut String);

    /// The share of a stage that has been emitted, from 0 to 1, if it is known.
    fn progress(&self, _stage: usize) -> Option<f64> {
        None
    }

    /// Lines of a trace that could not be read so far.
    fn rejected(&self) -> u64 {
        0
    }

    /// What a user should know of the input; asked for at the end.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A workload for a file system.
pub struct FileWorkload {
    /// The name in reports.
    pub name: String,
    /// The one name in the root of the file system under which everything lies.
    pub root: &'static str,
    /// The seed of the bytes that are written: see [`contents::fill`].
    pub seed: u64,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// What is made before anything is counted, as far as that is known.
    pub setup: Setup,
    /// The lanes, at least one.
    pub lanes: Vec<Box<dyn Lane>>,
}

/// The file workloads there are, with their options.
pub fn kinds() -> Vec<&'static Kind> {
    kinds::ROWS.iter().map(|row| row.kind).collect()
}

/// The file workload that `term` describes.
///
/// Errors point at the option that is unknown, has a value it does not take, or contradicts another.
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

/// What a kind is made of.
type Parts = (&'static [Stage], Vec<Box<dyn Lane>>);

impl FileWorkload {
    /// Adds a last stage in which everything is made durable.
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

/// A lane with a stage behind its own, in which the first lane syncs the file system.
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

/// The half-open range of `0..all` that is the share of lane `lane` of `lanes`: shares differ by one at most.
fn share_of(all: u64, lane: u64, lanes: u64) -> Range<u64> {
    let start = |lane: u64| (u128::from(all) * u128::from(lane) / u128::from(lanes)) as u64;
    start(lane)..start(lane + 1)
}

/// How far `done` of `all` is.
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

/// Makes the root, once, if it is this lane's part to.
fn root_once(is_left: &mut bool, operations: &mut Vec<FileOperation>) -> bool {
    if *is_left {
        operations.push(FileOperation::MakeDirectory(ROOT));
    }
    std::mem::take(is_left)
}
