//! The age of a drive when a run begins.

use crate::expression::{ExpressionError, Kind, OptionKind, Values, parse_term};

/// The options of an age, written as those of a station.
static KIND: Kind = Kind {
    name: "age",
    about: "the age of a drive",
    options: &[
        OptionKind {
            name: "years",
            values: Values::Real(0.0, 100.0),
            default: "0",
            about: "the time for which the drive lies between fill and preconditioning and the count",
        },
        OptionKind {
            name: "cycles",
            values: Values::Share(0.0, 0.99),
            default: "0%",
            about: "the erases that each block had before, as a share of the endurance",
        },
    ],
};

/// The age of a drive: its wear at the beginning, and the time for which it lies before the count.
#[derive(Debug, Clone, PartialEq)]
pub struct Age {
    /// Years for which the drive lies with the data that was written before the count.
    pub years: f64,
    /// The erases of each block before, over the endurance: less than 1.
    pub cycles: f64,
    /// The age as written.
    pub text: String,
}

/// Nanoseconds of a day.
pub(in crate::device::nand) const DAY_NS: f64 = 86_400e9;

/// Days of a year.
const YEAR_DAYS: f64 = 365.25;

impl Age {
    /// Reads an age such as `years=1,cycles=50%`. Errors point at the wrong part, behind `age:`.
    pub fn read(text: &str) -> Result<Age, ExpressionError> {
        let term = parse_term(&format!("{}:{text}", KIND.name))?;
        let settings = term.settle(&KIND)?;
        Ok(Age { years: settings.real("years"), cycles: settings.share("cycles"), text: text.to_string() })
    }

    /// The time for which the drive lies, in nanoseconds.
    pub fn rest_ns(&self) -> u64 {
        (self.years * YEAR_DAYS * DAY_NS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_years_and_cycles() {
        let age = Age::read("years=1,cycles=50%").unwrap();
        assert_eq!((age.years, age.cycles, age.rest_ns()), (1.0, 0.5, 31_557_600_000_000_000));
        assert_eq!(Age::read("cycles=0.2").unwrap().rest_ns(), 0);
        for (text, what) in [("cycles=100%", "100%"), ("years=-1", "-1"), ("weeks=3", "weeks"), ("years=1,", "")] {
            let error = Age::read(text).expect_err(text);
            assert!(error.source_text[error.span.clone()].contains(what), "{text}: {error}");
        }
    }
}
