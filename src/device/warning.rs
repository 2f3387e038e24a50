//! Warnings of a station: events of which no request failed.
//!
//! They are passed up in a station's [`Account`](super::Account), through every wrapper and file system, to the front
//! end that prints them.

use std::collections::BTreeMap;

/// The maximum number of stored warnings; a damaged device may produce any number.
const MOST_REMEMBERED: usize = 1000;

/// A warning for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its kind, for counting: words joined by hyphens.
    pub kind: &'static str,
    /// The event and its location.
    pub what: String,
}

/// The warnings of a station since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    list: Vec<Warning>,
    counts: BTreeMap<&'static str, u64>,
}

impl Warnings {
    /// Adds a warning. A repetition is counted, but not stored again.
    pub fn add(&mut self, kind: &'static str, what: impl Into<String>) {
        let warning = Warning { kind, what: what.into() };
        *self.counts.entry(kind).or_default() += 1;
        if self.list.len() < MOST_REMEMBERED && !self.list.contains(&warning) {
            self.list.push(warning);
        }
    }

    /// The warnings to print, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Warning> {
        self.list.iter()
    }

    /// The number of warnings of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_warning_counts_twice_and_a_flood_is_bounded() {
        let mut warnings = Warnings::default();
        for number in 0..1500 {
            warnings.add("lost-blocks", format!("zone {}", number / 2));
        }
        assert_eq!(
            (warnings.iter().count(), warnings.counts().collect::<Vec<_>>()),
            (750, vec![("lost-blocks", 1500)])
        );
        (0..1500).for_each(|number| warnings.add("zone-out-of-use", format!("zone {number}")));
        assert_eq!(warnings.iter().count(), MOST_REMEMBERED);
    }
}
