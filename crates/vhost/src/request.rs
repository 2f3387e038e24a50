//! A request and its status.
//!
//! ```text
//! readable  kind (4), unused (4), sector (8), then the data of a write, or ranges: sector (8), sectors (4), flags (4)
//! writable  the data of a read, or the serial number; the last byte is the status
//! ```

use crate::chain::{Chain, Malformed};
use crate::disk::{Disk, MOST_RANGES, MOST_SECTORS, SECTOR};
use flashpath::run::shared::{ServeError, SharedDevice};
use flashpath::time::Time;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH,
    VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
    VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
};
use vm_memory::{Bytes, GuestMemoryError, GuestMemoryMmap};

/// Bytes of a request's header.
const HEADER: usize = 16;
/// Bytes of a range.
const RANGE: usize = 16;
/// Bytes that are moved in one call of the device: the memory that a queue takes.
const PIECE: usize = 256 << 10;
/// Zeros that are written in one call of the device, so that other queues are served in between.
const ZEROS_AT_ONCE: u64 = 4 << 20;

/// The status of a request that was not served.
enum Refusal {
    /// The device failed, or the request has a wrong place or length.
    Failed,
    /// There is no such request, or it has no such flag.
    Unsupported,
}

impl From<ServeError> for Refusal {
    // The device has counted it, and its text is among the server's messages.
    fn from(_: ServeError) -> Refusal {
        Refusal::Failed
    }
}

impl From<GuestMemoryError> for Refusal {
    fn from(_: GuestMemoryError) -> Refusal {
        Refusal::Failed
    }
}

/// A served request.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Bytes that were written to the guest's memory.
    pub written: u32,
    /// The time at which the device is done.
    pub done: Time,
}

/// The requests of one queue, one after the other in the same memory.
#[derive(Default)]
pub struct Requests {
    /// The request.
    pub chain: Chain,
    buffer: Vec<u8>,
}

/// The devices and options of a request.
pub struct Target<'t> {
    pub device: &'t SharedDevice,
    pub disk: &'t Disk,
    /// The memory of the guest.
    pub memory: &'t GuestMemoryMmap,
    /// Each write is durable when it is answered: the driver knows no flush.
    pub writes_through: bool,
}

/// Ranges of a discard or a zeroing: the offset, the bytes, and whether the room may be given up.
type Ranges = [(u64, u64, bool)];

impl Requests {
    /// Serves the request that was taken; without a place for its status, nothing is done.
    pub fn serve(&mut self, taken: Result<(), Malformed>, target: &Target<'_>) -> Served {
        let nothing = Served { written: 0, done: target.device.now() };
        if taken == Err(Malformed::Endless) {
            return nothing;
        }
        let Some(place) = self.chain.writable.take_last() else { return nothing };
        let room = self.chain.writable.bytes();
        let outcome = if taken.is_ok() { self.execute(target) } else { Err(Refusal::Failed) };
        let (status, done) = match outcome {
            Ok(done) => (VIRTIO_BLK_S_OK, done),
            Err(Refusal::Failed) => (VIRTIO_BLK_S_IOERR, nothing.done),
            Err(Refusal::Unsupported) => (VIRTIO_BLK_S_UNSUPP, nothing.done),
        };
        // Only bytes without a gap count as written: the status is behind the room for data.
        let data = room - self.chain.writable.bytes();
        match target.memory.write_obj(status as u8, place) {
            Ok(()) if status == VIRTIO_BLK_S_OK => Served { written: (data + 1) as u32, done },
            _ => Served { written: data as u32, done },
        }
    }

    fn execute(&mut self, target: &Target<'_>) -> Result<Time, Refusal> {
        let mut header = [0; HEADER];
        self.chain.readable.read(target.memory, &mut header)?;
        let kind = u32_at(&header, 0);
        let sector = u64_at(&header, 8);
        match kind {
            VIRTIO_BLK_T_IN => self.read(target, sector),
            VIRTIO_BLK_T_OUT => self.write(target, sector),
            VIRTIO_BLK_T_FLUSH => Ok(target.device.flush()?),
            VIRTIO_BLK_T_GET_ID => {
                let room = self.chain.writable.bytes().min(target.disk.serial.len() as u64);
                self.chain.writable.write(target.memory, &target.disk.serial[..room as usize])?;
                Ok(target.device.now())
            }
            VIRTIO_BLK_T_DISCARD | VIRTIO_BLK_T_WRITE_ZEROES => self.change_ranges(target, kind),
            _ => Err(Refusal::Unsupported),
        }
    }

