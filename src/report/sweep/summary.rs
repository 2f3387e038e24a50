//! The means of a sweep as a table: for a terminal, and for a page.

use super::SweepRow;
use super::means::Group;
use super::statistics::Mean;
use super::unit::{Units, measured, shown};
use super::warned::{MARK, Warned, warned};
use crate::report::number::{NONE, visible};
use crate::report::verdict::{Life, of_lives};

/// The numbers that are shown, if runs have them.
const SHOWN: [&str; 9] = [
    "write_amplification.steady",
    "write_amplification.total",
    "throughput_mib_s",
    "latency_ns.write.p99",
    "latency_ns.read.p99",
    "wear.lifetime_host_tib",
    "wear.lifetime_application_tib",
    "wear.rate.years",
    "energy.total_j_per_host_gib",
];

/// The most rows on a terminal.
const MOST_ROWS: usize = 60;
/// The most choices of options that are named beside a warning.
const MOST_NAMED: usize = 4;
/// The most groups whose lives are compared in sentences.
const MOST_COMPARED: usize = 4;
/// The longest text of a cell on a terminal.
const MOST_CHARACTERS: usize = 40;

/// The head and the cells of the means: the varied options, the number of runs, `also` and the main numbers.
pub(super) fn cells(groups: &[Group], also: Option<&str>, units: &Units) -> (Vec<String>, Vec<Vec<String>>) {
    let is_there = |name: &&str| groups.iter().any(|group| group.means.contains_key(*name));
    let also = also.filter(|name| !SHOWN.contains(name));
    let numbers: Vec<&str> = also.into_iter().chain(SHOWN).filter(is_there).collect();
    let varied = groups.first().map_or(&[][..], |group| &group.cells);
    let has_failed = groups.iter().any(|group| group.failed > 0);
    let has_warned = groups.iter().any(|group| group.warned > 0);
    let mut head: Vec<String> = varied.iter().map(|(name, _)| name.clone()).collect();
    head.push("runs".to_string());
    head.extend(has_warned.then(|| "warnings".to_string()));
    head.extend(has_failed.then(|| "failed".to_string()));
    head.extend(numbers.iter().map(|name| (*name).to_string()));
    let row = |group: &Group| {
        let mut row: Vec<String> = group.cells.iter().map(|(name, value)| shown(name, value, units)).collect();
        row.push(group.runs.to_string());
        row.extend(has_warned.then(|| notes(group)));
        row.extend(has_failed.then(|| group.failed.to_string()));
        row.extend(numbers.iter().map(|name| match group.means.get(*name) {
            Some(found) if group.warned > 0 => format!("{}{MARK}", mean(name, found)),
            Some(found) => mean(name, found),
            None => NONE.to_string(),
        }));
        row
    };
    (head, groups.iter().map(row).collect())
}

/// The notes of a group's warnings, by the numbers of [`footnotes`].
fn notes(group: &Group) -> String {
    group.kinds.iter().map(|kind| format!("[{}]", kind + 1)).collect::<Vec<_>>().join(" ")
}

/// A line for each kind of warning: its number, the runs that have it, and its text.
pub(super) fn footnotes(groups: &[Group], rows: &[SweepRow], units: &Units) -> Vec<String> {
    let line = |(number, warned): (usize, Warned)| {
        let of: Vec<&Group> = groups.iter().filter(|group| group.kinds.contains(&number)).collect();
        let (runs, text) = (warned.rows.len(), visible(&warned.text));
        format!("[{}] {runs} of {} runs{}: {text}", number + 1, rows.len(), which(&of, units))
    };
    warned(rows).into_iter().enumerate().map(line).collect()
}

/// The options of the first of some groups, in brackets; empty if no option is varied.
fn which(groups: &[&Group], units: &Units) -> String {
    let options = |group: &&Group| {
        let cells = group.cells.iter().map(|(name, value)| format!("{name}={}", shown(name, value, units)));
        cells.collect::<Vec<_>>().join(" ")
    };
    let named: Vec<String> =
        groups.iter().take(MOST_NAMED).map(options).filter(|options| !options.is_empty()).collect();
    match (named.is_empty(), groups.len().saturating_sub(MOST_NAMED)) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", named.join("; ")),
        (false, more) => format!(" ({}; and {more} more choices of options)", named.join("; ")),
    }
}

/// A mean with half of the width of its interval: `1.23 ± 0.04`.
fn mean(column: &str, mean: &Mean) -> String {
    match mean.half_width {
        Some(half_width) => format!("{} \u{b1} {}", measured(column, mean.mean), measured(column, half_width)),
        None => measured(column, mean.mean),
    }
}

/// The sentences of the groups on the lives of drives, if they differ in one option and are few: one is compared with the others.
pub(super) fn lives(groups: &[Group], units: &Units) -> Vec<String> {
    if groups.len() > MOST_COMPARED {
        return Vec::new();
    }
    let mean = |group: &Group, column: &str| group.means.get(column).map(|mean| mean.mean);
    let life = |group: &Group| {
        Some(Life {
            name: group.cells.iter().map(|(name, value)| shown(name, value, units)).collect::<Vec<_>>().join(", "),
            application_tib: mean(group, "wear.lifetime_application_tib").filter(|tib| *tib > 0.0)?,
            host_tib: mean(group, "wear.lifetime_host_tib"),
        })
    };
    of_lives(&groups.iter().filter_map(life).collect::<Vec<_>>())
}

