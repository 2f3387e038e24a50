//! Programs that work in the mounted file system: a shell command, or a fio job run by fio.

use crate::failure::Failure;
use flashpath::report::WorkloadResult;
use flashpath::run::{FilesRun, RunError, RunFault, WindowsReport};
use flashpath::units::BLOCK_BYTES;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(5);
/// The time that a command has to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

fn unknown(name: &str) -> WorkloadResult {
    WorkloadResult {
        name: name.to_string(),
        requests: 0,
        read_blocks: 0,
        written_blocks: 0,
        discarded_blocks: 0,
        rejected_lines: 0,
        application_blocks: None,
    }
}

/// Runs a shell command in the file system at `mount`. `name` is that of the workload in results.
pub fn shell(name: &str, text: &str, mount: &Path, stop: &AtomicBool) -> Result<FilesRun, RunError> {
    let mut shell = Command::new("sh");
    shell.args(["-c", text]).env("FLASHPATH_MOUNT", mount).stdout(io::stderr());
    let ended = run(shell, mount, stop).map_err(|error| Failure::failed(format!("cannot run sh: {error}")))?;
    let warning = "the reads and writes of a command in its files are not counted: there is no write amplification";
    Ok(FilesRun {
        workload: unknown(name),
        seconds: ended.seconds,
        files: None,
        latency_ns: BTreeMap::new(),
        windows: WindowsReport::default(),
        warnings: vec![warning.to_string()],
        options: Vec::new(),
        interrupted: ended.interrupted,
        failure: ended.problem("the command"),
    })
}

/// Runs fio itself: our own reader of jobs, which waits for each request, would not keep the job's depth, engine and
/// threads.
///
/// Fails if the job cannot be read or names files elsewhere, or if fio is missing.
pub fn fio(name: &str, job: &Path, mount: &Path, stop: &AtomicBool) -> Result<FilesRun, RunError> {
    let job = job.canonicalize().map_err(|error| Failure::failed(format!("cannot read {}: {error}", job.display())))?;
    refuse_files_elsewhere(&job)?;
    // Beside the mount point, not in it: fio's output is not part of the run.
    let output = mount.with_extension("fio.json");
    let mut fio = Command::new("fio");
    fio.arg("--output-format=json").arg("--output").arg(&output).arg(&job).stdout(Stdio::null());
    let ended = run(fio, mount, stop).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::input(
            "the program fio is not installed",
            Some("install the package fio (apt-get install fio)".into()),
        ),
        _ => Failure::failed(format!("cannot run fio: {error}")),
    })?;
    let report = std::fs::read_to_string(&output).unwrap_or_default();
    // Best effort: its directory is removed at the end.
    let _ = std::fs::remove_file(&output);
    let mut failure = ended.problem("fio");
    let (mut workload, mut seconds) = (unknown(name), ended.seconds);
    match serde_json::from_str::<Value>(&report).ok().as_ref().and_then(|report| report["jobs"].as_array()) {
        Some(jobs) => {
            let sum =
                |kind: &str, field: &str| -> u64 { jobs.iter().filter_map(|job| job[kind][field].as_u64()).sum() };
            workload.requests = sum("read", "total_ios") + sum("write", "total_ios") + sum("trim", "total_ios");
            workload.read_blocks = sum("read", "io_bytes") / BLOCK_BYTES;
            workload.written_blocks = sum("write", "io_bytes") / BLOCK_BYTES;
            workload.application_blocks = Some(workload.written_blocks);
            workload.discarded_blocks = sum("trim", "io_bytes") / BLOCK_BYTES;
            let longest = jobs.iter().filter_map(|job| job["job_runtime"].as_u64()).max().unwrap_or(0);
            if longest > 0 {
                seconds = longest as f64 / 1e3;
            }
        }
        None => failure = failure.or_else(|| Some(RunFault::Program("fio wrote no report".to_string()).into())),
    }
    Ok(FilesRun {
        workload,
        seconds,
        files: None,
        latency_ns: BTreeMap::new(),
        windows: WindowsReport::default(),
        warnings: Vec::new(),
        options: Vec::new(),
        interrupted: ended.interrupted,
        failure,
    })
}

/// Refuses a job that names files outside of the file system.
fn refuse_files_elsewhere(job: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(job)
        .map_err(|error| Failure::input(format!("cannot read {}: {error}", job.display()), None))?;
    for line in text.lines().map(str::trim) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        let is_elsewhere = value.starts_with('/') || value.split(['/', ':']).any(|part| part == "..");
        if ["filename", "directory", "filename_format"].contains(&key) && is_elsewhere {
            let message = format!("{}: {line} is outside of the job's file system", job.display());
            return Err(Failure::input(message, Some("name a file without a directory, or none".to_string())));
        }
    }
    Ok(())
}

/// The end of a command.
struct Ended {
    status: ExitStatus,
    seconds: f64,
    interrupted: bool,
}

impl Ended {
    /// The error of the run, if the program failed without an interrupt.
    fn problem(&self, name: &str) -> Option<RunError> {
        let failed = !self.status.success() && !self.interrupted;
        failed.then(|| RunFault::Program(format!("{name} failed: {}", self.status)).into())
    }
}

/// Runs a command in a process group of its own with `mount` as its directory. The rest of the group is killed when its
/// leader ends, as it would keep the file system busy.
fn run(mut command: Command, mount: &Path, stop: &AtomicBool) -> io::Result<Ended> {
    let began = Instant::now();
    let mut child = command.current_dir(mount).process_group(0).stdin(Stdio::null()).spawn()?;
    let group = Pid::from_raw(child.id() as i32);
    let mut terminated: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            let since = *terminated.get_or_insert_with(|| {
                // A group that has just ended needs no signal.
                let _ = killpg(group, Signal::SIGTERM);
                Instant::now()
            });
            if since.elapsed() > PATIENCE {
                let _ = killpg(group, Signal::SIGKILL);
            }
        }
        std::thread::sleep(PAUSE);
    };
    let _ = killpg(group, Signal::SIGKILL);
    Ok(Ended { status, seconds: began.elapsed().as_secs_f64(), interrupted: terminated.is_some() })
}
