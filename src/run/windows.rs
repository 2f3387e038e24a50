//! Splits a run into windows of equal host writes, or of equal times; their number is bounded.

use super::accounts::Stored;
use super::window_latency::{ClosedLatencies, OpenLatencies};
use crate::label::Cause;
use crate::report::{CauseOverTime, InFlight, Window};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::{BTreeMap, BTreeSet};

/// The state at the end of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Blocks written by the host.
    pub written_blocks: u64,
    /// Bytes programmed by the flash.
    pub programmed_bytes: u64,
    /// The time.
    pub at: Time,
}

/// The counts of the host at the end of a window, from the start of the count.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Blocks written.
    pub written_blocks: u64,
    /// Blocks read.
    pub read_blocks: u64,
}

/// The rest of a window: what [`Mark`] does not have.
#[derive(Debug)]
struct Detail {
    /// Blocks read by the host, from the start of the count.
    read_blocks: u64,
    /// Bytes stored by cause and origin, from the start of the count.
    stored: BTreeMap<(Cause, Cause), u64>,
    free_blocks: Option<u64>,
    /// The latencies of the window, by class.
    latencies: Vec<ClosedLatencies>,
    queue: Queue,
}

/// The requests in flight whenever one is issued.
#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    issued: u64,
    sum: u64,
    most: u64,
}

impl Queue {
    fn merge(&mut self, other: &Queue) {
        self.issued += other.issued;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }

    fn report(&self) -> Option<InFlight> {
        (self.issued > 0).then(|| InFlight { mean: self.sum as f64 / self.issued as f64, max: self.most })
    }
}

/// The length of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Length {
    /// In blocks written by the host.
    Blocks(u64),
    /// In nanoseconds.
    Time(u64),
}

/// The marks of a run. At [`Windows::MOST`] marks, or [`Windows::MOST_BY_TIME`], every second is dropped and windows become
/// twice as long.
#[derive(Debug)]
pub struct Windows {
    length: Length,
    marks: Vec<Mark>,
    /// One for each mark.
    details: Vec<Detail>,
    next: u64,
    /// Bytes stored at the start of the count.
    before: BTreeMap<(Cause, Cause), u64>,
    classes: &'static [&'static str],
    /// The latencies of the open window, by class.
    open: Vec<OpenLatencies>,
    queue: Queue,
    /// The end of the open window, if it ends by the time.
    end: Time,
    /// The length by time that was asked for, in nanoseconds.
    asked_ns: u64,
}

/// The windows of a run, for a report.
#[derive(Debug, Default)]
pub struct WindowsReport {
    /// Seconds of each window but the last; `None` if they are of equal host writes.
    pub seconds: Option<f64>,
    /// The windows.
    pub windows: Vec<Window>,
    /// The write amplification of each window by cause and origin.
    pub causes: Vec<CauseOverTime>,
}

impl WindowsReport {
    /// Leaves out all times.
    pub fn forget_times(&mut self) {
        for window in &mut self.windows {
            (window.seconds_simulated, window.throughput_mib_s) = (None, None);
            window.latency_ns.clear();
        }
    }
}

impl Windows {
    const MOST: usize = 1024;
    /// A week of minutes is 10,080.
    const MOST_BY_TIME: usize = 1 << 16;
    const FIRST_BLOCKS: u64 = 64;

