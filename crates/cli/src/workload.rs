//! The WORKLOAD of the command line: a trace file, a fio job, or a generator.

use crate::failure::Failure;
use clap::Args;
use flashpath::expression::parse_term;
use flashpath::workload::trace::{Addresses, Format, Stage, TraceOptions, TraceWorkload};
use flashpath::workload::{Workload, fio_job, generator};
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
    Generator(flashpath::expression::Term),
}

impl Source {
    /// Understands the text. A file comes before a generator of the same name.
    pub fn read(text: &str) -> Result<Source, Failure> {
        if let Some(job) = text.strip_prefix("fio:") {
            return Ok(Source::FioJob(PathBuf::from(job)));
        }
        if Path::new(text).exists() {
            return Ok(Source::Trace(PathBuf::from(text)));
        }
        let looks_like_a_file = text.contains('/') || (text.contains('.') && !text.contains(':'));
        if looks_like_a_file {
            let help = "WORKLOAD is a trace file, fio:JOBFILE or a generator such as uniform:writes=6x".to_string();
            return Err(Failure::input(format!("there is no file {text}"), Some(help)));
        }
        let term = parse_term(text)?;
        term.find("workload", generator::kinds())?;
        Ok(Source::Generator(term))
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
        })
    }

    /// Whether the workload has time stamps that it can be replayed at.
    pub fn has_times(&self) -> bool {
        matches!(self, Source::Trace(_))
    }
}
