//! The writer of SVG elements. Coordinates are pixels of a figure, rounded to a tenth.

use super::Colour;
use super::hatching::Hatching;
use crate::report::escape::escape;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The two widths that a figure is drawn in. Texts have the same size in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// For desks and paper.
    Wide,
    /// For phones.
    Narrow,
}

impl Width {
    /// The width in pixels.
    pub fn pixels(self) -> f64 {
        match self {
            Width::Wide => 960.0,
            Width::Narrow => 322.0,
        }
    }

    fn letter(self) -> char {
        match self {
            Width::Wide => 'w',
            Width::Narrow => 'n',
        }
    }
}

/// Sizes of texts, in pixels.
pub const TEXT: f64 = 12.0;
/// The size of small texts.
pub const SMALL: f64 = 11.0;
/// The distance of lines of text.
pub const LINE_HEIGHT: f64 = 15.0;

/// The end of a text that stands at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// Ends there.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// The look of a text.
#[derive(Clone, Copy, Debug)]
pub struct Font {
    /// Its size in pixels.
    pub size: f64,
    /// Its colour.
    pub colour: Colour,
    /// True for bold.
    pub bold: bool,
}

impl Font {
    /// Plain text.
    pub const PLAIN: Font = Font { size: TEXT, colour: Colour::Ink, bold: false };
    /// Secondary text.
    pub const SMALL: Font = Font { size: SMALL, colour: Colour::Muted, bold: false };
    /// A title.
    pub const TITLE: Font = Font { size: 13.0, colour: Colour::Ink, bold: true };
}

/// A figure in the making.
pub struct Svg {
    name: String,
    /// Narrow figures are for fingers, which show no titles.
    has_titles: bool,
    body: String,
    hatchings: BTreeSet<(String, Hatching)>,
}

impl Svg {
    /// An empty figure. Identifiers in it begin with its name, since a page holds several figures.
    pub fn new(name: &str, width: Width) -> Svg {
        Svg {
            name: format!("{name}-{}", width.letter()),
            has_titles: width == Width::Wide,
            body: String::new(),
            hatchings: BTreeSet::new(),
        }
    }

    /// A straight line.
    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: Colour, width: f64) {
        self.write(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n"
        ));
    }

    /// A filled rectangle: left, top, width, height. Its title is shown under the pointer.
    pub fn rectangle(&mut self, (x, y, width, height): (f64, f64, f64, f64), fill: &str, title: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let head =
            format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"");
        self.titled(&head, "rect", title);
    }

    /// An outline with its attributes. Its title is shown under the pointer.
    pub fn shape(&mut self, outline: &str, attributes: &str, title: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        self.titled(&format!("<path d=\"{outline}\"{space}{attributes}"), "path", title);
    }

    /// Begins a group of elements with common attributes.
    pub fn open_group(&mut self, attributes: &str) {
        self.write(format_args!("<g {attributes}>\n"));
    }

    /// Ends the group.
    pub fn close_group(&mut self) {
        self.write(format_args!("</g>\n"));
    }

    fn titled(&mut self, head: &str, element: &str, title: &str) {
        match title {
            _ if title.is_empty() || !self.has_titles => self.write(format_args!("{head}/>\n")),
            _ => self.write(format_args!("{head}><title>{}</title></{element}>\n", escape(title))),
        }
    }

    /// A text whose baseline is at a point.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, font: Font, text: &str) {
        self.turned((x, y), 0.0, anchor, font, text);
    }

    /// A text that is turned around its point, in degrees.
    pub fn turned(&mut self, (x, y): (f64, f64), degrees: f64, anchor: Anchor, font: Font, text: &str) {
        let turn = match degrees == 0.0 {
            true => String::new(),
            false => format!(" transform=\"rotate({degrees} {x:.1} {y:.1})\""),
        };
        let weight = if font.bold { " font-weight=\"600\"" } else { "" };
        self.write(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{weight}{turn}>{}</text>\n",
            font.size,
            anchor.name(),
            font.colour,
            escape(text)
        ));
    }

    /// A finished figure within this one, `y` below its top. Returns its height.
    pub fn nested(&mut self, figure: &str, y: f64) -> f64 {
        let height = figure.split_once(" height=\"").and_then(|(_, rest)| rest.split('"').next()?.parse().ok());
        self.write(format_args!("{}", figure.replacen("<svg ", &format!("<svg y=\"{y:.1}\" "), 1)));
        height.unwrap_or(0.0)
    }

    /// The `fill` of a hatching in a colour.
    pub fn hatched(&mut self, hatching: Hatching, colour: Colour) -> String {
        self.hatchings.insert((colour.to_string(), hatching));
        format!("url(#{})", self.hatching_name(hatching, &colour.to_string()))
    }

    fn hatching_name(&self, hatching: Hatching, colour: &str) -> String {
        let colour = colour.trim_start_matches("var(--").trim_end_matches(')');
        format!("{}-{colour}-{hatching:?}", self.name)
    }

    /// The finished figure of this size, with a summary for screen readers.
    pub fn finish(self, (width, height): (f64, f64), summary: &str) -> String {
        let mut patterns = String::new();
        for (colour, hatching) in &self.hatchings {
            // Writing to a string cannot fail.
            let _ = writeln!(
                patterns,
                "<pattern id=\"{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">{}<path d=\"{}\" \
                 stroke=\"{colour}\" stroke-width=\"1.3\" fill=\"none\"/></pattern>",
                self.hatching_name(*hatching, colour),
                ground(colour),
                hatching.outline()
            );
        }
        if !patterns.is_empty() {
            patterns = format!("<defs>\n{patterns}</defs>\n");
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{}\" \
             font-family=\"Liberation Sans, Arial, Helvetica, sans-serif\">\n{patterns}{}</svg>\n",
            escape(summary),
            short(&self.body)
        )
    }

    fn write(&mut self, text: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
    }
}

/// The ground of a hatching: pale. What is hatched in the colour of the page lies on something filled.
fn ground(colour: &str) -> String {
    match colour == Colour::Card.to_string() {
        true => String::new(),
        false => format!("<rect width=\"6\" height=\"6\" fill=\"{colour}\" fill-opacity=\"0.3\"/>"),
    }
}

/// The elements with `12` for `12.0` in their attributes; texts stay as they are.
fn short(elements: &str) -> String {
    let mut shorter = String::with_capacity(elements.len());
    let mut is_attribute = false;
    let mut rest = elements;
    while let Some(place) = rest.find(['<', '>', '.']) {
        let (before, after) = rest.split_at(place);
        shorter += before;
        let is_zero = after.starts_with(".0") && !after[2..].starts_with(|c: char| c.is_ascii_digit());
        if is_attribute && is_zero {
            rest = &after[2..];
            continue;
        }
        match &after[..1] {
            "<" => is_attribute = true,
            ">" => is_attribute = false,
            _ => {}
        }
        shorter += &after[..1];
        rest = &after[1..];
    }
    shorter + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_cut_from_coordinates_and_not_from_texts() {
        assert_eq!(
            short("<path d=\"M1.0 2.05L10.0 0.0\"/><text x=\"3.0\">2.0 GiB</text>"),
            "<path d=\"M1 2.05L10 0\"/><text x=\"3\">2.0 GiB</text>"
        );
    }
}
