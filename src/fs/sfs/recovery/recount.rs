//! Counting virtual blocks and inodes in use anew.

use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::media::format::INODES;
use crate::task::Task;

impl Sfs {
    /// The inodes of a page that are in use, or were freed since the last checkpoint: a bit for each.
    pub(super) fn inodes_in_use(&mut self, task: &Task<'_>, page: usize) -> Result<u16, SfsError> {
        let first = page as u64 * INODES;
        // Number 0 stands for none.
        let mut taken = u16::from(page == 0);
        for number in first.max(1)..first + INODES {
            let is_held = self.files.inodes.contains(number) || self.files.metadata.inode_file.is_freed(number);
            if is_held || self.files.metadata.inode_file.get(task, number)?.number.get() != 0 {
                taken |= 1 << (number % INODES);
            }
        }
        Ok(taken)
    }

    /// Counts which inodes are in use.
    pub(super) fn recount_inodes(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        for page in 0..self.files.metadata.inode_file.pages() {
            let taken = self.inodes_in_use(task, page)?;
            self.files.metadata.inode_file.set_taken(page, taken);
        }
        self.files.metadata.inode_file.count_used();
        Ok(())
    }

    /// Counts the entries of the DAT that are taken.
    pub(super) fn recount_dat(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.files.metadata.dat.pages() > 0 {
            // Number 0 stands for none, and is never given out.
            if self.files.metadata.dat.entry_zero(task)?.is_taken != 1 {
                self.files.metadata.dat.reset_entry_zero(task)?;
            }
        }
        let mut total = 0;
        for page in 0..self.files.metadata.dat.pages() {
            let (stored, counted, used) = self.files.metadata.dat.count_page(task, page)?;
            total += used;
            if stored != u32::from(counted) {
                self.files.metadata.dat.set_counted(page, counted);
            }
        }
        self.files.metadata.dat.set_used(total);
        Ok(())
    }
}
