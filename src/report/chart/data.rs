//! The values of a chart as CSV.

use super::{Chart, Marks, Panel};
use crate::report::comma_separated::quoted;

/// A line for each value: panel, series, x and y, with the titles of the axes in the head. At the end, a line for each
/// series that has a letter: `name`, the letter, and its name.
pub fn csv(chart: &Chart) -> String {
    let mut csv = String::new();
    let mut titles = None;
    for panel in &chart.panels {
        if titles != Some((&panel.x.title, &panel.y.title)) {
            titles = Some((&panel.x.title, &panel.y.title));
            let named = |title: &str, other: &str| quoted(if title.is_empty() { other } else { title });
            csv += &format!("panel,series,{},{}\n", named(&panel.x.title, "name"), named(&panel.y.title, "value"));
        }
        lines(panel, &mut csv);
    }
    let mut named: Vec<&str> = Vec::new();
    for series in chart.panels.iter().flat_map(|panel| &panel.series).filter(|series| !series.tag.is_empty()) {
        if !named.contains(&series.tag.as_str()) {
            named.push(&series.tag);
            csv += &format!("name,{},{},\n", quoted(&series.tag), quoted(&series.name));
        }
    }
    csv
}

fn lines(panel: &Panel, csv: &mut String) {
    let mut line = |series: &str, x: String, y: String| {
        *csv += &format!("{},{},{},{}\n", quoted(&panel.title), quoted(series), quoted(&x), quoted(&y));
    };
    let name = |axis: &[String], number: usize| axis.get(number).cloned().unwrap_or_default();
    for series in &panel.series {
        // Names of paths are long: their letters stand for them, and a line for each says which.
        let label = if series.tag.is_empty() { &series.name } else { &series.tag };
        match &series.marks {
            Marks::Line { points, .. } | Marks::Area(points) => {
                for point in points.iter().filter(|point| point.0.is_finite() && point.1.is_finite()) {
                    line(label, shortest(point.0), shortest(point.1));
                }
            }
            Marks::Intervals(intervals) => {
                for (x, (low, high)) in intervals {
                    line(label, shortest(*x), format!("{} to {}", shortest(*low), shortest(*high)));
                }
            }
            Marks::Noted(points) => {
                for (x, y) in points {
                    line(label, shortest(*x), format!("{} has a note", shortest(*y)));
                }
            }
            Marks::Bars(values) => {
                for (number, value) in values.iter().enumerate() {
                    line(label, name(&panel.x.names, number), value.map_or(String::new(), shortest));
                }
            }
            Marks::Paper { bounds, .. } => {
                for (number, (low, high)) in
                    bounds.iter().enumerate().filter_map(|(number, bounds)| Some((number, (*bounds)?)))
                {
                    let value =
                        if low == high { shortest(low) } else { format!("{} to {}", shortest(low), shortest(high)) };
                    line(label, name(&panel.x.names, number), value);
                }
            }
            Marks::Rows(rows) => {
                for (number, row) in rows.iter().enumerate() {
                    let values = [
                        ("the paper, least", row.low),
                        ("the paper, most", row.high),
                        (label.as_str(), Some(row.ours)),
                    ];
                    for (label, value) in values {
                        line(label, value.map_or(String::new(), shortest), name(&panel.y.names, number));
                    }
                }
            }
        }
    }
}

/// The shortest text of at most six digits.
fn shortest(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    format!("{rounded}")
}
