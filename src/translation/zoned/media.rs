//! The devices of a volume as one address space of zones.
//!
//! Zones are numbered over all devices: first the conventional device, divided into zones, then each zoned device. The
//! rest of the conventional device, smaller than a zone, has a number but is unusable.

use super::error::ZonedVolumeError;
use crate::device::{Account, BlockDevice, DeviceError, Lba, ZoneKind, ZoneState, ZonedDevice};
use crate::label::{Label, Tally};
use crate::time::Time;

/// The devices of a volume.
pub struct Devices {
    /// The conventional device, whose zones are the cache; `None` if the zoned one has conventional zones.
    pub conventional: Option<Box<dyn BlockDevice>>,
    /// The zoned devices, at least one.
    pub zoned: Vec<Box<dyn ZonedDevice>>,
}

/// The number of a zone, over all devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u32);

impl ZoneId {
    /// In the map: unmapped.
    pub const NONE: ZoneId = ZoneId(u32::MAX);

    /// The zone, or `None` if unmapped.
    #[inline]
    pub fn some(self) -> Option<ZoneId> {
        (self != ZoneId::NONE).then_some(self)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The class of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneClass {
    /// A zone of the conventional device.
    Cache,
    /// A conventional zone of a zoned device ("random" in the kernel's words).
    Random,
    /// A sequential zone.
    Sequential,
    /// Smaller than a zone, or unusable.
    Unusable,
}

impl ZoneClass {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ZoneClass::Cache => "cache",
            ZoneClass::Random => "random",
            ZoneClass::Sequential => "sequential",
            ZoneClass::Unusable => "unusable",
        }
    }

    /// True if blocks can be written in any order.
    #[inline]
    pub fn is_conventional(self) -> bool {
        matches!(self, ZoneClass::Cache | ZoneClass::Random)
    }
}

/// The devices of a volume as one address space of zones.
pub struct Media {
    devices: Devices,
    /// The number of blocks in a zone.
    pub zone_blocks: u32,
    /// The class of each zone.
    pub classes: Vec<ZoneClass>,
    /// Zones of the conventional device.
    conventional_zones: u32,
    /// The first zone of each zoned device.
    first_zones: Vec<u32>,
    /// Bytes of a buffer for one block.
    pub width: usize,
    sent: Tally,
    /// True if the conventional device, or each zoned one, was written since the last flush.
    is_conventional_dirty: bool,
    is_zoned_dirty: Vec<bool>,
}

impl Media {
    /// Joins the devices; fails if they do not fit together.
    pub fn new(devices: Devices) -> Result<Media, ZonedVolumeError> {
        let unsuitable = |reason: String| Err(ZonedVolumeError::Unsuitable(reason));
        let Some(first) = devices.zoned.first() else {
            return unsuitable("dm-zoned needs a zoned device: write +zns: after the conventional one".to_string());
        };
        let (zone_blocks, width) = (first.shape().zone_blocks, first.block_width());
        // The kernel's bound on a chunk, and the limit of a 32-bit map entry.
        if !zone_blocks.is_power_of_two() || !(8..=1 << 30).contains(&zone_blocks) {
            return unsuitable(format!("zones have {zone_blocks} blocks, and a power of two from 8 would be right"));
        }
        let mut classes = Vec::new();
        if let Some(device) = &devices.conventional {
            if device.block_width() != width {
                return unsuitable(
                    "one device stores bytes and the other does not: give both an image, or none".to_string(),
                );
            }
            let whole = device.blocks() / zone_blocks;
            classes.extend((0..whole).map(|_| ZoneClass::Cache));
            classes.extend((!device.blocks().is_multiple_of(zone_blocks)).then_some(ZoneClass::Unusable));
        }
        let conventional_zones = classes.len() as u32;
        let mut first_zones = Vec::new();
        for device in &devices.zoned {
            let shape = device.shape();
            if shape.zone_blocks != zone_blocks || device.block_width() != width {
                return unsuitable(format!(
                    "a zone has {zone_blocks} blocks on one device and {} on another: give all the same zone=",
                    shape.zone_blocks
                ));
            }
            first_zones.push(classes.len() as u32);
            for number in 0..shape.zones {
                let zone = device.zone(number);
                if zone.capacity != zone_blocks && zone.state != ZoneState::Offline {
                    return unsuitable(format!(
                        "zone {number} has a capacity of {} blocks and a size of {zone_blocks}: dm-zoned needs them equal",
                        zone.capacity
                    ));
                }
                classes.push(match zone.kind {
                    ZoneKind::Conventional => ZoneClass::Random,
                    ZoneKind::Sequential => ZoneClass::Sequential,
                });
            }
        }
        if classes.len() >= u32::MAX as usize {
            return unsuitable(format!("there are {} zones, and 32 bits have to name them", classes.len()));
        }
        let zone_blocks = zone_blocks as u32;
        // Earlier writes are unknown.
        let is_zoned_dirty = vec![true; devices.zoned.len()];
        let (sent, is_conventional_dirty) = (Tally::default(), true);
        Ok(Media {
            devices,
            zone_blocks,
            classes,
            conventional_zones,
            first_zones,
            width,
            sent,
            is_conventional_dirty,
            is_zoned_dirty,
        })
    }

