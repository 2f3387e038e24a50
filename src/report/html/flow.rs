//! The ledger of one path as a flow chart: from the workload, through every station, to programs and erases.
//!
//! Each cause and content has a row, which begins at the first station that passed it on and runs to the right. Blocks
//! that a station adds (a journal's commits, a collector's copies) begin there; blocks that it absorbs end there. The
//! last two columns are all media together: the blocks stored, and the part erased.

use serde_json::{Value, json};

use crate::report::comparison::{order_of_content, phrase, verb};
use crate::report::escape::escape;
use crate::report::{RunResult, number};
use crate::units::BLOCK_BYTES;

/// Pixels between rows: room for a label under a thin row.
const ROW_GAP: f64 = 22.0;

/// The height of all rows, in pixels.
const ROWS_HEIGHT: f64 = 190.0;

/// Pixels above the rows, for the names of the stations, and below, for the second line of a label under a thin last
/// row.
const MARGIN_TOP: f64 = 34.0;
const MARGIN_BOTTOM: f64 = 20.0;

/// Fewer blocks than this are a rounding error.
const ROUNDING: f64 = 0.5;

type Kind<'a> = (&'a str, &'a str);

/// The blocks that one station passed on.
struct Column<'a> {
    station: String,
    blocks: Vec<(Kind<'a>, f64)>,
}

impl<'a> Column<'a> {
    fn of(&self, kind: Kind) -> f64 {
        self.blocks.iter().filter(|(other, _)| *other == kind).map(|(_, blocks)| *blocks).sum()
    }

    fn total(&self) -> f64 {
        self.blocks.iter().map(|(_, blocks)| *blocks).sum()
    }
}

/// The chart under construction: nodes and links, numbered as by plotly.js.
#[derive(Default)]
struct Flow {
    labels: Vec<String>,
    /// The labels for narrow screens.
    short_labels: Vec<String>,
    hovers: Vec<String>,
    colours: Vec<String>,
    x: Vec<f64>,
    y: Vec<f64>,
    links: Vec<(usize, usize, f64, String, String)>,
}

impl Flow {
    fn node(&mut self, place: (f64, f64), labels: (String, String), hover: String, colour: String) -> usize {
        self.labels.push(labels.0);
        self.short_labels.push(labels.1);
        self.hovers.push(hover);
        self.colours.push(colour);
        // plotly.js takes zero for a missing position.
        self.x.push(place.0.clamp(0.001, 0.999));
        self.y.push(place.1.clamp(0.001, 0.999));
        self.labels.len() - 1
    }

    fn link(&mut self, from: usize, to: usize, blocks: f64, hover: String, colour: String) {
        if blocks > ROUNDING {
            self.links.push((from, to, blocks, hover, colour));
        }
    }
}

/// The flow of a run; `None` if nothing was programmed.
pub fn flow(result: &RunResult) -> Option<Value> {
    let columns = columns(result);
    let (flash, stations) = columns.split_last()?;
    let programmed = flash.total();
    if programmed <= ROUNDING || stations.is_empty() {
        return None;
    }
    // A flash that programs exactly what it receives gets no column: it would repeat the one before.
    let above = stations.last()?;
    let repeats = above.blocks.len() == flash.blocks.len()
        && flash.blocks.iter().all(|(kind, blocks)| (above.of(*kind) - blocks).abs() <= ROUNDING);
    let shown = if repeats { stations } else { &columns[..] };
    let rows = rows(shown);

    let tallest: f64 = rows.iter().map(|(_, blocks)| blocks).sum();
    let height = ROWS_HEIGHT + ROW_GAP * (rows.len() - 1) as f64;
    let scale = ROWS_HEIGHT / tallest;
    let middle = |top: f64, blocks: f64| (top + blocks * scale / 2.0) / height;
    let last_column = (shown.len() + 1) as f64;

    let mut chart = Flow::default();
    let mut top = 0.0;
    let centre = 0.5;
    let flash_node = chart.node(
        (shown.len() as f64 / last_column, centre),
        (format!("programmed<br>{}", size(programmed)), String::new()),
        format!("programmed: {}", amount(programmed)),
        "--flash".into(),
    );
    for &(kind, row_blocks) in &rows {
        let colour = content_colour(kind.1);
        let mut before: Option<(usize, f64)> = None;
        for (number, column) in shown.iter().enumerate() {
            let blocks = column.of(kind);
            if blocks <= ROUNDING {
                before = None;
                continue;
            }
            let name = escape(&phrase(kind.0, kind.1));
            // On a phone, five columns leave room for the size alone.
            let verb = if shown.len() <= 2 { escape(&verb(kind.0)) + " " } else { String::new() };
            let labels = match before {
                None => (format!("{name}, {}", size(blocks)), verb + &size(blocks)),
                Some(_) => Default::default(),
            };
            let station = escape(&column.station);
            let node = chart.node(
                (number as f64 / last_column, middle(top, blocks)),
                labels,
                format!("{station}, {name}: {}", amount(blocks)),
                colour.clone(),
            );
            if let Some((from, sent)) = before {
                let passed = sent.min(blocks);
                chart.link(from, node, passed, hover(kind, passed), format!("{colour}-flow"));
            }
            before = Some((node, blocks));
        }
        if let Some((from, blocks)) = before {
            chart.link(from, flash_node, blocks, hover(kind, blocks), format!("{colour}-flow"));
        }
        top += row_blocks * scale + ROW_GAP;
    }
    erases(&mut chart, result, flash_node, programmed, scale, height);
    Some(figure(&chart, shown, height))
}

