//! A picture of a log-structured volume: its segments coloured by group, their utilization, and the hotness of the
//! groups.

use crate::report::chart::{
    Anchor, Axis, Chart, Colour, Font, Panel, Series, SeriesStyle, Svg, Width, fitted, standalone, text_width,
};

/// The height above the map without its legend, and a line of the legend, in pixels.
const HEAD: f64 = 26.0;
const LEGEND_LINE: f64 = 18.0;
/// The largest and the smallest cell of the map.
const LARGEST_CELL: f64 = 24.0;
const SMALLEST_CELL: f64 = 3.0;
/// Bins of the histogram.
const BINS: usize = 10;

/// The use of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentUse {
    /// Free.
    Free,
    /// Metadata.
    Metadata,
    /// File data, of one group or, for `None`, of several.
    Data(Option<u8>),
}

/// A segment in the picture.
#[derive(Clone, Copy, Debug)]
pub struct SegmentCell {
    /// Its use.
    pub used_for: SegmentUse,
    /// Live blocks over capacity.
    pub utilization: f64,
}

/// A group in the picture.
#[derive(Clone, Debug)]
pub struct GroupBar {
    /// Its name.
    pub name: String,
    /// Its hotness.
    pub hotness: f64,
}

fn colour(used_for: SegmentUse) -> Colour {
    match used_for {
        SegmentUse::Free => Colour::Grid,
        SegmentUse::Metadata => Colour::Ink,
        SegmentUse::Data(None) => Colour::Rest,
        SegmentUse::Data(Some(group)) => SeriesStyle::of(usize::from(group)).colour,
    }
}

/// The picture as a file of SVG.
pub fn segments(title: &str, cells: &[SegmentCell], groups: &[GroupBar]) -> String {
    let width = Width::Wide.pixels();
    let mut svg = Svg::new("segments", Width::Wide);
    svg.text((0.0, 16.0), Anchor::Start, Font::TITLE, &fitted(title, Font::TITLE.size, width));
    let top = draw_legend(&mut svg, cells, width);
    let count = cells.len().max(1) as f64;
    // The map is as wide as the picture, and at most half as high.
    let cell = (width * width / 2.0 / count).sqrt().floor().clamp(SMALLEST_CELL, LARGEST_CELL);
    let columns = (width / cell).floor().max(1.0) as usize;
    for (number, segment) in cells.iter().enumerate() {
        let place = ((number % columns) as f64 * cell, top + (number / columns) as f64 * cell);
        draw_cell(&mut svg, segment, place, cell - 1.0);
    }
    let below = top + cells.len().div_ceil(columns) as f64 * cell + 16.0;
    let charts = Chart::new("segments-charts", "", vec![utilization(cells), hotness(groups)]).svg(Width::Wide);
    let height = svg.nested(&charts, below);
    standalone(&svg.finish((width, below + height), title))
}

/// A segment, filled from below up to its utilization, on a pale ground of its colour.
fn draw_cell(svg: &mut Svg, segment: &SegmentCell, (x, y): (f64, f64), side: f64) {
    let of = colour(segment.used_for);
    if segment.used_for == SegmentUse::Free {
        svg.rectangle((x, y, side, side), &of.to_string(), "");
        return;
    }
    let full = side * segment.utilization.clamp(0.0, 1.0);
    svg.rectangle((x, y, side, side), &format!("{of}\" fill-opacity=\"0.25"), "");
    svg.rectangle((x, y + side - full, side, full), &of.to_string(), "");
}

/// Draws the legend of the map in as many lines as it needs; returns its lower end.
fn draw_legend(svg: &mut Svg, cells: &[SegmentCell], width: f64) -> f64 {
    let (mut x, mut y) = (0.0, HEAD);
    for (name, used_for) in legend(cells) {
        let room = text_width(&name, Font::PLAIN.size) + 18.0;
        if x > 0.0 && x + room > width {
            (x, y) = (0.0, y + LEGEND_LINE);
        }
        svg.rectangle((x, y + 2.0, 12.0, 12.0), &colour(used_for).to_string(), "");
        svg.text((x + 17.0, y + 12.0), Anchor::Start, Font::PLAIN, &name);
        x += room + 16.0;
    }
    y + LEGEND_LINE + 6.0
}

/// The legend of the colours in use.
fn legend(cells: &[SegmentCell]) -> Vec<(String, SegmentUse)> {
    let has = |used_for: &SegmentUse| cells.iter().any(|cell| cell.used_for == *used_for);
    let groups = (0..=u8::MAX).map(|group| (format!("group {group}"), SegmentUse::Data(Some(group))));
    let others =
        [("several groups", SegmentUse::Data(None)), ("metadata", SegmentUse::Metadata), ("free", SegmentUse::Free)];
    groups
        .chain(others.map(|(name, used_for)| (name.to_string(), used_for)))
        .filter(|(_, used_for)| has(used_for))
        .collect()
}

/// The histogram of the utilization of data segments.
fn utilization(cells: &[SegmentCell]) -> Panel {
    let mut bins = [0.0; BINS];
    for cell in cells.iter().filter(|cell| matches!(cell.used_for, SegmentUse::Data(_))) {
        bins[((cell.utilization * BINS as f64) as usize).min(BINS - 1)] += 1.0;
    }
    let names = (0..BINS).map(|bin| format!("{}", bin * 100 / BINS)).collect();
    bars("Utilization of the segments with data", ("utilization, % from", names), "segments", bins.map(Some).to_vec())
}

fn hotness(groups: &[GroupBar]) -> Panel {
    let names = groups.iter().map(|group| group.name.clone()).collect();
    let values = groups.iter().map(|group| Some(group.hotness)).collect();
    bars("Hotness of the groups", ("group", names), "writes per tick", values)
}

fn bars(title: &str, (what, names): (&str, Vec<String>), unit: &str, values: Vec<Option<f64>>) -> Panel {
    let mut panel = Panel::new(title, Axis::names(what, names), Axis::linear(unit));
    panel.series.push(Series::bars(0, "", values));
    panel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_each_segment_and_names_only_the_uses_that_occur() {
        let cell = |used_for, utilization| SegmentCell { used_for, utilization };
        let mut cells = vec![cell(SegmentUse::Free, 0.0); 90];
        cells.extend([cell(SegmentUse::Data(Some(2)), 0.5), cell(SegmentUse::Metadata, 1.0)]);
        let groups = [GroupBar { name: "2".to_string(), hotness: 0.25 }];
        let svg = segments("a <volume>", &cells, &groups);
        assert!(svg.contains("a &lt;volume&gt;") && svg.contains("group 2") && !svg.contains("group 1"));
        let fewer = segments("a <volume>", &cells[1..], &groups);
        assert_eq!(svg.matches("<rect").count(), fewer.matches("<rect").count() + 1);
        assert!(!segments("none", &[], &[]).contains("NaN"));
    }
}
