//! The settings of a job: its section, checked against the known keys and the device.

use super::ini::{Section, error_at};
use super::keys::{Meaning, meaning};
use super::placement::{self, Hints};
use super::rate::Rate;
use super::sizes::{SECTOR_BYTES, Sizes};
use super::skew::Skew;
use super::values::{Value, parse_number, percent_of};
use super::zones::{ZoneMode, ZoneShape};
use crate::units::format_size;
use crate::workload::{Action, WorkloadError};
use std::collections::BTreeMap;

/// The kinds of a job's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requests {
    /// One action alone.
    Only(Action),
    /// Reads and writes.
    Mixed,
    /// Each block is discarded and then written.
    TrimWrite,
}

impl Requests {
    /// True if there are requests of `action`.
    pub fn include(self, action: Action) -> bool {
        match self {
            Requests::Only(only) => only == action,
            Requests::Mixed => matches!(action, Action::Read | Action::Write),
            Requests::TrimWrite => matches!(action, Action::Discard | Action::Write),
        }
    }
}

/// The actions in the order of fio's value lists.
pub(super) const DIRECTIONS: [Action; 3] = [Action::Read, Action::Write, Action::Discard];

/// The region and amount of one clone of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portion {
    /// The start of its region.
    pub start_bytes: u64,
    /// The length of its region: one block at least.
    pub length_bytes: u64,
    /// The bytes that it moves.
    pub amount_bytes: u64,
}

/// The checked settings of a job.
#[derive(Clone, Debug)]
pub(super) struct JobSettings {
    pub name: String,
    pub requests: Requests,
    /// True if offsets are random; otherwise they are sequential.
    pub is_random: bool,
    /// The sizes of reads, writes and discards.
    pub sizes: [Sizes; 3],
    /// The multiples at which random reads, writes and discards begin.
    pub align: [u64; 3],
    /// One portion for each clone.
    pub portions: Vec<Portion>,
    pub queue_depth: u32,
    /// The rate of its requests; `None`: they come as its queue has room.
    pub rate: Option<Rate>,
    pub read_share: f64,
    pub skew: Skew,
    /// True if every block is visited once before any is visited again (fio's random map).
    pub covers: bool,
    /// The number of writes between flushes, by fsync and fdatasync; 0 for never.
    pub flush_every: [u64; 2],
    pub flushes_at_end: bool,
    pub seed: Option<u64>,
    /// The share of the reads, writes and discards at random offsets; the others are sequential.
    pub random_share: [f64; 3],
    /// True if it waits for the jobs before it.
    pub waits: bool,
    /// The placement hints of its writes.
    pub hints: Hints,
    /// The simulated time after which it ends, in nanoseconds from its first request.
    pub runtime_ns: Option<u64>,
    /// True if it goes on until then, whatever its size.
    pub is_time_based: bool,
    /// The requests after which it ends.
    pub most_requests: Option<u64>,
    pub zones: ZoneMode,
}

impl JobSettings {
    /// The one size of each direction, if requests have one, begin at its multiples, and stay in one region.
    pub fn block_bytes(&self) -> Option<[u64; 3]> {
        let [read, write, discard] = &self.sizes;
        match (read, write, discard) {
            _ if matches!(self.zones, ZoneMode::Strided { .. }) => None,
            (Sizes::One(read), Sizes::One(write), Sizes::One(discard)) => {
                let sizes = [*read, *write, *discard];
                let is_shared = self.covers && self.requests == Requests::Mixed && read != write;
                (self.align == sizes && !is_shared).then_some(sizes)
            }
            _ => None,
        }
    }
}

const RW: [(&str, Requests, bool); 11] = [
    ("read", Requests::Only(Action::Read), false),
    ("write", Requests::Only(Action::Write), false),
    ("trim", Requests::Only(Action::Discard), false),
    ("randread", Requests::Only(Action::Read), true),
    ("randwrite", Requests::Only(Action::Write), true),
    ("randtrim", Requests::Only(Action::Discard), true),
    ("rw", Requests::Mixed, false),
    ("readwrite", Requests::Mixed, false),
    ("randrw", Requests::Mixed, true),
    ("trimwrite", Requests::TrimWrite, false),
    ("randtrimwrite", Requests::TrimWrite, true),
];
/// The engines with one request in flight, whatever the iodepth.
const SYNCHRONOUS_ENGINES: [&str; 6] = ["mmap", "psync", "pvsync", "pvsync2", "sync", "vsync"];
const CLONES_MAX: u32 = 4096;
const DEPTH_MAX: u32 = 1 << 20;
const BLOCK_DEFAULT: u64 = 4096;
/// fio takes the device's limit, which a job cannot ask for here.
const OPEN_ZONES_DEFAULT: u64 = 8;
/// Each zone of a device takes 16 bytes of memory.
const ZONES_MAX: u64 = 1 << 24;
/// Each unit of a random map takes a bit of memory.
const MAP_MAX: u64 = 1 << 32;

