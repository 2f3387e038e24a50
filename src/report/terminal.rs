//! Results as a table for a terminal of a given width.

use comfy_table::{
    Cell as TableCell, CellAlignment, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, Table,
    TableStyle,
};

use super::comparison::{Section, comparability, sections};
use super::row::{BEST_LEGEND, Cell, WARNED, WARNED_LEGEND};
use super::verdict::sentences;
use super::{RunResult, files, number};

/// The least width assumed: numbers are never broken.
const NARROWEST_TERMINAL: usize = 40;

/// The widths tried for column headers, the widest that fits first: a longer path is broken after a separator.
const HEADER_WIDTHS: [usize; 4] = [32, 24, 18, 14];

/// The padding around a cell.
const PADDING: usize = 2;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Invisible zero-width characters that stand in for escape sequences during layout. User text has none.
const STARTS_BOLD: char = '\u{2061}';
const STARTS_DIM: char = '\u{2062}';
const ENDS: char = '\u{2063}';

/// The results as text for a terminal of `width` columns (at least 40): a column for each path, or a table for each
/// path if the columns do not fit. The best value of a row is bold with `colour`, and marked `*` without.
pub fn table(results: &[RunResult], width: usize, colour: bool) -> String {
    let width = width.max(NARROWEST_TERMINAL);
    let mut text = heading(results);
    if let [result @ RunResult { files: Some(in_files), .. }] = results
        && result.is_in_directory()
    {
        text += &files::in_directory(result, in_files);
        return painted(&(text + &notes(results)), colour);
    }
    let sections = sections(results);
    let paths: Vec<String> = results.iter().map(|result| number::visible(result.label())).collect();
    let fitting = HEADER_WIDTHS
        .into_iter()
        .map(|widest| value_widths(&sections, &paths, widest))
        .find(|widths| label_width(&sections) + widths.iter().sum::<usize>() <= width);
    if let Some(value_widths) = fitting.filter(|_| results.len() > 1) {
        let headers = paths.iter().zip(&value_widths).map(|(path, width)| broken(path, width - PADDING)).collect();
        let columns: Vec<usize> = (0..results.len()).collect();
        text += &layout(&sections, Some(headers), &columns, width, colour);
    } else {
        for (column, path) in paths.iter().enumerate() {
            text += &format!("{STARTS_BOLD}{path}{ENDS}\n{}\n", layout(&sections, None, &[column], width, colour));
        }
    }
    for result in results {
        if let Some(in_files) = &result.files {
            let title =
                if results.len() > 1 { format!("on {}\n", number::visible(result.label())) } else { String::new() };
            text += &format!("{title}{}", files::stages_and_operations(result, in_files));
        }
    }
    let cells = || sections.iter().flat_map(|section| &section.rows).flat_map(|row| &row.cells);
    if !colour && cells().any(|cell| cell.best && !cell.warned) {
        text += &format!("* {BEST_LEGEND}\n");
    }
    if cells().any(|cell| cell.warned) {
        text += &format!("{WARNED} {WARNED_LEGEND}\n");
    }
    for sentence in comparability(results).into_iter().chain(sentences(results)) {
        text += &format!("{}\n", number::visible(&sentence));
    }
    text += &notes(results);
    painted(&text, colour)
}

/// The workload, and interruptions.
fn heading(results: &[RunResult]) -> String {
    let mut text = String::new();
    let runs: Vec<String> = results
        .iter()
        .map(|result| format!("{}, seed {}", number::visible(&result.workload.name), result.seed))
        .collect();
    if let Some(first) = runs.first().filter(|first| runs.iter().all(|run| run == *first)) {
        text += &format!("workload {first}\n");
    } else {
        for (result, run) in results.iter().zip(&runs) {
            text += &format!("workload on {}: {run}\n", number::visible(result.label()));
        }
    }
    for result in results.iter().filter(|result| result.name.is_some()) {
        text += &format!("{}\n", number::visible(&result.full_label()));
    }
    for result in results.iter().filter(|result| result.interrupted) {
        let path = number::visible(result.label());
        text += &format!("{STARTS_BOLD}{path} was interrupted: the figures cover the completed part{ENDS}\n");
    }
    text.push('\n');
    text
}

