//! The result of a file workload, as a table and as JSON. Field names are stable.

use super::{Percentiles, WorkloadResult, number};
use comfy_table::{Cell, CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of one run in a file system.
#[derive(Debug, Clone, Serialize)]
pub struct FileRunResult {
    /// The directory or path, as the user wrote it.
    pub path: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Wall-clock seconds of the whole run, uncounted stages included.
    pub seconds_wall: f64,
    /// Seconds of the counted stages.
    pub seconds_counted: f64,
    /// True if the run was interrupted; the figures cover the completed part.
    pub interrupted: bool,
    /// The workload and its operations in the counted stages.
    pub workload: WorkloadResult,
    /// The number of concurrent threads.
    pub threads: u64,
    /// Bytes of the counted stages.
    pub bytes: MovedBytes,
    /// All stages in order.
    pub stages: Vec<StageResult>,
    /// Latencies in the counted stages, from call to return, by class of operation: `read`, `write`, `create`, `fsync`...
    pub latency_ns: BTreeMap<&'static str, Percentiles>,
    /// Bytes read and written over `seconds_counted`, in MiB/s; `None` if no time passed.
    pub throughput_mib_s: Option<f64>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The options of the run beyond its seed, as arguments of `flashpath run`.
    pub options: Vec<String>,
}

/// Bytes read and written.
#[derive(Debug, Clone, Serialize)]
pub struct MovedBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// One stage of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct StageResult {
    /// The name of the stage.
    pub name: &'static str,
    /// True if it is counted.
    pub counted: bool,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The number of operations.
    pub requests: u64,
}

/// The result as one JSON object, indented.
pub fn files_json(result: &FileRunResult) -> String {
    serde_json::to_string_pretty(result).expect("a result holds only text, numbers and lists")
}

/// The result as text: the workload, its stages, and a row for each class of operation.
pub fn files_table(result: &FileRunResult) -> String {
    let path = number::visible(&result.path);
    let mut text = format!("workload {}, seed {}\n", number::visible(&result.workload.name), result.seed);
    if result.interrupted {
        text += &format!("{path} was interrupted: the figures cover the completed part\n");
    }
    text += &format!("\nin {path}\n{}\n{}\n", sums(result), stages(result));
    if !result.latency_ns.is_empty() {
        text += &format!("{}\n", classes(result));
    }
    for warning in &result.warnings {
        text += &format!("warning on {path}: {}\n", number::visible(warning));
    }
    text
}

fn sums(result: &FileRunResult) -> String {
    let mut table = plain(&[]);
    let throughput = result.throughput_mib_s.map_or(number::NONE.to_string(), number::three_digits);
    for (label, value) in [
        ("threads", number::count(result.threads)),
        ("operations counted", number::count(result.workload.requests)),
        ("in", duration(result.seconds_counted)),
        ("read", number::bytes(result.bytes.read as f64)),
        ("written", number::bytes(result.bytes.written as f64)),
        ("read and written, MiB/s", throughput),
    ] {
        table.add_row([Cell::new(format!("  {label}")), right(value)]);
    }
    table.trim_fmt() + "\n"
}

fn stages(result: &FileRunResult) -> String {
    let mut table = plain(&["stage", "counted", "operations", "time"]);
    for stage in &result.stages {
        let counted = if stage.counted { "yes" } else { "no" };
        table.add_row([
            Cell::new(format!("  {}", stage.name)),
            right(counted.to_string()),
            right(number::count(stage.requests)),
            right(duration(stage.seconds)),
        ]);
    }
    table.trim_fmt() + "\n"
}

fn classes(result: &FileRunResult) -> String {
    let mut table = plain(&["operation", "count", "per second", "mean", "p50", "p99", "p99.9", "max"]);
    for (class, latencies) in &result.latency_ns {
        let per_second = latencies.count as f64 / result.seconds_counted;
        let mut row = vec![
            Cell::new(format!("  {class}")),
            right(number::count(latencies.count)),
            right(number::three_digits(per_second)),
            right(number::latency(latencies.mean as u64)),
        ];
        let percentiles = [latencies.p50, latencies.p99, latencies.p999, latencies.max];
        row.extend(percentiles.map(|latency| right(number::latency(latency))));
        table.add_row(row);
    }
    table.trim_fmt() + "\n"
}

/// A time in suitable units.
fn duration(seconds: f64) -> String {
    number::latency((seconds * 1e9) as u64)
}

/// A table without lines except below its header.
fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('\u{2500}').junction('\u{2500}');
    let blank = ContentLineStyle::none();
    table.load_style(TableStyle::new().header_lines(blank).header_separator(rule).content_lines(blank));
    if let Some((first, others)) = header.split_first() {
        let others = others.iter().map(|name| right((*name).to_string()));
        table.set_header(std::iter::once(Cell::new(format!("  {first}"))).chain(others));
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
