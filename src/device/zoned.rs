//! The seam below dm-zoned: zones that are written in order and reset whole (NVMe Zoned Namespace Command Set
//! Specification 1.1; Linux's zoned block devices are equivalent).

use super::{Account, DeviceError, Lba, Zone, ZoneError, ZoneState};
use crate::label::Label;
use crate::time::Time;

/// The geometry of a zoned device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedShape {
    /// The number of zones.
    pub zones: u32,
    /// Blocks from a zone's start to the next zone's start: its size, not its capacity. A power of two.
    pub zone_blocks: u64,
    /// The maximum number of open sequential zones; 0 for no limit.
    pub max_open: u32,
    /// The maximum number of open and closed sequential zones; 0 for no limit.
    pub max_active: u32,
    /// The random write areas that its zones can have, if any.
    pub areas: Option<RandomWriteAreas>,
}

/// Zone random write areas (ZRWA): the blocks from a zone's write pointer on, which are written in any order, and again.
///
/// Blocks leave the area in order as the write pointer moves: by a command ([`ZonedDevice::flush_area`]), or by a write behind the
/// area, at most as many blocks as it has, which moves it as far as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomWriteAreas {
    /// Blocks of an area.
    pub blocks: u64,
    /// The write pointer of a zone with an area moves by a multiple of these blocks.
    pub flush_blocks: u64,
    /// The number of zones that can have one at a time.
    pub count: u32,
}

/// The reason of a device that has none.
pub(super) const NO_AREAS: &str = "the drive has no random write areas";

/// A device of zones.
///
/// Blocks are numbered over all zones, as on a [`BlockDevice`](super::BlockDevice); a request that crosses a zone's end
/// is rejected. Buffers, times and durability are the same. A flush makes write pointers and states durable, too.
pub trait ZonedDevice: Send {
    /// Its geometry.
    fn shape(&self) -> ZonedShape;

    /// Bytes of a buffer for one block.
    fn block_width(&self) -> usize;

    /// True if the device has a timing model.
    fn is_timed(&self) -> bool {
        false
    }

    /// Reports a zone; `zone` must be less than the number of zones.
    fn zone(&self, zone: u32) -> Zone;

    /// Reads blocks of one zone. Blocks from the write pointer on, or of a random write area those not written, read as zeros.
    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError>;

    /// Writes blocks of one zone; in a sequential zone, at its write pointer, which advances. In a zone with a random write area:
    /// anywhere in the area, or behind it.
    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError>;

    /// Writes blocks at the write pointer of `zone`, which has no random write area; returns their address.
    fn append(&mut self, zone: u32, buffer: &[u8], label: Label, at: Time) -> Result<(Lba, Time), DeviceError> {
        let Zone { write_pointer, has_area, .. } = self.zone(zone);
        if has_area {
            let why = "it has a random write area";
            return Err(ZoneError::InvalidOperation { zone, action: "append to", why }.into());
        }
        let first = Lba(u64::from(zone) * self.shape().zone_blocks + write_pointer);
        Ok((first, self.write(first, buffer, label, at)?))
    }

    /// Opens a zone explicitly.
    fn open(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Opens an empty zone explicitly, with a random write area, which it keeps until it is full, or reset. Default: a device has no
    /// such areas.
    fn open_with_area(&mut self, zone: u32, _at: Time) -> Result<Time, DeviceError> {
        Err(ZoneError::InvalidOperation { zone, action: "open", why: NO_AREAS }.into())
    }

    /// Moves the write pointer of a zone with a random write area to block `end`, at most the area's end: blocks before it are
    /// written no more. Default: a device has no such areas.
    fn flush_area(&mut self, zone: u32, _end: u64, _at: Time) -> Result<Time, DeviceError> {
        Err(ZoneError::InvalidOperation { zone, action: "flush the area of", why: NO_AREAS }.into())
    }

    /// Closes an open zone.
    fn close(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Finishes a zone: it is full, at any write pointer.
    fn finish(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Resets a zone: it is empty, and its data is lost.
    fn reset(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Takes a read-only zone out of use for ever. An offline zone stays as it is; from other states it is an error. Default: no
    /// zone becomes read-only, and all are refused.
    fn take_offline(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        match self.zone(zone).state {
            ZoneState::Offline => Ok(at),
            state => Err(ZoneError::InvalidTransition { zone, action: "take offline", state }.into()),
        }
    }

    /// Makes everything durable that was done before.
    fn flush(&mut self, at: Time) -> Result<Time, DeviceError>;

    /// Its counts since it was opened.
    fn account(&self) -> Account;
}
