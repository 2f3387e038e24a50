//! Runs a file workload in a volume of this process in simulated time: the same seed gives the same result.

use super::dummy::write_dummy;
use super::engine::Progress;
use super::error::{InputFault, RunError, RunFault};
use super::file_system::{failed_call, simulated_and_watched};
use super::files::{FileRun, Part, Threads, WhatIsStored, preconditioned, run_files};
use super::in_files::FilesPlace;
use super::logging::Logging;
use super::outcome::Outcome;
use super::path::Path;
use super::watched::Watched;
use super::work::RunOptions;
use crate::fs::FileSystem;
use crate::fs::in_process::InProcess;
use crate::fs::volume::Call;
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use crate::workload::files::FileWorkload;
use std::sync::OnceLock;

/// Runs a file workload in a new volume of the file system on top of `path`, on stamps in memory. Its seed is the volume's,
/// too. The count covers its counted stages and the write-back of their blocks. `watch` is called regularly, and returns
/// false to end the run.
///
/// Fails as [`simulated_file_system`] does, and if the volume does not hold the dummy file.
pub(super) fn run_in_volume(
    path: &Path,
    workload: FileWorkload,
    options: &RunOptions,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    let seed = workload.seed;
    let (volume, watched) =
        simulated_and_watched(path, seed, options.log.as_ref().map(Logging::waits), options.max_request())?;
    if options.dummy_bytes > 0 {
        let (task, blocks) = (Task::at(Time::ZERO), options.dummy_bytes.div_ceil(BLOCK_BYTES));
        write_dummy(&*volume, &Call::by_root(&task), blocks).map_err(failed_call(path))?;
    }
    let files = InProcess::new(volume);
    let size_bytes = files.size_bytes().map_err(failed_call(path))?;
    let precondition_bytes = options.precondition.map_or(0, |amount| amount.bytes(size_bytes));
    let cpu = options.cpu.clone().unwrap_or_default();
    let (begin, new) = (files.now(), files.account().map_err(failed_call(path))?);
    let before = OnceLock::new();
    let begin_counting = |task: &Task<'_>| {
        // What was written before is not counted later. An error shows again in what follows.
        let _ = files.sync(task);
        let _ = files.account().map(|account| before.get_or_init(|| account));
    };
    let log = options.log.clone().map(|log| if files.is_timed() { log } else { log.without_times() });
    // A file system in memory stores nothing.
    let stored = (!watched.is_empty()).then_some(|| Watched::stored(&watched));
    let run = FileRun {
        stored: stored.as_ref().map(|stored| stored as WhatIsStored<'_>),
        limit: options.limit,
        log: log.as_ref(),
        part: Part::Whole,
        threads: Threads::Simulated { begin, costs: &cpu.costs },
        begin_counting: &begin_counting,
    };
    let mut done = run_files(&files, preconditioned(workload, precondition_bytes), &run, watch);
    let is_broken = matches!(done.failure, Some(RunError::Run(RunFault::Threads(_))));
    // The gates of broken threads must not be entered: nothing is synced or counted.
    let synced = if is_broken { Ok(()) } else { files.sync(&Task::at(files.now())) };
    done.failure = done.failure.or(synced.err().map(Into::into)).map(|error| match error {
        RunError::Input(InputFault::Empty(name)) if precondition_bytes > 0 => InputFault::Spent(name).into(),
        error => error,
    });
    if !files.is_timed() {
        done.forget_times();
    }
    let before = before.into_inner();
    let after = match is_broken {
        true => before.clone().unwrap_or(new),
        false => files.account().map_err(failed_call(path))?,
    };
    let before = before.unwrap_or_else(|| after.clone());
    done.options.extend(options.precondition.map(|amount| format!("--precondition {amount}")));
    let place = FilesPlace::Path { path, accounts: (&before, &after), exported_bytes: size_bytes, cpu: Some(cpu) };
    Ok(Outcome::in_files(place, seed, done))
}
