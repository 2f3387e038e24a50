//! Runs a file workload in a volume of this process in real time, with bytes, on threads of the system: what the volume
//! itself costs, without a kernel in between. Its images must have been made before; what is in memory is made anew.

use super::engine::Progress;
use super::error::RunError;
use super::file_system::{failed_call, open_file_system_counted};
use super::files::{FileRun, FilesRun, Part, Threads, run_files};
use super::in_files::FilesPlace;
use super::machine::Machine;
use super::outcome::Outcome;
use super::path::Path;
use super::work::RunOptions;
use crate::fs::FileSystem;
use crate::fs::in_process::InProcess;
use crate::fs::station::{Access, Mounting};
use crate::fs::volume::{Call, Volume};
use crate::task::Task;
use crate::time::Time;
use crate::workload::files::FileWorkload;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// The pause of a background thread that has found nothing to do. It doubles while there is nothing: a journal may ask for
/// many threads, and looking for work would cost the others more than the work itself.
const PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(4);

/// Runs a file workload in the volume on top of `path`, and unmounts it.
///
/// Fails if the volume cannot be mounted. A failure of the run itself is in the outcome.
pub(super) fn run_in_process(
    path: &Path,
    workload: FileWorkload,
    options: &RunOptions,
    machine: &dyn Machine,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    let seed = workload.seed;
    let volume = open_file_system_counted(path, &Mounting::at(seed, 0), Access::IfWhole, options.max_request())
        .map_err(RunError::from)?;
    let files = InProcess::new(Arc::clone(&volume)).with_remembered_directories();
    let size_bytes = files.size_bytes().map_err(failed_call(path))?;
    let new = files.account().map_err(failed_call(path))?;
    let clock = || machine.now_ns();
    let (before, stop) = (OnceLock::new(), AtomicBool::new(false));
    let working = RwLock::new(());
    let begin_counting = |task: &Task<'_>| {
        // What was written before is not counted later. An error shows again in what follows.
        let _ = files.sync(task);
        // The counts of a volume and of its devices are read one after the other: a write in between would be in one alone.
        let _nobody_works = working.write().unwrap_or_else(PoisonError::into_inner);
        let _ = files.account().map(|account| before.get_or_init(|| account));
    };
    let run = FileRun {
        limit: options.limit,
        part: Part::Whole,
        threads: Threads::System(&clock),
        log: None,
        stored: None,
        begin_counting: &begin_counting,
    };
    let mut done: FilesRun = std::thread::scope(|scope| {
        for _ in 0..volume.workers() {
            scope.spawn(|| work(&*volume, &clock, &working, &stop));
        }
        let done = run_files(&files, workload, &run, watch);
        stop.store(true, Ordering::Relaxed);
        done
    });
    let task = Task::at(Time(clock()));
    let ended = files.sync(&task).map_err(RunError::from);
    let after = files.account().map_err(failed_call(path))?;
    let unmounted = volume.unmount(&Call::by_root(&task)).map_err(failed_call(path));
    done.failure = done.failure.or(ended.err()).or(unmounted.err().map(RunError::from));
    let before = before.into_inner().unwrap_or(new);
    let place = FilesPlace::Path { path, accounts: (&before, &after), exported_bytes: size_bytes, cpu: None };
    Ok(Outcome::in_files(place, seed, done))
}

/// A thread that does background work until the run ends. An error shows again in a call of the run.
fn work(volume: &dyn Volume, clock: &(dyn Fn() -> u64 + Sync), working: &RwLock<()>, stop: &AtomicBool) {
    let mut pause = PAUSE;
    while !stop.load(Ordering::Relaxed) {
        let task = Task::at(Time(clock()));
        let call = Call::by_root(&task);
        let next = {
            let _working = working.read().unwrap_or_else(PoisonError::into_inner);
            volume.work(&call)
        };
        if volume.watch(&call) || matches!(next, Ok(Some(next)) if next <= task.now()) {
            pause = PAUSE;
        } else {
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}
