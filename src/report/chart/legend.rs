//! The legend: an entry for each series, in columns above the panels.

use super::svg::{Anchor, Font, LINE_HEIGHT, TEXT};
use super::{Chart, Colour, Marks, SeriesStyle, Svg, text};

/// The width of the sample in front of an entry, and the distance of columns.
const SAMPLE: f64 = 30.0;
const COLUMN_GAP: f64 = 22.0;

/// The sample in front of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    Line(usize),
    Area(usize),
    Bar(usize),
    Paper,
    Ours,
}

/// An entry.
struct Entry {
    sample: Sample,
    text: String,
}

fn entries(chart: &Chart) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for series in chart.panels.iter().flat_map(|panel| &panel.series) {
        let sample = match series.marks {
            Marks::Line { .. } => Sample::Line(series.style),
            Marks::Area(_) => Sample::Area(series.style),
            // The entry of the series around which they are is theirs.
            Marks::Intervals(_) | Marks::Noted(_) => continue,
            Marks::Bars(_) => Sample::Bar(series.style),
            Marks::Paper { .. } => Sample::Paper,
            Marks::Rows(_) => Sample::Ours,
        };
        let text = match series.tag.as_str() {
            "" => series.name.clone(),
            tag => format!("{tag}  {}", series.name),
        };
        if matches!(sample, Sample::Ours) && !entries.iter().any(|entry| entry.sample == Sample::Paper) {
            entries.push(Entry { sample: Sample::Paper, text: "the paper".to_string() });
        }
        if !text.is_empty()
            && !entries.iter().any(|entry| entry.sample == sample && (entry.text == text || sample == Sample::Paper))
        {
            entries.push(Entry { sample, text });
        }
    }
    entries
}

/// Draws the legend below `top`, and returns its height; 0 if one series alone has no name.
pub fn draw(svg: &mut Svg, chart: &Chart, width: f64, top: f64) -> f64 {
    let entries = entries(chart);
    if entries.is_empty() {
        return 0.0;
    }
    let widest = entries.iter().map(|entry| text::width(&entry.text, TEXT)).fold(0.0, f64::max) + SAMPLE + 8.0;
    let columns =
        ((width + COLUMN_GAP) / (widest.min(width) + COLUMN_GAP)).floor().clamp(1.0, entries.len() as f64) as usize;
    let rows = entries.len().div_ceil(columns);
    let column = if columns == 1 { width } else { widest + COLUMN_GAP };
    for (number, entry) in entries.iter().enumerate() {
        let (x, y) =
            ((number / rows) as f64 * column, top + (number % rows) as f64 * (LINE_HEIGHT + 2.0) + LINE_HEIGHT - 4.0);
        sample(svg, entry.sample, (x, y - 4.0));
        let fitted = text::fitted(&entry.text, TEXT, column - SAMPLE - 8.0);
        svg.text((x + SAMPLE + 8.0, y), Anchor::Start, Font::PLAIN, &fitted);
    }
    rows as f64 * (LINE_HEIGHT + 2.0) + 6.0
}

fn sample(svg: &mut Svg, sample: Sample, (x, y): (f64, f64)) {
    match sample {
        Sample::Line(number) => {
            let style = SeriesStyle::of(number);
            let (colour, dash) = (style.colour, style.dash.pattern());
            svg.shape(
                &format!("M{x:.1} {y:.1}h{SAMPLE}"),
                &format!("stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\""),
                "",
            );
            style.marker.draw(svg, colour, std::iter::once(((x + SAMPLE / 2.0, y), String::new())));
        }
        Sample::Area(number) => {
            let style = SeriesStyle::of(number);
            let (colour, dash) = (style.colour, style.dash.pattern());
            svg.rectangle((x, y - 4.0, SAMPLE, 9.0), &format!("{colour}\" fill-opacity=\"0.18"), "");
            svg.shape(
                &format!("M{x:.1} {:.1}h{SAMPLE}", y - 4.0),
                &format!("stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\""),
                "",
            );
        }
        Sample::Bar(number) => super::bars::fill(svg, (x + SAMPLE - 16.0, y - 5.0, 16.0, 10.0), number, ""),
        Sample::Paper => super::bars::paper(svg, (x + SAMPLE - 16.0, x + SAMPLE), (y, y), ""),
        Sample::Ours => {
            let style = SeriesStyle::of(0);
            style.marker.draw(svg, Colour::Series(0), std::iter::once(((x + SAMPLE - 8.0, y), String::new())));
        }
    }
}
