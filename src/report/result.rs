//! The result of one workload on one path: the object that JSON prints and every other form is made from.
//!
//! The names are fixed: other programs rely on them. More may be added, none renamed. Blocks are 4 KiB.

use serde::Serialize;
use std::collections::BTreeMap;

/// What one run on one path measured.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// The path as the user wrote it.
    pub path: String,
    /// The path with every option written out, so that the run can be repeated.
    pub path_in_full: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// How long the run took on the wall clock; 0 when nobody measured it.
    pub seconds_wall: f64,
    /// How long it took in simulated time; `None` without a timing model.
    pub seconds_simulated: Option<f64>,
    /// Whether the run was interrupted: what follows holds for the part that was done.
    pub interrupted: bool,
    /// The workload, as it was counted on its way into the path.
    pub workload: WorkloadResult,
    /// The drive.
    pub flash: FlashResult,
    /// What the translation layer did beside programs and erases.
    pub translation: TranslationResult,
    /// Bytes stored by all media over bytes the workload wrote.
    pub write_amplification: WriteAmplification,
    /// What each station passed on, by cause and content, from the workload down to the media.
    pub ledger: Vec<LedgerRow>,
    /// The stations of the ledger that store: the last ones, side by side.
    pub media: Vec<String>,
    /// Erase counts.
    pub wear: Wear,
    /// Latencies; absent without a timing model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latencies>,
    /// Bytes read and written by the workload over simulated seconds, in MiB/s; `None` without a timing model. In a file
    /// system of the kernel, where nothing is simulated, over the seconds that it took.
    pub throughput_mib_s: Option<f64>,
    /// The run in windows of equal host writes, in order.
    pub windows: Vec<Window>,
    /// The sums of the ledger that were checked. All hold, or the run has failed.
    pub sums: Vec<SumCheck>,
    /// What the user should know: rejected lines, time stamps that go backwards, no steady state.
    pub warnings: Vec<String>,
    /// The options of the run beyond its seed, as arguments of `flashpath run`: `--fill`, `--limit 1000`. With the
    /// workload, the seed and the path in full they repeat it.
    pub options: Vec<String>,
}

/// The workload's side of a run.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadResult {
    /// The workload's name.
    pub name: String,
    /// Operations served.
    pub requests: u64,
    /// Blocks touched by reads.
    pub read_blocks: u64,
    /// Blocks touched by writes.
    pub written_blocks: u64,
    /// Blocks touched by discards.
    pub discarded_blocks: u64,
    /// Lines of a trace that could not be read.
    pub rejected_lines: u64,
}

/// The flash's side of a run, all drives together, without what was done before counting began. Where their pages differ,
/// they are counted in 4 KiB.
#[derive(Debug, Clone, Serialize)]
pub struct FlashResult {
    /// Pages programmed.
    pub programmed_pages: u64,
    /// Pages read.
    pub read_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Spare pages over exported pages, after reserves and open blocks; `None` where no one layer has them.
    pub effective_overprovisioning: Option<f64>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of an erase block.
    pub pages_per_block: u64,
    /// Erase blocks.
    pub blocks: u64,
    /// Bytes of all pages.
    pub raw_bytes: u64,
    /// Bytes that the path offers to its user.
    pub exported_bytes: u64,
    /// Bytes of mapping that a real drive would hold in its RAM; `None` where the path is no drive.
    pub mapping_ram_bytes: Option<u64>,
}

/// The translation layer's side of a run, without what was done before counting began.
#[derive(Debug, Clone, Serialize)]
pub struct TranslationResult {
    /// The station.
    pub station: String,
    /// Pages of flash that were read for what they say of the mapping.
    pub mapping_reads: u64,
    /// What else the layer counts, by name: merges by kind, hits and misses of a table.
    pub events: BTreeMap<String, u64>,
}

/// Bytes stored by all media, or programmed where they are flash, over bytes the workload wrote.
#[derive(Debug, Clone, Serialize)]
pub struct WriteAmplification {
    /// Over the whole run; `None` when the workload wrote nothing.
    pub total: Option<f64>,
    /// Over the steady part of the run; `None` when none was found.
    pub steady: Option<f64>,
    /// The share of the host writes after which the run was steady.
    pub steady_from_fraction: Option<f64>,
}

/// One row of the ledger.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LedgerRow {
    /// The station that passed the blocks on: `workload`, then the path's stations; the last, the media, say what
    /// they stored, and flash what it programmed. The second of two of one name is called `zns-2`.
    pub station: String,
    /// Why: see [`crate::label::Cause`].
    pub cause: String,
    /// What they hold: see [`crate::label::Content`].
    pub content: String,
    /// How many, in 4 KiB blocks.
    pub blocks: f64,
}

/// Erase counts over the drive's blocks, from new; of a zoned drive, over its zones.
#[derive(Debug, Clone, Serialize)]
pub struct Wear {
    /// The least worn block's.
    pub erase_count_min: u32,
    /// The mean.
    pub erase_count_mean: f64,
    /// The most worn block's.
    pub erase_count_max: u32,
    /// Erases a block stands.
    pub endurance: u32,
    /// Blocks that have reached it and are out of use.
    pub worn_out_blocks: u64,
    /// TiB the host can write until the flash is worn out, were wear even and the write amplification this run's;
    /// `None` when the run erased nothing.
    pub lifetime_host_tib: Option<f64>,
    /// The same until the most worn block reaches its endurance, were wear to go on as unevenly as in this run.
    pub lifetime_host_tib_first_block: Option<f64>,
    /// How many blocks have how many erases, ascending, each entry a range of counts.
    pub histogram: Vec<WearBin>,
}

/// Blocks whose erase counts lie in a range.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct WearBin {
    /// The lowest count.
    pub from: u32,
    /// The highest count.
    pub to: u32,
    /// Blocks.
    pub blocks: u64,
}

/// Latencies of requests, from issue to completion.
#[derive(Debug, Clone, Serialize)]
pub struct Latencies {
    /// Reads; `None` when there were none.
    pub read: Option<Percentiles>,
    /// Writes; `None` when there were none.
    pub write: Option<Percentiles>,
}

/// A distribution of latencies in nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: u64,
    /// 99 of 100 are at most this.
    pub p99: u64,
    /// 999 of 1,000 are at most this.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// The mean.
    pub mean: f64,
    /// Requests.
    pub count: u64,
    /// The cumulative distribution: (nanoseconds, share of the requests that took at most so long), ascending.
    pub cumulative: Vec<(u64, f64)>,
}

/// A part of the run.
#[derive(Debug, Clone, Serialize)]
pub struct Window {
    /// Blocks the host had written when the window ended.
    pub written_blocks: u64,
    /// Simulated seconds at its end; `None` without a timing model.
    pub seconds_simulated: Option<f64>,
    /// Bytes stored over bytes written within the window.
    pub write_amplification: f64,
}

/// A sum that was checked at the end of a run.
#[derive(Debug, Clone, Serialize)]
pub struct SumCheck {
    /// What must be equal, in words.
    pub name: String,
    /// The one side.
    pub left: f64,
    /// The other.
    pub right: f64,
    /// Whether they are equal.
    pub holds: bool,
}
