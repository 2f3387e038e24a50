//! Runs of a block workload in a file on an sfs volume: the points of most figures. Each run is made once for all
//! figures.

use super::loads::Load;
use crate::ReproduceError;
use crate::lab::Lab;
use crate::recording::Compact;
use flashpath::fs::sfs::Census;
use flashpath::label::Cause;
use flashpath::report::RunResult;
use flashpath::run::{FileShape, Path, simulated_space};
use flashpath::units::format_size;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The paper's SSD-M, and its segments: 2048 of them.
pub const DEVICE: u64 = 64 << 30;
pub const SEGMENTS: u64 = 2048;
/// The working set. The paper does not give it; with 8 GiB of 64 GiB, metadata is a tenth of the writes, as in the
/// paper.
pub const WORKING_SET: u64 = 8 << 30;
/// The most dirty segments: Linux begins write-back at a tenth of memory, which was 4 GB.
const DIRTY_SEGMENTS: u64 = 12;
/// The smallest device with all proportions of the large one.
pub const LEAST: u64 = 1 << 30;

/// The reading of a utilization: its base, and the amounts written. The paper fills "the SSD" through its file system
/// and gives neither, so that figures 5 to 10 have both readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// Of the space for files, as in `df`; written until cleaning is steady.
    Volume,
    /// Of the whole device, with the cleaner's reserve; section 4.4's amounts.
    Device,
}

pub const READINGS: [Reading; 2] = [Reading::Volume, Reading::Device];

impl Reading {
    /// The base of a utilization as text.
    pub fn name(self) -> &'static str {
        match self {
            Reading::Volume => "of the volume",
            Reading::Device => "of the device",
        }
    }

    /// This utilization in this reading.
    pub const fn at(self, share: f64) -> Full {
        Full { share, of: self }
    }

    /// Bytes written before counting, and counted, on the paper's device.
    pub fn amounts(self) -> (u64, u64) {
        match self {
            Reading::Volume => (2 * DEVICE, DEVICE),
            Reading::Device => (20 << 30, 8 << 30),
        }
    }
}

/// The utilization of a volume: its live share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Full {
    pub share: f64,
    pub of: Reading,
}

impl Full {
    /// The text in figures.
    pub fn about(self) -> String {
        format!("{:.0} % {}", self.share * 100.0, self.of.name())
    }
}

/// SFS and LFS-CB, as options of the station. The paper's LFS-CB is its own code with another cleaner and without groups.
pub const SFS: &str = "preset=paper";
pub const LFS_CB: &str = "preset=paper,grouping=none,cleaner=cost-benefit";

/// One run: the load, the device and the utilization.
#[derive(Clone, Debug)]
pub struct Point {
    pub load: Load,
    /// Options of sfs beyond sizes.
    pub options: String,
    /// The device's options after its size: its times.
    pub times: String,
    pub device_bytes: u64,
    pub file_bytes: u64,
    /// The utilization, with a cold file beside the load's.
    pub full: Full,
    pub aging: u64,
    pub measured: u64,
}

impl Point {
    /// A load on a volume like the paper's, on a device without times.
    pub fn new(lab: &Lab, load: Load, options: &str, full: Full) -> Point {
        Point::on(device_bytes(lab), load, options, full)
    }

    /// The same on a device of this size.
    pub fn on(device_bytes: u64, load: Load, options: &str, full: Full) -> Point {
        let share = device_bytes as f64 / DEVICE as f64;
        let of_device = |bytes: u64| (bytes as f64 * share) as u64 & !4095;
        let (aging, measured) = full.of.amounts();
        Point {
            load,
            options: options.to_string(),
            times: "timing=off".to_string(),
            device_bytes,
            file_bytes: of_device(WORKING_SET),
            full,
            aging: of_device(aging),
            measured: of_device(measured),
        }
    }

    fn path(&self) -> String {
        path_of(&self.options, self.device_bytes, &self.times)
    }

    fn key(&self) -> String {
        let Point { file_bytes, full, aging, measured, .. } = self;
        format!("{} {} {file_bytes} {full:?} {aging} {measured}", self.path(), self.load.about())
    }
}

/// The path of sfs with these options on a device of this size, with the paper's number of segments.
pub fn path_of(options: &str, device_bytes: u64, times: &str) -> String {
    let segment = device_bytes / SEGMENTS;
    format!(
        "sfs:{options},segment={},dirty={}/conv:size={},{times}",
        format_size(segment),
        format_size((DIRTY_SEGMENTS * segment).max(1 << 20)),
        format_size(device_bytes),
    )
}

/// The device at our scale.
pub fn device_bytes(lab: &Lab) -> u64 {
    lab.scaled(DEVICE, LEAST)
}

/// A quarter of it, for figures of many runs.
pub fn small_device_bytes(lab: &Lab) -> u64 {
    (device_bytes(lab) / 4).max(LEAST)
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// File blocks written for the host.
    pub new: f64,
    /// File blocks copied by cleaning.
    pub copied: f64,
    /// Metadata blocks written.
    pub metadata: f64,
    /// Throughput of the workload's bytes, on a device with times.
    pub mib_s: Option<f64>,
    /// Victims of cleaning, and their live blocks.
    pub victims: f64,
    pub victims_blocks: f64,
    pub census: Option<Census>,
}

