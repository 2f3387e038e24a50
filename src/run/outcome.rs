//! The outcome of a run, of any workload on any path: its result, and the reason of a failure.

use super::accounts::{Written, accounted, row, stored_bytes};
use super::backend::Backend;
use super::energy;
use super::engine::{Options, Run, Served};
use super::error::{RunError, RunFault};
use super::lifetime;
use super::plausible;
use super::steady::steady_from;
use super::windows::WindowsReport;
use crate::device::Account;
use crate::expression::{Kind, with_top_options};
use crate::fs::sfs::Census;
use crate::label::{Content, Label};
use crate::report::{
    CacheResult, CpuResult, EngineResult, FilesResult, Latencies, LedgerRow, RunResult, TenantResult, WorkloadResult,
    WriteAmplification,
};
use crate::task::CpuTable;
use crate::units::BLOCK_BYTES;
use crate::workload::{CacheCounts, EngineCounts, Workload};

/// The outcome of a run. The result has the measurements even if the run failed.
#[derive(Debug)]
pub struct Outcome {
    /// The measurements.
    pub result: RunResult,
    /// The reason of a failure.
    pub failure: Option<RunError>,
    /// For a file in a volume of sfs: live blocks by segment at the end, without segments that only ever held the dummy
    /// file.
    pub census: Option<Census>,
}

/// The name of a path in results.
pub(super) struct PathName<'a> {
    /// As written.
    pub path: &'a str,
    /// With all option values.
    pub in_full: &'a str,
}

/// The measurements of a run besides the accounts of the path's stations.
pub(super) struct Measured {
    pub seed: u64,
    pub workload: WorkloadResult,
    /// The cache whose drive the path is, if it is one's.
    pub cache: Option<CacheResult>,
    /// The tenants of the device, if the workload has several queues.
    pub tenants: Vec<TenantResult>,
    /// The ledger's rows above the path's stations.
    pub above: Vec<LedgerRow>,
    /// The workload's writes to the top station, if it wrote to it directly.
    pub written: Option<Written>,
    /// The exported bytes of the path.
    pub exported_bytes: u64,
    pub seconds_simulated: Option<f64>,
    pub throughput_mib_s: Option<f64>,
    pub latency_ns: Option<Latencies>,
    pub windows: WindowsReport,
    /// True if the run looked for a steady state.
    pub is_of_engine: bool,
    /// The number of written blocks from which the run is steady, and its write amplification from there on.
    pub steady: Option<(u64, f64)>,
    pub warnings: Vec<String>,
    pub options: Vec<String>,
    /// The run of a workload in files.
    pub files: Option<FilesResult>,
    /// The CPU time that counted as simulated time; `None` without a file system.
    pub cpu: Option<CpuTable>,
    /// True if the caller interrupted the run.
    pub interrupted: bool,
    pub failure: Option<RunError>,
}

