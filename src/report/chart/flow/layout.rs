//! The places of nodes, ribbons and labels.
//!
//! A column is a bar, then a zone in which ribbons run straight and labels stand between them, then a zone in which
//! ribbons bend and no label stands. Each station has a band of the height that it and those below it need; bands of
//! stations side by side do not overlap. So no ribbon crosses a label.

use super::links::{Kind, Links, Node};
use super::stations::Stations;
use crate::report::chart::{Width, text};
use crate::report::ledger_words::{phrase, verb, writer};
use crate::report::number;
use crate::units::BLOCK_BYTES;

/// Measures of a picture, in pixels.
pub struct Measures {
    /// The width of a bar.
    pub bar: f64,
    /// The zone of bends in front of the next column.
    pub bend: f64,
    /// The least width of a column.
    pub least: f64,
    /// The bar of the erases with its labels.
    pub end: f64,
    /// The height of the fullest column's nodes.
    pub height: f64,
    /// The size of labels.
    pub font: f64,
    /// The distance of their lines.
    pub line: f64,
}

impl Measures {
    /// The measures for a width.
    pub fn of(width: Width) -> Measures {
        match width {
            Width::Wide => {
                Measures { bar: 8.0, bend: 56.0, least: 130.0, end: 150.0, height: 190.0, font: 11.5, line: 14.0 }
            }
            Width::Narrow => {
                Measures { bar: 6.0, bend: 15.0, least: 67.0, end: 58.0, height: 150.0, font: 9.5, line: 12.0 }
            }
        }
    }
}

/// The distance of nodes, and of bands.
const NODE_GAP: f64 = 5.0;
const BAND_GAP: f64 = 16.0;

/// A rectangle: left, top, width and height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The left edge.
    pub x: f64,
    /// The upper edge.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

/// A text of some lines.
#[derive(Clone, Debug)]
pub struct Label {
    /// The room that it has.
    pub place: Place,
    /// Its lines.
    pub lines: Vec<String>,
    /// True for the name of a station.
    pub is_heading: bool,
}

/// A flow: straight from `x[0]` to `x[1]`, bent to `x[2]`, straight to `x[3]`.
#[derive(Clone, Copy, Debug)]
pub struct Ribbon {
    /// The number of its link.
    pub link: usize,
    /// The points at which it begins, bends, and ends.
    pub x: [f64; 4],
    /// Its upper edge at the beginning and at the end.
    pub y: [f64; 2],
    /// Its height.
    pub height: f64,
}

/// The places of everything in a picture.
pub struct Layout {
    /// The bars of the nodes.
    pub nodes: Vec<Place>,
    /// The flows.
    pub ribbons: Vec<Ribbon>,
    /// Headings and labels.
    pub labels: Vec<Label>,
    /// The parts of the bars of flash: its node, its place, its blocks, true if they are erased.
    pub parts: Vec<(usize, Place, f64, bool)>,
    /// The left edges of the columns, and of the erases behind them.
    pub columns: Vec<f64>,
    /// The width and the height.
    pub size: (f64, f64),
    /// Pixels for a block.
    pub scale: f64,
}

impl Layout {
    /// The layout of a path, in which `tallest` blocks are as high as a picture's nodes may be.
    pub fn of(stations: &Stations, links: &Links, width: Width, tallest: f64) -> Layout {
        let measures = Measures::of(width);
        let columns = stations.last_column() + 1;
        let has_flash = links.nodes.iter().any(|node| node.kind == Kind::Flash);
        let end = if has_flash { measures.end } else { 0.0 };
        let column = ((width.pixels() - end) / columns as f64).max(measures.least);
        let mut layout = Layout {
            nodes: vec![Place { x: 0.0, y: 0.0, width: measures.bar, height: 0.0 }; links.nodes.len()],
            ribbons: Vec::new(),
            labels: Vec::new(),
            parts: Vec::new(),
            columns: (0..=columns).map(|number| number as f64 * column).collect(),
            size: (column * columns as f64 + end, 0.0),
            scale: measures.height / tallest.max(1.0),
        };
        let mut builder = Builder { stations, links, measures, column, layout: &mut layout };
        let height = builder.band(0, 0.0);
        builder.ribbons();
        layout.size.1 = height;
        layout
    }
}

struct Builder<'a> {
    stations: &'a Stations,
    links: &'a Links,
    measures: Measures,
    /// The width of a column.
    column: f64,
    layout: &'a mut Layout,
}

