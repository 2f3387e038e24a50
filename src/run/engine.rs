//! The engine that runs a block workload: fill, precondition, and the counted run.

use super::accounts::Written;
use super::backend::{Backend, HostWrite};
use super::error::{InputFault, RunError, RunFault};
use super::fill::Fill;
use super::logging::Logging;
use super::pace::{Flights, Pace};
use super::tenants::Tenants;
use super::windows::{Asked, Windows};
use crate::device::Account;
use crate::device::nand::errors::Age;
use crate::expression::Amount;
use crate::label::Content;
use crate::report::{LatencyHistogram, LogRow};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use crate::workload::{Action, CacheCounts, Clock, Operation, Workload};

/// The number of operations taken from a workload at once.
const BATCH: usize = 256;

/// The size of a large operation, in blocks: few are larger.
const LARGE_BLOCKS: u64 = 256;

/// The number of operations ahead at which the map entry of the first page is prefetched, so that cache misses overlap.
const ENTRIES_AHEAD: usize = 16;

/// The number of operations ahead at which the tables that the entry leads to are prefetched.
const OLD_AHEAD: usize = 8;

/// The classes of requests whose latencies are recorded, and their indices.
const CLASSES: [&str; 2] = ["read", "write"];
const READ: usize = 0;
const WRITE: usize = 1;

/// The most requests in flight at recorded times: a drive that falls behind holds its host back, as the queues of a
/// real one do.
const MOST_IN_FLIGHT: usize = 1 << 16;

/// A path that is done so long after the last request was issued has fallen behind: a second, and this part of the run.
const BEHIND_NS: u64 = 1_000_000_000;
const BEHIND_PART: u64 = 100;

/// More requests in flight than a host has: NVMe drives are used with some queues of up to 1,024.
const MANY_IN_FLIGHT: usize = 8192;

/// The end of all times.
const NEVER: Time = Time(u64::MAX);

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of all randomness, also that of the path and the workload.
    pub seed: u64,
    /// The issue times of requests.
    pub replay: Replay,
    /// The number of requests after which the run ends.
    pub limit: Option<u64>,
    /// The part of the exported space that is written once, in order, before the counted run.
    pub fill: Fill,
    /// The writes of the workload before the counted run.
    pub precondition: Option<Amount>,
    /// True to check that every read returns the newest write, and to read back everything at the end.
    pub verify: bool,
    /// The age of the drive, whose flash has errors.
    pub age: Option<Age>,
    /// The log of the counted requests, if there is one.
    pub log: Option<Logging>,
    /// The length of windows at recorded times, in nanoseconds; `None`: of equal host writes.
    pub window_ns: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        let replay = Replay::Closed { depth: 32 };
        let (limit, precondition, age, log, window_ns) = (None, None, None, None, None);
        Options { seed: 1, replay, limit, fill: Fill::NONE, precondition, verify: false, age, log, window_ns }
    }
}

impl Options {
    /// The options except the seed, as arguments of the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = match self.replay {
            Replay::Closed { depth } => vec![format!("--depth {depth}")],
            Replay::Open { scale } => vec![format!("--timed {scale}")],
            Replay::Tenants => Vec::new(),
        };
        arguments.extend(self.limit.map(|limit| format!("--limit {limit}")));
        arguments.extend(self.fill.argument());
        arguments.extend(self.precondition.map(|amount| format!("--precondition {amount}")));
        arguments.extend(self.verify.then(|| "--verify".to_string()));
        arguments.extend(self.age.as_ref().map(|age| format!("--age {}", age.text)));
        arguments.extend(self.window_ns.map(|window_ns| format!("--window {window_ns}ns")));
        arguments
    }
}

/// The issue times of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Replay {
    /// As soon as fewer than `depth` requests are in flight.
    Closed {
        /// The number of requests in flight.
        depth: u32,
    },
    /// At the recorded times, multiplied by `scale`.
    Open {
        /// 1 as recorded, 0.5 twice as fast.
        scale: f64,
    },
    /// Each tenant of the workload has a queue of its own; on a path without times they take turns.
    Tenants,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The name of the phase.
    pub phase: &'static str,
    /// The number of requests done in the phase.
    pub requests: u64,
    /// The share of the phase that is done, if known.
    pub share: Option<f64>,
}

