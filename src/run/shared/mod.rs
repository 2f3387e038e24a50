//! A device that several clients use at once, byte by byte: what every front end stands on.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the device, and its requests |
//! | `bytes` | bytes over whole blocks: parts are read, changed and written back |
//! | `counts` | what the clients asked for, and how long it took |
//! | `fault` | why a request failed |
//! | `due` | answers that wait for their time |
//! | `event_count` | a count of events that can be waited for |
//!
//! There is no lock around the device, which locks what it must inside: requests of several clients go at once. A flush
//! covers what any client was told is written, as a write is answered when the device has taken it. A range that begins or
//! ends within a block excludes others near it: neighbours that write parts of one block do not lose each other's bytes.
//!
//! The library has no clock: whoever shares the device hands one in.

mod bytes;
mod counts;
mod due;
mod event_count;
mod fault;

pub use counts::{Counts, LATENCY_BOUNDS_NS, Latencies, Request, RequestCounts};
pub use due::{Abandoned, DueQueue};
pub use event_count::EventCount;
pub use fault::{Fault, ServeError};

use crate::device::{Account, BlockDevice};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Answers the time since the device was opened.
pub type Clock = Box<dyn Fn() -> Time + Send + Sync>;

/// How a device is shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// Nothing may be changed.
    pub read_only: bool,
    /// A front end answers when the time that the device names has come, and not before.
    pub paced: bool,
}

/// Bytes that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteExtent {
    /// Bytes.
    pub length: u64,
    /// Whether anything is stored there. What is not reads as zeros.
    pub is_stored: bool,
}

/// A device and its clock.
///
/// Requests answer the time at which they are done; who does not pace ignores it. Offsets and lengths are in bytes, of any
/// alignment; a length of 0 does nothing.
pub struct SharedDevice {
    clock: Clock,
    sharing: Sharing,
    size_bytes: u64,
    /// Requests so far, whatever became of them: whoever works in the background waits for them.
    begun: EventCount,
    /// Requests that are being served.
    wanting: AtomicU64,
    /// Whenever there may be something to tell of the device.
    news: Arc<EventCount>,
    bytes: Bytes,
    counts: Mutex<Counts>,
    /// A thread panicked in the device, which may be in any state now.
    is_broken: AtomicBool,
}

/// Notes a panic in the device.
struct Watch<'a>(&'a SharedDevice);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Release);
        }
    }
}

impl fmt::Debug for SharedDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedDevice { sharing, size_bytes, .. } = self;
        formatter.debug_struct("SharedDevice").field("sharing", sharing).field("size_bytes", size_bytes).finish()
    }
}

impl SharedDevice {
    /// Shares `device`, whose blocks must be carried as bytes: clients read what they wrote.
    ///
    /// # Errors
    ///
    /// [`ServeError::NoBytes`] if they are carried as stamps.
    pub fn new(device: Box<dyn BlockDevice>, sharing: Sharing, clock: Clock) -> Result<SharedDevice, ServeError> {
        if device.block_width() as u64 != BLOCK_BYTES {
            return Err(ServeError::NoBytes { width: device.block_width() });
        }
        let size_bytes = device.blocks() * BLOCK_BYTES;
        Ok(SharedDevice {
            clock,
            sharing,
            size_bytes,
            begun: EventCount::default(),
            wanting: AtomicU64::new(0),
            news: Arc::default(),
            bytes: Bytes::new(device),
            counts: Mutex::default(),
            is_broken: AtomicBool::new(false),
        })
    }

    /// Bytes of the device, a multiple of 4096.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// How it is shared.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// The time since it was opened.
    pub fn now(&self) -> Time {
        (self.clock)()
    }

