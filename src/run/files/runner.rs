//! Runs a stage: all lanes at once, each in a thread of its own.

use super::lane::LaneRun;
use super::over_time::OverTime;
use super::tally::log_row;
use super::{FileRun, Threads};
use crate::fs::FileSystem;
use crate::run::engine::Progress;
use crate::run::error::{RunError, RunFault};
use crate::run::threads::ThreadsFault;
use crate::run::windows::WindowsReport;
use crate::task::{Alone, Task};
use crate::time::Time;
use crate::workload::files::{FileOperation, Stage};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The least time between two calls of `watch`, in nanoseconds.
const WATCH_EVERY_NS: u64 = 50_000_000;

/// The number of steps of lanes between two calls where time is simulated.
const WATCH_EVERY_STEPS: u64 = 64;

/// A run of a workload: the state that all lanes share.
pub(super) struct Runner<'a, F> {
    pub(super) files: &'a F,
    pub(super) seed: u64,
    pub(super) run: &'a FileRun<'a>,
    over_time: Option<OverTime<'a>>,
    stop: AtomicBool,
    /// Operations of all lanes.
    done: AtomicU64,
    failure: Mutex<Option<Failed>>,
    /// The instant of simulated time that all lanes have reached.
    reached: AtomicU64,
    /// The beginning of the count.
    counted_from: AtomicU64,
}

/// The first failure of a run.
pub(super) struct Failed {
    pub(super) error: RunError,
    /// The thread that failed, from 1; `None` if it was none of them.
    pub(super) thread: Option<u32>,
}

/// The watcher of a run, which may end it.
pub(super) struct Watch<'a> {
    watch: &'a mut dyn FnMut(&Progress) -> bool,
    /// When it was called last, in nanoseconds; 0 if it was not.
    called_ns: u64,
    /// The number of checks for a due call.
    asked: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn new(watch: &'a mut dyn FnMut(&Progress) -> bool) -> Watch<'a> {
        Watch { watch, called_ns: 0, asked: 0 }
    }

    /// Makes the next call due at once.
    pub(super) fn begin(&mut self) {
        (self.called_ns, self.asked) = (0, 0);
    }
}

impl<'a, F: FileSystem> Runner<'a, F> {
    pub(super) fn new(files: &'a F, seed: u64, run: &'a FileRun<'a>) -> Runner<'a, F> {
        let begin = if let Threads::Simulated { begin, .. } = run.threads { begin } else { Time::ZERO };
        let (stop, done, reached) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(begin.0));
        let over_time = run.stored.map(OverTime::new);
        Runner {
            files,
            seed,
            run,
            over_time,
            stop,
            done,
            failure: Mutex::default(),
            reached,
            counted_from: AtomicU64::new(begin.0),
        }
    }

    pub(super) fn into_failure(self) -> Option<Failed> {
        self.failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Calls `watch` if a call is due: by the clock, or in simulated time, which says nothing of real time, by steps.
    pub(super) fn ask(&self, watch: &mut Watch<'_>, progress: &Progress) {
        let is_due = match self.run.threads {
            Threads::System(clock) => {
                let now = clock();
                let is_due = watch.called_ns == 0 || now.saturating_sub(watch.called_ns) >= WATCH_EVERY_NS;
                watch.called_ns = if is_due { now.max(1) } else { watch.called_ns };
                is_due
            }
            Threads::Simulated { .. } => {
                watch.asked += 1;
                watch.asked % WATCH_EVERY_STEPS == 1
            }
        };
        if is_due && !(watch.watch)(progress) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// The time between stages, in nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        match self.run.threads {
            Threads::System(clock) => clock(),
            Threads::Simulated { .. } => self.reached.load(Ordering::Relaxed),
        }
    }

    /// The time at which a lane's task is, in nanoseconds.
    pub(super) fn time_of(&self, task: &Task<'_>) -> u64 {
        match self.run.threads {
            Threads::System(clock) => clock(),
            Threads::Simulated { .. } => task.now().0,
        }
    }

    /// Writes the log's row of an operation, if there is a log.
    fn log(&self, lane: &LaneRun<F>, operation: &FileOperation, (began, done): (Time, Time)) -> Result<(), RunError> {
        let Some(log) = self.run.log else { return Ok(()) };
        let begin = Time(self.counted_from.load(Ordering::Relaxed));
        let asker = log.waits().asker();
        log.write(log_row(lane.number, operation), Some((asker, (begin, began, done))))
    }

    /// The count begins now.
    pub(super) fn begin_counting(&self) {
        self.counted_from.store(self.now_ns(), Ordering::Relaxed);
        if let Some(over_time) = &self.over_time {
            over_time.begin(Time(self.now_ns()));
        }
    }

    /// The windows of the run.
    pub(super) fn windows(&self) -> WindowsReport {
        self.over_time.as_ref().map_or_else(WindowsReport::default, OverTime::report)
    }

    /// Acts while no lane runs. Simulated time advances by what `act` takes.
    pub(super) fn alone<T>(&self, act: impl FnOnce(&Task<'_>) -> T) -> T {
        let now = Time(self.now_ns());
        let Threads::Simulated { costs, .. } = self.run.threads else { return act(&Task::at(now)) };
        let task = Task::simulated(now, costs, &Alone);
        let answer = act(&task);
        self.reached.store(task.now().0, Ordering::Relaxed);
        answer
    }

    /// Sets the simulated time: all lanes have ended a stage, the last at `end`.
    pub(super) fn reach(&self, end: Time) {
        self.reached.store(end.0, Ordering::Relaxed);
    }

    /// Fails: simulated threads did not end, and their gates must not be entered. This outranks earlier failures.
    pub(super) fn break_off(&self, fault: ThreadsFault) {
        self.stop.store(true, Ordering::Relaxed);
        *self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) =
            Some(Failed { error: fault.into(), thread: None });
    }

