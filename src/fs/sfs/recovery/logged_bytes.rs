//! Bytes in log records: the changes of small syncs are applied to the versions of blocks that they changed.
//!
//! Each record has the checksum of the whole block with its bytes. If the version below is lost, they are not applied:
//! an older version may be read, which is reported, and no mixture of two. The version below may also be overwritten
//! because a later partial segment holds the block: then that one counts, and nothing is reported.

use super::applied::Applied;
use crate::crc;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::packing::Packed;
use crate::fs::sfs::media::format::{BLOCK, MOST_BLOCKS};
use crate::fs::sfs::{FileKind, SfsError};
use crate::task::Task;

/// The bytes of a log record.
pub(super) struct LoggedBytes<'a> {
    pub inode: u64,
    /// The block's index in the file.
    pub place: u64,
    /// The first byte in the block.
    pub at: u16,
    /// The checksum of the block with the bytes.
    pub crc: u32,
    pub bytes: Packed<'a>,
}

impl LoggedBytes<'_> {
    /// The block with these bytes; `None` if that is not the version that was synced.
    fn over(&self, version: Option<&[u8; BLOCK]>) -> Option<[u8; BLOCK]> {
        let bytes = self.bytes.unpack()?;
        // Where all bytes are in the record, nothing is below.
        let mut whole = *version.or((bytes.len() == BLOCK).then_some(&[0; BLOCK]))?;
        whole.get_mut(usize::from(self.at)..)?.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        (crc::crc32c(&whole) == self.crc).then_some(whole)
    }

    /// Applies the bytes to their block, which is dirty from then on. Returns true if they are.
    pub fn apply(&self, task: &Task<'_>, files: &mut Files, applied: &mut Applied) -> Result<bool, SfsError> {
        let LoggedBytes { inode, place, .. } = *self;
        if files.inode(task, inode)?.kind != FileKind::Regular || place >= MOST_BLOCKS {
            return Ok(false);
        }
        applied.missed.insert((inode, place));
        let mapped = match files.mapped(task, inode, place) {
            Err(error @ SfsError::Damaged { .. }) => {
                files.miss_a_block(task, inode)?;
                return Err(error);
            }
            mapped => mapped?,
        };
        let version = known_version(task, files, inode, place)?;
        let Some(whole) = self.over(version.as_ref()) else { return Ok(false) };
        let slot = files.slot(task, inode, place, Some(&whole))?;
        files.dirty_blocks.load(slot, &whole);
        files.dirty_blocks.set_logged(slot);
        if mapped == 0 {
            applied.filled.insert(files.dirty_blocks.slot(slot).number);
        }
        applied.missed.remove(&(inode, place));
        Ok(true)
    }
}

/// The bytes of a block of a file up to this point of the log; `None` if they are damaged, or overwritten since.
fn known_version(task: &Task<'_>, files: &mut Files, inode: u64, place: u64) -> Result<Option<[u8; BLOCK]>, SfsError> {
    let mut bytes = [0; BLOCK];
    match files.plan_read(task, inode, place, &mut bytes) {
        // On a zone that was reset, reading fails.
        Ok(planned) => {
            let is_known = planned.fetch(task, &files.media, &mut bytes).is_ok_and(|wrong| wrong.is_empty());
            Ok(is_known.then_some(bytes))
        }
        Err(SfsError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