/// The end of a phase.
struct Goal {
    phase: &'static str,
    /// In requests.
    requests: u64,
    /// In written blocks.
    written_blocks: u64,
}

/// The served requests of the workload.
#[derive(Debug, Default, Clone)]
pub(super) struct Served {
    pub requests: u64,
    pub read_blocks: u64,
    pub written_blocks: u64,
    pub discarded_blocks: u64,
    pub written: Written,
    /// Requests that ended with an error to the host.
    pub failed_requests: u64,
}

/// The requests that were issued later than recorded, since too many were in flight.
#[derive(Debug, Default)]
struct Late {
    requests: u64,
    most_ns: u64,
    /// The end of the last wait for one of those in flight.
    until: Time,
    /// The issue of the last request.
    last: Time,
    most_in_flight: usize,
}

/// A run in progress.
pub(super) struct Run<T: Backend> {
    pub backend: T,
    /// The account at the start of the count.
    pub before: Account,
    pub served: Served,
    /// The counts of the workload's cache, if it has one, at the start of the count.
    pub cache_before: CacheCounts,
    pub windows: Windows,
    /// The windows by recorded times, if they are asked for. Those of equal writes beside them tell the steady state.
    pub over_time: Option<Box<Windows>>,
    log: Option<Logging>,
    /// True from the start of the count on.
    is_counting: bool,
    /// The time of the start of the count.
    pub start: Time,
    pub read_latency: LatencyHistogram,
    pub write_latency: LatencyHistogram,
    /// The latest completion time of a request that is done.
    pub end: Time,
    unit_bits: u32,
    pub exported_bytes: u64,
    pace: Pace,
    late: Late,
    flights: Flights<T::Moment>,
    pub tenants: Option<Box<Tenants>>,
    next_stamp: u32,
    /// The stamp of the newest write of each unit, 0 for none; empty unless reads are verified.
    newest: Vec<u32>,
}

