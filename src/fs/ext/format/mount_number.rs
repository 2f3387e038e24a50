//! The number of a mount whose journal is not in the volume. The volume and its journal both have it, so that neither is
//! taken for one of another time.
//!
//! ```text
//! bits 32..64  counts the mounts of the volume: the greater one of two is the newer
//! bits  0..32  drawn anew by each mount: two copies of a volume that were mounted apart differ
//! ```
//!
//! Zero is no number: the maker of the journal, or a mount of the volume, did not count.

use std::cmp::Ordering;
use std::fmt;

/// The number of a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountNumber(pub u64);

impl MountNumber {
    /// That of a mount after this one.
    pub fn next(self, drawn: u32) -> MountNumber {
        MountNumber((self.count() + 1) << 32 | u64::from(drawn))
    }

    /// The later one of two.
    pub fn later(self, other: MountNumber) -> MountNumber {
        if other.count() > self.count() { other } else { self }
    }

    pub fn count(self) -> u64 {
        self.0 >> 32
    }

    pub fn is_counted(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for MountNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_counted() {
            true => write!(f, "mount {}", self.count()),
            false => write!(f, "a mount that was not counted"),
        }
    }
}

/// Why a journal with transactions is not the one that the volume was left with; `None` if it is, or if it does not say.
pub fn mismatch(volume: MountNumber, journal: MountNumber, what: &str) -> Option<String> {
    if volume == journal || !journal.is_counted() {
        return None;
    }
    let why = match volume.count().cmp(&journal.count()) {
        Ordering::Less => "the volume is the older one, as a copy from before its last mount is",
        Ordering::Greater => "the journal is the older one, as a copy from an earlier mount is",
        Ordering::Equal => "they are of two copies of the volume, which were mounted apart",
    };
    Some(format!("{what} is of {journal}, and the volume of {volume}: {why}; restore both from the same time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_says_which_is_older_and_numbers_only_go_up() {
        let first = MountNumber::default().next(7);
        let second = first.next(1);
        assert!(second.count() == 2 && first.later(second) == second && second.later(first) == second);
        assert_eq!(mismatch(first, first, "it"), None);
        assert_eq!(mismatch(first, MountNumber::default(), "it"), None, "nobody has counted");
        for (volume, journal, words) in [
            (first, second, "the volume is the older one"),
            (MountNumber::default(), second, "the volume is the older one"),
            (second, first, "the journal is the older one"),
            (first, MountNumber::default().next(8), "two copies"),
        ] {
            assert!(mismatch(volume, journal, "it").is_some_and(|why| why.contains(words)), "{volume:?} {journal:?}");
        }
    }
}
