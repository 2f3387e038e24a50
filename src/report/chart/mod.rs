//! Charts as SVG: the one chart library of the report, of reproduced figures and of volume pictures.
//!
//! A [`Chart`] has panels; a [`Panel`] has two axes and series of lines or bars:
//!
//! ```text
//! let mut panel = Panel::new("", Axis::linear("written by the host, GiB"), Axis::linear("write amplification"));
//! panel.series.push(Series::line(0, "A", "page/nand", vec![(0.0, 1.0), (1.0, 1.3)]));
//! let chart = Chart::new("amplification", "Write amplification by path", vec![panel]);
//! chart.svg(Width::Wide); chart.svg(Width::Narrow); chart.csv(); standalone(&chart.svg(Width::Wide));
//! ```
//!
//! | part | what it is |
//! |---|---|
//! | `mod.rs` | a chart, its panels and series |
//! | `paint` | colours for light and dark pages |
//! | `style`, `hatching` | the colour, dash, marker and hatching of a series |
//! | `svg` | the writer of elements |
//! | `text` | widths of texts, wrapping |
//! | `scale` | axes, scales and ticks |
//! | `legend` | the legend, above the panels |
//! | `ranges` | the ranges of axes, common to panels that are compared |
//! | `panels` | the grid of panels |
//! | `axes` | a panel's frame: grid, ticks, titles |
//! | `lines`, `bars` | the marks |
//! | `data` | the numbers as CSV |
//! | `flow` | the picture of a path |
//! | `embed` | a chart on a page, with buttons that save it |
//!
//! Colours are written as CSS properties of the page; [`standalone`] replaces them for a file. No text is placed over a
//! mark: legends, titles and labels have room of their own.

mod axes;
mod bars;
mod data;
mod embed;
mod flow;
mod hatching;
mod legend;
mod lines;
mod paint;
mod panels;
mod ranges;
mod scale;
mod style;
mod svg;
mod text;

pub use embed::{SCRIPT, css, embedded, embedded_path};
pub use flow::{PathPicture, absorbed, pictures};
pub use hatching::Hatching;
pub use paint::{Colour, standalone};
pub use scale::{Axis, Scale};
pub use style::SeriesStyle;
pub use svg::{Anchor, Font, Svg, Width};
pub use text::{fitted, width as text_width};

/// Panels with one legend.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its name on the page and of its files; letters, digits and hyphens.
    pub name: String,
    /// A summary for screen readers.
    pub summary: String,
    /// The panels in reading order. Axes with the same title have the same scale.
    pub panels: Vec<Panel>,
}

/// A part of a chart: two axes and what is drawn between them.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The title; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Lines or bars.
    pub series: Vec<Series>,
}

/// A series of values. Series of several panels with the same name and style have one entry in the legend.
#[derive(Clone, Debug)]
pub struct Series {
    /// The number of its style: see [`SeriesStyle::of`].
    pub style: usize,
    /// A letter or two for the end of its line and the legend; may be empty.
    pub tag: String,
    /// The name in the legend.
    pub name: String,
    /// The values.
    pub marks: Marks,
}

/// The values of a series, and how they are drawn. Values that are not finite are left out.
#[derive(Clone, Debug)]
pub enum Marks {
    /// A line through points of ascending x. It is thick from `thick_from` on.
    Line {
        /// The points.
        points: Vec<(f64, f64)>,
        /// The x from which on the line is thick.
        thick_from: Option<f64>,
    },
    /// A line with the area below it.
    Area(Vec<(f64, f64)>),
    /// Intervals of values around the points of another series: x, the lower and the upper end.
    Intervals(Vec<(f64, (f64, f64))>),
    /// A `*` above each of these points of another series: something beside the chart voids them, or may do so.
    Noted(Vec<(f64, f64)>),
    /// A bar for each name of the axis, beside the bars of the other series.
    Bars(Vec<Option<f64>>),
    /// A paper's values for the bars of another series: a value or bounds for each name of the axis.
    Paper {
        /// The series of the bars, counted among the series of bars.
        beside: usize,
        /// The lower and the upper bound.
        bounds: Vec<Option<(f64, f64)>>,
    },
    /// A paper's values in rows of their own, and our value in each: the axis of names is the vertical one.
    Rows(Vec<Row>),
}

/// A row of [`Marks::Rows`], in units of the horizontal axis.
#[derive(Clone, Debug)]
pub struct Row {
    /// The paper's lower bound, if any.
    pub low: Option<f64>,
    /// The paper's upper bound, if any.
    pub high: Option<f64>,
    /// Our value.
    pub ours: f64,
}

impl Chart {
    /// A chart of these panels.
    pub fn new(name: &str, summary: &str, panels: Vec<Panel>) -> Chart {
        Chart { name: name.to_string(), summary: summary.to_string(), panels }
    }

    /// The chart as SVG for a page that has the colours of [`css`].
    pub fn svg(&self, width: Width) -> String {
        panels::draw(self, width)
    }

    /// The values as CSV, one a line, with the titles of their panel and axes.
    pub fn csv(&self) -> String {
        data::csv(self)
    }
}

impl Marks {
    /// The number of points of a line.
    fn points(&self) -> usize {
        match self {
            Marks::Line { points, .. } => points.len(),
            Marks::Area(_)
            | Marks::Intervals(_)
            | Marks::Noted(_)
            | Marks::Bars(_)
            | Marks::Paper { .. }
            | Marks::Rows(_) => 0,
        }
    }
}

impl Panel {
    /// A panel without series.
    pub fn new(title: &str, x: Axis, y: Axis) -> Panel {
        Panel { title: title.to_string(), x, y, series: Vec::new() }
    }
}

impl Series {
    /// A line.
    pub fn line(style: usize, tag: &str, name: &str, points: Vec<(f64, f64)>) -> Series {
        let marks = Marks::Line { points, thick_from: None };
        Series { style, tag: tag.to_string(), name: name.to_string(), marks }
    }

    /// A series of bars.
    pub fn bars(style: usize, name: &str, values: Vec<Option<f64>>) -> Series {
        Series { style, tag: String::new(), name: name.to_string(), marks: Marks::Bars(values) }
    }
}
