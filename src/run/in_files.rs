//! The outcome of a run in the files of a path's file system: what was done in them, and what the stations counted
//! meanwhile.

use super::accounts::{row, rows};
use super::error::RunError;
use super::outcome::{Measured, Outcome, moved_mib};
use super::path::Path;
use crate::device::Account;
use crate::label::{Cause, Content};
use crate::report::{Latencies, WorkloadResult};
use crate::units::BLOCK_BYTES;

/// What was done in a file system.
#[derive(Debug)]
pub struct DoneInFiles {
    /// The workload, and what it read and wrote, as far as that is known.
    pub workload: WorkloadResult,
    /// Seconds that it took: in a file system of the kernel on the wall clock, else simulated.
    pub seconds: f64,
    /// Latencies of the model; `None` where nothing is simulated, or without a timing model.
    pub latency_ns: Option<Latencies>,
    /// What a user should know of it.
    pub warnings: Vec<String>,
    /// The options of the command line that made it what it is.
    pub options: Vec<String>,
    /// True if the caller ended it.
    pub interrupted: bool,
    /// Why it failed; `None` if it did not.
    pub failure: Option<RunError>,
}

impl Outcome {
    /// Draws up a run in the file system on top of `path`. `before` and `after` are the accounts, when counting began
    /// and when all was written back, of the device that a file system of the kernel stood on, or of sfs itself, of
    /// `exported_bytes`.
    ///
    /// With a file system of the kernel nothing is simulated: there are no times of the model, and the throughput is
    /// that of the wall clock.
    pub fn in_files(
        path: &Path,
        seed: u64,
        done: DoneInFiles,
        (before, after): (&Account, &Account),
        exported_bytes: u64,
    ) -> Outcome {
        let DoneInFiles { workload, seconds, .. } = done;
        let moved_mib = moved_mib(&workload);
        let written = workload.written_blocks as f64;
        let asked = (written > 0.0).then(|| row("workload", Cause::HostWrite, Content::Data, written));
        // What the kernel's has sent is known from what the device received; sfs has an account of its own.
        let received = after.received.since(&before.received);
        let kernel = path.kernel().map(|settings| rows(settings.file_system.station(), &received, BLOCK_BYTES));
        let is_simulated = kernel.is_none();
        let measured = Measured {
            seed,
            above: asked.into_iter().chain(kernel.into_iter().flatten()).collect(),
            written: None,
            exported_bytes,
            seconds_simulated: (is_simulated && seconds > 0.0).then_some(seconds),
            throughput_mib_s: (seconds > 0.0 && moved_mib > 0.0).then(|| moved_mib / seconds),
            latency_ns: done.latency_ns,
            windows: Vec::new(),
            steady: None,
            warnings: done.warnings,
            options: done.options,
            interrupted: done.interrupted,
            failure: done.failure,
            workload,
        };
        Outcome::of(path.named(), measured, (before, after))
    }
}
