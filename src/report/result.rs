//! The result of one workload on one path: the source of JSON and all other forms.
//!
//! The names are stable, as other programs rely on them: fields may be added, never renamed. Blocks are 4 KiB.

use serde::Serialize;
use std::collections::BTreeMap;

/// The result of one run on one path.
///
/// All forms of report are made from a list of results, one for each path:
///
/// ```
/// use flashpath::report::{Environment, RunResult, html, json, table};
/// use flashpath::run::{BlockWork, Job, NoMachine, Path, Place, RunOptions, Work, run};
///
/// let simulate = |path: &str| -> Result<RunResult, Box<dyn std::error::Error>> {
///     let path = Path::read(path)?;
///     let work = Work::Blocks(BlockWork::generated("zipf:writes=1x,theta=1", 1)?);
///     let job = Job { work, place: Place::Path(&path), seed: 1, options: RunOptions::default() };
///     Ok(run(job, &NoMachine, &mut |_| true)?.result)
/// };
/// let results = [simulate("page/nand:size=256M")?, simulate("dftl:table=1000/nand:size=256M")?];
/// assert!(results[1].flash.programmed_pages > results[0].flash.programmed_pages, "the map is on flash, too");
///
/// assert!(table(&results, 100, false).contains("write amplification"));
/// assert!(json(&results, &Environment::default()).contains("\"write_amplification\""));
/// assert!(html(&results).starts_with("<!doctype html>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// The short name of the path, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path as the user wrote it.
    pub path: String,
    /// The path with every option, from which the run can be repeated.
    pub path_in_full: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Wall-clock seconds of the run; 0 if not measured.
    pub seconds_wall: f64,
    /// Simulated seconds of the run; `None` without a timing model.
    pub seconds_simulated: Option<f64>,
    /// True if the run was interrupted; the figures cover the completed part.
    pub interrupted: bool,
    /// The workload, counted at the top of the path.
    pub workload: WorkloadResult,
    /// The cache whose drive the path is; absent for other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// The tenants of the device, if the workload has several queues.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantResult>,
    /// The flash.
    pub flash: FlashResult,
    /// The translation layers' own counts, beside programs and erases.
    pub translation: TranslationResult,
    /// Bytes stored by all media over bytes the workload wrote.
    pub write_amplification: WriteAmplification,
    /// The blocks that each station passed on, by cause, origin and content, from the workload down to the media.
    pub ledger: Vec<LedgerRow>,
    /// The media: the last stations of the ledger.
    pub media: Vec<String>,
    /// The stations below the workload, each behind the one above it. The report draws the path from them.
    #[serde(skip)]
    pub stations: Vec<StationResult>,
    /// The write requests of a file system to each station below it; empty without a file system.
    pub write_requests: Vec<WriteRequestsResult>,
    /// Erase counts.
    pub wear: Wear,
    /// Maps of erase blocks, zones and segments at the end of the run, of the stations that have any, from the top down.
    pub maps: Vec<StationMap>,
    /// Latencies; absent without a timing model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latencies>,
    /// The energy of the flash; absent unless it was asked for (`nand:energy=on`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyResult>,
    /// Bytes read and written by the workload over simulated seconds, in MiB/s; `None` without a timing model. In a
    /// kernel file system and in a directory, which are not simulated, over wall-clock seconds.
    pub throughput_mib_s: Option<f64>,
    /// The run of a workload in files; absent where blocks were asked for, or another program ran.
    #[serde(flatten)]
    pub files: Option<FilesResult>,
    /// Seconds of each window but the last, if they are by recorded times; `None` if they are of equal host writes.
    pub window_seconds: Option<f64>,
    /// The run in windows of equal host writes, or of equal times, in order.
    pub windows: Vec<Window>,
    /// The write amplification of the windows by cause and origin; the sum over all is that of the window.
    pub window_causes: Vec<CauseOverTime>,
    /// The checked sums of the ledger. If one does not hold, the run has failed.
    pub sums: Vec<SumCheck>,
    /// Warnings: rejected lines, time stamps that go back, no steady state.
    pub warnings: Vec<String>,
    /// The options of the run beyond its seed, as arguments of `flashpath run`: `--fill`, `--limit 1000`. With the
    /// workload, the seed and the full path, they repeat the run.
    pub options: Vec<String>,
    /// The CPU time of a file system that counted as simulated time; absent where there is no file system, or it is the
    /// kernel's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuResult>,
}

