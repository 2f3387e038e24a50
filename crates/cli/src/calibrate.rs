//! `flashpath calibrate`: measures on this machine what each kind of step of a file system takes.

use crate::failure::Failure;
use flashpath::fs::in_process::{InProcess, InProcessFile};
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::{Durable, FileSystem, FileSystemError};
use flashpath::report;
use flashpath::run::{Path, open_file_system};
use flashpath::task::{Step, Task};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measure what each kind of step of a file system takes on this machine, for `flashpath run --cpu FILE`
#[derive(clap::Args)]
pub struct Calibrate {
    /// Rounds of which the median counts
    #[arg(long, value_name = "N", default_value_t = 41, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    rounds: u32,
    /// Write the table as JSON, as --cpu reads it; - is standard output, and then nothing else is written there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const METHOD: &str = "each round times the step and what it is measured beside in turn, some milliseconds each, and takes the \
                      difference; the median of the rounds counts, with their quartiles; a step takes a nanosecond at least";

/// How long each part of a round takes at the least.
const PART: Duration = Duration::from_millis(2);

/// Names in each directory that is looked through: those of a block.
const NAMES: usize = 60;

/// Directories on a long path.
const DEPTH: u64 = 8;

/// Blocks that are read at once.
const RUN: u64 = 64;

/// What a step takes, in nanoseconds: the median of the rounds, and their quartiles.
struct Measured {
    step: &'static str,
    how: &'static str,
    low: u64,
    ns: u64,
    high: u64,
}

impl Calibrate {
    /// Measures and prints.
    pub fn run(self) -> Result<(), Failure> {
        if let Some(file) = self.json.as_deref().filter(|file| *file != std::path::Path::new("-")) {
            report::check_writable(file)?;
        }
        let failed = |error: FileSystemError| Failure::failed(format!("the volume that is measured: {error}"));
        let measured = Bench::new().and_then(|bench| bench.measure(self.rounds)).map_err(failed)?;
        let machine = machine();
        match &self.json {
            Some(file) if file.as_os_str() == "-" => return crate::print(&as_json(&machine, self.rounds, &measured)),
            Some(file) => report::write_file(file, &as_json(&machine, self.rounds, &measured))?,
            None => {}
        }
        crate::print(&as_table(&machine, self.rounds, &measured))
    }
}

fn as_table(machine: &str, rounds: u32, measured: &[Measured]) -> String {
    let mut text = format!("CPU time of each step on {machine}, {rounds} rounds\n\n");
    let _ = writeln!(text, "{:<16}{:>8}{:>20}   measured as", "step", "ns", "quartiles");
    for Measured { step, how, low, ns, high } in measured {
        let _ = writeln!(text, "{step:<16}{ns:>8}{:>20}   {how}", format!("{low} to {high}"));
    }
    let _ = writeln!(text, "\n{METHOD}.");
    text
}

fn as_json(machine: &str, rounds: u32, measured: &[Measured]) -> String {
    let step = |step: &Measured| {
        let value = json!({ "ns": step.ns, "low": step.low, "high": step.high, "measured_as": step.how });
        (step.step.to_string(), value)
    };
    let steps: Map<String, Value> = measured.iter().map(step).collect();
    let table = json!({ "machine": machine, "method": METHOD, "rounds": rounds, "steps": steps });
    format!("{table:#}\n")
}

/// What the kernel calls the processor.
fn machine() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("a processor without a name", |(_, name)| name.trim()).to_string()
}

/// A volume in memory, and what is measured with it.
struct Bench {
    files: InProcess,
    file: InProcessFile,
    mapped: InProcessFile,
    task: Task<'static>,
    long_path: String,
    from: Vec<u8>,
}

type Answer = Result<(), FileSystemError>;

impl Bench {
    fn new() -> Result<Bench, FileSystemError> {
        let path = Path::read("sfs:segment=1M/conv:size=256M,timing=off").expect("the stations are in the table");
        let volume = open_file_system(&path, &Mounting::at(1, 0), Access::IfWhole).expect("memory holds a volume");
        let files = InProcess::new(volume);
        let task = Task::at(Time::ZERO);
        let mut directory = String::new();
        for _ in 0..DEPTH {
            for number in 0..NAMES {
                let file = files.create(&task, &format!("{directory}name-{number:03}"))?;
                files.close(&task, file)?;
            }
            directory.push_str("directory");
            files.make_directory(&task, &directory)?;
            directory.push('/');
        }
        let long_path = format!("{directory}file");
        let last = files.create(&task, &long_path)?;
        files.close(&task, last)?;
        let (file, mapped) = (files.create(&task, "file")?, files.create(&task, "mapped")?);
        // It stays buffered: reads of it copy blocks in memory.
        files.write_at(&task, &mapped, 0, &vec![1; (RUN * BLOCK_BYTES) as usize])?;
        Ok(Bench { files, file, mapped, task, long_path, from: vec![1; 16 << 20] })
    }