/// The path with the options that its topmost station chose.
fn in_full(path: &str, top: &Account) -> String {
    let in_full = |(kind, options): &(&'static Kind, Vec<_>)| with_top_options(path, kind, options);
    top.chosen.as_ref().map_or(path.to_string(), in_full)
}

impl Outcome {
    /// The outcome from the measurements and the accounts of the top station, before and after the count; `None` if
    /// nothing is known of what lies below. A run fails if a sum does not hold.
    pub(super) fn of(name: PathName<'_>, measured: Measured, accounts: Option<(&Account, &Account)>) -> Outcome {
        let Measured { workload, above, steady, mut warnings, .. } = measured;
        let since = accounts.map(|(before, after)| after.since(before));
        let written_bytes = workload.written_blocks * BLOCK_BYTES;
        let all_stored = since.as_ref().map(stored_bytes);
        let stored = all_stored.filter(|_| written_bytes > 0);
        let amplification = stored.map(|stored| stored as f64 / written_bytes as f64);
        let below = since.as_ref().zip(accounts.map(|(_, after)| after));
        let mut parts = accounted(below, measured.exported_bytes, measured.written.as_ref(), amplification);
        warnings.extend(parts.warnings);
        warnings.extend(since.iter().flat_map(plausible::warnings));
        let is_unworn = parts.flash.blocks > 0 && parts.flash.erased_blocks == 0;
        let steady = steady.filter(|_| !is_unworn);
        if is_unworn {
            (parts.wear.lifetime_host_tib, parts.wear.lifetime_host_tib_first_block) = (None, None);
        }
        warnings.extend(
            measured.is_of_engine.then(|| stationary_warning(steady.is_some(), is_unworn, written_bytes)).flatten(),
        );
        let broken = parts.sums.iter().find(|sum| !sum.holds);
        let broken = broken.map(|sum| RunFault::Sum(format!("{}: {} and {}", sum.name, sum.left, sum.right)).into());
        let mut result = RunResult {
            name: None,
            path: name.path.to_string(),
            path_in_full: accounts.map_or(name.in_full.to_string(), |(_, top)| in_full(name.in_full, top)),
            seed: measured.seed,
            seconds_wall: 0.0,
            seconds_simulated: measured.seconds_simulated,
            interrupted: measured.interrupted,
            cache: measured.cache,
            tenants: measured.tenants,
            flash: parts.flash,
            translation: parts.translation,
            write_amplification: WriteAmplification {
                total: amplification,
                steady: steady.map(|(_, value)| value),
                steady_from_fraction: steady.map(|(from, _)| from as f64 / workload.written_blocks as f64),
                application: None,
            },
            ledger: above.into_iter().chain(parts.ledger).collect(),
            media: parts.media,
            stations: parts.stations,
            write_requests: parts.write_requests,
            wear: parts.wear,
            maps: parts.maps,
            latency_ns: measured.latency_ns,
            energy: since.as_ref().and_then(|since| energy::of(since, measured.seconds_simulated, written_bytes)),
            throughput_mib_s: measured.throughput_mib_s,
            window_seconds: measured.windows.seconds,
            windows: measured.windows.windows,
            window_causes: measured.windows.causes,
            sums: parts.sums,
            workload,
            warnings,
            options: measured.options,
            files: measured.files,
            cpu: measured
                .cpu
                .map(|table: CpuTable| CpuResult { ns: table.costs.named().collect(), table: table.name.into_owned() }),
        };
        if let Some((since, stored)) = since.as_ref().zip(all_stored) {
            lifetime::add(&mut result, since, stored);
        }
        Outcome { result, failure: measured.failure.or(broken), census: None }
    }
}

/// The warning that figures are not those of a drive in long use. `written_bytes` are the workload's.
fn stationary_warning(is_steady: bool, is_unworn: bool, written_bytes: u64) -> Option<String> {
    let what = match (is_steady, is_unworn) {
        _ if written_bytes == 0 => return None,
        (_, true) => {
            "nothing was erased, as the drive still had blocks that were never written: there is no steady state and no lifetime"
        }
        (false, false) => "no steady state was found: the write amplification was still moving, or the run was short",
        (true, false) => return None,
    };
    Some(format!("{what}; write more, or --fill and --precondition before counting"))
}

/// MiB read and written by a workload.
pub(super) fn transferred_mib(workload: &WorkloadResult) -> f64 {
    (workload.read_blocks + workload.written_blocks) as f64 * BLOCK_BYTES as f64 / (1 << 20) as f64
}

/// Ends a run of the engine: makes its outcome and, if reads are verified and nothing failed, reads everything back.
pub(super) fn conclude<B: Backend>(
    name: PathName<'_>,
    mut run: Run<B>,
    workload: &dyn Workload,
    options: &Options,
    ended: Result<bool, RunError>,
) -> Outcome {
    let measured = measured(&run, workload, options, ended);
    let outcome = Outcome::of(name, measured, Some((&run.before, &run.backend.account())));
    let census = run.backend.census();
    let failure = outcome.failure.or_else(|| run.read_back().err());
    Outcome { failure, census, ..outcome }
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
    let counts = cache_counts(run, workload);
    let served = WorkloadResult {
        name: workload.name().to_string(),
        requests: run.served.requests,
        read_blocks: run.served.read_blocks,
        written_blocks: run.served.written_blocks,
        discarded_blocks: run.served.discarded_blocks,
        rejected_lines: workload.rejected(),
        application_blocks: match &counts {
            Some(counts) => Some(counts.object_bytes().div_ceil(BLOCK_BYTES)),
            None => application_blocks(&run.served, run.backend.cpu().is_some()),
        },
    };
    Measured {
        seed: options.seed,
        above: from_the_workload(&run.served.written),
        written: Some(run.served.written),
        exported_bytes: run.exported_bytes,
        seconds_simulated,
        throughput_mib_s: seconds_simulated
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| transferred_mib(&served) / seconds),
        latency_ns: is_timed.then(|| {
            let (read, write) = (run.read_latency.percentiles(), run.write_latency.percentiles());
            Latencies { read, write, ..Latencies::default() }
        }),
        windows: run.over_time.as_deref().unwrap_or(&run.windows).report(run.start, is_timed),
        is_of_engine: true,
        steady,
        warnings: workload.warnings().into_iter().chain(run.late_warnings()).chain(run.failed_warning()).collect(),
        options: options.arguments(),
        files: None,
        cpu: run.backend.cpu(),
        interrupted: matches!(ended, Ok(false)),
        failure: ended.err(),
        workload: served,
        cache: counts.as_ref().map(cache_result),
        tenants: run.tenants.as_ref().map_or_else(Vec::new, |tenants| tenants.results(seconds_simulated)),
    }
}

