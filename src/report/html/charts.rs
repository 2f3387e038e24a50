//! The charts that compare all paths: write amplification over time, latencies, wear.

use super::along::{Along, written};
use super::bins::{bins, most_bins};
use crate::report::chart::{Axis, Chart, Marks, Panel, Scale, Series};
use crate::report::{Percentiles, RunResult, WearBin, number};
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

/// Write amplification by window over what the host wrote, or over the time if windows are by time; `None` if no run has
/// windows. The steady part of a run is drawn thicker.
pub fn write_amplification(results: &[RunResult]) -> Option<Chart> {
    let along = Along::of(results)?;
    let mut panel = Panel::new("", along.axis(), Axis::linear("write amplification"));
    for (index, result) in results.iter().enumerate().filter(|(_, result)| !result.windows.is_empty()) {
        let amplification = |bin: Range<usize>| {
            let written = written(&result.windows, &bin);
            let stored: f64 = result.windows[bin.clone()].iter().map(|window| window.stored_blocks).sum();
            // A part's value is drawn at its middle; one without writes has none.
            (written > 0).then(|| (along.middle(&result.windows, &bin), stored / written as f64))
        };
        let points = bins(result, most_bins(results)).into_iter().filter_map(amplification).collect();
        let steady = result.write_amplification.steady_from_fraction.filter(|_| along.is_by_writes());
        let end = result.windows.len();
        let thick_from = steady.map(|from| from * along.end(&result.windows, end));
        panel.series.push(series(index, result, Marks::Line { points, thick_from }));
    }
    let summary = format!("Write amplification over {}, by path", along.over());
    Some(Chart::new("write-amplification", &summary, vec![panel]))
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
