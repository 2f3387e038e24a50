//! What the experiments are made with: captures of kernel file systems, and their replay on drives.

use super::cached_reads::with_cached_reads;
use crate::failure::Failure;
use flashpath::device::BlockDevice;
use flashpath::expression::{Amount, parse_term};
use flashpath::report::RunResult;
use flashpath::run::{
    DriveSettings, FileShape, Options, Outcome, Path as DrivePath, Prepared, Replay, VolumeOptions, prepare,
    prepare_file, run_in_volume,
};
use flashpath::units::format_size;
use flashpath::workload::files::file_workload;
use flashpath::workload::trace::{TraceOptions, TraceWorkload};
use flashpath::workload::{Workload, generator};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A kernel file system, and what is done in it.
pub struct Experiment {
    /// Its name among the traces: letters, digits and dashes.
    pub name: String,
    /// The arguments of `flashpath capture` that say which file system.
    pub file_system: Vec<String>,
    /// The device's size.
    pub size_bytes: u64,
    /// Guests with a device each.
    pub guests: u32,
    /// Done before the recording, in a shell; `$FLASHPATH` is this program.
    pub setup: Option<String>,
    /// Done while it is recorded, in a shell.
    pub command: String,
}

/// What was captured.
pub struct Captured {
    /// The trace.
    pub trace: PathBuf,
    /// Bytes at its beginning that were there before the recording.
    pub bytes_before: u64,
    /// Bytes written to the devices.
    pub written_bytes: u64,
    /// Of them, the journal's.
    pub journal_bytes: u64,
    /// Writes that reached the devices, after the kernel merged what it could.
    pub writes: u64,
}

/// What is written to a drive, filled once in order, before anything is counted.
#[derive(Clone, Copy)]
pub enum Aging {
    /// The first so many bytes of the trace itself.
    FirstBytes(u64),
    /// The trace of so many bytes again and again, until it has written the spare space twice: from then on a drive
    /// collects for all that it takes. One more replay is counted.
    SameTrace(u64),
}

/// Whether the user has asked to stop. A capture that runs is asked, too, and cleans up after itself.
static STOP: AtomicBool = AtomicBool::new(false);

fn is_stopped() -> Result<(), Failure> {
    if STOP.load(Ordering::SeqCst) { Err(Failure::Quiet(130)) } else { Ok(()) }
}

/// A path that is a translation layer on flash, and that drive.
pub fn drive(path: &str) -> Result<(DrivePath, DriveSettings), Failure> {
    let read = DrivePath::read(path)?;
    let drive = read.drive().cloned().ok_or_else(|| Failure::failed(format!("{path} is no drive")))?;
    Ok((read, drive))
}

/// Where experiments are made.
pub struct Lab {
    /// Our sizes over the paper's.
    pub scale: f64,
    /// The seed of all randomness of ours.
    pub seed: u64,
    traces: PathBuf,
    /// Removed with what is in it, unless the user named the place.
    is_temporary: bool,
    scratch: Option<PathBuf>,
    quiet: bool,
    program: PathBuf,
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.is_temporary {
            // What cannot be removed from a temporary directory is the system's to remove.
            let _ = std::fs::remove_dir_all(&self.traces);
        }
    }
}

