//! Runs the points of a plan beside each other, within a budget of memory.

use crate::error::SweepError;
use crate::journal::{DoneRun, Journal};
use crate::plan::{Plan, Point};
use crate::traces::Traces;
use flashpath::report::sweep::{SweepRow, row};
use flashpath::run::Progress;
use flashpath::units::human_size;
use serde_json::Value;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The column of the reason why a run failed.
pub const ERROR: &str = "error";

/// The interval of progress reports.
const TICK: Duration = Duration::from_millis(200);
/// The interval at which the journal is made durable.
const SYNC: Duration = Duration::from_secs(2);
/// The resolution of the progress of a run.
const STEPS: f64 = 1e6;

/// The limits of a sweep on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of runs beside each other, at least 1.
    pub jobs: usize,
    /// Bytes of memory for all runs together.
    pub memory_bytes: u64,
}

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepProgress {
    /// All runs.
    pub runs: u64,
    /// Those that are done, with those of earlier sessions.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those under way.
    pub running: u64,
    /// The share of the work that is done, from 0 to 1; a run's work is taken as proportional to its memory.
    pub share: f64,
    /// Seconds until all is done, if they can be told yet.
    pub seconds_left: Option<f64>,
}

/// Checks that each run alone fits the budget.
pub fn check_memory(plan: &Plan, limits: &Limits) -> Result<(), SweepError> {
    let most = (0..plan.runs()).map(|number| plan.point(number)).max_by_key(Point::memory_bytes);
    match most.map(|point| (point.memory_bytes(), point)) {
        Some((bytes, point)) if bytes > limits.memory_bytes => {
            let size = |bytes: u64| human_size(bytes as f64);
            let message = format!(
                "a run takes about {}, and the sweep has {}: {}",
                size(bytes),
                size(limits.memory_bytes),
                point.described()
            );
            Err(SweepError::input(message, "take smaller devices, or give more with --memory"))
        }
        _ => Ok(()),
    }
}

/// The runs that have not begun, and the memory of those under way.
struct Queue {
    waiting: VecDeque<(u64, u64)>,
    used_bytes: u64,
    running: u64,
    /// The workers that have not ended.
    workers: usize,
    /// The first failure of the journal: nothing begins after it.
    failure: Option<SweepError>,
}

struct Shared<'a> {
    plan: &'a Plan,
    traces: &'a Traces,
    limits: Limits,
    stop: &'a AtomicBool,
    queue: Mutex<Queue>,
    changed: Condvar,
    journal: Mutex<&'a mut Journal>,
    /// Work done in this session, and of runs under way, in bytes of memory.
    done_work: AtomicU64,
    /// The part of its run that each worker has done, in [`STEPS`], and the run's work.
    under_way: Vec<(AtomicU64, AtomicU64)>,
    failed: AtomicU64,
}

const UNBROKEN: &str = "no thread panics with this lock";

/// Runs what the journal lacks, and adds it. `show` is called several times a second. Returns early, with what is done in
/// the journal, once `stop` is set.
///
/// Fails if the journal cannot be written.
pub fn run_all(
    plan: &Plan,
    traces: &Traces,
    limits: Limits,
    journal: &mut Journal,
    stop: &AtomicBool,
    show: &mut dyn FnMut(&SweepProgress),
) -> Result<(), SweepError> {
    let runs = plan.runs();
    let waiting: VecDeque<(u64, u64)> = (0..runs)
        .filter(|number| !journal.done().contains_key(number))
        .map(|number| (number, plan.point(number).memory_bytes()))
        .collect();
    let workers = limits.jobs.min(waiting.len());
    let all_work: u64 = waiting.iter().map(|(_, bytes)| *bytes).sum();
    let done_before = runs - waiting.len() as u64;
    let failed_before = journal.done().values().filter(|done| has_failed(&done.row)).count() as u64;
    let shared = Shared {
        plan,
        traces,
        limits,
        stop,
        queue: Mutex::new(Queue { waiting, used_bytes: 0, running: 0, workers, failure: None }),
        changed: Condvar::new(),
        journal: Mutex::new(journal),
        done_work: AtomicU64::new(0),
        under_way: (0..workers).map(|_| Default::default()).collect(),
        failed: AtomicU64::new(failed_before),
    };
    let (began, mut synced) = (Instant::now(), Instant::now());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let shared = &shared;
            scope.spawn(move || shared.work(worker));
        }
        let mut queue = shared.queue.lock().expect(UNBROKEN);
        while queue.workers > 0 {
            let begun = queue.waiting.len() as u64 + queue.running;
            let running = queue.running;
            drop(queue);
            let work = shared.done_work.load(Ordering::Relaxed) as f64 + shared.work_under_way();
            let seconds = began.elapsed().as_secs_f64();
            let left = all_work as f64 - work;
            show(&SweepProgress {
                runs,
                done: runs - begun,
                failed: shared.failed.load(Ordering::Relaxed),
                running,
                share: (done_before as f64 + (runs - done_before) as f64 * work / (all_work as f64).max(1.0))
                    / runs as f64,
                seconds_left: (work > 0.0 && seconds > 1.0).then(|| left.max(0.0) / work * seconds),
            });
            if synced.elapsed() > SYNC {
                let ended = shared.journal.lock().expect(UNBROKEN).sync();
                shared.note(ended);
                synced = Instant::now();
            }
            queue = shared.queue.lock().expect(UNBROKEN);
            if queue.workers > 0 {
                queue = shared.changed.wait_timeout(queue, TICK).expect(UNBROKEN).0;
            }
        }
    });
    let Shared { queue, journal, .. } = shared;
    journal.into_inner().expect(UNBROKEN).sync()?;
    queue.into_inner().expect(UNBROKEN).failure.map_or(Ok(()), Err)
}