/// The counts of the workload's cache from the beginning of counting, if it has one.
fn cache_counts<B: Backend>(run: &Run<B>, workload: &dyn Workload) -> Option<CacheCounts> {
    workload.cache().map(|counts| counts.since(&run.cache_before))
}

fn cache_result(counts: &CacheCounts) -> CacheResult {
    let over = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let engine = |of: &EngineCounts| EngineResult {
        hits: of.hits,
        objects: of.objects,
        object_bytes: of.object_bytes,
        written_bytes: of.written_bytes,
        write_amplification: over(of.written_bytes, of.object_bytes),
        evicted: of.evicted,
    };
    let CacheCounts { buckets, regions, .. } = counts;
    CacheResult {
        gets: counts.gets,
        hit_ratio: over(counts.memory_hits + buckets.hits + regions.hits, counts.gets),
        memory_hits: counts.memory_hits,
        sets: counts.sets,
        set_bytes: counts.set_bytes,
        deletes: counts.deletes,
        not_admitted: counts.not_admitted,
        too_large: counts.too_large,
        write_amplification: over(buckets.written_bytes + regions.written_bytes, counts.object_bytes()),
        buckets: engine(buckets),
        regions: engine(regions),
    }
}

/// The blocks that applications wrote: of a labelled trace those with data; in the file of a file system all.
fn application_blocks(served: &Served, is_in_file: bool) -> Option<u64> {
    let of = |content: Content| served.written[content as usize].0;
    let is_labelled = of(Content::Journal) + of(Content::Metadata) > 0;
    (is_labelled || is_in_file).then(|| if is_labelled { of(Content::Data) } else { served.written_blocks })
}

/// The workload's writes by content: the ledger's first rows.
fn from_the_workload(written: &Written) -> Vec<LedgerRow> {
    let blocks = |content: Content| written[content as usize].0;
    let contents = Content::ALL.into_iter().filter(|content| blocks(*content) > 0);
    contents.map(|content| row("workload", Label::host(content), blocks(content) as f64)).collect()
}
