//! The picture as SVG: ribbons, bars, labels, and a legend of contents and origins.

use super::layout::{Label, Layout, Measures, Ribbon, size};
use super::links::{Kind, Links, Node};
use super::stations::Stations;
use crate::label::{Cause, Content};
use crate::report::chart::svg::{Anchor, Font, TEXT};
use crate::report::chart::{Colour, Hatching, Svg, Width, text};
use crate::report::comma_separated::quoted;
use crate::report::ledger_words::order_of_content;
use crate::report::number;

/// The height of a line of the legend.
const LEGEND_LINE: f64 = 18.0;
/// The least height that is visible.
const VISIBLE: f64 = 0.8;

/// The picture as SVG.
pub fn draw(name: &str, summary: &str, layout: &Layout, links: &Links, width: Width) -> String {
    let mut svg = Svg::new(name, width);
    let top = legend(&mut svg, links, layout.size.0) + 8.0;
    for ribbon in &layout.ribbons {
        draw_ribbon(&mut svg, ribbon, links, top);
    }
    for (node, place) in links.nodes.iter().zip(&layout.nodes).filter(|(node, _)| node.kind != Kind::Flash) {
        let title = title_of(node);
        let fill = if node.kind == Kind::Absorbed { Colour::Muted } else { colour(&node.share.content) };
        svg.rectangle((place.x, place.y + top, place.width, place.height.max(VISIBLE)), &fill.to_string(), &title);
    }
    for (_, place, blocks, is_erased) in &layout.parts {
        let (fill, what) = if *is_erased { (Colour::Erased, "erased") } else { (Colour::Rest, "not yet erased") };
        let title = format!("{what}: {}", amount(*blocks));
        svg.rectangle((place.x, place.y + top, place.width, place.height.max(VISIBLE)), &fill.to_string(), &title);
    }
    let font = Font { size: Measures::of(width).font, ..Font::PLAIN };
    for Label { place, lines, is_heading } in &layout.labels {
        for (number, line) in lines.iter().enumerate() {
            let step = place.height / lines.len() as f64;
            let at = (place.x, place.y + top + (number + 1) as f64 * step - step * 0.25);
            svg.text(at, Anchor::Start, Font { bold: *is_heading, ..font }, line);
        }
    }
    svg.finish((layout.size.0, layout.size.1 + top), summary)
}

/// The colour of a content.
pub fn colour(content: &str) -> Colour {
    let place = Content::ALL.into_iter().position(|known| known.name() == content);
    place.map_or(Colour::Rest, Colour::Content)
}

/// The hatching of an origin; what the host wrote is plain.
pub fn hatching(origin: &str) -> Option<Hatching> {
    let place = Cause::ALL.into_iter().position(|known| known.name() == origin).unwrap_or(1);
    let hatched = place.checked_sub(1)?;
    Some(Hatching::ALL[hatched % Hatching::ALL.len()])
}

fn draw_ribbon(svg: &mut Svg, ribbon: &Ribbon, links: &Links, top: f64) {
    let link = links.links[ribbon.link];
    let (from, to) = (&links.nodes[link.from], &links.nodes[link.to]);
    let ([x0, x1, x2, x3], [y0, y1]) = (ribbon.x, ribbon.y.map(|y| y + top));
    let height = ribbon.height.max(VISIBLE);
    let middle = (x1 + x2) / 2.0;
    let outline = format!(
        "M{x0:.1} {y0:.1}H{x1:.1}C{middle:.1} {y0:.1} {middle:.1} {y1:.1} {x2:.1} {y1:.1}H{x3:.1}V{:.1}H{x2:.1}\
         C{middle:.1} {:.1} {middle:.1} {:.1} {x1:.1} {:.1}H{x0:.1}Z",
        y1 + height,
        y1 + height,
        y0 + height,
        y0 + height
    );
    let of = &from.share;
    let cause = if to.kind == Kind::Absorbed { "absorbed" } else { &of.cause };
    let title = format!("{}, origin {}, {}: {}", of.content, of.origin, cause, amount(link.blocks));
    let colour = colour(&of.content);
    let fill = match hatching(&of.origin) {
        None => format!("fill=\"{colour}\" fill-opacity=\"0.34\""),
        Some(hatching) => format!("fill=\"{}\" fill-opacity=\"0.9\"", svg.hatched(hatching, colour)),
    };
    svg.shape(&outline, &fill, &number::visible(&title));
}

fn title_of(node: &Node) -> String {
    let share = &node.share;
    let cause = if node.kind == Kind::Absorbed { "absorbed" } else { &share.cause };
    number::visible(&format!("{}, origin {}, {cause}: {}", share.content, share.origin, amount(share.blocks)))
}

fn amount(blocks: f64) -> String {
    format!("{} blocks of 4 KiB ({})", number::decimal(blocks, 0), size(blocks))
}

/// Draws the legend; returns its height.
fn legend(svg: &mut Svg, links: &Links, width: f64) -> f64 {
    let sent = || links.nodes.iter().filter(|node| node.kind == Kind::Sent).map(|node| &node.share);
    let mut contents: Vec<&str> = sent().map(|share| share.content.as_str()).collect();
    contents.sort_by_key(|content| (order_of_content(content), *content));
    contents.dedup();
    let mut origins: Vec<&str> =
        sent().map(|share| share.origin.as_str()).filter(|origin| hatching(origin).is_some()).collect();
    origins.sort_unstable();
    origins.dedup();
    let contents = contents.into_iter().map(|content| (content.to_string(), colour(content), None));
    let origins = origins.into_iter().map(|origin| (format!("origin {origin}"), Colour::Muted, hatching(origin)));
    let (mut x, mut y) = (0.0, 0.0);
    for (name, colour, hatching) in contents.chain(origins) {
        let name = text::fitted(&number::visible(&name), TEXT, width - 22.0);
        let room = text::width(&name, TEXT) + 22.0;
        if x > 0.0 && x + room > width {
            (x, y) = (0.0, y + LEGEND_LINE);
        }
        let place = (x, y + 3.0, 12.0, 12.0);
        match hatching {
            None => svg.rectangle(place, &colour.to_string(), ""),
            Some(hatching) => {
                let fill = svg.hatched(hatching, colour);
                svg.rectangle(place, &fill, "");
            }
        }
        svg.text((x + 17.0, y + 13.0), Anchor::Start, Font::PLAIN, &name);
        x += room + 16.0;
    }
    y + LEGEND_LINE
}

/// The numbers of a picture: what each station sent, and what the media erased.
pub fn csv(stations: &Stations) -> String {
    let mut csv = "station,cause,origin,content,blocks of 4 KiB\n".to_string();
    for station in &stations.0 {
        let name = quoted(&station.name);
        for share in &station.sent {
            let words = [&share.cause, &share.origin, &share.content].map(|word| quoted(word));
            csv += &format!("{name},{},{}\n", words.join(","), share.blocks);
        }
        if let Some(erased) = station.erased {
            csv += &format!("{name},erased,,,{erased}\n");
        }
    }
    csv
}
