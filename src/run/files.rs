//! What drives a file workload through a file system: each lane in a thread of its own, stage by stage, as fast as it goes.

use super::engine::Progress;
use crate::fs::{Durable, FileSystem, FileSystemError};
use crate::report::{FileRunResult, LatencyHistogram, MovedBytes, StageResult, WorkloadResult};
use crate::units::BLOCK_BYTES;
use crate::workload::WorkloadError;
use crate::workload::files::{FileOperation, FileWorkload, Lane, Name, Stage, contents};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The most that is read or written with one call, and so what a lane holds in memory.
const LARGEST_CALL: u64 = 16 << 20;

/// How often `watch` is called at most, in nanoseconds.
const WATCH_EVERY_NS: u64 = 50_000_000;

/// How a file workload is run.
pub struct FileRun<'a> {
    /// Where the files are, as reports call it.
    pub path: String,
    /// End after so many operations of the counted stages; each lane gets its share.
    pub limit: Option<u64>,
    /// The time in nanoseconds, from any beginning on.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
}

/// The end of a run. The result tells what was measured, even if the run failed on its way.
#[derive(Debug)]
pub struct FileOutcome {
    /// What was measured.
    pub result: FileRunResult,
    /// Why the run failed; `None` if it did not.
    pub failure: Option<FileRunError>,
}

/// Why a run in a file system did not end well.
#[derive(Debug, thiserror::Error)]
pub enum FileRunError {
    /// The workload cannot go on.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// What the workload would make is there: its root.
    #[error("it holds {0} already, left by an earlier run or someone else's: take it away, or take another directory")]
    Occupied(&'static str),
    /// There is no space left.
    #[error("{0}: the file system is full; a smaller workload or a larger file system would do")]
    Full(FileSystemError),
    /// The file system refuses an operation.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// A file is shorter than what was written.
    #[error("{path} ends at byte {found}, and {expected} bytes were written: data is lost")]
    Short {
        /// The file.
        path: String,
        /// Where it ends, as far as it was read.
        found: u64,
        /// Where what was written ends.
        expected: u64,
    },
    /// A thread cannot be had.
    #[error("cannot start thread {number}: {source}")]
    Thread {
        /// Its number, from 1.
        number: usize,
        /// What the system says.
        source: std::io::Error,
    },
    /// The workload asked for nothing at all.
    #[error("the workload {0} has no requests")]
    Empty(String),
}

/// Runs `workload` on `files`. `watch` is called now and then on the calling thread, and ends the run by answering false:
/// every lane ends after the operation that it is at, and closes its files.
pub fn run_files<F: FileSystem>(
    files: &F,
    workload: FileWorkload,
    run: &FileRun<'_>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> FileOutcome {
    let FileWorkload { name, root, seed, stages, lanes } = workload;
    let count = lanes.len() as u64;
    let limit_of = |lane: u64| run.limit.map(|limit| limit / count + u64::from(lane < limit % count));
    let mut lanes: Vec<LaneRun<F>> =
        lanes.into_iter().zip(0..).map(|(lane, number)| LaneRun::new(lane, limit_of(number))).collect();
    let floor =
        Floor { files, seed, run, stop: AtomicBool::new(false), done: AtomicU64::new(0), failure: Mutex::default() };
    let mut told = Vec::new();
    let began = (run.clock)();
    for (number, stage) in stages.iter().enumerate() {
        // Where a lane has come to its limit, a later stage would miss what it has not made.
        if floor.stops() || lanes.iter().any(|lane| lane.left == Some(0)) {
            break;
        }
        let (stage_began, before) = ((run.clock)(), requests(&lanes));
        floor.run_stage(number, *stage, &mut lanes, watch);
        let seconds = (run.clock)().saturating_sub(stage_began) as f64 / 1e9;
        let requests = requests(&lanes) - before;
        told.push(StageResult { name: stage.name, counted: stage.counted, seconds, requests });
    }
    for lane in &mut lanes {
        floor.close_all(lane);
    }
    let seconds_wall = (run.clock)().saturating_sub(began) as f64 / 1e9;
    let interrupted = floor.stops();
    let failure = floor.failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let result = FileRunResult {
        seconds_wall,
        interrupted: interrupted && failure.is_none(),
        ..result_of(&name, seed, run, told, &lanes)
    };
    let failure = failure.map(|error| named(error, root));
    let is_empty = failure.is_none() && !interrupted && result.workload.requests == 0;
    FileOutcome { failure: failure.or(is_empty.then_some(FileRunError::Empty(name))), result }
}

/// An error as the user should read it.
fn named(error: FileRunError, root: &'static str) -> FileRunError {
    match error {
        FileRunError::FileSystem(error) if error.is_full() => FileRunError::Full(error),
        FileRunError::FileSystem(error)
            if error.is_there_already() && std::path::Path::new(&error.path).ends_with(root) =>
        {
            FileRunError::Occupied(root)
        }
        error => error,
    }
}

fn requests<F: FileSystem>(lanes: &[LaneRun<F>]) -> u64 {
    lanes.iter().map(|lane| lane.requests).sum()
}

fn result_of<F: FileSystem>(
    name: &str,
    seed: u64,
    run: &FileRun<'_>,
    stages: Vec<StageResult>,
    lanes: &[LaneRun<F>],
) -> FileRunResult {
    let mut tally = Tally::default();
    lanes.iter().for_each(|lane| tally.merge(&lane.tally));
    let seconds = stages.iter().filter(|stage| stage.counted).map(|stage| stage.seconds).sum::<f64>();
    let moved_mib = (tally.read_bytes + tally.written_bytes) as f64 / (1 << 20) as f64;
    let latencies = tally.latencies.iter();
    FileRunResult {
        path: run.path.clone(),
        seed,
        seconds_wall: 0.0,
        seconds_counted: seconds,
        interrupted: false,
        workload: WorkloadResult {
            name: name.to_string(),
            requests: tally.latencies.values().map(LatencyHistogram::count).sum(),
            read_blocks: tally.read_blocks,
            written_blocks: tally.written_blocks,
            discarded_blocks: tally.discarded_blocks,
            rejected_lines: lanes.iter().map(|lane| lane.lane.rejected()).sum(),
        },
        threads: lanes.len() as u64,
        bytes: MovedBytes { read: tally.read_bytes, written: tally.written_bytes },
        stages,
        latency_ns: latencies.filter_map(|(class, latency)| Some((*class, latency.percentiles()?))).collect(),
        throughput_mib_s: (seconds > 0.0).then(|| moved_mib / seconds),
        warnings: lanes.iter().flat_map(|lane| lane.lane.warnings()).collect(),
        options: run.limit.map(|limit| format!("--limit {limit}")).into_iter().collect(),
    }
}

/// The classes in which operations are counted.
fn class(operation: &FileOperation) -> &'static str {
    match operation {
        FileOperation::MakeDirectory(_) => "mkdir",
        FileOperation::Create(_) => "create",
        FileOperation::Open(_) => "open",
        FileOperation::Stat(_) => "stat",
        FileOperation::Read { .. } => "read",
        FileOperation::Write { .. } => "write",
        FileOperation::Fsync(_) | FileOperation::Fdatasync(_) => "fsync",
        FileOperation::Close(_) => "close",
        FileOperation::Unlink(_) => "unlink",
        FileOperation::Rename { .. } => "rename",
        FileOperation::Preallocate { .. } => "preallocate",
        FileOperation::Discard { .. } => "discard",
        FileOperation::Sync => "sync",
    }
}

