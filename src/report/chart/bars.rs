//! Bars side by side, what a paper says of them, and rows that compare a paper's numbers with ours.

use super::ranges::Ranges;
use super::scale::Placed;
use super::svg::{Anchor, Font, LINE_HEIGHT, SMALL};
use super::{Colour, Marks, Panel, Row, SeriesStyle, Svg, text};

/// The share of a slot that is free between groups of bars.
const FREE: f64 = 0.24;

/// A lower bar, in pixels, is hardly seen: its number stands above it.
const LEAST_HEIGHT: f64 = 2.0;

/// Draws the bars of a panel.
pub fn draw(svg: &mut Svg, panel: &Panel, x: &Placed, y: &Placed) {
    let count = panel.series.iter().filter(|series| matches!(series.marks, Marks::Bars(_))).count();
    let base = y.at(0.0f64.clamp(y.range.0, y.range.1));
    let place = |name: usize, bar: usize| {
        let (start, size) = x.slot(name);
        let width = size * (1.0 - FREE) / count.max(1) as f64;
        (start + size * FREE / 2.0 + bar as f64 * width, width)
    };
    let bars = panel.series.iter().filter_map(|series| match &series.marks {
        Marks::Bars(values) => Some((series, values)),
        _ => None,
    });
    let mut low = Vec::new();
    for (bar, (series, values)) in bars.enumerate() {
        for (name, value) in values.iter().enumerate() {
            let Some(value) = value.filter(|value| y.axis.holds(*value)) else { continue };
            let ((left, width), top) = (place(name, bar), y.at(value));
            let of = x.axis.names.get(name).map_or("", String::as_str);
            let number = (y.axis.label)(value);
            let title = format!("{of}, {}: {number}", series.name);
            fill(svg, (left + 0.5, top.min(base), width - 1.0, (top - base).abs()), series.style, &title);
            if (top - base).abs() < LEAST_HEIGHT {
                low.push((left + width / 2.0, width, number));
            }
        }
    }
    write_numbers(svg, &low, base - 5.0);
    for series in &panel.series {
        let Marks::Paper { beside, bounds } = &series.marks else { continue };
        for (name, bounds) in bounds.iter().enumerate() {
            let Some((low, high)) = bounds.filter(|(low, high)| y.axis.holds(*low) && y.axis.holds(*high)) else {
                continue;
            };
            let (left, width) = place(name, *beside);
            let title = format!("{}: {} to {}", series.name, (y.axis.label)(low), (y.axis.label)(high));
            paper(svg, (left, left + width), (y.at(low), y.at(high)), &title);
        }
    }
}

/// Writes the numbers of bars (middle, width, number): across, or all upwards if one is wider than its bar; not at all
/// if the bars are narrower than a line is high.
fn write_numbers(svg: &mut Svg, bars: &[(f64, f64, String)], baseline: f64) {
    let fits = bars.iter().all(|(_, width, number)| text::width(number, SMALL) < width - 2.0);
    for (middle, width, number) in bars {
        if fits {
            svg.text((*middle, baseline), Anchor::Middle, Font::SMALL, number);
        } else if *width >= SMALL {
            svg.turned((middle + SMALL / 3.0, baseline), -90.0, Anchor::Start, Font::SMALL, number);
        }
    }
}

/// A bar in the style of a series: left, top, width, height.
pub fn fill(svg: &mut Svg, place: (f64, f64, f64, f64), series: usize, title: &str) {
    let style = SeriesStyle::of(series);
    svg.rectangle(place, &style.colour.to_string(), title);
    if let Some(hatching) = style.hatching {
        let fill = svg.hatched(hatching, Colour::Card);
        svg.rectangle(place, &fill, title);
    }
}

/// The paper's value: a line with an outline, from left to right at one height, or a box between two.
pub fn paper(svg: &mut Svg, (left, right): (f64, f64), (low, high): (f64, f64), title: &str) {
    let (top, height) = (low.min(high), (low - high).abs());
    if height < 3.0 {
        let middle = top + height / 2.0;
        svg.rectangle((left - 1.0, middle - 2.5, right - left + 2.0, 5.0), &Colour::Card.to_string(), title);
        svg.rectangle((left, middle - 1.5, right - left, 3.0), &Colour::Paper.to_string(), title);
        return;
    }
    let outline = format!("M{left:.1} {top:.1}H{right:.1}V{:.1}H{left:.1}Z", top + height);
    svg.shape(
        &outline,
        &format!("fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"4 2\"", Colour::Paper),
        title,
    );
}

/// The width of the names of rows, as a share of the figure.
const NAMES: f64 = 0.42;

