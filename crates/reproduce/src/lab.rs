//! Tools of the experiments: captures of kernel file systems, and their replay on drives.

use super::guest::Guest;
use super::left_out::{with_cached_reads, without_syncs};
use crate::{ReproduceError, Settings};
use flashpath::device::BlockDevice;
use flashpath::expression::{Amount, parse_term};
use flashpath::label::Content;
use flashpath::report::sweep::SweepRow;
use flashpath::report::{RunResult, WriteError, write_file};
use flashpath::run::{
    BlockWork, DriveSettings, FileShape, Job, Machine, NoMachine, Options, Outcome, Path as DrivePath, Place, Prepared,
    Replay, RunError, RunOptions, Work, prepare, run,
};
use flashpath::task::CpuTable;
use flashpath::units::format_size;
use flashpath::workload::files::file_workload;
use flashpath::workload::files::recorded::{RecordedCalls, Replays};
use flashpath::workload::trace::{OutputFormat, TraceOptions, TraceWorkload, TraceWriter};
use flashpath::workload::{Action, Merging, Operation, Workload, generator};
use flashpath_sweep::{ERROR, Identity, Journal, Limits, Plan, Request, check_memory, has_failed, run_all};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

/// Bytes of memory that the runs of a sweep may take together.
const SWEEP_MEMORY: u64 = 6 << 30;

/// A kernel file system, and the commands to run in it.
pub struct Experiment {
    /// The name of its trace: letters, digits and dashes.
    pub name: String,
    /// The file-system arguments of `flashpath capture`.
    pub file_system: Vec<String>,
    /// The size of the device.
    pub size_bytes: u64,
    /// The number of guests, with a device each.
    pub guests: u32,
    /// The shell command before the recording; `$FLASHPATH` is this program.
    pub setup: Option<String>,
    /// The shell command to record.
    pub command: String,
}

/// A captured trace.
pub struct Captured {
    /// The trace.
    pub trace: PathBuf,
    /// Bytes at its beginning that were on the device before the recording.
    pub bytes_before: u64,
    /// Bytes written to the devices.
    pub written_bytes: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Bytes of files written.
    pub data_bytes: u64,
    /// Flushes that the file systems sent, all devices together.
    pub flushes: u64,
}

/// The uncounted writes to a filled drive.
#[derive(Clone, Copy)]
pub enum Aging {
    /// The drive is new, and nothing is uncounted.
    Empty,
    /// This many bytes at the beginning of the trace.
    FirstBytes(u64),
    /// Replays of the trace, of this many bytes, until it has written the spare space so many times: from the second on, a
    /// drive collects garbage for every write. One more replay is counted.
    SameTrace {
        /// Bytes of the trace.
        written: u64,
        /// The number of times that the spare space is written.
        times: u64,
    },
}

/// A replay of recorded calls.
pub struct Replayed<'a> {
    /// The recording.
    pub calls: &'a RecordedCalls,
    /// The number of its replays.
    pub replays: Replays,
    /// The bytes of the cold file.
    pub dummy: u64,
    /// False to leave all syncs out.
    pub with_syncs: bool,
}

/// Parses a path of a translation layer on flash; returns it and its drive.
pub fn drive(path: &str) -> Result<(DrivePath, DriveSettings), ReproduceError> {
    let read = DrivePath::read(path)?;
    let drive = read.drive().cloned().ok_or_else(|| ReproduceError::failed(format!("{path} is not a drive")))?;
    Ok((read, drive))
}

/// The environment of experiments.
pub struct Lab<'a> {
    /// Our sizes over the paper's.
    pub scale: f64,
    /// The seed of our randomness.
    pub seed: u64,
    /// The temporary directory, removed at the end unless the user gave one.
    traces: PathBuf,
    settings: &'a Settings<'a>,
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        if self.settings.traces.is_none() {
            // Best effort: it is a temporary directory.
            let _ = std::fs::remove_dir_all(&self.traces);
        }
    }
}

