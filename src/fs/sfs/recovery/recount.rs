//! Counting virtual blocks and inodes in use anew.

use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::metadata::dat::Dat;
use crate::task::Task;

/// The inodes of a page that are in use, or were freed since the last checkpoint: a bit for each.
pub(super) fn inodes_in_use(task: &Task<'_>, files: &mut Files, page: usize) -> Result<u16, SfsError> {
    let first = page as u64 * INODES;
    let file = &mut files.metadata.inode_file;
    // Number 0 stands for none.
    let mut taken = u16::from(page == 0);
    for number in first.max(1)..first + INODES {
        let is_held = files.inodes.contains(number) || file.is_freed(number);
        if is_held || file.get(task, number)?.number.get() != 0 {
            taken |= 1 << (number % INODES);
        }
    }
    Ok(taken)
}

/// Counts which inodes are in use.
pub(super) fn inodes(task: &Task<'_>, files: &mut Files) -> Result<(), SfsError> {
    for page in 0..files.metadata.inode_file.pages() {
        let taken = inodes_in_use(task, files, page)?;
        files.metadata.inode_file.set_taken(page, taken);
    }
    files.metadata.inode_file.count_used();
    Ok(())
}

/// Counts the entries of the DAT that are taken.
pub(super) fn dat(task: &Task<'_>, dat: &mut Dat) -> Result<(), SfsError> {
    // Number 0 stands for none, and is never given out.
    if dat.pages() > 0 && dat.entry_zero(task)?.is_taken != 1 {
        dat.reset_entry_zero(task)?;
    }
    let mut total = 0;
    for page in 0..dat.pages() {
        let (stored, counted, used) = dat.count_page(task, page)?;
        total += used;
        if stored != u32::from(counted) {
            dat.set_counted(page, counted);
        }
    }
    dat.set_used(total);
    Ok(())
}
