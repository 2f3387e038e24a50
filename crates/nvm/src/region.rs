//! A region of memory: made, opened, read, stored to.

use crate::error::RegionError;
use crate::file::RegionFile;
use crate::machine;
use crate::mapping::Mapping;
use crate::persist::Persist;
use std::fs::File;
use std::path::Path;

/// A mapped region of memory, which threads share. It ends with this value, and with it the lock of its file.
#[derive(Debug)]
pub struct Region {
    mapping: Mapping,
    file: Option<RegionFile>,
}

impl Region {
    /// New memory of this process, of zeros. The system provides each page when it is first accessed.
    ///
    /// # Errors
    ///
    /// If the system has no room for so many bytes, or they are none.
    pub fn anonymous(bytes: u64) -> Result<Region, RegionError> {
        let name = "memory";
        let mapping = Mapping::anonymous(length(bytes)).map_err(RegionError::io(name, "map"))?;
        Ok(Region { mapping, file: None })
    }

    /// Makes a file of zeros with `bytes` bytes, all of them allocated, and maps it. A file that is not empty is replaced
    /// only with `force`. A device of memory has its own length, of which `bytes` are mapped and cleared.
    ///
    /// # Errors
    ///
    /// If the file exists, is in use, is no memory, or the file system has no room.
    pub fn create(path: &Path, bytes: u64, force: bool) -> Result<Region, RegionError> {
        let mut file = RegionFile::open(path, true)?;
        if file.is_device {
            let region = Region::of(file, bytes)?;
            region.clear();
            return Ok(region);
        }
        if file.length > 0 && !force {
            return Err(RegionError::Exists { name: file.name.clone(), bytes: file.length });
        }
        file.allocate(bytes)?;
        Region::of(file, bytes)
    }

    /// Maps the first `bytes` bytes of an existing file, or with `None` all of it.
    ///
    /// # Errors
    ///
    /// If the file is in use, is no memory, or has fewer bytes.
    pub fn open(path: &Path, bytes: Option<u64>) -> Result<Region, RegionError> {
        let file = RegionFile::open(path, false)?;
        let bytes = bytes.unwrap_or(file.length);
        Region::of(file, bytes)
    }

    fn of(file: RegionFile, bytes: u64) -> Result<Region, RegionError> {
        if file.length < bytes || bytes == 0 {
            let (name, found) = (file.name.clone(), file.length);
            return Err(RegionError::TooSmall { name, found, needed: bytes.max(1) });
        }
        let mapping = Mapping::of(&file.file, length(bytes)).map_err(RegionError::io(&file.name, "map"))?;
        Ok(Region { mapping, file: Some(file) })
    }

    fn clear(&self) {
        let zeros = [0; 4096];
        let mut at = 0;
        while at < self.bytes() {
            let count = zeros.len().min((self.bytes() - at) as usize);
            self.store(at, &zeros[..count], Persist::preferred());
            at += count as u64;
        }
        self.fence();
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.mapping.bytes()
    }

    /// Its file, if it has one.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref().map(|file| &file.file)
    }

    /// True if stores that a fence follows are in the file itself (`MAP_SYNC`): on non-volatile memory they survive a
    /// loss of power. Otherwise they are in the page cache of the system, or in memory of the process.
    pub fn is_synchronous(&self) -> bool {
        self.mapping.is_synchronous
    }

    /// Reads `into.len()` bytes from byte `at` on.
    ///
    /// # Panics
    ///
    /// If the region ends before them.
    #[inline]
    pub fn read(&self, at: u64, into: &mut [u8]) {
        self.mapping.read(at, into);
    }

    /// Stores bytes from byte `at` on. The next fence of this thread brings them to memory. Whole lines are fastest.
    ///
    /// # Panics
    ///
    /// If the region ends before them.
    #[inline]
    pub fn store(&self, at: u64, from: &[u8], persist: Persist) {
        self.mapping.store(at, from, persist);
    }

    /// Waits until the stores of this thread are in memory.
    #[inline]
    pub fn fence(&self) {
        machine::fence();
    }
}

/// Bytes of a mapping. One that has no room in the address space fails to be mapped.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
