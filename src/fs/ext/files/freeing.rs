//! Files that have no name, and that nobody holds any more.

use super::placing::MAP_BLOCKS;
use crate::fs::ext::files::node::File;
use crate::fs::ext::files::writing::Writes;
use crate::fs::ext::journal::Handle;
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::Task;

impl Writes<'_> {
    /// Frees a file that is an orphan, if nobody holds it. The task is behind its gate.
    pub fn free_if_gone(&self, task: &Task<'_>, file: &mut File) -> Result<(), VolumeError> {
        if file.inode.links() > 0 || file.is_freed || self.write_back.inodes.nodes.is_held(file.number) {
            return Ok(());
        }
        self.free_file(task, file)
    }

    /// Gives all that a file has back, and its inode.
    pub fn free_file(&self, task: &Task<'_>, file: &mut File) -> Result<(), VolumeError> {
        let is_directory = file.kind() == FileKind::Directory;
        self.drop_pages(file, 0..u64::MAX);
        self.write_back.inodes.maps.allocation.space.windows.drop_of(file.number);
        self.write_back.waiting.is_emptied_no_more(file.number);
        if file.inode.has_map() {
            self.cut_all(task, file, 0..u64::from(u32::MAX), true)?;
        }
        let mut free = |handle: &Handle<'_>| {
            self.write_back.inodes.leave_attribute_block(handle, file)?;
            self.write_back.inodes.remove_orphan(handle, file)?;
            if file.inode.has_map() {
                file.inode.set_size(0);
                file.stored_size = 0;
            }
            let seconds = self.origin.after(task.now()).0.div_euclid(1_000_000_000);
            // Zero would say that it was not deleted.
            file.inode.set_deleted(seconds.clamp(1, i64::from(u32::MAX)) as u32);
            self.write_back.inodes.store_inode(handle, file, true)?;
            // Behind `free_inode` the number may be another file's: all that is kept by number goes before.
            self.write_back.waits_no_more(file);
            self.write_back.inodes.nodes.remove(file.number);
            handle.tracked(|tracker| tracker.frees(file.number));
            self.allocation().free_inode(handle, file.number, is_directory)
        };
        self.changes.within(task, MAP_BLOCKS, |handle| self.changes.changing(|| free(handle)))?;
        file.is_freed = true;
        Ok(())
    }
}
