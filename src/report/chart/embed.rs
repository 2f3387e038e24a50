//! A chart on a page: for wide and for narrow screens, with its values, and buttons that save both as files.

use super::{Chart, PathPicture, Width, paint};
use crate::report::escape::escape;

/// The script of a page with charts: it saves them.
pub const SCRIPT: &str = include_str!("embed.js");

/// The style of a page with charts.
pub fn css() -> String {
    paint::declarations() + include_str!("embed.css")
}

/// The chart as an element of a page that has [`css`] and [`SCRIPT`].
pub fn embedded(chart: &Chart) -> String {
    drawn(&chart.name, &chart.svg(Width::Wide), &chart.svg(Width::Narrow), &chart.csv())
}

/// The picture of a path as an element of such a page.
pub fn embedded_path(picture: &PathPicture) -> String {
    drawn(picture.name(), &picture.svg(Width::Wide), &picture.svg(Width::Narrow), &picture.csv())
}

/// A figure that is drawn in both widths, as an element of a page. Without scripts the buttons do nothing, so that the
/// script shows them.
fn drawn(name: &str, wide: &str, narrow: &str, csv: &str) -> String {
    // Each line for itself: line ends are kept.
    let values: Vec<String> = csv.lines().map(escape).collect();
    format!(
        "<div class=\"chart\" data-name=\"{name}\"><div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>\
         <div class=\"save\" hidden><button type=\"button\" data-save=\"svg\">Save as SVG</button> \
         <button type=\"button\" data-save=\"csv\">Save as CSV</button></div>\
         <pre class=\"values\" hidden>{}\n</pre></div>\n",
        values.join("\n"),
        name = escape(name),
    )
}
