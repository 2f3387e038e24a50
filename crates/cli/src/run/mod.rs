//! `flashpath run`: a workload on one or several paths, or in a directory.

mod in_directory;
mod on_kernel;

use crate::failure::{Failure, exit_code};
use crate::progress::Bars;
use crate::words::one_of;
use crate::workload::{Replaying, Source};
use flashpath::expression::Amount;
use flashpath::report::{self, RunResult};
use flashpath::run::{
    FileShape, OpenBlocks, Options, Outcome, Part, Path, Replay, RunError, VolumeOptions, Work, prepare, simulate,
};
use flashpath::task::CpuTable;
use flashpath::workload::Workload;
use flashpath::workload::files::file_workload;
use std::cell::Cell;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Run a workload on one or several paths, or in a directory
#[derive(clap::Args)]
pub struct Run {
    /// A trace file, fio:JOBFILE, a generator such as uniform:writes=6x, a file workload such as varmail, or, on a path
    /// with a kernel file system, sh:COMMAND
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// A path, from top to bottom; several are run and compared
    #[arg(long, value_name = "PATH", required_unless_present = "directory")]
    on: Vec<String>,
    /// Run in this directory instead of on a path: a file workload, or a block workload inside one file of --size, as
    /// on a virtual machine's disk. The files are kept
    #[arg(long = "in", id = "directory", value_name = "DIR", conflicts_with_all = ["on", "depth", "timed", "precondition", "verify", "report"])]
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
    /// End after this many requests
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Write the exported space once in order before counting begins
    #[arg(long)]
    pub fill: bool,
    /// Run the workload for this amount of writes, such as 2x or 4G, before counting begins
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    precondition: Option<Amount>,
    /// Check that every read returns the latest write, and read everything back at the end
    #[arg(long)]
    verify: bool,
    /// The size of the file in which a block workload runs, such as 1G [default on a kernel file system: half of the
    /// free space]
    #[arg(long, value_name = "BYTES", value_parser = disk_size, help_heading = "File system")]
    pub size: Option<u64>,
    /// On sfs, fill the volume up to this share with the workload's file and a cold one
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "File system")]
    pub utilization: Option<f64>,
    /// In a file, fsync a block workload's data after this many writes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "File system")]
    pub fsync_every: Option<u64>,
    /// With --in: run only the setup of a file workload, or only the rest, after --only setup with the same workload,
    /// options and seed
    #[arg(long, value_name = "PART", conflicts_with = "on", value_parser = one_of(&Part::WORDS), help_heading = "File system")]
    pub only: Option<Part>,
    /// CPU time of a file workload in a volume of sfs: off, a file of 'flashpath calibrate --json', or steps that differ
    /// from the table in the program, such as call=800,block-copied=250. The result says which table counted [default: the
    /// table in the program]
    #[arg(long, value_name = "TABLE", conflicts_with = "directory", value_parser = crate::cpu::table, help_heading = "File system")]
    cpu: Option<CpuTable>,
    #[command(flatten)]
    pub replaying: Replaying,
    /// Write the results as JSON; - is standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub json: Option<PathBuf>,
    /// Write the results as one self-contained HTML page
    #[arg(long, value_name = "FILE.html", help_heading = "Results")]
    report: Option<PathBuf>,
    /// No progress and no warnings
    #[arg(long, help_heading = "Results")]
    pub quiet: bool,
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| (0.0..=1e6).contains(scale));
    scale.ok_or_else(|| "expected a number from 0 to 1000000".to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share = flashpath::units::parse_share(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0% to 100%, such as 85%".to_string())
}

fn disk_size(text: &str) -> Result<u64, String> {
    let size = flashpath::units::parse_size(text).filter(|size| (4096..=1 << 50).contains(size));
    size.ok_or_else(|| "expected a size from 4K to 1P, such as 1G".to_string())
}

fn amount(text: &str) -> Result<Amount, String> {
    let amount = Amount::parse(text).filter(|amount| amount.bytes(u64::MAX) > 0);
    amount.ok_or_else(|| "expected a size such as 4G, or a multiple of the drive such as 2x".to_string())
}

/// Catches interrupts; returns the flag that they set.
fn catch_interrupts() -> Result<&'static AtomicBool, Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    // A second interrupt exits at once: output files are written beside their place, so none is left half written.
    let handler = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::input(format!("cannot catch interrupts: {error}"), None))?;
    Ok(&STOP)
}

