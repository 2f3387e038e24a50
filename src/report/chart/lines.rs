//! Lines, areas and intervals, with markers, and a tag beside the end of each line that reaches the right edge.

use super::scale::Placed;
use super::svg::{Anchor, Font, SMALL};
use super::{Marks, Panel, Series, SeriesStyle, Svg};
use std::fmt::Write;

/// The width of a line, and of its thick part.
const LINE: f64 = 1.6;
const THICK: f64 = 3.2;
/// The most markers of a line, and those of all lines of a panel together.
const MARKERS: usize = 6;
const MARKERS_OF_PANEL: usize = 36;
/// A line that ends so near to the right edge has its tag there; to others a tag at the edge would not point.
const NEAR: f64 = 12.0;
/// The distance of a note above its point.
const ABOVE: f64 = 4.0;
/// The least distance of the tags at the ends of lines.
const TAG_GAP: f64 = SMALL + 1.0;

/// Draws the lines of a panel.
pub fn draw(svg: &mut Svg, panel: &Panel, x: &Placed, y: &Placed) {
    let mut ends = Vec::new();
    let is_sparse = panel.series.iter().map(|series| series.marks.points()).sum::<usize>() <= MARKERS_OF_PANEL;
    for (number, series) in panel.series.iter().enumerate() {
        let (points, thick_from, is_area) = match &series.marks {
            Marks::Line { points, thick_from } => (points, *thick_from, false),
            Marks::Area(points) => (points, None, true),
            Marks::Intervals(intervals) => {
                whiskers(svg, intervals, (x, y), series);
                continue;
            }
            Marks::Noted(points) => {
                let font = Font { size: SMALL + 2.0, colour: SeriesStyle::of(series.style).colour, bold: true };
                for point in points.iter().filter(|point| x.axis.holds(point.0) && y.axis.holds(point.1)) {
                    svg.text((x.at(point.0), y.at(point.1) - ABOVE), Anchor::Middle, font, "*");
                }
                continue;
            }
            Marks::Bars(_) | Marks::Paper { .. } | Marks::Rows(_) => continue,
        };
        let held = points.iter().filter(|point| x.axis.holds(point.0) && y.axis.holds(point.1));
        let shown = distinct(held.copied(), (x, y));
        let style = SeriesStyle::of(series.style);
        if is_area {
            area(svg, &shown, (x, y), style);
        }
        let split = thick_from.and_then(|from| shown.iter().position(|point| point.0 >= from)).unwrap_or(shown.len());
        // The two parts share a point, so that the line is continuous.
        stroke(svg, &shown[..shown.len().min(split + 1)], (x, y), style, LINE, series);
        stroke(svg, &shown[split..], (x, y), style, THICK, series);
        if !is_area {
            // Lines that lie on each other have their markers at different places.
            let markers = (MARKERS_OF_PANEL / panel.series.len().max(1)).clamp(2, MARKERS);
            // Few points are measurements of their own, each of which is looked for.
            let step = if is_sparse { 1 } else { shown.len().div_ceil(markers).max(1) };
            let first = if is_sparse { 0 } else { number * step / panel.series.len().max(1) };
            let marked = shown.iter().skip(first).step_by(step);
            let name = if series.tag.is_empty() { &series.name } else { &series.tag };
            let titled = marked.map(|point| {
                let title = format!("{name}: {}, {}", (x.axis.label)(point.0), (y.axis.label)(point.1));
                ((x.at(point.0), y.at(point.1)), title)
            });
            style.marker.draw(svg, style.colour, titled);
        }
        let is_at_the_edge = |end: &&(f64, f64)| x.at(end.0) > x.pixels.1 - NEAR;
        if let Some(end) = shown.last().filter(|_| !series.tag.is_empty()).filter(is_at_the_edge) {
            ends.push((y.at(end.1), series));
        }
    }
    tags(svg, ends, (x, y));
}

/// Half the width of the ends of an interval, in pixels.
const WHISKER: f64 = 3.0;

