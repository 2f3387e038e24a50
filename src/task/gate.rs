//! A gate that one task at a time goes through.

use super::{GateId, Task};
use crate::time::Time;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// What one task at a time may hold. It remembers when the last one left it: who came earlier goes on from then.
pub struct Gate<T> {
    held: Mutex<T>,
    /// When it became free.
    free_from: AtomicU64,
}

impl<T> Gate<T> {
    /// A gate that is free from the beginning.
    pub const fn new(value: T) -> Gate<T> {
        Gate { held: Mutex::new(value), free_from: AtomicU64::new(0) }
    }

    /// Waits until nobody is inside, and goes in. The task's clock goes on to when the gate became free.
    ///
    /// # Panics
    ///
    /// If a task panicked inside: what it left may be half done.
    pub fn enter<'gate>(&'gate self, task: &'gate Task<'_>) -> GateGuard<'gate, T> {
        task.give_way();
        let held = loop {
            match self.held.try_lock() {
                Ok(held) => break held,
                Err(TryLockError::WouldBlock) if task.sleep_at(GateId::of(self)) => {}
                Err(TryLockError::WouldBlock) => break self.held.lock().expect("no task has panicked inside"),
                Err(TryLockError::Poisoned(_)) => panic!("a task has panicked inside this gate"),
            }
        };
        task.wait_until(Time(self.free_from.load(Ordering::Relaxed)));
        GateGuard { held: Some(held), gate: self, task }
    }

    /// What is inside, without a gate around it: nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.held.get_mut().expect("no task has panicked inside")
    }

    /// What is inside, for good.
    pub fn into_inner(self) -> T {
        self.held.into_inner().expect("no task has panicked inside")
    }
}

impl<T> fmt::Debug for Gate<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gate").field("free_from", &self.free_from).finish_non_exhaustive()
    }
}

/// A task is inside the gate.
pub struct GateGuard<'gate, T> {
    held: Option<MutexGuard<'gate, T>>,
    gate: &'gate Gate<T>,
    task: &'gate Task<'gate>,
}

impl<T> Deref for GateGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("the guard is inside until it is dropped")
    }
}

impl<T> DerefMut for GateGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("the guard is inside until it is dropped")
    }
}

impl<T> Drop for GateGuard<'_, T> {
    fn drop(&mut self) {
        self.gate.free_from.fetch_max(self.task.now().0, Ordering::Relaxed);
        self.held = None;
        self.task.leave(GateId::of(self.gate));
    }
}
