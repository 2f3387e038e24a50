//! `flashpath sweep`: many runs from one description.
//!
//! | file | role |
//! |---|---|
//! | `mod.rs` | the arguments |
//! | `request` | the description: arguments, and a file of TOML |
//! | `searching` | the search for a goal |
//! | `progress` | the progress of all runs |
//! | `output` | the tables and the page |

mod output;
mod progress;
mod request;
mod searching;

use crate::failure::Failure;
use flashpath::run::Age;
use flashpath::task::CpuTable;
use flashpath::units::parse_size;
use flashpath::workload::trace::{Columns, Format, Stage};
use flashpath_environment::machine_share;
use flashpath_sweep::{
    Goal, Identity, Journal, JournalFault, Limits, Plan, Request, SweepError, check_memory, run_all, units,
};
use output::{JournalPlace, Outputs, Results, report_failures};
use progress::ProgressBar;
use request::Described;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Run a workload on many paths, with many options and seeds, beside each other
///
/// Each option of a path or a workload, and each option below, takes several values: a list A:B:C, a range FROM..TO or
/// FROM..TO..STEP, or FROM..TO..x2, in which each value is twice the one before. No shell expands these. In quotes,
/// braces are the same: 'op={7%,14%,28%}'. The sweep runs every combination.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Sweep {
    /// Trace files, fio:JOBFILE, generators such as uniform:writes=2x:6x, file workloads such as varmail:threads=1..4, or a
    /// description in a file NAME.toml
    #[arg(value_name = "WORKLOAD", required = true)]
    workloads: Vec<OsString>,
    /// A path, with several values of its options: page:op=7%:14%:28%,victim=greedy:cost-benefit/nand:size=1G. Several are all
    /// run. NAME= before it gives it a short name in the table
    #[arg(long, value_name = "[NAME=]PATH")]
    on: Vec<String>,
    /// The seeds of all randomness, such as 1..10: means and confidence intervals are taken over them [default: 1]
    #[arg(long, value_name = "SEEDS")]
    seed: Option<String>,
    /// Requests in flight [default: a fio job's iodepth, else 32]
    #[arg(long, value_name = "N")]
    depth: Option<String>,
    /// Replay a trace at its recorded times, multiplied by SCALE
    #[arg(long, value_name = "SCALE")]
    timed: Option<String>,
    /// End after this many requests
    #[arg(long, value_name = "REQUESTS")]
    limit: Option<String>,
    /// Write the exported space, or a share of it, once in order before counting begins: on, off, 70% or off:50%:on
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    fill: Option<String>,
    /// Run the workload for this amount of writes before counting begins
    #[arg(long, value_name = "AMOUNT")]
    precondition: Option<String>,
    /// Check that every read returns the latest write: on, off or on:off
    #[arg(long, value_name = "SWITCH", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    verify: Option<String>,
    /// The size of the file in which a block workload runs
    #[arg(long, value_name = "BYTES", help_heading = "File system")]
    size: Option<String>,
    /// On sfs, fill the volume up to this share with the workload's file and a cold one
    #[arg(long, value_name = "SHARE", help_heading = "File system")]
    utilization: Option<String>,
    /// In a file, fsync a block workload's data after this many writes
    #[arg(long, value_name = "N", help_heading = "File system")]
    fsync_every: Option<String>,
    /// The largest write request of a file system
    #[arg(long, value_name = "BYTES", help_heading = "File system")]
    max_request: Option<String>,
    /// CPU time of a file workload, as of run: one table for all runs
    #[arg(long, value_name = "TABLE", value_parser = flashpath_sweep::cpu_table, help_heading = "File system")]
    cpu: Option<CpuTable>,
    /// The life of the drive at this rate of writes, such as 200GB/day: columns wear.rate.years and others
    #[arg(long, value_name = "RATE", value_parser = flashpath_sweep::rate)]
    rate: Option<u64>,
    /// The age of drives whose flash has errors, such as years=1,cycles=50%, as of run: one age for all runs
    #[arg(long, value_name = "AGE", value_parser = crate::run::age)]
    age: Option<Age>,
    /// Tell what the latencies at each percentile are made of: columns latency_ns.write.parts.p99.collection and others
    #[arg(long)]
    waits: bool,
    /// The trace's format [default: recognised by content]
    #[arg(long, value_parser = crate::workload::format, hide_possible_values = true, help_heading = "Trace")]
    format: Option<&'static Format>,
    /// The columns of any text, such as time=1,op=3,offset=4,size=5,unit=sector
    #[arg(long, value_name = "KEY=COLUMN,...", value_parser = crate::workload::columns, help_heading = "Trace")]
    columns: Option<Columns>,
    /// The stage of requests to read from a trace of block events: Q, I, D or C
    #[arg(long, value_name = "Q|I|D|C", value_parser = crate::workload::stage, help_heading = "Trace")]
    stage: Option<Stage>,
    /// Only this device of the trace; several, or all: a run for each, and the distribution of their numbers
    #[arg(long, value_name = "N|all", help_heading = "Trace")]
    device: Option<String>,
    /// The treatment of a trace's addresses beyond the end of the drive: refuse, wrap or scale [default: refuse]
    #[arg(long, value_name = "WORD", help_heading = "Trace")]
    addresses: Option<String>,
    /// Replay the trace this many times [default: 1]
    #[arg(long, value_name = "N", help_heading = "Trace")]
    repeat: Option<String>,
    /// The number of runs beside each other [default: the processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "This machine")]
    jobs: Option<u16>,
    /// The memory of all runs together, such as 4G [default: half of the machine's, or of the control group's limit]
    #[arg(long, value_name = "BYTES", value_parser = memory, help_heading = "This machine")]
    memory: Option<u64>,
    /// Search the range of the one option that has several values, by bisection, for the value from which a number of the
    /// results is below or above a bound: --on page:export=480G,op=5%..50%/nand --goal 'write_amplification.steady<2'.
    /// Each value is run with all seeds, whose spread says how sure the answer is
    #[arg(long, value_name = "COLUMN<NUMBER", value_parser = Goal::parse)]
    goal: Option<Goal>,
    #[command(flatten)]
    outputs: Outputs,
    /// Print the number of runs and the memory of the largest, and run nothing
    #[arg(long)]
    plan: bool,
    /// No progress and no warnings
    #[arg(long, help_heading = "Results")]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
    flashpath sweep uniform:writes=12x --on page:op=7%:14%:28%,victim=greedy:cost-benefit/nand:size=1G --seed 1..10 \\
        --csv op.csv --report op.html --x page.op --y write_amplification.steady --by page.victim
    flashpath sweep study.toml --parquet study.parquet";