/// The sums. Warnings are for standard error.
fn notes(results: &[RunResult]) -> String {
    let mut text = String::new();
    let sums = || results.iter().flat_map(|result| &result.sums);
    if sums().next().is_some() && sums().all(|sum| sum.holds) {
        let count = sums().count();
        text += &format!("{STARTS_DIM}ledger sums checked: {count}, all hold{ENDS}\n");
    }
    for result in results {
        let path = number::visible(result.label());
        for sum in result.sums.iter().filter(|sum| !sum.holds) {
            let (name, left, right) = (number::visible(&sum.name), exact(sum.left), exact(sum.right));
            text += &format!("{STARTS_BOLD}a sum does not hold{ENDS} on {path}: {name}: {left} is not {right}\n");
        }
    }
    text
}

/// One side of a sum, with decimals only if it has any.
fn exact(value: f64) -> String {
    number::decimal(value, if value.fract() == 0.0 { 0 } else { 3 })
}

/// The table of these columns, under their headers if given. Rows without a value in these columns are omitted.
fn layout(sections: &[Section], headers: Option<Vec<String>>, columns: &[usize], width: usize, colour: bool) -> String {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('\u{2500}').junction('\u{2500}');
    let blank = ContentLineStyle::none();
    table.load_style(TableStyle::new().header_lines(blank).header_separator(rule).content_lines(blank));
    if let Some(headers) = headers {
        table.set_header(std::iter::once(TableCell::new("")).chain(headers.into_iter().map(right)));
    }
    for section in sections {
        table.add_row([format!("{STARTS_DIM}{}{ENDS}", section.title)]);
        for row in &section.rows {
            let cells: Vec<&Cell> = columns.iter().map(|&column| &row.cells[column]).collect();
            if cells.iter().any(|cell| cell.text != number::NONE) {
                let values = cells.into_iter().map(|cell| right(marked(cell, colour)));
                table.add_row(std::iter::once(TableCell::new(format!("  {}", row.label))).chain(values));
            }
        }
    }
    if let Ok(width) = u16::try_from(width) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    // If the terminal is too narrow, labels are broken, not numbers.
    for column in table.column_iter_mut().skip(1) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt() + "\n"
}

fn right(text: String) -> TableCell {
    TableCell::new(text).set_alignment(CellAlignment::Right)
}

/// A cell's text with room for its mark, so that numbers align: that of a warning comes before that of the best.
fn marked(cell: &Cell, colour: bool) -> String {
    let text = match (cell.best, colour) {
        (true, true) => format!("{STARTS_BOLD}{}{ENDS}", cell.text),
        _ => cell.text.clone(),
    };
    let mark = match (cell.warned, cell.best && !colour) {
        (true, _) => WARNED,
        (false, true) => '*',
        (false, false) => ' ',
    };
    format!("{text}{mark}")
}

fn label_width(sections: &[Section]) -> usize {
    let labels = sections.iter().flat_map(|section| &section.rows).map(|row| row.label.chars().count() + 2);
    labels.max().unwrap_or(0) + PADDING
}

/// The width of each path's column: its longest value, and its path up to `widest`.
fn value_widths(sections: &[Section], paths: &[String], widest: usize) -> Vec<usize> {
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let longest =
        |column: usize| rows().map(|row| marked(&row.cells[column], false).chars().count()).max().unwrap_or(0);
    let header = |path: &String| path.chars().count().min(widest);
    paths.iter().enumerate().map(|(column, path)| longest(column).max(header(path)) + PADDING).collect()
}

