//! A file workload in a volume of sfs of this process: in simulated time, and the same each time.

use crate::failure::{Failure, is_wrong_input};
use crate::progress::Bars;
use crate::run::Run;
use flashpath::expression::Term;
use flashpath::fs::FileSystem;
use flashpath::fs::in_process::InProcess;
use flashpath::report::{Latencies, RunResult, WorkloadResult};
use flashpath::run::{DoneInFiles, FileRun, Part, Path, result_beneath, run_files, simulated_file_system};
use flashpath::workload::files::file_workload;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs a file workload on one path. Counted is what its counted stages do, until all of it is written. Answers the result, and why it
/// failed, and whether its input is to blame, if it did.
pub fn run(
    command: &Run,
    workload: &Term,
    path: &Path,
    bars: &Bars,
    stop: &AtomicBool,
) -> Result<(RunResult, Option<(String, bool)>), Failure> {
    let began = Instant::now();
    let files = InProcess::new(simulated_file_system(path, command.seed)?);
    let mut bar = bars.add(&path.text);
    let clock = || files.now().0;
    let before = Mutex::new(None);
    let begin_counting = || {
        // What the setup wrote is not counted later. An error shows again in what follows.
        let _ = files.sync();
        *before.lock().expect("nobody panics with it") = Some(files.account());
    };
    let run = FileRun {
        path: path.text.clone(),
        limit: command.limit,
        part: Part::Whole,
        in_turn: true,
        begin_counting: &begin_counting,
        clock: &clock,
    };
    let mut outcome = run_files(&files, file_workload(workload, command.seed)?, &run, &mut |progress| {
        bar.show(progress);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish();
    let synced = files.sync();
    outcome.failure = outcome.failure.or(synced.err().map(Into::into));
    let measured = outcome.result;
    let (read, write) = (measured.latency_ns.get("read").cloned(), measured.latency_ns.get("write").cloned());
    let done = DoneInFiles {
        workload: WorkloadResult { name: command.workload.clone(), ..measured.workload },
        seconds: if files.is_timed() { measured.seconds_counted } else { 0.0 },
        latency_ns: files.is_timed().then_some(Latencies { read, write }),
        warnings: measured.warnings,
        options: command.limit.map(|limit| format!("--limit {limit}")).into_iter().collect(),
    };
    let after = files.account();
    let before = before.into_inner().expect("nobody panics with it").unwrap_or_else(|| after.clone());
    let mut result = result_beneath(path, command.seed, done, (&before, &after), files.size_bytes());
    result.seconds_wall = began.elapsed().as_secs_f64();
    result.interrupted = measured.interrupted;
    let broken = result.sums.iter().find(|sum| !sum.holds);
    let broken = broken.map(|sum| format!("the ledger does not add up: {}: {} and {}", sum.name, sum.left, sum.right));
    let failure = outcome.failure.map(|error| (error.to_string(), is_wrong_input(&error)));
    Ok((result, failure.or(broken.map(|broken| (broken, false)))))
}