/// Draws intervals as vertical lines with ends.
fn whiskers(svg: &mut Svg, intervals: &[(f64, (f64, f64))], (x, y): (&Placed, &Placed), series: &Series) {
    let colour = SeriesStyle::of(series.style).colour;
    svg.open_group(&format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\""));
    let held = |value: &&(f64, (f64, f64))| x.axis.holds(value.0) && y.axis.holds(value.1.0) && y.axis.holds(value.1.1);
    for (at, (low, high)) in intervals.iter().filter(held) {
        let (at_x, from, to) = (x.at(*at), y.at(*low), y.at(*high));
        let left = at_x - WHISKER;
        let width = 2.0 * WHISKER;
        let outline = format!("M{at_x:.1} {from:.1}V{to:.1}M{left:.1} {from:.1}h{width}M{left:.1} {to:.1}h{width}");
        let title = format!("{}: {} to {}", series.name, (y.axis.label)(*low), (y.axis.label)(*high));
        svg.shape(&outline, "", &title);
    }
    svg.close_group();
}

/// The points without those that lie within a pixel of the one before; the last is kept.
fn distinct(points: impl Iterator<Item = (f64, f64)>, (x, y): (&Placed, &Placed)) -> Vec<(f64, f64)> {
    let place = |point: (f64, f64)| (x.at(point.0), y.at(point.1));
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut left_out = None;
    for point in points {
        let is_near = |last: &(f64, f64)| {
            let ((x1, y1), (x2, y2)) = (place(*last), place(point));
            (x1 - x2).abs() < 1.0 && (y1 - y2).abs() < 1.0
        };
        left_out = kept.last().filter(|last| is_near(last)).map(|_| point);
        if left_out.is_none() {
            kept.push(point);
        }
    }
    kept.extend(left_out);
    kept
}

fn outline(points: &[(f64, f64)], (x, y): (&Placed, &Placed)) -> String {
    let mut outline = String::new();
    for (number, point) in points.iter().enumerate() {
        let letter = if number == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(outline, "{letter}{:.1} {:.1}", x.at(point.0), y.at(point.1));
    }
    outline
}

fn stroke(
    svg: &mut Svg,
    points: &[(f64, f64)],
    scales: (&Placed, &Placed),
    style: SeriesStyle,
    width: f64,
    series: &Series,
) {
    if points.len() < 2 {
        return;
    }
    let (colour, dash) = (style.colour, style.dash.pattern());
    let attributes = format!(
        "class=\"series\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\" stroke-linejoin=\"round\""
    );
    svg.shape(&outline(points, scales), &attributes, format!("{} {}", series.tag, series.name).trim());
}

fn area(svg: &mut Svg, points: &[(f64, f64)], scales: (&Placed, &Placed), style: SeriesStyle) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let (x, y) = scales;
    let base = y.pixels.0;
    let outline = format!("{}L{:.1} {base:.1}L{:.1} {base:.1}Z", outline(points, scales), x.at(last.0), x.at(first.0));
    svg.shape(&outline, &format!("fill=\"{}\" fill-opacity=\"0.12\"", style.colour), "");
}

/// The tags beside the ends of the lines, outside of the frame, moved apart where lines end close to each other.
fn tags(svg: &mut Svg, mut ends: Vec<(f64, &Series)>, (x, y): (&Placed, &Placed)) {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (top, bottom) = (y.pixels.1, y.pixels.0);
    let room = (bottom - top) / ends.len().max(1) as f64;
    let gap = TAG_GAP.min(room);
    let mut places: Vec<f64> = ends.iter().map(|end| end.0).collect();
    for number in 1..places.len() {
        places[number] = places[number].max(places[number - 1] + gap);
    }
    let mut limit = bottom + 4.0;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - gap;
    }
    for ((_, series), place) in ends.iter().zip(places) {
        let font = Font { size: SMALL.min(gap.max(7.0)), colour: SeriesStyle::of(series.style).colour, bold: true };
        svg.text((x.pixels.1 + 6.0, place + 4.0), Anchor::Start, font, &series.tag);
    }
}
