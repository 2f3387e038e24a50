//! The ranges of the axes of panels.

use super::scale::roomy;
use super::{Axis, Chart, Marks, Panel};

/// The ranges of both axes of a panel.
pub struct Ranges {
    /// Of the horizontal axis.
    pub x: (f64, f64),
    /// Of the vertical axis.
    pub y: (f64, f64),
}

/// The ranges of a panel: those of all panels whose axis has the same title.
pub fn ranges(chart: &Chart, panel: &Panel) -> Ranges {
    let alike = |of: fn(&Panel) -> &Axis| chart.panels.iter().filter(move |other| of(other).title == of(panel).title);
    Ranges {
        x: panel.x.range(alike(|panel| &panel.x).flat_map(|panel| values(panel, true))),
        y: roomy(panel.y.range(alike(|panel| &panel.y).flat_map(|panel| values(panel, false))), panel.y.scale),
    }
}

/// All values of a panel on one of its axes.
fn values(panel: &Panel, horizontal: bool) -> Vec<f64> {
    let mut values = Vec::new();
    for series in &panel.series {
        match &series.marks {
            Marks::Line { points, .. } | Marks::Area(points) => {
                values.extend(points.iter().map(|point| if horizontal { point.0 } else { point.1 }));
            }
            Marks::Noted(points) => {
                values.extend(points.iter().map(|(x, y)| if horizontal { *x } else { *y }));
            }
            Marks::Intervals(intervals) if horizontal => values.extend(intervals.iter().map(|(x, _)| *x)),
            Marks::Intervals(intervals) => values.extend(intervals.iter().flat_map(|(_, (low, high))| [*low, *high])),
            Marks::Bars(bars) if !horizontal => values.extend(bars.iter().flatten()),
            Marks::Paper { bounds, .. } if !horizontal => {
                values.extend(bounds.iter().flatten().flat_map(|(low, high)| [*low, *high]));
            }
            Marks::Rows(rows) if horizontal => {
                values.extend(rows.iter().flat_map(|row| [row.low, row.high, Some(row.ours)]).flatten());
            }
            Marks::Bars(_) | Marks::Paper { .. } | Marks::Rows(_) => {}
        }
    }
    values.retain(|value| value.is_finite());
    values
}
