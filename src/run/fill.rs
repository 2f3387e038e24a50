//! How much of the exported space is written before a run counts.

use crate::expression::parse_switch_or_share;
use std::fmt;

/// The share of the exported space, of each tenant's regions or of a file that is written once, in order, before counting begins.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Fill(f64);

impl Fill {
    /// Nothing.
    pub const NONE: Fill = Fill(0.0);
    /// All of it.
    pub const ALL: Fill = Fill(1.0);

    /// A share from 0 to 1; `None` if it is none.
    pub fn of(share: f64) -> Option<Fill> {
        (0.0..=1.0).contains(&share).then_some(Fill(share))
    }

    /// Parses `on`, `off`, `70%` or `0.7`.
    pub fn parse(text: &str) -> Option<Fill> {
        parse_switch_or_share(text).and_then(Fill::of)
    }

    /// True if something is written.
    pub fn is_some(self) -> bool {
        self != Fill::NONE
    }

    /// The part of so many units, rounded.
    pub fn part_of(self, units: u64) -> u64 {
        match self {
            Fill::ALL => units,
            Fill(share) => (units as f64 * share).round() as u64,
        }
    }

    /// The argument of the program, unless nothing is written.
    pub(super) fn argument(self) -> Option<String> {
        self.is_some().then(|| match self {
            Fill::ALL => "--fill".to_string(),
            part => format!("--fill={part}"),
        })
    }
}

impl From<bool> for Fill {
    fn from(is_on: bool) -> Fill {
        if is_on { Fill::ALL } else { Fill::NONE }
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded as text, without the error of binary fractions.
        let percent = format!("{:.9}", self.0 * 100.0);
        write!(f, "{}%", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_is_a_switch_or_a_share() {
        for (text, fill) in [("on", Fill::ALL), ("off", Fill::NONE), ("100%", Fill::ALL), ("0%", Fill::NONE)] {
            assert_eq!(Fill::parse(text), Some(fill), "{text}");
        }
        let most = Fill::parse("70%").unwrap();
        assert_eq!((most.part_of(1000), most.argument().as_deref()), (700, Some("--fill=70%")));
        assert_eq!(Fill::parse("0.07").unwrap().to_string(), "7%");
        assert_eq!((Fill::ALL.argument().as_deref(), Fill::NONE.argument()), (Some("--fill"), None));
        for wrong in ["101%", "-1%", "yes", "70", "", "nan"] {
            assert_eq!(Fill::parse(wrong), None, "{wrong}");
        }
    }
}
