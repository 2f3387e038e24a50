//! The door to all runs: from a job, which is work in a place, to an outcome.

use super::engine::{Progress, Replay, needs_an_end};
use super::error::{InputFault, RunError};
use super::fit::check;
use super::in_directory::run_in_directory;
use super::in_files::FilesPlace;
use super::in_process::run_in_process;
use super::in_volume::run_in_volume;
use super::lifetime;
use super::logging::Logging;
use super::machine::Machine;
use super::on_kernel::run_on_kernel;
use super::outcome::Outcome;
use super::path::Path;
use super::work::{BlockWork, Job, Place, RunOptions, Work};
use super::{Prepared, prepare, prepare_file_recorded, prepare_recorded};
use crate::fs::directory::Directory;
use crate::units::format_size;
use crate::workload::Clock;

impl Job<'_> {
    /// Checks that the work can be done in its place, and that every option has a meaning for both. [`run`] does so, too.
    pub fn check(&self) -> Result<(), RunError> {
        check(self)?;
        match (self.place, self.options.replay) {
            (Place::Path(path), Some(Replay::Open { .. })) => check_is_timed(path, self.seed),
            _ => Ok(()),
        }
    }
}

fn check_is_timed(path: &Path, seed: u64) -> Result<(), RunError> {
    match prepare(path, seed)?.is_timed() {
        true => Ok(()),
        false => Err(InputFault::Refused {
            what: format!("--timed needs a timing model, and {} has none", path.text),
            help: Some("leave --timed out, or remove timing=off".to_string()),
        }
        .into()),
    }
}

/// Runs a job. `watch` is called regularly, and returns false to end the run.
///
/// Fails if the work does not fit its place, or one of them cannot be opened: then nothing was run. A failure of the run
/// itself is in the outcome, beside what was measured. Each error says whether the input is wrong or the run failed.
pub fn run(job: Job<'_>, machine: &dyn Machine, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Outcome, RunError> {
    job.check()?;
    let Job { work, place, seed, options } = job;
    let began = machine.now_ns();
    let (mut outcome, began) = match place {
        Place::Directory(directory) => {
            let files = Directory::open(directory).map_err(|error| InputFault::Refused {
                what: error.to_string(),
                help: Some("make the directory, or mount the file system, first".to_string()),
            })?;
            let done = run_in_directory(&files, work, options.file.bytes, &options, seed, machine, watch)?;
            let name = directory.display().to_string();
            (Outcome::in_files(FilesPlace::Directory(&name), seed, done), began)
        }
        Place::InProcess(path) => match work {
            Work::Files(workload) => (run_in_process(path, workload, &options, machine, watch)?, began),
            Work::Blocks(_) | Work::Program(_) => unreachable!("only files have a place there: it was checked"),
        },
        Place::Path(path) => match (path.kernel(), work) {
            (Some(settings), work) => (run_on_kernel(path, settings, work, &options, seed, machine, watch)?, began),
            (None, Work::Blocks(blocks)) => simulate_blocks(path, blocks, &options, seed, machine, watch)?,
            (None, Work::Files(workload)) => (run_in_volume(path, workload, &options, watch)?, began),
            (None, Work::Program(_)) => unreachable!("a program has a file system of the kernel: it was checked"),
        },
    };
    outcome.result.seconds_wall = (machine.now_ns() - began) as f64 / 1e9;
    if let Some(log) = &options.log {
        log.tell_waits(&mut outcome.result);
    }
    outcome.result.options.extend(options.max_request_argument());
    if let Some(bytes_per_day) = options.rate_per_day {
        outcome.result.wear.rate = Some(lifetime::at_rate(&outcome.result, bytes_per_day));
        outcome.result.options.push(format!("--rate {}/day", format_size(bytes_per_day)));
    }
    outcome.result.options.extend(options.arguments);
    Ok(outcome)
}

/// Runs a block workload on a path in simulated time; returns the outcome, and the wall-clock time at which the workload
/// was open.
fn simulate_blocks(
    path: &Path,
    blocks: BlockWork<'_>,
    options: &RunOptions,
    seed: u64,
    machine: &dyn Machine,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Outcome, u64), RunError> {
    let waits = options.log.as_ref().map(Logging::waits);
    let mut prepared: Prepared<'_> = match path.volume_settings() {
        Some(_) => prepare_file_recorded(path, seed, options.file, waits, options.max_request())?,
        None => prepare_recorded(path, seed, waits)?,
    };
    if prepared.needs_future() {
        let mut ahead = (blocks.open)(prepared.exported_bytes())?;
        if ahead.clock() == Clock::Needed {
            return Err(needs_an_end(&blocks.name, "the path looks ahead at all requests, which has no times"));
        }
        prepared.foresee(ahead.as_mut(), options.fill)?;
    }
    let mut workload = (blocks.open)(prepared.exported_bytes())?;
    let began = machine.now_ns();
    let of_engine = options.of_engine(seed, workload.as_ref());
    let mut outcome = prepared.run(workload.as_mut(), &of_engine, watch);
    outcome.result.workload.name = blocks.name;
    outcome.result.options.extend(options.file.arguments());
    Ok((outcome, began))
}
