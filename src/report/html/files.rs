//! The runs in files: their stages and operations as tables.

use super::parts::{self, table};
use crate::report::escape::{escape, escape_path};
use crate::report::{FilesResult, Percentiles, RunResult, number};

/// The stages and operations of each run in files; empty if there is none.
pub fn files(results: &[RunResult]) -> String {
    let mut body = String::new();
    for (index, result) in results.iter().enumerate() {
        let Some(files) = &result.files else { continue };
        let heading =
            format!("<h3>{}<span class=\"path\">{}</span></h3>", parts::tag(index), escape_path(&result.full_label()));
        body += &format!("<div class=\"panel\">{heading}{}{}{}</div>", facts(files), operations(result), stages(files));
    }
    body
}

fn facts(files: &FilesResult) -> String {
    let mut facts = vec![format!("threads {}", number::count(files.threads))];
    facts.extend(files.seconds_counted.map(|seconds| format!("counted for {}", number::seconds(seconds))));
    facts.push(format!("read {}", number::bytes(files.bytes.read as f64)));
    facts.push(format!("written {}", number::bytes(files.bytes.written as f64)));
    format!("<p class=\"muted facts\">{}</p>", facts.join(" \u{b7} "))
}

fn operations(result: &RunResult) -> String {
    let seconds = result.files.as_ref().and_then(|files| files.seconds_counted).filter(|seconds| *seconds > 0.0);
    let row = |(class, latency): (&str, &Percentiles)| {
        let rate =
            seconds.map_or(number::NONE.to_string(), |seconds| number::three_digits(latency.count as f64 / seconds));
        let mut cells = vec![number::count(latency.count), rate, number::latency(latency.mean as u64)];
        cells.extend([latency.p50, latency.p99, latency.p999, latency.max].map(number::latency));
        line(class, &cells)
    };
    let body: String = result
        .latency_ns
        .iter()
        .flat_map(|latencies| latencies.classes())
        .map(|(class, of)| row((class, of)))
        .collect();
    if body.is_empty() {
        return body;
    }
    table("The operations", &head(&["operation", "count", "per second", "mean", "p50", "p99", "p99.9", "max"]), &body)
}

fn stages(files: &FilesResult) -> String {
    let row = |stage: &crate::report::StageResult| {
        let counted = if stage.counted { "yes" } else { "no" }.to_string();
        let took = stage.seconds.map_or(number::NONE.to_string(), number::seconds);
        line(stage.name, &[counted, number::count(stage.requests), took])
    };
    let body: String = files.stages.iter().map(row).collect();
    table("The stages", &head(&["stage", "counted", "operations", "time"]), &body)
}

fn head(names: &[&str]) -> String {
    let names: String = names.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    format!("<tr>{names}</tr>")
}

fn line(name: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(name))
}
