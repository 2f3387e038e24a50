//! The WORKLOAD of the command line: a trace file, a fio job, a generator, or a file workload.

use crate::failure::Failure;
use crate::trace_file::{STANDARD_INPUT, TraceFile};
use clap::Args;
use flashpath::expression::{Term, nearest, parse_term};
use flashpath::run::RunError;
use flashpath::workload::files::recorded::is_recording;
use flashpath::workload::trace::{Addresses, Columns, FORMATS, Format, Stage, TraceOptions, TraceWorkload};
use flashpath::workload::{Workload, files, fio_job, generator};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The options for reading a trace.
#[derive(Args, Clone)]
#[command(next_help_heading = "Trace")]
pub struct Reading {
    /// The trace's format [default: recognised by content]
    #[arg(long, value_parser = format, hide_possible_values = true)]
    pub format: Option<&'static Format>,
    /// The columns of any text, from 1 or by the names in its header, such as time=1,op=3,offset=4,size=5,unit=sector;
    /// see docs/traces.md for units, words, delimiters and headers
    #[arg(long, value_name = "KEY=COLUMN,...", value_parser = columns)]
    pub columns: Option<Columns>,
    /// Only this device of the trace, numbered from 0 in order of appearance; for a run of each, flashpath sweep has --device all
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// The stage of requests to read from a trace of block events: Q (queue), I (insert), D (issue) or C (complete)
    /// [default: the first that the trace has for all requests]
    #[arg(long, value_name = "Q|I|D|C", value_parser = stage)]
    pub stage: Option<Stage>,
}

/// The format of this name.
pub fn format(name: &str) -> Result<&'static Format, String> {
    Format::named(FORMATS, name).ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(Format::name).collect();
        format!("unknown format; known are: {}", names.join(", "))
    })
}

/// The description of a text's columns.
pub fn columns(text: &str) -> Result<Columns, String> {
    Columns::parse(text)
}

/// The stage of this letter or name.
pub fn stage(text: &str) -> Result<Stage, String> {
    Stage::parse(text).ok_or_else(|| "expected Q, I, D or C (queue, insert, issue, complete)".to_string())
}

fn addresses(name: &str) -> Result<Addresses, String> {
    Addresses::parse(name).ok_or_else(|| "expected refuse, wrap or scale".to_string())
}

/// The options for replaying a trace.
#[derive(Args, Clone)]
#[command(next_help_heading = "Trace")]
pub struct Replaying {
    /// The options for reading it.
    #[command(flatten)]
    pub reading: Reading,
    /// The treatment of a trace's addresses beyond the end of the drive [default: refuse]
    #[arg(long, value_name = "refuse|wrap|scale", value_parser = addresses)]
    pub addresses: Option<Addresses>,
    /// Replay the trace this many times [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub repeat: Option<u64>,
}

/// A description of columns as a word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=,.:_-".contains(&byte);
    if text.bytes().all(is_plain) { text.to_string() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

impl Reading {
    /// The library's options.
    pub fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.format,
            columns: self.columns.clone(),
            device: self.device,
            stage: self.stage,
            ..TraceOptions::default()
        }
    }
}

impl Replaying {
    /// The given options, as arguments of the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        arguments.extend(self.reading.format.map(|format| format!("--format {}", format.name())));
        arguments.extend(self.reading.columns.as_ref().map(|columns| format!("--columns {}", quoted(columns.text()))));
        arguments.extend(self.reading.device.map(|device| format!("--device {device}")));
        arguments.extend(self.reading.stage.map(|stage| format!("--stage {}", char::from(stage.letter()))));
        arguments.extend(self.addresses.map(|addresses| match addresses {
            Addresses::Refuse => "--addresses refuse".to_string(),
            Addresses::Wrap => "--addresses wrap".to_string(),
            Addresses::Scale => "--addresses scale".to_string(),
        }));
        arguments.extend(self.repeat.map(|times| format!("--repeat {times}")));
        arguments
    }
}

/// The parsed workload argument.
pub enum Source {
    /// A trace.
    Trace(TraceFile),
    /// A fio job file.
    FioJob(PathBuf),
    /// A generator.
    Generator(Term),
    /// A file workload, which needs a file system.
    Files(Term),
    /// Recorded calls to a mounted volume, which need a file system.
    Recording(PathBuf),
    /// A shell command, which needs a file system of the kernel.
    Shell(String),
}

