//! A gate that many readers go through at once, or one writer alone.

use super::{GateId, Task};
use crate::time::Time;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LockResult, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};

/// What many tasks may read at once, or one may change. A reader that came earlier than the last writer left goes on from
/// then; a writer waits for readers too.
pub struct SharedGate<T> {
    held: RwLock<T>,
    /// When the last writer left.
    free_of_writers: AtomicU64,
    /// When the last reader left.
    free_of_readers: AtomicU64,
}

impl<T> SharedGate<T> {
    /// A gate that is free from the beginning.
    pub const fn new(value: T) -> SharedGate<T> {
        SharedGate { held: RwLock::new(value), free_of_writers: AtomicU64::new(0), free_of_readers: AtomicU64::new(0) }
    }

    /// Waits until no writer is inside, and goes in to read.
    ///
    /// # Panics
    ///
    /// If a writer panicked inside: what it left may be half done.
    pub fn read<'gate>(&'gate self, task: &'gate Task<'_>) -> ReadGuard<'gate, T> {
        let held = self.wait(task, || self.held.try_read(), || self.held.read());
        task.wait_until(Time(self.free_of_writers.load(Ordering::Relaxed)));
        ReadGuard { held: Some(held), gate: self, task }
    }

    /// Waits until nobody is inside, and goes in to read and change.
    ///
    /// # Panics
    ///
    /// As [`read`](SharedGate::read).
    pub fn write<'gate>(&'gate self, task: &'gate Task<'_>) -> WriteGuard<'gate, T> {
        let held = self.wait(task, || self.held.try_write(), || self.held.write());
        task.wait_until(Time(self.free_of_writers.load(Ordering::Relaxed)));
        task.wait_until(Time(self.free_of_readers.load(Ordering::Relaxed)));
        WriteGuard { held: Some(held), gate: self, task }
    }

    /// What is inside, without a gate around it: nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.held.get_mut().expect("no writer has panicked inside")
    }

    /// What is inside, for good.
    pub fn into_inner(self) -> T {
        self.held.into_inner().expect("no writer has panicked inside")
    }

    fn wait<G>(&self, task: &Task<'_>, attempt: impl Fn() -> TryLockResult<G>, lock: impl Fn() -> LockResult<G>) -> G {
        task.give_way();
        loop {
            match attempt() {
                Ok(held) => return held,
                Err(TryLockError::WouldBlock) if task.sleep_at(GateId::of(self)) => {}
                Err(TryLockError::WouldBlock) => {
                    return lock().unwrap_or_else(|_| panic!("a writer has panicked inside this gate"));
                }
                Err(TryLockError::Poisoned(_)) => panic!("a writer has panicked inside this gate"),
            }
        }
    }
}

impl<T> fmt::Debug for SharedGate<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedGate").field("free_of_writers", &self.free_of_writers).finish_non_exhaustive()
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
        self.task.leave(GateId::of(self.gate));
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
        self.task.leave(GateId::of(self.gate));
    }
}
