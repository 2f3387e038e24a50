//! Read, write, allocate, seek, copy.

use super::Posix;
use crate::fs::Durable;
use crate::fs::volume::{Allocation, Call, FileKind, InodeNumber, Locked, Seek, VolumeError};

/// Bytes copied by one call.
const COPIED_AT_ONCE: u64 = 1 << 20;

impl Posix {
    /// Reads, and returns the number of bytes: fewer than requested only at the end of the file. Updates the access
    /// time unless `keeps_access_time`.
    pub fn read(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &mut [u8],
        keeps_access_time: bool,
    ) -> Result<usize, VolumeError> {
        let read = self.volume.read(call, inode, offset, bytes)?;
        if !keeps_access_time {
            self.update_access_time(call, inode, FileKind::Regular, read.times);
        }
        Ok(read.length)
    }

    /// Writes. With `is_durable`, the data is durable when the call returns.
    pub fn write(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        is_durable: bool,
    ) -> Result<(), VolumeError> {
        if self.has_no_privileges(call, inode) {
            self.volume.write(call, inode, offset, bytes, None)?;
        } else {
            let mut rule = |locked: &mut dyn Locked| self.privileges_cleared(locked, &call.caller, inode);
            self.volume.write(call, inode, offset, bytes, Some(&mut rule))?;
        }
        if is_durable {
            self.volume.sync_file(call, inode, Durable::Data)?;
        }
        Ok(())
    }

    /// Reserves, zeroes or punches `length` bytes from `offset`.
    pub fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        (offset, length): (u64, u64),
        how: Allocation,
    ) -> Result<(), VolumeError> {
        if length == 0 || offset.checked_add(length).is_none() {
            return Err(VolumeError::Invalid("a range has at least one byte, and ends before 2^64"));
        }
        let mut rule = |locked: &mut dyn Locked| self.privileges_cleared(locked, &call.caller, inode);
        self.volume.allocate(call, inode, (offset, length), how, Some(&mut rule))
    }

    /// The next stored or unstored byte from `offset`; `None` if there is none.
    pub fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.volume.seek(call, inode, offset, what)
    }

    /// Copies up to 1 MiB from one file to another, and returns the number of bytes; callers repeat it for more.
    pub fn copy(
        &self,
        call: &Call,
        from: (InodeNumber, u64),
        to: (InodeNumber, u64),
        length: u64,
    ) -> Result<u32, VolumeError> {
        let mut bytes = vec![0; length.min(COPIED_AT_ONCE) as usize];
        let length = self.read(call, from.0, from.1, &mut bytes, false)?;
        if length > 0 {
            self.write(call, to.0, to.1, &bytes[..length], false)?;
        }
        Ok(length as u32)
    }
}