/// True if the row is of a run that failed.
pub fn has_failed(row: &SweepRow) -> bool {
    row.get(ERROR).is_some_and(|error| !error.is_null())
}

impl Shared<'_> {
    /// Runs points until none is left.
    fn work(&self, worker: usize) {
        while let Some((number, bytes)) = self.take() {
            let (share, work) = &self.under_way[worker];
            work.store(bytes, Ordering::Relaxed);
            let done = run_point(self.plan.point(number), self.traces, &mut |progress| {
                share.store((progress.share.unwrap_or(0.0) * STEPS) as u64, Ordering::Relaxed);
                !self.stop.load(Ordering::Relaxed)
            });
            share.store(0, Ordering::Relaxed);
            if let Some(done) = done {
                self.failed.fetch_add(u64::from(has_failed(&done.row)), Ordering::Relaxed);
                self.done_work.fetch_add(bytes, Ordering::Relaxed);
                let added = self.journal.lock().expect(UNBROKEN).add(&done);
                self.note(added);
            }
            let mut queue = self.queue.lock().expect(UNBROKEN);
            queue.used_bytes -= bytes;
            queue.running -= 1;
            drop(queue);
            self.changed.notify_all();
        }
        self.queue.lock().expect(UNBROKEN).workers -= 1;
        self.changed.notify_all();
    }

    /// Takes the first run that fits the memory that is left; waits for memory. `None` if none is left, or the sweep ends.
    fn take(&self) -> Option<(u64, u64)> {
        let mut queue = self.queue.lock().expect(UNBROKEN);
        loop {
            if queue.waiting.is_empty() || queue.failure.is_some() || self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let free = self.limits.memory_bytes.saturating_sub(queue.used_bytes);
            // A run that is larger than the budget runs alone: whether it may was asked before.
            let fits = |(_, bytes): &(u64, u64)| *bytes <= free || queue.running == 0;
            if let Some(taken) = queue.waiting.iter().position(fits).and_then(|at| queue.waiting.remove(at)) {
                queue.used_bytes += taken.1;
                queue.running += 1;
                return Some(taken);
            }
            queue = self.changed.wait_timeout(queue, TICK).expect(UNBROKEN).0;
        }
    }

    /// Remembers the first failure of the journal.
    fn note(&self, ended: Result<(), SweepError>) {
        if let Err(error) = ended {
            self.queue.lock().expect(UNBROKEN).failure.get_or_insert(error);
        }
    }

    fn work_under_way(&self) -> f64 {
        let of = |(share, work): &(AtomicU64, AtomicU64)| {
            share.load(Ordering::Relaxed) as f64 / STEPS * work.load(Ordering::Relaxed) as f64
        };
        self.under_way.iter().map(of).sum()
    }
}

/// The payload of a panic by which a part of the caller's, such as a policy, ends its run: the reason. The others go on.
pub struct Abandoned(pub String);

/// Runs a point, and returns its row; `None` if `watch` ended it. A failure of the run is a row, too.
pub fn run_point(point: Point<'_>, traces: &Traces, watch: &mut dyn FnMut(&Progress) -> bool) -> Option<DoneRun> {
    let began = Instant::now();
    // A bug in one run does not end the others.
    let ended = catch_unwind(AssertUnwindSafe(|| point.run(traces, watch)));
    let row = match ended {
        Ok(Ok(outcome)) if outcome.result.interrupted => return None,
        Ok(Ok(outcome)) => match outcome.failure {
            None => with_cells(row(outcome.result), &point),
            Some(error) => failed_row(&point, error.to_string()),
        },
        Ok(Err(error)) => failed_row(&point, error.to_string()),
        Err(payload) => failed_row(
            &point,
            match payload.downcast::<Abandoned>() {
                Ok(abandoned) => abandoned.0,
                Err(_) => "the run panicked: this is a bug of flashpath".to_string(),
            },
        ),
    };
    Some(DoneRun { run: point.number, seconds: began.elapsed().as_secs_f64(), row })
}

/// The row of a run that failed for this reason.
pub fn failed_point(point: Point<'_>, why: String) -> DoneRun {
    DoneRun { run: point.number, seconds: 0.0, row: failed_row(&point, why) }
}

/// The row with the values of the varied options.
fn with_cells(mut row: SweepRow, point: &Point<'_>) -> SweepRow {
    row.entry(ERROR).or_insert(Value::Null);
    row.extend(point.cells().cloned());
    row
}

/// The row of a run that failed: what was asked, and why there is no result.
fn failed_row(point: &Point<'_>, why: String) -> SweepRow {
    let cells = [
        ("path", Value::from(point.path.path.text.as_str())),
        ("path_in_full", Value::from(point.path.path.in_full.as_str())),
        ("workload.name", Value::from(point.work.name())),
        ("seed", Value::from(point.seed)),
        (ERROR, Value::from(why)),
    ];
    with_cells(cells.into_iter().map(|(name, value)| (name.to_string(), value)).collect(), point)
}
