//! The call by which a workload syncs a file: `sync-call=`.

use super::{FileOperation, Name};
use crate::expression::{Choice, OptionKind, Values, words};

/// The option.
pub(super) const SYNC_CALL: OptionKind = OptionKind {
    name: "sync-call",
    values: Values::Choice(words::<SyncCall>),
    default: "fsync",
    about: "the call in the place of each fsync",
};

/// A call that makes a file durable, or puts it in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncCall {
    Fsync,
    Fdatasync,
    Fbarrier,
    Fdatabarrier,
}

impl Choice for SyncCall {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("fsync", SyncCall::Fsync, "the file is durable"),
        ("fdatasync", SyncCall::Fdatasync, "its data is durable, and what it takes to read it"),
        (
            "fbarrier",
            SyncCall::Fbarrier,
            "the file is there after a crash if anything later is; durable on file systems that keep no order",
        ),
        ("fdatabarrier", SyncCall::Fdatabarrier, "the same of its data, and what it takes to read it"),
    ];
}

impl SyncCall {
    /// The call for an open file.
    pub(super) fn of(self, file: Name) -> FileOperation {
        match self {
            SyncCall::Fsync => FileOperation::Fsync(file),
            SyncCall::Fdatasync => FileOperation::Fdatasync(file),
            SyncCall::Fbarrier => FileOperation::Fbarrier(file),
            SyncCall::Fdatabarrier => FileOperation::Fdatabarrier(file),
        }
    }
}
