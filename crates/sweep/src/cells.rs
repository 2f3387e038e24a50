//! The columns and cells of varied options.

use crate::error::SweepError;
use crate::options::cell;
use crate::template::Template;
use serde_json::Value;

/// The most runs of a sweep.
pub const MOST_RUNS: u64 = 1_000_000;

/// A value of a varied option: the name of its column, and the cell.
pub type Cell = (String, Value);

/// Adds a column, once.
pub fn add_column(columns: &mut Vec<String>, name: &str) {
    if !columns.iter().any(|column| column == name) {
        columns.push(name.to_string());
    }
}

/// The cells of a choice of values.
pub fn cells_of(template: &Template, choice: &[usize]) -> Vec<Cell> {
    let axes = template.axes.iter().zip(choice).filter(|(axis, _)| axis.values.len() > 1);
    axes.map(|(axis, number)| (axis.name.clone(), cell(axis.takes, &axis.values[*number].text))).collect()
}

/// Checks that a template has not too many texts, before they are written out.
pub fn check_count(template: &Template) -> Result<(), SweepError> {
    if template.count() as u64 <= MOST_RUNS {
        return Ok(());
    }
    let message =
        format!("{} has {} choices of values, and at most {MOST_RUNS} are possible", template.source, template.count());
    Err(SweepError::input(message, "take fewer values, or several sweeps"))
}
