//! `flashpath capture`: records the writes of a kernel file system to its device while a command runs in it.
//!
//! | file | role |
//! |---|---|
//! | `plan` | the checked options |
//! | `guest` | one file system with its command |
//! | `processes` | starts, awaits and stops the setup and the commands |
//! | `labelling` | converts the kernel's events to operations of a trace |
//! | `summary` | the summary, as text and JSON |

mod guest;
mod labelling;
mod plan;
mod processes;
mod summary;

use crate::failure::Failure;
use crate::words::one_of;
use flashpath::label::Content;
use flashpath::workload::trace::TraceWriter;
use flashpath_kernel::tracing::{Recording, Tracing};
use flashpath_kernel::{DataMode, FileSystem, KernelError, make_mounts_private};
use guest::Guest;
use labelling::Labelling;
use plan::{Job, Plan};
use processes::{Exit, INTERRUPTS};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use summary::Summary;

const FILE_SYSTEMS: [(&str, FileSystem); 4] =
    [("ext4", FileSystem::Ext4), ("ext3", FileSystem::Ext3), ("btrfs", FileSystem::Btrfs), ("xfs", FileSystem::Xfs)];
const DATA_MODES: [(&str, DataMode); 3] =
    [("writeback", DataMode::Writeback), ("ordered", DataMode::Ordered), ("journal", DataMode::Journal)];

/// Record the writes of a kernel file system to its device while a command runs in it (needs root)
#[derive(clap::Args)]
pub struct Capture {
    /// The file system to make for the command
    #[arg(long, value_name = "KIND", default_value = "ext4", value_parser = one_of(&FILE_SYSTEMS))]
    fs: FileSystem,
    /// The journal mode of ext3 and ext4 [default: ordered]
    #[arg(long, value_name = "MODE", value_parser = one_of(&DATA_MODES))]
    data: Option<DataMode>,
    /// Write data in place (btrfs only)
    #[arg(long)]
    nodatacow: bool,
    /// Discard deleted blocks on the device
    #[arg(long)]
    discard: bool,
    /// The size of the device
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    size: u64,
    /// The size of the journal (ext3, ext4, xfs) [default: mkfs's choice]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    journal_size: Option<u64>,
    /// More options for mkfs, separated by spaces, such as '-m single' for btrfs
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    mkfs_options: Option<String>,
    /// More options for mount, separated by commas, such as noatime
    #[arg(long, value_name = "OPTIONS")]
    mount_options: Option<String>,
    /// The number of file systems, each with its own device and a copy of the command, all at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    guests: u32,
    /// Run this with sh in each new file system before the recording; its writes are not in the trace
    #[arg(long, value_name = "SHELL COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    setup: Option<String>,
    /// Begin the trace with the blocks left on the device by mkfs and the setup, each written once in the order of
    /// addresses: a replay then starts from the same state
    #[arg(long)]
    from_setup: bool,
    /// The memory limit of each guest's command and its page cache
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Record reads, too
    #[arg(long)]
    reads: bool,
    /// The kernel's event buffer per processor; increase it if events are lost [default: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<u64>,
    /// The directory for the devices' files [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The trace to write: NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet
    #[arg(long, short, value_name = "TRACE", default_value = "capture.csv.zst", help_heading = "Results")]
    output: PathBuf,
    /// Replace a trace that exists already
    #[arg(long, help_heading = "Results")]
    force: bool,
    /// Write the summary as JSON; - is standard output, instead of the text
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    json: Option<PathBuf>,
    /// No progress and no warnings
    #[arg(long, help_heading = "Results")]
    quiet: bool,
    /// The command. It runs in the new file system's root, FLASHPATH_MOUNT; its output goes to standard error
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = flashpath::units::parse_size(text).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(4096));
    bytes.ok_or_else(|| "expected a size such as 1G, a multiple of 4K".to_string())
}

/// A recording, after the file systems are unmounted.
struct Run {
    guests: Vec<Guest>,
    /// The blocks on each guest's device before the recording, if the trace includes them.
    existing: Vec<Vec<(Range<u64>, Content)>>,
    ended: Vec<Exit>,
    recording: Recording,
    started_ns: u64,
    seconds: f64,
    /// The bytes written to all devices by the kernel's counters; `None` if a device has none.
    counted_bytes: Option<u64>,
    /// Problems after the recording began, which make the trace partial.
    problems: Vec<String>,
}

impl Capture {
    /// Captures, prints the summary, and writes the trace.
    pub fn run(self) -> Result<(), Failure> {
        let plan = Plan::new(&self)?;
        ctrlc::set_handler(|| {
            INTERRUPTS.fetch_add(1, Ordering::SeqCst);
        })
        .map_err(|error| Failure::input(format!("cannot catch interrupts: {error}"), None))?;
        let run = match record(&plan) {
            Err(_) if was_interrupted() => {
                crate::print_message("error: interrupted before the command; nothing was recorded");
                return Err(Failure::Quiet(130));
            }
            run => run?,
        };
        let summary = write(&plan, run)?;
        summary.print(&plan)?;
        match (was_interrupted(), summary.problems.is_empty()) {
            (true, _) => Err(Failure::Quiet(130)),
            (false, false) => Err(Failure::Quiet(1)),
            (false, true) => Ok(()),
        }
    }
}

fn was_interrupted() -> bool {
    INTERRUPTS.load(Ordering::SeqCst) > 0
}

/// The error of an interrupt; the caller prints it.
fn interrupted() -> KernelError {
    KernelError::Failed { doing: "go on".to_string(), source: std::io::ErrorKind::Interrupted.into() }
}

/// Makes the file systems, runs the setup and the commands, and records until the last file system is unmounted.
///
/// Errors are those before the commands run. Later ones become problems of the run, so that the recording is kept.
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
    let existing = match plan.from_setup {
        true => guests.iter().map(Guest::written_runs).collect::<Result<_, _>>()?,
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
    Ok(Run { guests, existing, ended, recording, started_ns, seconds, counted_bytes, problems })
}

/// Runs the setup in all guests, and remounts each with all data written back.
fn set_up(setup: &Job, guests: &mut [Guest]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    processes::run(setup, guests, &mut problems);
    if was_interrupted() {
        return Err(interrupted().into());
    }
    if !problems.is_empty() {
        for problem in problems {
            crate::print_message(&format!("error: {problem}"));
        }
        crate::print_message("error: nothing was recorded");
        return Err(Failure::Quiet(1));
    }
    for guest in guests {
        guest.remount()?;
        if was_interrupted() {
            return Err(interrupted().into());
        }
    }
    Ok(())
}

/// Writes the recording as a trace, and counts it.
fn write(plan: &Plan, run: Run) -> Result<Summary, Failure> {
    let Run { guests, existing, ended, recording, started_ns, seconds, counted_bytes, mut problems } = run;
    let mut labelling = Labelling::new(&guests, plan, started_ns);
    let mut writer = TraceWriter::create(&plan.output, plan.format)?;
    let mut events = recording.events();
    let mut batch = Vec::with_capacity(BATCH);
    let bytes_before = labelling.append_existing(&existing, &mut batch);
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
        problems.push("interrupted".to_string());
    }
    let output = if problems.is_empty() { plan.output.clone() } else { plan.partial_output() };
    let output_bytes = writer.finish_as(&output)?;
    let journal_bytes = guests.iter().map(Guest::journal_bytes).sum();
    let counts = labelling.counts();
    Ok(Summary { counts, bytes_before, losses, problems, output, output_bytes, journal_bytes, seconds, ended })
}

/// Operations in a batch.
const BATCH: usize = 4096;
