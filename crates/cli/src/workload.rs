//! The WORKLOAD of the command line: a trace file, a fio job, a generator, or a file workload.

use crate::failure::Failure;
use clap::Args;
use flashpath::expression::{Term, nearest, parse_term};
use flashpath::workload::trace::{Addresses, Format, Stage, TraceOptions, TraceWorkload};
use flashpath::workload::{Workload, files, fio_job, generator};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How a trace is read.
#[derive(Args, Clone)]
#[command(next_help_heading = "Trace")]
pub struct Reading {
    /// The trace's format, if it is not to be recognised
    #[arg(long, value_parser = format, hide_possible_values = true)]
    pub format: Option<Format>,
    /// Only the operations of this device of the trace, counted from 0 as they appear
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Which stage of a request a blktrace trace is read at: Q (queued), D (issued) or C (completed)
    #[arg(long, value_name = "Q|D|C", value_parser = stage)]
    pub stage: Option<Stage>,
}

fn format(name: &str) -> Result<Format, String> {
    Format::parse(name).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("there is no such format; there are: {}", names.join(", "))
    })
}

fn stage(letter: &str) -> Result<Stage, String> {
    Stage::parse(letter).ok_or_else(|| "write Q, D or C".to_string())
}

fn addresses(name: &str) -> Result<Addresses, String> {
    Addresses::parse(name).ok_or_else(|| "write refuse, wrap or scale".to_string())
}

/// How a trace is replayed.
#[derive(Args, Clone)]
#[command(next_help_heading = "Trace")]
pub struct Replaying {
    /// How the trace is read.
    #[command(flatten)]
    pub reading: Reading,
    /// What happens to a trace's addresses beyond the drive
    #[arg(long, value_name = "refuse|wrap|scale", default_value = "refuse", value_parser = addresses)]
    pub addresses: Addresses,
    /// Replay the trace so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub repeat: u64,
}

impl Reading {
    /// The library's options.
    pub fn options(&self) -> TraceOptions {
        TraceOptions { format: self.format, device: self.device, stage: self.stage, ..TraceOptions::default() }
    }
}

impl Replaying {
    /// The options that were written, as arguments of the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        arguments.extend(self.reading.format.map(|format| format!("--format {}", format.name())));
        arguments.extend(self.reading.device.map(|device| format!("--device {device}")));
        arguments.extend(self.reading.stage.map(|stage| format!("--stage {}", char::from(stage.letter()))));
        arguments.extend(match self.addresses {
            Addresses::Refuse => None,
            Addresses::Wrap => Some("--addresses wrap".to_string()),
            Addresses::Scale => Some("--addresses scale".to_string()),
        });
        arguments.extend((self.repeat > 1).then(|| format!("--repeat {}", self.repeat)));
        arguments
    }
}

/// A workload's text, understood.
pub enum Source {
    /// A trace in this file.
    Trace(PathBuf),
    /// A fio job file.
    FioJob(PathBuf),
    /// A generator.
    Generator(Term),
    /// A file workload, which needs a file system.
    Files(Term),
    /// A shell command, which needs a file system of the kernel.
    Shell(String),
}

impl Source {
    /// Understands the text. A file comes before a generator of the same name.
    pub fn read(text: &str) -> Result<Source, Failure> {
        if let Some(command) = text.strip_prefix("sh:") {
            return Ok(Source::Shell(command.to_string()));
        }
        if let Some(job) = text.strip_prefix("fio:") {
            let job = PathBuf::from(job);
            return if job.exists() && !job.is_dir() { Ok(Source::FioJob(job)) } else { Err(no_file(&job)) };
        }
        if Path::new(text).exists() {
            if begins_with_section(Path::new(text)) {
                let message = format!("{text} looks like a fio job, not a trace");
                return Err(Failure::input(message, Some(format!("if it is one, write fio:{text}"))));
            }
            return Ok(Source::Trace(PathBuf::from(text)));
        }
        let looks_like_a_file = text.contains('/') || (text.contains('.') && !text.contains(':'));
        if looks_like_a_file {
            return Err(no_file(Path::new(text)));
        }
        let term = parse_term(text)?;
        let kind = term.find("workload", &[generator::kinds(), files::kinds()].concat())?;
        let is_files = files::kinds().iter().any(|files| files.name == kind.name);
        Ok(if is_files { Source::Files(term) } else { Source::Generator(term) })
    }

    /// Opens the workload for a path that exports `device_bytes`.
    pub fn open(&self, replaying: &Replaying, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, Failure> {
        Ok(match self {
            Source::Trace(file) => {
                let reading = replaying.reading.options();
                let options = TraceOptions { addresses: replaying.addresses, repeat: replaying.repeat, ..reading };
                Box::new(TraceWorkload::open(file, options, device_bytes)?)
            }
            Source::FioJob(file) => fio_job::fio_job(file, device_bytes, seed)?,
            Source::Generator(term) => generator::generator(term, device_bytes, seed)?,
            Source::Files(term) => {
                return Err(Failure::input(format!("{} is no block workload", term.name.text), None));
            }
            Source::Shell(_) => return Err(Failure::input("a command is no block workload", None)),
        })
    }

    /// The file it is read from, if any.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Source::Trace(file) | Source::FioJob(file) => Some(file),
            Source::Generator(_) | Source::Files(_) | Source::Shell(_) => None,
        }
    }

    /// Whether the workload has time stamps that it can be replayed at.
    pub fn has_times(&self) -> bool {
        matches!(self, Source::Trace(_))
    }
}

/// A name that leads to no file, and the file beside it that may be meant.
fn no_file(path: &Path) -> Failure {
    let usage = "WORKLOAD is a trace file, fio:JOBFILE, a generator such as uniform:writes=6x, a file workload such as varmail, or sh:COMMAND";
    let message = match path.exists() {
        true => format!("{} is a directory", path.display()),
        false => format!("there is no file {}", path.display()),
    };
    let help = match neighbour(path) {
        Some(near) => format!("did you mean {}? {usage}", near.display()),
        None => usage.to_string(),
    };
    Failure::input(message, Some(help))
}

/// The file in the same directory whose name is most like this one's.
fn neighbour(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = directory.read_dir().ok()?.flatten().take(LOOKED_THROUGH);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    nearest(name, names.iter().map(String::as_str)).map(|near| path.with_file_name(near))
}

/// How many names of a directory are looked through for one that may be meant.
const LOOKED_THROUGH: usize = 10_000;

/// Whether the first line that says anything is `[SECTION]`, as in every fio job.
fn begins_with_section(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    let says_something = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#") && !line.starts_with(b";");
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    read.is_ok() && lines.find(says_something).is_some_and(|line| line.starts_with(b"[") && line.ends_with(b"]"))
}
