//! The text parts of the page: cards, tables.

use super::charts::path_tag;
use crate::report::chart::SeriesStyle;
use crate::report::comparison::{key_rows, overprovisioning_row, sections, throughput_row};
use crate::report::escape::{escape, escape_path};
use crate::report::row::{Cell, Row, WARNED, WARNED_LEGEND};
use crate::report::verdict::sentences;
use crate::report::{RunResult, number};

/// The letter of a path, in its colour.
pub fn tag(index: usize) -> String {
    format!("<span class=\"tag\" style=\"--path:{}\">{}</span>", SeriesStyle::of(index).colour, path_tag(index))
}

fn value(cell: &Cell) -> String {
    let mut text = escape(&cell.text);
    if cell.warned {
        text += &format!("<abbr class=\"warned\" title=\"{WARNED_LEGEND}\">{WARNED}</abbr>");
    }
    if cell.best { format!("<span class=\"best\">{text}</span>") } else { text }
}

/// A card for each path: the first key number large, the others below it.
pub fn cards(results: &[RunResult]) -> String {
    let mut rows = key_rows(results);
    rows.extend([overprovisioning_row(results), throughput_row(results)]);
    let card = |(index, result): (usize, &RunResult)| {
        // Nothing is known of the flash below a directory.
        let is_shown = |row: &&Row| !result.is_in_directory() || row.cells[index].text != number::NONE;
        let shown: Vec<&Row> = rows.iter().filter(is_shown).collect();
        // Without a steady part, the total is shown.
        let large = match result.is_in_directory() {
            true => shown.len().saturating_sub(1),
            false => usize::from(result.write_amplification.steady.is_none()).min(shown.len() - 1),
        };
        // Rows that no path has measured are left out, as in the comparison.
        let others = shown.iter().enumerate().filter(|(place, row)| *place != large && !row.is_empty());
        let others = others.map(|(_, row)| *row);
        let line = |row: &Row| format!("<div><dt>{}</dt><dd>{}</dd></div>", row.label, value(&row.cells[index]));
        let interrupted = if result.interrupted { "<span class=\"alarm\">interrupted</span> " } else { "" };
        let hero = shown.get(large).map_or(String::new(), |row| {
            let (value, label) = (value(&row.cells[index]), &row.label);
            format!("<div class=\"hero\"><b>{value}</b><span class=\"muted\">{label}</span></div>")
        });
        format!(
            "<article class=\"card\" style=\"--path:{}\"><p class=\"path\">{}{interrupted}{}</p>\
             {hero}<dl>{}</dl></article>\n",
            SeriesStyle::of(index).colour,
            tag(index),
            escape_path(&result.full_label()),
            others.map(line).collect::<String>(),
        )
    };
    format!("<div class=\"cards\">{}</div>\n", results.iter().enumerate().map(card).collect::<String>())
}

/// The sentences of the comparison on the drives' lives, above all numbers; empty if it says nothing.
pub fn verdict(results: &[RunResult]) -> String {
    let items: String =
        sentences(results).iter().map(|sentence| format!("<li>{}</li>", escape_path(sentence))).collect();
    if items.is_empty() { items } else { format!("<section class=\"verdict\"><ul>{items}</ul></section>\n") }
}

/// A table in a box that scrolls if it is wider than the page.
pub fn table(label: &str, head: &str, body: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table><thead>{head}</thead>\
         <tbody>{body}</tbody></table></div>\n"
    )
}

/// All rows of the comparison, a column for each path.
pub fn comparison(results: &[RunResult]) -> String {
    let heading = |(index, result): (usize, &RunResult)| {
        format!("<th scope=\"col\">{}<span class=\"path\">{}</span></th>", tag(index), escape_path(result.label()))
    };
    let head = format!("<tr><th></th>{}</tr>", results.iter().enumerate().map(heading).collect::<String>());
    let mut body = String::new();
    for section in sections(results) {
        body += &format!(
            "<tr class=\"title\"><th scope=\"colgroup\" colspan=\"{}\">{}</th></tr>",
            results.len() + 1,
            section.title
        );
        for row in &section.rows {
            let cells = row.cells.iter().map(|cell| format!("<td>{}</td>", value(cell))).collect::<String>();
            body += &format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(&row.label));
        }
    }
    table("Comparison of the paths", &head, &body)
}

/// The ledger of one path, row by row.
pub fn ledger(result: &RunResult) -> String {
    let written = result.workload.written_blocks as f64;
    let head = "<tr><th scope=\"col\">station</th><th scope=\"col\">cause</th><th scope=\"col\">origin</th>\
                <th scope=\"col\">content</th>\
                <th scope=\"col\">blocks</th><th scope=\"col\">per block written</th></tr>";
    let row = |row: &crate::report::LedgerRow| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&row.station),
            escape(&row.cause),
            escape(&row.origin),
            escape(&row.content),
            number::decimal(row.blocks, 0),
            number::decimal(row.blocks / written, 3)
        )
    };
    table("The ledger", head, &result.ledger.iter().map(row).collect::<String>())
}

/// The checked sums.
pub fn sums(results: &[RunResult]) -> String {
    if results.iter().all(|result| result.sums.is_empty()) {
        return "<p class=\"muted\">None.</p>".into();
    }
    let head = "<tr><th scope=\"col\">path</th><th scope=\"col\" class=\"words\">equation</th><th scope=\"col\">left side</th>\
                <th scope=\"col\">right side</th><th scope=\"col\"></th></tr>";
    let mut body = String::new();
    for (index, result) in results.iter().enumerate() {
        for sum in &result.sums {
            let side = |value: f64| number::decimal(value, if value.fract() == 0.0 { 0 } else { 3 });
            let verdict = if sum.holds { "holds" } else { "<span class=\"alarm\">does not hold</span>" };
            body += &format!(
                "<tr><td>{}</td><td class=\"words\">{}</td><td>{}</td><td>{}</td><td>{verdict}</td></tr>",
                tag(index),
                escape(&sum.name),
                side(sum.left),
                side(sum.right)
            );
        }
    }
    table("Checked sums", head, &body)
}

/// The workload and drive of each path.
pub fn drives(results: &[RunResult]) -> String {
    let mut drives = String::new();
    for (index, result) in results.iter().enumerate() {
        let flash = &result.flash;
        let facts = vec![("workload", escape(&result.workload.name)), ("seed", result.seed.to_string())];
        let of_the_drive = [
            ("exported", number::bytes(flash.exported_bytes as f64)),
            ("raw", number::bytes(flash.raw_bytes as f64)),
            ("page", number::bytes(flash.page_bytes as f64)),
            ("pages per erase block", number::count(flash.pages_per_block)),
            ("erase blocks", number::count(flash.blocks)),
            ("endurance", format!("{} erases", number::count(result.wear.endurance.into()))),
        ];
        let of_the_drive = of_the_drive.into_iter().filter(|_| !result.is_in_directory());
        let facts: Vec<String> =
            facts.into_iter().chain(of_the_drive).map(|(name, value)| format!("{name} {value}")).collect();
        let facts = facts.join(" \u{b7} ");
        drives += &format!(
            "<h3>{}<span class=\"path\">{}</span></h3><p class=\"muted facts\">{facts}</p>",
            tag(index),
            escape_path(&result.full_label())
        );
    }
    drives
}
