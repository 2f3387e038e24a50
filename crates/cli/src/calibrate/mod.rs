//! `flashpath calibrate`: measures the CPU time of each kind of step of a file system on this machine.
//!
//! | file | role |
//! |---|---|
//! | `bench` | volumes in memory, and the calls that are timed |
//! | `memory` | stores to memory as that of a journal, and lines that two cores share |

mod bench;
mod memory;

use crate::failure::Failure;
use bench::Bench;
use flashpath::report;
use flashpath::task::Step;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Measure the CPU time of each kind of step of a file system on this machine, for `flashpath run --cpu FILE`
#[derive(clap::Args)]
pub struct Calibrate {
    /// The number of rounds; their median counts
    #[arg(long, value_name = "N", default_value_t = 41, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    rounds: u32,
    /// Write the table as JSON, as --cpu reads it; - is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const METHOD: &str = "each round times calls to a volume of sfs in memory, one after the other, for 2 ms or longer each; \
                      a step is the time of its call beyond that of the call's other steps, at least 1 ns; the median of \
                      the rounds counts";

/// The CPU time of a step in nanoseconds: the median of the rounds, and their quartiles.
struct Measured {
    step: Step,
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
        let measured = measure(self.rounds)?;
        let machine = machine();
        match &self.json {
            Some(file) if file.as_os_str() == "-" => return crate::print(&as_json(&machine, self.rounds, &measured)),
            Some(file) => report::write_file(file, as_json(&machine, self.rounds, &measured))?,
            None => {}
        }
        crate::print(&as_table(&machine, self.rounds, &measured))
    }
}

/// The steps in the order of their table.
fn measure(rounds: u32) -> Result<Vec<Measured>, Failure> {
    let failed = |error| Failure::failed(format!("the measured volume: {error}"));
    let mut bench = Bench::new().map_err(failed)?;
    let rounds = (0..rounds).map(|_| bench.round()).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let measured = Step::NAMES.iter().map(|(_, step)| {
        let mut taken: Vec<u64> = rounds.iter().map(|round| round[*step as usize].round().max(1.0) as u64).collect();
        taken.sort_unstable();
        let quartile = |number: usize| taken[(taken.len() - 1) * number / 4];
        Measured { step: *step, low: quartile(1), ns: quartile(2), high: quartile(3) }
    });
    Ok(measured.collect())
}

fn as_table(machine: &str, rounds: u32, measured: &[Measured]) -> String {
    let mut text = format!("CPU time of each step on {machine}, {rounds} rounds\n\n");
    let _ = writeln!(text, "{:<16}{:>8}{:>20}   measured as", "step", "ns", "quartiles");
    for Measured { step, low, ns, high } in measured {
        let (step, how) = (step.name(), bench::how(*step));
        let _ = writeln!(text, "{step:<16}{ns:>8}{:>20}   {how}", format!("{low} to {high}"));
    }
    let _ = writeln!(text, "\n{METHOD}.");
    text
}

fn as_json(machine: &str, rounds: u32, measured: &[Measured]) -> String {
    let step = |Measured { step, low, ns, high }: &Measured| {
        let value = json!({ "ns": ns, "low": low, "high": high, "measured_as": bench::how(*step) });
        (step.name().to_string(), value)
    };
    let steps: Map<String, Value> = measured.iter().map(step).collect();
    let table = json!({ "machine": machine, "method": METHOD, "rounds": rounds, "steps": steps });
    format!("{table:#}\n")
}

/// The kernel's name of the processor.
fn machine() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("a processor without a name", |(_, name)| name.trim()).to_string()
}
