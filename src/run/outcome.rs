//! What a run ends with: its result, and, if it did not end well, why.

use super::engine::{Options, Run, RunError};
use super::path::Path;
use super::steady::steady_from;
use crate::label::{Cause, Content, Tally};
use crate::report::{
    FlashResult, Latencies, LedgerRow, RunResult, SumCheck, TranslationResult, Wear, WorkloadResult,
    WriteAmplification, wear_bins,
};
use crate::translation::Translation;
use crate::units::BLOCK_BYTES;
use crate::workload::Workload;

/// The end of a run. The result tells what was measured, even if the run failed on its way.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured.
    pub result: RunResult,
    /// Why the run failed; `None` if it did not.
    pub failure: Option<RunError>,
}

/// Draws the result of a run up, checks its sums, and, if reads are verified, reads everything back.
pub(super) fn conclude<T: Translation>(
    path: &Path,
    mut run: Run<T>,
    workload: &dyn Workload,
    options: &Options,
    ended: Result<bool, RunError>,
) -> Outcome {
    let mut result = result_of(path, &run, workload, options);
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
    Outcome { result, failure }
}

fn result_of<T: Translation>(path: &Path, run: &Run<T>, workload: &dyn Workload, options: &Options) -> RunResult {
    let flash = run.drive.flash();
    let page_bytes = u64::from(flash.geometry.page_bytes);
    let programmed = flash.counts.programmed.since(&run.baseline.flash.programmed);
    let sent = run.drive.sent().since(&run.baseline.sent);
    let written_bytes = run.served.written_blocks * BLOCK_BYTES;
    let total = (written_bytes > 0).then(|| (programmed.total() * page_bytes) as f64 / written_bytes as f64);
    let steady = steady_from(run.windows.marks());
    let simulated = T::TIMED.then(|| run.end.since_ns(run.baseline.start) as f64 / 1e9);
    let moved_mib = (run.served.read_blocks + run.served.written_blocks) as f64 * BLOCK_BYTES as f64 / (1 << 20) as f64;
    let mut warnings = workload.warnings();
    if written_bytes > 0 && steady.is_none() {
        warnings.push(
            "no steady state was found: the write amplification was still moving, or the run was short; write more, or --fill and --precondition before counting"
                .to_string(),
        );
    }
    RunResult {
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
        flash: FlashResult {
            programmed_pages: programmed.total(),
            read_pages: flash.counts.read.since(&run.baseline.flash.read).total(),
            erased_blocks: flash.counts.erased_blocks - run.baseline.flash.erased_blocks,
            effective_overprovisioning: run.drive.effective_overprovisioning(),
            page_bytes,
            pages_per_block: u64::from(flash.geometry.pages_per_block),
            blocks: u64::from(flash.geometry.blocks),
            raw_bytes: flash.geometry.raw_bytes(),
            exported_bytes: run.drive.exported_pages() * page_bytes,
            mapping_ram_bytes: run.drive.mapping_ram_bytes(),
        },
        translation: TranslationResult {
            station: run.drive.name().to_string(),
            mapping_reads: flash
                .counts
                .read
                .since(&run.baseline.flash.read)
                .entries()
                .filter(|(_, content, _)| *content == Content::Mapping)
                .map(|(.., count)| count)
                .sum(),
            events: run
                .drive
                .events()
                .into_iter()
                .zip(&run.baseline.events)
                .map(|((name, now), (_, then))| (name.to_string(), now - then))
                .collect(),
        },
        write_amplification: WriteAmplification {
            total,
            steady: steady.map(|(_, value)| value),
            steady_from_fraction: steady.map(|(from, _)| from as f64 / run.served.written_blocks as f64),
        },
        ledger: ledger(run, &sent, &programmed, page_bytes),
        wear: wear(run, total),
        latency_ns: T::TIMED
            .then(|| Latencies { read: run.read_latency.percentiles(), write: run.write_latency.percentiles() }),
        throughput_mib_s: simulated.filter(|seconds| *seconds > 0.0).map(|seconds| moved_mib / seconds),
        windows: run.windows.report(run.baseline.start, T::TIMED),
        sums: sums(run, &sent, &programmed),
        warnings,
        options: options.arguments(),
    }
}

