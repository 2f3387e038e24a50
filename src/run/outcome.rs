//! What a run ends with, whatever was run on whatever path: its result, and, if it did not end well, why.

use super::accounts::{Written, accounted, row, stored_bytes};
use super::backend::Backend;
use super::engine::{Options, Run};
use super::error::{RunError, RunFault};
use super::steady::steady_from;
use crate::device::Account;
use crate::fs::sfs::Census;
use crate::label::{Cause, Content};
use crate::report::{Latencies, LedgerRow, RunResult, Window, WorkloadResult, WriteAmplification};
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

/// How a result names its path.
pub(super) struct Named<'a> {
    /// As it was written.
    pub path: &'a str,
    /// With every option written out.
    pub in_full: &'a str,
}

/// What was measured of a run beside the accounts of the path's stations.
pub(super) struct Measured {
    pub seed: u64,
    pub workload: WorkloadResult,
    /// The ledger's rows of what stands above the path's stations.
    pub above: Vec<LedgerRow>,
    /// What the workload wrote to the topmost station, if it did so itself.
    pub written: Option<Written>,
    /// Bytes that the path offers.
    pub exported_bytes: u64,
    pub seconds_simulated: Option<f64>,
    pub throughput_mib_s: Option<f64>,
    pub latency_ns: Option<Latencies>,
    pub windows: Vec<Window>,
    /// From which written block on the run was steady, and its write amplification from there on.
    pub steady: Option<(u64, f64)>,
    pub warnings: Vec<String>,
    pub options: Vec<String>,
    /// True if the caller ended the run.
    pub interrupted: bool,
    pub failure: Option<RunError>,
}

impl Outcome {
    /// Draws up what was measured, and what the accounts of the topmost station tell, from `before` counting to `after`.
    /// A run whose sums do not hold has failed.
    pub(super) fn of(named: Named<'_>, measured: Measured, (before, after): (&Account, &Account)) -> Outcome {
        let Measured { workload, above, steady, mut warnings, .. } = measured;
        let since = after.since(before);
        let written_bytes = workload.written_blocks * BLOCK_BYTES;
        let amplification = (written_bytes > 0).then(|| stored_bytes(&since) as f64 / written_bytes as f64);
        let told = accounted((&since, after), measured.exported_bytes, measured.written.as_ref(), amplification);
        warnings.extend(told.warnings);
        let broken = told.sums.iter().find(|sum| !sum.holds);
        let broken = broken.map(|sum| RunFault::Sum(format!("{}: {} and {}", sum.name, sum.left, sum.right)).into());
        let result = RunResult {
            path: named.path.to_string(),
            path_in_full: named.in_full.to_string(),
            seed: measured.seed,
            seconds_wall: 0.0,
            seconds_simulated: measured.seconds_simulated,
            interrupted: measured.interrupted,
            flash: told.flash,
            translation: told.translation,
            write_amplification: WriteAmplification {
                total: amplification,
                steady: steady.map(|(_, value)| value),
                steady_from_fraction: steady.map(|(from, _)| from as f64 / workload.written_blocks as f64),
            },
            ledger: above.into_iter().chain(told.ledger).collect(),
            media: told.media,
            wear: told.wear,
            latency_ns: measured.latency_ns,
            throughput_mib_s: measured.throughput_mib_s,
            windows: measured.windows,
            sums: told.sums,
            workload,
            warnings,
            options: measured.options,
        };
        Outcome { result, failure: measured.failure.or(broken), census: None }
    }
}

/// MiB that a workload read and wrote.
pub(super) fn moved_mib(workload: &WorkloadResult) -> f64 {
    (workload.read_blocks + workload.written_blocks) as f64 * BLOCK_BYTES as f64 / (1 << 20) as f64
}

/// Ends a run of the engine: draws it up, and, if reads are verified and nothing failed, reads everything back.
pub(super) fn conclude<B: Backend>(
    named: Named<'_>,
    mut run: Run<B>,
    workload: &dyn Workload,
    options: &Options,
    ended: Result<bool, RunError>,
) -> Outcome {
    let measured = measured(&run, workload, options, ended);
    let drawn_up = Outcome::of(named, measured, (&run.before, &run.backend.account()));
    let census = run.backend.census();
    let failure = drawn_up.failure.or_else(|| run.read_back().err());
    Outcome { failure, census, ..drawn_up }
}

fn measured<B: Backend>(
    run: &Run<B>,
    workload: &dyn Workload,
    options: &Options,
    ended: Result<bool, RunError>,
) -> Measured {
    let is_timed = run.backend.is_timed();
    let steady = steady_from(run.windows.marks());
    let seconds_simulated = is_timed.then(|| run.end.since_ns(run.start) as f64 / 1e9);
    let mut warnings = workload.warnings();
    if run.served.written_blocks > 0 && steady.is_none() {
        warnings.push(
            "no steady state was found: the write amplification was still moving, or the run was short; write more, or --fill and --precondition before counting"
                .to_string(),
        );
    }
    let served = WorkloadResult {
        name: workload.name().to_string(),
        requests: run.served.requests,
        read_blocks: run.served.read_blocks,
        written_blocks: run.served.written_blocks,
        discarded_blocks: run.served.discarded_blocks,
        rejected_lines: workload.rejected(),
    };
    Measured {
        seed: options.seed,
        above: from_the_workload(&run.served.written),
        written: Some(run.served.written),
        exported_bytes: run.exported_bytes,
        seconds_simulated,
        throughput_mib_s: seconds_simulated
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| moved_mib(&served) / seconds),
        latency_ns: is_timed
            .then(|| Latencies { read: run.read_latency.percentiles(), write: run.write_latency.percentiles() }),
        windows: run.windows.report(run.start, is_timed),
        steady,
        warnings,
        options: options.arguments(),
        interrupted: matches!(ended, Ok(false)),
        failure: ended.err(),
        workload: served,
    }
}

/// What the workload wrote, by content: the ledger's first rows.
fn from_the_workload(written: &Written) -> Vec<LedgerRow> {
    let blocks = |content: Content| written[content as usize].0;
    let contents = Content::ALL.into_iter().filter(|content| blocks(*content) > 0);
    contents.map(|content| row("workload", Cause::HostWrite, content, blocks(content) as f64)).collect()
}