    /// No windows, for requests of these classes; `before` is what was stored at the start of the count.
    pub fn new(classes: &'static [&'static str], before: &Stored) -> Windows {
        Windows {
            length: Length::Blocks(Self::FIRST_BLOCKS),
            marks: Vec::new(),
            details: Vec::new(),
            next: Self::FIRST_BLOCKS,
            before: before.by_cause_and_origin(),
            classes,
            open: vec![OpenLatencies::new(); classes.len()],
            queue: Queue::default(),
            end: Time(u64::MAX),
            asked_ns: 0,
        }
    }

    /// No windows, each of `window_ns` nanoseconds from `start` on: nobody asks for the blocks that end them.
    pub fn by_time(classes: &'static [&'static str], before: &Stored, start: Time, window_ns: u64) -> Windows {
        assert!(window_ns > 0, "a window has an end");
        Windows {
            length: Length::Time(window_ns),
            next: u64::MAX,
            end: start + window_ns,
            asked_ns: window_ns,
            ..Windows::new(classes, before)
        }
    }

    /// The time that ends the open window.
    pub fn end(&self) -> Time {
        self.end
    }

    /// The warning that there were too many windows, if there were.
    pub fn joined_warning(&self) -> Option<String> {
        let Length::Time(span_ns) = self.length else { return None };
        (span_ns > self.asked_ns).then(|| {
            format!(
                "there are more than {} windows of {} s: they are joined to windows of {} s",
                Self::MOST_BY_TIME,
                self.asked_ns as f64 / 1e9,
                span_ns as f64 / 1e9
            )
        })
    }

    /// Counts the requests in flight when one is issued, with that one.
    pub fn record_queue(&mut self, in_flight: u64) {
        self.queue.merge(&Queue { issued: 1, sum: in_flight, most: in_flight });
    }

    /// The number of written blocks that ends the open window.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Counts a request of the open window; `class` is an index of the classes.
    #[inline]
    pub fn record(&mut self, class: usize, latency_ns: u64) {
        self.open[class].record(latency_ns);
    }

    /// Ends the window that is open.
    pub fn mark(&mut self, asked: Asked, stored: &Stored, at: Time) {
        let stored_then = stored.by_cause_and_origin();
        let since = |cause: &(Cause, Cause)| stored_then[cause] - self.before.get(cause).copied().unwrap_or(0);
        let since: BTreeMap<_, _> = stored_then.keys().map(|cause| (*cause, since(cause))).collect();
        let written_blocks = asked.written_blocks;
        let mark = Mark { written_blocks, programmed_bytes: since.values().sum(), at };
        debug_assert!(
            self.marks.last().is_none_or(|last| last.written_blocks <= mark.written_blocks
                && last.programmed_bytes <= mark.programmed_bytes
                && last.at <= mark.at),
            "{mark:?} is after all others"
        );
        self.marks.push(mark);
        self.details.push(Detail {
            read_blocks: asked.read_blocks,
            stored: since,
            free_blocks: stored.free_blocks,
            latencies: self.open.iter_mut().map(OpenLatencies::take).collect(),
            queue: std::mem::take(&mut self.queue),
        });
        let most = if let Length::Time(_) = self.length { Self::MOST_BY_TIME } else { Self::MOST };
        if self.marks.len() == most {
            self.halve();
        }
        match self.length {
            Length::Blocks(blocks) => self.next = written_blocks + blocks,
            Length::Time(span_ns) => self.end = at + span_ns,
        }
    }

    /// Joins each two windows.
    fn halve(&mut self) {
        self.marks = self.marks.chunks_exact(2).map(|pair| pair[1]).collect();
        let mut joined = Vec::with_capacity(self.details.len());
        let mut details = std::mem::take(&mut self.details).into_iter();
        while let (Some(first), Some(mut second)) = (details.next(), details.next()) {
            second.latencies.iter_mut().zip(&first.latencies).for_each(|(second, first)| second.merge(first));
            second.queue.merge(&first.queue);
            joined.push(second);
        }
        self.details = joined;
        self.length = match self.length {
            Length::Blocks(blocks) => Length::Blocks(2 * blocks),
            Length::Time(span_ns) => Length::Time(2 * span_ns),
        };
    }

    /// The marks so far.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The windows, for a report. `start` is the start of the count.
    pub fn report(&self, start: Time, timed: bool) -> WindowsReport {
        let mut before = Mark { written_blocks: 0, programmed_bytes: 0, at: start };
        let (mut read_before, mut windows) = (0, Vec::with_capacity(self.marks.len()));
        for (mark, detail) in self.marks.iter().zip(&self.details) {
            let written = (mark.written_blocks - before.written_blocks) * BLOCK_BYTES;
            let read = (detail.read_blocks - read_before) * BLOCK_BYTES;
            let seconds = mark.at.since_ns(before.at) as f64 / 1e9;
            let classes = self.classes.iter().zip(&detail.latencies).filter(|_| timed);
            let stored = mark.programmed_bytes - before.programmed_bytes;
            windows.push(Window {
                written_blocks: mark.written_blocks,
                seconds_simulated: timed.then(|| mark.at.since_ns(start) as f64 / 1e9),
                write_amplification: ratio(stored, written),
                stored_blocks: stored as f64 / BLOCK_BYTES as f64,
                throughput_mib_s: (timed && seconds > 0.0)
                    .then(|| (written + read) as f64 / (1 << 20) as f64 / seconds),
                free_blocks: detail.free_blocks,
                in_flight: detail.queue.report(),
                latency_ns: classes.filter_map(|(class, latency)| Some((*class, latency.report()?))).collect(),
            });
            (before, read_before) = (*mark, detail.read_blocks);
        }
        let seconds = match self.length {
            Length::Blocks(_) => None,
            Length::Time(span_ns) => Some(span_ns as f64 / 1e9),
        };
        WindowsReport { seconds, windows, causes: self.causes() }
    }

    fn causes(&self) -> Vec<CauseOverTime> {
        let all: BTreeSet<(Cause, Cause)> =
            self.details.iter().flat_map(|detail| detail.stored.keys().copied()).collect();
        let over_time = all.into_iter().map(|(cause, origin)| {
            let (mut before, mut written_before) = (0, 0);
            let (mut write_amplification, mut blocks) = (Vec::new(), Vec::new());
            for (mark, detail) in self.marks.iter().zip(&self.details) {
                let now = detail.stored.get(&(cause, origin)).copied().unwrap_or(0);
                let written = (mark.written_blocks - written_before) * BLOCK_BYTES;
                write_amplification.push(ratio(now - before, written));
                blocks.push((now - before) as f64 / BLOCK_BYTES as f64);
                (before, written_before) = (now, mark.written_blocks);
            }
            CauseOverTime {
                cause: cause.name().to_string(),
                origin: origin.name().to_string(),
                write_amplification,
                blocks,
            }
        });
        // What was stored before the count alone is in none of its windows.
        over_time.filter(|cause| cause.blocks.iter().any(|blocks| *blocks > 0.0)).collect()
    }
}