/// The honoured keys of a job, by their canonical names.
struct Job<'a> {
    file: &'a str,
    section: &'a Section,
    values: BTreeMap<&'static str, Value<'a>>,
}

impl<'a> Job<'a> {
    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.values.get(key).copied()
    }

    fn or<T>(
        &self,
        key: &str,
        default: T,
        read: impl Fn(&Value<'a>) -> Result<T, WorkloadError>,
    ) -> Result<T, WorkloadError> {
        self.get(key).map_or(Ok(default), |value| read(&value))
    }

    /// An error at `key`, or at the section if the key is not written.
    fn error(&self, key: &str, reason: String) -> WorkloadError {
        match self.get(key) {
            Some(value) => value.error(reason),
            None => error_at(self.file, self.section.line, format!("[{}]: {reason}", self.section.name)),
        }
    }
}

/// The settings of `section` on a device of `device_bytes`. Adds each warning to `warnings` once.
pub(super) fn settle(
    file: &str,
    section: &Section,
    device_bytes: u64,
    warnings: &mut Vec<String>,
) -> Result<JobSettings, WorkloadError> {
    let job = sort_keys(file, section, warnings)?;
    let (requests, is_random) = read_rw(&job)?;
    let sizes = read_sizes(&job, is_random)?;
    let align = read_alignment(&job, &sizes)?;
    let zones = read_zones(&job, used_sizes(requests, &sizes).map(Sizes::largest).max().unwrap_or(BLOCK_DEFAULT))?;
    let portions = read_portions(&job, requests, &sizes, device_bytes)?;
    check_zones(&job, zones, &portions, device_bytes)?;
    let runtime = job.get("runtime").map(|value| value.duration_ns()).transpose()?.filter(|ns| *ns > 0);
    let is_time_based = job.or("time_based", false, Value::switch)?;
    if is_time_based && runtime.is_none() {
        return Err(job.error("time_based", "it needs the time after which the job ends: add runtime=".to_string()));
    }
    let skew = job.or("random_distribution", Skew::Even, Skew::parse)?;
    let random_share =
        job.or("percentage_random", [1.0; 3], |value| value.triple(1.0, "a percentage from 0 to 100", percent_of))?;
    let is_wholly_random = DIRECTIONS.iter().zip(random_share).all(|(a, share)| !requests.include(*a) || share == 1.0);
    let no_map = job.or("norandommap", false, Value::switch)?;
    // An alignment of its own turns the map off, as in fio.
    let is_aligned = job.get("blockalign").is_some();
    let in_zones = zones != ZoneMode::None;
    let covers = is_random && !no_map && skew == Skew::Even && is_wholly_random && !is_aligned && !in_zones;
    let settings = JobSettings {
        name: section.name.clone(),
        requests,
        is_random,
        sizes,
        align,
        portions,
        queue_depth: read_queue_depth(&job, warnings)?,
        rate: read_rate(&job)?,
        read_share: read_mix(&job)?,
        skew,
        covers,
        flush_every: [job.or("fsync", 0, Value::number)?, job.or("fdatasync", 0, Value::number)?],
        flushes_at_end: job.or("end_fsync", false, Value::switch)?,
        seed: job.get("randseed").map(|value| value.number()).transpose()?,
        random_share,
        waits: job.or("stonewall", false, Value::switch)?,
        hints: read_hints(&job, warnings)?,
        runtime_ns: runtime,
        is_time_based,
        most_requests: job.get("number_ios").map(|value| value.number()).transpose()?.filter(|most| *most > 0),
        zones,
    };
    refuse_unequal_sizes(&job, &settings)?;
    if let Some(value) = job.get("filename") {
        if value.text().replace("\\:", "").contains(':') {
            return Err(value.error("there is one device; write one job for each region of it"));
        }
        warn(warnings, format!("{file}:{}: filename is ignored: requests go to the path", value.entry.line));
    }
    Ok(settings)
}

/// Adds a warning once: sections under one [global] repeat it.
fn warn(warnings: &mut Vec<String>, text: String) {
    if !warnings.contains(&text) {
        warnings.push(text);
    }
}

