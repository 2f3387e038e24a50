//! The seam on which dm-zoned stands: zones that are written in order and reset whole (NVMe Zoned Namespace Command Set
//! Specification 1.1; Linux's zoned block devices are the same with other words).

use super::{Account, DeviceError, Lba, Zone};
use crate::label::Label;
use crate::time::Time;

/// The shape of a zoned device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedShape {
    /// Zones.
    pub zones: u32,
    /// Blocks from the start of a zone to the start of the next: its size, not its capacity. A power of two.
    pub zone_blocks: u64,
    /// Sequential zones that may be open at once; 0 for no limit.
    pub max_open: u32,
    /// Sequential zones that may be open or closed at once; 0 for no limit.
    pub max_active: u32,
}

/// A device of zones.
///
/// Blocks are counted from 0 over all zones, as on a [`BlockDevice`](super::BlockDevice); a request that leaves its zone
/// is refused. Buffers, times and durability are as there. A flush makes write pointers and states durable, too.
pub trait ZonedDevice: Send {
    /// Its shape.
    fn shape(&self) -> ZonedShape;

    /// Bytes of a buffer that are one block.
    fn block_width(&self) -> usize;

    /// Whether the device has a timing model.
    fn is_timed(&self) -> bool {
        false
    }

    /// Reports one zone; `zone` is one of the device's.
    fn zone(&self, zone: u32) -> Zone;

    /// Reads blocks of one zone. What lies at or beyond the write pointer reads as zeros.
    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError>;

    /// Writes blocks of one zone: in a sequential one at its write pointer, which moves on.
    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError>;

    /// Writes blocks at the write pointer of `zone`, wherever it is, and answers where that was.
    fn append(&mut self, zone: u32, buffer: &[u8], label: Label, at: Time) -> Result<(Lba, Time), DeviceError> {
        let first = Lba(u64::from(zone) * self.shape().zone_blocks + self.zone(zone).write_pointer);
        Ok((first, self.write(first, buffer, label, at)?))
    }

    /// Opens a zone explicitly.
    fn open(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Closes an open zone.
    fn close(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Makes a zone full, wherever its write pointer is.
    fn finish(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Makes a zone empty; what it held is gone.
    fn reset(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError>;

    /// Makes durable all that was done before.
    fn flush(&mut self, at: Time) -> Result<Time, DeviceError>;

    /// What it has counted since it was opened.
    fn account(&self) -> Account;
}