impl Lab {
    /// A lab that keeps its traces in `traces`, if that is given, and makes devices in `scratch`.
    pub fn new(
        scale: f64,
        seed: u64,
        traces: Option<&Path>,
        scratch: Option<&Path>,
        quiet: bool,
    ) -> Result<Lab, Failure> {
        ctrlc::set_handler(|| STOP.store(true, Ordering::SeqCst))
            .map_err(|error| Failure::failed(format!("cannot catch interrupts: {error}")))?;
        let temporary = || std::env::temp_dir().join(format!("flashpath-reproduce-{}", std::process::id()));
        let folder = traces.map_or_else(temporary, Path::to_path_buf);
        std::fs::create_dir_all(&folder).map_err(|error| Failure::write(&folder.display().to_string(), error))?;
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("cannot find the program itself: {error}")))?;
        let scratch = scratch.map(Path::to_path_buf);
        Ok(Lab { scale, seed, traces: folder, is_temporary: traces.is_none(), scratch, quiet, program })
    }

    /// The paper's size at our scale, a multiple of `unit` and at least one.
    pub fn scaled(&self, bytes: u64, unit: u64) -> u64 {
        ((bytes as f64 * self.scale) as u64 / unit).max(1) * unit
    }

    /// The same, as it is written on a command line.
    pub fn size(&self, bytes: u64, unit: u64) -> String {
        format_size(self.scaled(bytes, unit))
    }

    /// The paper's count at our scale, at least one.
    pub fn scaled_count(&self, count: u64) -> u64 {
        ((count as f64 * self.scale) as u64).max(1)
    }

    /// Says what is being done.
    pub fn tell(&self, what: &str) {
        if !self.quiet {
            crate::tell(what);
        }
    }

    /// Captures what the experiment writes, or takes the trace that an earlier run kept.
    pub fn capture(&self, experiment: &Experiment) -> Result<Captured, Failure> {
        is_stopped()?;
        let stem = self.traces.join(format!("{}-x{:.6}-s{}", experiment.name, self.scale, self.seed));
        let file = |extension: &str| PathBuf::from(format!("{}.{extension}", stem.display()));
        let (trace, summary) = (file("csv.zst"), file("json"));
        let asked = self.arguments(experiment);
        let asked_before = std::fs::read_to_string(file("arguments")).ok();
        if !(trace.exists() && asked_before.as_deref() == Some(&asked.join("\n"))) {
            self.tell(&format!("capturing {}", experiment.name));
            let mut command = Command::new(&self.program);
            command.arg("capture").args([
                "--output".as_ref(),
                trace.as_os_str(),
                "--json".as_ref(),
                summary.as_os_str(),
            ]);
            command.args(self.scratch.iter().flat_map(|scratch| ["--dir".as_ref(), scratch.as_os_str()]));
            command.args(&asked).env("FLASHPATH", &self.program).stdout(Stdio::null());
            let status = command
                .status()
                .map_err(|error| Failure::failed(format!("cannot run {}: {error}", self.program.display())))?;
            is_stopped()?;
            match status.code() {
                Some(0) => {}
                // It has said why.
                Some(code @ (2 | 130)) => return Err(Failure::Quiet(code as u8)),
                _ => return Err(Failure::failed(format!("the capture of {} failed", experiment.name))),
            }
            crate::write_file(&file("arguments"), &asked.join("\n"))?;
        }
        let text = std::fs::read_to_string(&summary)
            .map_err(|error| Failure::failed(format!("cannot read {}: {error}", summary.display())))?;
        let summary: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::failed(format!("{} is damaged: {error}", summary.display())))?;
        let number = |place: &str| summary.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        Ok(Captured {
            trace,
            bytes_before: number("/bytes_before_recording"),
            written_bytes: number("/requests/written_bytes"),
            journal_bytes: number("/written_bytes_by_content/journal"),
            writes: number("/requests_after_merging/writes"),
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

    /// Replays a trace on a new drive.
    pub fn replay(&self, path: &str, trace: &Path, aging: Aging) -> Result<RunResult, Failure> {
        let (read, drive) = drive(path)?;
        let spare_bytes = drive.nand.geometry.raw_bytes() - drive.exported_bytes();
        let (uncounted_bytes, repeat) = match aging {
            Aging::FirstBytes(bytes) => (bytes, 1),
            Aging::SameTrace(written) => {
                let times = (2 * spare_bytes).div_ceil(written.max(1));
                (times * written, times + 1)
            }
        };
        let replaying = TraceOptions { repeat, ..TraceOptions::default() };
        let mut workload = TraceWorkload::open(trace, replaying, drive.exported_bytes())?;
        let precondition = Some(Amount::Bytes(uncounted_bytes));
        let options = Options { seed: self.seed, fill: true, precondition, ..Options::default() };
        let outcome = prepare(&read, self.seed)?.run(&mut workload, &options, &mut |_| !STOP.load(Ordering::SeqCst));
        is_stopped()?;
        match outcome.failure {
            None => Ok(outcome.result),
            Some(error) => Err(Failure::failed(format!("{path} with {}: {error}", trace.display()))),
        }
    }

    /// Replays a trace, that begins with what was there before, on a device that the caller has opened for `path`. What
    /// was there before is not counted.
    pub fn replay_on(
        &self,
        path: &DrivePath,
        device: Box<dyn BlockDevice>,
        captured: &Captured,
        depth: u32,
    ) -> Result<RunResult, Failure> {
        let prepared = Prepared::with_device(path, device, self.seed);
        let mut workload = TraceWorkload::open(&captured.trace, TraceOptions::default(), prepared.exported_bytes())?;
        let precondition = (captured.bytes_before > 0).then_some(Amount::Bytes(captured.bytes_before));
        let replay = Replay::Closed { depth };
        let options = Options { seed: self.seed, precondition, replay, ..Options::default() };
        let outcome = prepared.run(&mut workload, &options, &mut |_| !STOP.load(Ordering::SeqCst));
        is_stopped()?;
        match outcome.failure {
            None => Ok(outcome.result),
            Some(error) => Err(Failure::failed(format!("{} with {}: {error}", path.text, captured.trace.display()))),
        }
    }

    /// Runs a block workload, that is opened for the file's bytes, in a file of a volume of sfs, one request at a time:
    /// the file is written once in order, then `aging` bytes are written before anything is counted.
    pub fn run_in_file(
        &self,
        path: &DrivePath,
        shape: FileShape,
        aging: u64,
        open: impl FnOnce(u64) -> Result<Box<dyn Workload>, Failure>,
    ) -> Result<Outcome, Failure> {
        is_stopped()?;
        let prepared = prepare_file(path, self.seed, shape)?;
        let workload = open(prepared.exported_bytes())?;
        self.finish(path, prepared, workload, Some((aging, u64::MAX)))
    }

    /// Runs a file workload in a volume of sfs, beside a file of `dummy` bytes that is written once: its setup, and
    /// then `aging` bytes that it writes, are not counted. What it reads is taken to be in the page cache.
    pub fn run_in_volume(
        &self,
        path: &DrivePath,
        expression: &str,
        dummy: u64,
        aging: u64,
    ) -> Result<RunResult, Failure> {
        is_stopped()?;
        let workload = with_cached_reads(file_workload(&parse_term(expression)?, self.seed)?);
        let options = VolumeOptions { dummy_bytes: dummy, precondition_bytes: aging, limit: None };
        let outcome = run_in_volume(path, workload, &options, &mut |_| !STOP.load(Ordering::SeqCst))?;
        is_stopped()?;
        match outcome.failure {
            None => Ok(outcome.result),
            Some(error) => Err(Failure::failed(format!("{} with {expression}: {error}", path.text))),
        }
    }

    /// Runs a generator on a path that is no file system, one request at a time. With `aging`, the path is written once
    /// in order first, then so many bytes of the workload are not counted, and then so many requests are.
    pub fn run_alone(&self, path: &str, expression: &str, aging: Option<(u64, u64)>) -> Result<RunResult, Failure> {
        is_stopped()?;
        let path = DrivePath::read(path)?;
        let prepared = prepare(&path, self.seed)?;
        let workload = self.generator(expression, prepared.exported_bytes())?;
        Ok(self.finish(&path, prepared, workload, aging)?.result)
    }

    fn finish(
        &self,
        path: &DrivePath,
        prepared: Prepared,
        mut workload: Box<dyn Workload>,
        aging: Option<(u64, u64)>,
    ) -> Result<Outcome, Failure> {
        let precondition = aging.map(|(bytes, _)| Amount::Bytes(bytes));
        let limit = aging.map(|(_, requests)| requests);
        let fill = aging.is_some();
        let options = Options {
            seed: self.seed,
            fill,
            precondition,
            limit,
            replay: Replay::Closed { depth: 1 },
            ..Options::default()
        };
        let outcome = prepared.run(workload.as_mut(), &options, &mut |_| !STOP.load(Ordering::SeqCst));
        is_stopped()?;
        match &outcome.failure {
            None => Ok(outcome),
            Some(error) => Err(Failure::failed(format!("{} with {}: {error}", path.text, workload.name()))),
        }
    }

    /// The workload that a generator's expression means on so many bytes.
    pub fn generator(&self, expression: &str, bytes: u64) -> Result<Box<dyn Workload>, Failure> {
        Ok(generator::generator(&parse_term(expression)?, bytes, self.seed)?)
    }

    /// A trace of this name that the user keeps beside the captured ones.
    pub fn kept(&self, name: &str) -> Option<PathBuf> {
        Some(self.traces.join(name)).filter(|file| file.exists())
    }

    /// Replays a trace on several drives at once.
    pub fn replay_all(&self, paths: &[String], trace: &Path, aging: Aging) -> Result<Vec<RunResult>, Failure> {
        std::thread::scope(|scope| {
            let runs: Vec<_> = paths.iter().map(|path| scope.spawn(move || self.replay(path, trace, aging))).collect();
            runs.into_iter().map(|run| run.join().expect("a run does not panic")).collect()
        })
    }
}
