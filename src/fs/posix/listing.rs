//! Directories, listed.

use super::{Posix, Wanted};
use crate::fs::volume::{Call, FileKind, Hold, InodeNumber, TakeEntry, TakeFullEntry, VolumeError};

impl Posix {
    /// Lists a directory from `from` on, until `take` answers false.
    pub fn list(&self, call: &Call, directory: InodeNumber, from: u64, take: TakeEntry) -> Result<(), VolumeError> {
        self.check_look(call, directory, Wanted::READ)?;
        let times = self.volume.list(call, directory, from, take)?;
        if from == 0 {
            self.note_read(call, directory, FileKind::Directory, times);
        }
        Ok(())
    }

    /// The same with attributes. The caller holds each file whose entry is taken, but for `.` and `..`.
    pub fn list_with_attributes(
        &self,
        call: &Call,
        directory: InodeNumber,
        from: u64,
        take: TakeFullEntry,
    ) -> Result<(), VolumeError> {
        self.check_look(call, directory, Wanted::READ | Wanted::EXECUTE)?;
        let times = self.volume.list_with_attributes(call, directory, from, Hold::Yes, take)?;
        if from == 0 {
            self.note_read(call, directory, FileKind::Directory, times);
        }
        Ok(())
    }
}