/// The place of a run.
enum Place<'a> {
    /// A path: simulated, or with a file system of the kernel.
    Path(&'a Path),
    /// A directory of this machine.
    Directory(&'a std::path::Path),
}

/// The runs of a command: they share the terminal and the interrupt.
struct Runner<'a> {
    command: &'a Run,
    source: Source,
    stop: &'a AtomicBool,
    bars: Bars,
}

impl Run {
    /// Runs the workload, prints the results, and writes the requested files.
    pub fn run(self) -> Result<(), Failure> {
        let source = Source::read(&self.workload)?;
        let paths = self.on.iter().map(|text| Path::read(text)).collect::<Result<Vec<_>, _>>()?;
        self.check(&source, &paths)?;
        self.check_outputs(&source)?;
        let stop = catch_interrupts()?;
        let runner = Runner { command: &self, source, stop, bars: Bars::new(self.quiet) };
        let ended = match &self.directory {
            Some(directory) => vec![runner.run_one(Place::Directory(directory))?],
            // Kernel runs share the machine: one after the other.
            None if paths.iter().any(|path| path.kernel().is_some()) => {
                paths.iter().map(|path| runner.run_one(Place::Path(path))).collect::<Result<_, _>>()?
            }
            None => runner.run_all(&paths)?,
        };
        self.print_results(ended)
    }

    fn check(&self, source: &Source, paths: &[Path]) -> Result<(), Failure> {
        if let Some(path) = paths.iter().find(|path| path.kernel().is_some()) {
            return self.check_on_kernel(path);
        }
        for (given, option) in [
            (self.size.is_some(), "--size"),
            (self.utilization.is_some(), "--utilization"),
            (self.fsync_every.is_some(), "--fsync-every"),
        ] {
            if let Some(path) = paths.iter().find(|path| given && path.volume_settings().is_none()) {
                let message = format!("{option} is for files, and {} has no file system on top", path.text);
                let help = "leave it out, use --in DIR, or put sfs/ or kernel-ext4/ before the path".to_string();
                return Err(Failure::input(message, Some(help)));
            }
        }
        if let (Some(_), Some(path)) = (&self.cpu, paths.first().filter(|_| !matches!(source, Source::Files(_)))) {
            let message =
                format!("--cpu is for file workloads, and {} on {} asks for blocks", self.workload, path.text);
            return Err(Failure::input(message, Some("leave it out: blocks cost no CPU time".to_string())));
        }
        self.check_files(source, paths)?;
        if self.timed.is_some() {
            if !source.has_times() {
                let help = "leave --timed out, or run a trace".to_string();
                return Err(Failure::input("--timed needs a trace: only traces have recorded times", Some(help)));
            }
            for path in paths {
                if !prepare(path, self.seed)?.is_timed() {
                    let message = format!("--timed needs a timing model, and {} has none", path.text);
                    let help = "leave --timed out, or remove timing=off".to_string();
                    return Err(Failure::input(message, Some(help)));
                }
            }
        }
        Ok(())
    }