/// The last column: the erased and the remaining part of the programmed blocks.
fn erases(chart: &mut Flow, result: &RunResult, flash_node: usize, programmed: f64, scale: f64, height: f64) {
    let blocks_per_page = result.flash.page_bytes as f64 / BLOCK_BYTES as f64;
    let erased = result.flash.erased_blocks as f64 * result.flash.pages_per_block as f64 * blocks_per_page;
    let (within, left) = (erased.min(programmed), (programmed - erased).max(0.0));
    let gap = if within > ROUNDING && left > ROUNDING { ROW_GAP } else { 0.0 };
    let mut top = (height - programmed * scale - gap) / 2.0;
    let erase_blocks = number::count(result.flash.erased_blocks);
    let ends = [
        (within, "erased", format!("{erase_blocks} erase blocks erased: {}", amount(erased))),
        (left, "not yet erased", format!("not yet erased: {}", amount(left))),
    ];
    for (blocks, label, hover) in ends.into_iter().filter(|(blocks, ..)| *blocks > ROUNDING) {
        let place = (1.0, (top + blocks * scale / 2.0) / height);
        let colour = if label == "erased" { "--erased" } else { "--rest" };
        let labels = (format!("{label}<br>{}", size(blocks)), size(blocks));
        let node = chart.node(place, labels, hover.clone(), colour.into());
        chart.link(flash_node, node, blocks, hover, format!("{colour}-flow"));
        top += blocks * scale + gap;
    }
}

/// The input of plotly.js.
fn figure(chart: &Flow, shown: &[Column], height: f64) -> Value {
    let last_column = (shown.len() + 1) as f64;
    let names = shown.iter().map(|column| escape(&column.station)).chain(["flash".into(), "erases".into()]);
    let annotations = names.enumerate().map(|(number, name)| {
        let anchor = match number {
            0 => "left",
            _ if number == shown.len() + 1 => "right",
            _ => "center",
        };
        json!({
            "text": format!("<b>{name}</b>"), "x": number as f64 / last_column, "xref": "paper", "xanchor": anchor,
            "y": 1.0, "yref": "paper", "yanchor": "bottom", "yshift": 10, "showarrow": false,
        })
    });
    let of_links = |value: fn(&(usize, usize, f64, String, String)) -> Value| -> Vec<Value> {
        chart.links.iter().map(value).collect()
    };
    json!({
        "data": [{
            "type": "sankey",
            "arrangement": "fixed",
            "node": {
                "label": chart.labels, "color": chart.colours, "x": chart.x, "y": chart.y,
                "customdata": chart.hovers, "hovertemplate": "%{customdata}<extra></extra>",
                "thickness": 10, "pad": ROW_GAP, "line": { "width": 0 },
            },
            "link": {
                "source": of_links(|link| json!(link.0)),
                "target": of_links(|link| json!(link.1)),
                "value": of_links(|link| json!(link.2)),
                "customdata": of_links(|link| json!(link.3)),
                "color": of_links(|link| json!(link.4)),
                "hovertemplate": "%{customdata}<extra></extra>",
            },
        }],
        "layout": {
            "height": height + MARGIN_TOP + MARGIN_BOTTOM,
            "margin": { "l": 2, "r": 2, "t": MARGIN_TOP, "b": MARGIN_BOTTOM },
            "annotations": annotations.collect::<Vec<_>>(),
        },
        "short_labels": chart.short_labels,
    })
}