impl RunResult {
    /// The short name of the path, or the path.
    pub(super) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.path)
    }

    /// The path behind its short name, if it has one: `base = page/nand`.
    pub(super) fn full_label(&self) -> String {
        self.name.as_ref().map_or_else(|| self.path.clone(), |name| format!("{name} = {}", self.path))
    }

    /// True if it is of a run in a directory: nothing is known of what lies below.
    pub(super) fn is_in_directory(&self) -> bool {
        self.media.is_empty() && self.files.is_some()
    }
}

/// A table of CPU time.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct CpuResult {
    /// Where it is from; `off` if no CPU time counted.
    pub table: String,
    /// Nanoseconds of each kind of step.
    pub ns: BTreeMap<&'static str, u64>,
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
    /// Rejected lines of a trace.
    pub rejected_lines: u64,
    /// Blocks that applications wrote, without the journal and the metadata of a file system: those of files or, of a
    /// trace that has contents, those with data. `None` where neither tells.
    pub application_blocks: Option<u64>,
}

/// A tenant of the device: a source of requests with a queue of its own.
#[derive(Debug, Clone, Serialize)]
pub struct TenantResult {
    /// Its name.
    pub name: String,
    /// The most requests that it has in flight.
    pub queue_depth: u32,
    /// Operations served.
    pub requests: u64,
    /// Blocks touched by its reads.
    pub read_blocks: u64,
    /// Blocks touched by its writes.
    pub written_blocks: u64,
    /// Blocks touched by its discards.
    pub discarded_blocks: u64,
    /// Bytes that it read and wrote over the simulated seconds of the run, in MiB/s; `None` without a timing model.
    pub throughput_mib_s: Option<f64>,
    /// Its latencies; absent without a timing model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latencies>,
}

/// A flash cache of objects whose drive the path is. Bytes of objects are those of keys and values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheResult {
    /// Objects asked for.
    pub gets: u64,
    /// The share of them that was found; `None` if none was asked for.
    pub hit_ratio: Option<f64>,
    /// Those found in memory.
    pub memory_hits: u64,
    /// Objects set, also those that were asked for and not there.
    pub sets: u64,
    /// Their bytes.
    pub set_bytes: u64,
    /// Objects deleted, whether they were there or not.
    pub deletes: u64,
    /// Objects that left memory and were not admitted to the drive.
    pub not_admitted: u64,
    /// Objects that are larger than a region, and were not stored.
    pub too_large: u64,
    /// Bytes written to the drive over those of the objects that were put there; `None` if none was.
    pub write_amplification: Option<f64>,
    /// The engine of small objects.
    pub buckets: EngineResult,
    /// The engine of large objects.
    pub regions: EngineResult,
}

/// An engine of a flash cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineResult {
    /// Objects found.
    pub hits: u64,
    /// Objects put.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Bytes written to the drive.
    pub written_bytes: u64,
    /// Bytes written over those of objects; `None` if none was put.
    pub write_amplification: Option<f64>,
    /// Objects that left for others.
    pub evicted: u64,
}

/// The run of a workload in files.
#[derive(Debug, Clone, Serialize)]
pub struct FilesResult {
    /// Seconds of the counted stages; `None` without a timing model.
    pub seconds_counted: Option<f64>,
    /// The number of concurrent threads.
    pub threads: u64,
    /// Bytes of the counted stages.
    pub bytes: MovedBytes,
    /// All stages in order.
    pub stages: Vec<StageResult>,
}

