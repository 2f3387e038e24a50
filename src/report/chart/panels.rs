//! The grid of panels. Axes with the same title have a common scale, so that panels can be compared by eye.

use super::axes::{self, Frame};
use super::ranges::{Ranges, ranges};
use super::scale::Placed;
use super::svg::{Anchor, Font, LINE_HEIGHT};
use super::{Chart, Marks, Panel, Svg, Width, bars, legend, lines, text};

/// The distance of panels.
const GAP: f64 = 18.0;

/// The height of the marks of a panel, by the number of columns.
fn marks_height(columns: usize) -> f64 {
    match columns {
        1 => 250.0,
        2 => 210.0,
        _ => 170.0,
    }
}

/// The number of columns.
fn columns(chart: &Chart, width: Width) -> usize {
    let has_rows = |panel: &Panel| panel.series.iter().any(|series| matches!(series.marks, Marks::Rows(_)));
    match (width, chart.panels.iter().filter(|panel| !has_rows(panel)).count()) {
        (Width::Narrow, _) | (_, 0 | 1) => 1,
        (_, 2 | 4) => 2,
        _ => 3,
    }
}

/// The chart as SVG.
pub fn draw(chart: &Chart, width: Width) -> String {
    let mut svg = Svg::new(&chart.name, width);
    let columns = columns(chart, width);
    let room = width.pixels();
    let mut top = legend::draw(&mut svg, chart, room, 2.0) + 4.0;
    let (wide, grid): (Vec<&Panel>, Vec<&Panel>) = chart.panels.iter().partition(|panel| is_wide(panel));
    let column = (room - GAP * (columns - 1) as f64) / columns as f64;
    for row in grid.chunks(columns) {
        // Panels of a row have their frames on one line: the tallest title and the tallest names decide.
        let titles: Vec<Vec<String>> =
            row.iter().map(|panel| text::wrapped(&panel.title, Font::TITLE.size, column)).collect();
        let head = titles.iter().map(Vec::len).max().unwrap_or(0) as f64 * LINE_HEIGHT + 8.0;
        let placed: Vec<Ranges> = row.iter().map(|panel| ranges(chart, panel)).collect();
        let margins = row
            .iter()
            .zip(&placed)
            .map(|(panel, of)| axes::margins(panel, of, (column, marks_height(columns))))
            .reduce(axes::Margins::larger);
        let Some(margins) = margins else { continue };
        for (place, panel) in row.iter().enumerate() {
            let left = place as f64 * (column + GAP);
            title(&mut svg, &titles[place], (left, top));
            let frame = Frame::new((left, top + head), (column, marks_height(columns)), &margins);
            one(&mut svg, panel, &placed[place], &frame);
        }
        top += head + marks_height(columns) + margins.bottom + GAP;
    }
    for panel in wide {
        let lines = text::wrapped(&panel.title, Font::TITLE.size, room);
        title(&mut svg, &lines, (0.0, top));
        top += lines.len() as f64 * LINE_HEIGHT + 10.0;
        top += bars::rows(&mut svg, panel, &ranges(chart, panel), (room, top)) + GAP;
    }
    svg.finish((room, top - GAP + 4.0), &chart.summary)
}

/// True for a panel of rows, which has the whole width.
fn is_wide(panel: &Panel) -> bool {
    panel.series.iter().any(|series| matches!(series.marks, Marks::Rows(_)))
}

fn title(svg: &mut Svg, lines: &[String], (left, top): (f64, f64)) {
    for (number, line) in lines.iter().enumerate() {
        svg.text((left, top + (number + 1) as f64 * LINE_HEIGHT - 3.0), Anchor::Start, Font::TITLE, line);
    }
}

fn one(svg: &mut Svg, panel: &Panel, ranges: &Ranges, frame: &Frame) {
    let (x, y) = frame.scales(panel, ranges);
    axes::draw(svg, panel, &x, &y, frame);
    bars::draw(svg, panel, &x, &y);
    lines::draw(svg, panel, &x, &y);
}

impl Frame {
    /// The scales of a panel in this frame.
    pub fn scales<'a>(&self, panel: &'a Panel, ranges: &Ranges) -> (Placed<'a>, Placed<'a>) {
        let x = Placed { axis: &panel.x, range: ranges.x, pixels: (self.left, self.right) };
        let y = Placed { axis: &panel.y, range: ranges.y, pixels: (self.bottom, self.top) };
        (x, y)
    }
}
