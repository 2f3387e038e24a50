//! A figure as a chart: panels of grouped bars, or of points, and the paper's numbers beside ours.
//!
//! A claim about one bar, whose value is that of the claim, is drawn at the bar. The other claims, about ratios and
//! extremes, have a row each: the paper's number is 1 there, so that all rows have one axis.

use super::{Claim, Figure, Panel};
use crate::report::chart::{self, Axis, Chart, Marks, Row, Series, SeriesStyle, Width, standalone};

/// The end of the name of a series of the paper's values.
const PAPER_SERIES: &str = ", paper";
/// The name of the paper's values in the legend.
const PAPER: &str = "the paper";

/// The figure as a file of SVG.
pub fn plot(figure: &Figure) -> String {
    standalone(&chart(figure).svg(Width::Wide))
}

/// The figure as a chart for a page.
pub fn chart(figure: &Figure) -> Chart {
    let mut panels: Vec<chart::Panel> = figure.panels.iter().map(|panel| drawn(panel, figure)).collect();
    let mut of_rows = Vec::new();
    for claim in &figure.claims {
        if !place_at_bar(claim, figure, &mut panels) {
            of_rows.push(claim);
        }
    }
    panels.extend(rows(&of_rows));
    Chart::new(&figure.name, &figure.title, panels)
}

fn drawn(panel: &Panel, figure: &Figure) -> chart::Panel {
    match &panel.across {
        Some(across) => points(panel, across, figure),
        None => bars(panel, figure),
    }
}

/// The groups of a panel as points, each a series of its own with one style in the figure.
fn points(panel: &Panel, across: &str, figure: &Figure) -> chart::Panel {
    let unit = panel.unit.as_deref().unwrap_or(&figure.unit);
    let mut points = chart::Panel::new(&panel.title, Axis::log(across), Axis::linear(unit));
    let of_points = figure.panels.iter().filter(|panel| panel.across.is_some());
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in of_points.flat_map(|panel| &panel.groups) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for (name, values) in &panel.groups {
        if let [Some(x), Some(y), ..] = values[..] {
            let style = names.iter().position(|other| *other == name).unwrap_or_default();
            points.series.push(Series::line(style, "", name, vec![(x, y)]));
        }
    }
    points
}

/// The bars of a panel. A series without any value is left out.
fn bars(panel: &Panel, figure: &Figure) -> chart::Panel {
    let unit = panel.unit.as_deref().unwrap_or(&figure.unit);
    let names = panel.groups.iter().map(|(name, _)| name.clone()).collect();
    let x = Axis::names(panel.axis.as_deref().unwrap_or_default(), names);
    let mut bars = chart::Panel::new(&panel.title, x, Axis::linear(unit));
    for number in shown(panel) {
        let values = panel.groups.iter().map(|(_, values)| values.get(number).copied().flatten());
        bars.series.push(Series::bars(style(panel, number, figure), &panel.series[number], values.collect()));
    }
    bars
}

/// The numbers of the series with values.
fn shown(panel: &Panel) -> impl Iterator<Item = usize> + '_ {
    let has_values =
        |number: &usize| panel.groups.iter().any(|(_, values)| values.get(*number).is_some_and(Option::is_some));
    (0..panel.series.len()).filter(has_values)
}

/// The style of a series: one for each name in the figure. A series `X, paper` has that of `X, ours`, hatched.
fn style(panel: &Panel, number: usize, figure: &Figure) -> usize {
    let base =
        |name: &str| name.split_once(PAPER_SERIES).or(name.split_once(", ours")).map(|(base, _)| base.to_string());
    let Some(own) = base(&panel.series[number]) else {
        let mut names: Vec<&String> = Vec::new();
        for name in figure.panels.iter().flat_map(|panel| &panel.series) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        return names.iter().position(|name| **name == panel.series[number]).unwrap_or(number);
    };
    let mut bases: Vec<String> = panel.series.iter().filter_map(|name| base(name)).collect();
    bases.dedup();
    let place = bases.iter().position(|other| *other == own).unwrap_or(number);
    if panel.series[number].ends_with(PAPER_SERIES) { SeriesStyle::hatched(place) } else { place }
}

/// Draws a claim at the one bar that it is about; false if there is none.
fn place_at_bar(claim: &Claim, figure: &Figure, panels: &mut [chart::Panel]) -> bool {
    let (Some(low), Some(high), Some(ours)) = (claim.low, claim.high, claim.ours) else { return false };
    // A ratio is about two bars, and equals one of them by chance at most.
    if claim.says.contains(" over ") {
        return false;
    }
    let mut places = Vec::new();
    for (number, panel) in figure.panels.iter().enumerate().filter(|(_, panel)| panel.across.is_none()) {
        for (bar, series) in shown(panel).enumerate() {
            for (group, (_, values)) in panel.groups.iter().enumerate() {
                if values[series].is_some_and(|value| value.to_bits() == ours.to_bits()) {
                    places.push((number, bar, group));
                }
            }
        }
    }
    let [(number, bar, group)] = places[..] else { return false };
    if figure.panels[number].series.iter().any(|series| series.ends_with(PAPER_SERIES)) {
        // The paper's values are bars there.
        return true;
    }
    let groups = figure.panels[number].groups.len();
    let panel = &mut panels[number];
    let known =
        panel.series.iter().position(|series| matches!(series.marks, Marks::Paper { beside, .. } if beside == bar));
    let known = known.unwrap_or_else(|| {
        let marks = Marks::Paper { beside: bar, bounds: vec![None; groups] };
        panel.series.push(Series { style: 0, tag: String::new(), name: PAPER.to_string(), marks });
        panel.series.len() - 1
    });
    if let Marks::Paper { bounds, .. } = &mut panel.series[known].marks {
        bounds[group] = Some((low, high));
    }
    true
}

/// The panel of the claims that are about no single bar. A claim of zero has no ratio, and stands in the table alone.
fn rows(claims: &[&Claim]) -> Option<chart::Panel> {
    let mut names = Vec::new();
    let mut rows = Vec::new();
    for claim in claims {
        let is_positive = |value: &f64| *value > 0.0 && value.is_finite();
        let (low, high) = (claim.low.filter(is_positive), claim.high.filter(is_positive));
        let Some(ours) = claim.ours.filter(is_positive) else { continue };
        let one = match (low, high) {
            (Some(low), Some(high)) => (low * high).sqrt(),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => continue,
        };
        names.push(claim.says.clone());
        rows.push(Row { low: low.map(|low| low / one), high: high.map(|high| high / one), ours: ours / one });
    }
    if rows.is_empty() {
        return None;
    }
    let x = Axis::log("over the paper's number; of bounds, over their geometric mean");
    let x = Axis { includes: vec![0.5, 2.0], ..x };
    let mut panel = chart::Panel::new("What the paper says, and our value", x, Axis::names("claim", names));
    panel.series.push(Series { style: 0, tag: String::new(), name: "ours".to_string(), marks: Marks::Rows(rows) });
    Some(panel)
}
