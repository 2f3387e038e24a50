//! Runs a file workload in a file system, stage by stage, as fast as possible: each lane in a thread of its own, of the
//! system or simulated.
//!
//! | file | role |
//! |---|---|
//! | `runner` | runs a stage: all lanes at once |
//! | `simulated` | a stage in simulated threads |
//! | `calls` | one operation as calls of the file system |
//! | `lane` | a lane: its open files and its counts |
//! | `over_time` | the windows of the counted stages |
//! | `tally` | the operations of the counted stages |
//! | `precondition` | the first part of the counted stages, which is not counted |
//! | `setup` | checks that an earlier run has left the setup |

mod calls;
mod lane;
mod over_time;
mod precondition;
mod runner;
mod setup;
mod simulated;
mod tally;

pub use over_time::WhatIsStored;
pub(super) use precondition::preconditioned;

use super::engine::Progress;
use super::error::{InputFault, RunError, RunFault, SetupFault};
use super::logging::Logging;
use super::threads::GateWaits;
use super::windows::WindowsReport;
use crate::fs::FileSystem;
use crate::report::{
    FilesResult, GateWaitsResult, LatencyHistogram, MovedBytes, Percentiles, StageResult, WorkloadResult,
};
use crate::task::{Costs, Task};
use crate::time::Time;
use crate::workload::files::{FileWorkload, Setup};
use lane::LaneRun;
use runner::{Failed, Runner, Watch};
use std::collections::BTreeMap;
use tally::Tally;

/// The options of a run of a file workload.
pub struct FileRun<'a> {
    /// End after so many operations of the counted stages; each lane gets its share.
    pub limit: Option<u64>,
    /// The stages that are run.
    pub part: Part,
    /// The threads in which lanes run.
    pub threads: Threads<'a>,
    /// The log of the counted operations of a simulated run, if there is one.
    pub log: Option<&'a Logging>,
    /// What the media below have stored, for the windows of the run; `None` where nothing is simulated.
    pub stored: Option<WhatIsStored<'a>>,
    /// Called once, before the first counted stage, on behalf of a task whose work begins when the setup has ended.
    pub begin_counting: &'a (dyn Fn(&Task<'_>) + Sync),
}

/// The threads in which lanes run.
#[derive(Clone, Copy)]
pub enum Threads<'a> {
    /// Threads of the system. This is the time in nanoseconds, from any beginning on.
    System(&'a (dyn Fn() -> u64 + Sync)),
    /// Simulated threads, each with a clock of its own, so that a run comes out the same every time.
    Simulated {
        /// The begin of the run.
        begin: Time,
        /// The CPU time of each step.
        costs: &'a Costs,
    },
}

/// The stages of a workload that are run. The setup is the stages before the first counted one; the two parts one
/// after the other, by whichever processes, leave what the whole leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    #[default]
    Whole,
    /// The setup alone.
    Setup,
    /// All behind the setup, which the same workload with the same seed has left.
    Counted,
}

