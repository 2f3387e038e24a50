//! Reading, writing, allocating, seeking, copying.

use super::{Caller, Files};
use crate::error::CallError;
use flashpath::fs::Durable;
use flashpath::fs::sfs::InodeNumber;
use fuser::Errno;
use nix::fcntl::FallocateFlags;

/// What lseek is asked for (`linux/fs.h`).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;
/// Bytes that are copied in one turn: others get theirs between the pieces.
const COPIED_AT_ONCE: u64 = 1 << 20;

impl Files {
    /// Reads, and says how much. The time of access is noted unless `is_silent`.
    pub fn read(
        &mut self,
        inode: InodeNumber,
        offset: u64,
        bytes: &mut [u8],
        is_silent: bool,
    ) -> Result<usize, CallError> {
        let length = self.volume.read(inode, offset, bytes)?;
        debug_assert!(length <= bytes.len(), "no more is read than was asked for");
        if !is_silent {
            self.touch(inode);
        }
        Ok(length)
    }

    /// Writes. `by`: who writes, unless it may leave the set-id bits as they are. `is_durable`: it survives a cut of power
    /// as soon as this answers.
    pub fn write(
        &mut self,
        inode: InodeNumber,
        offset: u64,
        bytes: &[u8],
        by: Option<&Caller>,
        is_durable: bool,
    ) -> Result<(), CallError> {
        self.kill_privileges(inode, by)?;
        self.volume.write(inode, offset, bytes)?;
        if is_durable {
            self.volume.sync_file(inode, Durable::Data)?;
        }
        Ok(())
    }

    /// Makes a file or a directory durable.
    pub fn sync(&mut self, inode: InodeNumber, only_data: bool) -> Result<(), CallError> {
        Ok(self.volume.sync_file(inode, if only_data { Durable::Data } else { Durable::All })?)
    }

    /// fallocate, with its modes.
    pub fn allocate(
        &mut self,
        inode: InodeNumber,
        offset: u64,
        length: u64,
        mode: i32,
        by: Option<&Caller>,
    ) -> Result<(), CallError> {
        let mode = FallocateFlags::from_bits(mode).ok_or(Errno::EOPNOTSUPP)?;
        let keeps_size = mode.contains(FallocateFlags::FALLOC_FL_KEEP_SIZE);
        let what = mode - FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let punches = what == FallocateFlags::FALLOC_FL_PUNCH_HOLE || what == FallocateFlags::FALLOC_FL_ZERO_RANGE;
        let allocates = what.is_empty() || what == FallocateFlags::FALLOC_FL_ZERO_RANGE;
        if !punches && !allocates {
            return Err(Errno::EOPNOTSUPP.into());
        }
        offset.checked_add(length).filter(|_| length > 0).ok_or(Errno::EINVAL)?;
        self.kill_privileges(inode, by)?;
        if punches {
            self.volume.punch(inode, offset, length)?;
        }
        if allocates {
            self.volume.allocate(inode, offset, length, keeps_size)?;
        }
        Ok(())
    }

    /// The next byte from `offset` on that is stored, or is not.
    pub fn seek(&mut self, inode: InodeNumber, offset: i64, whence: i32) -> Result<i64, CallError> {
        let data = match whence {
            SEEK_DATA => true,
            SEEK_HOLE => false,
            _ => return Err(Errno::EINVAL.into()),
        };
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let found = self.volume.seek(inode, offset, data)?.ok_or(Errno::ENXIO)?;
        Ok(i64::try_from(found).map_err(|_| Errno::EOVERFLOW)?)
    }

    /// Copies from one file to another, and says how much: at most a piece, whoever wants more asks again.
    pub fn copy(
        &mut self,
        from: (InodeNumber, u64),
        to: (InodeNumber, u64),
        length: u64,
        by: Option<&Caller>,
    ) -> Result<u32, CallError> {
        let mut bytes = vec![0; length.min(COPIED_AT_ONCE) as usize];
        let length = self.read(from.0, from.1, &mut bytes, false)?;
        if length > 0 {
            self.write(to.0, to.1, &bytes[..length], by, false)?;
        }
        Ok(length as u32)
    }
}