/// A path in lines of at most `width` characters, broken after `/`, `,`, `:` or `+` if possible.
fn broken(path: &str, width: usize) -> String {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut rest: Vec<char> = path.chars().collect();
    while rest.len() > width {
        let separator = rest[..width].iter().rposition(|c| "/,:+".contains(*c));
        let line = rest.drain(..separator.map_or(width, |at| at + 1)).collect();
        lines.push(line);
    }
    lines.push(rest.into_iter().collect());
    lines.join("\n")
}

/// Replaces the marks of emphasis by escape sequences, or removes them.
fn painted(text: &str, colour: bool) -> String {
    let mut painted = String::with_capacity(text.len());
    for c in text.chars() {
        match (c, colour) {
            (STARTS_BOLD, true) => painted += BOLD,
            (STARTS_DIM, true) => painted += DIM,
            (ENDS, true) => painted += PLAIN,
            (STARTS_BOLD | STARTS_DIM | ENDS, false) => {}
            (c, _) => painted.push(c),
        }
    }
    painted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn three() -> [RunResult; 3] {
        [
            sample::page_level("page:victim=greedy/nand:size=64G", 42),
            sample::log_structured("sfs:groups=4,cleaner=cost-hotness/zns:zone=64M,size=64G", 42),
            sample::journaled("ext:data=ordered,journal=inline/page/nand:size=64G", 42),
        ]
    }

    /// The widest line of the tables; the terminal wraps sentences.
    fn widest_line(text: &str) -> usize {
        let is_sentence = |line: &str| line.starts_with(|c: char| !c.is_whitespace() && c != '\u{2500}');
        text.lines().filter(|line| !is_sentence(line)).map(|line| line.chars().count()).max().unwrap()
    }

    #[test]
    fn paths_that_fit_share_a_table() {
        let text = table(&three(), 200, false);
        let row = text.lines().find(|line| line.contains("write amplification, total")).unwrap();
        for value in ["2.376", "1.633*", "2.655"] {
            assert!(row.contains(value), "{row}");
        }
    }

    #[test]
    fn no_line_of_a_table_is_wider_than_the_terminal() {
        for width in [40, 50, 60, 80, 100, 132, 200] {
            let text = table(&three(), width, false);
            assert!(widest_line(&text) <= width, "{} in {width}:\n{text}", widest_line(&text));
            assert!(text.contains("2.376"), "{text}");
        }
    }

    #[test]
    fn a_narrow_terminal_gets_a_table_for_each_path() {
        let text = table(&three(), 80, false);
        assert_eq!(text.lines().filter(|line| line.contains("write amplification, total")).count(), 3);
        assert!(text.contains("1.633*"));
    }

    #[test]
    fn a_width_of_any_size_gives_a_table() {
        for width in [0, 1, 2, usize::MAX] {
            assert!(table(&three(), width, true).contains("sfs"));
        }
        assert!(!table(&[sample::empty("page/nand")], 80, false).contains("NaN"));
        assert!(!table(&[], 80, false).contains('*'));
    }

    #[test]
    fn colour_changes_nothing_but_the_emphasis() {
        let with_colour = table(&three(), 200, true);
        assert!(with_colour.contains("\x1b[1m1.633\x1b[0m"));
        assert!(!with_colour.contains('*'));
        assert!(!table(&three(), 200, false).contains('\x1b'));
    }

    #[test]
    fn interruptions_and_broken_sums_are_shown_and_warnings_are_left_to_standard_error() {
        let mut results = three();
        results[0].sums[0].right += 1.0;
        results[0].sums[0].holds = false;
        let text = table(&results, 200, false);
        assert!(text.contains("was interrupted: the figures cover the completed part"));
        assert!(!results[2].warnings.is_empty() && !text.contains(&results[2].warnings[0]));
        assert!(text.contains("a sum does not hold on page:victim=greedy"));
    }

    #[test]
    fn long_paths_are_broken_after_a_separator() {
        assert_eq!(broken("sfs:groups=4/zns:zone=64M", 14), "sfs:groups=4/\nzns:zone=64M");
        assert_eq!(broken("aaaaaaaa", 3), "aaa\naaa\naa");
    }
}