fn memory(text: &str) -> Result<u64, String> {
    parse_size(text).filter(|bytes| *bytes > 0).ok_or_else(|| "expected a size, such as 4G".to_string())
}

/// Set by an interrupt.
static STOP: AtomicBool = AtomicBool::new(false);

/// Catches interrupts: the first ends the runs and keeps what is done; a second one ends the program.
fn catch_interrupts() -> Result<(), Failure> {
    let handler = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::input(format!("cannot catch interrupts: {error}"), None))
}

impl Sweep {
    /// Runs all that is not done yet, and writes the tables.
    pub fn run(self) -> Result<(), Failure> {
        let Described { arguments, request, _traces } = request::describe(self)?;
        match arguments.goal.clone() {
            None => arguments.run_request(&request),
            Some(goal) => arguments.search(&request, &goal),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            jobs: self.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from),
            memory_bytes: self.memory.unwrap_or_else(machine_share),
        }
    }

    fn run_request(self, request: &Request) -> Result<(), Failure> {
        let plan = Plan::read(request)?;
        let limits = self.limits();
        check_memory(&plan, &limits)?;
        if self.plan {
            return output::print_plan(&plan, &limits);
        }
        self.outputs.check(&plan)?;
        let JournalPlace { path, temporary } = self.outputs.journal()?;
        let program = flashpath_environment::program();
        let identity = Identity::new(program, plan.identity(), request::command(), plan.runs());
        let mut journal = Journal::open(&path, &identity)?;
        if journal.damaged_lines() > 0 && !self.quiet {
            crate::print_message(&format!(
                "warning: {}: {} damaged lines; their runs are done again",
                path.display(),
                journal.damaged_lines()
            ));
        }
        let done_before = journal.done().len() as u64;
        if done_before > 0 && !self.quiet {
            crate::print_message(&format!(
                "{done_before} of {} runs are done: going on from {}",
                plan.runs(),
                path.display()
            ));
        }
        if done_before < plan.runs() {
            catch_interrupts()?;
            let traces = plan.decode_traces()?;
            let mut bar = ProgressBar::new(self.quiet);
            run_all(&plan, &traces, limits, &mut journal, &STOP, &mut |progress| bar.show(progress))?;
            bar.finish();
        }
        let left = plan.runs() - journal.done().len() as u64;
        if left > 0 {
            if temporary.is_none() {
                crate::print_message(&format!(
                    "interrupted: {left} of {} runs are left; the same command goes on from {}",
                    plan.runs(),
                    path.display()
                ));
            }
            return Err(Failure::Quiet(130));
        }
        let rows = journal.done().values().map(|done| done.row.clone()).collect();
        let title = match plan.works() {
            [work] => work.name(),
            _ => "A sweep",
        };
        let units = units(request)?;
        let results = Results { title, rows, columns: plan.columns(), units: &units, answer: Vec::new() };
        self.outputs.write(&results, self.quiet)?;
        report_failures(&results.rows, |number| plan.point(number).described())?;
        if self.outputs.journal.is_none() {
            // All runs are in the tables. A journal that the user named is the user's. The lock is held until it is removed.
            std::fs::remove_file(&path)
                .map_err(|error| Failure::failed(format!("cannot remove {}: {error}", path.display())))?;
            drop(journal);
        }
        Ok(())
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Failure {
        match error {
            SweepError::Input { message, help } => Failure::input(message, Some(help)),
            SweepError::Expression(error) => error.into(),
            SweepError::Workload(error) => error.into(),
            SweepError::Run { error, run } => {
                let message = format!("{error}; in {run}");
                match Failure::from(*error) {
                    Failure::Input(report) => Failure::input(message, report.help().map(|help| help.to_string())),
                    _ => Failure::failed(message),
                }
            }
            SweepError::Journal { fault: JournalFault::System(error), file } => Failure::write(&file, error),
            error @ SweepError::Journal { .. } => Failure::input(error.to_string(), None),
        }
    }
}
