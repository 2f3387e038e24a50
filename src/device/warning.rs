//! What a station warns of: what happened by itself, so that no request failed with it.
//!
//! Warnings go up with a station's [`Account`](super::Account), through every wrapper and file system, to whoever tells
//! the user.

use std::collections::BTreeMap;

/// Warnings that are remembered; a damaged device could have any number.
const MOST_REMEMBERED: usize = 1000;

/// Something that a user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its kind, for who counts: a few words with hyphens between them.
    pub kind: &'static str,
    /// What happened, and where.
    pub what: String,
}

/// What a station has warned of since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    told: Vec<Warning>,
    counts: BTreeMap<&'static str, u64>,
}

impl Warnings {
    /// Adds one. It counts; it is told only if it was not told before.
    pub fn add(&mut self, kind: &'static str, what: impl Into<String>) {
        let warning = Warning { kind, what: what.into() };
        *self.counts.entry(kind).or_default() += 1;
        if self.told.len() < MOST_REMEMBERED && !self.told.contains(&warning) {
            self.told.push(warning);
        }
    }

    /// What is to be told, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Warning> {
        self.told.iter()
    }

    /// How many there were of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_twice_counts_twice_and_a_flood_is_bounded() {
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
