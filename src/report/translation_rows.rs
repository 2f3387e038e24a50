//! Rows of the comparison for the translation layers' own counts.
//!
//! Each layer names its counts ([`crate::translation`] is not imported): `switch_merges` becomes a row "switch merges",
//! and a pair `table_hits` and `table_misses` a row with the hit rate.

use super::row::{Better, Quantity, Row, make_row};
use super::{PlacementResult, RunResult, TranslationResult, number};

/// The first events, in this order; the others follow by name.
const FIRST: [&str; 3] = ["switch_merges", "partial_merges", "full_merges"];

/// The rows: reads of the mapping, its hit rate and size in RAM, and other counts. Counts that no layer has get no row.
pub fn rows(results: &[RunResult]) -> Vec<Row> {
    let row = |label: &str, quantity: &dyn Fn(&TranslationResult) -> Quantity| {
        make_row(results, label.to_string(), Better::Neither, &|result| quantity(&result.translation))
    };
    let mut rows = Vec::new();
    for name in counted(results) {
        rows.push(row(&name.replace('_', " "), &|layer| count(layer.events.get(&name).copied())));
    }
    rows.extend(placement(results));
    rows.push(row("map entries found in RAM", &|layer| {
        let share = hit_rate(layer)?;
        Some((number::percent(share), share))
    }));
    if results.iter().any(|result| result.translation.mapping_reads > 0) {
        rows.push(row("flash reads for the map", &|layer| count(Some(layer.mapping_reads))));
    }
    rows.push(make_row(results, "mapping in the drive's RAM".into(), Better::Neither, &|result| {
        let bytes = result.flash.mapping_ram_bytes? as f64;
        Some((number::bytes(bytes), bytes))
    }));
    rows
}

/// The rows of reclaim unit handles: for each, the bytes that hosts wrote and those that were copied out of its units.
fn placement(results: &[RunResult]) -> Vec<Row> {
    let handles = |result: &RunResult| result.translation.placement.as_ref().map_or(0, |placed| placed.handles.len());
    let bytes = |value: u64| Some((number::bytes(value as f64), value as f64));
    let row = |label: String, of: &dyn Fn(&PlacementResult) -> Option<u64>| {
        make_row(results, label, Better::Neither, &|result| bytes(of(result.translation.placement.as_ref()?)?))
    };
    let is_used = |number: usize| {
        let of = |result: &RunResult| result.translation.placement.as_ref()?.handles.get(number).cloned();
        results.iter().filter_map(of).any(|handle| handle.host_bytes > 0 || handle.copied_bytes > 0)
    };
    let mut rows = Vec::new();
    for number in (0..results.iter().map(handles).max().unwrap_or(0)).filter(|number| is_used(*number)) {
        rows.push(row(format!("handle {number} written"), &|placed| Some(placed.handles.get(number)?.host_bytes)));
        rows.push(row(format!("handle {number} copied"), &|placed| Some(placed.handles.get(number)?.copied_bytes)));
    }
    if !rows.is_empty() {
        rows.push(row("copied from units of several handles".into(), &|placed| Some(placed.shared_copied_bytes)));
    }
    rows
}

/// The events counted on any path, except hits and misses.
fn counted(results: &[RunResult]) -> Vec<String> {
    let events = results.iter().flat_map(|result| &result.translation.events);
    let is_shown = |name: &str| !name.ends_with("_hits") && !name.ends_with("_misses");
    let mut names: Vec<String> =
        events.filter(|(name, count)| **count > 0 && is_shown(name)).map(|(name, _)| name.clone()).collect();
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    names.sort_by(|a, b| (place(a), a).cmp(&(place(b), b)));
    names.dedup();
    names
}

/// The share of map lookups that hit in RAM; `None` if the layer counts no misses, or there were no lookups.
fn hit_rate(layer: &TranslationResult) -> Option<f64> {
    let sum = |suffix: &str| {
        let counts = layer.events.iter().filter(|(name, _)| name.ends_with(suffix)).map(|(_, count)| *count);
        counts.sum::<u64>() as f64
    };
    let lookups = sum("_hits") + sum("_misses");
    (lookups > 0.0).then(|| sum("_hits") / lookups)
}

fn count(value: Option<u64>) -> Quantity {
    value.map(|value| (number::count(value), value as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{number::NONE, sample};

    fn with(path: &str, mapping_reads: u64, events: &[(&str, u64)]) -> RunResult {
        let events = events.iter().map(|(name, count)| (name.to_string(), *count)).collect();
        let mut result = sample::page_level(path, 1);
        result.translation = TranslationResult { station: path.into(), mapping_reads, events, placement: None };
        result
    }

    fn texts(results: &[RunResult]) -> Vec<(String, Vec<String>)> {
        let texts = |row: Row| (row.label, row.cells.into_iter().map(|cell| cell.text).collect());
        rows(results).into_iter().map(texts).collect()
    }

    #[test]
    fn a_layer_with_its_map_in_ram_has_only_the_size_of_it() {
        let rows = texts(&[with("page", 0, &[])]);
        let labels: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        // The row of the hit rate has no value: the comparison omits it.
        assert_eq!(labels, ["map entries found in RAM", "mapping in the drive's RAM"]);
        assert_eq!(rows[0].1, [NONE]);
    }

    #[test]
    fn merges_are_shown_by_kind_and_other_layers_have_no_value() {
        let fast = [("filler_pages", 0), ("full_merges", 7), ("partial_merges", 2), ("switch_merges", 1000)];
        let dftl = [("table_hits", 30), ("table_misses", 10)];
        let rows = texts(&[with("page", 0, &[]), with("fast", 0, &fast), with("dftl", 12, &dftl)]);
        let expected = [
            ("switch merges", [NONE, "1,000", NONE]),
            ("partial merges", [NONE, "2", NONE]),
            ("full merges", [NONE, "7", NONE]),
            ("map entries found in RAM", [NONE, NONE, "75.0 %"]),
            ("flash reads for the map", ["0", "0", "12"]),
        ];
        for (row, (label, cells)) in rows.iter().zip(expected) {
            assert_eq!((row.0.as_str(), &row.1[..]), (label, &cells.map(str::to_string)[..]));
        }
    }
}
