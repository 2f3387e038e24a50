//! `flashpath run`: a workload on one or several paths, or in a directory.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the arguments |
//! | `jobs` | translates them for the library, and runs the jobs |
//! | `named_path` | a path with a short name |
//! | `on_kernel` | this machine: its clock, and paths with a file system of the kernel |
//! | `output` | prints the results, and writes the requested files |

mod jobs;
mod named_path;
mod on_kernel;
mod output;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::words::one_of;
use crate::workload::{Replaying, Source};
use flashpath::expression::Amount;
use flashpath::report::{Environment, RequestLog};
use flashpath::run::{Age, Fill, Logging, Part, Path};
use flashpath::task::CpuTable;
use flashpath_environment::environment;
use jobs::Runner;
pub use named_path::NamedPath;
use on_kernel::ThisMachine;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// What standard output gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    Table,
    Json,
    Csv,
    Fio,
    Openmetrics,
}

/// Run a workload on one or several paths, or in a directory
///
/// Prints the write amplification (WA, also called WAF), the pages programmed by cause, wear and lifetime, and latencies.
#[derive(clap::Args)]
pub struct Run {
    /// A trace file, - for a trace from standard input, a recording of a mount, fio:JOBFILE, a generator such as uniform:writes=6x, a file workload such as varmail, or, on a path
    /// with a kernel file system, sh:COMMAND
    #[arg(value_name = "WORKLOAD")]
    pub workload: OsString,
    /// A path, from top to bottom; several are run and compared. NAME= before it gives it a short name in the results
    #[arg(long, value_name = "[NAME=]PATH", value_parser = NamedPath::read)]
    on: Vec<NamedPath>,
    /// Run a file workload in the volume on top of PATH in real time, in this process: no kernel, no simulation
    #[arg(long, requires = "on", conflicts_with = "directory", help_heading = "File system")]
    in_process: bool,
    /// Run in this directory instead of on a path: a file workload, or a block workload inside one file of --size, as
    /// on a virtual machine's disk. The files are kept
    #[arg(long = "in", id = "directory", value_name = "DIR", conflicts_with = "on")]
    pub directory: Option<PathBuf>,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Requests in flight [default: a fio job's iodepth, else 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    depth: Option<u32>,
    /// Replay a trace at its recorded times, multiplied by SCALE: 0.5 is twice as fast
    #[arg(long, value_name = "SCALE", num_args = 0..=1, default_missing_value = "1", conflicts_with = "depth", value_parser = scale)]
    timed: Option<f64>,
    /// Windows of this length in recorded times, such as 60s or 1h, instead of windows of equal writes: with --timed. The
    /// table, --windows and --report have what was written, copied and waited for in each
    #[arg(long, value_name = "SPAN", requires = "timed", value_parser = span)]
    window: Option<u64>,
    /// The life of the drive at this rate of writes, such as 200GB/day, 1T/day or 5MB/s: of applications where their bytes are
    /// known, else of the host
    #[arg(long, value_name = "RATE", value_parser = flashpath_sweep::rate)]
    rate: Option<u64>,
    /// End after this many requests
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Write the exported space, or this share of it from its start, such as 70%, once in order before counting begins
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true, default_missing_value = "on", value_parser = fill)]
    fill: Option<Fill>,
    /// Run the workload for this amount of its own writes before counting begins, such as 4G or 2x: twice what the path
    /// exports (with a file, its size). What is left of the workload is counted
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    precondition: Option<Amount>,
    /// Check that every read returns the latest write, and read everything back at the end
    #[arg(long)]
    verify: bool,
    /// The age of a drive whose flash has errors, such as years=1,cycles=50%: each block was erased for that share of its
    /// endurance, and what is written before counting begins lies for that long
    #[arg(long, value_name = "AGE", value_parser = age)]
    age: Option<Age>,
    /// The size of the file in which a block workload runs, such as 1G [default on a kernel file system: half of the
    /// free space]
    #[arg(long, value_name = "BYTES", value_parser = disk_size, help_heading = "File system")]
    pub size: Option<u64>,
    /// On sfs, fill the volume up to this share with the workload's file and a cold one
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "File system")]
    pub utilization: Option<f64>,
    /// The largest write request of a file system, such as 44K: its writes are counted merged up to it, as by a block layer
    /// [default: 1280K, as Linux merges them]
    #[arg(long, value_name = "BYTES", value_parser = disk_size, help_heading = "File system")]
    max_request: Option<u64>,
    /// In a file, fsync a block workload's data after this many writes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "File system")]
    pub fsync_every: Option<u64>,
    /// With --in: run only the setup of a file workload, or only the rest, after --only setup with the same workload,
    /// options and seed
    #[arg(long, value_name = "PART", value_parser = one_of(&Part::WORDS), help_heading = "File system")]
    pub only: Option<Part>,
    /// CPU time of a file workload in a volume of sfs: off, a file of 'flashpath calibrate --json', or steps that differ
    /// from the table in the program, such as call=800,block-copied=250. The result says which table counted [default: the
    /// table in the program]
    #[arg(long, value_name = "TABLE", value_parser = flashpath_sweep::cpu_table, help_heading = "File system")]
    cpu: Option<CpuTable>,
    #[command(flatten)]
    pub replaying: Replaying,
    /// What standard output gets: table; json and csv are as --json - and --csv -; fio: the JSON of fio's --output-format=json, for
    /// programs that read it; openmetrics: a text for stores of metrics
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "table",
        hide_possible_values = true,
        help_heading = "Results"
    )]
    output_format: OutputFormat,
    /// Write the results as JSON, an array with an object for each path; - is standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub json: Option<PathBuf>,
    /// Write the same values as a table with a row for each path; - is standard output, instead of the table
    #[arg(long, value_name = "FILE.csv", help_heading = "Results")]
    csv: Option<PathBuf>,
    /// Write that table as a Parquet file
    #[arg(long, value_name = "FILE.parquet", help_heading = "Results")]
    parquet: Option<PathBuf>,
    /// Write a table with a row for each window of each path: its writes, latencies, and what was stored by cause; a Parquet
    /// file if the name ends so
    #[arg(long, value_name = "FILE.csv|FILE.parquet", help_heading = "Results")]
    windows: Option<PathBuf>,
    /// Write a Parquet file with a row for each counted request of a simulated run: its times, and where the time went
    #[arg(long, value_name = "FILE.parquet", help_heading = "Results")]
    log: Option<PathBuf>,
    /// Tell what the latencies at each percentile of a simulated run are made of: waits for dies, channels, collection, erases,
    /// the map, the write buffer; retries, service
    #[arg(long, help_heading = "Results")]
    waits: bool,
    /// Write the results as one self-contained HTML page
    #[arg(long, value_name = "FILE.html", help_heading = "Results")]
    report: Option<PathBuf>,
    /// No progress and no warnings
    #[arg(long, help_heading = "Results")]
    pub quiet: bool,
}

