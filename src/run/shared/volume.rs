//! A mounted volume that the kernel's threads use at once.
//!
//! No failure within a request ends the program: a failed request is an error number for the caller, and one
//! line for the user if it is the volume's fault.

use super::complaints::{Complaints, Tell};
use super::fault::CallError;
use super::unasked::Unasked;
use super::{Clock, Served, Shared, Sharing};
use crate::device::Account;
use crate::fs::posix::Posix;
use crate::fs::volume::{Call, Caller, Space, VolumeError};
use crate::task::Task;
use crate::time::Time;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The requests to a volume since it was mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests of any kind.
    pub requests: u64,
    /// Bytes read by requests. The kernel serves cached bytes without one.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

/// A mounted volume, and the messages about it.
pub struct MountedVolume {
    posix: Posix,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    complaints: Mutex<Complaints>,
    unasked: Unasked,
}

/// A mounted volume and its clock.
pub type SharedVolume = Shared<MountedVolume>;

impl Served for MountedVolume {
    const NAME: &'static str = "volume";
    type Error = CallError;

    /// Does due background work, and makes changes durable when that is due.
    fn work(&self, at: Time) -> Result<Option<Time>, CallError> {
        let task = Task::at(at);
        let (call, volume) = (Call::by_root(&task), self.posix.volume());
        if volume.is_changed(&call) && at >= self.unasked.due() {
            self.unasked.stored();
            volume.sync(&call)?;
        }
        let next = volume.work(&call)?;
        let next = if volume.watch(&call) { Some(at) } else { next };
        Ok(next.map(|next| if volume.is_changed(&call) { next.min(self.unasked.due()) } else { next }))
    }

    fn workers(&self) -> usize {
        self.posix.volume().workers()
    }
}

impl SharedVolume {
    /// Shares a volume. `tell` is called with each message about a failure, a line at a time.
    pub fn new(posix: Posix, sharing: Sharing, clock: Clock, tell: Tell) -> SharedVolume {
        let mounted = MountedVolume {
            posix,
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            complaints: Mutex::new(Complaints::new(tell)),
            unasked: Unasked::new(),
        };
        Shared::over(mounted, sharing, clock)
    }

    /// The volume, with its rules.
    pub fn posix(&self) -> &Posix {
        &self.served.posix
    }

    /// Serves a client's request; returns the time at which it is done.
    pub fn call<T>(
        &self,
        caller: Caller,
        act: impl FnOnce(&Posix, &Call) -> Result<T, VolumeError>,
    ) -> Result<(T, Time), CallError> {
        let called = self.request(|served, at| {
            served.unasked.request(at);
            let task = Task::at(at);
            let answer = act(&served.posix, &Call { task: &task, caller })?;
            debug_assert!(task.now() >= at, "a request is done at {:?}, before it came at {at:?}", task.now());
            Ok((answer, task.now()))
        });
        called.inspect_err(|error| self.complain(error))
    }

    /// Counts the bytes that a request has moved.
    pub fn moved(&self, read_bytes: u64, written_bytes: u64) {
        self.served.read_bytes.fetch_add(read_bytes, Ordering::Relaxed);
        self.served.written_bytes.fetch_add(written_bytes, Ordering::Relaxed);
    }

    /// A file that was made is closed.
    pub fn closed(&self) {
        self.served.unasked.closed(self.now());
    }

    /// The requests so far.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.begun.read(),
            read_bytes: self.served.read_bytes.load(Ordering::Relaxed),
            written_bytes: self.served.written_bytes.load(Ordering::Relaxed),
        }
    }

    /// The accounts and warnings of its stations.
    pub fn account(&self) -> Result<Account, CallError> {
        self.beside(|served, at| Ok(served.posix.volume().account(&Call::by_root(&Task::at(at)))?))
    }

    /// The space: all, and free.
    pub fn space(&self) -> Result<Space, CallError> {
        self.beside(|served, at| Ok(served.posix.volume().space(&Call::by_root(&Task::at(at)))?))
    }

    /// Ends in good order, as [`Volume::unmount`](crate::fs::volume::Volume::unmount) does. Requests that come later
    /// fail.
    pub fn unmount(&self) -> Result<(), CallError> {
        if let Ok(mut complaints) = self.served.complaints.lock() {
            complaints.end();
        }
        self.beside(|served, at| Ok(served.posix.volume().unmount(&Call::by_root(&Task::at(at)))?))
    }

    /// Reports failures of the volume; those of the caller are the caller's.
    fn complain(&self, error: &CallError) {
        let is_told = match error {
            CallError::Volume(VolumeError::ReadOnly(_)) => !self.sharing.read_only,
            CallError::Volume(VolumeError::Damaged { .. } | VolumeError::Device(_)) | CallError::Broken => true,
            CallError::Volume(_) => false,
        };
        if is_told && let Ok(mut complaints) = self.served.complaints.lock() {
            complaints.add(&format!("warning: {error}"), self.now());
        }
    }
}
