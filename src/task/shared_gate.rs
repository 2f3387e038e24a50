//! A gate that many readers go through at once, or one writer alone.

use super::lock::{AtomicU64, RwLock, RwLockReadGuard, RwLockWriteGuard, taken};
use super::{Access, GateId, Task};
use crate::time::Time;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

/// A value that many tasks may read at once, or one may change. A reader that came earlier than the last writer left goes on from
/// then; a writer waits for readers too. Who waits goes in by the order in which they came: a reader does not overtake a
/// writer that waits, and so a task that is inside to read must not go in again.
pub struct SharedGate<T> {
    name: &'static str,
    held: RwLock<T>,
    /// The time at which the last writer left.
    free_of_writers: AtomicU64,
    /// The time at which the last reader left.
    free_of_readers: AtomicU64,
}

impl<T> SharedGate<T> {
    /// A gate that is free from the beginning. Messages call it by `name`.
    pub const fn new(name: &'static str, value: T) -> SharedGate<T> {
        let (free_of_writers, free_of_readers) = (AtomicU64::new(0), AtomicU64::new(0));
        SharedGate { name, held: RwLock::new(value), free_of_writers, free_of_readers }
    }

    /// Waits until no writer is inside, and goes in to read.
    ///
    /// # Panics
    ///
    /// If a writer panicked inside: what it left may be half done.
    pub fn read<'gate>(&'gate self, task: &'gate Task<'_>) -> ReadGuard<'gate, T> {
        let came = task.now();
        let has_turn = task.enter(GateId::of(self, self.name), Access::Shared);
        let held = taken(self.name, has_turn, || self.held.read(), || self.held.try_read());
        let guard = ReadGuard { held: Some(held), gate: self, task };
        task.wait_until(Time(self.free_of_writers.load(Ordering::Relaxed)));
        task.has_waited(self.name, came);
        guard
    }

    /// Waits until nobody is inside, and goes in to read and change.
    ///
    /// # Panics
    ///
    /// As [`read`](SharedGate::read).
    pub fn write<'gate>(&'gate self, task: &'gate Task<'_>) -> WriteGuard<'gate, T> {
        let came = task.now();
        let has_turn = task.enter(GateId::of(self, self.name), Access::Alone);
        let held = taken(self.name, has_turn, || self.held.write(), || self.held.try_write());
        let guard = WriteGuard { held: Some(held), gate: self, task };
        let free_from = self.free_of_writers.load(Ordering::Relaxed).max(self.free_of_readers.load(Ordering::Relaxed));
        task.wait_until(Time(free_from));
        task.has_waited(self.name, came);
        guard
    }

    /// The value inside, without entering: nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.held.get_mut().expect("no writer has panicked inside")
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.held.into_inner().expect("no writer has panicked inside")
    }
}

impl<T> fmt::Debug for SharedGate<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedGate").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A task is inside the gate, to read.
pub struct ReadGuard<'gate, T> {
    held: Option<RwLockReadGuard<'gate, T>>,
    gate: &'gate SharedGate<T>,
    task: &'gate Task<'gate>,
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("the guard is inside until it is dropped")
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        self.gate.free_of_readers.fetch_max(self.task.now().0, Ordering::Relaxed);
        self.held = None;
        self.task.leave(GateId::of(self.gate, self.gate.name));
    }
}

/// A task is inside the gate, alone.
pub struct WriteGuard<'gate, T> {
    held: Option<RwLockWriteGuard<'gate, T>>,
    gate: &'gate SharedGate<T>,
    task: &'gate Task<'gate>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("the guard is inside until it is dropped")
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("the guard is inside until it is dropped")
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        self.gate.free_of_writers.fetch_max(self.task.now().0, Ordering::Relaxed);
        self.held = None;
        self.task.leave(GateId::of(self.gate, self.gate.name));
    }
}
