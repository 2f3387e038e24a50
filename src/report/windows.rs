//! The windows of runs as a table: a row for each window of each path, with what the media stored in it by cause.

use super::comma_separated::comma_separated;
use super::flat::FlatTable;
use super::parquet_table::parquet_file;
use super::{CauseOverTime, RunResult, Window, WriteError, number};
use crate::units::BLOCK_BYTES;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The columns that come first, if they are there.
const FIRST: [&str; 8] = [
    "name",
    "path",
    "window",
    "seconds_simulated",
    "written_blocks",
    "stored_blocks",
    "write_amplification",
    "throughput_mib_s",
];

/// The most windows of a path on a terminal.
const MOST_SHOWN: usize = 60;

/// The windows as comma-separated text.
pub fn windows_csv(results: &[RunResult]) -> String {
    comma_separated(&flat(results))
}

/// The same table as a Parquet file. `name` is that of the file in an error.
pub fn windows_parquet(results: &[RunResult], name: &str) -> Result<Vec<u8>, WriteError> {
    let failed = |error| WriteError { file: name.to_string(), source: std::io::Error::other(error) };
    parquet_file(&flat(results)).map_err(failed)
}

fn flat(results: &[RunResult]) -> FlatTable {
    let rows: Vec<Value> = results.iter().flat_map(rows).map(Value::Object).collect();
    let mut table = FlatTable::of(&rows);
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    // Stable: the others keep their order.
    table.columns.sort_by_key(|column| rank(&column.name));
    table
}

/// The rows of a run.
fn rows(result: &RunResult) -> Vec<Map<String, Value>> {
    let row = |(place, window): (usize, &Window)| {
        let value = serde_json::to_value(window).expect("a window holds only text, numbers and lists");
        let Value::Object(mut row) = value else { unreachable!("a window is an object") };
        row.insert("path".to_string(), result.path.clone().into());
        if let Some(name) = &result.name {
            row.insert("name".to_string(), name.clone().into());
        }
        row.insert("window".to_string(), (place as u64 + 1).into());
        row.insert("warned".to_string(), (!result.warnings.is_empty()).into());
        for cause in &result.window_causes {
            row.insert(format!("stored.{}.{}", cause.cause, cause.origin), cause.blocks[place].into());
        }
        row
    };
    result.windows.iter().enumerate().map(row).collect()
}

/// The windows by recorded times as text; empty if a run has none.
pub fn windows_text(results: &[RunResult]) -> String {
    let by_time = results.iter().filter(|result| result.window_seconds.is_some());
    by_time.map(|result| of_run(result, results.len() > 1)).collect()
}

/// The windows of one run, with its name if there are several.
fn of_run(result: &RunResult, is_one_of_several: bool) -> String {
    let causes = by_cause(&result.window_causes);
    let mut head = vec!["until".to_string(), "written".to_string()];
    head.extend(causes.keys().map(|cause| format!("stored: {}", cause.replace('-', " "))));
    head.extend(["in flight, most", "write p99", "read p99"].map(String::from));
    let mut lines = vec![head];
    let mut before = 0;
    for (place, window) in result.windows.iter().enumerate() {
        let mib = |blocks: f64| format!("{} MiB", number::three_digits(blocks * BLOCK_BYTES as f64 / (1 << 20) as f64));
        let latency = |class: &str| {
            window.latency_ns.get(class).map_or(number::NONE.to_string(), |latency| number::latency(latency.p99))
        };
        let mut line = vec![
            number::seconds(window.seconds_simulated.unwrap_or(f64::NAN)),
            mib((window.written_blocks - before) as f64),
        ];
        line.extend(causes.values().map(|blocks| mib(blocks[place])));
        line.push(window.in_flight.map_or(number::NONE.to_string(), |in_flight| number::count(in_flight.max)));
        line.extend([latency("write"), latency("read")]);
        before = window.written_blocks;
        if place < MOST_SHOWN {
            lines.push(line);
        }
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let name = if is_one_of_several { format!(" of {}", number::visible(result.label())) } else { String::new() };
    let mut text = format!("Windows{name}\n");
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
        text += &format!("  {}\n", cells.collect::<Vec<_>>().join("  "));
    }
    match result.windows.len().saturating_sub(MOST_SHOWN) {
        0 => {}
        more => text += &format!("  ... and {more} more: --windows FILE.csv has all\n"),
    }
    text
}

/// Blocks stored by cause alone, in each of the windows.
fn by_cause(causes: &[CauseOverTime]) -> BTreeMap<&str, Vec<f64>> {
    let mut by_cause: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for cause in causes {
        let sums = by_cause.entry(&cause.cause).or_insert_with(|| vec![0.0; cause.blocks.len()]);
        sums.iter_mut().zip(&cause.blocks).for_each(|(sum, blocks)| *sum += blocks);
    }
    by_cause
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{InFlight, sample};

    fn by_time() -> RunResult {
        let mut result = sample::page_level("page/nand", 1);
        result.window_seconds = Some(40.2);
        result.windows.iter_mut().for_each(|window| window.in_flight = Some(InFlight { mean: 1.5, max: 7 }));
        result.windows[2].write_amplification = None;
        result
    }

    #[test]
    fn a_table_has_a_row_for_each_window_with_its_causes_and_its_queue() {
        let text = windows_csv(&[by_time(), sample::without_timing("dftl/nand", 2)]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 1 + 60 + 60);
        assert_eq!(lines[0][..3], ["path", "window", "seconds_simulated"]);
        let column = |name: &str| lines[0].iter().position(|known| *known == name).unwrap_or_else(|| panic!("{name}"));
        let cell = |row: usize, name: &str| lines[row][column(name)];
        assert_eq!((cell(3, "window"), cell(3, "write_amplification"), cell(3, "in_flight.max")), ("3", "", "7"));
        assert!(cell(61, "in_flight.max").is_empty() && cell(61, "latency_ns.write.p99").is_empty());
        let number = |row: usize, name: &str| cell(row, name).parse::<f64>().unwrap();
        let causes = ["stored.host-write.host-write", "stored.garbage-collection.host-write"];
        let stored: f64 = causes.iter().map(|cause| number(5, cause)).sum();
        assert!((stored - number(5, "stored_blocks")).abs() < 1e-3, "{stored}");
        assert!(!windows_parquet(&[by_time()], "w").unwrap().is_empty());
    }

    #[test]
    fn a_terminal_has_the_windows_by_time_alone() {
        let text = windows_text(&[by_time(), sample::page_level("other", 1)]);
        assert!(text.starts_with("Windows of page/nand\n") && !text.contains("other"), "{text}");
        assert!(text.contains("stored: garbage collection") && text.contains("in flight, most"), "{text}");
        assert_eq!(text.lines().count(), 62);
        assert!(windows_text(&[sample::page_level("a", 1)]).is_empty());
    }
}
