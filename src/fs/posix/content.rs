//! Reading, writing, allocating, seeking, copying.

use super::Posix;
use crate::fs::Durable;
use crate::fs::volume::{Allocation, Call, FileKind, InodeNumber, Locked, Seek, VolumeError};

/// Bytes that are copied in one call.
const COPIED_AT_ONCE: u64 = 1 << 20;

impl Posix {
    /// Reads, and says how much: less than asked for only at the end of the file. The time of access is noted unless
    /// `is_silent`.
    pub fn read(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &mut [u8],
        is_silent: bool,
    ) -> Result<usize, VolumeError> {
        let read = self.volume.read(call, inode, offset, bytes)?;
        if !is_silent {
            self.note_read(call, inode, FileKind::Regular, read.times);
        }
        Ok(read.length)
    }

    /// Writes. `is_durable`: it survives a cut of power as soon as this answers.
    pub fn write(
        &self,
        call: &Call,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        is_durable: bool,
    ) -> Result<(), VolumeError> {
        if self.is_harmless(call, inode) {
            self.volume.write(call, inode, offset, bytes, None)?;
        } else {
            let mut rule = |locked: &mut dyn Locked| self.without_privileges(locked, &call.caller, inode);
            self.volume.write(call, inode, offset, bytes, Some(&mut rule))?;
        }
        if is_durable {
            self.volume.sync_file(call, inode, Durable::Data)?;
        }
        Ok(())
    }

    /// Reserves or gives back `length` bytes from `offset` on.
    pub fn allocate(
        &self,
        call: &Call,
        inode: InodeNumber,
        (offset, length): (u64, u64),
        how: Allocation,
    ) -> Result<(), VolumeError> {
        if length == 0 || offset.checked_add(length).is_none() {
            return Err(VolumeError::Invalid("a range has a byte at least, and ends before 2^64"));
        }
        let mut rule = |locked: &mut dyn Locked| self.without_privileges(locked, &call.caller, inode);
        self.volume.allocate(call, inode, (offset, length), how, Some(&mut rule))
    }

    /// The next byte from `offset` on that is stored, or that is not; `None` if there is none.
    pub fn seek(&self, call: &Call, inode: InodeNumber, offset: u64, what: Seek) -> Result<Option<u64>, VolumeError> {
        self.volume.seek(call, inode, offset, what)
    }

    /// Copies from one file to another, and says how much: at most a piece, whoever wants more asks again.
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
