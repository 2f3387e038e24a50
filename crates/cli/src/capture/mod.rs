//! `flashpath capture`: what a kernel file system writes to its device while a command runs in it.
//!
//! | file | what it is |
//! |---|---|
//! | `plan` | what was asked for, checked before anything is made |
//! | `guest` | one file system with its command |
//! | `processes` | the setup and the commands: started, waited for, stopped |
//! | `labelling` | the kernel's events as operations of a trace |
//! | `account` | what was counted, and how it is told |

mod account;
mod guest;
mod labelling;
mod plan;
mod processes;

use crate::failure::Failure;
use crate::words::one_of;
use account::Account;
use flashpath::label::Content;
use flashpath::workload::trace::TraceWriter;
use flashpath_kernel::tracing::{Recording, Tracing};
use flashpath_kernel::{DataMode, FileSystem, KernelError, make_mounts_private};
use guest::Guest;
use labelling::Labelling;
use plan::{Job, Plan};
use processes::{Ended, STOPS};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const FILE_SYSTEMS: [(&str, FileSystem); 4] =
    [("ext4", FileSystem::Ext4), ("ext3", FileSystem::Ext3), ("btrfs", FileSystem::Btrfs), ("xfs", FileSystem::Xfs)];
const DATA_MODES: [(&str, DataMode); 3] =
    [("writeback", DataMode::Writeback), ("ordered", DataMode::Ordered), ("journal", DataMode::Journal)];

/// Record what a kernel file system writes to its device while a command runs in it (needs root)
#[derive(clap::Args)]
pub struct Capture {
    /// The file system that is made for the command
    #[arg(long, value_name = "KIND", default_value = "ext4", value_parser = one_of(&FILE_SYSTEMS))]
    fs: FileSystem,
    /// What of a write goes into the journal of ext3 and ext4 [default: ordered]
    #[arg(long, value_name = "MODE", value_parser = one_of(&DATA_MODES))]
    data: Option<DataMode>,
    /// Write data in place (btrfs only)
    #[arg(long)]
    nodatacow: bool,
    /// Tell the device what is deleted
    #[arg(long)]
    discard: bool,
    /// The size of the device
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    size: u64,
    /// The size of the journal (ext3, ext4, xfs) [default: what mkfs chooses]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    journal_size: Option<u64>,
    /// More options for mkfs, separated by spaces, such as '-m single' for btrfs
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    mkfs_options: Option<String>,
    /// More options for mount, separated by commas, such as noatime
    #[arg(long, value_name = "OPTIONS")]
    mount_options: Option<String>,
    /// So many file systems on devices of their own, with a copy of the command in each at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    guests: u32,
    /// Run by sh in each new file system before the recording begins, as COMMAND is after it; what it writes is not in
    /// the trace
    #[arg(long, value_name = "SHELL COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    setup: Option<String>,
    /// Begin the trace with all that making the file system and the setup have left on the device, written once in the order
    /// of addresses: a replay begins where the recording did
    #[arg(long)]
    from_setup: bool,
    /// The memory that each guest's command and its page cache may take
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Record reads, too
    #[arg(long)]
    reads: bool,
    /// The kernel's buffer for events on each processor; more, if events are lost [default: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<u64>,
    /// Where the devices' files are made [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The trace to write: NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet
    #[arg(long, short, value_name = "TRACE", default_value = "capture.csv.zst", help_heading = "Results")]
    output: PathBuf,
    /// Write the summary as JSON; - is standard output, and then nothing else is written there
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    json: Option<PathBuf>,
    /// No progress and no warnings
    #[arg(long, help_heading = "Results")]
    quiet: bool,
    /// The command; it runs in the new file system, which FLASHPATH_MOUNT names, and its output goes to standard error
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = flashpath::units::parse_size(text).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(4096));
    bytes.ok_or_else(|| "write a size such as 1G, a multiple of 4K".to_string())
}

/// What is left when the file systems are gone.
struct Run {
    guests: Vec<Guest>,
    /// What was on each guest's device when the recording began, if it is to be in the trace.
    there_before: Vec<Vec<(Range<u64>, Content)>>,
    ended: Vec<Ended>,
    recording: Recording,
    started_ns: u64,
    seconds: f64,
    /// What the kernel's own counters say was written to all devices; `None` if one of them does not count.
    counted_bytes: Option<u64>,
    /// What went wrong after the recording began: the trace that is kept is partial.
    problems: Vec<String>,
}

