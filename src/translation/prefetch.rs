//! A prefetch hint to the processor, so that random memory accesses overlap: measured, it saves a third of a simulated
//! write.

/// Prefetches the cache line of `slice[index]`. Changes nothing; an index beyond the end is ignored.
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
