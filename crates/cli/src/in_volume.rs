//! A file workload in a volume of sfs of this process: in simulated time, and the same each time.

use crate::failure::{Failure, is_wrong_input};
use crate::progress::Bars;
use crate::run::Run;
use flashpath::expression::Term;
use flashpath::report::RunResult;
use flashpath::run::{Path, VolumeOptions, VolumeRunError, run_in_volume};
use flashpath::workload::files::file_workload;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs a file workload on one path. Answers the result, and why it failed, and whether its input is to blame, if it did.
pub fn run(
    command: &Run,
    workload: &Term,
    path: &Path,
    bars: &Bars,
    stop: &AtomicBool,
) -> Result<(RunResult, Option<(String, bool)>), Failure> {
    let began = Instant::now();
    let options = VolumeOptions { limit: command.limit, ..VolumeOptions::default() };
    let workload = file_workload(workload, command.seed)?;
    let mut bar = bars.add(&path.text);
    let outcome = run_in_volume(path, workload, &options, &mut |progress| {
        bar.show(progress);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish();
    let mut outcome = outcome?;
    outcome.result.seconds_wall = began.elapsed().as_secs_f64();
    // As it was written, so that the command that repeats the run is right.
    outcome.result.workload.name = command.workload.clone();
    Ok((outcome.result, outcome.failure.map(|error| (error.to_string(), is_to_blame(&error)))))
}

/// Whether the input is.
fn is_to_blame(error: &VolumeRunError) -> bool {
    match error {
        VolumeRunError::Files(error) => is_wrong_input(error),
        VolumeRunError::Spent(_) => true,
        VolumeRunError::Sum(_) => false,
    }
}