/// The means as text for a terminal of `width` columns, with the column `also` and the main numbers. Numbers that do not fit
/// are left out, the last ones first. Numbers of runs with warnings are marked, and the warnings follow.
pub fn table(groups: &[Group], rows: &[SweepRow], also: Option<&str>, units: &Units, width: usize) -> String {
    let (head, lines_of_groups) = cells(groups, also, units);
    let short = |text: &String| match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}\u{2026}", &text[..at]),
        None => text.clone(),
    };
    let lines: Vec<Vec<String>> = std::iter::once(&head)
        .chain(lines_of_groups.iter().take(MOST_ROWS))
        .map(|row| row.iter().map(short).collect())
        .collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let has_warned = groups.iter().any(|group| group.warned > 0);
    let fixed = groups.first().map_or(0, |group| group.cells.len()) + 1 + usize::from(has_warned);
    let fits = |columns: &usize| widths[..*columns].iter().map(|width| width + 2).sum::<usize>() <= width + 2;
    let columns = (fixed..=head.len()).rev().find(fits).unwrap_or(fixed.min(head.len()));
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line[..columns]
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}", width = *width))
            .collect();
        text += &format!("{}\n", cells.join("  "));
    }
    if lines_of_groups.len() > MOST_ROWS {
        text += &format!("... and {} more choices of options\n", lines_of_groups.len() - MOST_ROWS);
    }
    if columns < head.len() {
        text += &format!("not shown: {}\n", head[columns..].join(", "));
    }
    if groups.iter().any(|group| group.means.values().any(|mean| mean.half_width.is_some())) {
        text += "means over the seeds, \u{b1} half of the 95 % confidence interval\n";
    }
    for sentence in lives(groups, units) {
        text += &format!("{}\n", visible(&sentence));
    }
    if has_warned {
        text += &format!("{MARK} a run has a warning, which may void its numbers:\n");
        footnotes(groups, rows, units).iter().for_each(|note| text += &format!("{note}\n"));
    }
    text
}

/// The warnings of all runs, a line for each kind, as they are printed beside the table.
pub fn warning_lines(groups: &[Group], rows: &[SweepRow], units: &Units) -> Vec<String> {
    footnotes(groups, rows, units)
        .into_iter()
        .map(|note| note.split_once("] ").map_or(String::new(), |(_, rest)| rest.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sweep::groups;
    use serde_json::json;

    #[test]
    fn a_terminal_gets_the_varied_options_and_what_fits() {
        let row = |op: f64, seed: u64, steady: f64| {
            let row = json!({ "page.op": op, "seed": seed, "write_amplification.steady": steady, "wear.lifetime_host_tib": 9.5 });
            row.as_object().unwrap().clone()
        };
        let rows = [row(0.07, 1, 3.0), row(0.07, 2, 3.5), row(0.14, 1, 2.0), row(0.14, 2, 2.0)];
        let groups = groups(&rows, &["page.op".to_string(), "seed".to_string()]);
        let text = table(&groups, &rows, None, &Units::new(), 100);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("runs  write_amplification.steady  wear.lifetime_host_tib"), "{text}");
        assert!(lines[1].contains("0.07     2") && lines[1].contains("3.25 \u{b1} 3.18"), "{text}");
        assert!(lines[2].contains("2.00 \u{b1} 0"), "{text}");
        assert!(table(&groups, &rows, None, &Units::new(), 45).contains("not shown: wear.lifetime_host_tib"));
        assert!(!text.contains('*'), "nothing is marked: {text}");
        assert!(table(&[], &[], None, &Units::new(), 20).starts_with("runs\n"));
    }

    /// A sweep printed WA 1.00 of drives of which nothing was erased, and not the warning that a run of each printed: no test
    /// had a sweep whose runs warn.
    #[test]
    fn numbers_of_runs_with_warnings_are_marked_and_the_warnings_follow() {
        let row = |op: f64, warnings: &str| {
            let row = json!({ "page.op": op, "seed": 1, "write_amplification.steady": 1.0, "throughput_mib_s": 7, "warnings": warnings });
            row.as_object().unwrap().clone()
        };
        let rows = [
            row(0.07, "[\"nothing was erased in 9 s\"]"),
            row(0.14, "[]"),
            row(0.28, "[\"nothing was erased in 8 s\", \"short\"]"),
        ];
        let groups = groups(&rows, &["page.op".to_string(), "seed".to_string()]);
        let text = table(&groups, &rows, None, &Units::new(), 120);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("runs  warnings  "), "{text}");
        assert!(lines[1].contains("[1]") && lines[1].contains("1.00*") && lines[1].ends_with("7.00*"), "{text}");
        assert!(!lines[2].contains('*') && lines[3].contains("[1] [2]"), "{text}");
        assert!(text.contains("[1] 2 of 3 runs (page.op=0.07; page.op=0.28): nothing was erased in 9 s\n"), "{text}");
        assert!(table(&groups, &rows, None, &Units::new(), 20).contains("[1] [2]"), "a narrow terminal has them, too");
        assert_eq!(warning_lines(&groups, &rows, &Units::new())[1], "1 of 3 runs (page.op=0.28): short");
    }
}
