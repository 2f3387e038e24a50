//! A mounted volume behind its lock, with its clock.
//!
//! Every request is one turn at the lock, and begins when the clock says that it came. Nothing that goes wrong within a turn
//! ends the program: what fails is an error number for the caller, and one line for the user if it is the volume's fault; a
//! panic breaks the volume, which answers EIO from then on.

use crate::complaints::{Complaints, Tell};
use crate::error::CallError;
use crate::files::Files;
use crate::sharing::VolumeSharing;
use crate::unasked::Unasked;
use flashpath::device::Account;
use flashpath::fs::sfs::{Sfs, SfsError, Space};
use flashpath::run::shared::{Clock, EventCount};
use flashpath::time::Time;
use fuser::Errno;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What was asked of a volume since it was mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests of any kind.
    pub requests: u64,
    /// Bytes that were read. What the kernel's cache has is read without a request.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

/// A volume, its clock, and its lock.
pub struct SharedVolume {
    clock: Clock,
    sharing: VolumeSharing,
    /// Requests so far, whatever became of them: whoever works in the background waits for them.
    begun: EventCount,
    /// Requests that want the lock or hold it.
    wanting: AtomicU64,
    /// Whenever there may be something to tell of the volume.
    news: Arc<EventCount>,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    /// `None` when it is unmounted.
    files: Mutex<Option<Files>>,
    complaints: Mutex<Complaints>,
    unasked: Unasked,
}

impl fmt::Debug for SharedVolume {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedVolume").field("sharing", &self.sharing).finish_non_exhaustive()
    }
}

impl SharedVolume {
    /// Shares a volume. What fails in it is told to `tell`, a line at a time.
    pub fn new(volume: Sfs, sharing: VolumeSharing, clock: Clock, tell: Tell) -> SharedVolume {
        SharedVolume {
            clock,
            sharing,
            begun: EventCount::default(),
            wanting: AtomicU64::new(0),
            news: Arc::default(),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            files: Mutex::new(Some(Files::new(volume, sharing))),
            complaints: Mutex::new(Complaints::new(tell)),
            unasked: Unasked::new(),
        }
    }

    /// How it is shared.
    pub fn sharing(&self) -> VolumeSharing {
        self.sharing
    }

    /// The time since it was opened.
    pub fn now(&self) -> Time {
        (self.clock)()
    }

    /// Does a bounded piece of the volume's background work, and makes durable what has changed once that is due.
    /// Answers when there will be more, as [`Sfs::work`] does.
    pub fn work(&self) -> Result<Option<Time>, CallError> {
        let now = self.now();
        let worked = self.turn(now, |files| {
            if files.is_changed() && now >= self.unasked.due() {
                self.unasked.stored();
                files.store()?;
            }
            let next = files.work()?;
            Ok(next.map(|next| if files.is_changed() { next.min(self.unasked.due()) } else { next }))
        });
        self.news.advance();
        worked.map(|(next, _)| next)
    }

    /// Events of which there may be something to tell: a request failed, or the volume did something by itself.
    pub fn news(&self) -> Arc<EventCount> {
        Arc::clone(&self.news)
    }

    /// A file that was made is closed.
    pub(crate) fn closed(&self) {
        self.unasked.closed(self.now());
    }

    /// Requests that have begun since it was opened.
    pub fn begun(&self) -> &EventCount {
        &self.begun
    }

    /// Requests that want a turn now. Work in the background lets them go first.
    pub fn wanting(&self) -> u64 {
        self.wanting.load(Ordering::Relaxed)
    }

    /// What was asked of it.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.begun.read(),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
        }
    }

    /// What its stations have counted, and what they warn of.
    pub fn account(&self) -> Result<Account, CallError> {
        self.turn(self.now(), |files| Ok(files.account())).map(|(account, _)| account)
    }

    /// How much there is, and how much is left.
    pub fn space(&self) -> Result<Space, CallError> {
        self.turn(self.now(), |files| Ok(files.space())).map(|(space, _)| space)
    }

    /// Ends in good order, as [`Sfs::unmount`] does. Requests that come later fail.
    pub fn unmount(&self) -> Result<(), CallError> {
        if let Ok(mut complaints) = self.complaints.lock() {
            complaints.end();
        }
        let at = self.now();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let files = self.files.lock().map_err(|_| CallError::Broken)?.take().ok_or(CallError::Unmounted)?;
            files.unmount(at).map_err(CallError::from)
        }));
        ended.unwrap_or(Err(CallError::Broken))
    }

    /// A client's request: one turn at the volume. Answers with the time at which it is done.
    pub(crate) fn call<T>(&self, turn: impl FnOnce(&mut Files) -> Result<T, CallError>) -> Result<(T, Time), Errno> {
        self.begun.advance();
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let at = self.now();
        self.unasked.request(at);
        let ended = self.turn(at, |files| {
            self.wanting.fetch_sub(1, Ordering::Relaxed);
            turn(files)
        });
        ended.map_err(|error| {
            self.complain(&error);
            self.news.advance();
            error.errno()
        })
    }

    /// Counts what a request has moved.
    pub(crate) fn moved(&self, read_bytes: u64, written_bytes: u64) {
        self.read_bytes.fetch_add(read_bytes, Ordering::Relaxed);
        self.written_bytes.fetch_add(written_bytes, Ordering::Relaxed);
    }

    fn turn<T>(&self, at: Time, turn: impl FnOnce(&mut Files) -> Result<T, CallError>) -> Result<(T, Time), CallError> {
        // The lock is taken and given back within, so that a panic poisons it: what it left behind is never used.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut files = self.files.lock().map_err(|_| CallError::Broken)?;
            let files = files.as_mut().ok_or(CallError::Unmounted)?;
            files.begin(at);
            let answer = turn(files)?;
            debug_assert!(files.now() >= at, "a request is done at {:?}, before it came at {at:?}", files.now());
            Ok((answer, files.now()))
        }));
        ended.unwrap_or(Err(CallError::Broken))
    }

    /// Tells what is the volume's fault, and not the caller's.
    fn complain(&self, error: &CallError) {
        let is_told = match error {
            CallError::Volume(SfsError::ReadOnly(_)) => !self.sharing.read_only,
            CallError::Volume(SfsError::Damaged { .. } | SfsError::Device(_)) | CallError::Broken => true,
            CallError::Volume(_) | CallError::Refused(_) | CallError::Unmounted => false,
        };
        if is_told && let Ok(mut complaints) = self.complaints.lock() {
            complaints.add(&format!("warning: {error}"));
        }
    }
}
