//! Handling of a failed write or flush: the volume becomes read-only, reports the lost changes at unmount, and is
//! marked for the next fsck if the medium accepts a write.
//!
//! After a failure, memory is ahead of the medium by an unknown amount: any part of the writes since the last flush may
//! be stored. Earlier fsyncs and checkpoints are durable. A failed read in the middle of a truncation or a punch has
//! the same effect: a partial change must not be stored.

use super::SfsError;
use super::files::Files;
use super::log::Log;
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

impl Faults {
    /// Fails if the volume is read-only.
    pub fn check_writable(&self) -> Result<(), SfsError> {
        match &self.read_only {
            Some(why) => Err(SfsError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Makes the volume read-only after a failed write or flush.
    pub fn fail(&mut self, files: &Files, log: &Log, why: String) {
        if self.read_only.is_none() {
            let lost = self.in_checkpoint.take().unwrap_or_else(|| changes(files, log));
            self.lost = Some(Lost { why: why.clone(), ..lost });
            self.read_only = Some(why);
        }
    }
}

/// The changes that a failure would lose now.
pub(super) fn changes(files: &Files, log: &Log) -> Lost {
    let mut numbers: Vec<u64> = files.inodes.iter().filter(|inode| inode.is_dirty).map(|inode| inode.number).collect();
    numbers.sort_unstable();
    let inodes = numbers.len() as u64;
    numbers.truncate(MOST_NAMED);
    let blocks = files.dirty_blocks.len() as u64 + log.unflushed_blocks;
    Lost { why: String::new(), inodes, first_inodes: numbers, blocks }
}
