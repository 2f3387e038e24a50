//! Handling of a failed write or flush: the volume becomes read-only, reports the lost changes at unmount, and is
//! marked for the next fsck if the medium accepts a write.
//!
//! After a failure, memory is ahead of the medium by an unknown amount: any part of the writes since the last flush may
//! be stored. Earlier fsyncs and checkpoints are durable. A failed read in the middle of a truncation or a punch has
//! the same effect: a partial change must not be stored.

use super::{Sfs, SfsError};
use crate::fs::volume::Lost;

/// Number of inodes listed in an error.
const MOST_NAMED: usize = 10;

/// Failures since the mount, and the lost changes.
#[derive(Default)]
pub(super) struct Faults {
    /// The reason why the volume is read-only, if it is.
    pub read_only: Option<String>,
    /// Changes lost by a failed write or flush.
    pub lost: Option<Lost>,
    /// Changes that the current checkpoint makes durable.
    pub in_checkpoint: Option<Lost>,
    /// True if the previous mount marked the volume after losing changes.
    pub has_lost_before: bool,
}

impl Sfs {
    /// Changes lost by a failed write or flush, if one failed.
    pub fn lost(&self) -> Option<&Lost> {
        self.faults.lost.as_ref()
    }

    /// True if the previous mount lost changes and marked the volume.
    pub fn has_lost_before(&self) -> bool {
        self.faults.has_lost_before
    }

    /// The identifier of the volume.
    pub fn number(&self) -> [u8; 16] {
        self.superblock.identity
    }

    /// Makes the volume read-only after a failed write or flush.
    pub(super) fn fail(&mut self, why: String) {
        if self.faults.read_only.is_none() {
            self.faults.lost =
                Some(Lost { why: why.clone(), ..self.faults.in_checkpoint.take().unwrap_or_else(|| self.changes()) });
            self.faults.read_only = Some(why);
        }
    }

    /// Fails the volume if a change was interrupted by an error: the partial change is not in the log and must not be
    /// stored.
    pub(super) fn all_or_fail<T>(&mut self, what: &str, done: Result<T, SfsError>) -> Result<T, SfsError> {
        if let Err(SfsError::Device(error)) = &done {
            self.fail(format!("{what} was interrupted: {error}"));
        }
        done
    }

    /// The changes that a failure would lose now.
    pub(super) fn changes(&self) -> Lost {
        let mut numbers: Vec<u64> =
            self.files.inodes.iter().filter(|inode| inode.is_dirty).map(|inode| inode.number).collect();
        numbers.sort_unstable();
        let inodes = numbers.len() as u64;
        numbers.truncate(MOST_NAMED);
        let blocks = self.files.dirty_blocks.len() as u64 + self.log.unflushed_blocks;
        Lost { why: String::new(), inodes, first_inodes: numbers, blocks }
    }
}