/// Bytes read and written.
#[derive(Debug, Clone, Serialize)]
pub struct MovedBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// One stage of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct StageResult {
    /// The name of the stage.
    pub name: &'static str,
    /// True if it is counted.
    pub counted: bool,
    /// Its seconds, simulated or of the wall clock; `None` without a timing model.
    pub seconds: Option<f64>,
    /// The number of operations.
    pub requests: u64,
    /// The time that simulated threads waited for each other; empty where nothing is simulated.
    pub gate_waits: Vec<GateWaitsResult>,
}

/// The waits of simulated threads at all gates of a name, of all threads together.
#[derive(Debug, Clone, Serialize)]
pub struct GateWaitsResult {
    /// The name: `inode`, `transaction`, ...
    pub gate: &'static str,
    /// The number of waits.
    pub waits: u64,
    /// Their seconds of simulated time.
    pub seconds: f64,
}

/// The flash's side of a run over all drives, from the beginning of counting. If page sizes differ, pages are counted
/// in 4 KiB.
#[derive(Debug, Clone, Serialize)]
pub struct FlashResult {
    /// Pages programmed.
    pub programmed_pages: u64,
    /// Pages read.
    pub read_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Spare pages over exported pages, after reserves and open blocks; `None` if no single layer has them.
    pub effective_overprovisioning: Option<f64>,
    /// Bytes of a page: of flash or, if that is smaller, of the unit of its mapping.
    pub page_bytes: u64,
    /// Programs of pages of flash, of `program_bytes` each.
    pub programs: u64,
    /// Bytes that a program writes at once: of one page, or of several.
    pub program_bytes: u64,
    /// Pages of an erase block.
    pub pages_per_block: u64,
    /// Erase blocks.
    pub blocks: u64,
    /// Bytes of all pages.
    pub raw_bytes: u64,
    /// Bytes exported by the path.
    pub exported_bytes: u64,
    /// Bytes of mapping in the RAM of a real drive; `None` if the path is not a drive.
    pub mapping_ram_bytes: Option<u64>,
}

/// A translation layer's side of a run, from the beginning of counting.
#[derive(Debug, Clone, Serialize)]
pub struct TranslationResult {
    /// The station.
    pub station: String,
    /// Flash pages read for the mapping.
    pub mapping_reads: u64,
    /// The layer's other counts, by name: merges by kind, hits and misses of a table.
    pub events: BTreeMap<String, u64>,
    /// The placement of a drive with reclaim units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementResult>,
}

/// Flexible data placement: the statistics of a drive, and its handles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementResult {
    /// Bytes of a reclaim unit.
    pub unit_bytes: u64,
    /// Reclaim groups.
    pub groups: u32,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Bytes that the flash programmed.
    pub media_bytes: u64,
    /// Bytes that the flash erased.
    pub erased_bytes: u64,
    /// Bytes that were copied out of units with copies of several handles.
    pub shared_copied_bytes: u64,
    /// The handles, by number.
    pub handles: Vec<HandleResult>,
}

/// A reclaim unit handle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandleResult {
    /// `initial` or `persistent`.
    pub isolation: String,
    /// Bytes that the host wrote to it.
    pub host_bytes: u64,
    /// Bytes that were copied out of its own units.
    pub copied_bytes: u64,
    /// The times that the host gave up its unit.
    pub updates: u64,
}

/// The energy of the flash from the beginning of counting, in joules: of operations, and of dies that are powered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyResult {
    /// All of it.
    pub total_j: f64,
    /// Reads of pages from the array.
    pub reads_j: f64,
    /// Programs.
    pub programs_j: f64,
    /// Erases.
    pub erases_j: f64,
    /// Transfers over channels.
    pub transfers_j: f64,
    /// The energy that dies take beside their operations; `None` where no time was simulated.
    pub idle_j: Option<f64>,
    /// Joules for each GiB that the workload wrote; `None` if it wrote nothing.
    pub total_j_per_host_gib: Option<f64>,
    /// The operations by kind.
    pub operations: Vec<EnergyOperation>,
}

