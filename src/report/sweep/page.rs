//! A sweep as one offline HTML page: the figure, the means, and the runs that failed.

use super::SweepRow;
use super::distribution::{
    Distribution, default_number, distribution_cells, distribution_chart, distributions, is_batch, note,
};
use super::figure::Figure;
use super::means::Group;
use super::summary::{cells, footnotes, lives};
use super::unit::Units;
use crate::report::chart::{SCRIPT, css, embedded};
use crate::report::escape::{escape, escape_names};
use serde_json::Value;

/// The most failed runs that are named.
const MOST_FAILURES: usize = 100;
/// The most rows of the table of means.
const MOST_ROWS: usize = 1000;

/// The page, with what is `said` of the whole above all else. Its scripts save the figure and change the theme; without
/// them all else is there.
pub fn page(
    title: &str,
    said: &[String],
    rows: &[SweepRow],
    groups: &[Group],
    figure: &Option<Figure>,
    units: &Units,
) -> String {
    let columns: Vec<String> =
        groups.first().map_or(Vec::new(), |group| group.cells.iter().map(|cell| cell.0.clone()).collect());
    let is_batch = is_batch(&columns);
    // Devices are compared by their distribution, and not one with another.
    let of_lives = if is_batch { Vec::new() } else { lives(groups, units) };
    let asked = figure.as_ref().filter(|figure| figure.asks_y).map(|figure| figure.y.as_str());
    let sections = [
        sentences(said.iter().cloned().chain(of_lives)),
        devices(&distributions(rows, &columns), asked, units),
        if is_batch { String::new() } else { figure_of(figure, groups) },
        table_of(if is_batch { "Devices" } else { "Means" }, groups, figure, units),
        warnings(groups, rows, units),
        failures(rows),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} \u{b7} Flashpath</title>\n\
         <style>\n{}{}</style>\n</head>\n<body>\n<main>\n\
         <button id=\"theme\" type=\"button\" aria-label=\"Change between light and dark\">Dark</button>\n\
         <h1>{heading}</h1>\n{}</main>\n<script>\n{}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        css(),
        include_str!("../figure/page.css"),
        sections.concat(),
        include_str!("../html/page.js"),
        title = escape(title),
        heading = escape_names(title),
    )
}

/// Sentences in large type.
fn sentences(said: impl Iterator<Item = String>) -> String {
    let lines: String = said.map(|sentence| format!("<p class=\"answer\">{}</p>\n", escape_names(&sentence))).collect();
    if lines.is_empty() { lines } else { format!("<section>\n{lines}</section>\n") }
}

/// The distribution over the devices of a trace, as a figure and a table; empty if there are none.
fn devices(all: &[Distribution], asked: Option<&str>, units: &Units) -> String {
    let Some(default) = default_number(all) else { return String::new() };
    let is_there = |number: &&str| all.iter().any(|one| one.number == **number);
    let Some(chart) = distribution_chart(all, asked.filter(is_there).unwrap_or(default), units) else {
        return String::new();
    };
    let (head, rows) = distribution_cells(all, units);
    format!(
        "<section>\n<h2>{}</h2>\n{}<div class=\"scroll numbers\"><table>\n{}{}</table></div>\n<p>{}</p></section>\n",
        escape(&chart.summary),
        embedded(&chart),
        line(&head, "th"),
        rows.iter().map(|row| line(row, "td")).collect::<String>(),
        escape(&note(all)),
    )
}

/// A row of a table.
fn line(cells: &[String], tag: &str) -> String {
    let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
    format!("<tr>{cells}</tr>\n")
}

