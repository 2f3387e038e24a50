//! Figures as one offline HTML page. Its script saves them as files.

use super::markdown::{about, heading, scale};
use super::{Claim, Figure, Reproduction, Verdict, chart};
use crate::report::chart::{SCRIPT, css, embedded};
use crate::report::escape::escape;
use crate::report::number::{NONE, three_digits};

/// The papers' figures with their pictures, as a self-contained page.
pub fn page(reproductions: &[Reproduction]) -> String {
    let papers: String = reproductions.iter().map(paper).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Figures \u{b7} Flashpath</title>\n\
         <style>\n{}{}</style>\n</head>\n<body>\n<main>\n\
         <button id=\"theme\" type=\"button\" aria-label=\"Change between light and dark\">Dark</button>\n\
         <h1>The papers' figures, reproduced</h1>\n{}{papers}</main>\n<script>\n{}</script>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        css(),
        include_str!("page.css"),
        verdicts(reproductions),
        include_str!("../html/page.js"),
    )
}

/// The table of verdicts of all papers.
fn verdicts(reproductions: &[Reproduction]) -> String {
    let heads = reproductions.iter().map(|paper| escape(&paper.title)).collect();
    let row = |verdict: Verdict| {
        let counts = reproductions.iter().map(|paper| paper.count(verdict).to_string());
        std::iter::once(verdict.to_string()).chain(counts).collect()
    };
    table(&["verdict".to_string()], heads, Verdict::ALL.into_iter().map(row))
}

fn paper(reproduction: &Reproduction) -> String {
    let figures: String = reproduction.figures.iter().map(section).collect();
    let conditions =
        |(name, value): &(String, String)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), with_code(value));
    format!(
        "<h2>{}</h2>\n<p><code>{}</code>, scale {}, seed {}</p>\n<dl>\n{}</dl>\n{}",
        escape(&reproduction.title),
        escape(&reproduction.command),
        scale(reproduction.scale),
        reproduction.seed,
        reproduction.conditions.iter().map(conditions).collect::<String>(),
        figures
    )
}

/// Text in which backticks enclose code, as in Markdown.
fn with_code(text: &str) -> String {
    let part = |(place, part): (usize, &str)| match place % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    text.split('`').enumerate().map(part).collect()
}

fn section(figure: &Figure) -> String {
    let tables: String = figure
        .panels
        .iter()
        .map(|panel| {
            let series = panel.series.iter().map(|series| escape(series)).collect();
            let rows = panel.groups.iter().map(|(group, values)| {
                let values = values.iter().map(|value| value.map_or(NONE.into(), three_digits));
                std::iter::once(escape(group)).chain(values).collect()
            });
            table(&[escape(&heading(&panel.title, panel.unit.as_ref().unwrap_or(&figure.unit)))], series, rows)
        })
        .collect();
    let claims = figure.claims.iter().map(|claim: &Claim| {
        vec![
            escape(&format!("{} ({})", claim.says, claim.place)),
            claim.bounds(),
            claim.ours.map_or(NONE.into(), three_digits),
            escape(&claim.judgement()),
        ]
    });
    let heads = ["paper", "ours", ""].map(String::from).to_vec();
    let claims =
        if figure.claims.is_empty() { String::new() } else { table(&["the paper says".into()], heads, claims) };
    format!(
        "<section>\n<h3>{}</h3>\n<p>{}</p>\n{}\n{tables}{claims}</section>\n",
        escape(&figure.title),
        escape(&about(figure)),
        embedded(&chart(figure))
    )
}

fn table(first: &[String], heads: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let cells =
        |cells: &[String], tag: &str| cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect::<String>();
    let body: String = rows.map(|row| format!("<tr>{}</tr>\n", cells(&row, "td"))).collect();
    format!(
        "<div class=\"scroll\"><table>\n<tr>{}{}</tr>\n{body}</table></div>\n",
        cells(first, "th"),
        cells(&heads, "th")
    )
}