fn sort_keys<'a>(file: &'a str, section: &'a Section, warnings: &mut Vec<String>) -> Result<Job<'a>, WorkloadError> {
    let mut values = BTreeMap::new();
    // The last of equal keys counts; the earlier ones are not even checked.
    let is_last =
        |index: usize| section.entries[index + 1..].iter().all(|later| later.key != section.entries[index].key);
    for (_, entry) in section.entries.iter().enumerate().filter(|(index, _)| is_last(*index)) {
        let value = Value { file, entry };
        match meaning(&entry.key) {
            Some((Meaning::Honoured, kept)) => {
                values.insert(kept, value);
            }
            Some((Meaning::Ignored, _)) => {}
            Some((Meaning::Refused { unless, because }, _)) => {
                if !unless.split('|').any(|unused| !unused.is_empty() && unused == entry.value) {
                    return Err(value.error(format_args!("this key is not implemented: {because}")));
                }
            }
            None => warn(warnings, format!("{file}:{}: unknown key '{}' is ignored", entry.line, entry.key)),
        }
    }
    Ok(Job { file, section, values })
}

fn read_rw(job: &Job) -> Result<(Requests, bool), WorkloadError> {
    let Some(value) = job.get("rw") else {
        return Ok((Requests::Only(Action::Read), false));
    };
    if value.text().contains(':') {
        return Err(value.error("offset modifiers (after the colon) are not implemented"));
    }
    value.choose(RW.map(|(word, requests, is_random)| (word, (requests, is_random))))
}

fn size_triple(value: &Value) -> Result<[u64; 3], WorkloadError> {
    value.triple(BLOCK_DEFAULT, "a size from 512 such as 4k", |text| {
        parse_number(text).filter(|bytes| *bytes >= SECTOR_BYTES)
    })
}

/// The sizes of reads, writes and discards: of bssplit, else of bsrange, else of bs.
fn read_sizes(job: &Job, is_random: bool) -> Result<[Sizes; 3], WorkloadError> {
    let sizes = match (job.get("bssplit"), job.get("bsrange")) {
        (Some(splits), _) => Sizes::parse_splits(&splits)?,
        (None, Some(ranges)) => Sizes::parse_ranges(&ranges, job.or("bs_unaligned", false, Value::switch)?)?,
        (None, None) => job.or("bs", [BLOCK_DEFAULT; 3], size_triple)?.map(Sizes::One),
    };
    if !job.or("bs_is_seq_rand", false, Value::switch)? {
        return Ok(sizes);
    }
    if job.get("percentage_random").is_some() {
        let reason = "it is not implemented for jobs that are random in part: write a job for each kind of request";
        return Err(job.error("bs_is_seq_rand", reason.to_string()));
    }
    let [sequential, random, _] = sizes;
    let one = if is_random { random } else { sequential };
    Ok([one.clone(), one.clone(), one])
}

/// The multiples at which random requests begin: those of the smallest size, unless blockalign says others.
fn read_alignment(job: &Job, sizes: &[Sizes; 3]) -> Result<[u64; 3], WorkloadError> {
    let smallest = [0, 1, 2].map(|direction| sizes[direction].smallest());
    job.or("blockalign", smallest, size_triple)
}

/// `largest`: the largest request, in bytes.
fn read_zones(job: &Job, largest: u64) -> Result<ZoneMode, WorkloadError> {
    let mode =
        job.or("zonemode", "none", |value| value.choose([("none", "none"), ("strided", "strided"), ("zbd", "zbd")]))?;
    let zone_bytes = job.or("zonesize", 0, Value::number)?;
    if mode != "none" && zone_bytes < SECTOR_BYTES {
        let reason = format!("zonemode={mode} needs zonesize, the bytes of a zone, from 512 on");
        return Err(job.error(if job.get("zonesize").is_some() { "zonesize" } else { "zonemode" }, reason));
    }
    let skip_bytes = job.or("zoneskip", 0, Value::number)?;
    match mode {
        "strided" => {
            let range_bytes = job.or("zonerange", zone_bytes, Value::number)?;
            if range_bytes < largest {
                let reason = format!("a range holds a request of {}", format_size(largest));
                let key = if job.get("zonerange").is_some() { "zonerange" } else { "zonesize" };
                return Err(job.error(key, reason));
            }
            Ok(ZoneMode::Strided { zone_bytes, range_bytes, skip_bytes })
        }
        "zbd" if skip_bytes > 0 => {
            Err(job.error("zoneskip", "zonemode=zbd has no gaps: leave zoneskip out".to_string()))
        }
        "zbd" => {
            let capacity_bytes = job.or("zonecapacity", zone_bytes, Value::number)?;
            let is_whole = capacity_bytes.is_multiple_of(SECTOR_BYTES) && zone_bytes.is_multiple_of(SECTOR_BYTES);
            if capacity_bytes == 0 || capacity_bytes > zone_bytes || !is_whole {
                let reason =
                    format!("a zone of {} holds so much at most, in multiples of 512", format_size(zone_bytes));
                return Err(job.error("zonecapacity", reason));
            }
            let max_open = job.or("max_open_zones", OPEN_ZONES_DEFAULT, Value::number)? as usize;
            Ok(ZoneMode::Zoned(ZoneShape { zone_bytes, capacity_bytes, max_open }))
        }
        _ => Ok(ZoneMode::None),
    }
}