/// Draws a panel of rows, and returns its height.
pub fn rows(svg: &mut Svg, panel: &Panel, ranges: &Ranges, (width, top): (f64, f64)) -> f64 {
    let Some((series, rows)) = panel.series.iter().find_map(|series| match &series.marks {
        Marks::Rows(rows) => Some((series, rows)),
        _ => None,
    }) else {
        return 0.0;
    };
    let names = width * NAMES;
    let x = Placed { axis: &panel.x, range: ranges.x, pixels: (names + 12.0, width - 14.0) };
    let lines: Vec<Vec<String>> = panel.y.names.iter().map(|name| text::wrapped(name, SMALL, names - 4.0)).collect();
    let heights = lines.iter().map(|lines| lines.len().max(1) as f64 * (LINE_HEIGHT - 2.0) + 7.0);
    let bottom = top + heights.clone().sum::<f64>() + 2.0;
    let mut free_from = f64::NEG_INFINITY;
    for (value, label) in x.ticks(6) {
        let (at, half) = (x.at(value), text::width(&label, SMALL) / 2.0);
        svg.line((at, top), (at, bottom), if value == 1.0 { Colour::Line } else { Colour::Grid }, 1.0);
        if at - half > free_from {
            svg.text((at, bottom + LINE_HEIGHT), Anchor::Middle, Font::SMALL, &label);
            free_from = at + half + 6.0;
        }
    }
    let mut row_top = top;
    for ((lines, height), row) in lines.iter().zip(heights).zip(rows) {
        for (number, line) in lines.iter().enumerate() {
            svg.text(
                (0.0, row_top + 13.0 + number as f64 * (LINE_HEIGHT - 2.0)),
                Anchor::Start,
                Font { size: SMALL, ..Font::PLAIN },
                line,
            );
        }
        row_marks(svg, row, &x, row_top + height / 2.0, &series.name);
        row_top += height;
    }
    let title = text::wrapped(&panel.x.title, Font::PLAIN.size, width - names - 12.0);
    for (number, line) in title.iter().enumerate() {
        let at = ((x.pixels.0 + x.pixels.1) / 2.0, bottom + (number + 2) as f64 * LINE_HEIGHT + 2.0);
        svg.text(at, Anchor::Middle, Font::PLAIN, line);
    }
    bottom - top + (title.len() + 1) as f64 * LINE_HEIGHT + 8.0
}

/// The paper's bounds, open to the side that has none, and our value.
fn row_marks(svg: &mut Svg, row: &Row, x: &Placed, middle: f64, name: &str) {
    let at = |value: Option<f64>, end: f64| value.filter(|value| x.axis.holds(*value)).map_or(end, |value| x.at(value));
    let (left, right) = (at(row.low, x.pixels.0), at(row.high, x.pixels.1));
    if row.low.is_some() || row.high.is_some() {
        if (right - left).abs() < 3.0 {
            svg.rectangle((left - 1.5, middle - 6.0, 3.0, 12.0), &Colour::Paper.to_string(), "the paper");
        } else {
            svg.rectangle(
                (left, middle - 5.0, right - left, 10.0),
                &format!("{}\" fill-opacity=\"0.16", Colour::Paper),
                "the paper",
            );
            for (bound, edge) in [(row.low, left), (row.high, right)] {
                if bound.is_some() {
                    svg.rectangle((edge - 1.5, middle - 6.0, 3.0, 12.0), &Colour::Paper.to_string(), "the paper");
                }
            }
        }
    }
    if x.axis.holds(row.ours) {
        let title = format!("{name}: {}", (x.axis.label)(row.ours));
        let ours = ((x.at(row.ours), middle), title);
        SeriesStyle::of(0).marker.draw(svg, Colour::Series(0), std::iter::once(ours));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Chart, Series, Width};
    use super::*;

    /// Beside 573 MiB/s, bars of 0.12 MiB/s looked like missing ones.
    #[test]
    fn a_bar_too_low_to_see_has_its_number_above_it() {
        let bars = |count: usize| {
            let names = (0..count).map(|name| format!("load {name}")).collect();
            let mut panel = Panel::new("", Axis::names("", names), Axis::linear("MiB/s"));
            let values = (0..count).map(|name| Some(if name == 0 { 573.0 } else { 0.125 })).collect();
            panel.series.push(Series::bars(0, "throughput", values));
            Chart::new("bars", "", vec![panel]).svg(Width::Wide)
        };
        let written = |svg: &str| svg.matches(">0.125</text>").count();
        assert_eq!((written(&bars(4)), bars(4).contains(">573</text>")), (3, false), "only of the low ones");
        assert!(bars(40).contains("rotate(-90"), "upwards where bars are narrow");
        assert_eq!(written(&bars(400)), 0, "no room");
    }
}
