//! A part of something larger, by its share or by its size.

use super::Settings;
use crate::units;

/// A capacity that is exported of a larger one: the value of [`Values::Capacity`](super::Values::Capacity).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// A share of the larger one, as a fraction.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

/// The bounds of a size, in bytes.
const LEAST_BYTES: u64 = 1 << 16;
pub(crate) const MOST_BYTES: u64 = 1 << 50;

impl Capacity {
    /// Parses `90%`, `0.9`, `480G` or `512GB`. `None` if it is neither a share nor a size. A number without a unit is bytes
    /// if it is whole: a share of 1 would leave nothing.
    pub fn parse(text: &str) -> Option<Capacity> {
        match units::parse_size(text) {
            Some(bytes) => Some(Capacity::Bytes(bytes)),
            None => units::parse_share(text).map(Capacity::Share),
        }
    }

    /// True if a share is between these bounds, or a size is that of a drive.
    pub(super) fn is_within(self, low: f64, high: f64) -> bool {
        match self {
            Capacity::Share(share) => (low..=high).contains(&share),
            Capacity::Bytes(bytes) => (LEAST_BYTES..=MOST_BYTES).contains(&bytes),
        }
    }
}

impl Settings {
    /// A [`Values::Capacity`](super::Values::Capacity).
    pub fn capacity(&self, name: &str) -> Capacity {
        Capacity::parse(self.text(name)).expect("checked when settled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_share_or_a_size() {
        for (text, capacity) in [
            ("90%", Some(Capacity::Share(0.9))),
            ("0.5", Some(Capacity::Share(0.5))),
            ("480G", Some(Capacity::Bytes(480 << 30))),
            ("512GB", Some(Capacity::Bytes(512_000_000_000))),
            ("1.5G", Some(Capacity::Bytes(3 << 29))),
            ("0", Some(Capacity::Bytes(0))),
            ("G", None),
            ("much", None),
        ] {
            assert_eq!(Capacity::parse(text), capacity, "{text}");
        }
        assert!(!Capacity::Bytes(90).is_within(0.01, 0.999), "90 is neither 90 % nor a drive");
        assert!(Capacity::Bytes(1 << 16).is_within(0.01, 0.999) && !Capacity::Share(1.0).is_within(0.01, 0.999));
    }
}