fn figure_of(figure: &Option<Figure>, groups: &[Group]) -> String {
    let Some(figure) = figure else { return String::new() };
    let heading = escape(&figure.title());
    if figure.is_empty(groups) {
        let y = escape(&figure.y);
        return format!("<section>\n<h2>{heading}</h2>\n<p>No run has the number {y}.</p>\n</section>\n");
    }
    let has_intervals =
        groups.iter().any(|group| group.means.get(&figure.y).is_some_and(|mean| mean.half_width.is_some()));
    let caption = if has_intervals { "<p>Means over the seeds, with 95 % confidence intervals.</p>" } else { "" };
    let rest = match figure.left_out(groups) {
        0 => String::new(),
        more => format!("<p>{more} more choices of options are in the table alone.</p>"),
    };
    let has_warned = groups.iter().any(|group| group.warned > 0 && group.means.contains_key(&figure.y));
    let marked =
        if has_warned { "<p>* Runs of these points have warnings, which may void them: see below.</p>" } else { "" };
    format!("<section>\n<h2>{heading}</h2>\n{}{caption}{marked}{rest}</section>\n", embedded(&figure.chart(groups)))
}

fn table_of(title: &str, groups: &[Group], figure: &Option<Figure>, units: &Units) -> String {
    let (head, rows) = cells(groups, figure.as_ref().map(|figure| figure.y.as_str()), units);
    let body: String = rows.iter().take(MOST_ROWS).map(|row| line(row, "td")).collect();
    let rest = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("<p>{more} more rows are in the CSV alone.</p>"),
    };
    format!(
        "<section>\n<h2>{title}</h2>\n<div class=\"scroll numbers\"><table>\n{}{body}</table></div>\n{rest}</section>\n",
        line(&head, "th")
    )
}

fn warnings(groups: &[Group], rows: &[SweepRow], units: &Units) -> String {
    let notes: String =
        footnotes(groups, rows, units).iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
    match notes.is_empty() {
        true => String::new(),
        false => format!(
            "<section>\n<h2>Warnings</h2>\n<p>They may void the numbers that are marked with *.</p>\n<ul>\n{notes}</ul>\n</section>\n"
        ),
    }
}

fn failures(rows: &[SweepRow]) -> String {
    let text = |row: &SweepRow, name: &str| row.get(name).and_then(Value::as_str).map_or(String::new(), escape);
    let failed: Vec<&SweepRow> = rows.iter().filter(|row| row.get("error").is_some_and(Value::is_string)).collect();
    if failed.is_empty() {
        return String::new();
    }
    let lines: String = failed
        .iter()
        .take(MOST_FAILURES)
        .map(|row| {
            let seed = row.get("seed").map_or(String::new(), Value::to_string);
            let (workload, path, error) = (text(row, "workload.name"), text(row, "path"), text(row, "error"));
            format!("<li><code>{workload}</code> on <code>{path}</code>, seed {seed}: {error}</li>\n")
        })
        .collect();
    format!("<section>\n<h2>{} failed runs</h2>\n<ul>\n{lines}</ul>\n</section>\n", failed.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sweep::groups;
    use serde_json::json;

    #[test]
    fn a_page_has_the_figure_the_means_and_the_failures() {
        let row = |value: Value| value.as_object().unwrap().clone();
        let rows = [
            row(json!({ "page.op": 0.07, "seed": 1, "write_amplification.steady": 3.0, "error": null })),
            row(
                json!({ "page.op": 0.28, "seed": 1, "write_amplification.steady": 1.0, "warnings": "[\"not <erased>\"]" }),
            ),
            row(json!({ "page.op": 0.14, "seed": 1, "path": "a<b", "workload.name": "w", "error": "too <small>" })),
        ];
        let columns = ["page.op", "seed"].map(String::from);
        let groups = groups(&rows, &columns);
        let figure = Figure::choose(&columns, &groups, [None; 3]);
        let said = ["met from <op>".to_string()];
        let page = page("a & b", &said, &rows, &groups, &figure, &Units::new());
        for part in [
            "<h1>a &amp; b</h1>",
            "id=\"theme\"",
            "<p class=\"answer\">met from &lt;op&gt;</p>",
            "data-name=\"sweep\"",
            "<th>page.op</th>",
            "1 failed runs",
            "too &lt;small&gt;",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for part in [
            "<td>1.00*</td>",
            "<li>[1] 1 of 3 runs (page.op=0.28): not &lt;erased&gt;</li>",
            "these points have warnings",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(super::page("none", &[], &[], &[], &None, &Units::new()).ends_with("</html>\n"));
    }
}
