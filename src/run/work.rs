//! The work of a run, the place in which it is done, and the options of both.

use super::backend::FileShape;
use super::engine::{Options, Replay};
use super::error::RunError;
use super::files::{FilesRun, Part};
use super::fill::Fill;
use super::logging::Logging;
use super::path::Path;
use super::requests::MAX_REQUEST_BYTES;
use crate::device::nand::errors::Age;
use crate::expression::{Amount, ExpressionError, parse_term};
use crate::task::CpuTable;
use crate::workload::Workload;
use crate::workload::files::FileWorkload;
use crate::workload::generator::generator;
use std::path::Path as FilePath;

/// A run: work in a place.
///
/// A file workload on a file system of this program, and the error of work that does not fit its place:
///
/// ```
/// use flashpath::expression::parse_term;
/// use flashpath::run::{BlockWork, Fill, Job, NoMachine, Path, Place, RunOptions, Work, run};
/// use flashpath::workload::files::file_workload;
///
/// let path = Path::read("ext/page/nand:size=256M")?;
/// let varmail = || file_workload(&parse_term("varmail:files=100,loops=50")?, 1);
/// let job = |options| -> Result<Job<'_>, Box<dyn std::error::Error>> {
///     Ok(Job { work: Work::Files(varmail()?), place: Place::Path(&path), seed: 1, options })
/// };
/// let result = run(job(RunOptions::default())?, &NoMachine, &mut |_| true)?.result;
/// assert!(result.ledger.iter().any(|row| row.content == "journal"), "the journal's blocks are counted");
///
/// let refused = job(RunOptions { fill: Fill::ALL, ..RunOptions::default() })?.check();
/// assert!(refused.is_err(), "an option without a meaning is refused");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Job<'a> {
    /// The work.
    pub work: Work<'a>,
    /// The place.
    pub place: Place<'a>,
    /// The seed of all randomness, except that of a file workload, which has its own.
    pub seed: u64,
    /// The options. One that has no meaning for this work in this place is refused.
    pub options: RunOptions,
}

/// The place of a run.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// A path. It is simulated, and its storage in memory is new; a file system of the kernel on top of it is mounted by
    /// the machine, and runs in real time.
    Path(&'a Path),
    /// The volume of this program on top of a path, in this process, in real time and with bytes.
    InProcess(&'a Path),
    /// A directory of this machine, in real time. Nothing is known of what lies below.
    Directory(&'a FilePath),
}

/// The work of a run.
pub enum Work<'a> {
    /// A block workload: on the blocks of the place, or in one file where the place has files.
    Blocks(BlockWork<'a>),
    /// A file workload, where the place has files. Its seed is also that of a volume that is made for it.
    Files(FileWorkload),
    /// A program of this machine, in a file system of the kernel.
    Program(ProgramWork<'a>),
}

/// A block workload that is opened when its space is known.
pub struct BlockWork<'a> {
    /// Its name in results and messages.
    pub name: String,
    /// True if its requests have recorded times, as those of a trace have.
    pub has_times: bool,
    /// Opens it.
    pub open: OpenBlocks<'a>,
}

impl BlockWork<'_> {
    /// The workload of a generator, such as `uniform:writes=6x`. Its options are checked when it is opened.
    ///
    /// Fails if `text` is not a term.
    pub fn generated(text: &str, seed: u64) -> Result<BlockWork<'static>, ExpressionError> {
        let term = parse_term(text)?;
        let open = move |bytes| Ok(generator(&term, bytes, seed)?);
        Ok(BlockWork { name: text.to_string(), has_times: false, open: Box::new(open) })
    }
}

/// Opens a block workload for a number of bytes, those of the path or of the file. It is opened twice, for the same
/// requests, if the path places blocks by their future.
pub type OpenBlocks<'a> = Box<dyn Fn(u64) -> Result<Box<dyn Workload>, RunError> + 'a>;

/// A program that works in the directory that it gets.
pub struct ProgramWork<'a> {
    /// Its name in messages.
    pub name: String,
    /// Runs it, and returns what it measured.
    pub run: RunProgram<'a>,
}

/// Runs a program in a directory.
pub type RunProgram<'a> = Box<dyn FnOnce(&FilePath) -> Result<FilesRun, RunError> + 'a>;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The issue times of the requests of a block workload in simulated time. `None`: the workload's own queues, or
    /// one of [`RunOptions::DEPTH`].
    pub replay: Option<Replay>,
    /// End after so many requests, or operations of the counted stages.
    pub limit: Option<u64>,
    /// The part of the exported space, or of the file, that is written once in order before counting begins.
    pub fill: Fill,
    /// The writes of the workload before counting begins; of a file workload, those of its first counted stage.
    pub precondition: Option<Amount>,
    /// Check that every read returns the newest write, and read everything back at the end.
    pub verify: bool,
    /// The age of the drive below a block workload, whose flash has errors.
    pub age: Option<Age>,
    /// The file of a block workload.
    pub file: FileShape,
    /// The stages of a file workload in a directory.
    pub part: Part,
    /// The CPU time that counts as simulated time in a volume. `None`: the table in the program.
    pub cpu: Option<CpuTable>,
    /// Bytes of a file, whole blocks of 4 KiB, that is written to a volume before a file workload and never again
    /// (section 4.1 of the SFS paper: dummy blocks). 0: there is none.
    pub dummy_bytes: u64,
    /// The largest write request, in bytes, up to which those of a file system are merged as by a block layer. `None`:
    /// [`MAX_REQUEST_BYTES`].
    pub max_request_bytes: Option<u64>,
    /// The log of the counted requests of a simulated run, if there is one.
    pub log: Option<Logging>,
    /// The length of the windows of a run at recorded times, in simulated nanoseconds. `None`: windows of equal host writes.
    pub window_ns: Option<u64>,
    /// Bytes a day, for which the result tells the life of the drive.
    pub rate_per_day: Option<u64>,
    /// The arguments of the command line that opened the work, for the command that repeats the run.
    pub arguments: Vec<String>,
}

impl RunOptions {
    /// The requests in flight if neither the options nor the workload say it.
    pub const DEPTH: u32 = 32;

    /// The largest write request of a file system, in bytes.
    pub(super) fn max_request(&self) -> u64 {
        self.max_request_bytes.unwrap_or(MAX_REQUEST_BYTES)
    }

    /// The same as an argument, if it was given.
    pub(super) fn max_request_argument(&self) -> Option<String> {
        self.max_request_bytes.map(|bytes| format!("--max-request {bytes}"))
    }

    /// The engine's options for a block workload.
    pub(super) fn of_engine(&self, seed: u64, workload: &dyn Workload) -> Options {
        let of_workload = || match workload.tenants() {
            [] => Replay::Closed { depth: workload.queue_depth().unwrap_or(RunOptions::DEPTH) },
            _ => Replay::Tenants,
        };
        Options {
            seed,
            replay: self.replay.unwrap_or_else(of_workload),
            limit: self.limit,
            fill: self.fill,
            precondition: self.precondition,
            verify: self.verify,
            age: self.age.clone(),
            log: self.log.clone(),
            window_ns: self.window_ns,
        }
    }
}