/// A region holds whole zones, and a range holds a request.
fn check_zones(job: &Job, zones: ZoneMode, portions: &[Portion], device_bytes: u64) -> Result<(), WorkloadError> {
    for portion in portions {
        let (zone, is_whole) = match zones {
            ZoneMode::None => continue,
            ZoneMode::Strided { range_bytes, .. } => (range_bytes, true),
            ZoneMode::Zoned(shape) => (shape.zone_bytes, portion.start_bytes.is_multiple_of(shape.zone_bytes)),
        };
        if !is_whole || portion.length_bytes < zone {
            let reason = format!(
                "a region of {} from {} on does not begin with a zone of {}, or holds none: set offset and size to multiples of it",
                format_size(portion.length_bytes),
                format_size(portion.start_bytes),
                format_size(zone)
            );
            return Err(job.error("zonesize", reason));
        }
        if matches!(zones, ZoneMode::Zoned(_)) && device_bytes / zone > ZONES_MAX {
            let reason = format!("the device would have more than {ZONES_MAX} zones: take larger ones");
            return Err(job.error("zonesize", reason));
        }
    }
    Ok(())
}

/// The sizes of the directions that a job has.
fn used_sizes(requests: Requests, sizes: &[Sizes; 3]) -> impl Iterator<Item = &Sizes> {
    DIRECTIONS.iter().zip(sizes).filter(move |(action, _)| requests.include(**action)).map(|(_, sizes)| sizes)
}

/// The region and amount of each clone.
fn read_portions(
    job: &Job,
    requests: Requests,
    sizes: &[Sizes; 3],
    device_bytes: u64,
) -> Result<Vec<Portion>, WorkloadError> {
    let smallest = used_sizes(requests, sizes).map(Sizes::smallest).min().unwrap_or(BLOCK_DEFAULT);
    let largest = used_sizes(requests, sizes).map(Sizes::largest).max().unwrap_or(BLOCK_DEFAULT);
    // A percentage is rounded up to a whole block, as in fio.
    let place = |key: &str| {
        job.or(key, 0, |value| {
            let extent = value.extent()?;
            let bytes = extent.of(device_bytes);
            Ok(if value.text().ends_with('%') {
                bytes.checked_next_multiple_of(smallest).unwrap_or(u64::MAX)
            } else {
                bytes
            })
        })
    };
    let (offset, increment) = (place("offset")?, place("offset_increment")?);
    // With a size of the file, that of the job is what it moves.
    let (region, moved) = match (job.get("filesize"), job.get("size")) {
        (Some(file), size) => (("filesize", Some(file)), size),
        (None, size) => (("size", size), None),
    };
    let size = region.1.map(|value| value.extent()).transpose()?.map(|extent| extent.of(device_bytes));
    if let Some(size) = size.filter(|size| *size > device_bytes) {
        let reason = format!(
            "{} exceeds the device of {}; {}=100% fits any device",
            format_size(size),
            format_size(device_bytes),
            region.0
        );
        return Err(job.error(region.0, reason));
    }
    let io_size = job.get("io_size").or(moved).map(|value| value.extent()).transpose()?;
    let loops = job.or("loops", 1, Value::number)?.max(1);
    let clones = job.or("numjobs", 1, |value| value.count(CLONES_MAX))?;
    let mut portions = Vec::new();
    for clone in 0..u64::from(clones) {
        let start = increment.checked_mul(clone).and_then(|moved| moved.checked_add(offset)).unwrap_or(u64::MAX);
        let length = device_bytes.saturating_sub(start).min(size.unwrap_or(u64::MAX));
        if length < largest {
            let reason = format!(
                "no block of {} fits between offset {} and the end of the region, at {}",
                format_size(largest),
                format_size(start),
                format_size(start.saturating_add(length).min(device_bytes))
            );
            return Err(job.error(if clone > 0 { "offset_increment" } else { "offset" }, reason));
        }
        // Without io_size, a partial block at the end is not moved; with it, the last block is moved whole.
        let amount = io_size.map_or(length - length % smallest, |extent| extent.of(length));
        if amount == 0 {
            return Err(job.error("io_size", "it moves no bytes".to_string()));
        }
        let amount_bytes = amount.saturating_mul(loops);
        portions.push(Portion { start_bytes: start, length_bytes: length, amount_bytes });
    }
    Ok(portions)
}