/// Runs `workload` on `backend`. Returns the run up to its end, and false if it was interrupted.
pub(super) fn drive<T: Backend>(
    backend: T,
    workload: &mut dyn Workload,
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> (Run<T>, Result<bool, RunError>) {
    let (exported_bytes, unit_bits) = (backend.exported_bytes(), backend.unit_bytes().trailing_zeros());
    assert!(backend.unit_bytes().is_power_of_two(), "a unit of {} bytes is shifted by", backend.unit_bytes());
    let mut run = Run {
        served: Served::default(),
        cache_before: CacheCounts::default(),
        windows: Windows::new(&CLASSES, &backend.stored()),
        over_time: None,
        log: options.log.clone(),
        is_counting: false,
        start: Time::ZERO,
        read_latency: LatencyHistogram::new(),
        write_latency: LatencyHistogram::new(),
        end: Time::ZERO,
        before: backend.account(),
        unit_bits,
        exported_bytes,
        pace: Pace::closed(1, Time::ZERO),
        late: Late::default(),
        flights: Flights::new(),
        tenants: Tenants::of(workload).map(Box::new),
        next_stamp: 0,
        newest: if options.verify { vec![0; (exported_bytes >> unit_bits) as usize] } else { Vec::new() },
        backend,
    };
    let ended = run.all_phases(workload, options, watch);
    let ended = ended.and_then(|complete| run.end_windows().and_then(|()| run.land_all()).map(|()| complete));
    (run, ended)
}

/// A workload that ends by the time, where none is told.
pub(super) fn needs_an_end(workload: &str, why: &str) -> RunError {
    let what = format!("{workload} ends by the time (time_based): {why}");
    let help = "give an amount, io_size or loops, in place of time_based";
    InputFault::Refused { what, help: Some(help.to_string()) }.into()
}

impl<T: Backend> Run<T> {
    /// Fill, precondition, run, read back. False if it was interrupted.
    fn all_phases(
        &mut self,
        workload: &mut dyn Workload,
        options: &Options,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        if workload.clock() == Clock::Needed && !self.backend.is_timed() {
            return Err(needs_an_end(workload.name(), "the path has no times: remove timing=off"));
        }
        if options.fill.is_some() && !self.fill(options.fill, workload, watch)? {
            return Ok(false);
        }
        self.pace = Pace::closed(Self::depth(options), self.end);
        if let Some(amount) = options.precondition {
            let blocks = amount.bytes(self.exported_bytes).div_ceil(BLOCK_BYTES);
            let goal = Goal { phase: "preconditioning", requests: u64::MAX, written_blocks: blocks };
            if !self.serve_all(workload, options.replay, goal, watch)? {
                return Ok(false);
            }
        }
        self.land_all()?;
        self.backend.rest(options.age.as_ref().map_or(0, Age::rest_ns));
        self.begin_counting(options);
        self.cache_before = workload.cache().unwrap_or_default();
        let requests = options.limit.unwrap_or(u64::MAX);
        let goal = Goal { phase: "running", requests, written_blocks: u64::MAX };
        let complete = self.serve_all(workload, options.replay, goal, watch)?;
        if self.served.requests == 0 && complete {
            let name = workload.name().to_string();
            let spent = options.precondition.is_some_and(|amount| amount.bytes(self.exported_bytes) > 0);
            return Err(if spent { InputFault::Spent(name) } else { InputFault::Empty(name) }.into());
        }
        Ok(complete)
    }

    fn depth(options: &Options) -> usize {
        match options.replay {
            Replay::Closed { depth } => depth as usize,
            Replay::Open { .. } => 1,
            Replay::Tenants => usize::MAX,
        }
    }

    /// Writes a part of the exported space, or of each tenant's, once, in order, with the hints that the workload's own writes have, and makes it
    /// durable.
    fn fill(
        &mut self,
        part: Fill,
        workload: &dyn Workload,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        let ranges = self.filled(part, workload);
        let units: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        self.pace = Pace::closed(256, Time::ZERO);
        let (action, content, length_bytes) = (Action::Write, Content::Data, 1 << self.unit_bits);
        let filling = Operation { time_ns: 0, offset_bytes: 0, length_bytes, action, content, stream: 0, device: 0 };
        for (number, unit) in (0..).zip(ranges.into_iter().flatten()) {
            let share = number as f64 / units as f64;
            let progress = Progress { phase: "filling", requests: number, share: Some(share) };
            if number.is_multiple_of(65536) && !watch(&progress) {
                return Ok(false);
            }
            let offset = unit << self.unit_bits;
            if !self.backend.is_stored(offset) {
                continue;
            }
            let stamp = self.stamp();
            self.record_stamp(unit, stamp);
            let stream = workload.stream_at(offset);
            let write = HostWrite { content: Content::Data, stream, stamp };
            let at = self.issue(0)?;
            let moment = self.backend.issue(at);
            let done = self.backend.write((offset, 1 << self.unit_bits), write, moment)?;
            self.fly(&filling, at, done);
        }
        self.land_all()?;
        // What lies in a cache would be written during the run.
        let end = self.backend.issue(self.end);
        let flushed = self.backend.flush(end)?;
        self.fly(&Operation { action: Action::Flush, ..filling }, self.end, flushed);
        self.land_all()?;
        Ok(true)
    }

    /// The units that are filled, in order: the first part of the exported space, or of the regions of each tenant.
    fn filled(&self, part: Fill, workload: &dyn Workload) -> Vec<std::ops::Range<u64>> {
        let regions = workload.tenants().iter().flat_map(|tenant| tenant.regions.iter().copied());
        let mut regions: Vec<(u64, u64)> = if part == Fill::ALL { Vec::new() } else { regions.collect() };
        if regions.is_empty() {
            regions.push((0, self.exported_bytes));
        }
        regions.sort_unstable();
        let mut filled = 0;
        let range = |(offset, length): (u64, u64)| {
            let first = offset >> self.unit_bits;
            let end = first + part.part_of(length >> self.unit_bits);
            // What two regions share is written once.
            let range = first.max(filled)..end.max(filled);
            filled = range.end;
            range
        };
        regions.into_iter().map(range).collect()
    }

    /// Starts the count: discards the counts so far.
    fn begin_counting(&mut self, options: &Options) {
        self.before = self.backend.account();
        self.start = self.end;
        self.is_counting = true;
        self.late = Late { until: self.late.until, ..Late::default() };
        self.served = Served::default();
        if let Some(tenants) = &mut self.tenants {
            tenants.begin_counting();
        }
        self.windows = Windows::new(&CLASSES, &self.backend.stored());
        self.over_time = options.window_ns.map(|window_ns| {
            let windows = Windows::by_time(&CLASSES, &self.backend.stored(), self.end, window_ns);
            Box::new(windows)
        });
        self.read_latency = LatencyHistogram::new();
        self.write_latency = LatencyHistogram::new();
        self.pace = match options.replay {
            Replay::Closed { depth } => Pace::closed(depth as usize, self.end),
            Replay::Open { scale } => Pace::Open { start: self.end, scale },
            Replay::Tenants => Pace::closed(usize::MAX, self.end),
        };
    }

    /// Serves the workload until it ends or reaches the goal, from one queue or from those of its tenants. False if `watch`
    /// ended it.
    fn serve_all(
        &mut self,
        workload: &mut dyn Workload,
        replay: Replay,
        goal: Goal,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        match replay {
            Replay::Tenants if self.backend.is_timed() => self.serve_tenants(workload, goal, watch),
            _ => self.serve_until(workload, goal, watch),
        }
    }

    /// [`Run::serve_all`], with a queue for each tenant.
    fn serve_tenants(
        &mut self,
        workload: &mut dyn Workload,
        goal: Goal,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        let mut now = self.end;
        while self.served.requests < goal.requests && self.served.written_blocks < goal.written_blocks {
            let is_idle = self.flights.count() == 0;
            let tenants = self.tenants.as_mut().expect("a workload with several queues has tenants");
            tenants.ask(workload, now, is_idle)?;
            let Some((tenant, at)) = tenants.first(now) else {
                if is_idle {
                    break;
                }
                now = now.max(self.land_first()?);
                continue;
            };
            // What is done until then may make room for a request that comes before.
            if at > now && !is_idle {
                if let Some(done) = self.land(at)? {
                    now = now.max(done);
                    continue;
                }
            } else if at > now {
                self.backend.idle(self.end, at)?;
            }
            now = at;
            self.pace = Pace::Closed { depth: usize::MAX, last: now };
            let tenants = self.tenants.as_mut().expect("they are not given up");
            let operation = tenants.take(tenant);
            self.serve(&operation)?;
            if let Some(tenants) = &mut self.tenants {
                tenants.count(&operation);
            }
            if self.served.requests.is_multiple_of(BATCH as u64) {
                let share = match goal.requests {
                    u64::MAX => workload.progress(),
                    limit => Some(self.served.requests as f64 / limit as f64),
                };
                if !watch(&Progress { phase: goal.phase, requests: self.served.requests, share }) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Serves the workload until it ends or reaches the goal. False if `watch` ended it.
    fn serve_until(
        &mut self,
        workload: &mut dyn Workload,
        goal: Goal,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        let mut batch = Vec::with_capacity(BATCH);
        while self.served.requests < goal.requests && self.served.written_blocks < goal.written_blocks {
            batch.clear();
            // Every operation taken is served: near the goal the batches shrink, so that it is hardly exceeded.
            let blocks_left = goal.written_blocks - self.served.written_blocks;
            let wanted = (goal.requests - self.served.requests).min(blocks_left / LARGE_BLOCKS + 1).min(BATCH as u64);
            let hears = workload.clock() != Clock::Unheard && self.backend.is_timed();
            let wanted = if hears { 1 } else { wanted as usize };
            if hears {
                let next = self.wait_for_issue(0)?;
                workload.tell_time(next.0);
            }
            if workload.next_batch(&mut batch, wanted)? == 0 {
                break;
            }
            for coming in batch.iter().take(ENTRIES_AHEAD) {
                self.backend.prefetch(coming.offset_bytes);
            }
            for (index, operation) in batch.iter().enumerate() {
                if let Some(coming) = batch.get(index + ENTRIES_AHEAD) {
                    self.backend.prefetch(coming.offset_bytes);
                }
                if let Some(coming) = batch.get(index + OLD_AHEAD) {
                    self.backend.prefetch_old(coming.offset_bytes);
                }
                self.serve(operation)?;
            }
            if let Some(tenants) = &mut self.tenants {
                batch.iter().for_each(|operation| tenants.count(operation));
            }
            let share = match goal.requests {
                u64::MAX => workload.progress(),
                limit => Some(self.served.requests as f64 / limit as f64),
            };
            if !watch(&Progress { phase: goal.phase, requests: self.served.requests, share }) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn stamp(&mut self) -> u32 {
        // 0 means "never written".
        self.next_stamp = self.next_stamp.wrapping_add(1).max(1);
        self.next_stamp
    }

    #[inline]
    fn record_stamp(&mut self, unit: u64, stamp: u32) {
        if let Some(newest) = self.newest.get_mut(unit as usize) {
            *newest = stamp;
        }
    }

    #[inline]
    fn serve(&mut self, operation: &Operation) -> Result<(), RunError> {
        let &Operation { offset_bytes: offset, length_bytes: length, action, .. } = operation;
        self.served.requests += 1;
        if operation.end_bytes() > self.exported_bytes {
            let (request, end) = (self.served.requests, operation.end_bytes());
            return Err(InputFault::BeyondEnd { request, end, exported: self.exported_bytes }.into());
        }
        let at = self.issue(operation.time_ns)?;
        let moment = self.backend.issue(at);
        let range = (offset, length);
        let blocks = (offset + length).div_ceil(BLOCK_BYTES) - offset / BLOCK_BYTES;
        let done = match action {
            Action::Write => {
                let stamp = self.stamp();
                let units = self.units(range);
                let write = HostWrite { content: operation.content, stream: operation.stream, stamp };
                let done = match self.backend.write(range, write, moment) {
                    Ok(done) => done,
                    Err(error) => return self.fail_write(error, operation, stamp, (at, moment)),
                };
                if !self.newest.is_empty() {
                    units.clone().for_each(|unit| self.record_stamp(unit, stamp));
                }
                let written = &mut self.served.written[operation.content as usize];
                *written = (written.0 + blocks, written.1 + (units.end - units.start));
                self.served.written_blocks += blocks;
                done
            }
            Action::Read => {
                self.served.read_blocks += blocks;
                match self.read(range, moment) {
                    Ok(done) => done,
                    Err(error) => self.fail_read(error, moment)?,
                }
            }
            Action::Discard => {
                self.served.discarded_blocks += blocks;
                let (units, done) = self.backend.discard(range, moment)?;
                units.for_each(|unit| self.record_stamp(unit, 0));
                done
            }
            // A flush waits for the requests in flight, those of its tenant if there are several.
            Action::Flush => {
                let backend = &mut self.backend;
                let mut later = |sum, moment| backend.later(sum, moment);
                let before = match self.tenants {
                    Some(_) => self.flights.moments_of(operation.device).fold(moment, &mut later),
                    None => self.flights.moments().fold(moment, &mut later),
                };
                backend.flush(before)?
            }
        };
        if self.backend.is_timed() {
            self.fly(operation, at, done);
        } else if self.log.is_some() {
            self.log(operation, None)?;
        }
        if self.served.written_blocks >= self.windows.next() {
            self.mark_window();
        }
        Ok(())
    }

    /// A read has failed. If that is an error to the host, it ends when the drive has given it up; else the run has failed.
    #[cold]
    #[inline(never)]
    fn fail_read(&mut self, error: RunError, at: T::Moment) -> Result<T::Moment, RunError> {
        match error.unreadable_unit() {
            Some(_) => {
                self.served.failed_requests += 1;
                Ok(self.backend.failed_read(at))
            }
            None => Err(error),
        }
    }

    /// A write has failed, as [`Run::fail_read`], since a unit that it covers in part could not be read. Those before it are
    /// written, and count.
    #[cold]
    #[inline(never)]
    fn fail_write(
        &mut self,
        error: RunError,
        operation: &Operation,
        stamp: u32,
        (at, moment): (Time, T::Moment),
    ) -> Result<(), RunError> {
        let unit = error.unreadable_unit();
        let done = self.fail_read(error, moment)?;
        let &Operation { offset_bytes: offset, length_bytes: length, content, .. } = operation;
        let units = self.units((offset, length));
        let end = unit.unwrap_or(units.start).clamp(units.start, units.end);
        (units.start..end).for_each(|unit| self.record_stamp(unit, stamp));
        let end_bytes = (end << self.unit_bits).max(offset);
        let blocks = end_bytes.div_ceil(BLOCK_BYTES) - offset / BLOCK_BYTES;
        let blocks = if end == units.start { 0 } else { blocks };
        let written = &mut self.served.written[content as usize];
        *written = (written.0 + blocks, written.1 + (end - units.start));
        self.served.written_blocks += blocks;
        if self.backend.is_timed() {
            self.fly(operation, at, done);
        }
        Ok(())
    }

    /// The request is in flight from `at` until it is done.
    #[inline]
    fn fly(&mut self, operation: &Operation, at: Time, done: T::Moment) {
        if self.backend.is_timed() {
            let number = self.flights.add(*operation, at, done);
            self.backend.watch(number, done);
        }
    }

    /// Waits for the next completion, not after `until`. Returns its time, if there is one.
    #[inline]
    fn land(&mut self, until: Time) -> Result<Option<Time>, RunError> {
        let Some((number, at)) = self.backend.next_done(until) else { return Ok(None) };
        self.end = self.end.max(at);
        let tenant = self.flights.land(number, at);
        if let Some(tenants) = &mut self.tenants {
            tenants.land(tenant);
        }
        while let Some((first, flight, done)) = self.flights.next_landed() {
            let latency = done.since_ns(flight.issued);
            match flight.operation.action {
                Action::Read => {
                    self.read_latency.record(latency);
                    self.record(READ, latency);
                }
                Action::Write => {
                    self.write_latency.record(latency);
                    self.record(WRITE, latency);
                }
                Action::Discard | Action::Flush => {}
            }
            if let Some(tenants) = &mut self.tenants {
                tenants.record(&flight.operation, latency);
            }
            if self.log.is_some() {
                self.log(&flight.operation, Some((first, flight.issued, done)))?;
            }
        }
        Ok(Some(at))
    }

    /// Counts a latency in the open window.
    #[inline]
    fn record(&mut self, class: usize, latency_ns: u64) {
        match &mut self.over_time {
            None => self.windows.record(class, latency_ns),
            Some(windows) => windows.record(class, latency_ns),
        }
    }

    /// Waits for all completions until `at`, at which a request is issued.
    fn land_until(&mut self, at: Time) -> Result<(), RunError> {
        while let Some(end) = self.over_time.as_ref().map(|windows| windows.end()).filter(|end| *end <= at) {
            self.land_before(end, at)?;
            self.mark_over_time(end);
        }
        self.land_before(at, at)?;
        let in_flight = self.flights.count() + 1;
        self.late.most_in_flight = self.late.most_in_flight.max(in_flight);
        self.late.last = at;
        if let Some(windows) = &mut self.over_time {
            windows.record_queue(in_flight as u64);
        }
        Ok(())
    }

    /// Waits for all completions until `until`. From the last of those in flight to the issue at `at` the path is idle.
    fn land_before(&mut self, until: Time, at: Time) -> Result<(), RunError> {
        while self.land(until)?.is_some() {
            if self.flights.count() == 0 && at > self.end {
                self.backend.idle(self.end, at)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn mark_over_time(&mut self, end: Time) {
        let Served { written_blocks, read_blocks, .. } = self.served;
        let stored = self.backend.stored();
        if let Some(windows) = &mut self.over_time {
            windows.mark(Asked { written_blocks, read_blocks }, &stored, end);
        }
    }

    /// Ends the windows by time with all requests in flight: the last one when the last of them is done.
    fn end_windows(&mut self) -> Result<(), RunError> {
        while let Some(end) = self.over_time.as_ref().map(|windows| windows.end()) {
            while self.land(end)?.is_some() {}
            if self.flights.count() == 0 {
                self.mark_over_time(self.end.min(end));
                break;
            }
            self.mark_over_time(end);
        }
        Ok(())
    }

    /// Waits for the first completion of those in flight.
    #[inline]
    fn land_first(&mut self) -> Result<Time, RunError> {
        Ok(self.land(NEVER)?.expect("every request in flight is done at some time"))
    }

    /// Waits for all requests in flight.
    fn land_all(&mut self) -> Result<(), RunError> {
        while self.flights.count() > 0 {
            self.land_first()?;
        }
        Ok(())
    }

    /// Writes the log's row of a request: its number, its issue and its end, if there are times.
    #[cold]
    fn log(&self, operation: &Operation, flight: Option<(u64, Time, Time)>) -> Result<(), RunError> {
        let Some(log) = self.log.as_ref().filter(|_| self.is_counting) else { return Ok(()) };
        let is_flush = operation.action == Action::Flush;
        let row = LogRow {
            thread: if self.tenants.is_some() { operation.device + 1 } else { 1 },
            action: match operation.action {
                Action::Read => CLASSES[READ],
                Action::Write => CLASSES[WRITE],
                Action::Discard => "discard",
                Action::Flush => "flush",
            },
            file: None,
            offset_bytes: (!is_flush).then_some(operation.offset_bytes),
            length_bytes: (!is_flush).then_some(operation.length_bytes),
            content: (operation.action == Action::Write).then(|| operation.content.name()),
            time: None,
        };
        log.write(row, flight.map(|(number, issued, done)| (number as u32, (self.start, issued, done))))
    }

    /// The units that a range touches.
    #[inline]
    fn units(&self, (offset, length): (u64, u64)) -> std::ops::Range<u64> {
        let end = (offset + length + (1 << self.unit_bits) - 1) >> self.unit_bits;
        offset >> self.unit_bits..end
    }

    /// The issue time of the next request. All that happens before has happened, background work too.
    #[inline]
    fn issue(&mut self, stamp_ns: u64) -> Result<Time, RunError> {
        let at = if self.backend.is_timed() { self.wait_for_issue(stamp_ns)? } else { Time::ZERO };
        if let Some(log) = &self.log {
            log.waits().request(self.flights.next_number() as u32, self.flights.oldest().unwrap_or(at));
        }
        self.backend.work(at)?;
        Ok(at)
    }

    #[inline]
    fn wait_for_issue(&mut self, stamp_ns: u64) -> Result<Time, RunError> {
        match self.pace {
            Pace::Closed { depth, last } => {
                if self.flights.count() < depth {
                    return Ok(last);
                }
                let at = self.land_first()?.max(last);
                self.pace = Pace::Closed { depth, last: at };
                Ok(at)
            }
            Pace::Open { start, scale } => {
                let recorded = start + (stamp_ns as f64 * scale) as u64;
                let at = self.wait_for_place(recorded)?;
                self.land_until(at)?;
                Ok(at)
            }
        }
    }

    /// Waits until fewer than the most requests are in flight. Returns when that is, not before `recorded`.
    #[inline]
    fn wait_for_place(&mut self, recorded: Time) -> Result<Time, RunError> {
        while self.flights.count() >= MOST_IN_FLIGHT {
            self.late.until = self.land_first()?;
        }
        let at = recorded.max(self.late.until);
        if at > recorded {
            self.late.requests += 1;
            self.late.most_ns = self.late.most_ns.max(at.since_ns(recorded));
        }
        Ok(at)
    }

    fn read(&mut self, range: (u64, u64), at: T::Moment) -> Result<T::Moment, RunError> {
        let mut wrong = None;
        let newest = &self.newest;
        let done = self.backend.read(range, at, |unit, found| {
            if let Some(&expected) = newest.get(unit as usize) {
                let expected = (expected != 0).then_some(expected);
                if expected != found {
                    wrong = Some(RunFault::WrongData { page: unit, expected, found });
                }
            }
        })?;
        wrong.map_or(Ok(done), |fault| Err(fault.into()))
    }

    #[cold]
    fn mark_window(&mut self) {
        let Served { written_blocks, read_blocks, .. } = self.served;
        self.windows.mark(Asked { written_blocks, read_blocks }, &self.backend.stored(), self.end);
    }

    /// The warnings that the path fell behind the recorded times, and that windows are longer than asked for.
    pub fn late_warnings(&self) -> Vec<String> {
        let Pace::Open { .. } = self.pace else { return Vec::new() };
        let Late { requests, most_ns, last, most_in_flight, .. } = self.late;
        let all = self.served.requests;
        let advice = "replay the trace slower (--timed 2), or as fast as the path allows (--depth)";
        let behind_ns = if self.end > last { self.end.since_ns(last) } else { 0 };
        let allowed_ns = BEHIND_NS.max(last.since_ns(self.start) / BEHIND_PART);
        let warning = if requests > 0 {
            Some(format!(
                "the path does not keep up with the recorded times: {requests} of {all} requests were issued later, by up to {:.3} s, \
                 since {MOST_IN_FLIGHT} were in flight: latencies are those of a queue that grows; {advice}",
                most_ns as f64 / 1e9
            ))
        } else if behind_ns > allowed_ns {
            Some(format!(
                "the path does not keep up with the recorded times: its last request was done {:.3} s after the last one was issued, and \
                 up to {most_in_flight} were in flight: latencies are those of a queue that grows; {advice}",
                behind_ns as f64 / 1e9
            ))
        } else if most_in_flight >= MANY_IN_FLIGHT {
            Some(format!(
                "the path fell behind the recorded times for a while: up to {most_in_flight} requests were in flight, more than a host \
                 would send: the longest latencies are those of this queue; {advice}"
            ))
        } else {
            None
        };
        warning.into_iter().chain(self.over_time.as_ref().and_then(|windows| windows.joined_warning())).collect()
    }

    /// The warning that requests failed, if some did.
    pub fn failed_warning(&self) -> Option<String> {
        let Served { failed_requests, requests, .. } = self.served;
        (failed_requests > 0).then(|| {
            format!(
                "{failed_requests} of {requests} requests ended with an error to the host: they read pages that could not be corrected; \
                 take a stronger ecc, more retries (retry=), or refresh="
            )
        })
    }

    /// Reads every unit, and compares it with the newest write. Not counted.
    pub fn read_back(&mut self) -> Result<(), RunError> {
        let mut at = self.end;
        for unit in 0..self.newest.len() as u64 {
            let moment = self.backend.issue(at);
            let done = match self.read((unit << self.unit_bits, 1 << self.unit_bits), moment) {
                Ok(done) => done,
                // The host knows that it is lost.
                Err(error) if error.unreadable_unit().is_some() => self.backend.failed_read(moment),
                Err(error) => return Err(error),
            };
            if self.backend.is_timed() {
                self.backend.watch(unit, done);
                at = self.backend.next_done(NEVER).map_or(at, |(_, done)| done);
            }
        }
        Ok(())
    }
}
