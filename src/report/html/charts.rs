//! The charts that compare all paths: write amplification over time, latencies, wear.
//!
//! A chart is plotly.js's input: traces and a layout. Colours are names of the page's CSS properties (`--path-0`),
//! which the page's script resolves for the current theme.

use serde_json::{Value, json};

use crate::report::{Percentiles, RunResult, WearBin, Window, number};
use crate::units::BLOCK_BYTES;

/// The number of distinct colours and dashes; more paths start over.
pub const PATH_STYLES: usize = 6;

const DASHES: [&str; PATH_STYLES] = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];

/// The letter of a path: `A`; a number from the 27th on.
pub fn path_tag(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

/// The most points of a line: more would be indistinguishable, and the swings of a layer that merges in bursts would
/// cover the other lines.
const MOST_POINTS: usize = 128;

/// A line of the path with this index.
fn line(index: usize, points: Value, width: f64) -> Value {
    let style = index % PATH_STYLES;
    let mut trace = json!({
        "type": "scatter",
        "mode": "lines",
        "name": path_tag(index),
        "line": { "color": format!("--path-{style}"), "dash": DASHES[style], "width": width },
    });
    if let (Value::Object(trace), Value::Object(points)) = (&mut trace, points) {
        trace.extend(points);
    }
    trace
}

/// Write amplification by window over the bytes written by the host; `None` if no run has windows. The steady part of a
/// run is drawn thicker.
pub fn write_amplification(results: &[RunResult]) -> Option<Value> {
    let written = results.iter().filter_map(|result| result.windows.last()).map(|window| window.written_blocks);
    let (divisor, unit) = byte_scale(written.max()? as f64 * BLOCK_BYTES as f64);
    let mut traces = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let points: Vec<(f64, f64)> = joined(&result.windows)
            .map(|(begin, end, amplification)| {
                // A window's value is drawn at its middle.
                let middle = (begin + end) as f64 / 2.0 * BLOCK_BYTES as f64 / divisor;
                (middle, amplification)
            })
            .collect();
        let end = result.windows.last().map_or(0.0, |window| window.written_blocks as f64);
        let steady_from = result.write_amplification.steady_from_fraction.unwrap_or(f64::INFINITY);
        let steady_from = steady_from * end * BLOCK_BYTES as f64 / divisor;
        let first_steady = points.iter().position(|(x, _)| *x >= steady_from).unwrap_or(points.len());
        // The two parts share a point, so that the line is continuous.
        let hover = format!("{} %{{y:.3f}}<extra></extra>", path_tag(index));
        let unsteady = &points[..points.len().min(first_steady + 1)];
        for (part, width, hover) in [(unsteady, 1.5, json!(hover)), (&points[first_steady..], 3.5, json!(hover))] {
            if !part.is_empty() {
                traces.push(line(index, json!({ "x": xs(part), "y": ys(part), "hovertemplate": hover }), width));
            }
        }
    }
    let layout = json!({
        "height": 340,
        "hovermode": "closest",
        "xaxis": { "title": { "text": format!("written by the host, {unit}") }, "rangemode": "tozero" },
        "yaxis": { "title": { "text": "write amplification" }, "rangemode": "tozero" },
    });
    Some(json!({ "data": traces, "layout": layout }))
}

/// The windows joined to at most [`MOST_POINTS`] equal parts: the blocks written before and after each part, and the
/// mean of its windows' write amplification, weighted by the blocks written.
fn joined(windows: &[Window]) -> impl Iterator<Item = (u64, u64, f64)> {
    let parts = windows.len().min(MOST_POINTS);
    let mut begin = 0;
    (0..parts).map(move |part| {
        let (before, mut programmed) = (begin, 0.0);
        for window in &windows[part * windows.len() / parts..(part + 1) * windows.len() / parts] {
            programmed += window.written_blocks.saturating_sub(begin) as f64 * window.write_amplification;
            begin = window.written_blocks;
        }
        (before, begin, programmed / begin.saturating_sub(before) as f64)
    })
}

/// The cumulative share of requests by latency, on a scale with equal space for each nine; `None` if no run has such
/// latencies.
pub fn latency(results: &[RunResult], of: fn(&RunResult) -> Option<&Percentiles>) -> Option<Value> {
    let mut traces = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let Some(percentiles) = of(result) else { continue };
        let (mut latencies, mut left, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for &(nanoseconds, share) in &percentiles.cumulative {
            // No request is slower than the last one, and a logarithm cannot show zero: it is drawn at half a request.
            let half_a_request = 0.5 / percentiles.count.max(1) as f64;
            latencies.push(nanoseconds.max(1));
            left.push((1.0 - share).max(half_a_request));
            let took = number::latency(nanoseconds);
            labels.push(format!("{}: {} % within {took}", path_tag(index), nines(share)));
        }
        let points = json!({ "x": latencies, "y": left, "text": labels, "hovertemplate": "%{text}<extra></extra>" });
        traces.push(line(index, points, 2.0));
    }
    if traces.is_empty() {
        return None;
    }
    let (ticks, names) = latency_ticks(results.iter().filter_map(of));
    let layout = json!({
        "height": 360,
        "hovermode": "closest",
        "xaxis": {
            "type": "log",
            "title": { "text": "latency" },
            "tickvals": ticks,
            "ticktext": names,
        },
        "yaxis": {
            "type": "log",
            "autorange": "reversed",
            "title": { "text": "share of requests" },
            "tickvals": [0.5, 0.1, 0.01, 0.001, 0.0001, 0.00001, 0.000001],
            "ticktext": ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"],
        },
    });
    Some(json!({ "data": traces, "layout": layout }))
}

