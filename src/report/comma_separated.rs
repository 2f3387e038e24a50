//! A flat table as comma-separated values (RFC 4180), with a header.

use super::flat::{FlatCells, FlatTable};

/// The table as text. A run without a value has an empty cell.
pub fn comma_separated(table: &FlatTable) -> String {
    let mut lines = vec![line(table.columns.iter().map(|column| column.name.clone()))];
    lines.extend((0..table.rows).map(|row| line(table.columns.iter().map(|column| cell(&column.cells, row)))));
    lines.concat()
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",") + "\n"
}

fn cell(cells: &FlatCells, row: usize) -> String {
    fn text<T: ToString>(value: &Option<T>) -> String {
        value.as_ref().map_or_else(String::new, T::to_string)
    }
    match cells {
        FlatCells::Integers(values) => text(&values[row]),
        FlatCells::Numbers(values) => text(&values[row]),
        FlatCells::Flags(values) => text(&values[row]),
        FlatCells::Texts(values) => text(&values[row]),
    }
}

/// A cell, in quotes if it would not be read as one without.
pub fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) || cell.starts_with(' ') || cell.ends_with(' ') {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commas_quotes_and_lines_stay_within_their_cell() {
        let table =
            FlatTable::of(&[json!({ "a": "x,y", "b": "say \"x\"", "c": "two\nlines", "d": 1 }), json!({ "d": 2.5 })]);
        assert_eq!(comma_separated(&table), "a,b,c,d\n\"x,y\",\"say \"\"x\"\"\",\"two\nlines\",1\n,,,2.5\n");
        assert_eq!(comma_separated(&FlatTable::of(&[])), "\n");
    }
}
