//! A result as a row of a sweep's table.

use super::SweepRow;
use crate::report::RunResult;
use crate::report::flat::flattened;
use serde_json::Value;

/// The columns that are left out: the wall-clock time, which differs in each repetition, and what repeats for all runs.
const LEFT_OUT: [&str; 4] = ["seconds_wall", "interrupted", "options", "sums"];

/// The lists of a result that are a text of their own in a row. All others are long, and left out: the run is repeated
/// alone to see them.
const LISTS: [&str; 2] = ["warnings", "media"];

/// The row of a result: its values by the names of [`csv`](fn@crate::report::csv), without lists over time and space.
pub fn row(mut result: RunResult) -> SweepRow {
    // Cleared before they are converted: a map has thousands of values.
    (result.windows, result.window_causes, result.maps) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(latencies) = &mut result.latency_ns {
        let classes = [&mut latencies.read, &mut latencies.write].into_iter().flatten();
        classes.chain(latencies.others.values_mut()).for_each(|class| class.cumulative.clear());
    }
    let value = serde_json::to_value(&result).expect("a result holds only text, numbers and lists");
    let is_kept = |(name, value): &(String, Value)| {
        let is_list = value.as_str().is_some_and(|text| text.starts_with('['));
        !LEFT_OUT.contains(&name.as_str())
            && !name.starts_with("cpu.ns.")
            && (!is_list || LISTS.contains(&name.as_str()))
    };
    flattened(&value).into_iter().filter(is_kept).collect()
}
