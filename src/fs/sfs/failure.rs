//! What a failed write or flush costs: the volume can only be read from then on, says what it lost when it ends, and
//! carries a mark for the next fsck, if the medium takes one.
//!
//! Memory is ahead of the medium then, and nobody knows by how much: of what was written since the last flush any part
//! may be stored. What an fsync or a checkpoint made durable before is there. A read that fails in the middle of a
//! truncation or a punch ends the same way: what is there in part must not be stored.

use super::checkpoint::superblock_bytes;
use super::error::OpenSfsError;
use super::make::check_identity;
use super::media::Media;
use super::{Sfs, SfsError, superblocks};
use crate::device::Medium;
use crate::time::Time;
use std::fmt;

/// `clean` of a superblock: changes were lost since, as a write or a flush failed. It takes the log to be read, as any
/// value but 1 does.
pub(super) const LOST: u32 = 2;
/// Inodes that are named.
const MOST_NAMED: usize = 10;

/// What a failed write or flush has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What failed.
    pub why: String,
    /// Files and directories that were changed since the last checkpoint. An fsync may have stored some of these changes.
    pub inodes: u64,
    /// The first of them by number.
    pub first_inodes: Vec<u64>,
    /// Blocks that waited, or were written and not flushed.
    pub blocks: u64,
}

impl fmt::Display for Lost {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lost { why, inodes, first_inodes, blocks } = self;
        write!(
            to,
            "{why}; lost is what was not synced since the last checkpoint: changes to {inodes} files and directories"
        )?;
        if !first_inodes.is_empty() {
            let numbers: Vec<String> = first_inodes.iter().map(u64::to_string).collect();
            let more = if first_inodes.len() as u64 == *inodes { "" } else { ", ..." };
            write!(to, " (inodes {}{more})", numbers.join(", "))?;
        }
        write!(to, ", {blocks} blocks of 4 KiB")
    }
}

impl Sfs {
    /// What a failed write or flush has cost, if one has failed.
    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// True if the mount before this one lost changes in this way, and could leave a mark.
    pub fn has_lost_before(&self) -> bool {
        self.has_lost_before
    }

    /// The volume's own number.
    pub fn number(&self) -> [u8; 16] {
        self.superblock.identity
    }

    /// A write or flush failed: from now on the volume can only be read.
    pub(super) fn fail(&mut self, why: String) {
        if self.read_only.is_none() {
            self.lost = Some(Lost { why: why.clone(), ..self.at_stake.take().unwrap_or_else(|| self.changes()) });
            self.read_only = Some(why);
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
        let blocks = self.waiting.len() as u64 + self.unflushed_blocks;
        Lost { why: String::new(), inodes, first_inodes: numbers, blocks }
    }
}

/// Marks the volume with this number as one that lost changes, so that the next mount and the next fsck say so. For a
/// medium that was opened anew: the one on which a flush failed takes no more writes.
pub fn mark_lost(mut medium: Medium, number: [u8; 16]) -> Result<(), OpenSfsError> {
    let (found, now) = superblocks::find(&mut medium, Time::ZERO)?;
    let superblocks::Found { mut superblock, turn, .. } = found.newest()?;
    check_identity(&superblock, number)?;
    superblock.sequence += 1;
    superblock.clean = LOST.into();
    let mut media = Media::new(medium, superblock.segment_blocks.get(), superblock.segments.get());
    media.go_on_in(turn);
    let mark = |media: &mut Media| {
        let now = media.write_superblock(superblock.sequence.get(), &superblock_bytes(&superblock), now)?;
        let now = media.flush(now)?;
        media.close(now)
    };
    mark(&mut media).map_err(SfsError::from)?;
    Ok(())
}
