//! Tables larger than the processor's caches: hints to the processor and to the kernel, which change nothing but the
//! time.

/// Prefetches the cache line of `slice[index]`, so that random memory accesses overlap. An index beyond the end is
/// ignored.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    let Some(entry) = slice.get(index) else { return };
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch neither reads nor writes as far as the program can tell, and `entry` is a live reference.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = entry;
}

/// In bytes, on most machines. Others take this advice too, as it is a multiple of their small pages.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel for huge pages for a table that is not written yet: one that is indexed at random otherwise costs a
/// walk of the page tables for each access. A table without a whole huge page stays as it is.
pub fn advise_huge_pages<T>(table: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let (start, bytes) = (table.as_mut_ptr().cast::<std::ffi::c_void>(), std::mem::size_of_val(table));
        let head = start.align_offset(HUGE_PAGE);
        let length = bytes.saturating_sub(head) / HUGE_PAGE * HUGE_PAGE;
        if length == 0 {
            return;
        }
        // SAFETY: the range lies in the table; the advice changes the size of its pages, and no byte of it.
        #[allow(unsafe_code)]
        let advised = unsafe { madvise(start.byte_add(head), length, Advice::LinuxHugepage) };
        // A kernel without huge pages refuses: the table is slower, and the same.
        let _ = advised;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}

/// A table of `length` entries with this value.
pub fn filled<T: Clone>(value: T, length: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(length);
    advise_huge_pages(table.spare_capacity_mut());
    table.resize(length, value);
    table
}
