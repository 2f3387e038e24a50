//! What drives a file workload through a file system: stage by stage, as fast as it goes: each lane in
//! a thread of its own, or, where time is simulated, in turn.
//!
//! | file | what it is |
//! |---|---|
//! | `floor` | a stage: all lanes go through it at once |
//! | `calls` | one operation as calls of the file system |
//! | `lane` | what a lane has open, and what it has done |
//! | `tally` | what was done in the counted stages |
//! | `precondition` | a part of the counted stages, that is gone through before anything is counted |
//! | `setup` | the setup of an earlier run: drawn from the lanes, and held against what is there |

mod calls;
mod floor;
mod lane;
mod precondition;
mod setup;
mod tally;

pub(super) use precondition::preconditioned;

use super::engine::Progress;
use super::error::{InputFault, RunError, RunFault, SetupFault};
use crate::fs::FileSystem;
use crate::report::{FileRunResult, LatencyHistogram, MovedBytes, StageResult, WorkloadResult};
use crate::workload::files::{FileWorkload, Setup};
use floor::{Floor, Watch};
use lane::LaneRun;
use tally::Tally;

/// How a file workload is run.
pub struct FileRun<'a> {
    /// Where the files are, as reports call it.
    pub path: String,
    /// End after so many operations of the counted stages; each lane gets its share.
    pub limit: Option<u64>,
    /// Which stages are gone through.
    pub part: Part,
    /// Whether the lanes take turns on the calling thread, a step each, in place of a thread of its own for each: so a
    /// run comes out the same every time.
    pub in_turn: bool,
    /// Called once, before the first counted stage.
    pub begin_counting: &'a (dyn Fn() + Sync),
    /// The time in nanoseconds, from any beginning on.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
}

/// Which stages of a workload are gone through. The setup is the stages before the first counted one; the two parts one
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

/// The end of a run. The result tells what was measured, even if the run failed on its way.
#[derive(Debug)]
pub struct FileOutcome {
    /// What was measured.
    pub result: FileRunResult,
    /// Why the run failed; `None` if it did not.
    pub failure: Option<RunError>,
}

/// Runs `workload` on `files`. `watch` is called now and then on the calling thread, and ends the run by answering
/// false: every lane ends after the operation that it is at, and closes its files.
pub fn run_files<F: FileSystem>(
    files: &F,
    workload: FileWorkload,
    run: &FileRun<'_>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> FileOutcome {
    let FileWorkload { name, root, seed, stages, setup: made, lanes } = workload;
    let count = lanes.len() as u64;
    let limit_of = |lane: u64| run.limit.map(|limit| limit / count + u64::from(lane < limit % count));
    let mut lanes: Vec<LaneRun<F>> =
        lanes.into_iter().zip(0..).map(|(lane, number)| LaneRun::new(lane, limit_of(number))).collect();
    let floor = Floor::new(files, seed, run);
    let mut watch = Watch::new(watch);
    let setup = stages.iter().position(|stage| stage.counted).unwrap_or(stages.len());
    let (first, end) = match run.part {
        Part::Whole => (0, stages.len()),
        Part::Setup => (0, setup),
        Part::Counted => (setup, stages.len()),
    };
    // Before any lane draws up what it will do: that takes memory for each file.
    let refused = if first == 0 { does_not_fit(files, made) } else { None };
    let end = if refused.is_some() { first } else { end };
    let mut told = Vec::new();
    let began = (run.clock)();
    floor.skip(&stages[..first], &name, &mut lanes, &mut watch);
    for (number, stage) in stages.iter().enumerate().take(end).skip(first) {
        // Where a lane has come to its limit, a later stage would miss what it has not made.
        if floor.stops() || lanes.iter().any(|lane| lane.left == Some(0)) {
            break;
        }
        if number == setup {
            (run.begin_counting)();
        }
        let (stage_began, before) = ((run.clock)(), requests(&lanes));
        match run.in_turn {
            true => floor.run_stage_in_turn(number, *stage, &mut lanes, &mut watch),
            false => floor.run_stage(number, *stage, &mut lanes, &mut watch),
        }
        let seconds = (run.clock)().saturating_sub(stage_began) as f64 / 1e9;
        let requests = requests(&lanes) - before;
        told.push(StageResult { name: stage.name, counted: stage.counted, seconds, requests });
    }
    for lane in &mut lanes {
        floor.close_all(&floor.task(), lane);
    }
    let seconds_wall = (run.clock)().saturating_sub(began) as f64 / 1e9;
    let interrupted = floor.stops();
    let failure = refused.or(floor.into_failure());
    let mut result = FileRunResult {
        seconds_wall,
        interrupted: interrupted && failure.is_none(),
        ..result_of(&name, seed, run, told, &lanes)
    };
    if run.part == Part::Setup && setup == 0 {
        result.warnings.push(format!("{root} has no setup: nothing was made, and its counted part is all of it"));
    }
    let failure = failure.map(|error| named(error, root, first > 0));
    let is_empty = failure.is_none() && !interrupted && result.workload.requests == 0 && run.part != Part::Setup;
    FileOutcome { failure: failure.or(is_empty.then(|| InputFault::Empty(name).into())), result }
}

