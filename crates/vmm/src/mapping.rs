//! Shared memory that is mapped.

use crate::error::{VmmError, cannot};
use crate::shared::Shared;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

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

/// Bytes of a huge page, at a multiple of which a mapping begins.
pub(crate) const HUGE_BYTES: usize = 2 << 20;

/// Reserves addresses for a mapping.
fn reserve(bytes: usize) -> Result<NonNull<u8>, VmmError> {
    let all = bytes + HUGE_BYTES;
    #[allow(unsafe_code, reason = "a reservation of addresses, and the end of what is not needed of it")]
    // SAFETY: the kernel selects addresses at which nothing is mapped, and the unmapped range lies within them.
    unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let from = mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), flags)
            .map_err(cannot("reserve addresses for shared memory"))?
            .cast::<u8>();
        let before = from.align_offset(HUGE_BYTES);
        let start = from.add(before);
        for (part, bytes) in [(from, before), (start.add(bytes), HUGE_BYTES - before)] {
            if bytes > 0 {
                munmap(part.cast(), bytes).map_err(cannot("reserve addresses for shared memory"))?;
            }
        }
        Ok(NonNull::new(start).expect("nothing is mapped at address 0"))
    }
}

impl Mapping {
    /// Maps all of a memory file.
    pub fn of(shared: &Shared) -> Result<Mapping, VmmError> {
        let bytes = usize::try_from(shared.bytes()).expect("an arena fits into the address space");
        let start = reserve(bytes)?;
        let descriptor = shared.descriptor();
        #[allow(unsafe_code, reason = "a mapping of memory")]
        // SAFETY: it takes the place of the reservation, which nothing refers to.
        unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
            mmap(start.as_ptr().cast(), bytes, protection, flags, descriptor, 0)
        }
        .map_err(cannot("map shared memory"))?;
        let mapping = Mapping { start, bytes };
        #[allow(unsafe_code, reason = "an advice on the mapping")]
        // SAFETY: the range is that of the mapping; a forked process cannot use a mapping that it does not have.
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

    /// Its halves of words, as [`words`](Mapping::words). A part of a mapping is used as the one or as the other.
    pub fn halves(&self) -> &[AtomicU32] {
        #[allow(unsafe_code, reason = "a slice of the mapping")]
        // SAFETY: as for `words`.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes / size_of::<AtomicU32>())
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

    /// Has the kernel put the pages of a range, which begins and ends with huge pages, into huge pages. False if it says that it
    /// does not; it says so of memory with a userfaultfd whenever it does.
    pub fn gather(&self, range: Range<usize>) -> bool {
        assert!(
            range.start.is_multiple_of(HUGE_BYTES) && range.end.is_multiple_of(HUGE_BYTES),
            "{range:?} in huge pages"
        );
        let place = self.place(&range);
        #[allow(unsafe_code, reason = "advices on the mapping")]
        // SAFETY: the range is a part of the mapping, and the advices leave its content.
        unsafe {
            // The pages must be there to be gathered.
            madvise(place.cast(), range.len(), Advice::LinuxPopulateWrite).is_ok()
                && libc::madvise(place.cast(), range.len(), libc::MADV_COLLAPSE) == 0
        }
    }

    /// Lets a range be read only, or be written again.
    pub fn protect(&self, range: Range<usize>, is_read_only: bool) -> Result<(), VmmError> {
        let place = self.place(&range);
        let flags = if is_read_only { MprotectFlags::READ } else { MprotectFlags::READ | MprotectFlags::WRITE };
        #[allow(unsafe_code, reason = "the protection of a part of the mapping")]
        // SAFETY: the range is a part of the mapping, and a thread that writes to it against the protection is stopped.
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