    /// The number of zones of all devices.
    pub fn zones(&self) -> u32 {
        self.classes.len() as u32
    }

    /// The number of whole zones, working or not.
    pub fn whole_zones(&self) -> u32 {
        self.classes.iter().filter(|class| **class != ZoneClass::Unusable).count() as u32
    }

    /// The number of whole zones that can be written.
    pub fn working_zones(&self) -> u32 {
        self.whole_zones() - (0..self.zones()).filter(|zone| self.is_dead(ZoneId(*zone))).count() as u32
    }

    /// The first zones of the zoned devices, if there is a conventional device.
    pub fn first_zones_beside(&self) -> &[u32] {
        if self.devices.conventional.is_some() { &self.first_zones } else { &[] }
    }

    /// The class of a zone.
    #[inline]
    pub fn class(&self, zone: ZoneId) -> ZoneClass {
        self.classes[zone.index()]
    }

    /// The zoned device of a zone, and the zone's number there; `None` for the conventional device.
    #[inline]
    fn zoned(&self, zone: ZoneId) -> Option<(usize, u32)> {
        if zone.0 < self.conventional_zones {
            return None;
        }
        let device = self.first_zones.partition_point(|&first| first <= zone.0) - 1;
        Some((device, zone.0 - self.first_zones[device]))
    }

    #[inline]
    fn lba(&self, zone: u32, block: u32) -> Lba {
        Lba(u64::from(zone) * u64::from(self.zone_blocks) + u64::from(block))
    }

    /// The write pointer of a sequential zone.
    pub fn write_pointer(&self, zone: ZoneId) -> u32 {
        self.zoned(zone).map_or(0, |(device, number)| self.devices.zoned[device].zone(number).write_pointer as u32)
    }

    /// The state of a zone of a zoned device.
    pub fn state(&self, zone: ZoneId) -> Option<ZoneState> {
        self.zoned(zone).map(|(device, number)| self.devices.zoned[device].zone(number).state)
    }

    /// True if a zone is read-only or offline.
    pub fn is_dead(&self, zone: ZoneId) -> bool {
        matches!(self.state(zone), Some(ZoneState::ReadOnly | ZoneState::Offline))
    }

    /// Reads blocks of a zone.
    #[inline]
    pub fn read(&mut self, zone: ZoneId, block: u32, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        match (self.zoned(zone), &mut self.devices.conventional) {
            (None, Some(device)) => {
                device.read(Lba(u64::from(zone.0) * u64::from(self.zone_blocks) + u64::from(block)), buffer, at)
            }
            (Some((device, number)), _) => {
                let first = self.lba(number, block);
                self.devices.zoned[device].read(first, buffer, at)
            }
            (None, None) => unreachable!("without a conventional device all zones are of zoned ones"),
        }
    }

    /// Writes blocks of a zone.
    #[inline]
    pub fn write(
        &mut self,
        zone: ZoneId,
        block: u32,
        buffer: &[u8],
        label: Label,
        at: Time,
    ) -> Result<Time, DeviceError> {
        let done = match (self.zoned(zone), &mut self.devices.conventional) {
            (None, Some(device)) => {
                self.is_conventional_dirty = true;
                device.write(Lba(u64::from(zone.0) * u64::from(self.zone_blocks) + u64::from(block)), buffer, label, at)
            }
            (Some((device, number)), _) => {
                let first = self.lba(number, block);
                self.is_zoned_dirty[device] = true;
                self.devices.zoned[device].write(first, buffer, label, at)
            }
            (None, None) => unreachable!("without a conventional device all zones are of zoned ones"),
        }?;
        self.sent.add(label, (buffer.len() / self.width) as u64);
        Ok(done)
    }

    /// Resets a sequential zone.
    pub fn reset(&mut self, zone: ZoneId, at: Time) -> Result<Time, DeviceError> {
        match self.zoned(zone) {
            Some((device, number)) => {
                self.is_zoned_dirty[device] = true;
                self.devices.zoned[device].reset(number, at)
            }
            None => Ok(at),
        }
    }

    /// Flushes all devices that were written since their last flush.
    pub fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        let mut done = at;
        for (device, is_dirty) in self.devices.zoned.iter_mut().zip(&mut self.is_zoned_dirty) {
            if *is_dirty {
                done = done.max(device.flush(at)?);
                *is_dirty = false;
            }
        }
        if let Some(device) = &mut self.devices.conventional
            && self.is_conventional_dirty
        {
            done = done.max(device.flush(at)?);
            self.is_conventional_dirty = false;
        }
        Ok(done)
    }

    /// True if any device has a timing model.
    pub fn is_timed(&self) -> bool {
        self.devices.conventional.as_ref().is_some_and(|device| device.is_timed())
            || self.devices.zoned.iter().any(|device| device.is_timed())
    }

    /// The blocks written to all devices.
    pub fn sent(&self) -> &Tally {
        &self.sent
    }

    /// The accounts of the devices.
    pub fn accounts(&self) -> Vec<Account> {
        let conventional = self.devices.conventional.iter().map(|device| device.account());
        conventional.chain(self.devices.zoned.iter().map(|device| device.account())).collect()
    }

    /// Returns the devices.
    pub fn into_devices(self) -> Devices {
        self.devices
    }
}
