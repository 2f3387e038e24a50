//! What the stations of a path warn of: each told once.

use flashpath::device::Account;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The warnings that were told.
#[derive(Default)]
pub struct Heard(Mutex<BTreeSet<String>>);

impl Heard {
    /// The warnings of an account that were not told before. They count as told from now on.
    pub fn new_of(&self, account: &Account) -> Vec<String> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = account.all_warnings();
        lines.retain(|line| heard.insert(line.clone()));
        lines
    }

    /// Tells those on standard error.
    pub fn tell(&self, account: &Account) {
        self.new_of(account).iter().for_each(|line| crate::tell(&format!("warning: {line}")));
    }

    /// How many there were so far, for the end of a line of figures; nothing if there were none.
    pub fn count_so_far(&self) -> String {
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
    fn a_warning_of_any_station_is_told_once() {
        let mut below = Account { station: "dm-zoned", ..Account::default() };
        below.warnings.add("lost-blocks", "blocks are lost");
        let mut top = Account { station: "sfs", below: vec![below], ..Account::default() };
        let heard = Heard::default();
        assert_eq!(
            (heard.new_of(&top), heard.count_so_far()),
            (vec!["dm-zoned: blocks are lost".into()], "; 1 warning".into())
        );
        top.warnings.add("other", "something else");
        assert_eq!(heard.new_of(&top), ["sfs: something else"]);
        assert_eq!((heard.new_of(&top).len(), heard.count_so_far()), (0, "; 2 warnings".into()));
    }
}
