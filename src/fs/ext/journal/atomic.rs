//! The atomics and locks of the journal, from one place: those of the system, or those of a model checker: `loom` for the
//! slots alone, `shuttle` for the whole journal.

#[cfg(feature = "checked-slots")]
pub use loom::sync::atomic::{AtomicI64, AtomicU64, fence};
#[cfg(all(feature = "checked-gates", not(feature = "checked-slots")))]
pub use shuttle::sync::atomic::{AtomicI64, AtomicU64, fence};
#[cfg(not(any(feature = "checked-gates", feature = "checked-slots")))]
pub use std::sync::atomic::{AtomicI64, AtomicU64, fence};

#[cfg(feature = "checked-gates")]
pub use shuttle::sync::{Mutex, MutexGuard, atomic::AtomicBool, atomic::AtomicU32, atomic::AtomicUsize};
#[cfg(not(feature = "checked-gates"))]
pub use std::sync::{Mutex, MutexGuard, atomic::AtomicBool, atomic::AtomicU32, atomic::AtomicUsize};

use crate::task::Task;
use std::sync::PoisonError;
use std::time::Duration;

/// The clock of a simulated task goes on by so many nanoseconds between two looks at the state that it waits for.
const LOOK_NS: u64 = 100;

/// A value on lines of its own, so that threads which change it do not slow down those that use its neighbours. Two lines:
/// processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

/// A lock that holds a value which is whole at every step.
pub fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets others go first, in a loop that waits for one of them.
pub fn relax(task: &Task<'_>) {
    if task.is_simulated() {
        // They run in the same thread, each when its clock is behind.
        task.wait_until(task.now() + LOOK_NS);
        return;
    }
    #[cfg(feature = "checked-gates")]
    shuttle::thread::yield_now();
    #[cfg(not(feature = "checked-gates"))]
    std::thread::yield_now();
}

/// Looks without a pause, in a loop that is seldom long.
const LOOKS: u32 = 1000;
/// The pause after them.
const PAUSE: Duration = Duration::from_micros(50);

/// Lets others go first in a loop that has looked so often, and may be long. No clock runs under a model checker.
pub fn relax_longer(task: &Task<'_>, looks: u32) {
    let is_long = looks > LOOKS && !cfg!(feature = "checked-gates");
    if is_long { std::thread::sleep(PAUSE) } else { relax(task) }
}
