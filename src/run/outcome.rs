//! What a run ends with: its result, and, if it did not end well, why.

use super::backend::{Backend, row};
use super::engine::{Options, Run, RunError};
use super::path::Path;
use super::steady::steady_from;
use crate::fs::sfs::Census;
use crate::label::{Cause, Content};
use crate::report::{Latencies, LedgerRow, RunResult, WorkloadResult, WriteAmplification};
use crate::units::BLOCK_BYTES;
use crate::workload::Workload;

/// The end of a run. The result tells what was measured, even if the run failed on its way.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured.
    pub result: RunResult,
    /// Why the run failed; `None` if it did not.
    pub failure: Option<RunError>,
    /// Of a file in a volume of sfs: what lives in its segments at the end, but for those that only ever held the file beside it.
    pub census: Option<Census>,
}

/// Draws the result of a run up, checks its sums, and, if reads are verified, reads everything back.
pub(super) fn conclude<T: Backend>(
    path: &Path,
    mut run: Run<T>,
    workload: &dyn Workload,
    options: &Options,
    ended: Result<bool, RunError>,
) -> Outcome {
    let (mut result, census) = result_of(path, &run, workload, options);
    result.interrupted = matches!(ended, Ok(false));
    let failure = match ended {
        Err(error) => Some(error),
        Ok(_) => result
            .sums
            .iter()
            .find(|sum| !sum.holds)
            .map(|sum| RunError::Sum(format!("{}: {} and {}", sum.name, sum.left, sum.right)))
            .or_else(|| run.read_back().err()),
    };
    Outcome { result, failure, census }
}

fn result_of<T: Backend>(
    path: &Path,
    run: &Run<T>,
    workload: &dyn Workload,
    options: &Options,
) -> (RunResult, Option<Census>) {
    let is_timed = run.backend.is_timed();
    let written_bytes = run.served.written_blocks * BLOCK_BYTES;
    let total = (written_bytes > 0).then(|| run.backend.stored_bytes() as f64 / written_bytes as f64);
    let steady = steady_from(run.windows.marks());
    let simulated = is_timed.then(|| run.end.since_ns(run.start) as f64 / 1e9);
    let moved_mib = (run.served.read_blocks + run.served.written_blocks) as f64 * BLOCK_BYTES as f64 / (1 << 20) as f64;
    let mut warnings = workload.warnings();
    if written_bytes > 0 && steady.is_none() {
        warnings.push(
            "no steady state was found: the write amplification was still moving, or the run was short; write more, or --fill and --precondition before counting"
                .to_string(),
        );
    }
    let told = run.backend.tell(&run.served);
    let census = told.census;
    warnings.extend(told.warnings);
    let result = RunResult {
        path: path.text.clone(),
        path_in_full: path.in_full.clone(),
        seed: options.seed,
        seconds_wall: 0.0,
        seconds_simulated: simulated,
        interrupted: false,
        workload: WorkloadResult {
            name: workload.name().to_string(),
            requests: run.served.requests,
            read_blocks: run.served.read_blocks,
            written_blocks: run.served.written_blocks,
            discarded_blocks: run.served.discarded_blocks,
            rejected_lines: workload.rejected(),
        },
        flash: told.flash,
        translation: told.translation,
        write_amplification: WriteAmplification {
            total,
            steady: steady.map(|(_, value)| value),
            steady_from_fraction: steady.map(|(from, _)| from as f64 / run.served.written_blocks as f64),
        },
        ledger: from_the_workload(run).chain(told.ledger).collect(),
        media: told.media,
        wear: told.wear,
        latency_ns: is_timed
            .then(|| Latencies { read: run.read_latency.percentiles(), write: run.write_latency.percentiles() }),
        throughput_mib_s: simulated.filter(|seconds| *seconds > 0.0).map(|seconds| moved_mib / seconds),
        windows: run.windows.report(run.start, is_timed),
        sums: told.sums,
        warnings,
        options: options.arguments(),
    };
    (result, census)
}

/// What the workload wrote, by content: the ledger's first rows.
fn from_the_workload<T>(run: &Run<T>) -> impl Iterator<Item = LedgerRow> + '_ {
    let blocks = |content: Content| run.served.written[content as usize].0;
    let contents = Content::ALL.into_iter().filter(move |content| blocks(*content) > 0);
    contents.map(move |content| row("workload", Cause::HostWrite, content, blocks(content) as f64))
}
