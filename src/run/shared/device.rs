//! A device that several clients use at once, byte by byte: the device of an NBD export and of the one file.
//!
//! A range that begins or ends within a block excludes others near it: neighbours that write parts of one block do not
//! lose each other's bytes.

use super::bytes::{ByteExtent, Bytes};
use super::counts::{Counts, Request};
use super::fault::ServeError;
use super::{Clock, Served, Shared, Sharing};
use crate::device::{Account, BlockDevice, DeviceError, NO_HINT, PlacementAccount};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A device, and the counts of its clients' requests.
pub struct ServedDevice {
    size_bytes: u64,
    bytes: Bytes,
    counts: Mutex<Counts>,
}

/// A device and its clock.
///
/// Requests return the time at which they are done; a front end without pacing ignores it. Offsets and lengths are in bytes,
/// of any alignment; a length of 0 does nothing.
pub type SharedDevice = Shared<ServedDevice>;

impl Served for ServedDevice {
    const NAME: &'static str = "device";
    type Error = ServeError;

    fn work(&self, at: Time) -> Result<Option<Time>, ServeError> {
        Ok(self.bytes.device().work(at)?)
    }
}

impl ServedDevice {
    fn check_range(&self, offset: u64, length: u64) -> Result<(), ServeError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(ServeError::BeyondEnd { offset, length, size_bytes: self.size_bytes }),
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counts> {
        // Numbers can be added to after any panic.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedDevice {
    /// Shares `device`, whose blocks must be carried as bytes: clients read the bytes that they wrote.
    ///
    /// # Errors
    ///
    /// [`ServeError::NoBytes`] if they are carried as stamps.
    pub fn new(device: Box<dyn BlockDevice>, sharing: Sharing, clock: Clock) -> Result<SharedDevice, ServeError> {
        if device.block_width() as u64 != BLOCK_BYTES {
            return Err(ServeError::NoBytes { width: device.block_width() });
        }
        let size_bytes = device.blocks() * BLOCK_BYTES;
        let served = ServedDevice { size_bytes, bytes: Bytes::new(device), counts: Mutex::default() };
        Ok(Shared::over(served, sharing, clock))
    }

    /// Bytes of the device, a multiple of 4096.
    pub fn size_bytes(&self) -> u64 {
        self.served.size_bytes
    }

    /// Fills `buffer` from `offset`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<Time, ServeError> {
        let length = buffer.len() as u64;
        self.serve(Request::Read, offset, length, |bytes, at| bytes.read(offset, buffer, at))
    }

    /// Writes `buffer` at `offset`; if `durable`, it survives a cut of power as soon as this answers.
    pub fn write(&self, offset: u64, buffer: &[u8], durable: bool) -> Result<Time, ServeError> {
        self.write_placed(offset, buffer, NO_HINT, durable)
    }

    /// The same with a placement hint ([`Placement`](crate::device::Placement)), which a device may not have.
    pub fn write_placed(&self, offset: u64, buffer: &[u8], hint: u8, durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        let length = buffer.len() as u64;
        self.serve(Request::Write, offset, length, |bytes, at| {
            let done = bytes.write(offset, buffer, hint, at)?;
            if durable { bytes.flush(done) } else { Ok(done) }
        })
    }

    /// Makes a range read as zeros, to the byte. Its whole blocks are discarded, unless `keep_stored` asks for zeros
    /// that are written, so that later writes there find their room.
    pub fn write_zeroes(&self, offset: u64, length: u64, keep_stored: bool, durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        self.serve(Request::WriteZeroes, offset, length, |bytes, at| {
            let done = bytes.zero(offset, length, keep_stored, at)?;
            if durable { bytes.flush(done) } else { Ok(done) }
        })
    }

    /// Discards the whole blocks of a range; parts of blocks stay.
    pub fn discard(&self, offset: u64, length: u64, durable: bool) -> Result<Time, ServeError> {
        self.check_writable()?;
        self.serve(Request::Discard, offset, length, |bytes, at| {
            let done = bytes.discard(offset, length, at)?;
            if durable { bytes.flush(done) } else { Ok(done) }
        })
    }

    /// Makes all answered writes of all clients durable.
    pub fn flush(&self) -> Result<Time, ServeError> {
        self.serve(Request::Flush, 0, 0, |bytes, at| bytes.flush(at))
    }

    /// Ends in good order, as [`BlockDevice::close`] does.
    pub fn close(&self) -> Result<Time, ServeError> {
        self.beside(|served, at| Ok(served.bytes.device().close(at)?))
    }

    /// The state of the bytes from `offset` on: at least one of them and at most `length`, which is not 0.
    pub fn extent(&self, offset: u64, length: u64) -> Result<ByteExtent, ServeError> {
        self.served.check_range(offset, length)?;
        self.beside(|served, _| Ok(served.bytes.extent(offset, length)?))
    }

    /// The state of the placement by hints; `None` if the device has none.
    pub fn placement(&self) -> Result<Option<PlacementAccount>, ServeError> {
        self.beside(|served, _| Ok(served.bytes.device().placement().map(|placement| placement.placement_account())))
    }

    /// Lets the handles of these placement identifiers refer to empty units; returns when that is done. A device without
    /// placement has nothing to do.
    ///
    /// # Errors
    ///
    /// The device failed, or can only be read. Identifiers that it has not are a bug of the caller.
    pub fn update_handles(&self, identifiers: &[u8]) -> Result<Time, ServeError> {
        self.check_writable()?;
        self.request(|served, at| {
            let Some(placement) = served.bytes.device().placement() else { return Ok(at) };
            let mut done = at;
            for identifier in identifiers {
                done = done.max(placement.update_handle(*identifier, at)?);
            }
            Ok(done)
        })
    }

    /// The accounts of the stations since the device was opened.
    pub fn account(&self) -> Result<Account, ServeError> {
        self.beside(|served, _| Ok(served.bytes.device().account()))
    }

    /// The counts of clients' requests since the device was opened.
    pub fn counts(&self) -> Result<Counts, ServeError> {
        Ok(self.served.counted().clone())
    }

    fn check_writable(&self) -> Result<(), ServeError> {
        if self.sharing.read_only { Err(ServeError::ReadOnly) } else { Ok(()) }
    }

    /// Serves one request.
    fn serve(
        &self,
        request: Request,
        offset: u64,
        length: u64,
        act: impl FnOnce(&Bytes, Time) -> Result<Time, DeviceError>,
    ) -> Result<Time, ServeError> {
        self.served.check_range(offset, length)?;
        self.request(|served, at| match act(&served.bytes, at) {
            Ok(done) => {
                let answered = if self.sharing.paced { done.max(self.now()) } else { self.now() };
                served.counted().served(request, length, answered.since_ns(at));
                Ok(done)
            }
            Err(error) => {
                served.counted().failed(request, &error);
                Err(error.into())
            }
        })
    }
}
