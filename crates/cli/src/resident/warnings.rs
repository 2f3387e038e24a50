//! Warnings of a path's stations, each printed once.

use flashpath::device::Account;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The warnings printed so far.
#[derive(Default)]
pub struct PrintedWarnings(Mutex<BTreeSet<String>>);

impl PrintedWarnings {
    /// The new warnings of an account. They count as printed from now on.
    pub fn take_new(&self, account: &Account) -> Vec<String> {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = account.all_warnings();
        lines.retain(|line| printed.insert(line.clone()));
        lines
    }

    /// Prints the new warnings of an account on standard error.
    pub fn print_new(&self, account: &Account) {
        self.take_new(account).iter().for_each(|line| crate::print_message(&format!("warning: {line}")));
    }

    /// The count of warnings so far, for the end of a line of figures; empty for none.
    pub fn summary(&self) -> String {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).len() {
            0 => String::new(),
            1 => "; 1 warning".to_string(),
            count => format!("; {count} warnings"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_of_any_station_is_printed_once() {
        let mut below = Account { station: "dm-zoned", ..Account::default() };
        below.warnings.add("lost-blocks", "blocks are lost");
        let mut top = Account { station: "sfs", below: vec![below], ..Account::default() };
        let printed = PrintedWarnings::default();
        assert_eq!(
            (printed.take_new(&top), printed.summary()),
            (vec!["dm-zoned: blocks are lost".into()], "; 1 warning".into())
        );
        top.warnings.add("other", "something else");
        assert_eq!(printed.take_new(&top), ["sfs: something else"]);
        assert_eq!((printed.take_new(&top).len(), printed.summary()), (0, "; 2 warnings".into()));
    }
}
