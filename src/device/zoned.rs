//! The seam on which dm-zoned stands: zones that are written in order and reset whole (NVMe Zoned Namespace Command Set
//! Specification 1.1; Linux's zoned block devices are the same with other words).

use super::{Account, DeviceError, Lba};
use crate::label::Label;
use crate::time::Time;

/// How a zone may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// Anywhere, again and again; it has no write pointer. NVMe has none such, SMR disks do.
    Conventional,
    /// At its write pointer only.
    Sequential,
}

/// The state of a sequential zone (section 2.1.1.2.1, figure 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing is written; the write pointer is at its start.
    Empty,
    /// A write opened it.
    ImplicitlyOpen,
    /// A command opened it.
    ExplicitlyOpen,
    /// Written in part, and it takes no open resource.
    Closed,
    /// Nothing can be written until it is reset.
    Full,
    /// It can be read for ever and never written again.
    ReadOnly,
    /// It can neither be read nor written.
    Offline,
}

impl ZoneState {
    /// The name in errors and reports.
    pub fn name(self) -> &'static str {
        match self {
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly open",
            ZoneState::ExplicitlyOpen => "explicitly open",
            ZoneState::Closed => "closed",
            ZoneState::Full => "full",
            ZoneState::ReadOnly => "read-only",
            ZoneState::Offline => "offline",
        }
    }
}

/// A zone, as the device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// How it may be written.
    pub kind: ZoneKind,
    /// Its state; a conventional zone that works is [`ZoneState::Empty`] for ever.
    pub state: ZoneState,
    /// Blocks from its start that are written: the next write goes there. 0 in a conventional zone.
    pub write_pointer: u64,
    /// Blocks that can be written, at most those of its size.
    pub capacity: u64,
}

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