    /// True if simulated threads did not come to their end.
    pub(super) fn has_broken_threads(&self) -> bool {
        let failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        matches!(*failure, Some(Failed { error: RunError::Run(RunFault::Threads(_)), .. }))
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the first failure, and stops all lanes.
    pub(super) fn fail(&self, error: RunError) {
        self.keep(Failed { error, thread: None });
    }

    /// The same, for a failure of one thread.
    pub(super) fn fail_in(&self, lane: &LaneRun<F>, error: RunError) {
        self.keep(Failed { error, thread: Some(lane.number) });
    }

    fn keep(&self, failed: Failed) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(failed);
    }

    /// Runs a stage in threads of the system. The first lane runs on the calling thread, which calls `watch` between its
    /// operations and while it waits for the others.
    pub(super) fn run_stage(&self, number: usize, stage: Stage, lanes: &mut [LaneRun<F>], watch: &mut Watch<'_>) {
        let Some((first, others)) = lanes.split_first_mut() else { return };
        let done_before = self.done.load(Ordering::Relaxed);
        let running = Running { count: AtomicU64::new(0), waiter: std::thread::current() };
        watch.begin();
        let mut ask = |share: Option<f64>| {
            let requests = self.done.load(Ordering::Relaxed) - done_before;
            self.ask(watch, &Progress { phase: stage.name, requests, share });
        };
        std::thread::scope(|scope| {
            for (place, lane) in others.iter_mut().enumerate() {
                let guard = running.enter();
                let work = move || {
                    self.run_lane(&self.task(), number, stage, lane, &mut |_| {});
                    drop(guard);
                };
                // If the thread cannot be started, its guard is dropped.
                if let Err(source) = Builder::new().spawn_scoped(scope, work) {
                    self.fail(RunFault::Thread { number: place + 2, source }.into());
                }
            }
            self.run_lane(&self.task(), number, stage, first, &mut ask);
            while running.count.load(Ordering::Acquire) > 0 {
                std::thread::park_timeout(Duration::from_nanos(WATCH_EVERY_NS));
                ask(None);
            }
        });
    }

    /// A task on a thread of the system, whose clock is that of the run.
    fn task(&self) -> Task<'static> {
        Task::at(Time(self.now_ns()))
    }

    /// The operations that all lanes have done.
    pub(super) fn operations(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Runs a lane to the end of the stage, of its limit, or of the run.
    pub(super) fn run_lane(
        &self,
        task: &Task<'_>,
        number: usize,
        stage: Stage,
        lane: &mut LaneRun<F>,
        ask: &mut dyn FnMut(Option<f64>),
    ) {
        while !self.stops() && self.step(task, number, stage, lane) {
            ask(lane.lane.progress(number));
        }
    }

    /// Does the next operations of a lane. True if the lane goes on.
    fn step(&self, task: &Task<'_>, number: usize, stage: Stage, lane: &mut LaneRun<F>) -> bool {
        let mut operations = std::mem::take(&mut lane.operations);
        operations.clear();
        let goes_on = match lane.lane.step(number, &mut operations) {
            Ok(true) => self.apply_all(task, stage, lane, &operations),
            Ok(false) => false,
            Err(error) => {
                self.fail_in(lane, error.into());
                false
            }
        };
        if goes_on {
            let made = operations.iter().filter(|operation| !matches!(operation, FileOperation::Idle { .. }));
            self.done.fetch_add(made.count() as u64, Ordering::Relaxed);
        }
        lane.operations = operations;
        goes_on
    }

    /// Does these operations. True if the lane goes on.
    fn apply_all(&self, task: &Task<'_>, stage: Stage, lane: &mut LaneRun<F>, operations: &[FileOperation]) -> bool {
        for operation in operations {
            if self.stops() || stage.counted && lane.left == Some(0) {
                return false;
            }
            if let Threads::System(clock) = self.run.threads {
                task.pass_until(Time(clock()));
            }
            if let FileOperation::Idle { .. } = operation {
                if let Err(error) = self.apply(task, lane, operation) {
                    self.fail_in(lane, error);
                    return false;
                }
                continue;
            }
            let began = task.now();
            if let Some(log) = self.run.log {
                log.waits().issue(began);
            }
            match self.apply(task, lane, operation) {
                Ok(latency_ns) if stage.counted => {
                    lane.tally.count(operation, latency_ns);
                    if let Some(over_time) = &self.over_time {
                        over_time.count(operation, latency_ns, task.now());
                    }
                    lane.left = lane.left.map(|left| left - 1);
                    if let Err(error) = self.log(lane, operation, (began, began + latency_ns)) {
                        self.fail_in(lane, error);
                        return false;
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    self.fail_in(lane, error);
                    return false;
                }
            }
            lane.requests += 1;
        }
        true
    }
}

/// Counts running threads, and wakes the thread that waits for them whenever one ends.
struct Running {
    count: AtomicU64,
    waiter: std::thread::Thread,
}

struct Guard<'a>(&'a Running);

impl Running {
    fn enter(&self) -> Guard<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        Guard(self)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Release);
        self.0.waiter.unpark();
    }
}
