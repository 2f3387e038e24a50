//! Colours by role, for light and dark pages.
//!
//! The hues of contents and series are distinct in the common forms of colour blindness (after Okabe and Ito, and Tol).
//! No series is told by its colour alone: see [`SeriesStyle`](super::SeriesStyle).

use std::fmt::{Display, Formatter};

/// A colour by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text.
    Ink,
    /// Secondary text.
    Muted,
    /// The ground of a panel.
    Card,
    /// Axes.
    Line,
    /// Grid lines.
    Grid,
    /// Values of a paper.
    Paper,
    /// A content of the ledger, by its place in [`Content::ALL`](crate::label::Content::ALL).
    Content(usize),
    /// Contents that are not known.
    Rest,
    /// Erased flash.
    Erased,
    /// A series, by its number modulo `SERIES_COLOURS`.
    Series(usize),
}

/// The number of colours of series.
pub const SERIES_COLOURS: usize = 8;

/// Property, light value, dark value.
const TABLE: [(&str, &str, &str); 20] = [
    ("--ink", "#1a1c1f", "#e6e6e3"),
    ("--muted", "#5a5e66", "#a3a8b0"),
    ("--card", "#ffffff", "#1d2024"),
    ("--line", "#8d9197", "#6a7078"),
    ("--grid", "#e4e4e1", "#30343a"),
    ("--paper", "#111111", "#ffffff"),
    ("--data", "#0072b2", "#56b4e9"),
    ("--metadata", "#008a65", "#2fc296"),
    ("--journal", "#d55e00", "#f08a3c"),
    ("--mapping", "#aa4f84", "#e093be"),
    ("--rest", "#9a9fa6", "#646a73"),
    ("--erased", "#4d5259", "#b4b9c0"),
    ("--path-0", "#33449c", "#9fb0ff"),
    ("--path-1", "#c2410c", "#ff9a66"),
    ("--path-2", "#117733", "#66c583"),
    ("--path-3", "#8a6d00", "#e3c94f"),
    ("--path-4", "#7b2a8c", "#d99be6"),
    ("--path-5", "#14808c", "#66cfdd"),
    ("--path-6", "#b03060", "#ff8fb3"),
    ("--path-7", "#5a5e66", "#b8bdc4"),
];

/// The margin of a chart in a file of its own, in pixels.
const MARGIN: f64 = 12.0;

const CONTENTS: usize = 6;
const SERIES: usize = 12;

impl Colour {
    fn place(self) -> usize {
        match self {
            Colour::Ink => 0,
            Colour::Muted => 1,
            Colour::Card => 2,
            Colour::Line => 3,
            Colour::Grid => 4,
            Colour::Paper => 5,
            Colour::Content(content) => CONTENTS + content.min(4),
            Colour::Rest => 10,
            Colour::Erased => 11,
            Colour::Series(series) => SERIES + series % SERIES_COLOURS,
        }
    }
}

impl Display for Colour {
    /// The colour as a value in SVG and CSS: `var(--data)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "var({})", TABLE[self.place()].0)
    }
}

/// The declarations of all colours, for the root of a page.
pub fn declarations() -> String {
    let declare = |(name, light, dark): (&str, &str, &str)| format!("  {name}: light-dark({light}, {dark});\n");
    format!(":root {{\n{}}}\n", TABLE.map(declare).concat())
}

/// A chart of a page as a file of its own: in the light colours, on white.
pub fn standalone(svg: &str) -> String {
    let replaced =
        TABLE.iter().fold(svg.to_string(), |text, (name, light, _)| text.replace(&format!("var({name})"), light));
    let Some((root, rest)) = replaced.split_once('>') else { return replaced };
    let number = |name: &str| root.split_once(name)?.1.split('"').next()?.parse::<f64>().ok();
    let (width, height) = (number(" width=\"").unwrap_or(0.0), number(" height=\"").unwrap_or(0.0));
    let (wide, high) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let root = root
        .replacen(
            &format!("viewBox=\"0 0 {width} {height}\""),
            &format!("viewBox=\"-{MARGIN} -{MARGIN} {wide} {high}\""),
            1,
        )
        .replacen(&format!(" width=\"{width}\""), &format!(" width=\"{wide}\""), 1)
        .replacen(&format!(" height=\"{height}\""), &format!(" height=\"{high}\""), 1);
    format!(
        "{root}>\n<rect x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{wide}\" height=\"{high}\" fill=\"#ffffff\"/>{rest}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_the_property_of_its_name() {
        for (place, content) in crate::label::Content::ALL.into_iter().enumerate() {
            assert_eq!(Colour::Content(place).to_string(), format!("var(--{})", content.name()));
        }
        assert_eq!(Colour::Series(9).to_string(), "var(--path-1)");
        assert_eq!(Colour::Erased.to_string(), "var(--erased)");
        assert_eq!(Colour::Rest.to_string(), "var(--rest)");
    }

    #[test]
    fn a_file_has_colours_and_no_properties() {
        let all = TABLE.map(|(name, ..)| format!("<g fill=\"var({name})\"/>")).concat();
        let file = standalone(&format!("<svg viewBox=\"0 0 90 60\" width=\"90\" height=\"60\">{all}</svg>"));
        assert!(file.starts_with(
            "<svg viewBox=\"-12 -12 114 84\" width=\"114\" height=\"84\">\n<rect x=\"-12\" y=\"-12\" width=\"114\""
        ));
        assert!(!file.contains("var(") && file.contains("fill=\"#0072b2\""));
    }
}