/// What was done in the counted stages.
#[derive(Default)]
struct Tally {
    latencies: BTreeMap<&'static str, LatencyHistogram>,
    read_bytes: u64,
    written_bytes: u64,
    read_blocks: u64,
    written_blocks: u64,
    discarded_blocks: u64,
}

impl Tally {
    fn count(&mut self, operation: &FileOperation, latency_ns: u64) {
        self.latencies.entry(class(operation)).or_default().record(latency_ns);
        match *operation {
            FileOperation::Read { offset, length, .. } => {
                self.read_bytes += length;
                self.read_blocks += blocks(offset, length);
            }
            FileOperation::Write { offset, length, .. } => {
                self.written_bytes += length;
                self.written_blocks += blocks(offset, length);
            }
            FileOperation::Discard { offset, length, .. } => self.discarded_blocks += blocks(offset, length),
            _ => {}
        }
    }

    fn merge(&mut self, other: &Tally) {
        for (class, latency) in &other.latencies {
            self.latencies.entry(class).or_default().merge(latency);
        }
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.read_blocks += other.read_blocks;
        self.written_blocks += other.written_blocks;
        self.discarded_blocks += other.discarded_blocks;
    }
}

/// Blocks of 4 KiB that these bytes touch; there is one byte at least.
fn blocks(offset: u64, length: u64) -> u64 {
    (offset + length - 1) / BLOCK_BYTES - offset / BLOCK_BYTES + 1
}