/// The operations of one kind, and the energy of one of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyOperation {
    /// `read`, `program`, `erase` or `transfer`.
    pub operation: String,
    /// The kind of page, or what else it is done with.
    pub of: String,
    /// The number of operations.
    pub count: u64,
    /// Joules of one.
    pub joules_each: f64,
}

/// Bytes stored by all media, or programmed where they are flash, over bytes the workload wrote.
#[derive(Debug, Clone, Serialize)]
pub struct WriteAmplification {
    /// Over the whole run; `None` if the workload wrote nothing.
    pub total: Option<f64>,
    /// Over the steady part of the run; `None` if there is none.
    pub steady: Option<f64>,
    /// The share of the host writes before the steady part.
    pub steady_from_fraction: Option<f64>,
    /// Bytes stored by all media over bytes that applications wrote, over the whole run; `None` if those are not known.
    pub application: Option<f64>,
}

/// One row of the ledger.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LedgerRow {
    /// The station that passed the blocks on: `workload`, then the path's stations. The media, the last ones, count the
    /// blocks they stored; flash, those it programmed. The second station of a name is called `zns-2`.
    pub station: String,
    /// The cause: see [`crate::label::Cause`].
    pub cause: String,
    /// The cause for which the first station wrote the blocks.
    pub origin: String,
    /// The content: see [`crate::label::Content`].
    pub content: String,
    /// The number of 4 KiB blocks.
    pub blocks: f64,
}

/// A station's place in the path, and its counts beside the ledger.
#[derive(Debug, Clone)]
pub struct StationResult {
    /// Its name in the ledger.
    pub name: String,
    /// The station above it; `workload` for the first.
    pub above: String,
    /// The blocks that it received, with the causes of the station above.
    pub received: Vec<LedgerRow>,
    /// 4 KiB blocks in the flash blocks that it erased; `None` without flash.
    pub erased_blocks: Option<f64>,
}

/// The write requests of a file system to a station below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WriteRequestsResult {
    /// The station.
    pub station: String,
    /// The calls of the file system.
    pub calls: u64,
    /// The requests that a block layer makes of them: a write is merged into the one before it if it begins where that ends.
    pub merged: u64,
    /// The largest request, in bytes.
    pub max_bytes: u64,
}

/// Erase counts over the drive's blocks, from new; of a zoned drive, over its zones.
#[derive(Debug, Clone, Serialize)]
pub struct Wear {
    /// The erase count of the least worn block.
    pub erase_count_min: u32,
    /// The mean erase count.
    pub erase_count_mean: f64,
    /// The erase count of the most worn block.
    pub erase_count_max: u32,
    /// The endurance of a block, in erases.
    pub endurance: u32,
    /// Blocks retired at their endurance.
    pub worn_out_blocks: u64,
    /// Blocks in which a program or an erase has failed; `None` if none can.
    pub bad_blocks: Option<u64>,
    /// Blocks that the drive, of several the first, can still lose before it is read-only.
    pub spare_blocks_left: Option<u64>,
    /// TiB of host writes until the flash is worn out, with even wear and this run's write amplification; `None` if the
    /// run erased nothing.
    pub lifetime_host_tib: Option<f64>,
    /// The same until the most worn block reaches its endurance, with wear as uneven as in this run.
    pub lifetime_host_tib_first_block: Option<f64>,
    /// TiB that applications write until the flash is worn out, with even wear, if it goes on as in the count; `None` if
    /// those bytes are not known, or the run erased nothing.
    pub lifetime_application_tib: Option<f64>,
    /// The capacity that the path exports, written by its host so often a day, wears the flash out in five years.
    pub drive_writes_per_day: Option<f64>,
    /// The life at a rate of writes, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateResult>,
    /// The distribution of erase counts, ascending.
    pub histogram: Vec<WearBin>,
    /// The wear in SLC mode and in that of all bits, if blocks have been in both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeWear>,
}

