//! Figures as Markdown, for docs/results.md and the terminal.

use super::{Claim, Figure, Panel, Reproduction, Verdict};
use crate::report::number::{NONE, three_digits};
use std::fmt::Write;

/// The paper's figures as tables. `plots` is the folder of their pictures, NAME.svg each, if any.
pub fn markdown(reproduction: &Reproduction, plots: Option<&str>) -> String {
    let mut text = format!("## {}\n\n", reproduction.title);
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "`{}`, scale {}, seed {}.\n",
        reproduction.command,
        scale(reproduction.scale),
        reproduction.seed
    );
    for (name, value) in &reproduction.conditions {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for figure in &reproduction.figures {
        let _ = write!(text, "\n### {}\n\n{}\n\n", figure.title, about(figure));
        if let Some(folder) = plots {
            let _ = writeln!(text, "![{}]({folder}/{}.svg)\n", figure.title, figure.name);
        }
        panels(&mut text, figure);
        claims(&mut text, &figure.claims);
    }
    text
}

/// The method of a figure, and the program that made it.
pub(super) fn about(figure: &Figure) -> String {
    let made_by = figure.made_by.as_ref().map(|program| format!(" Made by {program}.")).unwrap_or_default();
    format!("{}{made_by}", figure.about)
}

/// A table of the numbers of claims with each verdict, for each paper.
pub fn summary(reproductions: &[Reproduction]) -> String {
    let titles: Vec<&str> = reproductions.iter().map(|paper| paper.title.as_str()).collect();
    let mut text = format!("| verdict | {} |\n|---|{}\n", titles.join(" | "), "---:|".repeat(titles.len()));
    for verdict in Verdict::ALL {
        let counts: Vec<String> = reproductions.iter().map(|paper| paper.count(verdict).to_string()).collect();
        let _ = writeln!(text, "| {verdict} | {} |", counts.join(" | "));
    }
    text
}

/// `1/16`, or `1`.
pub(super) fn scale(scale: f64) -> String {
    let part = 1.0 / scale;
    if scale < 1.0 && (part - part.round()).abs() < 1e-9 { format!("1/{part:.0}") } else { format!("{scale}") }
}

fn panels(text: &mut String, figure: &Figure) {
    for Panel { title, unit, series, groups, .. } in &figure.panels {
        let unit = unit.as_ref().unwrap_or(&figure.unit);
        let _ = writeln!(text, "| {} | {} |", heading(title, unit), series.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(series.len()));
        for (group, values) in groups {
            let values: Vec<String> = values.iter().map(|value| value.map_or(NONE.into(), three_digits)).collect();
            let _ = writeln!(text, "| {group} | {} |", values.join(" | "));
        }
        text.push('\n');
    }
}

/// The heading of a panel: its title, if any, and the unit.
pub(super) fn heading(title: &str, unit: &str) -> String {
    if title.is_empty() { unit.to_string() } else { format!("{title}: {unit}") }
}

fn claims(text: &mut String, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    text.push_str("| the paper says | paper | ours | |\n|---|---:|---:|---|\n");
    for claim in claims {
        let ours = claim.ours.map_or(NONE.into(), three_digits);
        let (says, place, bounds) = (&claim.says, &claim.place, claim.bounds());
        let _ = writeln!(text, "| {says} ({place}) | {bounds} | {ours} | {} |", claim.judgement());
    }
}