/// A lane, and what it has open.
struct LaneRun<F: FileSystem> {
    lane: Box<dyn Lane>,
    /// A lane has a few files open at most.
    open: Vec<(Name, F::File)>,
    operations: Vec<FileOperation>,
    buffer: Vec<u8>,
    path: String,
    other_path: String,
    /// Operations of the counted stages that it may still ask for.
    left: Option<u64>,
    requests: u64,
    tally: Tally,
}

impl<F: FileSystem> LaneRun<F> {
    fn new(lane: Box<dyn Lane>, left: Option<u64>) -> LaneRun<F> {
        LaneRun {
            lane,
            open: Vec::new(),
            operations: Vec::new(),
            buffer: Vec::new(),
            path: String::new(),
            other_path: String::new(),
            left,
            requests: 0,
            tally: Tally::default(),
        }
    }

    fn write_path(&mut self, name: Name) {
        self.path.clear();
        self.lane.write_path(name, &mut self.path);
    }
}

fn opened<File>(open: &[(Name, File)], name: Name) -> &File {
    &open.iter().find(|(open, _)| *open == name).expect("a lane asks only for files that it has open").1
}

/// What all lanes share.
struct Floor<'a, F> {
    files: &'a F,
    seed: u64,
    run: &'a FileRun<'a>,
    stop: AtomicBool,
    /// Operations of all lanes.
    done: AtomicU64,
    failure: Mutex<Option<FileRunError>>,
}

