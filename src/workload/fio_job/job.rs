//! A running job: the sequence of its operations.

use super::placement::Hints;
use super::ranges::Ranges;
use super::rate::Arrivals;
use super::settings::{DIRECTIONS, JobSettings, Requests};
use super::zones::{Stride, ZoneCursor, ZoneMode, ZonedSpace};
use crate::label::Content;
use crate::random::Random;
use crate::workload::{Action, Operation};

/// One clone of a job, and its progress.
pub(super) struct Job {
    /// The number of its section.
    section: usize,
    requests: Requests,
    start_bytes: u64,
    length_bytes: u64,
    amount_bytes: u64,
    read_share: f64,
    flush_every: [u64; 2],
    hints: Hints,
    /// Draws hints. Apart from `random`, so that they do not shift the requests.
    hint_random: Random,
    queue_depth: u32,
    arrivals: Option<Arrivals>,
    runtime_ns: Option<u64>,
    is_time_based: bool,
    requests_left: u64,
    zones: ZoneMode,
    stride: Stride,
    cursor: Option<ZoneCursor>,
    ranges: Ranges,
    random: Random,
    moved_bytes: u64,
    writes: u64,
    /// Its begin, and the time now, if times are told.
    began_ns: Option<u64>,
    now_ns: Option<u64>,
    /// The write that follows a discard: of a trim-write, or of the zone that is written.
    write_due: Option<Operation>,
    flush_due: bool,
    end_flush_due: bool,
}

impl Job {
    /// Clone number `clone` of section number `section`, in a run with `seed`.
    pub fn new(settings: &JobSettings, section: usize, clone: usize, seed: u64) -> Job {
        let seed = settings.seed.unwrap_or(seed);
        let purpose = format!("fio job {section}.{clone}");
        let portion = settings.portions[clone];
        let length = match settings.zones {
            ZoneMode::Strided { range_bytes, .. } => range_bytes,
            ZoneMode::None | ZoneMode::Zoned(_) => portion.length_bytes,
        };
        let cursor = match settings.zones {
            ZoneMode::Zoned(shape) => {
                Some(ZoneCursor::new(shape, portion.start_bytes, portion.length_bytes, settings.is_random))
            }
            ZoneMode::None | ZoneMode::Strided { .. } => None,
        };
        Job {
            section,
            requests: settings.requests,
            start_bytes: portion.start_bytes,
            length_bytes: portion.length_bytes,
            amount_bytes: portion.amount_bytes,
            read_share: settings.read_share,
            flush_every: settings.flush_every,
            hints: settings.hints.clone(),
            hint_random: Random::new(seed, &format!("{purpose} placement")),
            queue_depth: settings.queue_depth,
            arrivals: settings.rate.map(|rate| Arrivals::new(rate, Random::new(seed, &format!("{purpose} rate")))),
            runtime_ns: settings.runtime_ns,
            is_time_based: settings.is_time_based,
            requests_left: settings.most_requests.unwrap_or(u64::MAX),
            zones: settings.zones,
            stride: Stride::default(),
            cursor,
            ranges: Ranges::new(settings, length, &Random::new(seed, &format!("{purpose} layout"))),
            random: Random::new(seed, &purpose),
            moved_bytes: 0,
            writes: 0,
            began_ns: None,
            now_ns: None,
            write_due: None,
            flush_due: false,
            end_flush_due: settings.flushes_at_end,
        }
    }

    pub fn queue_depth(&self) -> u32 {
        self.queue_depth
    }

    /// The number of its section.
    pub fn section(&self) -> usize {
        self.section
    }

    /// True if its next operation follows the last at once: the first write to a zone that was reset.
    pub fn goes_on(&self) -> bool {
        self.cursor.is_some() && self.write_due.is_some()
    }

    /// The bytes to move in all. A trim-write counts its discards only.
    pub fn amount_bytes(&self) -> u64 {
        self.amount_bytes
    }

    /// The bytes moved so far; of a job that ends by the time, the same share of them as of its time.
    pub fn moved_bytes(&self) -> u64 {
        match (self.is_time_based, self.runtime_ns, self.elapsed_ns()) {
            (true, Some(runtime), Some(elapsed)) => {
                (self.amount_bytes as f64 * (elapsed as f64 / runtime as f64).min(1.0)) as u64
            }
            _ => self.moved_bytes.min(self.amount_bytes),
        }
    }