/// Why a setup need not be begun: the file system has no room for it.
fn does_not_fit<F: FileSystem>(files: &F, setup: Setup) -> Option<RunError> {
    let Setup { files: wanted, bytes_each } = setup;
    let room = files.room()?.files_of(bytes_each);
    (wanted > room).then(|| InputFault::TooMany { files: wanted, bytes_each, room }.into())
}

/// An error as the user should read it. Where a run `goes_on` from a setup, that made the root.
fn named(error: RunError, root: &'static str, goes_on: bool) -> RunError {
    match error {
        RunError::Run(RunFault::FileSystem(error)) if error.is_full() => RunFault::Full(error).into(),
        RunError::Run(RunFault::FileSystem(error)) if error.is_there_already() && goes_on => {
            InputFault::NotSetUp(SetupFault::Unexpected(error.path)).into()
        }
        RunError::Run(RunFault::FileSystem(error))
            if error.is_there_already() && std::path::Path::new(&error.path).ends_with(root) =>
        {
            InputFault::Occupied(root).into()
        }
        error => error,
    }
}

fn requests<F: FileSystem>(lanes: &[LaneRun<F>]) -> u64 {
    lanes.iter().map(|lane| lane.requests).sum()
}

fn result_of<F: FileSystem>(
    name: &str,
    seed: u64,
    run: &FileRun<'_>,
    stages: Vec<StageResult>,
    lanes: &[LaneRun<F>],
) -> FileRunResult {
    let mut tally = Tally::default();
    lanes.iter().for_each(|lane| tally.merge(&lane.tally));
    let seconds = stages.iter().filter(|stage| stage.counted).map(|stage| stage.seconds).sum::<f64>();
    let transferred_mib = (tally.read_bytes + tally.written_bytes) as f64 / (1 << 20) as f64;
    let latencies = tally.latencies.iter();
    FileRunResult {
        path: run.path.clone(),
        seed,
        seconds_wall: 0.0,
        seconds_counted: seconds,
        interrupted: false,
        workload: WorkloadResult {
            name: name.to_string(),
            requests: tally.latencies.values().map(LatencyHistogram::count).sum(),
            read_blocks: tally.read_blocks,
            written_blocks: tally.written_blocks,
            discarded_blocks: tally.discarded_blocks,
            rejected_lines: lanes.iter().map(|lane| lane.lane.rejected()).sum(),
        },
        threads: lanes.len() as u64,
        bytes: MovedBytes { read: tally.read_bytes, written: tally.written_bytes },
        stages,
        latency_ns: latencies.filter_map(|(class, latency)| Some((*class, latency.percentiles()?))).collect(),
        throughput_mib_s: (seconds > 0.0).then(|| transferred_mib / seconds),
        warnings: lanes.iter().flat_map(|lane| lane.lane.warnings()).collect(),
        options: [
            run.part.name().map(|part| format!("--only {part}")),
            run.limit.map(|limit| format!("--limit {limit}")),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}
