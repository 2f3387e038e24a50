//! The charts of runs over time, and the maps of their stations at the end.

use super::along::{Along, written};
use super::bins::{bins, most_bins};
use super::charts::path_tag;
use crate::report::chart::{Axis, Chart, Marks, Panel, Series};
use crate::report::{CauseOverTime, RunResult, StationMap, Window, number};
use crate::units::BLOCK_BYTES;
use std::collections::BTreeMap;

/// The points of all lines of a chart together, so that a page with many paths stays small.
const POINTS_OF_CHART: usize = 600;
/// The steps of all maps of a chart together.
const STEPS_OF_CHART: usize = 320;
/// The greatest number of paths of which all is drawn. Of more, the most important rates are.
const MOST_IN_FULL: usize = 6;

/// The points of a line, if the chart has so many lines.
fn points_of_line(lines: usize) -> usize {
    (POINTS_OF_CHART / lines.max(1)).clamp(12, 96)
}

/// True if there are so few paths that each has its causes, maps and all of its rates.
pub fn is_in_full(results: &[RunResult]) -> bool {
    results.len() <= MOST_IN_FULL
}

/// The windows in at most `most` parts: of each, its middle along the run, and its windows.
fn parts(along: Along, windows: &[Window], most: usize) -> impl Iterator<Item = (f64, std::ops::Range<usize>)> {
    let count = windows.len().min(most);
    (0..count).map(move |part| {
        let range = part * windows.len() / count..(part + 1) * windows.len() / count;
        (along.middle(windows, &range), range)
    })
}

/// A value of a part, from its windows.
type Of = fn(&[Window]) -> Option<f64>;

/// The mean weighted by time: all that was moved over all seconds.
fn throughput(windows: &[Window]) -> Option<f64> {
    let rates: Vec<f64> = windows.iter().map(|window| window.throughput_mib_s).collect::<Option<_>>()?;
    if windows.iter().any(|window| window.in_flight.is_some()) {
        // Windows by time have equal times.
        return Some(mean(&rates));
    }
    // Windows have equal writes: the mean of their times for each MiB is that of the whole.
    let times: f64 = rates.iter().map(|rate| 1.0 / rate).sum();
    Some(windows.len() as f64 / times)
}

fn free_blocks(windows: &[Window]) -> Option<f64> {
    Some(windows.last()?.free_blocks? as f64)
}

fn in_flight(windows: &[Window]) -> Option<f64> {
    windows.iter().filter_map(|window| window.in_flight).map(|in_flight| in_flight.max as f64).reduce(f64::max)
}

/// The worst of the windows, in nanoseconds.
fn worst(windows: &[Window], class: &str, of: fn(&crate::report::WindowLatency) -> u64) -> Option<f64> {
    let values = windows.iter().filter_map(|window| window.latency_ns.get(class)).map(of);
    values.max().map(|worst| worst.max(1) as f64)
}

/// A panel with a line for each run that has the value.
fn panel(results: &[RunResult], along: Along, title: &str, y: Axis, of: Of) -> Option<Panel> {
    let mut panel = Panel::new(title, along.axis(), y);
    for (index, result) in results.iter().enumerate() {
        let points = parts(along, &result.windows, points_of_line(results.len() * PANELS))
            .filter_map(|(middle, range)| Some((middle, of(&result.windows[range])?)));
        let points: Vec<(f64, f64)> = points.collect();
        if !points.is_empty() {
            panel.series.push(Series::line(index, &path_tag(index), &number::visible(result.label()), points));
        }
    }
    (!panel.series.is_empty()).then_some(panel)
}

/// The most panels of [`rates`].
const PANELS: usize = 9;

/// Throughput, latencies and free blocks over the bytes written by the host; `None` if no run has any of them.
pub fn rates(results: &[RunResult]) -> Option<Chart> {
    let along = Along::of(results)?;
    let latency = || {
        Axis::log("latency").labelled(|nanoseconds| {
            number::latency(nanoseconds.round() as u64).replace(".00 ", " ").replace(".0 ", " ")
        })
    };
    let rate = |title, y, of| panel(results, along, title, y, of);
    let mut panels = vec![
        rate("Throughput", Axis::linear("MiB/s"), throughput),
        rate("Free erase blocks", Axis::linear("erase blocks"), free_blocks),
        rate("Requests in flight: most", Axis::linear("requests"), in_flight),
        rate("Writes: 99 %", latency(), |part| worst(part, "write", |latency| latency.p99)),
        rate("Reads: 99 %", latency(), |part| worst(part, "read", |latency| latency.p99)),
    ];
    if is_in_full(results) {
        panels.extend([
            rate("Writes: median", latency(), |part| worst(part, "write", |latency| latency.p50)),
            rate("Writes: longest", latency(), |part| worst(part, "write", |latency| latency.max)),
            rate("Reads: median", latency(), |part| worst(part, "read", |latency| latency.p50)),
            rate("Reads: longest", latency(), |part| worst(part, "read", |latency| latency.max)),
        ]);
    }
    let panels: Vec<Panel> = panels.into_iter().flatten().collect();
    let summary = format!("Throughput, latencies and free erase blocks over {}, by path", along.over());
    (!panels.is_empty()).then(|| Chart::new("over-time", &summary, panels))
}

