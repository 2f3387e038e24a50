//! A file workload in a volume of sfs of this process: in simulated time, and the same each time.

use crate::failure::Failure;
use crate::progress::Bars;
use crate::run::Run;
use flashpath::expression::Term;
use flashpath::run::{Outcome, Path, VolumeOptions, run_in_volume};
use flashpath::workload::files::file_workload;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs a file workload on one path.
pub fn run(command: &Run, workload: &Term, path: &Path, bars: &Bars, stop: &AtomicBool) -> Result<Outcome, Failure> {
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
    Ok(outcome)
}
