//! Threads that wait for the progress of others, and sleep until there is some.
//!
//! No handle waits here: the task that closes a transaction waits for its handles, one that begins a handle for the end of a
//! closing, one that syncs for a record that another thread stores. With more threads than processors, a thread that yields
//! instead comes back only after the turns of all others, hundreds of microseconds later.

use super::atomic::relax;
use crate::task::Task;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of looks before a thread sleeps.
const LOOKS: u32 = 64;
/// A thread that does not change anything any more wakes nobody: the others find out by themselves.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// The tasks that wait for a journal.
#[derive(Debug, Default)]
pub struct Waiters {
    sleeping: AtomicU32,
    /// The number of times that the sleeping were woken.
    woken: Mutex<u64>,
    wakes: Condvar,
}

impl Waiters {
    /// Waits until a condition holds; the task that makes it hold calls [`wake`](Waiters::wake) afterwards.
    pub fn wait_until(&self, task: &Task<'_>, mut is_so: impl FnMut() -> bool) {
        let mut looks = 0;
        while !is_so() {
            looks += 1;
            if task.is_simulated() || cfg!(feature = "checked-gates") {
                relax(task);
            } else if looks < LOOKS {
                std::hint::spin_loop();
            } else if self.sleep(&mut is_so) {
                return;
            }
        }
    }

    /// Sleeps until it is woken, unless `is_so` already: then it returns true.
    fn sleep(&self, is_so: &mut impl FnMut() -> bool) -> bool {
        self.sleeping.fetch_add(1, SeqCst);
        fence(SeqCst);
        let before = *locked(&self.woken);
        // A task that makes it hold after this look sees that somebody sleeps.
        let is_so = is_so();
        if !is_so {
            let mut woken = locked(&self.woken);
            if *woken == before {
                woken = self.wakes.wait_timeout(woken, LONGEST_SLEEP).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(woken);
        }
        self.sleeping.fetch_sub(1, Relaxed);
        is_so
    }

    /// Something has changed that others may wait for.
    pub fn wake(&self) {
        fence(SeqCst);
        if self.sleeping.load(Relaxed) > 0 {
            *locked(&self.woken) += 1;
            self.wakes.notify_all();
        }
    }
}

/// A count is whole at every step.
fn locked(lock: &Mutex<u64>) -> MutexGuard<'_, u64> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