/// The write amplification over time by cause and origin, in a panel for each run; `None` if no run has windows,
/// or for many paths.
pub fn causes(results: &[RunResult]) -> Option<Chart> {
    if !is_in_full(results) {
        return None;
    }
    let along = Along::of(results)?;
    let mut styles = BTreeMap::new();
    for cause in results.iter().flat_map(|result| &result.window_causes) {
        let next = styles.len();
        styles.entry(name(cause)).or_insert(next);
    }
    let most = most_bins(results);
    let panels = results.iter().enumerate().filter(|(_, result)| !result.window_causes.is_empty());
    let panels = panels.map(|(index, result)| {
        let title = format!("{} {}", path_tag(index), number::visible(result.label()));
        let y = if along.is_by_writes() { "write amplification" } else { "stored, MiB/s" };
        let mut panel = Panel::new(&title, along.axis(), Axis::linear(y));
        for cause in &result.window_causes {
            let point = |range: std::ops::Range<usize>| {
                let blocks: f64 = cause.blocks[range.clone()].iter().sum();
                let over = match along {
                    Along::Writes(..) => written(&result.windows, &range) as f64,
                    Along::Time(unit, _) => {
                        let seconds =
                            (along.end(&result.windows, range.end) - along.end(&result.windows, range.start)) * unit;
                        seconds * (1 << 20) as f64 / BLOCK_BYTES as f64
                    }
                };
                (over > 0.0).then(|| (along.middle(&result.windows, &range), blocks / over))
            };
            let points = bins(result, most).into_iter().filter_map(point).collect();
            panel.series.push(Series::line(styles[&name(cause)], "", &name(cause), points));
        }
        panel
    });
    let panels: Vec<Panel> = panels.collect();
    let what = if along.is_by_writes() { "Write amplification" } else { "Bytes stored a second" };
    let summary = format!("{what} by cause and origin over {}, a panel for each path", along.over());
    (!panels.is_empty()).then(|| Chart::new("causes-over-time", &summary, panels))
}

/// The cause, and the origin if it is another.
fn name(cause: &CauseOverTime) -> String {
    match cause.cause == cause.origin {
        true => cause.cause.clone(),
        false => format!("{} of {}", cause.cause, cause.origin),
    }
}

/// The erase counts by address; `None` if no station has any.
pub fn wear_map(results: &[RunResult]) -> Option<Chart> {
    let steps = steps_of_map(results.len());
    let panels = maps(results).filter(|(_, map)| !map.erases_mean.is_empty()).map(|(title, map)| {
        let mut panel = Panel::new(&title, address_axis(map), Axis::linear("erases"));
        let most: Vec<f64> = map.erases_max.iter().map(|&erases| f64::from(erases)).collect();
        panel.series.push(by_address((1, "most worn of the neighbours"), map, &most, greatest, steps));
        panel.series.push(by_address((0, "mean of the neighbours"), map, &map.erases_mean, mean, steps));
        panel
    });
    let summary = "Erases of each erase block or zone by its address at the end of the run, a panel for each path";
    charted("wear-map", summary, panels.collect())
}

/// The written share of zones and the live share of segments, by address; `None` if no station has a map.
pub fn space_map(results: &[RunResult]) -> Option<Chart> {
    let steps = steps_of_map(results.len());
    let panels = maps(results).filter_map(|(title, map)| {
        let (name, style, shares) = match (map.live.is_empty(), map.unit.as_str()) {
            (false, _) => ("live", 2, &map.live),
            // The flash of a drive is nearly always full.
            (true, "erase block") => return None,
            (true, _) => ("written", 3, &map.written),
        };
        let mut panel = Panel::new(&(title + &states(map)), address_axis(map), Axis::linear("share"));
        panel.y.includes.push(1.0);
        panel.series.push(by_address((style, name), map, shares, mean, steps));
        Some(panel)
    });
    let summary = "What is written of each zone and live in each segment, by address, at the end of the run";
    charted("space-map", summary, panels.collect())
}