impl Part {
    /// Those that are written, by their words.
    pub const WORDS: [(&'static str, Part); 2] = [("setup", Part::Setup), ("counted", Part::Counted)];

    /// As it is written; `None` for the whole.
    pub fn name(self) -> Option<&'static str> {
        Part::WORDS.iter().find(|(_, part)| *part == self).map(|(word, _)| *word)
    }
}

/// The measurements of a run in files, even of one that failed on its way.
#[derive(Debug)]
pub struct FilesRun {
    /// The workload and its operations in the counted stages, as far as they are known.
    pub workload: WorkloadResult,
    /// Seconds of the counted stages.
    pub seconds: f64,
    /// The threads, bytes and stages; `None` if another program ran.
    pub files: Option<FilesResult>,
    /// Latencies in the counted stages, from call to return, by class of operation: `read`, `write`, `create`, `fsync`...
    pub latency_ns: BTreeMap<&'static str, Percentiles>,
    /// The run in windows of equal writes; none where nothing is simulated.
    pub windows: WindowsReport,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The options of the command line that affect it.
    pub options: Vec<String>,
    /// True if the caller interrupted it.
    pub interrupted: bool,
    /// The reason of a failure.
    pub failure: Option<RunError>,
}

impl FilesRun {
    /// Leaves out all times: those of a simulation without a timing model are of CPU time alone.
    pub(super) fn forget_times(&mut self) {
        (self.seconds, self.latency_ns) = (0.0, BTreeMap::new());
        self.windows.forget_times();
        if let Some(files) = &mut self.files {
            files.seconds_counted = None;
            for stage in &mut files.stages {
                (stage.seconds, stage.gate_waits) = (None, Vec::new());
            }
        }
    }
}

/// Runs `workload` on `files`. `watch` is called regularly on the calling thread, and returns false to end the run: each
/// lane ends after its current operation, and closes its files.
pub fn run_files<F: FileSystem>(
    files: &F,
    workload: FileWorkload,
    run: &FileRun<'_>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> FilesRun {
    let FileWorkload { name, root, seed, stages, setup: made, lanes } = workload;
    let count = lanes.len() as u64;
    let limit_of = |lane: u32| run.limit.map(|limit| limit / count + u64::from(u64::from(lane) < limit % count));
    let mut lanes: Vec<LaneRun<F>> =
        lanes.into_iter().zip(0..).map(|(lane, number)| LaneRun::new(number + 1, lane, limit_of(number))).collect();
    let runner = Runner::new(files, seed, run);
    let mut watch = Watch::new(watch);
    let setup = stages.iter().position(|stage| stage.counted).unwrap_or(stages.len());
    let (first, end) = match run.part {
        Part::Whole => (0, stages.len()),
        Part::Setup => (0, setup),
        Part::Counted => (setup, stages.len()),
    };
    // Checked before a lane plans its files, which takes memory for each.
    let refused = if first == 0 { does_not_fit(files, made) } else { None };
    let end = if refused.is_some() { first } else { end };
    let mut told = Vec::new();
    runner.skip(&stages[..first], &name, &mut lanes, &mut watch);
    for (number, stage) in stages.iter().enumerate().take(end).skip(first) {
        let has_counted = stages[..number].iter().any(|stage| stage.counted);
        // After a lane's limit, a later stage would miss files that it did not make.
        if runner.stops() || has_counted && lanes.iter().any(|lane| lane.left == Some(0)) {
            break;
        }
        if number == setup {
            runner.alone(|task| (run.begin_counting)(task));
            runner.begin_counting();
        }
        let (stage_began, before) = (runner.now_ns(), requests(&lanes));
        let waits = match run.threads {
            Threads::System(_) => {
                runner.run_stage(number, *stage, &mut lanes, &mut watch);
                GateWaits::default()
            }
            Threads::Simulated { costs, .. } => runner.simulate_stage(number, *stage, &mut lanes, &mut watch, costs),
        };
        let seconds = runner.now_ns().saturating_sub(stage_began) as f64 / 1e9;
        let requests = requests(&lanes) - before;
        let gate_waits = waits.iter().map(|(gate, waits)| GateWaitsResult {
            gate,
            waits: waits.count,
            seconds: waits.ns as f64 / 1e9,
        });
        told.push(StageResult {
            name: stage.name,
            counted: stage.counted,
            seconds: Some(seconds),
            requests,
            gate_waits: gate_waits.collect(),
        });
    }
    // The gates of broken threads must not be entered.
    if !runner.has_broken_threads() {
        lanes.iter_mut().for_each(|lane| runner.alone(|task| runner.close_all(task, lane)));
    }
    let interrupted = runner.stops();
    let windows = runner.windows();
    let failure = match runner.into_failure() {
        _ if refused.is_some() => refused,
        failed => failed.map(|Failed { error, thread }| match named(error, root, first > 0) {
            RunError::Run(fault) if count > 1 => in_thread(fault, thread).into(),
            error => error,
        }),
    };
    let mut done = FilesRun { windows, ..measured(&name, run, told, &lanes) };
    if run.part == Part::Setup && setup == 0 {
        done.warnings.push(format!("{root} has no setup: nothing was made, and its counted part is all of it"));
    }
    let is_empty = failure.is_none() && !interrupted && done.workload.requests == 0 && run.part != Part::Setup;
    done.interrupted = interrupted && failure.is_none();
    done.failure = failure.or(is_empty.then(|| InputFault::Empty(name).into()));
    done
}

/// The fault of a setup for which the file system has no room.
fn does_not_fit<F: FileSystem>(files: &F, setup: Setup) -> Option<RunError> {
    let Setup { files: wanted, bytes_each } = setup;
    let room = files.room()?.files_of(bytes_each);
    (wanted > room).then(|| InputFault::TooMany { files: wanted, bytes_each, room }.into())
}

/// The error for the user. If the run `goes_on` from a setup, the setup has made the root.
fn named(error: RunError, root: &'static str, goes_on: bool) -> RunError {
    match error {
        RunError::Run(RunFault::FileSystem(error)) if error.is_full() => RunFault::Full(error).into(),
        RunError::Run(RunFault::FileSystem(error)) if error.is_name_taken() && goes_on => {
            InputFault::NotSetUp(SetupFault::Unexpected(error.path)).into()
        }
        RunError::Run(RunFault::FileSystem(error))
            if error.is_name_taken() && std::path::Path::new(&error.path).ends_with(root) =>
        {
            InputFault::Occupied(root).into()
        }
        error => error,
    }
}

/// A fault of this thread, if it is of one.
fn in_thread(fault: RunFault, thread: Option<u32>) -> RunFault {
    match thread {
        Some(number) => RunFault::InThread { number, fault: Box::new(fault) },
        None => fault,
    }
}

fn requests<F: FileSystem>(lanes: &[LaneRun<F>]) -> u64 {
    lanes.iter().map(|lane| lane.requests).sum()
}

fn measured<F: FileSystem>(name: &str, run: &FileRun<'_>, stages: Vec<StageResult>, lanes: &[LaneRun<F>]) -> FilesRun {
    let mut tally = Tally::default();
    lanes.iter().for_each(|lane| tally.merge(&lane.tally));
    let seconds = stages.iter().filter(|stage| stage.counted).filter_map(|stage| stage.seconds).sum::<f64>();
    let latencies = tally.latencies.iter();
    FilesRun {
        workload: WorkloadResult {
            name: name.to_string(),
            requests: tally.latencies.values().map(LatencyHistogram::count).sum(),
            read_blocks: tally.read_blocks,
            written_blocks: tally.written_blocks,
            discarded_blocks: tally.discarded_blocks,
            rejected_lines: lanes.iter().map(|lane| lane.lane.rejected()).sum(),
            application_blocks: Some(tally.written_blocks),
        },
        seconds,
        files: Some(FilesResult {
            seconds_counted: Some(seconds),
            threads: lanes.len() as u64,
            bytes: MovedBytes { read: tally.read_bytes, written: tally.written_bytes },
            stages,
        }),
        latency_ns: latencies.filter_map(|(class, latency)| Some((*class, latency.percentiles()?))).collect(),
        windows: WindowsReport::default(),
        warnings: lanes.iter().flat_map(|lane| lane.lane.warnings()).collect(),
        options: [
            run.part.name().map(|part| format!("--only {part}")),
            run.limit.map(|limit| format!("--limit {limit}")),
        ]
        .into_iter()
        .flatten()
        .collect(),
        interrupted: false,
        failure: None,
    }
}