    /// Fills `buffer` from `offset`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<Time, ServeError> {
        let length = buffer.len() as u64;
        self.serve(Request::Read, offset, length, |bytes, at| bytes.read(offset, buffer, at))
    }

    /// Writes `buffer` at `offset`; if `durable`, it survives a cut of power as soon as this answers.
    pub fn write(&self, offset: u64, buffer: &[u8], durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        let length = buffer.len() as u64;
        self.serve(Request::Write, offset, length, |bytes, at| {
            let done = bytes.write(offset, buffer, at)?;
            if durable { bytes.flush(done) } else { Ok(done) }
        })
    }

    /// Makes a range read as zeros, to the byte. Its whole blocks are discarded, unless `keep_stored` asks for zeros that
    /// are written, so that later writes there find their room.
    pub fn write_zeroes(&self, offset: u64, length: u64, keep_stored: bool, durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        self.serve(Request::WriteZeroes, offset, length, |bytes, at| {
            let done = bytes.zero(offset, length, keep_stored, at)?;
            if durable { bytes.flush(done) } else { Ok(done) }
        })
    }

    /// Discards the whole blocks of a range; what it holds of others stays.
    pub fn discard(&self, offset: u64, length: u64, durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        self.serve(Request::Discard, offset, length, |bytes, at| {
            let done = bytes.discard(offset, length, at)?;
            if durable { bytes.flush(done) } else { Ok(done) }
        })
    }

    /// Makes durable all that any client was told is done.
    pub fn flush(&self) -> Result<Time, ServeError> {
        self.serve(Request::Flush, 0, 0, |bytes, at| bytes.flush(at))
    }

    /// Ends in good order, as [`BlockDevice::close`] does.
    pub fn close(&self) -> Result<Time, ServeError> {
        let _watch = self.watch()?;
        Ok(self.bytes.device().close(self.now())?)
    }

    /// How the bytes from `offset` on are stored: at least one of them and at most `length`, which is not 0.
    pub fn extent(&self, offset: u64, length: u64) -> Result<ByteExtent, ServeError> {
        self.check_range(offset, length)?;
        let _watch = self.watch()?;
        Ok(self.bytes.extent(offset, length)?)
    }

    /// Does a bounded piece of the device's background work, as [`work`](crate::device::Abilities::work) does.
    pub fn work(&self) -> Result<Option<Time>, ServeError> {
        let _watch = self.watch()?;
        let worked = self.bytes.device().work(self.now());
        self.news.advance();
        Ok(worked?)
    }

    /// Requests that have begun since the device was opened.
    pub fn begun(&self) -> &EventCount {
        &self.begun
    }

    /// Events of which there may be something to tell: a request failed, or the device did something by itself.
    pub fn news(&self) -> Arc<EventCount> {
        Arc::clone(&self.news)
    }

    /// Requests that want a turn now. Work in the background lets them go first.
    pub fn wanting(&self) -> u64 {
        self.wanting.load(Ordering::Relaxed)
    }

    /// What the stations have counted since the device was opened.
    pub fn account(&self) -> Result<Account, ServeError> {
        let _watch = self.watch()?;
        Ok(self.bytes.device().account())
    }

    /// What the clients have asked for since the device was opened.
    pub fn counts(&self) -> Result<Counts, ServeError> {
        Ok(self.counted().clone())
    }

    fn check_writable(&self) -> Result<(), ServeError> {
        if self.sharing.read_only { Err(ServeError::ReadOnly) } else { Ok(()) }
    }

    fn check_range(&self, offset: u64, length: u64) -> Result<(), ServeError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(ServeError::BeyondEnd { offset, length, size_bytes: self.size_bytes }),
        }
    }

    /// Serves one request.
    fn serve(
        &self,
        request: Request,
        offset: u64,
        length: u64,
        act: impl FnOnce(&Bytes, Time) -> Result<Time, crate::device::DeviceError>,
    ) -> Result<Time, ServeError> {
        self.check_range(offset, length)?;
        let at = self.now();
        self.begun.advance();
        let _watch = self.watch()?;
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let acted = act(&self.bytes, at);
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        match acted {
            Ok(done) => {
                let answered = if self.sharing.paced { done.max(self.now()) } else { self.now() };
                self.counted().served(request, length, answered.since_ns(at));
                Ok(done)
            }
            Err(error) => {
                self.counted().failed(request, &error);
                self.news.advance();
                Err(error.into())
            }
        }
    }

    /// The device is asked for something, unless it is broken. If it panics, it is from then on.
    fn watch(&self) -> Result<Watch<'_>, ServeError> {
        if self.is_broken.load(Ordering::Acquire) {
            return Err(ServeError::Broken);
        }
        Ok(Watch(self))
    }

    fn counted(&self) -> MutexGuard<'_, Counts> {
        // Numbers can be added to, whoever panicked.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
