//! Lifetimes stated from outside: by an application (write life hints, placement handles), or by the name of a file.
//!
//! Linux has `fcntl(F_SET_RW_HINT)`, and stores the hint in its own inode. The protocol of FUSE has no field for it, so a
//! mounted volume never receives it: there the names of files remain. Workloads in this process pass the hints of their
//! operations.

use crate::expression::{ExpressionError, Settings};

/// A stated lifetime: the values of `RWH_WRITE_LIFE_*` of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Hint {
    /// Nothing is stated.
    #[default]
    None = 0,
    /// Stated to be no hint: `RWH_WRITE_LIFE_NONE`.
    Unhinted = 1,
    /// Short.
    Short = 2,
    /// Medium.
    Medium = 3,
    /// Long.
    Long = 4,
    /// Extreme.
    Extreme = 5,
}

impl Hint {
    /// The hint with this number; other numbers state nothing.
    pub fn of_number(number: u8) -> Hint {
        match number {
            1 => Hint::Unhinted,
            2 => Hint::Short,
            3 => Hint::Medium,
            4 => Hint::Long,
            5 => Hint::Extreme,
            _ => Hint::None,
        }
    }

    /// This hint, or the other one if this states nothing.
    pub fn or(self, other: Hint) -> Hint {
        if self == Hint::None { other } else { self }
    }
}

/// Endings of file names, and the lifetime that each states: the options `short-lived` and `long-lived`.
///
/// Endings are joined by `+`, such as `short-lived=.wal+-journal+.tmp`: no shell expands them.
#[derive(Clone, Debug, Default)]
pub struct NameHints {
    endings: Vec<(Vec<u8>, Hint)>,
}

/// The options, and the lifetimes that they state.
const OPTIONS: [(&str, Hint); 2] = [("short-lived", Hint::Short), ("long-lived", Hint::Extreme)];

impl NameHints {
    /// Reads the options. Fails if an ending is empty, or given twice.
    pub fn read(settings: &Settings) -> Result<NameHints, ExpressionError> {
        let mut names = NameHints::default();
        for (option, hint) in OPTIONS.into_iter().filter(|(option, _)| settings.is_set(option)) {
            for ending in settings.text(option).split('+') {
                let help = "write endings of names, such as .wal+-journal".to_string();
                if ending.is_empty() {
                    return Err(settings.error(option, "an ending is empty".to_string(), help));
                }
                if names.endings.iter().any(|(other, _)| other == ending.as_bytes()) {
                    return Err(settings.error(option, format!("the ending {ending} is given twice"), help));
                }
                names.endings.push((ending.as_bytes().to_vec(), hint));
            }
        }
        Ok(names)
    }

    /// The first of the options that is given.
    pub fn given(settings: &Settings) -> Option<&'static str> {
        OPTIONS.iter().map(|(option, _)| *option).find(|option| settings.is_set(option))
    }

    /// The lifetime that a name states: that of the longest ending that fits.
    pub fn of_name(&self, name: &[u8]) -> Hint {
        let fitting = self.endings.iter().filter(|(ending, _)| name.ends_with(ending));
        fitting.max_by_key(|(ending, _)| ending.len()).map_or(Hint::None, |(_, hint)| *hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse_term;
    use crate::fs::sfs::settings::{KIND, SfsSettings};

    fn names(term: &str) -> Result<NameHints, ExpressionError> {
        NameHints::read(&parse_term(term)?.settle(&KIND)?)
    }

    #[test]
    fn the_longest_ending_of_a_name_states_its_lifetime() {
        let names = names("sfs:short-lived=.wal+-journal+.log,long-lived=.iso+audit.log").unwrap();
        let hints =
            ["db.wal", "db-journal", "a.log", "audit.log", "x.iso", "db", ""].map(|n| names.of_name(n.as_bytes()));
        use Hint::{Extreme, None, Short};
        assert_eq!(hints, [Short, Short, Short, Extreme, Extreme, None, None]);
    }

    #[test]
    fn wrong_endings_are_refused() {
        for (term, why) in [
            ("sfs:grouping=lifetime,short-lived=.a++.b", "empty"),
            ("sfs:grouping=lifetime,short-lived=.a,long-lived=.b+.a", "given twice"),
            ("sfs:grouping=sepbit,short-lived=.a", "grouping=lifetime"),
        ] {
            let error = parse_term(term).and_then(|term| SfsSettings::read(&term)).unwrap_err().to_string();
            assert!(error.contains(why), "{term}: {error}");
        }
    }

    #[test]
    fn a_number_of_no_hint_states_nothing() {
        assert_eq!((0..=7).map(Hint::of_number).filter(|hint| *hint != Hint::None).count(), 5);
        assert_eq!((Hint::Short.or(Hint::Long), Hint::None.or(Hint::Long)), (Hint::Short, Hint::Long));
    }
}
