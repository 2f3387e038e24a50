//! The energy of a run, from the operations that the accounts of its flash count.

use crate::device::{Account, EnergyAccount};
use crate::report::{EnergyOperation, EnergyResult};

/// The energy of all flash below a station since the start of the count, if one of them was asked for it. `seconds` are those
/// that were simulated, and `written_bytes` the workload's.
pub(super) fn of(since: &Account, seconds: Option<f64>, written_bytes: u64) -> Option<EnergyResult> {
    let mut accounts = Vec::new();
    collect(since, &mut accounts);
    let mut operations: Vec<EnergyOperation> = Vec::new();
    for of in accounts.iter().flat_map(|account| &account.operations) {
        let is_same = |known: &&mut EnergyOperation| {
            (known.operation.as_str(), &known.of, known.joules_each) == (of.operation, &of.of, of.joules_each)
        };
        match operations.iter_mut().find(is_same) {
            Some(known) => known.count += of.count,
            None => operations.push(EnergyOperation {
                operation: of.operation.to_string(),
                of: of.of.clone(),
                count: of.count,
                joules_each: of.joules_each,
            }),
        }
    }
    let joules = |name: &str| {
        let of_name = operations.iter().filter(|of| of.operation == name);
        of_name.map(|of| of.count as f64 * of.joules_each).sum::<f64>()
    };
    let idle_watts: f64 = accounts.iter().map(|account| account.idle_watts).sum();
    let [reads_j, programs_j, erases_j, transfers_j] = ["read", "program", "erase", "transfer"].map(joules);
    let idle_j = seconds.map(|seconds| seconds * idle_watts);
    let total_j = reads_j + programs_j + erases_j + transfers_j + idle_j.unwrap_or(0.0);
    let gib = written_bytes as f64 / (1u64 << 30) as f64;
    (!accounts.is_empty()).then(|| EnergyResult {
        total_j,
        reads_j,
        programs_j,
        erases_j,
        transfers_j,
        idle_j,
        total_j_per_host_gib: (gib > 0.0).then(|| total_j / gib),
        operations,
    })
}

fn collect<'a>(account: &'a Account, found: &mut Vec<&'a EnergyAccount>) {
    found.extend(account.flash.iter().filter_map(|flash| flash.energy.as_deref()));
    account.below.iter().for_each(|below| collect(below, found));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{FlashAccount, OperationEnergy};

    fn flash(operations: &[(&'static str, u64, f64)], idle_watts: f64) -> Account {
        let operation = |&(operation, count, joules_each): &(&'static str, u64, f64)| OperationEnergy {
            operation,
            of: "page".to_string(),
            count,
            joules_each,
        };
        let energy = EnergyAccount { operations: operations.iter().map(operation).collect(), idle_watts };
        let flash = FlashAccount { energy: Some(Box::new(energy)), ..FlashAccount::default() };
        Account { station: "nand", flash: Some(flash), ..Account::default() }
    }

    #[test]
    fn the_energy_of_several_drives_adds_up_by_operation() {
        let below = vec![
            flash(&[("read", 10, 0.5), ("program", 2, 4.0)], 0.25),
            flash(&[("read", 6, 0.5), ("program", 1, 3.0), ("erase", 1, 7.0)], 0.75),
        ];
        let both = Account { station: "page", below, ..Account::default() };
        let energy = of(&both, Some(10.0), 1 << 29).unwrap();
        assert_eq!((energy.reads_j, energy.programs_j, energy.erases_j, energy.transfers_j), (8.0, 11.0, 7.0, 0.0));
        assert_eq!((energy.idle_j, energy.total_j, energy.total_j_per_host_gib), (Some(10.0), 36.0, Some(72.0)));
        let counts: Vec<_> = energy.operations.iter().map(|of| (of.operation.as_str(), of.count)).collect();
        assert_eq!(counts, [("read", 16), ("program", 2), ("program", 1), ("erase", 1)]);
    }

    #[test]
    fn a_path_without_times_has_no_idle_energy_and_one_that_was_not_asked_none() {
        let energy = of(&flash(&[("read", 10, 0.5)], 0.25), None, 0).unwrap();
        assert_eq!((energy.idle_j, energy.total_j, energy.total_j_per_host_gib), (None, 5.0, None));
        assert_eq!(of(&Account::default(), Some(1.0), 4096), None);
    }
}
