//! The protection of committed memory against wild writes.

use crate::expression::Choice;

/// The wanted protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protect {
    /// The best that the process has the right to.
    Best,
    Required,
    Mprotect,
    Nothing,
}

impl Choice for Protect {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("best", Protect::Best, "by the monitor, through a userfaultfd; mprotect if the process has no right to one"),
        ("required", Protect::Required, "by the monitor; refused without the right"),
        ("mprotect", Protect::Mprotect, "by the process itself: weaker, since the code that fails could lift it"),
        ("none", Protect::Nothing, "none: for comparisons"),
    ];
}
