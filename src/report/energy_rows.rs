//! Rows of the comparison for the energy of the flash: its parts and, where an operation has several kinds, those of it.

use super::row::{Better, Quantity, Row, make_row};
use super::{EnergyResult, RunResult, number};

/// An operation, its label, and its joules.
type Operation = (&'static str, &'static str, fn(&EnergyResult) -> Option<f64>);

const OPERATIONS: [Operation; 5] = [
    ("read", "reads", |energy| Some(energy.reads_j)),
    ("program", "programs", |energy| Some(energy.programs_j)),
    ("erase", "erases", |energy| Some(energy.erases_j)),
    ("transfer", "transfers", |energy| Some(energy.transfers_j)),
    ("idle", "idle dies", |energy| energy.idle_j),
];

/// The rows; none if no run was asked for its energy. `judged`: less is better, if the paths did the same work.
pub fn rows(results: &[RunResult], judged: Better) -> Vec<Row> {
    let row = |label: String, better: Better, joules: &dyn Fn(&EnergyResult) -> Quantity| {
        make_row(results, label, better, &|result| joules(result.energy.as_ref()?))
    };
    let mut rows = vec![
        row("energy".into(), judged, &|energy| whole(energy.total_j)),
        row("energy, for a GiB of the host".into(), Better::Lower, &|energy| whole(energy.total_j_per_host_gib?)),
    ];
    for (operation, label, of) in OPERATIONS {
        rows.push(row(format!("of it {label}"), Better::Neither, &|energy| part(of(energy)?, energy)));
        let kinds = kinds(results, operation);
        for kind in kinds.iter().filter(|_| kinds.len() > 1) {
            rows.push(row(format!("of it {label}, {kind}"), Better::Neither, &|energy| {
                part(of_kind(energy, operation, kind)?, energy)
            }));
        }
    }
    rows
}

/// The kinds of an operation that any run has done.
fn kinds(results: &[RunResult], operation: &str) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    let operations = results.iter().filter_map(|result| result.energy.as_ref()).flat_map(|energy| &energy.operations);
    for of in operations.filter(|of| of.operation == operation && of.count > 0) {
        if !kinds.contains(&of.of) {
            kinds.push(of.of.clone());
        }
    }
    kinds
}

fn of_kind(energy: &EnergyResult, operation: &str, kind: &str) -> Option<f64> {
    let of = energy.operations.iter().filter(|of| (of.operation.as_str(), of.of.as_str()) == (operation, kind));
    of.map(|of| of.count as f64 * of.joules_each).reduce(|sum, more| sum + more).filter(|joules| *joules > 0.0)
}

fn whole(joules: f64) -> Quantity {
    Some((number::joules(joules), joules))
}

fn part(joules: f64, energy: &EnergyResult) -> Quantity {
    Some((
        format!("{} ({})", number::joules(joules), number::percent(joules / energy.total_j.max(f64::MIN_POSITIVE))),
        joules,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{EnergyOperation, sample};

    fn with(operations: &[(&str, &str, u64, f64)], idle_j: Option<f64>) -> RunResult {
        let of = |name: &str| {
            let of_name = operations.iter().filter(|of| of.0 == name);
            of_name.map(|of| of.2 as f64 * of.3).sum::<f64>()
        };
        let operation = |&(operation, of, count, joules_each): &(&str, &str, u64, f64)| EnergyOperation {
            operation: operation.into(),
            of: of.into(),
            count,
            joules_each,
        };
        let parts = ["read", "program", "erase", "transfer"].map(of);
        let total_j = parts.iter().sum::<f64>() + idle_j.unwrap_or(0.0);
        let [reads_j, programs_j, erases_j, transfers_j] = parts;
        let mut result = sample::page_level("page", 1);
        result.energy = Some(EnergyResult {
            total_j,
            reads_j,
            programs_j,
            erases_j,
            transfers_j,
            idle_j,
            total_j_per_host_gib: Some(total_j / 2.0),
            operations: operations.iter().map(operation).collect(),
        });
        result
    }

    fn texts(results: &[RunResult]) -> Vec<(String, Vec<String>)> {
        let rows = rows(results, Better::Lower).into_iter().filter(|row| !row.is_empty());
        rows.map(|row| (row.label, row.cells.into_iter().map(|cell| cell.text).collect())).collect()
    }

    #[test]
    fn a_run_that_was_not_asked_for_its_energy_has_no_rows() {
        assert!(texts(&[sample::page_level("page", 1)]).is_empty());
    }

    #[test]
    fn an_operation_of_several_kinds_is_told_by_kind() {
        let cells = [
            ("read", "tlc page 1 of 3", 100, 0.01),
            ("read", "page in SLC mode", 100, 0.001),
            ("program", "tlc word line", 5, 1.0),
        ];
        let plain = [("read", "page", 10, 0.05), ("erase", "block", 1, 0.5)];
        let found = texts(&[with(&cells, Some(3.9)), with(&plain[1..], None)]);
        let expected = [
            ("energy", ["10.0 J", "500 mJ"]),
            ("energy, for a GiB of the host", ["5.00 J", "250 mJ"]),
            ("of it reads", ["1.10 J (11.0 %)", "0 J (0.0 %)"]),
            ("of it reads, tlc page 1 of 3", ["1.00 J (10.0 %)", number::NONE]),
            ("of it reads, page in SLC mode", ["100 mJ (1.0 %)", number::NONE]),
            ("of it programs", ["5.00 J (50.0 %)", "0 J (0.0 %)"]),
            ("of it erases", ["0 J (0.0 %)", "500 mJ (100.0 %)"]),
            ("of it transfers", ["0 J (0.0 %)", "0 J (0.0 %)"]),
            ("of it idle dies", ["3.90 J (39.0 %)", number::NONE]),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, (label, cells)) in found.iter().zip(expected) {
            assert_eq!((found.0.as_str(), &found.1[..]), (label, &cells.map(str::to_string)[..]));
        }
    }
}