/// The ledger by station, in its order; all media are one column.
fn columns(result: &RunResult) -> Vec<Column<'_>> {
    let mut columns: Vec<Column> = Vec::new();
    let media = result.media.join(" + ");
    for row in &result.ledger {
        let station = if result.media.contains(&row.station) { &media } else { &row.station };
        if columns.last().is_none_or(|column| column.station != *station) {
            columns.push(Column { station: station.clone(), blocks: Vec::new() });
        }
        if let Some(column) = columns.last_mut().filter(|_| row.blocks.is_finite() && row.blocks > 0.0) {
            let kind: Kind = (&row.cause, &row.content);
            match column.blocks.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, blocks)) => *blocks += row.blocks,
                None => column.blocks.push((kind, row.blocks)),
            }
        }
    }
    columns
}

/// The rows of the chart, with the most blocks of each at any station. Ordered by the first station that passed them
/// on, then by content.
fn rows<'a>(columns: &[Column<'a>]) -> Vec<(Kind<'a>, f64)> {
    let mut rows: Vec<(Kind, f64)> = Vec::new();
    for column in columns {
        let mut fresh: Vec<Kind> = column.blocks.iter().map(|(kind, _)| *kind).collect();
        fresh.retain(|kind| rows.iter().all(|(other, _)| other != kind));
        fresh.sort_by_key(|kind| order_of_content(kind.1));
        fresh.dedup();
        for kind in fresh {
            rows.push((kind, columns.iter().map(|column| column.of(kind)).fold(0.0, f64::max)));
        }
    }
    rows
}

/// The CSS property of a content's colour.
pub fn content_colour(content: &str) -> String {
    let known = crate::label::Content::ALL.map(|known| known.name());
    format!("--{}", known.into_iter().find(|known| *known == content).unwrap_or("rest"))
}

fn hover((cause, content): Kind, blocks: f64) -> String {
    format!("{}<br>cause: {}<br>{}", escape(content), escape(cause), amount(blocks))
}

fn size(blocks: f64) -> String {
    number::bytes(blocks * BLOCK_BYTES as f64)
}

fn amount(blocks: f64) -> String {
    format!("{} blocks of 4 KiB ({})", number::decimal(blocks, 0), size(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// The sum of a node's incoming (or outgoing) links.
    fn links_at(figure: &Value, end: &str, label: &str) -> f64 {
        let (node, link) = (&figure["data"][0]["node"], &figure["data"][0]["link"]);
        let labels = node["label"].as_array().unwrap();
        let wanted = labels.iter().position(|other| other.as_str().unwrap().starts_with(label)).unwrap();
        let ends = link[end].as_array().unwrap().iter().zip(link["value"].as_array().unwrap());
        ends.filter(|(node, _)| node.as_u64() == Some(wanted as u64)).map(|(_, value)| value.as_f64().unwrap()).sum()
    }

    #[test]
    fn the_programmed_blocks_flow_into_the_flash_and_on_to_the_erases() {
        let result = sample::journaled("ext/page/nand", 1);
        let figure = flow(&result).unwrap();
        let programmed: f64 = result.programmed().map(|row| row.blocks).sum();
        assert_eq!(links_at(&figure, "target", "programmed"), programmed);
        assert!((links_at(&figure, "source", "programmed") - programmed).abs() < 1.0);
    }

    #[test]
    fn a_flash_that_programs_exactly_what_it_receives_has_no_column() {
        let headings = |result: &RunResult| flow(result).unwrap()["layout"]["annotations"].as_array().unwrap().len();
        let mut result = sample::page_level("page/nand", 1);
        assert_eq!(headings(&result), 4);
        result.ledger.last_mut().unwrap().blocks += 1000.0;
        assert_eq!(headings(&result), 5);
    }

    #[test]
    fn absorbed_blocks_end_at_their_station() {
        let mut result = sample::page_level("page/nand", 1);
        for row in result.ledger.iter_mut().filter(|row| row.station != "workload" && row.cause == "host-write") {
            row.blocks /= 2.0;
        }
        let figure = flow(&result).unwrap();
        let half = result.workload.written_blocks as f64 / 2.0;
        assert_eq!(links_at(&figure, "source", "host data"), half);
    }

    #[test]
    fn rows_do_not_overlap_and_stay_inside() {
        let figure = flow(&sample::journaled("ext/page/nand", 1)).unwrap();
        let node = &figure["data"][0]["node"];
        for axis in ["x", "y"] {
            assert!(node[axis].as_array().unwrap().iter().all(|at| (0.0..1.0).contains(&at.as_f64().unwrap())));
        }
    }

    #[test]
    fn an_empty_ledger_has_no_flow() {
        assert!(flow(&sample::empty("page/nand")).is_none());
        let mut result = sample::page_level("page/nand", 1);
        result.ledger.iter_mut().for_each(|row| row.blocks = f64::NAN);
        assert!(flow(&result).is_none());
    }
}
