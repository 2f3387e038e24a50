//! The horizontal axis of the charts over a run: what the host wrote, or the recorded time.

use crate::report::chart::Axis;
use crate::report::{RunResult, Window};
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// A horizontal axis, which all runs of a page share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Along {
    /// The writes of the host, in units of so many bytes, by the name of the unit.
    Writes(f64, &'static str),
    /// The time from the start of the count, in units of so many seconds, by the name of the unit.
    Time(f64, &'static str),
}

impl Along {
    /// The axis of these runs; `None` if none has windows.
    pub fn of(results: &[RunResult]) -> Option<Along> {
        let with_windows = || results.iter().filter(|result| !result.windows.is_empty());
        let last = || with_windows().filter_map(|result| result.windows.last());
        let written = last().map(|window| window.written_blocks).max()?;
        if with_windows().all(|result| result.window_seconds.is_some()) {
            let seconds = last().filter_map(|window| window.seconds_simulated).fold(0.0, f64::max);
            let units = [(86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"), (1e-3, "ms")];
            let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= 2.0 * unit).unwrap_or((1e-6, "us"));
            return Some(Along::Time(unit, name));
        }
        let (unit, name) = byte_scale(written as f64 * BLOCK_BYTES as f64);
        Some(Along::Writes(unit, name))
    }

    /// True if it is that of writes.
    pub fn is_by_writes(self) -> bool {
        matches!(self, Along::Writes(..))
    }

    /// The quantity in words.
    pub fn over(self) -> &'static str {
        match self {
            Along::Writes(..) => "the bytes written by the host",
            Along::Time(..) => "time",
        }
    }

    /// The axis, with its unit.
    pub fn axis(self) -> Axis {
        match self {
            Along::Writes(_, unit) => Axis::linear(&format!("written by the host, {unit}")),
            Along::Time(_, unit) => Axis::linear(&format!("recorded time, {unit}")),
        }
    }

    /// The end of the first `count` windows.
    pub fn end(self, windows: &[Window], count: usize) -> f64 {
        let Some(last) = count.checked_sub(1).map(|last| &windows[last]) else { return 0.0 };
        match self {
            Along::Writes(unit, _) => last.written_blocks as f64 * BLOCK_BYTES as f64 / unit,
            Along::Time(unit, _) => last.seconds_simulated.unwrap_or(0.0) / unit,
        }
    }

    /// The middle of some windows, which are not none.
    pub fn middle(self, windows: &[Window], range: &Range<usize>) -> f64 {
        (self.end(windows, range.start) + self.end(windows, range.end)) / 2.0
    }
}

/// Blocks that the host wrote within these windows.
pub fn written(windows: &[Window], range: &Range<usize>) -> u64 {
    let until = |count: usize| count.checked_sub(1).map_or(0, |last| windows[last].written_blocks);
    until(range.end) - until(range.start)
}

/// The largest binary unit that is at most half of `bytes`: its size and name.
fn byte_scale(bytes: f64) -> (f64, &'static str) {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().map(|(shift, name)| ((1u64 << shift) as f64, name));
    fitting.into_iter().find(|(unit, _)| bytes >= 2.0 * unit).unwrap_or((1.0, "bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn windows_by_time_lie_along_the_time() {
        let mut result = sample::page_level("a", 1);
        let Some(Along::Writes(..)) = Along::of(std::slice::from_ref(&result)) else { panic!("by writes") };
        result.window_seconds = Some(40.2);
        let along = Along::of(std::slice::from_ref(&result)).unwrap();
        assert_eq!(along, Along::Time(60.0, "minutes"));
        let middle = along.middle(&result.windows, &(0..1));
        assert!((middle - 40.2 / 120.0).abs() < 1e-9, "{middle}");
        let both = [result, sample::page_level("b", 1)];
        assert!(Along::of(&both).unwrap().is_by_writes(), "runs with windows of both kinds share the axis of writes");
        assert_eq!(Along::of(&[sample::empty("a")]), None);
    }

    #[test]
    fn the_windows_of_a_part_are_counted_once() {
        let windows = sample::page_level("a", 1).windows;
        let parts: u64 = [0..7, 7..8, 8..60].iter().map(|part| written(&windows, part)).sum();
        assert_eq!(parts, windows[59].written_blocks);
    }
}