impl Capture {
    /// Captures, prints the summary, and writes the trace.
    pub fn run(self) -> Result<(), Failure> {
        let plan = Plan::new(&self)?;
        ctrlc::set_handler(|| {
            STOPS.fetch_add(1, Ordering::SeqCst);
        })
        .map_err(|error| Failure::input(format!("cannot catch interrupts: {error}"), None))?;
        let run = match record(&plan) {
            Err(_) if was_interrupted() => {
                crate::tell("error: interrupted before the command ran; nothing was recorded");
                return Err(Failure::Quiet(130));
            }
            run => run?,
        };
        let account = write(&plan, run)?;
        account.tell(&plan)?;
        match (was_interrupted(), account.problems.is_empty()) {
            (true, _) => Err(Failure::Quiet(130)),
            (false, false) => Err(Failure::Quiet(1)),
            (false, true) => Ok(()),
        }
    }
}

fn was_interrupted() -> bool {
    STOPS.load(Ordering::SeqCst) > 0
}

/// Why nothing more is done; said by whoever sees that it was interrupted.
fn interrupted() -> KernelError {
    KernelError::Failed { doing: "go on".to_string(), source: std::io::ErrorKind::Interrupted.into() }
}

/// Makes the file systems, runs the setup and the commands, and records until the last file system is unmounted.
///
/// An error is one before the commands ran. What fails later is a problem of the run, so that what was recorded is kept.
fn record(plan: &Plan) -> Result<Run, Failure> {
    make_mounts_private()?;
    let mut guests = Vec::new();
    for number in 0..plan.guests {
        if was_interrupted() {
            return Err(interrupted().into());
        }
        guests.push(Guest::create(plan, number)?);
    }
    if let Some(setup) = &plan.setup_job {
        set_up(setup, &mut guests)?;
    }
    let there_before = match plan.from_setup {
        true => guests.iter().map(Guest::what_is_there).collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    let devices: Vec<_> = guests.iter().map(|guest| guest.device).collect();
    let tracing = Tracing::new(&devices, &plan.directory, plan.buffer_bytes)?;
    let recorder = tracing.record(&plan.directory)?;

    let mut problems = Vec::new();
    let started_ns = processes::monotonic_ns();
    let ended = processes::run(&plan.command_job, &guests, &mut problems);
    let seconds = (processes::monotonic_ns() - started_ns) as f64 / 1e9;
    for guest in &mut guests {
        guest.unmount(&mut problems);
    }
    let recording = recorder.stop()?;
    let counted_bytes = guests.iter_mut().map(Guest::detach).sum();
    Ok(Run { guests, there_before, ended, recording, started_ns, seconds, counted_bytes, problems })
}

/// Runs the setup in all guests, and leaves each as if what it holds had been there for long.
fn set_up(setup: &Job, guests: &mut [Guest]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    processes::run(setup, guests, &mut problems);
    if was_interrupted() {
        return Err(interrupted().into());
    }
    if !problems.is_empty() {
        for problem in problems {
            crate::tell(&format!("error: {problem}"));
        }
        crate::tell("error: nothing was recorded");
        return Err(Failure::Quiet(1));
    }
    for guest in guests {
        guest.begin_anew()?;
        if was_interrupted() {
            return Err(interrupted().into());
        }
    }
    Ok(())
}

/// Turns the recording into the trace, and counts it.
fn write(plan: &Plan, run: Run) -> Result<Account, Failure> {
    let Run { guests, there_before, ended, recording, started_ns, seconds, counted_bytes, mut problems } = run;
    let mut labelling = Labelling::new(&guests, plan, started_ns);
    let mut writer = TraceWriter::create(&plan.output, plan.format)?;
    let mut events = recording.events();
    let mut batch = Vec::with_capacity(BATCH);
    let bytes_before = labelling.begin_with(&there_before, &mut batch);
    writer.write(&batch)?;
    batch.clear();
    while let Some(event) = events.next_event()? {
        labelling.add(&event, &mut batch);
        if batch.len() >= BATCH - 1 {
            writer.write(&batch)?;
            batch.clear();
        }
    }
    writer.write(&batch)?;
    let losses = events.losses();
    problems.extend(labelling.problems(counted_bytes));
    if losses.total() > 0 {
        problems.push(format!(
            "the kernel lost {} events: its buffers were too small for this load (--buffer)",
            losses.total()
        ));
    }
    if was_interrupted() {
        problems.push("it was interrupted".to_string());
    }
    let output = if problems.is_empty() { plan.output.clone() } else { plan.partial_output() };
    let output_bytes = writer.finish_as(&output)?;
    let journal_bytes = guests.iter().map(Guest::journal_bytes).sum();
    let counts = labelling.counts();
    Ok(Account { counts, bytes_before, losses, problems, output, output_bytes, journal_bytes, seconds, ended })
}

/// Operations that are written at once.
const BATCH: usize = 4096;