impl<'a> Lab<'a> {
    /// A lab with the directories of the settings.
    pub fn new(settings: &'a Settings<'a>) -> Result<Lab<'a>, ReproduceError> {
        let temporary = || std::env::temp_dir().join(format!("flashpath-reproduce-{}", std::process::id()));
        let traces = settings.traces.map_or_else(temporary, Path::to_path_buf);
        std::fs::create_dir_all(&traces).map_err(|error| WriteError::new(&traces, error))?;
        Ok(Lab { scale: settings.scale, seed: settings.seed, traces, settings })
    }

    /// True if the caller wants to stop.
    pub fn stops(&self) -> bool {
        self.settings.stop.load(Ordering::SeqCst)
    }

    fn is_stopped(&self) -> Result<(), ReproduceError> {
        if self.stops() { Err(ReproduceError::Stopped) } else { Ok(()) }
    }

    /// The paper's size at our scale, a multiple of `unit` and at least one.
    pub fn scaled(&self, bytes: u64, unit: u64) -> u64 {
        ((bytes as f64 * self.scale) as u64 / unit).max(1) * unit
    }

    /// The same as text for a command line.
    pub fn size(&self, bytes: u64, unit: u64) -> String {
        format_size(self.scaled(bytes, unit))
    }

    /// The paper's count at our scale, at least one.
    pub fn scaled_count(&self, count: u64) -> u64 {
        ((count as f64 * self.scale) as u64).max(1)
    }

    /// Reports progress.
    pub fn progress(&self, line: &str) {
        (self.settings.progress)(line);
    }

    /// Captures an experiment, or reuses the trace of an earlier run.
    pub fn capture(&self, experiment: &Experiment) -> Result<Captured, ReproduceError> {
        self.is_stopped()?;
        let stem = self.traces.join(format!("{}-x{:.6}-s{}", experiment.name, self.scale, self.seed));
        let file = |extension: &str| PathBuf::from(format!("{}.{extension}", stem.display()));
        let (trace, summary) = (file("csv.zst"), file("json"));
        let arguments = self.arguments(experiment);
        let arguments_before = std::fs::read_to_string(file("arguments")).ok();
        if !(trace.exists() && arguments_before.as_deref() == Some(&arguments.join("\n"))) {
            self.progress(&format!("capturing {}", experiment.name));
            let program = self.settings.program;
            let mut command = Command::new(program);
            command.args(["capture", "--force"]).args([
                "--output".as_ref(),
                trace.as_os_str(),
                "--json".as_ref(),
                summary.as_os_str(),
            ]);
            command.args(self.settings.devices.iter().flat_map(|place| ["--dir".as_ref(), place.as_os_str()]));
            command.args(&arguments).env("FLASHPATH", program).stdout(Stdio::null());
            let status = command
                .status()
                .map_err(|error| ReproduceError::failed(format!("cannot run {}: {error}", program.display())))?;
            self.is_stopped()?;
            match status.code() {
                Some(0) => {}
                // It has printed the reason.
                Some(code @ (2 | 130)) => return Err(ReproduceError::Capture(code as u8)),
                _ => return Err(ReproduceError::failed(format!("the capture of {} failed", experiment.name))),
            }
            write_file(&file("arguments"), arguments.join("\n"))?;
        }
        let text = std::fs::read_to_string(&summary)
            .map_err(|error| ReproduceError::failed(format!("cannot read {}: {error}", summary.display())))?;
        let summary: Value = serde_json::from_str(&text)
            .map_err(|error| ReproduceError::failed(format!("{} is damaged: {error}", summary.display())))?;
        let number = |place: &str| summary.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        Ok(Captured {
            trace,
            bytes_before: number("/bytes_before_recording"),
            written_bytes: number("/requests/written_bytes"),
            journal_bytes: number("/written_bytes_by_content/journal"),
            data_bytes: number("/written_bytes_by_content/data"),
            flushes: number("/requests/flushes"),
        })
    }

    fn arguments(&self, experiment: &Experiment) -> Vec<String> {
        let mut arguments = experiment.file_system.clone();
        arguments.extend(["--size".to_string(), experiment.size_bytes.to_string()]);
        arguments.extend(["--guests".to_string(), experiment.guests.to_string()]);
        if let Some(setup) = &experiment.setup {
            arguments.extend(["--setup".to_string(), setup.clone()]);
        }
        arguments.extend(["--quiet", "--", "sh", "-c", &experiment.command].map(String::from));
        arguments
    }

    /// Runs guests of `ext` in this process, which differ in their seeds, and writes the trace of all: as if they had worked
    /// at the same time, each on its part of one device. Each syncs its files behind every `every` calls, if that is given.
    pub fn capture_guests(&self, name: &str, guests: &[Guest], every: Option<u64>) -> Result<Captured, ReproduceError> {
        self.is_stopped()?;
        self.progress(&format!("running {name}"));
        let watch = || !self.stops();
        let first = guests.first().expect("there is a guest");
        let mut operations = Vec::new();
        for (guest, offset) in guests.iter().zip((0..).step_by(first.size_bytes as usize)) {
            let recorded = guest.record(every, &watch)?.operations;
            operations.extend(recorded.into_iter().map(|operation| match operation.action {
                Action::Flush => operation,
                _ => Operation { offset_bytes: operation.offset_bytes + offset, ..operation },
            }));
        }
        operations.sort_by_key(|operation| operation.time_ns);
        let trace = self.traces.join(format!("{name}-x{:.6}-s{}.csv.zst", self.scale, self.seed));
        let mut writer = TraceWriter::create(&trace, OutputFormat::Csv)?;
        writer.write(&operations)?;
        writer.finish()?;
        let written = |content: Option<Content>| -> u64 {
            let writes = operations.iter().filter(|operation| operation.action == Action::Write);
            let chosen = writes.filter(|write| content.is_none_or(|content| content == write.content));
            chosen.map(|write| write.length_bytes).sum()
        };
        let flushes = operations.iter().filter(|operation| operation.action == Action::Flush).count() as u64;
        Ok(Captured {
            trace,
            bytes_before: 0,
            written_bytes: written(None),
            journal_bytes: written(Some(Content::Journal)),
            data_bytes: written(Some(Content::Data)),
            flushes,
        })
    }

    /// The write requests of a trace of guests, each on a part of `guest_bytes` of the device, as a block layer merges them
    /// up to `max_bytes`.
    pub fn write_requests(&self, trace: &Path, guest_bytes: u64, max_bytes: u64) -> Result<u64, ReproduceError> {
        let mut workload = TraceWorkload::open(trace, TraceOptions::default(), u64::MAX)?;
        let mut guests: HashMap<u64, Merging> = HashMap::new();
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch, 4096).map_err(RunError::from)? > 0 {
            for operation in batch.drain(..) {
                match operation.action {
                    // Of whose file system a flush is, the trace does not say: each commit has one, behind its writes.
                    Action::Flush => {}
                    _ => {
                        let guest = guests.entry(operation.offset_bytes / guest_bytes);
                        guest.or_insert_with(|| Merging::new(max_bytes)).count(&operation);
                    }
                }
            }
            self.is_stopped()?;
        }
        Ok(guests.values().map(Merging::requests).sum())
    }

    /// Replays a trace on a new drive.
    pub fn replay(&self, path: &str, trace: &Path, aging: Aging) -> Result<RunResult, ReproduceError> {
        let (read, drive) = drive(path)?;
        let spare_bytes = drive.nand.geometry.raw_bytes() - drive.exported_bytes();
        let (uncounted_bytes, repeat) = match aging {
            Aging::Empty => (0, 1),
            Aging::FirstBytes(bytes) => (bytes, 1),
            Aging::SameTrace { written, times } => {
                let times = (times * spare_bytes).div_ceil(written.max(1));
                (times * written, times + 1)
            }
        };
        let replaying = TraceOptions { repeat, ..TraceOptions::default() };
        let mut workload = TraceWorkload::open(trace, replaying, drive.exported_bytes())?;
        let precondition = Some(Amount::Bytes(uncounted_bytes));
        let fill = !matches!(aging, Aging::Empty);
        let options = Options { seed: self.seed, fill: fill.into(), precondition, ..Options::default() };
        let outcome = prepare(&read, self.seed)?.run(&mut workload, &options, &mut |_| !self.stops());
        self.is_stopped()?;
        match outcome.failure {
            None => Ok(outcome.result),
            Some(error) => Err(ReproduceError::failed(format!("{path} with {}: {error}", trace.display()))),
        }
    }

    /// Replays a trace on a device that the caller has opened for `path`. The blocks written before the recording, at
    /// the beginning of the trace, are not counted.
    pub fn replay_on(
        &self,
        path: &DrivePath,
        device: Box<dyn BlockDevice>,
        captured: &Captured,
        depth: u32,
    ) -> Result<RunResult, ReproduceError> {
        let prepared = Prepared::with_device(path, device, self.seed);
        let mut workload = TraceWorkload::open(&captured.trace, TraceOptions::default(), prepared.exported_bytes())?;
        let precondition = (captured.bytes_before > 0).then_some(Amount::Bytes(captured.bytes_before));
        let replay = Replay::Closed { depth };
        let options = Options { seed: self.seed, precondition, replay, ..Options::default() };
        let outcome = prepared.run(&mut workload, &options, &mut |_| !self.stops());
        self.is_stopped()?;
        match outcome.failure {
            None => Ok(outcome.result),
            Some(error) => {
                Err(ReproduceError::failed(format!("{} with {}: {error}", path.text, captured.trace.display())))
            }
        }
    }

    /// Runs a block workload in a file on an sfs volume, one request at a time. The file is first written once in
    /// order, then `aging` bytes are written, both uncounted.
    pub fn run_in_file(
        &self,
        path: &DrivePath,
        shape: FileShape,
        aging: u64,
        open: impl Fn(u64) -> Result<Box<dyn Workload>, RunError>,
    ) -> Result<Outcome, ReproduceError> {
        let options = RunOptions { file: shape, ..one_at_a_time(Some((aging, u64::MAX))) };
        let work = BlockWork { name: "a block workload in a file".to_string(), has_times: false, open: Box::new(open) };
        self.run(path, Work::Blocks(work), options)
    }

    /// Runs a file workload on an sfs volume, beside a cold file of `dummy` bytes. Its setup and its first `aging`
    /// bytes are not counted. Reads are assumed to hit the page cache.
    pub fn run_in_volume(
        &self,
        path: &DrivePath,
        expression: &str,
        dummy: u64,
        aging: u64,
    ) -> Result<RunResult, ReproduceError> {
        let workload = with_cached_reads(file_workload(&parse_term(expression)?, self.seed)?);
        // The paper's figures are of devices: no CPU time is added to theirs.
        let cpu = CpuTable::OFF;
        let precondition = Some(Amount::Bytes(aging)).filter(|_| aging > 0);
        let options = RunOptions { dummy_bytes: dummy, precondition, cpu: Some(cpu), ..RunOptions::default() };
        Ok(self.run(path, Work::Files(workload), options)?.result)
    }

    /// Replays recorded calls on an sfs volume, beside a cold file. Reads are assumed to hit the page cache.
    pub fn replay_calls(&self, path: &DrivePath, replayed: &Replayed) -> Result<RunResult, ReproduceError> {
        let mut workload = with_cached_reads(replayed.calls.workload(self.seed, replayed.replays)?);
        if !replayed.with_syncs {
            workload = without_syncs(workload);
        }
        let options = RunOptions { dummy_bytes: replayed.dummy, cpu: Some(CpuTable::OFF), ..RunOptions::default() };
        Ok(self.run(path, Work::Files(workload), options)?.result)
    }

    /// Runs a generator on a path without a file system, one request at a time. With `aging` (bytes, requests), the
    /// path is first written once in order, then this many bytes of the workload are not counted, and then this many
    /// requests are.
    pub fn run_alone(
        &self,
        path: &str,
        expression: &str,
        aging: Option<(u64, u64)>,
    ) -> Result<RunResult, ReproduceError> {
        let path = DrivePath::read(path)?;
        let open = Box::new(|bytes| self.generator(expression, bytes));
        let work = BlockWork { name: expression.to_string(), has_times: false, open };
        Ok(self.run(&path, Work::Blocks(work), one_at_a_time(aging))?.result)
    }

    /// Runs a generator on a drive with so many requests in flight. With `aging` (times of the exported space) the drive is
    /// first written once in order, and then so much of the workload is not counted.
    pub fn run_deep(
        &self,
        path: &str,
        expression: &str,
        (depth, aging): (u32, Option<f64>),
    ) -> Result<RunResult, ReproduceError> {
        let path = DrivePath::read(path)?;
        let open = Box::new(|bytes| self.generator(expression, bytes));
        let work = BlockWork { name: expression.to_string(), has_times: false, open };
        let options = RunOptions {
            fill: aging.is_some().into(),
            precondition: aging.map(Amount::Times),
            replay: Some(Replay::Closed { depth }),
            ..RunOptions::default()
        };
        Ok(self.run(&path, Work::Blocks(work), options)?.result)
    }

    /// Runs a file workload in a new volume on this path in simulated time, with this CPU time.
    pub fn simulate_files(&self, path: &str, expression: &str, cpu: CpuTable) -> Result<RunResult, ReproduceError> {
        let workload = file_workload(&parse_term(expression)?, self.seed)?;
        let options = RunOptions { cpu: Some(cpu), ..RunOptions::default() };
        Ok(self.run(&DrivePath::read(path)?, Work::Files(workload), options)?.result)
    }

    /// Runs a file workload in a place in real time, by the machine's clock.
    pub fn run_files(
        &self,
        place: Place<'_>,
        expression: &str,
        machine: &dyn Machine,
    ) -> Result<RunResult, ReproduceError> {
        let work = Work::Files(file_workload(&parse_term(expression)?, self.seed)?);
        self.run_in(place, work, RunOptions::default(), machine).map(|outcome| outcome.result)
    }

    fn run(&self, path: &DrivePath, work: Work<'_>, options: RunOptions) -> Result<Outcome, ReproduceError> {
        self.run_in(Place::Path(path), work, options, &NoMachine)
    }

    fn run_in(
        &self,
        place: Place<'_>,
        work: Work<'_>,
        options: RunOptions,
        machine: &dyn Machine,
    ) -> Result<Outcome, ReproduceError> {
        self.is_stopped()?;
        let outcome = run(Job { work, place, seed: self.seed, options }, machine, &mut |_| !self.stops())?;
        self.is_stopped()?;
        match &outcome.failure {
            None => Ok(outcome),
            Some(error) => {
                let RunResult { path, workload, .. } = &outcome.result;
                Err(ReproduceError::failed(format!("{path} with {}: {error}", workload.name)))
            }
        }
    }

    /// Opens the journal of an experiment of `runs` runs, which are all that `plan` describes. It is kept beside the
    /// traces, if the user gave a directory for them: an interrupted experiment goes on with it.
    pub fn journal(&self, name: &str, plan: &str, runs: u64) -> Result<Journal, ReproduceError> {
        let file = self.traces.join(format!("{name}-x{:.6}-s{}.journal", self.scale, self.seed));
        let command = format!("flashpath reproduce {name}");
        let plan = Sha256::digest(plan).iter().map(|byte| format!("{byte:02x}")).collect();
        let identity = Identity::new(self.settings.version.clone(), plan, command, runs);
        Ok(Journal::open(&file, &identity)?)
    }

    /// Runs a sweep beside each other on all cores, and answers its rows in the order of runs. The journal of those that are done is
    /// kept as that of [`journal`](Lab::journal).
    ///
    /// # Errors
    ///
    /// If a run fails: nothing of the sweep is answered then.
    pub fn sweep(&self, name: &str, request: Request) -> Result<Vec<SweepRow>, ReproduceError> {
        self.is_stopped()?;
        self.progress(&format!("running {name}"));
        let plan = Plan::read(&request)?;
        let mut journal = self.journal(&name.replace([' ', ',', '/'], "-"), &plan.identity(), plan.runs())?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let limits = Limits { jobs, memory_bytes: SWEEP_MEMORY };
        check_memory(&plan, &limits)?;
        run_all(&plan, &plan.decode_traces()?, limits, &mut journal, self.settings.stop, &mut |_| ())?;
        self.is_stopped()?;
        let rows: Vec<SweepRow> = journal.done().values().map(|done| done.row.clone()).collect();
        match rows.iter().find(|row| has_failed(row)) {
            None => Ok(rows),
            Some(row) => {
                let of = |column: &str| row.get(column).and_then(Value::as_str).unwrap_or_default().to_string();
                Err(ReproduceError::failed(format!("{} with {}: {}", of("path"), of("workload.name"), of(ERROR))))
            }
        }
    }

    /// The directory for the devices' files, if one was given.
    pub fn devices(&self) -> Option<&Path> {
        self.settings.devices
    }

    /// The workload of a generator's expression on this many bytes.
    pub fn generator(&self, expression: &str, bytes: u64) -> Result<Box<dyn Workload>, RunError> {
        Ok(generator::generator(&parse_term(expression)?, bytes, self.seed)?)
    }

    /// The user's trace of this name beside the captured ones, if any.
    pub fn kept(&self, name: &str) -> Option<PathBuf> {
        Some(self.traces.join(name)).filter(|file| file.exists())
    }

    /// Replays a trace on several drives at once.
    pub fn replay_all(&self, paths: &[String], trace: &Path, aging: Aging) -> Result<Vec<RunResult>, ReproduceError> {
        std::thread::scope(|scope| {
            let runs: Vec<_> = paths.iter().map(|path| scope.spawn(move || self.replay(path, trace, aging))).collect();
            runs.into_iter().map(|run| run.join().expect("a run does not panic")).collect()
        })
    }
}

/// One request at a time. With `aging` (bytes, requests), the path is first written once in order, then this many bytes of
/// the workload are not counted, and then this many requests are.
fn one_at_a_time(aging: Option<(u64, u64)>) -> RunOptions {
    RunOptions {
        fill: aging.is_some().into(),
        precondition: aging.map(|(bytes, _)| Amount::Bytes(bytes)),
        limit: aging.map(|(_, requests)| requests),
        replay: Some(Replay::Closed { depth: 1 }),
        ..RunOptions::default()
    }
}