impl Measured {
    /// The counts of a run's result.
    pub fn of(result: &RunResult, census: Option<Census>) -> Measured {
        let blocks = |cause: Cause, content: Option<&str>| -> f64 {
            let rows = result.ledger.iter().filter(|row| row.station == "sfs" && row.cause == cause.name());
            rows.filter(|row| content.is_none_or(|content| row.content == content)).map(|row| row.blocks).sum()
        };
        let sent: f64 = result.ledger.iter().filter(|row| row.station == "sfs").map(|row| row.blocks).sum();
        let (new, copied) = (blocks(Cause::HostWrite, Some("data")), blocks(Cause::SegmentCleaning, Some("data")));
        let event = |name: &str| result.translation.events.get(name).copied().unwrap_or(0) as f64;
        Measured {
            new,
            copied,
            metadata: sent - new - copied,
            mib_s: result.throughput_mib_s,
            victims: event("segments cleaned"),
            victims_blocks: event("blocks cleaned"),
            census,
        }
    }

    /// Copies for each new block: g.
    pub fn copies(&self) -> f64 {
        self.copied / self.new
    }

    /// The mean utilization of the victims; `None` without any, or if no segment is known.
    pub fn victim_utilization(&self) -> Option<f64> {
        let capacity = self.census.as_ref()?.segments.first()?.capacity;
        (self.victims > 0.0).then_some(self.victims_blocks / self.victims / f64::from(capacity))
    }

    /// Metadata blocks for each file block, new or copied.
    pub fn metadata_over_data(&self) -> f64 {
        self.metadata / (self.new + self.copied)
    }
}

/// All runs made so far.
pub struct Points<'a> {
    pub lab: &'a Lab<'a>,
    made: BTreeMap<String, Measured>,
}

impl<'a> Points<'a> {
    pub fn new(lab: &'a Lab<'a>) -> Points<'a> {
        Points { lab, made: BTreeMap::new() }
    }

    /// Makes the missing runs, two at once; returns all in order.
    pub fn measure(&mut self, points: &[Point]) -> Result<Vec<Measured>, ReproduceError> {
        let mut missing: Vec<&Point> = points.iter().filter(|point| !self.made.contains_key(&point.key())).collect();
        missing.sort_by_key(|point| point.key());
        missing.dedup_by_key(|point| point.key());
        let results = side_by_side(&missing, |point| run(self.lab, point))?;
        self.made.extend(missing.iter().map(|point| point.key()).zip(results));
        Ok(points.iter().map(|point| self.made[&point.key()].clone()).collect())
    }
}

/// Makes runs, two at once; returns the results in order, or the error of one that failed.
pub fn side_by_side<T: Sync, R: Send>(
    wanted: &[T],
    run: impl Fn(&T) -> Result<R, ReproduceError> + Sync,
) -> Result<Vec<R>, ReproduceError> {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = wanted.get(at) else { break };
                    let result = run(one);
                    let is_error = result.is_err();
                    made.lock().expect("no run panics").push((at, result));
                    if is_error {
                        break;
                    }
                }
            });
        }
    });
    let mut made = made.into_inner().expect("no run panics");
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, result)| result).collect()
}

/// The live bytes of files on a device of this size and utilization.
pub fn live_bytes(device_bytes: u64, utilization: f64) -> u64 {
    live_blocks(device_bytes, utilization) as u64 * 4096
}

/// The number of 4 KiB file blocks on a device of this size and utilization. Of the live blocks, a DAT page for each
/// 128 blocks and a map block for each 512 are metadata.
fn live_blocks(device_bytes: u64, utilization: f64) -> f64 {
    utilization * (device_bytes / 4096) as f64 / (1.0 + 1.0 / 128.0 + 1.0 / 512.0)
}

/// The shape of a file of this size on a device of this size and utilization.
pub fn shape(
    lab: &Lab,
    path: &Path,
    device_bytes: u64,
    file_bytes: u64,
    full: Full,
) -> Result<FileShape, ReproduceError> {
    let shape = |utilization| FileShape { bytes: Some(file_bytes), utilization: Some(utilization), fsync_every: None };
    if full.of == Reading::Volume {
        return Ok(shape(full.share));
    }
    let usable = simulated_space(path, lab.seed)?.blocks as f64;
    // The shape subtracts the file's metadata, and counts blocks of the space for files.
    let taken = live_blocks(device_bytes, full.share) + (file_bytes / 4096 / 64) as f64;
    Ok(shape(taken / usable))
}

fn run(lab: &Lab, point: &Point) -> Result<Measured, ReproduceError> {
    let path = Path::read(&point.path())?;
    let shape = shape(lab, &path, point.device_bytes, point.file_bytes, point.full)?;
    lab.progress(&format!("{} on {}, live: {}", point.load.name(), path.text, point.full.about()));
    let amount = point.aging + point.measured;
    let outcome = match &point.load {
        Load::Made(_, expression) => {
            let expression = format!("{expression},writes={}", format_size(amount & !4095));
            lab.run_in_file(&path, shape, point.aging, |bytes| lab.generator(&expression, bytes))?
        }
        Load::Recorded(_, recording) => {
            lab.run_in_file(&path, shape, point.aging, |_| Ok(Box::new(Compact::open(recording, amount, false)?)))?
        }
    };
    Ok(Measured::of(&outcome.result, outcome.census))
}