/// The rate of requests, for reads, writes and discards.
fn read_rate(job: &Job) -> Result<Option<Rate>, WorkloadError> {
    const WHAT: &str = "requests a second, such as 1000";
    let of = |text: &str| parse_number(text).map(|iops| iops as f64);
    let iops = job.or("rate_iops", [0.0; 3], |value| value.triple(0.0, WHAT, of))?;
    let words = [("linear", false), ("poisson", true)];
    let is_poisson = job.or("rate_process", false, |value| value.choose(words))?;
    if iops == [0.0; 3] && is_poisson {
        return Err(job.error("rate_process", "it has no effect without rate_iops".to_string()));
    }
    Ok((iops != [0.0; 3]).then_some(Rate { iops, is_poisson }))
}

/// The share of reads; the later of rwmixread and rwmixwrite counts.
fn read_mix(job: &Job) -> Result<f64, WorkloadError> {
    let read = job.get("rwmixread").map(|value| Ok((value.entry.line, value.percentage()?))).transpose()?;
    let write = job.get("rwmixwrite").map(|value| Ok((value.entry.line, 1.0 - value.percentage()?))).transpose()?;
    Ok(read.into_iter().chain(write).max_by_key(|(line, _)| *line).map_or(0.5, |(_, share)| share))
}

/// The placement hints of the writes.
fn read_hints(job: &Job, warnings: &mut Vec<String>) -> Result<Hints, WorkloadError> {
    let keys = placement::Keys {
        write_hint: job.get("write_hint"),
        fdp: job.get("fdp"),
        dataplacement: job.get("dataplacement"),
        plids: job.get("plids"),
        plid_select: job.get("plid_select"),
    };
    if let Some(unused) = keys.without_effect()? {
        let (line, key) = (unused.entry.line, &unused.entry.key);
        warn(warnings, format!("{}:{line}: {key} has no effect without dataplacement", job.file));
    }
    keys.hints()
}

fn read_queue_depth(job: &Job, warnings: &mut Vec<String>) -> Result<u32, WorkloadError> {
    let depth = job.or("iodepth", 1, |value| value.count(DEPTH_MAX))?;
    match job.get("ioengine") {
        Some(engine) if depth > 1 && SYNCHRONOUS_ENGINES.contains(&engine.text()) => {
            let line = engine.entry.line;
            let text =
                format!("{}:{line}: ioengine={} has one request in flight: iodepth is 1", job.file, engine.text());
            warn(warnings, text);
            Ok(1)
        }
        _ => Ok(depth),
    }
}

fn refuse_unequal_sizes(job: &Job, settings: &JobSettings) -> Result<(), WorkloadError> {
    let [_, write, discard] = &settings.sizes;
    let key = ["bssplit", "bsrange", "bs"].into_iter().find(|key| job.get(key).is_some()).unwrap_or("bs");
    let smallest = settings.sizes.iter().map(Sizes::smallest).min().expect("three directions");
    let is_mapped = settings.covers && settings.block_bytes().is_none();
    if is_mapped && settings.portions.iter().any(|portion| portion.length_bytes / smallest > MAP_MAX) {
        let reason = "a random map of so many units takes too much memory: add norandommap";
        return Err(job.error(key, reason.to_string()));
    }
    let in_zones = matches!(settings.zones, ZoneMode::Zoned(_));
    if in_zones && !settings.sizes.iter().all(|sizes| sizes.are_multiples_of(SECTOR_BYTES)) {
        return Err(job.error(key, "requests in zones are multiples of 512".to_string()));
    }
    match settings.requests {
        Requests::TrimWrite if discard != write => {
            Err(job.error(key, "trimwrite writes what it trims: give both the same size".to_string()))
        }
        Requests::TrimWrite if in_zones => {
            Err(job.error("zonemode", "a zone is reset before it is written: use rw=randwrite".to_string()))
        }
        _ => Ok(()),
    }
}
