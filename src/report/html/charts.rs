//! The charts that compare all paths: write amplification over time, latencies, wear.

use super::bins::{bins, most_bins};
use crate::report::chart::{Axis, Chart, Marks, Panel, Scale, Series};
use crate::report::{Percentiles, RunResult, WearBin, Window, number};
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// The letter of a path: `A`; a number from the 27th on.
pub fn path_tag(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

/// The greatest number of paths whose latencies are drawn with all points.
const IN_ALL_POINTS: usize = 4;

/// The series of the path with this index.
fn series(index: usize, result: &RunResult, marks: Marks) -> Series {
    Series { style: index, tag: path_tag(index), name: number::visible(result.label()), marks }
}

/// Write amplification by window over the bytes written by the host; `None` if no run has windows. The steady part of a
/// run is drawn thicker.
pub fn write_amplification(results: &[RunResult]) -> Option<Chart> {
    let written = results.iter().filter_map(|result| result.windows.last()).map(|window| window.written_blocks);
    let (divisor, unit) = byte_scale(written.max()? as f64 * BLOCK_BYTES as f64);
    let x = Axis::linear(&format!("written by the host, {unit}"));
    let mut panel = Panel::new("", x, Axis::linear("write amplification"));
    for (index, result) in results.iter().enumerate().filter(|(_, result)| !result.windows.is_empty()) {
        let points = joined(&result.windows, bins(result, most_bins(results))).map(|(begin, end, amplification)| {
            // A window's value is drawn at its middle.
            ((begin + end) as f64 / 2.0 * BLOCK_BYTES as f64 / divisor, amplification)
        });
        let points: Vec<(f64, f64)> = points.collect();
        let end = result.windows.last().map_or(0.0, |window| window.written_blocks as f64);
        let steady = result.write_amplification.steady_from_fraction;
        let thick_from = steady.map(|from| from * end * BLOCK_BYTES as f64 / divisor);
        panel.series.push(series(index, result, Marks::Line { points, thick_from }));
    }
    let summary = "Write amplification over the bytes written by the host, by path";
    Some(Chart::new("write-amplification", summary, vec![panel]))
}

/// The windows joined to these parts: the blocks written before and after each part, and the mean of its windows' write
/// amplification, weighted by the blocks written.
fn joined(windows: &[Window], bins: Vec<Range<usize>>) -> impl Iterator<Item = (u64, u64, f64)> {
    let mut begin = 0;
    bins.into_iter().map(move |bin| {
        let (before, mut programmed) = (begin, 0.0);
        for window in &windows[bin] {
            programmed += window.written_blocks.saturating_sub(begin) as f64 * window.write_amplification;
            begin = window.written_blocks;
        }
        (before, begin, programmed / begin.saturating_sub(before) as f64)
    })
}

/// The classes of requests with a panel of latencies.
type Of = fn(&RunResult) -> Option<&Percentiles>;
const CLASSES: [(&str, Of); 2] = [
    ("Writes", |result| result.latency_ns.as_ref()?.write.as_ref()),
    ("Reads", |result| result.latency_ns.as_ref()?.read.as_ref()),
];

/// The cumulative share of requests by latency, on a scale with equal space for each nine, in a panel for writes and one
/// for reads; `None` if no run has latencies.
pub fn latency(results: &[RunResult]) -> Option<Chart> {
    let shares =
        [0.5, 0.1, 0.01, 0.001, 0.000_1, 0.000_01, 0.000_001].map(|left| (left, format!("{} %", nines(1.0 - left))));
    let mut panels = Vec::new();
    for (title, of) in CLASSES {
        let x = Axis::log("latency").labelled(|nanoseconds| {
            number::latency(nanoseconds.round() as u64).replace(".00 ", " ").replace(".0 ", " ")
        });
        let y = Axis::log("requests within it")
            .with_ticks(shares.to_vec())
            .labelled(|left| format!("{} %", nines(1.0 - left)));
        let mut panel = Panel::new(title, x, Axis { scale: Scale::LogDown, ..y });
        for (index, result) in results.iter().enumerate() {
            let Some(percentiles) = of(result) else { continue };
            // No request is slower than the last one, and a logarithm cannot show zero: it is drawn at half a request.
            let half_a_request = 0.5 / percentiles.count.max(1) as f64;
            let point =
                |&(nanoseconds, share): &(u64, f64)| (nanoseconds.max(1) as f64, (1.0 - share).max(half_a_request));
            // A page with many paths stays small: of neighbouring points one is drawn, and always the last.
            let (step, points) = (results.len().div_ceil(IN_ALL_POINTS).max(1), percentiles.cumulative.len());
            let is_drawn = |number: usize| (number + 1).is_multiple_of(step) || number + 1 == points;
            let drawn = percentiles.cumulative.iter().enumerate().filter(|(number, _)| is_drawn(*number));
            let points = drawn.map(|(_, share)| point(share)).collect();
            panel.series.push(series(index, result, Marks::Line { points, thick_from: None }));
        }
        if !panel.series.is_empty() {
            panels.push(panel);
        }
    }
    let summary = "The cumulative share of requests by latency, by path";
    (!panels.is_empty()).then(|| Chart::new("latency", summary, panels))
}

/// A share in per cent, with all its nines.
fn nines(share: f64) -> String {
    let decimals = if share >= 1.0 { 0.0 } else { (-(1.0 - share).log10() - 1e-6).ceil() - 2.0 };
    number::decimal(share * 100.0, decimals.clamp(0.0, 8.0) as usize)
}

/// The share of the erase blocks at each erase count; `None` if no run has any.
pub fn wear(results: &[RunResult]) -> Option<Chart> {
    let mut panel = Panel::new("", Axis::linear("erases of a block"), Axis::linear("blocks, % per erase count"));
    for (index, result) in results.iter().enumerate().filter(|(_, result)| !result.wear.histogram.is_empty()) {
        panel.series.push(series(index, result, Marks::Area(outline(&result.wear.histogram))));
    }
    let summary = "The share of the erase blocks at each erase count, by path";
    (!panel.series.is_empty()).then(|| Chart::new("wear", summary, vec![panel]))
}

/// The outline of the bins. A bin's height is its share of the blocks per erase count, so that bins of different widths
/// are comparable.
fn outline(bins: &[WearBin]) -> Vec<(f64, f64)> {
    let blocks = bins.iter().map(|bin| bin.blocks).sum::<u64>().max(1) as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for bin in bins {
        let (left, right) = (f64::from(bin.from) - 0.5, f64::from(bin.to) + 0.5);
        let height = bin.blocks as f64 / blocks * 100.0 / (right - left);
        if let Some(&(end, _)) = points.last().filter(|(end, _)| *end < left) {
            points.extend([(end, 0.0), (left, 0.0)]);
        }
        if points.is_empty() {
            points.push((left, 0.0));
        }
        points.extend([(left, height), (right, height)]);
    }
    if let Some(&(end, _)) = points.last() {
        points.push((end, 0.0));
    }
    points
}

/// The largest binary unit that is at most half of `bytes`: its size and name.
pub fn byte_scale(bytes: f64) -> (f64, &'static str) {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().map(|(shift, name)| ((1u64 << shift) as f64, name));
    fitting.into_iter().find(|(unit, _)| bytes >= 2.0 * unit).unwrap_or((1.0, "bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_steady_part_of_a_run_is_thick() {
        let chart = write_amplification(&[sample::page_level("a", 1)]).unwrap();
        let Marks::Line { points, thick_from } = &chart.panels[0].series[0].marks else { panic!("a line") };
        assert_eq!(points.len(), 60);
        let (first, last) = (points[0].0, points[59].0);
        assert!(thick_from.is_some_and(|from| first < from && from < last));
        let svg = chart.svg(crate::report::chart::Width::Wide);
        assert_eq!(svg.matches("class=\"series\"").count(), 2, "two parts that share a point");
    }

    #[test]
    fn joined_windows_keep_the_programmed_blocks() {
        let any = sample::page_level("a", 1).windows[0].clone();
        let window = |number: u64| Window {
            written_blocks: number * number,
            write_amplification: (number % 7) as f64,
            ..any.clone()
        };
        let windows: Vec<Window> = (1..=1000).map(window).collect();
        let expected: u64 = (1..=1000u64).map(|number| (2 * number - 1) * (number % 7)).sum();
        let bins = (0..100).map(|part| part * 10..(part + 1) * 10).collect();
        let points: Vec<(u64, u64, f64)> = joined(&windows, bins).collect();
        assert_eq!(points.len(), 100);
        assert!(points.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let programmed: f64 = points.iter().map(|(begin, end, value)| (end - begin) as f64 * value).sum();
        assert!((programmed - expected as f64).abs() < 1e-3, "{programmed} and {expected}");
    }

    #[test]
    fn empty_charts_are_omitted() {
        let results = [sample::empty("a")];
        assert!(write_amplification(&results).is_none());
        assert!(latency(&results).is_none());
        assert!(write_amplification(&[]).is_none() && wear(&[]).is_none());
    }

    #[test]
    fn the_outline_of_the_wear_encloses_all_blocks() {
        let bins = [(3, 3, 10), (4, 9, 60), (12, 12, 30)].map(|(from, to, blocks)| WearBin { from, to, blocks });
        let points = outline(&bins);
        let area: f64 = points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * pair[0].1.min(pair[1].1)).sum();
        assert!((area - 100.0).abs() < 1e-9, "{area}");
    }

    #[test]
    fn shares_have_all_their_nines() {
        for (share, text) in [(0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9995, "99.95"), (1.0, "100")]
        {
            assert_eq!(nines(share), text);
        }
    }
}