/// From the workload down: what it wrote, what the translation layer sent, what the flash programmed.
fn ledger<T: Translation>(run: &Run<T>, sent: &Tally, programmed: &Tally, page_bytes: u64) -> Vec<LedgerRow> {
    let row = |station: &str, cause: Cause, content: Content, blocks: f64| LedgerRow {
        station: station.to_string(),
        cause: cause.name().to_string(),
        content: content.name().to_string(),
        blocks,
    };
    let per_page = page_bytes as f64 / BLOCK_BYTES as f64;
    let mut rows: Vec<LedgerRow> = Content::ALL
        .into_iter()
        .filter(|content| run.served.written[*content as usize].0 > 0)
        .map(|content| row("workload", Cause::HostWrite, content, run.served.written[content as usize].0 as f64))
        .collect();
    for (station, tally) in [(run.drive.name(), sent), ("nand", programmed)] {
        rows.extend(
            tally.entries().map(|(cause, content, pages)| row(station, cause, content, pages as f64 * per_page)),
        );
    }
    rows
}

fn wear<T: Translation>(run: &Run<T>, amplification: Option<f64>) -> Wear {
    let flash = run.drive.flash();
    let counts = flash.erase_counts;
    let max = counts.iter().copied().max().unwrap_or(0);
    let page_bytes = f64::from(flash.geometry.page_bytes);
    let tib = (1u64 << 40) as f64;
    let endurance = f64::from(flash.endurance);
    let host_bytes = run.drive.sent().of_cause(Cause::HostWrite) as f64 * page_bytes;
    Wear {
        erase_count_min: counts.iter().copied().min().unwrap_or(0),
        erase_count_mean: counts.iter().map(|&count| f64::from(count)).sum::<f64>() / counts.len() as f64,
        erase_count_max: max,
        endurance: flash.endurance,
        worn_out_blocks: counts.iter().filter(|&&count| count >= flash.endurance).count() as u64,
        lifetime_host_tib: amplification.map(|wa| flash.geometry.raw_bytes() as f64 * endurance / wa / tib),
        lifetime_host_tib_first_block: (max > 0).then(|| host_bytes * endurance / f64::from(max) / tib),
        histogram: wear_bins(counts),
    }
}

/// The sums that hold in every run.
fn sums<T: Translation>(run: &Run<T>, sent: &Tally, programmed: &Tally) -> Vec<SumCheck> {
    let check = |name: &str, left: u64, right: u64, same: bool| SumCheck {
        name: name.to_string(),
        left: left as f64,
        right: right as f64,
        holds: same && left == right,
    };
    let host_pages: u64 = run.served.written.iter().map(|(_, pages)| pages).sum();
    let same_contents = Content::ALL
        .into_iter()
        .all(|content| sent.get(Cause::HostWrite, content) == run.served.written[content as usize].1);
    let flash = run.drive.flash();
    let layer = run.drive.name();
    let there_now: u64 = flash.programmed_pages.iter().map(|&pages| u64::from(pages)).sum();
    let erases: u64 = flash.erase_counts.iter().map(|&count| u64::from(count)).sum();
    let per_block = u64::from(flash.geometry.pages_per_block);
    vec![
        check(
            &format!("pages that {layer} received = pages that the workload wrote, for each content"),
            sent.of_cause(Cause::HostWrite),
            host_pages,
            same_contents,
        ),
        check(
            &format!("pages that nand programmed = pages that {layer} sent, for each cause and content"),
            programmed.total(),
            sent.total(),
            programmed == sent,
        ),
        check(
            "pages programmed since new + pages erased without = blocks erased x pages per block + pages programmed now",
            flash.counts.programmed.total() + flash.counts.erased_unprogrammed,
            erases * per_block + there_now,
            true,
        ),
        check("blocks erased = the sum of the erase counts", flash.counts.erased_blocks, erases, true),
    ]
}
