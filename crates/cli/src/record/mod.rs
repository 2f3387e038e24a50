//! `flashpath record`: the requests that reach block devices of this machine, as a trace.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the arguments, the recording, and its end |
//! | `device` | a block device, as the kernel names and describes it |
//! | `requests` | converts the kernel's events to operations of a trace |
//!
//! The kernel's events are kept in scratch files until the end, and become a trace then, in order of time: whatever ends the
//! recording, the trace is whole, or it is named partial.

mod device;
mod requests;

use crate::failure::Failure;
use crate::words::one_of;
use device::Device;
use flashpath::report::{check_writable, write_file};
use flashpath::units::{human_duration, human_size, parse_size, parse_span_ns};
use flashpath::workload::trace::{OutputFormat, TraceWriter};
use flashpath_kernel::tracing::{Recording, Tracing};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::geteuid;
use requests::{Counts, RecordedStage, Requests};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const STAGES: [(&str, RecordedStage); 2] = [("Q", RecordedStage::Queued), ("D", RecordedStage::Issued)];
/// The interval at which the end is looked for.
const PAUSE: Duration = Duration::from_millis(20);
/// Operations in a batch.
const BATCH: usize = 4096;
/// The endings of traces.
const ENDINGS: [&str; 4] = [".csv.zst", ".csv.gz", ".csv", ".parquet"];

/// Record the requests that reach block devices of this machine until Ctrl-C, as a trace (needs root)
///
/// Nothing is changed on the devices, and other users of the kernel's tracing are not disturbed. It needs root, and a kernel with
/// block events in tracefs (CONFIG_BLK_DEV_IO_TRACE), which distributions have.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Record {
    /// Whole block devices, such as /dev/nvme0n1; each is a device of the trace, from 0 on in this order
    #[arg(value_name = "DEVICE", required = true)]
    devices: Vec<PathBuf>,
    /// End after this span, such as 10min [default: at Ctrl-C]
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    span_ns: Option<u64>,
    /// The stage of the requests: Q, as file systems send them, or D, as the driver gets them, merged and split [default: D; Q on
    /// devices without a driver's queue, such as those of device mapper]
    #[arg(long, value_name = "Q|D", value_parser = one_of(&STAGES))]
    stage: Option<RecordedStage>,
    /// Leave reads out
    #[arg(long)]
    without_reads: bool,
    /// The kernel's event buffer per processor; increase it if events are lost [default: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<u64>,
    /// The directory for scratch files, some 40 bytes for each request [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The trace to write: NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet
    #[arg(long, short, value_name = "TRACE", default_value = "record.csv.zst", help_heading = "Results")]
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
}

const EXAMPLES: &str = "\
Examples:
    flashpath record /dev/nvme0n1 -o monday.csv.zst
    flashpath record /dev/sda /dev/sdb --for 1h
    flashpath run monday.csv.zst --timed --window 60s --on page:op=7%/nand:size=1T";

fn span(text: &str) -> Result<u64, String> {
    let span = parse_span_ns(text).filter(|span| *span > 0);
    span.ok_or_else(|| "expected a span such as 30s, 10min or 1h".to_string())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text)
        .filter(|bytes| *bytes >= 4096)
        .ok_or_else(|| "expected a size of at least 4K, such as 64M".to_string())
}

/// Set by an interrupt.
static IS_ENDED: AtomicBool = AtomicBool::new(false);