/// Bytes stored over bytes written; `None` if nothing was written.
fn ratio(stored: u64, written: u64) -> Option<f64> {
    (written > 0).then(|| stored as f64 / written as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{Content, Label, Tally};

    const CLASSES: &[&str] = &["read", "write"];

    /// A host that reads half of what it writes, and a drive that copies a page for each third of them.
    fn stored(written: u64) -> Stored {
        let mut tally = Tally::default();
        tally.add(Label::host(Content::Data), 7 + written);
        tally.add(Label { cause: Cause::GarbageCollection, ..Label::host(Content::Data) }, written / 3);
        Stored { tally, unit_bytes: BLOCK_BYTES, free_blocks: Some(100 - written / 10_000) }
    }

    #[test]
    fn windows_of_a_long_run_are_joined_and_keep_all_that_happened() {
        let mut windows = Windows::new(CLASSES, &stored(0));
        for written in 1..=500_000u64 {
            windows.record(1, written);
            if written.is_multiple_of(2) {
                windows.record(0, 5);
            }
            if written >= windows.next() {
                let asked = Asked { written_blocks: written, read_blocks: written / 2 };
                windows.mark(asked, &stored(written), Time(written * 1000));
            }
        }
        let WindowsReport { windows, causes, .. } = windows.report(Time::ZERO, true);
        assert!((Windows::MOST / 2..Windows::MOST).contains(&windows.len()), "{}", windows.len());
        let last = windows.last().unwrap();
        let counted: u64 = windows.iter().map(|window| window.latency_ns["write"].count).sum();
        assert_eq!(counted, last.written_blocks);
        assert_eq!(last.free_blocks, Some(100 - last.written_blocks / 10_000));
        let mut begin = 0;
        for (place, window) in windows.iter().enumerate() {
            let latency = &window.latency_ns["write"];
            assert_eq!(latency.max, window.written_blocks, "the last of the window");
            assert!(latency.p50 >= begin && latency.p50 <= latency.p99 && latency.p99 <= latency.max);
            // A block each microsecond, and half a block read beside.
            let mib_s = 1.5 * BLOCK_BYTES as f64 / (1 << 20) as f64 * 1e6;
            assert!((window.throughput_mib_s.unwrap() / mib_s - 1.0).abs() < 0.01, "{window:?}");
            let sum: f64 = causes.iter().map(|cause| cause.write_amplification[place].unwrap()).sum();
            assert!((sum - window.write_amplification.unwrap()).abs() < 1e-9, "{sum} and {window:?}");
            begin = window.written_blocks;
        }
        let names: Vec<(&str, &str)> = causes.iter().map(|cause| (&*cause.cause, &*cause.origin)).collect();
        assert_eq!(names, [("host-write", "host-write"), ("garbage-collection", "host-write")]);
        assert_eq!(causes[0].write_amplification[3], Some(1.0), "what was stored before the count is in no window");
    }

    #[test]
    fn a_run_without_a_timing_model_has_windows_without_times() {
        let mut windows = Windows::new(CLASSES, &stored(0));
        windows.mark(Asked { written_blocks: 64, read_blocks: 0 }, &stored(64), Time::ZERO);
        let window = &windows.report(Time::ZERO, false).windows[0];
        assert_eq!((window.seconds_simulated, window.throughput_mib_s), (None, None));
        assert!(window.latency_ns.is_empty());
    }

    #[test]
    fn windows_by_time_have_their_ends_and_those_without_writes_no_amplification() {
        let mut windows = Windows::by_time(CLASSES, &stored(0), Time(500), 1_000);
        let mut written = 0;
        for second in 0..(Windows::MOST_BY_TIME as u64 + 10) {
            assert_eq!(windows.next(), u64::MAX);
            let end = windows.end();
            // Nothing is written in each fourth window.
            written += if second % 4 == 3 { 0 } else { 2 };
            windows.record_queue(second % 4 + 1);
            let asked = Asked { written_blocks: written, read_blocks: 0 };
            windows.mark(asked, &stored(written), end);
        }
        let report = windows.report(Time(500), true);
        // Joined once, and twice as long.
        assert_eq!((report.seconds, report.windows.len()), (Some(2e-6), Windows::MOST_BY_TIME / 2 + 10));
        let ends: Vec<f64> = report.windows.iter().map(|window| window.seconds_simulated.unwrap() * 1e9).collect();
        assert!(ends.iter().zip(1..).all(|(end, number)| (end - 2000.0 * f64::from(number)).abs() < 1e-3));
        let queue = report.windows[0].in_flight.unwrap();
        assert_eq!((queue.mean, queue.max), (1.5, 2));
        let last = &report.windows[report.windows.len() - 1];
        let is_idle = last.stored_blocks == 0.0;
        assert_eq!(last.write_amplification.is_none(), is_idle);
        let all: f64 = report.windows.iter().map(|window| window.stored_blocks).sum();
        let by_cause: f64 = report.causes.iter().flat_map(|cause| &cause.blocks).sum();
        assert!((all - by_cause).abs() < 1e-6 && all > written as f64);
    }
}
