//! A sparse file without a name, as big as a device is to be.

use crate::{KernelError, failed};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file that takes the room of what was written to it, and that is gone when its last user is.
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    size_bytes: u64,
}

impl ScratchFile {
    /// A file of `size_bytes` in `directory`. Fails if none can be made there.
    pub fn create(directory: &Path, size_bytes: u64) -> Result<ScratchFile, KernelError> {
        let doing = || format!("make a scratch file of {size_bytes} bytes in {}", directory.display());
        let file = tempfile::tempfile_in(directory).map_err(failed(doing()))?;
        file.set_len(size_bytes).map_err(failed(doing()))?;
        Ok(ScratchFile { file, size_bytes })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its size, and that of the device that it becomes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Fills `buffer` from `offset` with what the device has been given there so far.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// The bytes that were written and not given back, in order. What a file system of this machine does not tell counts as
    /// written.
    pub fn written(&self) -> io::Result<Vec<Range<u64>>> {
        let mut written = Vec::new();
        let mut at = 0;
        while at < self.size_bytes {
            let start = match lseek(&self.file, at as i64, Whence::SeekData) {
                Ok(start) => start as u64,
                Err(Errno::ENXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let end = lseek(&self.file, start as i64, Whence::SeekHole)? as u64;
            written.push(start..end.min(self.size_bytes));
            at = end;
        }
        Ok(written)
    }

    /// Bytes that are still free in a directory's file system.
    pub fn room_bytes(directory: &Path) -> Result<u64, KernelError> {
        let status = nix::sys::statvfs::statvfs(directory)
            .map_err(failed(format!("see how much room {} has", directory.display())))?;
        Ok(status.blocks_available() as u64 * status.fragment_size() as u64)
    }
}