/// Reads an age; the error says what would be one.
pub fn age(text: &str) -> Result<Age, String> {
    Age::read(text).map_err(|error| format!("{}: {}", error.message, error.help))
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| (0.0..=1e6).contains(scale));
    scale.ok_or_else(|| "expected a number from 0 to 1000000".to_string())
}

fn span(text: &str) -> Result<u64, String> {
    let span = flashpath::units::parse_span_ns(text).filter(|span| *span > 0);
    span.ok_or_else(|| "expected a span such as 500ms, 60s, 5min or 1h".to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share = flashpath::units::parse_share(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0% to 100%, such as 85%".to_string())
}

fn fill(text: &str) -> Result<Fill, String> {
    Fill::parse(text).ok_or_else(|| "expected a share from 0% to 100%, such as 70%, on or off".to_string())
}

fn disk_size(text: &str) -> Result<u64, String> {
    let size = flashpath::units::parse_size(text).filter(|size| (4096..=1 << 50).contains(size));
    size.ok_or_else(|| "expected a size from 4K to 1P, such as 1G".to_string())
}

fn amount(text: &str) -> Result<Amount, String> {
    let amount = Amount::parse(text).filter(|amount| amount.bytes(u64::MAX) > 0);
    amount.ok_or_else(|| "expected a size such as 4G, or a multiple of the drive such as 2x".to_string())
}

/// Set by an interrupt.
static STOP: AtomicBool = AtomicBool::new(false);

/// Catches interrupts: they set [`STOP`].
fn catch_interrupts() -> Result<(), Failure> {
    // A second interrupt exits at once: output files are written beside their place, so none is left half written.
    let handler = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::input(format!("cannot catch interrupts: {error}"), None))
}

impl Run {
    /// Runs the workload, prints the results, and writes the requested files.
    pub fn run(self) -> Result<(), Failure> {
        if self.on.is_empty() && self.directory.is_none() {
            let message = "the run has no place: neither --on nor --in is given";
            let help = "add --on PATH, such as --on page/nand, to simulate a path, or --in DIR to run in a directory";
            return Err(Failure::input(message, Some(help.to_string())));
        }
        let source = Source::read(&self.workload)?;
        source.check(&self.replaying, &self.name())?;
        self.check_recording(&source)?;
        let paths = self.on.iter().map(|named| Path::read_drive(&named.path)).collect::<Result<Vec<_>, _>>()?;
        self.check_names()?;
        self.check_outputs(&source)?;
        let places = self.places(&paths);
        let log = self.request_log()?;
        let stop = &STOP;
        let runner = Runner {
            command: &self,
            source,
            log: log.clone(),
            stop,
            bars: Bars::new(self.quiet),
            machine: ThisMachine::default(),
        };
        runner.check(&places)?;
        catch_interrupts()?;
        let environment = self.environment(&runner.source)?;
        let mut outcomes = runner.run(&places)?;
        if let Some(log) = log {
            log.finish()?;
        }
        for (outcome, named) in outcomes.iter_mut().zip(&self.on) {
            outcome.result.name.clone_from(&named.name);
        }
        self.print_results(outcomes, &environment)
    }

    /// The log of requests, if it is asked for.
    fn request_log(&self) -> Result<Option<Logging>, Failure> {
        let Some(file) = &self.log else { return Ok(self.waits.then(|| Logging::new(None, true))) };
        if self.on.len() > 1 {
            let message = format!("--log writes the requests of one path, and there are {}", self.on.len());
            return Err(Failure::input(message, Some("run each path on its own, with a log of its own".to_string())));
        }
        Ok(Some(Logging::new(Some(RequestLog::create(file)?), self.waits)))
    }

    /// Where the results are from, found before the run: a file that cannot be read later would cost them.
    fn environment(&self, source: &Source) -> Result<Environment, Failure> {
        let is_printed = !matches!(self.output_format, OutputFormat::Table | OutputFormat::Openmetrics);
        let is_asked = is_printed || self.json.is_some() || self.csv.is_some() || self.parquet.is_some();
        let unreadable =
            |error: std::io::Error| Failure::input(format!("cannot read the workload's file: {error}"), None);
        if is_asked { environment(source.file().as_deref()).map_err(unreadable) } else { Ok(Environment::default()) }
    }

    /// Refuses options that end some threads of a recording before others: these would wait for them.
    fn check_recording(&self, source: &Source) -> Result<(), Failure> {
        let is_given = [("--limit", self.limit.is_some()), ("--precondition", self.precondition.is_some())];
        match (source, is_given.iter().find(|(_, is_given)| *is_given)) {
            (Source::Recording(_), Some((option, _))) => {
                let message = format!("{option} cannot divide a recording, whose threads wait for each other");
                Err(Failure::input(message, Some("leave it out: a recording is replayed whole".to_string())))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a name of two paths.
    fn check_names(&self) -> Result<(), Failure> {
        let names: Vec<&String> = self.on.iter().filter_map(|named| named.name.as_ref()).collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            Some((_, name)) => {
                let help = "give each path a name of its own".to_string();
                Err(Failure::input(format!("two paths have the name {name}"), Some(help)))
            }
            None => Ok(()),
        }
    }
}