/// The wear of erase blocks in one mode of their cells, from new.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct ModeWear {
    /// The bits of a cell in this mode: `slc`, `mlc`, `tlc`, `qlc`.
    pub mode: String,
    /// Erase blocks that are used in this mode: with a dynamic cache all, in both.
    pub blocks: u64,
    /// Erases that ended a use in this mode.
    pub erases: u64,
    /// Erases before a block is worn out that is used in this mode alone.
    pub endurance: u32,
    /// The share of these blocks' life that was used in this mode, from 0 to 1.
    pub used: f64,
}

/// The life of the flash at a rate of writes.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct RateResult {
    /// The rate, in bytes a day.
    pub bytes_per_day: u64,
    /// The writer of these bytes: `application` where its bytes are known, else `host`.
    pub of: &'static str,
    /// Years until the flash is worn out; `None` without a lifetime.
    pub years: Option<f64>,
    /// The rate in capacities that the path exports, a day.
    pub drive_writes_per_day: Option<f64>,
}

/// The erase blocks, zones or segments of a station at the end of a run, in the order of their addresses, in at most 1,024
/// cells. A list has a value for each cell; one that the station does not know is absent.
#[derive(Debug, Clone, Serialize)]
pub struct StationMap {
    /// The station, as in the ledger.
    pub station: String,
    /// The name of a unit: `erase block`, `zone` (those written in order), `segment`.
    pub unit: String,
    /// The number of units.
    pub units: u64,
    /// Units of a cell; the last may have fewer.
    pub units_per_cell: u64,
    /// The share of each cell that is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<f64>,
    /// The share of each cell that is live.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<f64>,
    /// The mean erase count of each cell, from new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub erases_mean: Vec<f64>,
    /// The highest erase count of each cell, from new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub erases_max: Vec<u32>,
    /// The state of each cell: `empty`, `full`, `free`, `open`..., or `mixed` if its units differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
}

/// The blocks with erase counts in a range.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct WearBin {
    /// The lowest count.
    pub from: u32,
    /// The highest count.
    pub to: u32,
    /// The number of blocks.
    pub blocks: u64,
}

/// Latencies of requests, from issue to completion.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Latencies {
    /// Reads; `None` without any.
    pub read: Option<Percentiles>,
    /// Writes; `None` without any.
    pub write: Option<Percentiles>,
    /// The other classes of operations on files: `create`, `fsync`...
    #[serde(flatten)]
    pub others: BTreeMap<&'static str, Percentiles>,
}

impl Latencies {
    /// The latencies of these classes of operations on files.
    pub fn of_classes(mut classes: BTreeMap<&'static str, Percentiles>) -> Latencies {
        Latencies { read: classes.remove("read"), write: classes.remove("write"), others: classes }
    }

    /// The latencies of a class, if there are any.
    pub(crate) fn class_mut(&mut self, class: &str) -> Option<&mut Percentiles> {
        match class {
            "read" => self.read.as_mut(),
            "write" => self.write.as_mut(),
            other => self.others.get_mut(other),
        }
    }

    /// Each class and its latencies, sorted by class.
    pub(super) fn classes(&self) -> BTreeMap<&'static str, &Percentiles> {
        let read_and_write = [("read", &self.read), ("write", &self.write)];
        let read_and_write = read_and_write.into_iter().filter_map(|(class, latency)| Some((class, latency.as_ref()?)));
        read_and_write.chain(self.others.iter().map(|(class, latency)| (*class, latency))).collect()
    }
}

/// A distribution of latencies in nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Percentiles {
    /// The shortest.
    pub min: u64,
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
    /// The standard deviation.
    pub stddev: f64,
    /// The number of requests.
    pub count: u64,
    /// The cumulative distribution: (nanoseconds, share of the requests with at most this latency), ascending.
    pub cumulative: Vec<(u64, f64)>,
    /// What they are made of; absent unless it was asked for (`--waits`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Box<PercentileParts>>,
}

