//! What a failed write or flush costs: the volume can only be read from then on, says what it lost when it ends, and
//! carries a mark for the next fsck, if the medium takes one.
//!
//! Memory is ahead of the medium then, and nobody knows by how much: of what was written since the last flush any part
//! may be stored. What an fsync or a checkpoint made durable before is there. A read that fails in the middle of a
//! truncation or a punch ends the same way: what is there in part must not be stored.

use super::{Sfs, SfsError};
use crate::fs::volume::Lost;

/// Inodes that are named.
const MOST_NAMED: usize = 10;

/// What has failed since the mount, and what that has cost.
#[derive(Default)]
pub(super) struct Faults {
    /// Why the volume can only be read.
    pub read_only: Option<String>,
    /// What a failed write or flush has cost.
    pub lost: Option<Lost>,
    /// What a checkpoint that is being taken will make durable.
    pub at_stake: Option<Lost>,
    /// True if the mount before this one has left a mark that it lost something.
    pub has_lost_before: bool,
}

impl Sfs {
    /// What a failed write or flush has cost, if one has failed.
    pub fn lost(&self) -> Option<&Lost> {
        self.faults.lost.as_ref()
    }

    /// True if the mount before this one lost changes in this way, and could leave a mark.
    pub fn has_lost_before(&self) -> bool {
        self.faults.has_lost_before
    }

    /// The volume's own number.
    pub fn number(&self) -> [u8; 16] {
        self.superblock.identity
    }

    /// A write or flush failed: from now on the volume can only be read.
    pub(super) fn fail(&mut self, why: String) {
        if self.faults.read_only.is_none() {
            self.faults.lost =
                Some(Lost { why: why.clone(), ..self.faults.at_stake.take().unwrap_or_else(|| self.changes()) });
            self.faults.read_only = Some(why);
        }
    }

    /// A change that the device has interrupted must not be stored: it is there in part, and not told to the log.
    pub(super) fn all_or_fail<T>(&mut self, what: &str, done: Result<T, SfsError>) -> Result<T, SfsError> {
        if let Err(SfsError::Device(error)) = &done {
            self.fail(format!("{what} was done in part: {error}"));
        }
        done
    }

    /// What would be lost now.
    pub(super) fn changes(&self) -> Lost {
        let mut numbers: Vec<u64> =
            self.inodes.iter().filter(|inode| inode.is_dirty).map(|inode| inode.number).collect();
        numbers.sort_unstable();
        let inodes = numbers.len() as u64;
        numbers.truncate(MOST_NAMED);
        let blocks = self.waiting.len() as u64 + self.log.unflushed_blocks;
        Lost { why: String::new(), inodes, first_inodes: numbers, blocks }
    }
}