fn charted(name: &str, summary: &str, panels: Vec<Panel>) -> Option<Chart> {
    (!panels.is_empty()).then(|| Chart::new(name, summary, panels))
}

/// Each map with its title; none for many paths.
fn maps(results: &[RunResult]) -> impl Iterator<Item = (String, &StationMap)> {
    let drawn = if is_in_full(results) { results } else { &[] };
    drawn.iter().enumerate().flat_map(|(index, result)| {
        result.maps.iter().map(move |map| (format!("{} {}", path_tag(index), map.station), map))
    })
}

fn address_axis(map: &StationMap) -> Axis {
    Axis::linear(&format!("{}, by address", map.unit))
}

/// The steps of an area, if the chart has maps of so many paths.
fn steps_of_map(paths: usize) -> usize {
    (STEPS_OF_CHART / paths.max(1)).clamp(24, 160)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// An area over the addresses of a map: steps from cell to cell, of which neighbours are joined if there are many.
fn by_address(
    (style, name): (usize, &str),
    map: &StationMap,
    values: &[f64],
    join: fn(&[f64]) -> f64,
    most_steps: usize,
) -> Series {
    let joined = values.len().div_ceil(most_steps).max(1);
    let units_per_step = map.units_per_cell * joined as u64;
    let mut points = Vec::with_capacity(values.len() * 2);
    let mut last = None;
    for (step, value) in (0u64..).zip(values.chunks(joined).map(join)) {
        let begin = (step * units_per_step) as f64;
        let end = ((step + 1) * units_per_step).min(map.units) as f64;
        if last == Some(value) {
            points.pop();
        } else {
            points.push((begin, value));
        }
        points.push((end, value));
        last = Some(value);
    }
    Series { style, tag: String::new(), name: name.to_string(), marks: Marks::Area(points) }
}

/// The number of cells in each state: `: 12 empty, 4 full`.
fn states(map: &StationMap) -> String {
    let mut counts = BTreeMap::new();
    map.states.iter().for_each(|state| *counts.entry(state.as_str()).or_insert(0) += 1);
    let counts: Vec<String> = counts.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::Width;
    use crate::report::sample;

    #[test]
    fn runs_with_a_timing_model_have_panels_of_rates_and_others_of_free_blocks() {
        let timed = rates(&[sample::page_level("a", 1)]).unwrap();
        assert_eq!(timed.panels.len(), 8);
        assert_eq!(timed.panels[0].series[0].name, "a");
        let untimed = rates(&[sample::without_timing("a", 1)]).unwrap();
        assert_eq!(untimed.panels.iter().map(|panel| &*panel.title).collect::<Vec<_>>(), ["Free erase blocks"]);
        assert!(rates(&[sample::empty("a")]).is_none() && causes(&[sample::empty("a")]).is_none());
    }

    #[test]
    fn a_cause_has_the_same_style_in_the_panels_of_all_paths() {
        let chart = causes(&[sample::page_level("a", 1), sample::log_structured("b", 2)]).unwrap();
        let style = |panel: usize, cause: &str| {
            chart.panels[panel].series.iter().find(|series| series.name.starts_with(cause)).unwrap().style
        };
        assert_eq!(style(0, "garbage-collection"), style(1, "garbage-collection"));
        assert_ne!(style(0, "garbage-collection"), style(0, "host-write"));
    }

    #[test]
    fn a_map_has_an_area_over_all_addresses() {
        let results = [sample::page_level("a", 1)];
        let chart = wear_map(&results).unwrap();
        let Marks::Area(points) = &chart.panels[0].series[0].marks else { panic!("an area") };
        assert_eq!((points[0].0, points.last().unwrap().0), (0.0, results[0].maps[0].units as f64));
        assert!(chart.svg(Width::Wide).len() < 100_000, "{}", chart.svg(Width::Wide).len());
        assert!(space_map(&results).is_none(), "a drive is full");
        let segments = StationMap {
            station: "sfs".into(),
            unit: "segment".into(),
            units: 3,
            units_per_cell: 1,
            written: Vec::new(),
            live: vec![0.5, 0.5, 1.0],
            erases_mean: Vec::new(),
            erases_max: Vec::new(),
            states: vec!["written".into(), "written".into(), "open".into()],
        };
        let chart = space_map(&[RunResult { maps: vec![segments], ..sample::empty("a") }]).unwrap();
        assert_eq!(chart.panels[0].title, "A sfs: 1 open, 2 written");
        let Marks::Area(points) = &chart.panels[0].series[0].marks else { panic!("an area") };
        assert_eq!(points[..], [(0.0, 0.5), (2.0, 0.5), (2.0, 1.0), (3.0, 1.0)]);
    }
}
