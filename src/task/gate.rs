//! A gate that one task at a time goes through.

use super::lock::{AtomicU64, Mutex, MutexGuard, taken};
use super::{Access, GateId, Task};
use crate::time::Time;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

/// A value that one task at a time may hold. It remembers when the last one left: who came earlier goes on from then. Tasks
/// that wait for it go in by the order in which they came.
pub struct Gate<T> {
    name: &'static str,
    held: Mutex<T>,
    /// The time at which it became free.
    free_from: AtomicU64,
}

impl<T> Gate<T> {
    /// A gate that is free from the beginning. Messages call it by `name`.
    pub const fn new(name: &'static str, value: T) -> Gate<T> {
        Gate { name, held: Mutex::new(value), free_from: AtomicU64::new(0) }
    }

    /// Waits until nobody is inside, and goes in. The task's clock goes on to when the gate became free.
    ///
    /// # Panics
    ///
    /// If a task panicked inside: what it left may be half done.
    pub fn enter<'gate>(&'gate self, task: &'gate Task<'_>) -> GateGuard<'gate, T> {
        let came = task.now();
        let has_turn = task.enter(GateId::of(self, self.name), Access::Alone);
        let held = taken(self.name, has_turn, || self.held.lock(), || self.held.try_lock());
        let guard = GateGuard { held: Some(held), gate: self, task };
        task.wait_until(Time(self.free_from.load(Ordering::Relaxed)));
        task.has_waited(self.name, came);
        guard
    }

    /// The value inside, without entering: nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.held.get_mut().expect("no task has panicked inside")
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.held.into_inner().expect("no task has panicked inside")
    }
}

impl<T> fmt::Debug for Gate<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gate").field("name", &self.name).finish_non_exhaustive()
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
        self.task.leave(GateId::of(self.gate, self.gate.name));
    }
}