/// Ticks of a logarithmic axis over all latencies, and their labels: at 1 and 3 of every decade if there are few
/// decades.
fn latency_ticks<'a>(all: impl Iterator<Item = &'a Percentiles>) -> (Vec<u64>, Vec<String>) {
    let ends = all.filter_map(|percentiles| Some((percentiles.cumulative.first()?.0.max(1), percentiles.max.max(1))));
    let (least, most) = ends.fold((u64::MAX, 1), |(least, most), ends| (least.min(ends.0), most.max(ends.1)));
    let steps = if most / least < 2_000 { &[1, 3][..] } else { &[1] };
    let decades = (0..=15).map(|decade| 10u64.pow(decade));
    let ticks: Vec<u64> = decades.flat_map(|decade| steps.iter().map(move |step| decade * step)).collect();
    let name = |tick: &u64| number::latency(*tick).replace(".00 ", " ").replace(".0 ", " ");
    let names = ticks.iter().map(name).collect();
    (ticks, names)
}

/// A share in per cent, with all its nines.
fn nines(share: f64) -> String {
    let decimals = if share >= 1.0 { 0 } else { (-(1.0 - share).log10()).clamp(0.0, 8.0) as usize };
    number::decimal(share * 100.0, decimals)
}

/// The share of the erase blocks at each erase count; `None` if no run has any.
pub fn wear(results: &[RunResult]) -> Option<Value> {
    let mut traces = Vec::new();
    for (index, result) in results.iter().enumerate().filter(|(_, result)| !result.wear.histogram.is_empty()) {
        let outline = outline(&result.wear.histogram);
        let hover = format!("{} %{{y:.2f}} % of the blocks per erase count<extra></extra>", path_tag(index));
        let fill = format!("--path-{}-fill", index % PATH_STYLES);
        let points = json!({
            "x": xs(&outline), "y": ys(&outline), "hovertemplate": hover, "fill": "tozeroy", "fillcolor": fill,
        });
        traces.push(line(index, points, 1.5));
    }
    if traces.is_empty() {
        return None;
    }
    let layout = json!({
        "height": 320,
        "hovermode": "closest",
        "xaxis": { "title": { "text": "erases of a block" } },
        "yaxis": { "title": { "text": "blocks, % per erase count" }, "rangemode": "tozero" },
    });
    Some(json!({ "data": traces, "layout": layout }))
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
fn byte_scale(bytes: f64) -> (f64, &'static str) {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().map(|(shift, name)| ((1u64 << shift) as f64, name));
    fitting.into_iter().find(|(unit, _)| bytes >= 2.0 * unit).unwrap_or((1.0, "bytes"))
}

fn xs(points: &[(f64, f64)]) -> Vec<f64> {
    points.iter().map(|point| point.0).collect()
}

fn ys(points: &[(f64, f64)]) -> Vec<f64> {
    points.iter().map(|point| point.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_run_with_a_steady_part_is_two_lines_that_meet() {
        let figure = write_amplification(&[sample::page_level("a", 1)]).unwrap();
        let traces = figure["data"].as_array().unwrap();
        assert_eq!(traces.len(), 2);
        let (last, first) = (traces[0]["x"].as_array().unwrap().last().unwrap(), &traces[1]["x"][0]);
        assert_eq!(last, first);
        let points: usize = traces.iter().map(|trace| trace["x"].as_array().unwrap().len()).sum();
        assert_eq!(points, 61);
    }

    #[test]
    fn joined_windows_keep_the_programmed_blocks() {
        let window = |number: u64| Window {
            written_blocks: number * number,
            seconds_simulated: None,
            write_amplification: (number % 7) as f64,
        };
        let windows: Vec<Window> = (1..=1000).map(window).collect();
        let expected: u64 = (1..=1000u64).map(|number| (2 * number - 1) * (number % 7)).sum();
        let points: Vec<(u64, u64, f64)> = joined(&windows).collect();
        assert!(points.len() <= MOST_POINTS && points.len() > MOST_POINTS / 2);
        assert!(points.windows(2).all(|pair| pair[0].1 == pair[1].0));
        let programmed: f64 = points.iter().map(|(begin, end, value)| (end - begin) as f64 * value).sum();
        assert!((programmed - expected as f64).abs() < 1e-3, "{programmed} and {expected}");
    }

    #[test]
    fn empty_charts_are_omitted() {
        let results = [sample::empty("a")];
        assert!(write_amplification(&results).is_none());
        assert!(latency(&results, |_| None).is_none());
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
        for (share, text) in [(0.5, "50"), (0.99, "99.0"), (0.9995, "99.950"), (1.0, "100")] {
            assert_eq!(nines(share), text);
        }
    }
}
