//! Memory files: memory without a name, shared by passing its descriptor.
//!
//! The sealed size of a memory file cannot change, so that a reader of the other process finds all of it. A sealed content
//! can be changed through mappings that exist already, and in no other way.

use crate::error::{VmmError, cannot};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// The seals of a size that is fixed.
const SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// The seals of memory that only mappings change that are there already.
const CONTENT: SealFlags = SIZE.union(SealFlags::FUTURE_WRITE).union(SealFlags::SEAL);

/// A memory file, read and written by offset.
#[derive(Debug)]
pub(crate) struct Shared {
    file: File,
    bytes: u64,
}

impl Shared {
    /// A new one of zeros. Its size is fixed.
    pub fn new(name: &str, bytes: u64) -> Result<Shared, VmmError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(name, flags).map_err(cannot("make memory to share"))?;
        ftruncate(&file, bytes).map_err(cannot("make memory to share"))?;
        fcntl_add_seals(&file, SIZE).map_err(cannot("seal shared memory"))?;
        Ok(Shared { file: file.into(), bytes })
    }

    /// Lets nobody change it, but through the mappings that are there.
    pub fn seal(&self) -> Result<(), VmmError> {
        fcntl_add_seals(&self.file, CONTENT).map_err(cannot("seal shared memory"))
    }

    /// One that another process has passed. `is_sealed`: it must be sealed against changes, and its size always.
    pub fn received(descriptor: OwnedFd, bytes: u64, is_sealed: bool) -> Result<Shared, VmmError> {
        let wanted = if is_sealed { CONTENT } else { SIZE };
        // Only memory files have seals.
        let found = fcntl_get_seals(&descriptor).unwrap_or(SealFlags::empty());
        if !found.contains(wanted) {
            return Err(VmmError::Protocol(format!(
                "memory was passed with the seals {found:?}, and needs {wanted:?}"
            )));
        }
        let length = fstat(&descriptor).map_err(cannot("look at shared memory"))?.st_size;
        if u64::try_from(length) != Ok(bytes) {
            return Err(VmmError::Protocol(format!("memory of {length} bytes was passed as one of {bytes}")));
        }
        Ok(Shared { file: descriptor.into(), bytes })
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads all of `into` from a place.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<(), VmmError> {
        self.file.read_exact_at(into, at).map_err(cannot("read shared memory"))
    }

    /// Writes to a place: fails if the content is sealed.
    pub fn write(&self, at: u64, from: &[u8]) -> Result<(), VmmError> {
        self.file.write_all_at(from, at).map_err(cannot("write shared memory"))
    }

    /// Its descriptor, to be passed to another process or mapped.
    pub fn descriptor(&self) -> impl AsFd + '_ {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_is_not_written_again_and_keeps_its_size() {
        let shared = Shared::new("test", 8192).unwrap();
        shared.write(4090, b"before").unwrap();
        shared.seal().unwrap();
        assert!(shared.write(0, b"later").is_err() && shared.file.set_len(10).is_err());
        let copy = shared.file.try_clone().unwrap();
        let received = Shared::received(copy.into(), 8192, true).unwrap();
        let mut found = [0; 6];
        received.read(4090, &mut found).unwrap();
        assert_eq!(&found, b"before");
    }

    #[test]
    fn memory_that_could_change_behind_its_reader_is_refused() {
        let refused = |file: File, bytes, is_sealed| {
            Shared::received(file.into(), bytes, is_sealed).err().map(|error| error.to_string())
        };
        let open = Shared::new("test", 4096).unwrap();
        let clone = || open.file.try_clone().unwrap();
        assert!(refused(clone(), 4096, false).is_none());
        assert!(refused(clone(), 4096, true).unwrap().contains("seals"));
        assert!(refused(clone(), 8192, false).unwrap().contains("4096 bytes"));
        let plain = tempfile::tempfile().unwrap();
        assert!(refused(plain, 0, false).unwrap().contains("seals"));
    }
}