/// What the latencies at each percentile are made of, in nanoseconds: the means over the requests whose latency differs from the
/// percentile by a 64th at most.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PercentileParts {
    /// Of the median.
    pub p50: LatencyParts,
    /// Of the latency that 99 of 100 do not exceed.
    pub p99: LatencyParts,
    /// Of the latency that 999 of 1,000 do not exceed.
    pub p999: LatencyParts,
    /// Of the longest.
    pub max: LatencyParts,
    /// The means over all requests.
    pub mean: LatencyParts,
}

/// The parts of a latency, in nanoseconds. They are those of the log of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LatencyParts {
    /// Waiting for a die (a plane) that other requests used.
    pub die_wait: f64,
    /// Waiting for a channel that other requests used.
    pub channel_wait: f64,
    /// Waiting for a die or channel in use for collection; operations for collection.
    pub collection: f64,
    /// The same of erases.
    pub erase: f64,
    /// The same of the map of a translation layer.
    pub mapping: f64,
    /// Waiting for a place in a drive's write buffer.
    pub buffer: f64,
    /// Reading again what could not be corrected.
    pub retry: f64,
    /// The device's work for the request itself.
    pub service: f64,
    /// Outside of devices with a timing model.
    pub other: f64,
}

impl LatencyParts {
    /// Each part with its name, those that are zero too.
    pub fn named(&self) -> [(&'static str, f64); 9] {
        let LatencyParts { die_wait, channel_wait, collection, erase, mapping, buffer, retry, service, other } = *self;
        [
            ("waiting for dies", die_wait),
            ("waiting for channels", channel_wait),
            ("collection", collection),
            ("erases", erase),
            ("the map", mapping),
            ("the write buffer", buffer),
            ("retries", retry),
            ("service", service),
            ("outside of devices", other),
        ]
    }
}

/// A part of the run.
#[derive(Debug, Clone, Serialize)]
pub struct Window {
    /// Blocks written by the host up to the end of the window.
    pub written_blocks: u64,
    /// Simulated seconds at its end; `None` without a timing model.
    pub seconds_simulated: Option<f64>,
    /// Bytes stored over bytes written within the window; `None` if nothing was written in it.
    pub write_amplification: Option<f64>,
    /// Blocks of 4 KiB that all media stored within the window.
    pub stored_blocks: f64,
    /// MiB read and written a simulated second within the window; `None` without a timing model.
    pub throughput_mib_s: Option<f64>,
    /// Erase blocks that are erased and that no layer has begun to write, at its end; `None` without flash.
    pub free_blocks: Option<u64>,
    /// The requests in flight; absent unless windows are by recorded times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Latencies of the requests that ended within the window, by class; absent without a timing model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_ns: BTreeMap<&'static str, WindowLatency>,
}

/// The requests in flight within a window: the queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InFlight {
    /// Their mean number when a request is issued, with that one.
    pub mean: f64,
    /// Their greatest number.
    pub max: u64,
}

/// Latencies of the requests of one window and class, in nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub struct WindowLatency {
    /// The median: at most a 64th above the true one.
    pub p50: u64,
    /// 99 of 100 are at most this: at most a 64th above the true one.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// The number of requests.
    pub count: u64,
}

/// A part of the write amplification over time.
#[derive(Debug, Clone, Serialize)]
pub struct CauseOverTime {
    /// The cause for which the media stored the blocks.
    pub cause: String,
    /// The cause for which the first station wrote them.
    pub origin: String,
    /// Bytes stored for it over bytes written by the host, for each of the windows; `None` if nothing was written in it.
    pub write_amplification: Vec<Option<f64>>,
    /// Blocks of 4 KiB stored for it, in each of the windows.
    pub blocks: Vec<f64>,
}

/// A sum checked at the end of a run.
#[derive(Debug, Clone, Serialize)]
pub struct SumCheck {
    /// The equation in words.
    pub name: String,
    /// The left side.
    pub left: f64,
    /// The right side.
    pub right: f64,
    /// True if they are equal.
    pub holds: bool,
}
