//! The atomics of the slots, from one place: those of the processor, or those of a model checker.

#[cfg(feature = "checked-slots")]
pub use loom::sync::atomic::{AtomicI64, AtomicU64};
#[cfg(all(feature = "checked-gates", not(feature = "checked-slots")))]
pub use shuttle::sync::atomic::{AtomicI64, AtomicU64};
#[cfg(not(any(feature = "checked-gates", feature = "checked-slots")))]
pub use std::sync::atomic::{AtomicI64, AtomicU64};

/// A value on lines of its own, so that threads which change it do not slow down those that use its neighbours. Two lines:
/// processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

/// Lets other threads go first, in a loop that waits for one of them.
pub fn relax() {
    #[cfg(feature = "checked-slots")]
    loom::thread::yield_now();
    #[cfg(all(feature = "checked-gates", not(feature = "checked-slots")))]
    shuttle::thread::yield_now();
    #[cfg(not(any(feature = "checked-gates", feature = "checked-slots")))]
    std::thread::yield_now();
}
