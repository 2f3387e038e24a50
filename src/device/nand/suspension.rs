//! Reads first: the reads of requests go before what else a plane has to do, and interrupt its programs and erases.

use crate::expression::{Choice, ExpressionError, OptionKind, Settings, Values, words};

pub(super) const SUSPEND: OptionKind = OptionKind {
    name: "suspend",
    values: Values::Choice(words::<Suspend>),
    default: "",
    about: "reads of requests go first at their plane, and interrupt this (not set: planes work in order)",
};
pub(super) const SUSPEND_TIME: OptionKind = OptionKind {
    name: "suspend-time",
    values: Values::Duration(0, 100_000_000),
    default: "50us",
    about: "the time from the interruption until the plane can read, in which the operation makes no progress",
};
pub(super) const SUSPEND_READS: OptionKind = OptionKind {
    name: "suspend-reads",
    values: Values::Count(1, 1 << 20),
    default: "8",
    about: "the reads that an operation lets go first, while it is the next of its plane and while it is suspended",
};

/// The words of `suspend`: the operations that reads interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suspend {
    Waiting,
    Erases,
    Programs,
    Both,
}

impl Choice for Suspend {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("waiting", Suspend::Waiting, "nothing that has begun: reads only go before what waits for the plane"),
        ("erases", Suspend::Erases, "erases"),
        ("programs", Suspend::Programs, "programs"),
        ("both", Suspend::Both, "erases and programs"),
    ];
}

/// The rules of reads that go first. Reads for collection are not among them: they wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension {
    /// True if a read interrupts a program of its plane.
    pub programs: bool,
    /// True if a read interrupts an erase of its plane.
    pub erases: bool,
    /// The time from the interruption until the plane can read, in nanoseconds.
    pub time_ns: u64,
    /// The most reads that go before an operation, while it is the next of its plane and while it is suspended: at least one.
    pub most_reads: u32,
}

impl Suspension {
    /// Reads the options; `None` if planes work in order. Errors point at an option that would have no effect.
    pub(super) fn read(settings: &Settings) -> Result<Option<Suspension>, ExpressionError> {
        if !settings.is_set("suspend") {
            for name in ["suspend-time", "suspend-reads"] {
                if settings.is_given(name) {
                    let message = format!("{name} has no effect without suspend");
                    return Err(settings.error(name, message, "add suspend=both, or remove it".to_string()));
                }
            }
            return Ok(None);
        }
        if !settings.switch("timing") {
            let message = "without times no operation is under way that a read could interrupt".to_string();
            return Err(settings.error("suspend", message, "remove timing=off, or suspend".to_string()));
        }
        let suspend = settings.choice::<Suspend>("suspend");
        if suspend == Suspend::Waiting && settings.is_given("suspend-time") {
            let message = "suspend-time has no effect with suspend=waiting, which interrupts nothing".to_string();
            return Err(settings.error("suspend-time", message, "take suspend=both, or remove it".to_string()));
        }
        Ok(Some(Suspension {
            programs: matches!(suspend, Suspend::Programs | Suspend::Both),
            erases: matches!(suspend, Suspend::Erases | Suspend::Both),
            time_ns: settings.duration_ns("suspend-time"),
            most_reads: settings.count("suspend-reads") as u32,
        }))
    }

    /// The options without effect, given the others.
    pub(super) fn meaningless(settings: &Settings) -> &'static [&'static str] {
        if !settings.is_set("suspend") {
            &["suspend-time", "suspend-reads"]
        } else if settings.choice::<Suspend>("suspend") == Suspend::Waiting {
            &["suspend-time"]
        } else {
            &[]
        }
    }
}
