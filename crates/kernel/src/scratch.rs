//! An unnamed sparse file that backs a device.

use crate::{KernelError, failed};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A sparse file without a name; it vanishes with its last user.
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    size_bytes: u64,
}

impl ScratchFile {
    /// A file of `size_bytes` in `directory`. Fails if it cannot be created there.
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

    /// The size of the file and of its device, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Fills `buffer` with the content of the device at `offset`.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// The allocated ranges, in order. If the file system below cannot report holes, everything counts as allocated.
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

    /// Free bytes in the file system of a directory.
    pub fn room_bytes(directory: &Path) -> Result<u64, KernelError> {
        let status = nix::sys::statvfs::statvfs(directory)
            .map_err(failed(format!("see how much room {} has", directory.display())))?;
        Ok(status.blocks_available() as u64 * status.fragment_size() as u64)
    }
}
