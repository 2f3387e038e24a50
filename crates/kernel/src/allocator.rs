//! The C library's allocator.

/// Limits the arenas of the allocator of this process. Call it before the process starts threads.
///
/// Each thread otherwise takes an arena of its own, and memory freed in one is not used in another: a mount with four
/// threads kept half of its memory in such holes. Only glibc has arenas; elsewhere this does nothing.
pub fn limit_arenas(most: u16) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use nix::libc::{M_ARENA_MAX, mallopt};
        #[allow(unsafe_code, reason = "a call of the C library")]
        // SAFETY: the call takes two numbers, and takes the allocator's own lock.
        let is_set = unsafe { mallopt(M_ARENA_MAX, i32::from(most)) };
        assert_eq!(is_set, 1, "glibc takes any positive number of arenas");
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = most;
}
