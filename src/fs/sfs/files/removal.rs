//! The end of a file.

use super::Files;
use super::attribute_blocks::AttributeBlocks;
use crate::fs::sfs::SfsError;
use crate::task::Task;

/// Frees an inode and its blocks. If that fails, an inode without a name stays an orphan.
pub(in crate::fs::sfs) fn free_inode(task: &Task<'_>, files: &mut Files, number: u64) -> Result<(), SfsError> {
    files.unmap(task, number, 0..u64::MAX)?;
    AttributeBlocks::of(task, files, number).free()?;
    files.orphans.remove(&number);
    files.inodes.remove(number);
    files.metadata.inode_file.free(number);
    files.records.touch(number);
    files.is_changed = true;
    Ok(())
}