    /// Checks that a file workload has a file system, and a command a kernel file system.
    fn check_files(&self, source: &Source, paths: &[Path]) -> Result<(), Failure> {
        let (name, can_have): (&str, fn(&Path) -> bool) = match source {
            Source::Files(term) => (&term.name.text, |path| path.volume_settings().is_some()),
            Source::Shell(_) => ("a command", |_| false),
            _ => return Ok(()),
        };
        if let Some(path) = paths.iter().find(|path| !can_have(path)) {
            let (message, help) = match path.volume_settings() {
                Some(_) => (
                    format!("a command needs a mounted file system, and {} runs inside this process", path.text),
                    "mount it with 'flashpath mount', or use kernel-ext4/ instead of sfs/",
                ),
                None => (
                    format!("{name} needs files, and {} has no file system on top", path.text),
                    "use --in DIR instead of --on, or put sfs/ or kernel-ext4/ before the path",
                ),
            };
            return Err(Failure::input(message, Some(help.to_string())));
        }
        if paths.is_empty() {
            return Ok(());
        }
        for (given, option) in [
            (self.size.is_some(), "--size"),
            (self.utilization.is_some(), "--utilization"),
            (self.fsync_every.is_some(), "--fsync-every"),
            (self.depth.is_some(), "--depth"),
            (self.fill, "--fill"),
            (self.precondition.is_some(), "--precondition"),
            (self.timed.is_some(), "--timed"),
            (self.verify, "--verify"),
        ] {
            if given {
                let message = format!("{option} is for block workloads, and {name} is a file workload");
                return Err(Failure::input(message, Some("leave it out".to_string())));
            }
        }
        Ok(())
    }

    /// Refuses options of simulated time on a kernel file system.
    fn check_on_kernel(&self, path: &Path) -> Result<(), Failure> {
        for (given, option) in [
            (self.depth.is_some(), "--depth"),
            (self.timed.is_some(), "--timed"),
            (self.precondition.is_some(), "--precondition"),
            (self.verify, "--verify"),
            (self.utilization.is_some(), "--utilization"),
            (self.cpu.is_some(), "--cpu"),
        ] {
            if given {
                let message =
                    format!("{option} is for simulated runs, and {} runs on this machine's kernel", path.text);
                return Err(Failure::input(message, Some("leave it out".to_string())));
            }
        }
        Ok(())
    }

    /// The engine's options for a block workload.
    fn options(&self, workload: &dyn Workload) -> Options {
        let replay = match self.timed {
            Some(scale) => Replay::Open { scale },
            None => Replay::Closed { depth: self.depth.or(workload.queue_depth()).unwrap_or(32) },
        };
        let (fill, verify) = (self.fill, self.verify);
        Options { seed: self.seed, replay, limit: self.limit, fill, precondition: self.precondition, verify }
    }

    /// Checks the output files before a run that may take hours.
    fn check_outputs(&self, source: &Source) -> Result<(), Failure> {
        let json = self.json.as_deref().filter(|file| *file != std::path::Path::new("-"));
        let report = self.report.as_deref();
        for file in [json, report].into_iter().flatten() {
            report::check_writable(file)?;
            if source.file().is_some_and(|workload| crate::is_same_file(workload, file)) {
                let message = format!("{} is the workload's file: the results would replace it", file.display());
                return Err(Failure::input(message, Some("choose another name for the results".to_string())));
            }
        }
        if let (Some(json), Some(report)) = (json, report)
            && (json == report && !report::is_special(json) || crate::is_same_file(json, report))
        {
            let message = format!("--json and --report both write {}", json.display());
            return Err(Failure::input(message, Some("choose a name for each".to_string())));
        }
        Ok(())
    }

    /// Prints the results, writes the files, and returns the worst failure.
    fn print_results(&self, outcomes: Vec<Outcome>) -> Result<(), Failure> {
        let interrupted = outcomes.iter().any(|outcome| outcome.result.interrupted);
        let (results, failures): (Vec<_>, Vec<_>) =
            outcomes.into_iter().map(|outcome| (outcome.result, outcome.failure)).unzip();
        // What a directory refused has no results.
        let is_refused = self.directory.is_some() && failures.iter().flatten().any(RunError::is_input);
        if !is_refused {
            self.print_tables(&results)?;
        }
        for (result, failure) in results.iter().zip(&failures) {
            if let Some(error) = failure {
                crate::print_message(&format!("error: {}: {error}", result.path));
            }
        }
        // A wrong input takes precedence over a failed run.
        match failures.iter().flatten().map(exit_code).max() {
            Some(code) => Err(Failure::Quiet(code)),
            None if interrupted => Err(Failure::Quiet(130)),
            None => Ok(()),
        }
    }

