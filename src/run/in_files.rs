//! The outcome of a run in the files of a file system: its operations, and the counts of the stations.

use super::accounts::{row, rows};
use super::error::RunError;
use super::outcome::{Measured, Outcome, transferred_mib};
use super::path::Path;
use crate::device::Account;
use crate::label::{Cause, Content};
use crate::report::{Latencies, WorkloadResult};
use crate::task::CpuTable;
use crate::units::BLOCK_BYTES;

/// The operations of a run in a file system.
#[derive(Debug)]
pub struct FilesRun {
    /// The workload, and the known part of its reads and writes.
    pub workload: WorkloadResult,
    /// Its duration in seconds: of the wall clock with a file system of the kernel, otherwise simulated.
    pub seconds: f64,
    /// Latencies of the model; `None` without a simulation or a timing model.
    pub latency_ns: Option<Latencies>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The options of the command line that affect it.
    pub options: Vec<String>,
    /// The CPU time that counted as simulated time; `None` without a simulation.
    pub cpu: Option<CpuTable>,
    /// True if the caller interrupted it.
    pub interrupted: bool,
    /// The reason of a failure.
    pub failure: Option<RunError>,
}

impl Outcome {
    /// The outcome of a run in the file system on top of `path`. `before` and `after` are the accounts at the start of
    /// the count and after the write-back: those of the device below a file system of the kernel, or of sfs itself, of
    /// `exported_bytes`.
    ///
    /// With a file system of the kernel nothing is simulated: there are no model times, and the throughput is that of
    /// the wall clock.
    pub fn in_files(
        path: &Path,
        seed: u64,
        done: FilesRun,
        (before, after): (&Account, &Account),
        exported_bytes: u64,
    ) -> Outcome {
        let FilesRun { workload, seconds, .. } = done;
        let transferred_mib = transferred_mib(&workload);
        let written = workload.written_blocks as f64;
        let asked = (written > 0.0).then(|| row("workload", Cause::HostWrite, Content::Data, written));
        // The device's received blocks are those that the kernel's file system sent; sfs has an account of its own.
        let received = after.received.since(&before.received);
        let kernel = path.kernel().map(|settings| rows(settings.file_system.station(), &received, BLOCK_BYTES));
        let is_simulated = kernel.is_none();
        let measured = Measured {
            seed,
            above: asked.into_iter().chain(kernel.into_iter().flatten()).collect(),
            written: None,
            exported_bytes,
            seconds_simulated: (is_simulated && seconds > 0.0).then_some(seconds),
            throughput_mib_s: (seconds > 0.0 && transferred_mib > 0.0).then(|| transferred_mib / seconds),
            latency_ns: done.latency_ns,
            windows: Vec::new(),
            steady: None,
            warnings: done.warnings,
            options: done.options,
            cpu: done.cpu,
            interrupted: done.interrupted,
            failure: done.failure,
            workload,
        };
        Outcome::of(path.named(), measured, (before, after))
    }
}
