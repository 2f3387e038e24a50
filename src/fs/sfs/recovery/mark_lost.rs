//! The mark of a mount that lost changes.

use super::open::{Located, locate, media_of};
use crate::device::Medium;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::make::check_identity;
use crate::fs::sfs::media::format::LOST;
use crate::task::Task;
use crate::time::Time;

/// Marks the volume with this number as one that lost changes, so that the next mount and the next fsck say so. For a
/// medium that was opened anew: the one on which a flush failed takes no more writes.
///
/// Of the volume, only its newest superblock must be whole.
pub fn mark_lost(medium: Medium, number: [u8; 16]) -> Result<(), OpenSfsError> {
    let task = &Task::at(Time::ZERO);
    let Located { medium, superblocks, newest } = locate(task, medium)?;
    let mut superblock = newest.superblock;
    check_identity(&superblock, number)?;
    superblock.sequence += 1;
    superblock.clean = LOST.into();
    let media = media_of(medium, &superblocks, &newest);
    let mark = || {
        media.write_superblock(task, superblock.sequence.get(), &superblock.with_checksum())?;
        media.flush(task)?;
        media.close(task)
    };
    mark().map_err(SfsError::from)?;
    Ok(())
}