    fn elapsed_ns(&self) -> Option<u64> {
        Some(self.now_ns?.saturating_sub(self.began_ns?))
    }

    fn is_over(&self) -> bool {
        let is_late = self.runtime_ns.zip(self.elapsed_ns()).is_some_and(|(runtime, elapsed)| elapsed >= runtime);
        let is_moved = self.moved_bytes >= self.amount_bytes && !self.is_time_based;
        is_late || is_moved || self.requests_left == 0
    }

    /// The next operation, issued at `now_ns` if times are told; `None` at the end.
    pub fn next(&mut self, now_ns: Option<u64>, space: Option<&mut ZonedSpace>) -> Option<Operation> {
        self.now_ns = now_ns;
        self.began_ns = self.began_ns.or(now_ns);
        if let Some(write) = self.write_due.take() {
            self.count_write();
            return Some(write);
        }
        if self.is_over() {
            return std::mem::take(&mut self.end_flush_due).then_some(FLUSH);
        }
        // fio flushes before the next request, so not after the last one.
        if std::mem::take(&mut self.flush_due) {
            return Some(FLUSH);
        }
        let action = match self.requests {
            Requests::Only(action) => action,
            Requests::Mixed if self.random.unit() < self.read_share => Action::Read,
            Requests::Mixed => Action::Write,
            Requests::TrimWrite => Action::Discard,
        };
        let comes_ns = self.arrivals.as_mut().map_or(0, |arrivals| arrivals.next(direction_of(action)));
        if self.now_ns.is_some() && self.runtime_ns.is_some_and(|runtime| comes_ns >= runtime) {
            // It would come when the job has ended.
            self.requests_left = 0;
            return std::mem::take(&mut self.end_flush_due).then_some(FLUSH);
        }
        let time_ns = self.began_ns.unwrap_or(0) + comes_ns;
        let operation = Operation { time_ns, ..self.operation(action, space) };
        self.requests_left -= 1;
        if operation.action == Action::Discard && action == Action::Write {
            return Some(operation);
        }
        self.moved_bytes = self.moved_bytes.saturating_add(operation.length_bytes);
        match (action, self.requests) {
            (Action::Write, _) => self.count_write(),
            (_, Requests::TrimWrite) => {
                let stream = self.hints.next(self.writes, &mut self.hint_random);
                self.write_due = Some(Operation { action: Action::Write, stream, ..operation });
            }
            _ => {}
        }
        Some(operation)
    }

    /// The next request. A write to a zone that has to be reset first is that reset, and due after it.
    fn operation(&mut self, action: Action, space: Option<&mut ZonedSpace>) -> Operation {
        let (begin, length) = self.ranges.next(direction_of(action), &mut self.random);
        let stream = match action {
            Action::Write => self.hints.next(self.writes, &mut self.hint_random),
            _ => 0,
        };
        let at =
            |offset_bytes: u64, length_bytes: u64| Operation { offset_bytes, length_bytes, action, stream, ..FLUSH };
        if let (Some(space), Some(cursor)) = (space, &mut self.cursor) {
            let place = space.place(cursor, action, (begin, length));
            let request = at(place.offset_bytes, place.length_bytes);
            if !place.resets {
                return request;
            }
            self.moved_bytes = self.moved_bytes.saturating_add(place.length_bytes);
            self.write_due = Some(request);
            return Operation {
                action: Action::Discard,
                stream: 0,
                ..at(place.offset_bytes, space.shape().zone_bytes)
            };
        }
        let start = self.start_bytes + self.stride.start_bytes;
        if self.stride.advance(self.zones, length, self.length_bytes) {
            self.ranges.restart();
        }
        at(start + begin, length)
    }

    fn count_write(&mut self) {
        self.writes += 1;
        self.flush_due = self.flush_every.iter().any(|every| *every > 0 && self.writes.is_multiple_of(*every));
    }
}

/// The place of an action in fio's lists.
fn direction_of(action: Action) -> usize {
    DIRECTIONS.iter().position(|known| *known == action).unwrap_or_default()
}

const FLUSH: Operation = Operation {
    time_ns: 0,
    offset_bytes: 0,
    length_bytes: 0,
    action: Action::Flush,
    content: Content::Data,
    stream: 0,
    device: 0,
};
