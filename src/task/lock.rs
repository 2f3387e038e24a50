//! The locks below the gates, from one place: those of the system, or, with the feature `checked-gates`, those of a model
//! checker, under which a test runs the same code through every order that it finds.

#[cfg(feature = "checked-gates")]
pub(super) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic::AtomicU64};
#[cfg(not(feature = "checked-gates"))]
pub(super) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic::AtomicU64};

use std::sync::{LockResult, TryLockError, TryLockResult};

/// The message for a gate inside which a task has panicked.
const BROKEN: &str = "a task has panicked inside, and what it left may be half done";

/// Looks at a taken lock before its thread sleeps, and the pauses between two looks: a few microseconds in all. Most gates are
/// held that long; to sleep and be woken takes ten times as long, and hands the gate on to a thread that does not run yet. More
/// looks cost more than they gain where there are more threads than processors.
const LOOKS: u32 = if cfg!(feature = "checked-gates") { 0 } else { 20 };
const PAUSES: u32 = 20;

/// A lock that a task of a system thread waited for, or that a simulated task took when it was its turn.
///
/// # Panics
///
/// If a task has panicked inside `gate`, or if a simulated task found the lock taken: those of one run wait for their turn
/// and never in a lock, so that a thread outside of the run holds it.
pub(super) fn taken<G>(
    gate: &str,
    has_turn: bool,
    lock: impl FnOnce() -> LockResult<G>,
    attempt: impl Fn() -> TryLockResult<G>,
) -> G {
    let attempt = || match attempt() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(_)) => panic!("the gate {gate}: {BROKEN}"),
        Err(TryLockError::WouldBlock) => None,
    };
    if has_turn {
        return attempt().unwrap_or_else(|| panic!("the gate {gate} is held by a thread outside of the simulated run"));
    }
    for _ in 0..LOOKS {
        if let Some(held) = attempt() {
            return held;
        }
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
    }
    lock().unwrap_or_else(|_| panic!("the gate {gate}: {BROKEN}"))
}