impl<F: FileSystem> Floor<'_, F> {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the first failure, and stops all lanes.
    fn fail(&self, error: FileRunError) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }

    /// The first lane runs on the calling thread, which asks `watch` between its operations, and while it waits for the
    /// others.
    fn run_stage(
        &self,
        number: usize,
        stage: Stage,
        lanes: &mut [LaneRun<F>],
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) {
        let Some((first, others)) = lanes.split_first_mut() else { return };
        let done_before = self.done.load(Ordering::Relaxed);
        let running = Running { count: AtomicU64::new(0), waiter: std::thread::current() };
        let mut asked = 0;
        let mut ask = |share: Option<f64>| {
            let now = (self.run.clock)();
            if now.saturating_sub(asked) >= WATCH_EVERY_NS || asked == 0 {
                asked = now.max(1);
                let requests = self.done.load(Ordering::Relaxed) - done_before;
                if !watch(&Progress { phase: stage.name, requests, share }) {
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for (place, lane) in others.iter_mut().enumerate() {
                let guard = running.enter();
                let work = move || {
                    self.run_lane(number, stage, lane, &mut |_| {});
                    drop(guard);
                };
                // A thread that cannot be had takes its guard with it.
                if let Err(source) = Builder::new().spawn_scoped(scope, work) {
                    self.fail(FileRunError::Thread { number: place + 2, source });
                }
            }
            self.run_lane(number, stage, first, &mut ask);
            while running.count.load(Ordering::Acquire) > 0 {
                std::thread::park_timeout(Duration::from_nanos(WATCH_EVERY_NS));
                ask(None);
            }
        });
    }

    /// Runs a lane to the end of the stage, of its limit, or of the run.
    fn run_lane(&self, number: usize, stage: Stage, lane: &mut LaneRun<F>, ask: &mut dyn FnMut(Option<f64>)) {
        let mut operations = std::mem::take(&mut lane.operations);
        while !self.stops() {
            operations.clear();
            match lane.lane.step(number, &mut operations) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.fail(error.into());
                    break;
                }
            }
            if !self.apply_all(stage, lane, &operations) {
                break;
            }
            self.done.fetch_add(operations.len() as u64, Ordering::Relaxed);
            ask(lane.lane.progress(number));
        }
        lane.operations = operations;
    }

    /// Answers whether the lane goes on.
    fn apply_all(&self, stage: Stage, lane: &mut LaneRun<F>, operations: &[FileOperation]) -> bool {
        for operation in operations {
            if self.stops() || stage.counted && lane.left == Some(0) {
                return false;
            }
            match self.apply(lane, operation) {
                Ok(latency_ns) if stage.counted => {
                    lane.tally.count(operation, latency_ns);
                    lane.left = lane.left.map(|left| left - 1);
                }
                Ok(_) => {}
                Err(error) => {
                    self.fail(error);
                    return false;
                }
            }
            lane.requests += 1;
        }
        true
    }

    /// Does one operation, and says how long the file system took. What is written is made before the clock runs.
    fn apply(&self, lane: &mut LaneRun<F>, operation: &FileOperation) -> Result<u64, FileRunError> {
        let (files, clock) = (self.files, self.run.clock);
        let timed = |call: &mut dyn FnMut() -> Result<(), FileSystemError>| {
            let began = clock();
            call()?;
            Ok(clock().saturating_sub(began))
        };
        match *operation {
            FileOperation::MakeDirectory(name) => {
                lane.write_path(name);
                timed(&mut || files.make_directory(&lane.path))
            }
            FileOperation::Create(name) | FileOperation::Open(name) => {
                lane.write_path(name);
                let creates = matches!(operation, FileOperation::Create(_));
                let began = clock();
                let file = if creates { files.create(&lane.path)? } else { files.open(&lane.path)? };
                let latency_ns = clock().saturating_sub(began);
                lane.open.push((name, file));
                Ok(latency_ns)
            }
            FileOperation::Stat(name) => {
                lane.write_path(name);
                timed(&mut || files.length(&lane.path).map(|_| ()))
            }
            FileOperation::Read { file, offset, length } => self.read(lane, file, offset, length),
            FileOperation::Write { file, offset, length, version } => self.write(lane, file, offset, length, version),
            FileOperation::Fsync(name) => timed(&mut || files.sync_file(opened(&lane.open, name), Durable::All)),
            FileOperation::Fdatasync(name) => timed(&mut || files.sync_file(opened(&lane.open, name), Durable::Data)),
            FileOperation::Close(name) => {
                opened(&lane.open, name);
                let place = lane.open.iter().position(|(open, _)| *open == name).expect("it was just found");
                let (_, file) = lane.open.swap_remove(place);
                let began = clock();
                files.close(file)?;
                Ok(clock().saturating_sub(began))
            }
            FileOperation::Unlink(name) => {
                lane.write_path(name);
                timed(&mut || files.unlink(&lane.path))
            }
            FileOperation::Rename { from, to } => {
                lane.other_path.clear();
                lane.lane.write_path(to, &mut lane.other_path);
                lane.write_path(from);
                timed(&mut || files.rename(&lane.path, &lane.other_path))
            }
            FileOperation::Preallocate { file, length } => {
                timed(&mut || files.preallocate(opened(&lane.open, file), 0, length))
            }
            FileOperation::Discard { file, offset, length } => {
                timed(&mut || files.discard(opened(&lane.open, file), offset, length))
            }
            FileOperation::Sync => timed(&mut || files.sync()),
        }
    }

    fn write(
        &self,
        lane: &mut LaneRun<F>,
        file: Name,
        offset: u64,
        length: u64,
        version: u32,
    ) -> Result<u64, FileRunError> {
        let (mut latency_ns, mut at) = (0, offset);
        while at < offset + length {
            let bytes = room(&mut lane.buffer, (offset + length - at).min(LARGEST_CALL));
            contents::fill(self.seed, file, version, at, bytes);
            let began = (self.run.clock)();
            self.files.write_at(opened(&lane.open, file), at, bytes)?;
            latency_ns += (self.run.clock)().saturating_sub(began);
            at += bytes.len() as u64;
        }
        Ok(latency_ns)
    }

    fn read(&self, lane: &mut LaneRun<F>, file: Name, offset: u64, length: u64) -> Result<u64, FileRunError> {
        let (mut latency_ns, mut at) = (0, offset);
        while at < offset + length {
            let bytes = room(&mut lane.buffer, (offset + length - at).min(LARGEST_CALL));
            let asked = bytes.len();
            let began = (self.run.clock)();
            let read = self.files.read_at(opened(&lane.open, file), at, bytes)?;
            latency_ns += (self.run.clock)().saturating_sub(began);
            if read < asked {
                lane.write_path(file);
                let path = lane.path.clone();
                return Err(FileRunError::Short { path, found: at + read as u64, expected: offset + length });
            }
            at += asked as u64;
        }
        Ok(latency_ns)
    }

    /// Closes what a lane that was stopped has open. An error here comes too late to change what was measured, but it is
    /// one.
    fn close_all(&self, lane: &mut LaneRun<F>) {
        for (_, file) in lane.open.drain(..) {
            if let Err(error) = self.files.close(file) {
                self.fail(error.into());
            }
        }
    }
}

/// The first `length` bytes of a buffer that grows as it must.
fn room(buffer: &mut Vec<u8>, length: u64) -> &mut [u8] {
    let length = length as usize;
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}

/// Counts threads, and wakes the one that waits for them when one of them ends, in whatever way.
struct Running {
    count: AtomicU64,
    waiter: std::thread::Thread,
}

struct Guard<'a>(&'a Running);

impl Running {
    fn enter(&self) -> Guard<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Guard(self)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Release);
        self.0.waiter.unpark();
    }
}
