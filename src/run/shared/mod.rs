//! Devices and volumes that several clients use at once through a front end.
//!
//! | file | content |
//! |---|---|
//! | `mod` | [`Shared`]: the clock, the requests and the counts of a shared thing; the effect of a panic |
//! | `device` | a device, byte by byte |
//! | `zones` | a device of zones |
//! | `bytes` | bytes over whole blocks: parts are read, changed and written back |
//! | `volume` | a mounted volume |
//! | `unasked` | when its changes are made durable although nobody syncs |
//! | `complaints` | messages about its failures, and how often |
//! | `counts` | the clients' requests, and how long they took |
//! | `fault` | why a request failed |
//! | `due` | answers that wait for their time |
//! | `event_count` | a count of events that can be waited for |
//!
//! There is no lock around the shared thing: it has its own locks, inside, and requests of several clients go at once. A
//! flush covers all answered writes of any client, as a write is answered when the device has taken it.
//!
//! The library has no clock: the caller hands one in.

mod bytes;
mod complaints;
mod counts;
mod device;
mod due;
mod event_count;
mod fault;
mod unasked;
mod volume;
mod zones;

pub use bytes::ByteExtent;
pub use complaints::Tell;
pub use counts::{Counts, LATENCY_BOUNDS_NS, Latencies, Request, RequestCounts};
pub use device::{ServedDevice, SharedDevice};
pub use due::{Abandoned, DueQueue};
pub use event_count::EventCount;
pub use fault::{CallError, Fault, ServeError};
pub use volume::{MountedVolume, SharedVolume, Traffic};
pub use zones::{ServedZones, SharedZones, ZoneAction};

use crate::time::Time;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Answers the time since the shared thing was opened.
pub type Clock = Box<dyn Fn() -> Time + Send + Sync>;

/// The options of sharing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// Nothing may be changed.
    pub read_only: bool,
    /// A front end answers when the time that the device names has come, and not before.
    pub paced: bool,
}

/// A thing that can be shared.
pub trait Served: Send + Sync + 'static {
    /// The name in warnings.
    const NAME: &'static str;

    /// Why a request fails.
    type Error: fmt::Display + From<Broken>;

    /// Does a bounded piece of its background work at `at`. Answers when there will be more; `None`: not before
    /// something was asked for.
    fn work(&self, at: Time) -> Result<Option<Time>, Self::Error>;

    /// The number of threads that can do it at the same time.
    fn workers(&self) -> usize {
        1
    }
}

/// An earlier request has panicked inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Something and its clock, shared by many threads.
///
/// A request that panics fails, and so does every later one: the shared thing may be in any state, and nobody
/// looks at it again.
pub struct Shared<T> {
    clock: Clock,
    sharing: Sharing,
    /// The requests so far, failed ones included: the background worker waits for them.
    begun: EventCount,
    /// Requests that are being served.
    wanting: AtomicU64,
    /// Whenever there may be something to tell of it.
    news: Arc<EventCount>,
    /// A thread panicked inside.
    is_broken: AtomicBool,
    served: T,
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("sharing", &self.sharing).finish_non_exhaustive()
    }
}

impl<T: Served> Shared<T> {
    /// Shares it, by this clock.
    pub fn over(served: T, sharing: Sharing, clock: Clock) -> Shared<T> {
        Shared {
            clock,
            sharing,
            begun: EventCount::default(),
            wanting: AtomicU64::new(0),
            news: Arc::default(),
            is_broken: AtomicBool::new(false),
            served,
        }
    }

    /// Counts its events here: somebody waits for those of several.
    pub fn with_news(self, news: Arc<EventCount>) -> Shared<T> {
        Shared { news, ..self }
    }

    /// The options with which it is shared.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// The time since it was opened.
    pub fn now(&self) -> Time {
        (self.clock)()
    }

    /// Requests that have begun since it was opened.
    pub fn begun(&self) -> &EventCount {
        &self.begun
    }

    /// Requests that are being served now. Work in the background lets them go first.
    pub fn wanting(&self) -> u64 {
        self.wanting.load(Ordering::Relaxed)
    }

    /// Events that may have messages: a failed request, or background work.
    pub fn news(&self) -> Arc<EventCount> {
        Arc::clone(&self.news)
    }

    /// Does a bounded piece of its background work; returns when there will be more.
    pub fn work(&self) -> Result<Option<Time>, T::Error> {
        let worked = self.beside(T::work);
        self.news.advance();
        worked
    }

    /// The number of threads that can do its background work at the same time.
    pub fn workers(&self) -> usize {
        self.served.workers()
    }

    /// Serves a client's request, which comes now.
    fn request<R>(&self, act: impl FnOnce(&T, Time) -> Result<R, T::Error>) -> Result<R, T::Error> {
        self.begun.advance();
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let acted = self.beside(act);
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        if acted.is_err() {
            self.news.advance();
        }
        acted
    }

    /// Does something that no client asked for.
    fn beside<R>(&self, act: impl FnOnce(&T, Time) -> Result<R, T::Error>) -> Result<R, T::Error> {
        if self.is_broken.load(Ordering::Acquire) {
            return Err(Broken.into());
        }
        let at = self.now();
        catch_unwind(AssertUnwindSafe(|| act(&self.served, at))).unwrap_or_else(|_| {
            self.is_broken.store(true, Ordering::Release);
            Err(Broken.into())
        })
    }
}

#[cfg(test)]
mod tests;
