//! The mapped bytes of a region, and copies from and to them.

use crate::machine;
use crate::persist::Persist;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::ptr::NonNull;

/// A mapping that ends with this value.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// True if the file system promises that a store reaches the file itself.
    pub is_synchronous: bool,
}

#[allow(unsafe_code, reason = "the pointer is to shared memory")]
// SAFETY: the mapping is of the process, not of a thread.
unsafe impl Send for Mapping {}
#[allow(unsafe_code, reason = "the pointer is to shared memory")]
// SAFETY: all accesses are those of `machine`, which are assembly or atomic: none of them races in the sense of Rust.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New memory of this process, of zeros.
    pub fn anonymous(bytes: usize) -> Result<Mapping, Errno> {
        #[allow(unsafe_code, reason = "a mapping of memory")]
        // SAFETY: the kernel selects an address at which nothing is mapped.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        Mapping::at(start.cast(), bytes, false)
    }

    /// The first bytes of a file, which must have as many. The mapping is synchronous if the file system offers that.
    pub fn of(file: &File, bytes: usize) -> Result<Mapping, Errno> {
        match map(file, bytes, MapFlags::SHARED_VALIDATE | MapFlags::SYNC) {
            // Kernels before 4.15 do not know the first of the flags.
            Err(Errno::OPNOTSUPP | Errno::INVAL) => Mapping::at(map(file, bytes, MapFlags::SHARED)?, bytes, false),
            mapped => Mapping::at(mapped?, bytes, true),
        }
    }

    fn at(start: *mut u8, bytes: usize, is_synchronous: bool) -> Result<Mapping, Errno> {
        let start = NonNull::new(start).ok_or(Errno::INVAL)?;
        Ok(Mapping { start, bytes, is_synchronous })
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The address of `length` bytes from `at` on.
    ///
    /// # Panics
    ///
    /// If the mapping ends before them.
    fn place(&self, at: u64, length: usize) -> *mut u8 {
        let end = at.checked_add(length as u64);
        assert!(end.is_some_and(|end| end <= self.bytes()), "{length} bytes at {at} of a region of {}", self.bytes);
        self.start.as_ptr().wrapping_add(at as usize)
    }

    pub fn read(&self, at: u64, into: &mut [u8]) {
        let from = self.place(at, into.len());
        #[allow(unsafe_code, reason = "a copy out of the mapping")]
        // SAFETY: `place` has checked the range, and the mapping lasts as long as `self`.
        unsafe {
            machine::read(from, into);
        }
    }

    pub fn store(&self, at: u64, from: &[u8], persist: Persist) {
        let to = self.place(at, from.len());
        #[allow(unsafe_code, reason = "a copy into the mapping")]
        // SAFETY: `place` has checked the range, and the mapping lasts as long as `self`.
        unsafe {
            machine::store(to, from, persist.way());
        }
    }
}

fn map(file: &File, bytes: usize, flags: MapFlags) -> Result<*mut u8, Errno> {
    // All pages are there from the beginning: their faults would fall into the first stores.
    let flags = flags | MapFlags::POPULATE;
    #[allow(unsafe_code, reason = "a mapping of a file")]
    // SAFETY: the kernel selects an address at which nothing is mapped.
    let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }?;
    Ok(start.cast())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[allow(unsafe_code, reason = "the end of a mapping")]
        // SAFETY: the range was mapped by `self`, and no reference into it exists. An error would leave it mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
