//! The results of a sweep: a row for each run, with a column for each varied option and each number of its result.
//!
//! | part | what it is |
//! |---|---|
//! | `row` | a result as a row |
//! | `warned` | what the runs warn of |
//! | `statistics` | means and confidence intervals |
//! | `unit` | names and units of columns, for people |
//! | `means` | runs that differ in their seeds alone, together |
//! | `summary` | the means for a terminal, and as a table of a page |
//! | `figure` | one column over another |
//! | `distribution` | numbers over the devices of a trace |
//! | `page` | the HTML page |
//! | `mod.rs` | rows as CSV, Parquet and columns |

mod distribution;
mod figure;
mod means;
mod page;
mod row;
mod statistics;
mod summary;
mod unit;
mod warned;

pub use super::flat::{FlatCells, FlatColumn, FlatTable};
pub use distribution::{
    DEVICE, Distribution, distribution_chart, distribution_columns, distribution_rows, distribution_table,
    distributions, is_batch,
};
pub use figure::Figure;
pub use means::{Group, groups, means};
pub use page::page;
pub use row::row;
pub use statistics::Mean;
pub use summary::{table, warning_lines};
pub use unit::{Unit, Units};
pub use warned::{Warned, warned};

use super::WriteError;
use super::comma_separated::comma_separated;
use super::parquet_table::parquet_file;
use serde_json::{Map, Value};

/// A row of a table: a value for each column.
pub type SweepRow = Map<String, Value>;

/// The rows as comma-separated text with a header. The columns of `first` come first, in their order; the others are
/// sorted.
pub fn csv(rows: &[SweepRow], first: &[String]) -> String {
    comma_separated(&flat_table(rows, first))
}

/// The same table as a Parquet file. `name` is that of the file in an error.
pub fn parquet(rows: &[SweepRow], first: &[String], name: &str) -> Result<Vec<u8>, WriteError> {
    let failed = |error| WriteError { file: name.to_string(), source: std::io::Error::other(error) };
    parquet_file(&flat_table(rows, first)).map_err(failed)
}

/// The same table by columns, each of one type.
pub fn flat_table(rows: &[SweepRow], first: &[String]) -> FlatTable {
    let rows: Vec<Value> = rows.iter().cloned().map(Value::Object).collect();
    let mut table = FlatTable::of(&rows);
    let rank = |name: &str| first.iter().position(|first| first == name).unwrap_or(first.len());
    // Stable: the others keep their order.
    table.columns.sort_by_key(|column| rank(&column.name));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use serde_json::json;

    #[test]
    fn varied_options_come_first_and_no_column_depends_on_the_machine() {
        let mut rows = vec![row(sample::page_level("page:op=7%/nand", 1)), row(sample::without_timing("dftl/nand", 2))];
        rows[0].insert("page.op".to_string(), json!(0.07));
        let text = csv(&rows, &["page.op".to_string(), "seed".to_string()]);
        let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(names[..2], ["page.op", "seed"]);
        for column in [
            "path",
            "write_amplification.steady",
            "ledger.workload.host-write.host-write.data",
            "wear.erase_count_mean",
        ] {
            assert!(names.contains(&column), "{column}: {names:?}");
        }
        for column in ["seconds_wall", "windows", "maps", "sums", "wear.histogram", "latency_ns.write.cumulative"] {
            assert!(!names.contains(&column), "{column}");
        }
        assert!(!parquet(&rows, &[], "r").unwrap().is_empty());
    }
}