    /// Each step, in the order of their table.
    fn measure(&self, rounds: u32) -> Result<Vec<Measured>, FileSystemError> {
        let Bench { files, file, mapped, task, long_path, from } = self;
        let (mut buffer, mut run) = (vec![0; from.len()], vec![0; (RUN * BLOCK_BYTES) as usize]);
        let block = BLOCK_BYTES as usize;
        let mut turn = 0;
        let mut next = move || {
            turn = (turn + block) % (16 << 20);
            turn
        };
        let call = || files.read_at(task, file, 0, &mut []).map(drop);
        let mut copy = || {
            let at = next();
            buffer[at..at + block].copy_from_slice(&from[at..at + block]);
            black_box(&mut buffer);
            Ok(())
        };
        let sum = || {
            black_box(crc32c::crc32c(&from[..block]));
            Ok(())
        };
        let mut length = 0;
        let mut change = || {
            length = 4096 - length;
            files.truncate(task, file, length)
        };
        let mut copied = vec![0; run.len()];
        let mut copy_run = || {
            copied.copy_from_slice(&from[..(RUN * BLOCK_BYTES) as usize]);
            black_box(&mut copied);
            call()
        };
        let write = || files.write_at(task, file, 8192, &[1]);
        let sync = || write().and_then(|()| files.sync_file(task, file, Durable::All));
        let mut table = Vec::new();
        let mut add = |step, how, times: u64, one: &mut dyn FnMut() -> Answer, beside: &mut dyn FnMut() -> Answer| {
            table.push(difference(rounds, step, how, times, one, beside)?);
            Ok::<_, FileSystemError>(())
        };
        let nothing = || Ok(());
        add(Step::Call, "a read of no bytes", 1, &mut call.clone(), &mut nothing.clone())?;
        let (long, short) = (|| files.length(task, long_path).map(drop), || files.length(task, "file").map(drop));
        add(
            Step::NameLookedUp,
            "stat of a path with 8 more names, over 8",
            DEPTH,
            &mut long.clone(),
            &mut short.clone(),
        )?;
        add(Step::BlockCopied, "4 KiB copied, of 16 MiB in order", 1, &mut copy, &mut nothing.clone())?;
        add(Step::BlockSummed, "CRC-32C of 4 KiB", 1, &mut sum.clone(), &mut nothing.clone())?;
        let mut read = || files.read_at(task, mapped, 0, &mut run).map(drop);
        add(
            Step::MapStep,
            "a read of 64 buffered blocks, beside a read of none and copying 64 blocks, over 64",
            RUN,
            &mut read,
            &mut copy_run,
        )?;
        add(
            Step::LogRecord,
            "a byte written and synced, beside a byte written",
            1,
            &mut sync.clone(),
            &mut write.clone(),
        )?;
        add(
            Step::InodeChanged,
            "a change of a file's length, beside a read of no bytes",
            1,
            &mut change,
            &mut call.clone(),
        )?;
        Ok(table)
    }
}

/// What one thing takes beyond another, over so many times.
fn difference(
    rounds: u32,
    step: Step,
    how: &'static str,
    times: u64,
    one: &mut dyn FnMut() -> Answer,
    beside: &mut dyn FnMut() -> Answer,
) -> Result<Measured, FileSystemError> {
    let mut taken = Vec::with_capacity(rounds as usize);
    for _ in 0..rounds {
        let (with, without) = (each(one)?, each(beside)?);
        taken.push(((with - without) / times as f64).round().max(1.0) as u64);
    }
    taken.sort_unstable();
    let of = |share: usize| taken[(taken.len() - 1) * share / 4];
    let name = Step::NAMES.iter().find(|(_, known)| *known == step).expect("each step has a name").0;
    Ok(Measured { step: name, how, low: of(1), ns: of(2), high: of(3) })
}

/// Nanoseconds of one call, of as many as take some milliseconds.
fn each(call: &mut dyn FnMut() -> Answer) -> Result<f64, FileSystemError> {
    let (began, mut calls) = (Instant::now(), 0u64);
    loop {
        for _ in 0..64 {
            call()?;
        }
        calls += 64;
        let passed = began.elapsed();
        if passed >= PART {
            return Ok(passed.as_nanos() as f64 / calls as f64);
        }
    }
}
