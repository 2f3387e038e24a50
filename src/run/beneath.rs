//! The result of a path on which a file system stood: what was done in its files, and what the stations beneath them counted meanwhile.

use super::backend::accounts::{stored_bytes, told};
use super::backend::{row, rows};
use super::path::Path;
use crate::device::Account;
use crate::label::{Cause, Content};
use crate::report::{Latencies, RunResult, WorkloadResult, WriteAmplification};
use crate::units::BLOCK_BYTES;

/// What was done in a file system.
#[derive(Debug, Clone)]
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
}

/// Draws up the result of a run in the file system on top of `path`. `before` and `after` are the accounts, when counting began and when
/// all was written back, of the device that a file system of the kernel stood on, or of sfs itself, of `exported_bytes`.
///
/// With a file system of the kernel nothing is simulated: there are no times of the model, and the throughput is that of the wall clock.
pub fn result_beneath(
    path: &Path,
    seed: u64,
    done: DoneInFiles,
    (before, after): (&Account, &Account),
    exported_bytes: u64,
) -> RunResult {
    let since = after.since(before);
    let told = told(&since, after, exported_bytes, None);
    let written_bytes = done.workload.written_blocks * BLOCK_BYTES;
    let total = (written_bytes > 0).then(|| stored_bytes(&since) as f64 / written_bytes as f64);
    let moved_mib =
        ((done.workload.read_blocks + done.workload.written_blocks) * BLOCK_BYTES) as f64 / (1 << 20) as f64;
    let written = done.workload.written_blocks as f64;
    let asked = (written > 0.0).then(|| row("workload", Cause::HostWrite, Content::Data, written));
    // What the kernel's has sent is known from what the device received; sfs has an account of its own.
    let kernel = path.kernel().map(|settings| rows(settings.file_system.station(), &since.received, BLOCK_BYTES));
    let is_simulated = kernel.is_none();
    RunResult {
        path: path.text.clone(),
        path_in_full: path.in_full.clone(),
        seed,
        seconds_wall: 0.0,
        seconds_simulated: (is_simulated && done.seconds > 0.0).then_some(done.seconds),
        interrupted: false,
        flash: told.flash,
        translation: told.translation,
        write_amplification: WriteAmplification { total, steady: None, steady_from_fraction: None },
        ledger: asked.into_iter().chain(kernel.into_iter().flatten()).chain(told.ledger).collect(),
        media: told.media,
        wear: told.wear,
        latency_ns: done.latency_ns,
        throughput_mib_s: (done.seconds > 0.0 && moved_mib > 0.0).then(|| moved_mib / done.seconds),
        windows: Vec::new(),
        sums: told.sums,
        workload: done.workload,
        warnings: done.warnings.into_iter().chain(told.warnings).collect(),
        options: done.options,
    }
}
