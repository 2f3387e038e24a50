//! Tables of a run in files: its stages, and a row for each class of operation.

use super::{FilesResult, RunResult, number};
use comfy_table::{Cell, CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};

/// A run in a directory: its sums, stages and operations. Nothing is known of what lies below.
pub fn in_directory(result: &RunResult, files: &FilesResult) -> String {
    let path = number::visible(&result.path);
    format!("in {path}\n{}\n{}", sums(result, files), stages_and_operations(result, files))
}

/// The stages of a run in files, and its operations.
pub fn stages_and_operations(result: &RunResult, files: &FilesResult) -> String {
    let mut text = if files.stages.is_empty() { String::new() } else { format!("{}\n", stages(files)) };
    if result.latency_ns.as_ref().is_some_and(|latencies| !latencies.classes().is_empty()) {
        text += &format!("{}\n", classes(result, files));
    }
    text
}

fn sums(result: &RunResult, files: &FilesResult) -> String {
    let mut table = plain(&[]);
    let throughput = result.throughput_mib_s.map_or(number::NONE.to_string(), number::three_digits);
    for (label, value) in [
        ("threads", number::count(files.threads)),
        ("operations counted", number::count(result.workload.requests)),
        ("in", duration(files.seconds_counted)),
        ("read", number::bytes(files.bytes.read as f64)),
        ("written", number::bytes(files.bytes.written as f64)),
        ("read and written, MiB/s", throughput),
    ] {
        table.add_row([Cell::new(format!("  {label}")), right(value)]);
    }
    table.trim_fmt() + "\n"
}

fn stages(files: &FilesResult) -> String {
    let mut table = plain(&["stage", "counted", "operations", "time"]);
    for stage in &files.stages {
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

fn classes(result: &RunResult, files: &FilesResult) -> String {
    let mut table = plain(&["operation", "count", "per second", "mean", "p50", "p99", "p99.9", "max"]);
    for (class, latencies) in result.latency_ns.iter().flat_map(|latencies| latencies.classes()) {
        let per_second = files.seconds_counted.map(|seconds| latencies.count as f64 / seconds);
        let mut row = vec![
            Cell::new(format!("  {class}")),
            right(number::count(latencies.count)),
            right(per_second.map_or(number::NONE.to_string(), number::three_digits)),
            right(number::latency(latencies.mean as u64)),
        ];
        let percentiles = [latencies.p50, latencies.p99, latencies.p999, latencies.max];
        row.extend(percentiles.map(|latency| right(number::latency(latency))));
        table.add_row(row);
    }
    table.trim_fmt() + "\n"
}

/// A time in suitable units.
fn duration(seconds: Option<f64>) -> String {
    seconds.map_or(number::NONE.to_string(), |seconds| number::latency((seconds * 1e9) as u64))
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
