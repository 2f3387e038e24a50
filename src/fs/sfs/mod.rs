//! SFS: the log-structured file system that groups blocks by hotness (Min, Kim, Cho, Lee, Eom: "SFS: Random Write Considered
//! Harmful in Solid State Drives", FAST 2012).

mod attributes;
mod calls;
mod error;
pub mod placement;
mod settings;

pub use attributes::{
    Attributes, Change, DirectoryEntry, FileKind, InodeNumber, NewFile, Space, Taken, Timestamp,
};
pub use error::SfsError;
pub use settings::{CleanerKind, GroupingKind, KIND, QuantizerKind, SfsSettings};

use crate::time::Time;

/// A mounted volume.
pub struct Sfs {
    now: Time,
}

impl Sfs {
    /// The instant up to which the last operation took.
    pub fn now(&self) -> Time {
        self.now
    }

    /// An operation begins: at `at`, or when the one before it ended, if that is later than `at`... never earlier.
    pub fn begin(&mut self, at: Time) {
        self.now = self.now.max(at);
    }

    /// Does a bounded piece of what is due in the background at [`now`](Sfs::now). Answers when there will be more to do: now
    /// or before if there is more already.
    pub fn work(&mut self) -> Result<Option<Time>, SfsError> {
        todo!()
    }

    /// Ends in good order: a last checkpoint, marked as an unmount.
    pub fn unmount(self) -> Result<(), SfsError> {
        todo!()
    }
}
