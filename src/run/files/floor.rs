//! A stage: all lanes go through it at once, each in a thread of its own.

use super::FileRun;
use super::lane::LaneRun;
use crate::fs::FileSystem;
use crate::run::engine::Progress;
use crate::run::error::{RunError, RunFault};
use crate::task::Task;
use crate::time::Time;
use crate::workload::files::{FileOperation, Stage};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// How often `watch` is called at most, in nanoseconds.
const WATCH_EVERY_NS: u64 = 50_000_000;

/// What all lanes share.
pub(super) struct Floor<'a, F> {
    pub(super) files: &'a F,
    pub(super) seed: u64,
    pub(super) run: &'a FileRun<'a>,
    stop: AtomicBool,
    /// Operations of all lanes.
    done: AtomicU64,
    failure: Mutex<Option<RunError>>,
}

/// Who is told how far a run is, and may end it.
pub(super) struct Watch<'a> {
    watch: &'a mut dyn FnMut(&Progress) -> bool,
    /// When it was called last, in nanoseconds; 0 if it was not.
    called_ns: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn new(watch: &'a mut dyn FnMut(&Progress) -> bool) -> Watch<'a> {
        Watch { watch, called_ns: 0 }
    }

    /// The next stage is told of at once.
    fn begin(&mut self) {
        self.called_ns = 0;
    }
}

impl<'a, F: FileSystem> Floor<'a, F> {
    pub(super) fn new(files: &'a F, seed: u64, run: &'a FileRun<'a>) -> Floor<'a, F> {
        Floor { files, seed, run, stop: AtomicBool::new(false), done: AtomicU64::new(0), failure: Mutex::default() }
    }

    pub(super) fn into_failure(self) -> Option<RunError> {
        self.failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Calls `watch` if it is time to.
    pub(super) fn ask(&self, watch: &mut Watch<'_>, progress: &Progress) {
        let now = (self.run.clock)();
        if now.saturating_sub(watch.called_ns) >= WATCH_EVERY_NS || watch.called_ns == 0 {
            watch.called_ns = now.max(1);
            if !(watch.watch)(progress) {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// A task whose work begins now.
    pub(super) fn task(&self) -> Task<'static> {
        Task::at(Time((self.run.clock)()))
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the first failure, and stops all lanes.
    pub(super) fn fail(&self, error: RunError) {
        self.stop.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }

    /// The first lane runs on the calling thread, which asks `watch` between its operations, and while it waits for the
    /// others.
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
                    self.run_lane(number, stage, lane, &mut |_| {});
                    drop(guard);
                };
                // A thread that cannot be had takes its guard with it.
                if let Err(source) = Builder::new().spawn_scoped(scope, work) {
                    self.fail(RunFault::Thread { number: place + 2, source }.into());
                }
            }
            self.run_lane(number, stage, first, &mut ask);
            while running.count.load(Ordering::Acquire) > 0 {
                std::thread::park_timeout(Duration::from_nanos(WATCH_EVERY_NS));
                ask(None);
            }
        });
    }

    /// The lanes take turns, a step each, until all are at the end of the stage.
    pub(super) fn run_stage_in_turn(
        &self,
        number: usize,
        stage: Stage,
        lanes: &mut [LaneRun<F>],
        watch: &mut Watch<'_>,
    ) {
        let done_before = self.done.load(Ordering::Relaxed);
        watch.begin();
        let mut going: Vec<&mut LaneRun<F>> = lanes.iter_mut().collect();
        while !going.is_empty() && !self.stops() {
            going.retain_mut(|lane| !self.stops() && self.step(number, stage, lane));
            let requests = self.done.load(Ordering::Relaxed) - done_before;
            let share = going.first().and_then(|lane| lane.lane.progress(number));
            self.ask(watch, &Progress { phase: stage.name, requests, share });
        }
    }

    /// Runs a lane to the end of the stage, of its limit, or of the run.
    fn run_lane(&self, number: usize, stage: Stage, lane: &mut LaneRun<F>, ask: &mut dyn FnMut(Option<f64>)) {
        while !self.stops() && self.step(number, stage, lane) {
            ask(lane.lane.progress(number));
        }
    }

    /// Does what a lane asks for next, and says whether it goes on.
    fn step(&self, number: usize, stage: Stage, lane: &mut LaneRun<F>) -> bool {
        let mut operations = std::mem::take(&mut lane.operations);
        operations.clear();
        let goes_on = match lane.lane.step(number, &mut operations) {
            Ok(true) => self.apply_all(stage, lane, &operations),
            Ok(false) => false,
            Err(error) => {
                self.fail(error.into());
                false
            }
        };
        if goes_on {
            self.done.fetch_add(operations.len() as u64, Ordering::Relaxed);
        }
        lane.operations = operations;
        goes_on
    }

    /// Answers whether the lane goes on.
    fn apply_all(&self, stage: Stage, lane: &mut LaneRun<F>, operations: &[FileOperation]) -> bool {
        let task = self.task();
        for operation in operations {
            if self.stops() || stage.counted && lane.left == Some(0) {
                return false;
            }
            match self.apply(&task, lane, operation) {
                Ok(latency_ns) if stage.counted => {
                    lane.tally.count(operation, latency_ns);
                    lane.left = lane.left.map(|left| left - 1);
                }
                Ok(_) => {}
                Err(error) => {
                    self.fail(error);
                    return false;
                }
            }
            lane.requests += 1;
        }
        true
    }
}

/// Counts threads, and wakes the one that waits for them when one of them ends, in whatever way.
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