    fn read(&mut self, target: &Target<'_>, sector: u64) -> Result<Time, Refusal> {
        let length = self.chain.writable.bytes();
        let offset = offset_of(target.device, sector, length)?;
        if self.chain.readable.bytes() > 0 {
            return Err(Refusal::Failed);
        }
        let mut done = target.device.now();
        for (place, piece) in pieces(offset, length, PIECE as u64) {
            let buffer = room(&mut self.buffer, piece as usize);
            done = done.max(target.device.read(place, buffer)?);
            self.chain.writable.write(target.memory, buffer)?;
        }
        Ok(done)
    }

    fn write(&mut self, target: &Target<'_>, sector: u64) -> Result<Time, Refusal> {
        let length = self.chain.readable.bytes();
        let offset = offset_of(target.device, sector, length)?;
        if self.chain.writable.bytes() > 0 {
            return Err(Refusal::Failed);
        }
        let mut done = target.device.now();
        for (place, piece) in pieces(offset, length, PIECE as u64) {
            let buffer = room(&mut self.buffer, piece as usize);
            self.chain.readable.read(target.memory, buffer)?;
            let is_last = place + piece == offset + length;
            done = done.max(target.device.write(place, buffer, target.writes_through && is_last)?);
        }
        Ok(done)
    }

    /// Discards or zeroes. All ranges are checked before the first is changed.
    fn change_ranges(&mut self, target: &Target<'_>, kind: u32) -> Result<Time, Refusal> {
        let bytes = self.chain.readable.bytes();
        if bytes == 0 || !bytes.is_multiple_of(RANGE as u64) || bytes > (MOST_RANGES * RANGE) as u64 {
            return Err(Refusal::Failed);
        }
        let mut list = [0; MOST_RANGES * RANGE];
        let list = &mut list[..bytes as usize];
        self.chain.readable.read(target.memory, list)?;
        let known = if kind == VIRTIO_BLK_T_DISCARD { 0 } else { VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP };
        let range = |range: &[u8]| {
            let (sectors, flags) = (u32_at(range, 8), u32_at(range, 12));
            if flags & !known != 0 {
                return Err(Refusal::Unsupported);
            }
            if sectors > MOST_SECTORS {
                return Err(Refusal::Failed);
            }
            let length = u64::from(sectors) * SECTOR;
            Ok((offset_of(target.device, u64_at(range, 0), length)?, length, flags != 0))
        };
        let ranges = list.chunks_exact(RANGE).map(range).collect::<Result<Vec<_>, Refusal>>()?;
        match kind {
            VIRTIO_BLK_T_DISCARD => discard(target, &ranges),
            _ => zero(target, &ranges),
        }
    }
}

/// The first bytes of a buffer, which grows to the longest piece.
fn room(buffer: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if buffer.len() < bytes {
        buffer.resize(bytes, 0);
    }
    &mut buffer[..bytes]
}

fn discard(target: &Target<'_>, ranges: &Ranges) -> Result<Time, Refusal> {
    ranges.iter().try_fold(target.device.now(), |done, (offset, length, _)| {
        Ok(done.max(target.device.discard(*offset, *length, target.writes_through)?))
    })
}

fn zero(target: &Target<'_>, ranges: &Ranges) -> Result<Time, Refusal> {
    let mut done = target.device.now();
    for (offset, length, may_discard) in ranges {
        for (place, piece) in pieces(*offset, *length, if *may_discard { u64::MAX } else { ZEROS_AT_ONCE }) {
            let zeroed = target.device.write_zeroes(place, piece, !may_discard, target.writes_through);
            done = done.max(zeroed?);
        }
    }
    Ok(done)
}

/// The pieces of a range: the offset and the bytes of each.
fn pieces(offset: u64, length: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let piece = (length - done).min(most);
        let place = offset + done;
        done += piece;
        (piece > 0).then_some((place, piece))
    })
}

/// The offset of a sector, from which on the device has `length` bytes, which are whole sectors.
fn offset_of(device: &SharedDevice, sector: u64, length: u64) -> Result<u64, Refusal> {
    let offset = sector.checked_mul(SECTOR).ok_or(Refusal::Failed)?;
    let end = offset.checked_add(length).ok_or(Refusal::Failed)?;
    if length.is_multiple_of(SECTOR) && end <= device.size_bytes() { Ok(offset) } else { Err(Refusal::Failed) }
}

fn u32_at(bytes: &[u8], place: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[place + byte]))
}

fn u64_at(bytes: &[u8], place: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[place + byte]))
}
