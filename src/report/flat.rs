//! Results as a flat table: a row for each run, a column for each value of its JSON.
//!
//! | in the JSON | columns |
//! |---|---|
//! | a value in objects | one, with the names joined by dots: `write_amplification.total` |
//! | the ledger | one for each row: `ledger.STATION.CAUSE.ORIGIN.CONTENT`, with the blocks |
//! | any other list | one, with the list as JSON |
//!
//! The first columns name the run; the others are sorted. A run without a value has an empty cell.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The columns that name a run, if they are there.
const FIRST: [&str; 4] = ["name", "path", "workload.name", "seed"];

/// A flat table.
pub struct FlatTable {
    /// The columns, in order.
    pub columns: Vec<FlatColumn>,
    /// The number of rows.
    pub rows: usize,
}

/// A column of a flat table.
pub struct FlatColumn {
    /// The name.
    pub name: String,
    /// The values, one for each row.
    pub cells: FlatCells,
}

/// The values of a column, all of one type. A row may have none.
#[derive(Debug, PartialEq)]
pub enum FlatCells {
    /// Whole numbers.
    Integers(Vec<Option<i64>>),
    /// Numbers; also of a column without any value.
    Numbers(Vec<Option<f64>>),
    /// True or false.
    Flags(Vec<Option<bool>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

impl FlatTable {
    /// The table of JSON objects, one for each run.
    pub fn of(runs: &[Value]) -> FlatTable {
        let rows: Vec<BTreeMap<String, Value>> = runs.iter().map(flattened).collect();
        let mut names: Vec<&String> = rows.iter().flat_map(BTreeMap::keys).collect();
        let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
        names.sort_by_key(|name| (rank(name), *name));
        names.dedup();
        let column = |name: &String| {
            let values: Vec<Option<&Value>> =
                rows.iter().map(|row| row.get(name).filter(|value| !value.is_null())).collect();
            FlatColumn { name: name.clone(), cells: cells(&values) }
        };
        FlatTable { columns: names.into_iter().map(column).collect(), rows: rows.len() }
    }
}

/// The values of an object by the names of their columns.
pub(super) fn flattened(run: &Value) -> BTreeMap<String, Value> {
    fn add(name: String, value: &Value, columns: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(object) => {
                let prefix = if name.is_empty() { name } else { name + "." };
                object.iter().for_each(|(key, value)| add(format!("{prefix}{key}"), value, columns));
            }
            Value::Array(rows) if name == "ledger" => {
                rows.iter().filter_map(Value::as_object).for_each(|row| add_ledger_row(row, columns));
            }
            Value::Array(_) => {
                columns.insert(name, Value::String(value.to_string()));
            }
            value => {
                columns.insert(name, value.clone());
            }
        }
    }
    let mut columns = BTreeMap::new();
    add(String::new(), run, &mut columns);
    columns
}

fn add_ledger_row(row: &Map<String, Value>, columns: &mut BTreeMap<String, Value>) {
    let words = ["station", "cause", "origin", "content"].into_iter().filter_map(|key| row.get(key)?.as_str());
    let name = ["ledger"].into_iter().chain(words).collect::<Vec<_>>().join(".");
    columns.insert(name, row.get("blocks").cloned().unwrap_or(Value::Null));
}

/// The values in the narrowest type that holds all of them.
fn cells(values: &[Option<&Value>]) -> FlatCells {
    let all = |is: fn(&Value) -> bool| values.iter().flatten().all(|value| is(value));
    let of = values.iter();
    match () {
        () if values.iter().all(Option::is_none) => FlatCells::Numbers(vec![None; values.len()]),
        () if all(Value::is_boolean) => FlatCells::Flags(of.map(|value| value.and_then(Value::as_bool)).collect()),
        () if all(Value::is_i64) => FlatCells::Integers(of.map(|value| value.and_then(Value::as_i64)).collect()),
        () if all(Value::is_number) => FlatCells::Numbers(of.map(|value| value.and_then(Value::as_f64)).collect()),
        () => FlatCells::Texts(of.map(|value| value.map(text)).collect()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn column<'a>(table: &'a FlatTable, name: &str) -> &'a FlatCells {
        &table.columns.iter().find(|column| column.name == name).unwrap_or_else(|| panic!("{name}")).cells
    }

    #[test]
    fn every_value_is_in_a_cell_and_a_run_without_it_has_none() {
        let ledger = |origin: &str| json!({ "station": "nand", "cause": "merge", "origin": origin, "content": "data", "blocks": 2.5 });
        let table = FlatTable::of(&[
            json!({ "seed": 1, "path": "a", "x": { "y": 1, "z": true }, "ledger": [ledger("merge")], "list": ["p,\"q\""] }),
            json!({ "seed": 2, "path": "b", "x": { "y": 1.5, "w": null }, "ledger": [ledger("checkpoint")] }),
        ]);
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let ledgers = ["ledger.nand.merge.checkpoint.data", "ledger.nand.merge.merge.data"];
        assert_eq!(names, ["path", "seed", ledgers[0], ledgers[1], "list", "x.w", "x.y", "x.z"]);
        assert_eq!(*column(&table, "seed"), FlatCells::Integers(vec![Some(1), Some(2)]));
        assert_eq!(*column(&table, "x.y"), FlatCells::Numbers(vec![Some(1.0), Some(1.5)]));
        assert_eq!(*column(&table, "x.z"), FlatCells::Flags(vec![Some(true), None]));
        assert_eq!(*column(&table, "x.w"), FlatCells::Numbers(vec![None, None]));
        assert_eq!(*column(&table, ledgers[0]), FlatCells::Numbers(vec![None, Some(2.5)]));
        assert_eq!(*column(&table, "list"), FlatCells::Texts(vec![Some("[\"p,\\\"q\\\"\"]".to_string()), None]));
    }
}
