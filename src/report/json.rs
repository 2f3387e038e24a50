//! Results as JSON, with the stable names of [`RunResult`], and the same values as a flat table. docs/results-format.md has
//! the fields, and docs/results.schema.json their types.

use super::comma_separated::comma_separated;
use super::environment::{Environment, SCHEMA};
use super::flat::FlatTable;
use super::parquet_table::parquet_file;
use super::{RunResult, WriteError};
use serde::Serialize;
use serde_json::Value;

/// A result, and where it is from.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    environment: &'a Environment,
    #[serde(flatten)]
    result: &'a RunResult,
}

fn documents<'a>(results: &'a [RunResult], environment: &'a Environment) -> Vec<Document<'a>> {
    results.iter().map(|result| Document { schema: SCHEMA, environment, result }).collect()
}

/// An array with an object for each result; indented. Numbers that are not finite are `null`.
pub fn json(results: &[RunResult], environment: &Environment) -> String {
    let text = serde_json::to_string_pretty(&documents(results, environment));
    text.expect("a result holds only text, numbers and lists")
}

/// The same values as comma-separated text: a header, and a line for each result.
pub fn csv(results: &[RunResult], environment: &Environment) -> String {
    comma_separated(&flat(results, environment))
}

/// The same table as a Parquet file. `name` is that of the file in an error.
pub fn parquet(results: &[RunResult], environment: &Environment, name: &str) -> Result<Vec<u8>, WriteError> {
    let failed = |error| WriteError { file: name.to_string(), source: std::io::Error::other(error) };
    parquet_file(&flat(results, environment)).map_err(failed)
}

fn flat(results: &[RunResult], environment: &Environment) -> FlatTable {
    let value = |document| serde_json::to_value(document).expect("a result holds only text, numbers and lists");
    FlatTable::of(&documents(results, environment).iter().map(value).collect::<Vec<Value>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// The stable names, as JSON pointers.
    const PROMISED: [&str; 36] = [
        "/schema",
        "/program/version",
        "/program/name",
        "/path",
        "/seed",
        "/seconds_wall",
        "/seconds_simulated",
        "/workload/name",
        "/workload/requests",
        "/workload/read_blocks",
        "/workload/written_blocks",
        "/workload/discarded_blocks",
        "/workload/rejected_lines",
        "/flash/programmed_pages",
        "/flash/read_pages",
        "/flash/erased_blocks",
        "/flash/effective_overprovisioning",
        "/write_amplification/total",
        "/write_amplification/steady",
        "/write_amplification/steady_from_fraction",
        "/ledger/0/station",
        "/ledger/0/cause",
        "/ledger/0/origin",
        "/ledger/0/content",
        "/ledger/0/blocks",
        "/wear/erase_count_min",
        "/wear/erase_count_mean",
        "/wear/erase_count_max",
        "/wear/lifetime_host_tib",
        "/latency_ns/read/p50",
        "/latency_ns/read/p99",
        "/latency_ns/write/p50",
        "/latency_ns/write/p99",
        "/latency_ns/write/p999",
        "/latency_ns/write/max",
        "/throughput_mib_s",
    ];

    fn parsed(results: &[RunResult]) -> Value {
        serde_json::from_str(&json(results, &Environment::default())).unwrap()
    }

    /// One path was an object, and several an array: a program had to look which.
    #[test]
    fn one_path_is_an_array_too_with_every_promised_name() {
        let value = parsed(&[sample::page_level("page/nand", 42)]);
        assert_eq!(value.as_array().unwrap().len(), 1);
        for pointer in PROMISED {
            let value = &value[0];
            assert!(value.pointer(pointer).is_some_and(|at| !at.is_null()), "{pointer}");
        }
    }

    #[test]
    fn several_paths_are_an_array_in_their_order() {
        let value = parsed(&[sample::page_level("page/nand", 1), sample::without_timing("dftl/nand", 1)]);
        assert_eq!(value.as_array().unwrap().len(), 2);
        assert_eq!(value[1]["path"], "dftl/nand");
        assert!(value[1]["latency_ns"].is_null());
        assert_eq!(parsed(&[]), Value::Array(Vec::new()));
    }

    #[test]
    fn numbers_that_are_not_finite_are_null() {
        let mut result = sample::page_level("page/nand", 42);
        result.write_amplification.total = Some(f64::NAN);
        result.seconds_wall = f64::INFINITY;
        result.windows[0].write_amplification = Some(f64::NEG_INFINITY);
        let value = &parsed(&[result])[0];
        assert!(value["write_amplification"]["total"].is_null());
        assert!(value["seconds_wall"].is_null());
        assert!(value["windows"][0]["write_amplification"].is_null());
    }

    #[test]
    fn a_flat_table_has_a_row_for_each_path_and_its_ledger_in_columns() {
        let results = [sample::page_level("page:op=7%,x=1/nand", 1), sample::without_timing("dftl/nand", 1)];
        let text = csv(&results, &Environment::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("path,workload.name,seed,"), "{}", lines[0]);
        assert!(lines[1].starts_with("\"page:op=7%,x=1/nand\",") && lines[2].starts_with("dftl/nand,"), "{text}");
        for column in [
            "write_amplification.total",
            "ledger.workload.host-write.host-write.data",
            "latency_ns.write.p99",
            "windows",
        ] {
            assert!(lines[0].split(',').any(|name| name == column), "{column}");
        }
        assert!(!parquet(&results, &Environment::default(), "r").unwrap().is_empty());
    }
}
