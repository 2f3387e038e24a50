//! Listing directories.

use super::{Posix, Wanted};
use crate::fs::volume::{Call, FileKind, Hold, InodeNumber, TakeEntry, TakeFullEntry, VolumeError};

impl Posix {
    /// Lists a directory from offset `from`, until `take` returns false.
    pub fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<(), VolumeError> {
        self.check_before_read(call, directory, Wanted::READ)?;
        let times = self.volume.list(call, directory, from, take)?;
        if from == 0 {
            self.update_access_time(call, directory, FileKind::Directory, times);
        }
        Ok(())
    }

    /// Lists with attributes, and takes a reference to each listed inode except `.` and `..`.
    pub fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        take: TakeFullEntry,
    ) -> Result<(), VolumeError> {
        self.check_before_read(call, directory, Wanted::READ | Wanted::EXECUTE)?;
        let times = self.volume.list_with_attributes(call, directory, from, Hold::Yes, take)?;
        if from == 0 {
            self.update_access_time(call, directory, FileKind::Directory, times);
        }
        Ok(())
    }
}