    /// Prints the results in all requested forms.
    fn print_tables(&self, results: &[RunResult]) -> Result<(), Failure> {
        let on_stdout = self.json.as_deref() == Some(std::path::Path::new("-"));
        if on_stdout {
            crate::print(&report::json(results))?;
        } else {
            let terminal = std::io::stdout().is_terminal();
            let width = if terminal { usize::from(console::Term::stdout().size().1) } else { 120 };
            let mut shown = results.to_vec();
            if self.quiet {
                shown.iter_mut().for_each(|result| result.warnings.clear());
            }
            crate::print(&report::table(&shown, width, terminal))?;
        }
        if let Some(file) = self.json.as_ref().filter(|_| !on_stdout) {
            report::write_file(file, &report::json(results))?;
        }
        if let Some(file) = &self.report {
            report::write_file(file, &report::html(results))?;
            if !self.quiet {
                crate::print_message(&format!("wrote {}", file.display()));
            }
        }
        Ok(())
    }
}

impl Runner<'_> {
    /// Runs the paths in parallel on all processors; returns the outcomes in the order of the paths.
    fn run_all(&self, paths: &[Path]) -> Result<Vec<Outcome>, Failure> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(paths.len());
        let next = AtomicUsize::new(0);
        let outcomes: Vec<Mutex<Option<Result<Outcome, Failure>>>> = paths.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let place =
                            paths.iter().position(|other| std::ptr::eq(other, path)).expect("it is one of them");
                        *outcomes[place].lock().expect("no run panics") = Some(self.run_one(Place::Path(path)));
                    }
                });
            }
        });
        outcomes
            .into_iter()
            .map(|outcome| outcome.into_inner().expect("no run panics").expect("every path was run"))
            .collect()
    }

    /// Runs the workload in one place.
    fn run_one(&self, place: Place<'_>) -> Result<Outcome, Failure> {
        let mut outcome = match place {
            Place::Directory(directory) => in_directory::run(self.command, directory, &self.source, self.stop)?,
            Place::Path(path) if path.kernel().is_some() => {
                on_kernel::run(self.command, &self.source, path, self.stop)?
            }
            Place::Path(path) => self.simulate(path)?,
        };
        // The user's own text, so that the command to repeat the run is right.
        outcome.result.workload.name = self.command.workload.clone();
        Ok(outcome)
    }

    fn simulate(&self, path: &Path) -> Result<Outcome, Failure> {
        let command = self.command;
        let began = Cell::new(Instant::now());
        let open: OpenBlocks<Failure> = Box::new(|bytes| {
            let workload = self.source.open(&command.replaying, bytes, command.seed)?;
            let options = command.options(workload.as_ref());
            began.set(Instant::now());
            Ok((workload, options))
        });
        let shape =
            FileShape { bytes: command.size, utilization: command.utilization, fsync_every: command.fsync_every };
        let work = match (&self.source, path.volume_settings()) {
            (Source::Files(term), Some(_)) => {
                let cpu = command.cpu.clone().unwrap_or_default();
                let options = VolumeOptions { limit: command.limit, cpu, ..VolumeOptions::default() };
                Work::Files(file_workload(term, command.seed)?, options)
            }
            (_, Some(_)) => Work::InFile(shape, open),
            (_, None) => Work::Blocks(open),
        };
        let is_of_blocks = !matches!(work, Work::Files(..));
        let mut bar = self.bars.add(&path.text);
        let outcome = simulate(path, command.seed, work, &mut |progress| {
            bar.show(progress);
            !self.stop.load(Ordering::Relaxed)
        });
        bar.finish();
        let mut outcome = outcome?;
        outcome.result.seconds_wall = began.get().elapsed().as_secs_f64();
        outcome.result.options.extend(match is_of_blocks {
            true => command.replaying.arguments(),
            false => command.cpu.as_ref().and_then(crate::cpu::argument).into_iter().collect(),
        });
        Ok(outcome)
    }
}
