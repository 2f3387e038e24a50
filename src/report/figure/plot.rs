//! A figure as a picture: panels of grouped bars.

use super::{Figure, Panel, markdown::heading};
use crate::report::number::three_digits;
use plotters::coord::ranged1d::SegmentValue;
use plotters::prelude::*;

/// The size of a panel, in pixels.
const PANEL: (u32, u32) = (420, 340);
/// The series' colours, in order; they differ in lightness too.
pub(super) const COLOURS: [RGBColor; 6] = [
    RGBColor(0x9e, 0xc3, 0xe6),
    RGBColor(0x3b, 0x7d, 0xb8),
    RGBColor(0xd9, 0x6b, 0x2b),
    RGBColor(0x5a, 0x5a, 0x5a),
    RGBColor(0x8a, 0xb1, 0x5e),
    RGBColor(0x7b, 0x52, 0xa0),
];
/// The heights of a panel's bars, and of a legend line above them, in pixels.
const BARS: f64 = 275.0;
const LEGEND_LINE: f64 = 16.0;
/// The share of a group's width left free between groups.
const GAP: f64 = 0.2;

/// The figure as SVG. Errors are the drawing library's, for impossible sizes only.
pub fn plot(figure: &Figure) -> Result<String, String> {
    let mut svg = String::new();
    let columns = figure.panels.len().clamp(1, 3) as u32;
    let rows = (figure.panels.len() as u32).div_ceil(columns).max(1);
    {
        let area = SVGBackend::with_string(&mut svg, (PANEL.0 * columns, PANEL.1 * rows)).into_drawing_area();
        let drawn = area.fill(&WHITE).map_err(|error| error.to_string());
        drawn?;
        for (place, panel) in area.split_evenly((rows as usize, columns as usize)).iter().zip(&figure.panels) {
            draw(place, panel, &figure.unit).map_err(|error| error.to_string())?;
        }
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

pub(super) type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Draws one panel.
pub(super) fn draw<'a>(
    place: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
    panel: &Panel,
    unit: &str,
) -> Drawn<'a> {
    let highest = panel.groups.iter().flat_map(|(_, values)| values).flatten().fold(0.0f64, |a, &b| a.max(b));
    let legend = LEGEND_LINE * (panel.series.len() + 1) as f64;
    let top = if highest > 0.0 { highest / (1.0 - (legend / BARS).min(0.5)) } else { 1.0 };
    let groups = panel.groups.len() as u32;
    let mut chart = ChartBuilder::on(place)
        .caption(heading(&panel.title, unit), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(62)
        .build_cartesian_2d((0..groups.saturating_sub(1)).into_segmented(), 0.0..top)?;
    let name = |value: &SegmentValue<u32>| match value {
        SegmentValue::CenterOf(group) => {
            panel.groups.get(*group as usize).map_or(String::new(), |(name, _)| name.clone())
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_label_formatter(&name)
        .y_labels(6)
        .y_label_formatter(&|value| three_digits(*value))
        .light_line_style(TRANSPARENT)
        .draw()?;
    // The segmented axis has no positions between groups: bars are drawn on a second axis that has.
    let mut chart = chart.set_secondary_coord(0.0..f64::from(groups), 0.0..top);
    let width = (1.0 - GAP) / panel.series.len().max(1) as f64;
    for (number, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let bars = panel.groups.iter().enumerate().filter_map(|(group, (_, values))| {
            let value = (*values.get(number)?)?;
            let left = group as f64 + GAP / 2.0 + number as f64 * width;
            Some(Rectangle::new([(left, 0.0), (left + width, value)], colour.filled()))
        });
        chart
            .draw_secondary_series(bars)?
            .label(series)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .label_font(("sans-serif", 12))
        .draw()
}
