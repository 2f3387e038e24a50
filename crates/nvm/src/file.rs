//! The file of a region: locked while it is open, allocated in full, and of a size that is known.

use crate::RegionError;
use rustix::fs::{FallocateFlags, fallocate, major, minor};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// An open file with its lock (flock), so that two processes never use one region.
#[derive(Debug)]
pub struct RegionFile {
    pub file: File,
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
    /// True for a device, which has its own length.
    pub is_device: bool,
}

impl RegionFile {
    /// Opens a file, which may be new.
    pub fn open(path: &Path, may_be_new: bool) -> Result<RegionFile, RegionError> {
        let name = path.display().to_string();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(may_be_new).truncate(false);
        let file = options.open(path).map_err(RegionError::io(&name, "open"))?;
        let metadata = file.metadata().map_err(RegionError::io(&name, "look at"))?;
        let kind = metadata.file_type();
        let is_device = kind.is_char_device();
        if !is_device && !metadata.is_file() {
            let kind = if kind.is_block_device() { "a block device" } else { "no file" };
            return Err(RegionError::Kind { name, kind });
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RegionError::InUse { name }),
            Err(TryLockError::Error(source)) => return Err(RegionError::Io { name, doing: "lock", source }),
        }
        let length = match is_device {
            false => metadata.len(),
            true => match length_of_device(metadata.rdev()) {
                Some(length) => length,
                None => return Err(RegionError::Kind { name, kind: "a device that is no memory" }),
            },
        };
        Ok(RegionFile { file, name, length, is_device })
    }

    /// Empties a file, and allocates `bytes` for it, so that no later store finds the file system full.
    pub fn allocate(&mut self, bytes: u64) -> Result<(), RegionError> {
        self.file.set_len(0).map_err(RegionError::io(&self.name, "empty"))?;
        fallocate(&self.file, FallocateFlags::empty(), 0, bytes)
            .map_err(RegionError::io(&self.name, "allocate all bytes of"))?;
        self.file.sync_all().map_err(RegionError::io(&self.name, "make durable"))?;
        self.length = bytes;
        Ok(())
    }
}

impl Drop for RegionFile {
    /// Releases the lock at once: a process that was just forked elsewhere holds a copy of the descriptor until it
    /// executes another program, and with it the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Bytes of a device of memory, from sysfs; `None` for other devices.
fn length_of_device(number: u64) -> Option<u64> {
    let folder = format!("/sys/dev/char/{}:{}", major(number), minor(number));
    let subsystem = std::fs::read_link(format!("{folder}/subsystem")).ok()?;
    if subsystem.file_name()? != "dax" {
        return None;
    }
    std::fs::read_to_string(format!("{folder}/size")).ok()?.trim().parse().ok()
}
