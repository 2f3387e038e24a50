//! One quantity of every path, with the best marked.

use super::RunResult;
use super::number::NONE;

/// One quantity of every path.
pub struct Row {
    /// The quantity, with its unit unless the cells have it.
    pub label: String,
    /// A cell for each path.
    pub cells: Vec<Cell>,
}

impl Row {
    pub(super) fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.text == NONE)
    }
}

/// One quantity of one path.
pub struct Cell {
    /// The text.
    pub text: String,
    /// True if no path has a better value, and some path has a worse one.
    pub best: bool,
    /// True if the run has a warning, which may void the number.
    pub warned: bool,
}

/// The mark of a number that a warning may void.
pub const WARNED: char = '!';

/// The legend of that mark.
pub const WARNED_LEGEND: &str = "the run has a warning, which may void the number";

/// The legend of the mark of the best.
pub const BEST_LEGEND: &str = "best of the row: the lowest, or the longest life and the highest throughput";

/// The direction in which values are better.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Better {
    Lower,
    Higher,
    /// Neither: the quantity describes the run.
    Neither,
}

/// A quantity of one path: its text, and the number for comparisons.
pub(super) type Quantity = Option<(String, f64)>;

/// The row of one quantity, with the best of its cells marked.
pub(super) fn make_row(
    results: &[RunResult],
    label: String,
    better: Better,
    quantity: &dyn Fn(&RunResult) -> Quantity,
) -> Row {
    let quantities: Vec<Quantity> = results.iter().map(quantity).collect();
    // Interrupted and empty runs are not compared, nor is what keeps its files in memory alone with what stores them.
    let has_durable = results.iter().any(|result| !result.is_in_memory_alone());
    let comparable = |index: usize| {
        let result = &results[index];
        !result.interrupted && result.workload.requests > 0 && !(has_durable && result.is_in_memory_alone())
    };
    let value = |index: usize| {
        let value = quantities[index].as_ref().map(|(_, value)| *value);
        value.filter(|value| value.is_finite() && comparable(index))
    };
    let values = || (0..results.len()).filter_map(value);
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let best = match better {
        _ if lowest >= highest => None,
        Better::Lower => Some(lowest),
        Better::Higher => Some(highest),
        Better::Neither => None,
    };
    let is_best = |index| best.is_some() && value(index) == best;
    let best_cells: Vec<bool> = (0..results.len()).map(is_best).collect();
    let cell = |((result, quantity), best): ((&RunResult, Quantity), bool)| {
        // What describes the run, such as its requests, is right all the same.
        let is_judged = better != Better::Neither && quantity.is_some();
        let text = quantity.map_or_else(|| NONE.to_string(), |(text, _)| text);
        Cell { text, best, warned: is_judged && !result.warnings.is_empty() }
    };
    Row { label, cells: results.iter().zip(quantities).zip(best_cells).map(cell).collect() }
}
