//! A picture of a log-structured volume: its segments coloured by group, their utilization, and the hotness of the
//! groups.

use super::Panel;
use super::plot::{COLOURS, Drawn, draw};
use plotters::prelude::*;

/// The width of the picture and the height of its two charts, in pixels.
const WIDTH: u32 = 900;
const CHARTS: u32 = 320;
/// The height above the map, and its margin.
const HEAD: u32 = 64;
const MARGIN: u32 = 16;
/// The largest cell of the map.
const LARGEST_CELL: u32 = 24;
/// Bins of the histogram.
const BINS: usize = 10;

const METADATA: RGBColor = RGBColor(0x22, 0x22, 0x22);
const SEVERAL: RGBColor = RGBColor(0x99, 0x99, 0x99);
const FREE: RGBColor = RGBColor(0xee, 0xee, 0xee);

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

fn colour(used_for: SegmentUse) -> RGBColor {
    match used_for {
        SegmentUse::Free => FREE,
        SegmentUse::Metadata => METADATA,
        SegmentUse::Data(None) => SEVERAL,
        // The last colours are for the hottest groups.
        SegmentUse::Data(Some(group)) => COLOURS[usize::from(group) % COLOURS.len()],
    }
}

/// The picture as SVG. Errors are the drawing library's.
pub fn segments(title: &str, cells: &[SegmentCell], groups: &[GroupBar]) -> Result<String, String> {
    let count = cells.len().max(1) as u32;
    let room = WIDTH - 2 * MARGIN;
    // The map is as wide as the picture, and at most half as high.
    let cell = f64::from(room * room / 2 / count).sqrt().floor().clamp(3.0, f64::from(LARGEST_CELL)) as u32;
    let columns = room / cell;
    let height = HEAD + count.div_ceil(columns) * cell + MARGIN;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height + CHARTS)).into_drawing_area();
        let drawn = || -> Drawn {
            area.fill(&WHITE)?;
            let (map, charts) = area.split_vertically(height);
            draw_map(&map, title, cells, (columns, cell))?;
            let panels = [utilization(cells), hotness(groups)];
            for ((place, panel), unit) in
                charts.split_evenly((1, 2)).iter().zip(&panels).zip(["segments", "writes per tick"])
            {
                draw(place, panel, unit)?;
            }
            area.present()
        };
        drawn().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

fn draw_map<'a>(
    place: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
    title: &str,
    cells: &[SegmentCell],
    (columns, cell): (u32, u32),
) -> Drawn<'a> {
    let left = MARGIN as i32;
    place.draw_text(title, &("sans-serif", 16).into_text_style(place), (left, 10))?;
    let mut at = left;
    for (name, used_for) in legend(cells) {
        let box_ = [(at, 38), (at + 11, 49)];
        place.draw(&Rectangle::new(box_, colour(used_for).filled()))?;
        place.draw_text(&name, &("sans-serif", 12).into_text_style(place), (at + 16, 37))?;
        at += 36 + 7 * name.len() as i32;
    }
    for (number, segment) in (0..).zip(cells) {
        let (x, y) = (MARGIN + number % columns * cell, HEAD + number / columns * cell);
        let (x, y, side) = (x as i32, y as i32, cell as i32 - 1);
        place.draw(&Rectangle::new([(x, y), (x + side, y + side)], FREE.filled()))?;
        if segment.used_for != SegmentUse::Free {
            // Filled from below up to its utilization, on a pale background of its colour.
            let of = colour(segment.used_for);
            let full = (f64::from(side) * segment.utilization.clamp(0.0, 1.0)).round() as i32;
            place.draw(&Rectangle::new([(x, y), (x + side, y + side)], of.mix(0.25).filled()))?;
            place.draw(&Rectangle::new([(x, y + side - full), (x + side, y + side)], of.filled()))?;
        }
    }
    Ok(())
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
    let name = |bin: usize| format!("{}", bin * 100 / BINS);
    Panel {
        title: "utilization, % from".to_string(),
        series: vec!["with data".to_string()],
        groups: bins.iter().enumerate().map(|(bin, count)| (name(bin), vec![Some(*count)])).collect(),
    }
}

fn hotness(groups: &[GroupBar]) -> Panel {
    Panel {
        title: "hotness of the groups".to_string(),
        series: vec!["hotness".to_string()],
        groups: groups.iter().map(|group| (group.name.clone(), vec![Some(group.hotness)])).collect(),
    }
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
        let svg = segments("a <volume>", &cells, &groups).unwrap();
        assert!(svg.contains("a &lt;volume&gt;") && svg.contains("group 2") && !svg.contains("group 1"));
        let fewer = segments("a <volume>", &cells[1..], &groups).unwrap();
        assert_eq!(svg.matches("<rect").count(), fewer.matches("<rect").count() + 1);
        segments("none", &[], &[]).unwrap();
    }
}
