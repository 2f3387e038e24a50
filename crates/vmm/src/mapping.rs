//! Shared memory that is mapped.

use crate::error::{VmmError, cannot};
use crate::shared::Shared;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect, munmap};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Memory that is mapped to be read and written, and not inherited by forked processes.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

#[allow(unsafe_code, reason = "the pointer is to memory of the process")]
// SAFETY: the mapping is of the process, not of a thread.
unsafe impl Send for Mapping {}
#[allow(unsafe_code, reason = "the pointer is to memory of the process")]
// SAFETY: the callers of `bytes_mut` promise that nobody else has the range.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of a memory file.
    pub fn of(shared: &Shared) -> Result<Mapping, VmmError> {
        let bytes = usize::try_from(shared.bytes()).expect("an arena fits into the address space");
        let descriptor = shared.descriptor();
        #[allow(unsafe_code, reason = "a mapping of memory")]
        // SAFETY: the kernel selects an address at which nothing is mapped.
        let start = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED | MapFlags::NORESERVE, descriptor, 0)
        }
        .map_err(cannot("map shared memory"))?;
        let start = NonNull::new(start.cast()).expect("nothing is mapped at address 0");
        let mapping = Mapping { start, bytes };
        #[allow(unsafe_code, reason = "an advice on the mapping")]
        // SAFETY: the range is that of the mapping; what a forked process does not have it cannot use.
        unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontFork) }.map_err(cannot("map shared memory"))?;
        Ok(mapping)
    }

    /// The address of its first byte.
    pub fn start(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Its words, which the other process may change meanwhile.
    pub fn words(&self) -> &[AtomicU64] {
        #[allow(unsafe_code, reason = "a slice of the mapping")]
        // SAFETY: the mapping is of whole pages, and lives as long as `self`; its size is sealed. Atomics may be shared, also
        // with another process. No slice of bytes is taken of a mapping that is used so.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes / size_of::<AtomicU64>())
        }
    }

    fn place(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of a mapping of {} bytes", self.bytes);
        self.start.as_ptr().wrapping_add(range.start)
    }

    /// Bytes of a range.
    ///
    /// # Safety
    ///
    /// Nobody changes the range while the slice is in use.
    #[allow(unsafe_code, reason = "a slice of the mapping")]
    pub unsafe fn bytes_of(&self, range: Range<usize>) -> &[u8] {
        let place = self.place(&range);
        // SAFETY: `place` has checked the range, which is mapped as long as `self` lives; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(place, range.len()) }
    }

    /// Bytes of a range, to be changed.
    ///
    /// # Safety
    ///
    /// Nobody else uses the range while the slice is in use.
    #[allow(unsafe_code, reason = "a slice of the mapping")]
    #[allow(clippy::mut_from_ref, reason = "the caller promises that nobody else has the range")]
    pub unsafe fn bytes_mut(&self, range: Range<usize>) -> &mut [u8] {
        let place = self.place(&range);
        // SAFETY: `place` has checked the range, which is mapped as long as `self` lives; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(place, range.len()) }
    }

    /// Has the kernel find the pages of a range now, so that a write needs no fault.
    pub fn populate(&self, range: Range<usize>) {
        let place = self.place(&range);
        #[allow(unsafe_code, reason = "an advice on the mapping")]
        // SAFETY: the range is a part of the mapping. Without it, which older kernels refuse, the first write of each page
        // takes a fault.
        let _ = unsafe { madvise(place.cast(), range.len(), Advice::LinuxPopulateWrite) };
    }

    /// Lets a range be read only, or be written again.
    pub fn protect(&self, range: Range<usize>, is_read_only: bool) -> Result<(), VmmError> {
        let place = self.place(&range);
        let flags = if is_read_only { MprotectFlags::READ } else { MprotectFlags::READ | MprotectFlags::WRITE };
        #[allow(unsafe_code, reason = "the protection of a part of the mapping")]
        // SAFETY: the range is a part of the mapping, and one who writes to it against the protection is stopped.
        unsafe { mprotect(place.cast(), range.len(), flags) }.map_err(cannot("protect memory"))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[allow(unsafe_code, reason = "the end of a mapping")]
        // SAFETY: the range was mapped by `self`, and no reference into it exists. An error would leave it mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
