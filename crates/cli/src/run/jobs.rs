//! The jobs of a command: what its arguments ask of the library.

use super::on_kernel::{self, ThisMachine};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::run::Run;
use crate::workload::Source;
use flashpath::run::{
    BlockWork, FileShape, Job, Logging, Outcome, Part, Path, Place, ProgramWork, Replay, RunError, RunOptions, Work,
    run,
};
use flashpath::workload::files::file_workload;
use flashpath::workload::files::recorded::{RecordedCalls, Replays};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The runs of a command: they share the terminal and the interrupt.
pub struct Runner<'a> {
    pub command: &'a Run,
    pub source: Source,
    pub log: Option<Logging>,
    pub stop: &'a AtomicBool,
    pub bars: Bars,
    pub machine: ThisMachine,
}

impl Runner<'_> {
    /// Checks every job before the first is run, which may take hours.
    pub fn check(&self, places: &[Place<'_>]) -> Result<(), Failure> {
        places.iter().try_for_each(|place| Ok(self.job(*place)?.check()?))
    }

    /// Runs the workload in each place; returns the outcomes in their order.
    pub fn run(&self, places: &[Place<'_>]) -> Result<Vec<Outcome>, Failure> {
        let is_real = |place: &Place<'_>| match place {
            Place::Path(path) => path.kernel().is_some(),
            Place::Directory(_) | Place::InProcess(_) => true,
        };
        let outcomes: Result<Vec<Outcome>, RunError> = match places.iter().any(is_real) {
            // Runs in real time share the machine: one after the other.
            true => places.iter().map(|place| self.run_one(*place)).collect(),
            false => self.run_all(places),
        };
        Ok(outcomes?)
    }

    /// Runs in parallel on all processors.
    fn run_all(&self, places: &[Place<'_>]) -> Result<Vec<Outcome>, RunError> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(places.len());
        let next = AtomicUsize::new(0);
        let outcomes: Vec<Mutex<Option<Result<Outcome, RunError>>>> = places.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(place) = places.get(number) else { break };
                        *outcomes[number].lock().expect("no run panics") = Some(self.run_one(*place));
                    }
                });
            }
        });
        outcomes
            .into_iter()
            .map(|outcome| outcome.into_inner().expect("no run panics").expect("every path was run"))
            .collect()
    }

    fn run_one(&self, place: Place<'_>) -> Result<Outcome, RunError> {
        let job = self.job(place)?;
        let mut bar = self.bars.add(&match place {
            Place::Path(path) | Place::InProcess(path) => path.text.clone(),
            Place::Directory(directory) => directory.display().to_string(),
        });
        let outcome = run(job, &self.machine, &mut |progress| {
            bar.show(progress);
            !self.stop.load(Ordering::Relaxed)
        });
        bar.finish();
        outcome
    }

    /// The command's job in this place.
    fn job<'a>(&'a self, place: Place<'a>) -> Result<Job<'a>, RunError> {
        let work = self.work(place)?;
        let log = self.log.as_ref().map(Logging::for_run);
        let options = RunOptions { log, ..self.command.options(&work) };
        Ok(Job { work, place, seed: self.command.seed, options })
    }

    fn work<'a>(&'a self, place: Place<'a>) -> Result<Work<'a>, RunError> {
        let Runner { command, source, stop, .. } = self;
        let (seed, name) = (command.seed, command.name());
        let is_on_kernel = matches!(place, Place::Path(path) if path.kernel().is_some());
        Ok(match source {
            Source::Files(term) => {
                let mut workload = file_workload(term, seed)?;
                // The user's own text, so that the command to repeat the run is right.
                workload.name = name;
                Work::Files(workload)
            }
            Source::Recording(file) => {
                let counted = command.replaying.repeat.unwrap_or(1);
                let replays = Replays { uncounted: 0, counted: u32::try_from(counted).unwrap_or(u32::MAX) };
                let mut workload = RecordedCalls::open(file)?.workload(seed, replays)?;
                workload.name = name;
                Work::Files(workload)
            }
            Source::Shell(text) => Work::Program(ProgramWork {
                name: "a command".to_string(),
                run: Box::new(move |mount| on_kernel::shell(&command.name(), text, mount, stop)),
            }),
            Source::FioJob(job) if is_on_kernel => Work::Program(ProgramWork {
                name: format!("fio, which runs {}", job.display()),
                run: Box::new(move |mount| on_kernel::fio(&command.name(), job, mount, stop)),
            }),
            _ => Work::Blocks(BlockWork {
                name,
                has_times: source.has_times(),
                open: Box::new(move |bytes| source.open(&command.replaying, bytes, seed)),
            }),
        })
    }
}

impl Run {
    /// The options of a job that does this work.
    fn options(&self, work: &Work<'_>) -> RunOptions {
        let replay = match (self.timed, self.depth) {
            (Some(scale), _) => Some(Replay::Open { scale }),
            (None, depth) => depth.map(|depth| Replay::Closed { depth }),
        };
        RunOptions {
            replay,
            limit: self.limit,
            fill: self.fill.unwrap_or_default(),
            precondition: self.precondition,
            verify: self.verify,
            age: self.age.clone(),
            file: FileShape { bytes: self.size, utilization: self.utilization, fsync_every: self.fsync_every },
            part: self.only.unwrap_or(Part::Whole),
            cpu: self.cpu.clone(),
            dummy_bytes: 0,
            max_request_bytes: self.max_request,
            log: None,
            window_ns: self.window,
            rate_per_day: self.rate,
            arguments: match work {
                Work::Blocks(_) => self.replaying.arguments(),
                Work::Files(_) => self.cpu.as_ref().and_then(flashpath_sweep::cpu_argument).into_iter().collect(),
                Work::Program(_) => Vec::new(),
            },
        }
    }

    /// The workload's name in results and messages, as the user wrote it.
    pub fn name(&self) -> String {
        self.workload.to_string_lossy().into_owned()
    }

    /// The place of each run.
    pub fn places<'a>(&'a self, paths: &'a [Path]) -> Vec<Place<'a>> {
        match &self.directory {
            Some(directory) => vec![Place::Directory(directory)],
            None if self.in_process => paths.iter().map(Place::InProcess).collect(),
            None => paths.iter().map(Place::Path).collect(),
        }
    }
}