impl Source {
    /// Parses the argument. A file takes precedence over a generator of the same name; its name need not be text.
    pub fn read(argument: &OsStr) -> Result<Source, Failure> {
        if let Some(job) = argument.as_bytes().strip_prefix(b"fio:") {
            let job = PathBuf::from(OsStr::from_bytes(job));
            return if job.exists() && !job.is_dir() { Ok(Source::FioJob(job)) } else { Err(no_file(&job)) };
        }
        let file = Path::new(argument);
        if argument == STANDARD_INPUT || file.exists() {
            if begins_with_section(file) {
                let message = format!("{} looks like a fio job, not a trace", file.display());
                return Err(Failure::input(message, Some(format!("to run it as one, write fio:{}", file.display()))));
            }
            if is_recording(file) {
                return Ok(Source::Recording(file.to_path_buf()));
            }
            return Ok(Source::Trace(TraceFile::open(file)?));
        }
        let Some(text) = argument.to_str() else { return Err(no_file(file)) };
        if let Some(command) = text.strip_prefix("sh:") {
            return Ok(Source::Shell(command.to_string()));
        }
        let looks_like_a_file = text.contains('/') || (text.contains('.') && !text.contains(':'));
        let looks_like_a_file = looks_like_a_file && !generator::is_with_options(text);
        if looks_like_a_file {
            return Err(no_file(Path::new(text)));
        }
        let term = parse_term(text)?;
        let kind = term.find("workload", &[generator::kinds(), files::kinds()].concat())?;
        let is_files = files::kinds().iter().any(|files| files.name == kind.name);
        Ok(if is_files { Source::Files(term) } else { Source::Generator(term) })
    }

    /// Opens the workload for a path that exports `device_bytes`.
    pub fn open(&self, replaying: &Replaying, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, RunError> {
        Ok(match self {
            Source::Trace(file) => {
                let reading = replaying.reading.options();
                let (addresses, repeat) = (replaying.addresses.unwrap_or_default(), replaying.repeat.unwrap_or(1));
                let options = TraceOptions { addresses, repeat, name: file.name().map(str::to_string), ..reading };
                Box::new(TraceWorkload::open(file.path(), options, device_bytes)?)
            }
            Source::FioJob(file) => fio_job::fio_job(file, device_bytes, seed)?,
            Source::Generator(term) => generator::generator(term, device_bytes, seed)?,
            Source::Files(_) | Source::Recording(_) | Source::Shell(_) => unreachable!("none is a block workload"),
        })
    }

    /// The file it is read from, if any.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Source::Trace(file) => Some(file.path().to_path_buf()),
            Source::FioJob(file) | Source::Recording(file) => Some(file.clone()),
            Source::Generator(term) => generator::file_of(term),
            Source::Files(_) | Source::Shell(_) => None,
        }
    }

    /// Refuses options for reading a trace if the workload is none: they would be ignored.
    pub fn check(&self, replaying: &Replaying, name: &str) -> Result<(), Failure> {
        let kind = match self {
            Source::Trace(_) => return Ok(()),
            Source::FioJob(_) => "a fio job",
            Source::Generator(_) => "a generator",
            Source::Files(_) => "a file workload",
            Source::Recording(_) => "a recording of calls",
            Source::Shell(_) => "a command",
        };
        let is_repeated = |given: &&String| matches!(self, Source::Recording(_)) && given.starts_with("--repeat ");
        match replaying.arguments().iter().find(|given| !is_repeated(given)) {
            Some(given) => {
                let option = given.split(' ').next().unwrap_or_default();
                let message = format!("{option} is for traces, and {name} is {kind}");
                Err(Failure::input(message, Some("leave it out, or run a trace".to_string())))
            }
            None => Ok(()),
        }
    }

    /// True if the workload has time stamps to replay.
    pub fn has_times(&self) -> bool {
        matches!(self, Source::Trace(_))
    }
}

/// An error for a missing file, with a similar name in its directory.
fn no_file(path: &Path) -> Failure {
    if path.starts_with("~") && !path.exists() {
        let help =
            "a shell replaces '~' by your home directory at the beginning of a word only: write $HOME".to_string();
        return Failure::input(format!("file {} not found", path.display()), Some(help));
    }
    let usage = "WORKLOAD is a trace file, - for one from standard input, fio:JOBFILE, a generator such as uniform:writes=6x, a file workload such as varmail, or sh:COMMAND";
    let message = match path.exists() {
        true => format!("{} is a directory", path.display()),
        false => format!("file {} not found", path.display()),
    };
    let help = match neighbour(path) {
        Some(near) => format!("did you mean {}? {usage}", near.display()),
        None => usage.to_string(),
    };
    Failure::input(message, Some(help))
}

/// The file with the most similar name in the same directory.
fn neighbour(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = directory.read_dir().ok()?.flatten().take(MOST_NAMES);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    nearest(name, names.iter().map(String::as_str)).map(|near| path.with_file_name(near))
}

/// The most names examined for a similar one.
const MOST_NAMES: usize = 10_000;

/// True if the first line that is not blank or a comment is `[SECTION]`, as in every fio job.
fn begins_with_section(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    let is_content = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#") && !line.starts_with(b";");
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    read.is_ok() && lines.find(is_content).is_some_and(|line| line.starts_with(b"[") && line.ends_with(b"]"))
}
