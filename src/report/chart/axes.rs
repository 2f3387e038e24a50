//! The frame of a panel: grid lines, ticks and their labels, titles. The margins are as large as the labels need.

use super::ranges::Ranges;
use super::scale::Placed;
use super::svg::{Anchor, Font, LINE_HEIGHT, SMALL};
use super::{Colour, Marks, Panel, Svg, text};

/// The distance of labels from their axis.
const PAD: f64 = 7.0;
/// Names that do not fit below their slots are turned by this.
const TURN: f64 = -40.0;
/// The most room to the left of a panel for turned names, as a share of its width. Names that need more are cut off.
const MOST_LEFT: f64 = 0.3;
/// The most lines of a name.
const NAME_LINES: usize = 3;

/// The room around the marks.
#[derive(Clone, Copy, Debug)]
pub struct Margins {
    /// For the title and the labels of the vertical axis.
    pub left: f64,
    /// For the tags at the ends of lines.
    pub right: f64,
    /// For the labels and the title of the horizontal axis.
    pub bottom: f64,
}

impl Margins {
    /// The larger of two, side by side.
    pub fn larger(self, other: Margins) -> Margins {
        Margins {
            left: self.left.max(other.left),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// The place of the marks, in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The left edge.
    pub left: f64,
    /// The right edge.
    pub right: f64,
    /// The upper edge.
    pub top: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Frame {
    /// The frame in a column of a figure.
    pub fn new((left, top): (f64, f64), (width, height): (f64, f64), margins: &Margins) -> Frame {
        Frame { left: left + margins.left, right: left + width - margins.right, top, bottom: top + height }
    }
}

/// The number of ticks for so many pixels.
fn ticks_for(pixels: f64, each: f64) -> usize {
    ((pixels / each) as usize).clamp(2, 8)
}

/// The margins that a panel needs in a column of this width, with marks of this height.
pub fn margins(panel: &Panel, ranges: &Ranges, (column, height): (f64, f64)) -> Margins {
    let y = Placed { axis: &panel.y, range: ranges.y, pixels: (height, 0.0) };
    let title = match upright_lines(panel, height).len() {
        0 => 0.0,
        lines => lines as f64 * LINE_HEIGHT + 6.0,
    };
    let labels = widest_label(&y, height) + PAD + title;
    let tags = panel.series.iter().map(|series| text::width(&series.tag, SMALL)).fold(0.0, f64::max);
    let right = if tags > 0.0 { tags + 8.0 } else { 6.0 };
    let slot = |left: f64| (column - left - right) / panel.x.names.len().max(1) as f64;
    let left = labels.max(Names::of(&panel.x.names, labels, slot(labels)).left(&panel.x.names, column, slot(labels)));
    let below = match Names::of(&panel.x.names, left, slot(left)) {
        Names::Flat(lines) => lines as f64 * (LINE_HEIGHT - 2.0),
        Names::Turned(height) => height,
    };
    let title = title_lines(panel, column - left - right).len() as f64 * LINE_HEIGHT;
    Margins { left, right, bottom: PAD + below + title + 4.0 }
}

fn title_lines(panel: &Panel, room: f64) -> Vec<String> {
    text::wrapped(&panel.x.title, Font::PLAIN.size, room)
}

/// The placement of names below their slots.
enum Names {
    /// In so many lines.
    Flat(usize),
    /// Turned, as high as this.
    Turned(f64),
}

impl Names {
    /// The placement in slots of this width, the first of which begins at `left`.
    fn of(names: &[String], left: f64, slot: f64) -> Names {
        let room = slot - 4.0;
        let lines = |name: &String| text::wrapped(name, SMALL, room);
        let is_whole = |name: &String| {
            let lines = lines(name);
            lines.len() <= NAME_LINES && !lines.iter().any(|line| line.ends_with('\u{2026}'))
        };
        if names.iter().all(is_whole) {
            return Names::Flat(names.iter().map(|name| lines(name).len()).max().unwrap_or(1).max(1));
        }
        let fitted = names
            .iter()
            .enumerate()
            .map(|(number, name)| text::width(name, SMALL).min(room_of_turned(left + (number as f64 + 0.5) * slot)));
        Names::Turned(fitted.fold(0.0, f64::max) * TURN.abs().to_radians().sin() + LINE_HEIGHT)
    }

    /// The room that turned names need to the left of the first slot, of a column of this width.
    fn left(&self, names: &[String], column: f64, slot: f64) -> f64 {
        let needed = |(number, name): (usize, &String)| {
            text::width(name, SMALL) * TURN.abs().to_radians().cos() - (number as f64 + 0.5) * slot
        };
        match self {
            Names::Flat(_) => 0.0,
            Names::Turned(_) => names.iter().enumerate().map(needed).fold(0.0, f64::max).min(MOST_LEFT * column),
        }
    }
}

/// The widest turned name that ends at `middle` and begins within the picture, which begins at 0.
fn room_of_turned(middle: f64) -> f64 {
    middle / TURN.abs().to_radians().cos()
}

/// Draws the frame: before the marks, which lie on the grid.
pub fn draw(svg: &mut Svg, panel: &Panel, x: &Placed, y: &Placed, frame: &Frame) {
    for (value, label) in y.ticks(ticks_for(frame.bottom - frame.top, 40.0)) {
        let at = y.at(value);
        svg.line((frame.left, at), (frame.right, at), Colour::Grid, 1.0);
        svg.text((frame.left - PAD, at + 4.0), Anchor::End, Font::SMALL, &label);
    }
    let below = if panel.x.names.is_empty() { numbers(svg, x, frame) } else { names(svg, x, frame) };
    svg.line((frame.left, frame.top), (frame.left, frame.bottom), Colour::Line, 1.0);
    let zero = if (y.range.0..=y.range.1).contains(&0.0) && has_bars(panel) { y.at(0.0) } else { frame.bottom };
    svg.line((frame.left, zero), (frame.right, zero), Colour::Line, 1.0);
    let middle = (frame.left + frame.right) / 2.0;
    for (number, line) in title_lines(panel, frame.right - frame.left).iter().enumerate() {
        let baseline = frame.bottom + below + (number + 1) as f64 * LINE_HEIGHT;
        svg.text((middle, baseline), Anchor::Middle, Font::PLAIN, line);
    }
    let height = frame.bottom - frame.top;
    let (middle, left) = ((frame.top + frame.bottom) / 2.0, frame.left - PAD - 9.0 - widest_label(y, height));
    for (number, line) in upright_lines(panel, height).iter().rev().enumerate() {
        svg.turned((left - number as f64 * LINE_HEIGHT, middle), -90.0, Anchor::Middle, Font::PLAIN, line);
    }
}

fn has_bars(panel: &Panel) -> bool {
    panel.series.iter().any(|series| matches!(series.marks, Marks::Bars(_)))
}

/// The lines of the title of the vertical axis.
fn upright_lines(panel: &Panel, height: f64) -> Vec<String> {
    text::wrapped(&panel.y.title, Font::PLAIN.size, height)
}

fn widest_label(y: &Placed, height: f64) -> f64 {
    let ticks = y.ticks(ticks_for(height, 40.0));
    ticks.iter().map(|(_, label)| text::width(label, SMALL)).fold(0.0, f64::max)
}

/// The labels of numbers; as many as fit beside each other. Returns their height.
fn numbers(svg: &mut Svg, x: &Placed, frame: &Frame) -> f64 {
    let ticks = x.ticks(ticks_for(frame.right - frame.left, 70.0));
    let mut free_from = f64::NEG_INFINITY;
    for (value, label) in ticks {
        let (at, half) = (x.at(value), text::width(&label, SMALL) / 2.0);
        svg.line((at, frame.bottom), (at, frame.bottom + 4.0), Colour::Line, 1.0);
        if at - half > free_from {
            svg.text((at, frame.bottom + PAD + 9.0), Anchor::Middle, Font::SMALL, &label);
            free_from = at + half + 6.0;
        }
    }
    PAD + LINE_HEIGHT - 2.0
}

/// The names below their slots. Returns their height.
fn names(svg: &mut Svg, x: &Placed, frame: &Frame) -> f64 {
    let shape = Names::of(&x.axis.names, frame.left, x.slot(0).1);
    for (number, name) in x.axis.names.iter().enumerate() {
        let (start, size) = x.slot(number);
        let middle = start + size / 2.0;
        match shape {
            Names::Flat(_) => {
                for (line, part) in text::wrapped(name, SMALL, size - 4.0).iter().enumerate() {
                    let baseline = frame.bottom + PAD + 8.0 + line as f64 * (LINE_HEIGHT - 2.0);
                    svg.text((middle, baseline), Anchor::Middle, Font::SMALL, part);
                }
            }
            Names::Turned(_) => {
                let name = text::fitted(name, SMALL, room_of_turned(middle));
                svg.turned((middle + 4.0, frame.bottom + PAD + 6.0), TURN, Anchor::End, Font::SMALL, &name)
            }
        }
    }
    PAD + match shape {
        Names::Flat(lines) => lines as f64 * (LINE_HEIGHT - 2.0),
        Names::Turned(height) => height,
    }
}