impl Builder<'_> {
    /// Places a station and those below it from `top` on; returns the lower end of the band.
    fn band(&mut self, station: usize, top: f64) -> f64 {
        let mut end = self.station(station, top).max(self.erases(station, top));
        let below: Vec<usize> = self.stations.below(station).collect();
        let mut next = top;
        for (number, below) in below.into_iter().enumerate() {
            next += if number > 0 { BAND_GAP } else { 0.0 };
            next = self.band(below, next);
        }
        end = end.max(next);
        end
    }

    /// The width for labels of a column.
    fn label_width(&self) -> f64 {
        self.column - self.measures.bend
    }

    /// Places a text; returns its lower end.
    fn label(&mut self, (x, y): (f64, f64), width: f64, lines: Vec<String>, is_heading: bool) -> f64 {
        let height = lines.len() as f64 * self.measures.line;
        if !lines.is_empty() {
            self.layout.labels.push(Label { place: Place { x, y, width, height }, lines, is_heading });
        }
        y + height
    }

    /// Places the heading of a station, its nodes, and a label above each.
    fn station(&mut self, station: usize, top: f64) -> f64 {
        let x = self.layout.columns[self.stations.column(station)];
        let heading = text::wrapped(
            &number::visible(&self.stations.0[station].name),
            self.measures.font,
            self.label_width() / 1.06,
        );
        let mut y = self.label((x, top), self.label_width(), heading, true) + NODE_GAP;
        for node in 0..self.links.nodes.len() {
            if self.links.nodes[node].station == station && self.links.nodes[node].kind != Kind::Flash {
                let lines = self.lines(&self.links.nodes[node]);
                y = self.label((x, y), self.label_width(), lines, false) + if y > top { 2.0 } else { 0.0 };
                let height = self.links.nodes[node].share.blocks * self.layout.scale;
                self.layout.nodes[node] = Place { x, y, width: self.measures.bar, height };
                y += height + NODE_GAP;
            }
        }
        y
    }

    /// The label of a node: where a flow begins, what it is; where it goes on, how much is left of it.
    fn lines(&self, node: &Node) -> Vec<String> {
        let share = &node.share;
        let size = size(share.blocks);
        let (font, room) = (self.measures.font, self.label_width());
        let begins = node.received < share.blocks / 2.0 || self.stations.0[node.station].above.is_none();
        let what = match node.kind {
            Kind::Absorbed => format!("absorbed {}", number::visible(&share.content)),
            _ if !begins && (node.received - share.blocks).abs() < share.blocks * 1e-3 => return Vec::new(),
            _ if !begins => return text::wrapped(&size, font, room),
            _ if share.cause == share.origin => phrase(&share.cause, &share.content),
            _ if share.cause == "host-write" => number::visible(&share.content),
            _ => format!("{} that {} wrote", phrase(&share.cause, &share.content), writer(&share.origin)),
        };
        // On a phone there is room for little: the legend has the rest.
        let content = || vec![text::fitted(&number::visible(&share.content), font, room)];
        let short = [phrase(&share.cause, &share.content), verb(&share.cause)];
        let fits = |text: &String| {
            let lines = text::wrapped(text, font, room);
            (lines.len() <= 3 && !lines.iter().any(|line| line.ends_with('\u{2026}'))).then_some(lines)
        };
        let whole = fits(&format!("{what}, {size}"));
        whole.unwrap_or_else(|| {
            let what = short.iter().filter(|text| !text.is_empty() && node.kind == Kind::Sent).find_map(fits);
            what.unwrap_or_else(content).into_iter().chain(text::wrapped(&size, font, room)).collect()
        })
    }

    /// Places the bar of a flash behind the media, and the labels of its parts to the right of it.
    fn erases(&mut self, station: usize, top: f64) -> f64 {
        let is_flash = |node: &Node| node.station == station && node.kind == Kind::Flash;
        let Some(flash) = self.links.nodes.iter().position(is_flash) else { return top };
        let x = self.layout.columns[self.stations.last_column() + 1];
        let mut y = self.label((x, top), self.measures.end, vec!["erases".to_string()], true) + NODE_GAP;
        let blocks = self.links.nodes[flash].share.blocks;
        let erased = self.stations.0[station].erased.unwrap_or(0.0);
        self.layout.nodes[flash] = Place { x, y, width: self.measures.bar, height: blocks * self.layout.scale };
        let (bottom, mut free) = (y + blocks * self.layout.scale, y);
        for (blocks, is_erased) in [(erased, true), (blocks - erased, false)] {
            if blocks <= super::stations::ROUNDING {
                continue;
            }
            let height = blocks * self.layout.scale;
            self.layout.parts.push((flash, Place { x, y, width: self.measures.bar, height }, blocks, is_erased));
            let what = if is_erased { "erased" } else { "not yet erased" };
            let left = x + self.measures.bar + 5.0;
            let room = self.measures.end - self.measures.bar - 5.0;
            let mut lines = text::wrapped(what, self.measures.font, room);
            lines.push(size(blocks));
            let height_of_lines = lines.len() as f64 * self.measures.line;
            let at = (y + (height - height_of_lines) / 2.0).max(free);
            let place = Place { x: left, y: at, width: room, height: height_of_lines };
            self.layout.labels.push(Label { place, lines, is_heading: false });
            free = at + height_of_lines + 2.0;
            y += height;
        }
        bottom.max(free) + NODE_GAP
    }

    /// Places the ribbons: stacked at both ends, in the order of the nodes at the other end.
    fn ribbons(&mut self) {
        let mut out = vec![0.0; self.links.nodes.len()];
        let mut into = vec![0.0; self.links.nodes.len()];
        for (number, link) in self.links.links.iter().enumerate() {
            let (from, to) = (self.layout.nodes[link.from], self.layout.nodes[link.to]);
            let height = link.blocks * self.layout.scale;
            let bend = from.x + self.column - self.measures.bend;
            self.layout.ribbons.push(Ribbon {
                link: number,
                x: [from.x + from.width, bend, from.x + self.column, to.x],
                y: [from.y + out[link.from], to.y + into[link.to]],
                height,
            });
            out[link.from] += height;
            into[link.to] += height;
        }
    }
}

/// The size of blocks, which no line break splits: `692 MiB`.
pub fn size(blocks: f64) -> String {
    number::bytes(blocks * BLOCK_BYTES as f64).replace(' ', "\u{a0}")
}