/// The clock of the kernel's events.
fn monotonic_ns() -> u64 {
    // Every Linux has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// A recording that has ended.
struct Recorded {
    recording: Recording,
    started_ns: u64,
    seconds: f64,
}

/// The end of a recording that was written.
struct Written {
    counts: Vec<Counts>,
    seconds: f64,
    output: PathBuf,
    bytes: u64,
    /// The reasons why the trace is partial; empty if it is whole.
    problems: Vec<String>,
}

impl Record {
    /// Records, writes the trace, and prints a summary.
    pub fn run(self) -> Result<(), Failure> {
        let format = self.checked_output()?;
        let devices = self.devices.iter().map(|file| Device::open(file)).collect::<Result<Vec<_>, _>>()?;
        device::check_distinct(&devices)?;
        if !geteuid().is_root() {
            let help = "run it as root, as in 'sudo flashpath record ...': the kernel shows block events to root alone. Without root, \
                        'flashpath mount PATH DIR --record FILE' records calls to files, and fio writes a log of its own requests \
                        (write_iolog=FILE)";
            return Err(Failure::input("recording a device needs root", Some(help.to_string())));
        }
        let directory = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        self.warn_of_own_writes(&devices, &directory);
        ctrlc::set_handler(|| IS_ENDED.store(true, Ordering::SeqCst))
            .map_err(|error| Failure::input(format!("cannot catch interrupts: {error}"), None))?;
        let recorded = self.record(&devices, &directory)?;
        let written = self.write(recorded, &devices, format)?;
        self.print(&written, &devices)
    }

    /// Checks the names of the results before hours of recording.
    fn checked_output(&self) -> Result<OutputFormat, Failure> {
        let Some(format) = OutputFormat::of_path(&self.output) else {
            let help = "name it NAME.csv, NAME.csv.zst, NAME.csv.gz or NAME.parquet".to_string();
            let message = format!("the name {} has no known extension", self.output.display());
            return Err(Failure::input(message, Some(help)));
        };
        if self.output.exists() && !self.force {
            let help = "choose another name (-o NAME.csv.zst), or add --force to replace it".to_string();
            let message = format!("{} exists already: the recording would replace it", self.output.display());
            return Err(Failure::input(message, Some(help)));
        }
        for file in self.json.iter().filter(|file| *file != Path::new("-")).chain([&self.output]) {
            check_writable(file)?;
        }
        Ok(format)
    }

    /// Warns of results on a device that is recorded: their writes are in the recording.
    fn warn_of_own_writes(&self, devices: &[Device], directory: &Path) {
        let folder = self.output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let places = [("the trace", folder, "-o"), ("scratch files", directory, "--dir")];
        for (what, place, option) in places {
            if let Some(device) = devices.iter().find(|device| device.holds(place)).filter(|_| !self.quiet) {
                crate::print_message(&format!(
                    "warning: {what} in {} are on {}: their writes are in the recording ({option} names another place)",
                    place.display(),
                    device.file.display()
                ));
            }
        }
    }

    fn record(&self, devices: &[Device], directory: &Path) -> Result<Recorded, Failure> {
        let numbers: Vec<(u32, u32)> = devices.iter().map(|device| device.number).collect();
        let tracing = Tracing::new(&numbers, directory, self.buffer)?;
        let recorder = tracing.record(directory)?;
        let started_ns = monotonic_ns();
        if !self.quiet {
            let names: Vec<String> = devices.iter().map(|device| device.file.display().to_string()).collect();
            let end = self.span_ns.map_or("Ctrl-C ends it".to_string(), |span| {
                format!("it ends after {}, or at Ctrl-C", human_duration(span as f64))
            });
            crate::print_message(&format!("recording {}: {end}", names.join(", ")));
        }
        let is_over = || self.span_ns.is_some_and(|span| monotonic_ns() - started_ns >= span);
        while !IS_ENDED.load(Ordering::SeqCst) && !is_over() {
            std::thread::sleep(PAUSE);
        }
        let seconds = (monotonic_ns() - started_ns) as f64 / 1e9;
        Ok(Recorded { recording: recorder.stop()?, started_ns, seconds })
    }

    fn write(&self, recorded: Recorded, devices: &[Device], format: OutputFormat) -> Result<Written, Failure> {
        let Recorded { recording, started_ns, seconds } = recorded;
        let mut requests = Requests::new(devices, self.stage, !self.without_reads, started_ns);
        let mut writer = TraceWriter::create(&self.output, format)?;
        let (mut events, mut batch) = (recording.events(), Vec::with_capacity(BATCH));
        while let Some(event) = events.next_event()? {
            requests.add(&event, &mut batch);
            if batch.len() >= BATCH - 1 {
                writer.write(&batch)?;
                batch.clear();
            }
        }
        writer.write(&batch)?;
        let lost = events.losses().total();
        let mut problems = requests.problems();
        if lost > 0 {
            problems
                .push(format!("the kernel lost {lost} events: its buffers were too small for this load (--buffer)"));
        }
        let counts = requests.counts();
        if counts.iter().all(Counts::is_empty) {
            let named =
                if devices.len() == 1 { devices[0].file.display().to_string() } else { "the devices".to_string() };
            let message = format!("no request reached {named} in {seconds:.1} s: nothing is written");
            let help = "record while something uses it, and the device that has the file system: 'findmnt -o SOURCE /PLACE' and lsblk \
                        name it"
                .to_string();
            return Err(Failure::input(message, Some(help)));
        }
        let output = if problems.is_empty() { self.output.clone() } else { self.partial_output() };
        let bytes = writer.finish_as(&output)?;
        Ok(Written { counts, seconds, output, bytes, problems })
    }

    /// The name of a partial trace: NAME.partial.csv.zst.
    fn partial_output(&self) -> PathBuf {
        let name = self.output.file_name().unwrap_or_default().to_string_lossy();
        let ending = ENDINGS.into_iter().find(|ending| name.ends_with(ending)).unwrap_or_default();
        let stem = name.strip_suffix(ending).unwrap_or(&name);
        self.output.with_file_name(format!("{stem}.partial{ending}"))
    }

    fn print(&self, written: &Written, devices: &[Device]) -> Result<(), Failure> {
        let text = self.text(written, devices);
        match self.json.as_deref() {
            Some(file) if file == Path::new("-") => crate::print(&json_of(written, devices))?,
            Some(file) => {
                crate::print(&text)?;
                write_file(file, json_of(written, devices))?;
            }
            None => crate::print(&text)?,
        }
        if written.problems.is_empty() {
            return Ok(());
        }
        for problem in &written.problems {
            crate::print_message(&format!("error: {problem}"));
        }
        crate::print_message(&format!("error: the partial trace is kept as {}", written.output.display()));
        Err(Failure::Quiet(1))
    }

    fn text(&self, written: &Written, devices: &[Device]) -> String {
        let mut text = format!("{:<18}{:.2}\n", "seconds", written.seconds);
        for (device, counts) in devices.iter().zip(&written.counts) {
            text += &format!("{:<18}{}\n", device.file.display(), counts.text(!self.without_reads));
            for note in counts.notes() {
                text += &format!("{:<18}{note}\n", "");
            }
        }
        let size = human_size(written.bytes as f64);
        let name = written.output.display();
        text + &format!("{:<18}{name}, {size}\n", "wrote")
            + &format!("replay it: flashpath run {name} --timed --on page/nand:size={}\n", device::drive_for(devices))
    }
}

/// The summary as JSON.
fn json_of(written: &Written, devices: &[Device]) -> String {
    let of_devices: Vec<_> = devices
        .iter()
        .zip(&written.counts)
        .map(|(device, counts)| {
            json!({
                "device": device.file.display().to_string(), "bytes": device.bytes, "stage": counts.stage.letter(),
                "reads": counts.reads, "writes": counts.writes, "discards": counts.discards, "flushes": counts.flushes,
                "read_bytes": counts.read_bytes, "written_bytes": counts.written_bytes,
                "discarded_bytes": counts.discarded_bytes, "failed": counts.failed,
            })
        })
        .collect();
    let summary = json!({
        "seconds": written.seconds, "trace": written.output.display().to_string(), "trace_bytes": written.bytes,
        "devices": of_devices, "problems": written.problems,
    });
    format!("{summary:#}\n")
}
