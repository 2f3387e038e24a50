//! The mark of a mount that lost changes.

use super::superblocks;
use crate::device::Medium;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::format::LOST;
use crate::fs::sfs::make::check_identity;
use crate::fs::sfs::media::Media;
use crate::task::Task;
use crate::time::Time;

/// Marks the volume with this number as one that lost changes, so that the next mount and the next fsck say so. For a
/// medium that was opened anew: the one on which a flush failed takes no more writes.
pub fn mark_lost(mut medium: Medium, number: [u8; 16]) -> Result<(), OpenSfsError> {
    let (found, now) = superblocks::find(&mut medium, Time::ZERO)?;
    let task = &Task::at(now);
    let superblocks::Found { mut superblock, turn, .. } = found.newest()?;
    check_identity(&superblock, number)?;
    superblock.sequence += 1;
    superblock.clean = LOST.into();
    let media = Media::new(medium, superblock.segment_blocks.get(), superblock.segments.get());
    media.go_on_in(turn);
    let mark = || {
        media.write_superblock(task, superblock.sequence.get(), &superblock.with_checksum())?;
        media.flush(task)?;
        media.close(task)
    };
    mark().map_err(SfsError::from)?;
    Ok(())
}
