//! The devices below, as one row of zones.
//!
//! Zones are counted over all devices: first the conventional device's, as if it had some, then those of each zoned
//! device. A last part of the conventional device that is no whole zone is counted and not used.

use super::error::ZonedVolumeError;
use crate::device::{Account, BlockDevice, DeviceError, Lba, ZoneKind, ZoneState, ZonedDevice};
use crate::label::{Label, Tally};
use crate::time::Time;

/// The devices of a volume.
pub struct Devices {
    /// The conventional device, whose zones are the cache; none if the zoned one has conventional zones.
    pub conventional: Option<Box<dyn BlockDevice>>,
    /// The zoned devices: one at least.
    pub zoned: Vec<Box<dyn ZonedDevice>>,
}

/// A zone, counted over all devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub u32);

impl ZoneId {
    /// In the map: no zone.
    pub const NONE: ZoneId = ZoneId(u32::MAX);

    /// The zone, if there is one.
    #[inline]
    pub fn some(self) -> Option<ZoneId> {
        (self != ZoneId::NONE).then_some(self)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a zone is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneClass {
    /// On the conventional device.
    Cache,
    /// A conventional zone of a zoned device ("random" in the kernel's words).
    Random,
    /// A sequential zone.
    Sequential,
    /// A part of a zone: not used.
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

    /// Whether it can be written anywhere.
    #[inline]
    pub fn is_conventional(self) -> bool {
        matches!(self, ZoneClass::Cache | ZoneClass::Random)
    }
}

/// The devices of a volume, as one row of zones.
pub struct Media {
    devices: Devices,
    /// Blocks of a zone.
    pub zone_blocks: u32,
    /// What each zone is good for.
    pub classes: Vec<ZoneClass>,
    /// Zones of the conventional device.
    conventional_zones: u32,
    /// The first zone of each zoned device.
    first_zones: Vec<u32>,
    /// Bytes of a buffer that are one block.
    pub width: usize,
    sent: Tally,
    /// Whether anything was done since the last flush: to the conventional device, and to each zoned one.
    is_conventional_dirty: bool,
    is_zoned_dirty: Vec<bool>,
}

impl Media {
    /// Refuses devices that cannot be joined.
    pub fn new(devices: Devices) -> Result<Media, ZonedVolumeError> {
        let unfit = |reason: String| Err(ZonedVolumeError::Unfit(reason));
        let Some(first) = devices.zoned.first() else {
            return unfit("dm-zoned needs a zoned device: write +zns: behind the conventional one".to_string());
        };
        let (zone_blocks, width) = (first.shape().zone_blocks, first.block_width());
        // The kernel's bound on a chunk, and what 32 bits of the map can name.
        if !zone_blocks.is_power_of_two() || !(8..=1 << 30).contains(&zone_blocks) {
            return unfit(format!("zones have {zone_blocks} blocks, and a power of two from 8 would be right"));
        }
        let mut classes = Vec::new();
        if let Some(device) = &devices.conventional {
            if device.block_width() != width {
                return unfit(
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
                return unfit(format!(
                    "a zone has {zone_blocks} blocks on one device and {} on another: give all the same zone=",
                    shape.zone_blocks
                ));
            }
            first_zones.push(classes.len() as u32);
            for number in 0..shape.zones {
                let zone = device.zone(number);
                if zone.capacity != zone_blocks && zone.state != ZoneState::Offline {
                    return unfit(format!(
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
            return unfit(format!("there are {} zones, and 32 bits have to name them", classes.len()));
        }
        let zone_blocks = zone_blocks as u32;
        // What was done before this is not known.
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

    /// Zones of all devices.
    pub fn zones(&self) -> u32 {
        self.classes.len() as u32
    }

    /// The zones that are whole, whether they work or not.
    pub fn whole_zones(&self) -> u32 {
        self.classes.iter().filter(|class| **class != ZoneClass::Unusable).count() as u32
    }

    /// The whole zones that can be written.
    pub fn working_zones(&self) -> u32 {
        self.whole_zones() - (0..self.zones()).filter(|zone| self.is_dead(ZoneId(*zone))).count() as u32
    }

    /// The first zones of the zoned devices, if there is a conventional one beside them.
    pub fn first_zones_beside(&self) -> &[u32] {
        if self.devices.conventional.is_some() { &self.first_zones } else { &[] }
    }

    /// The class of a zone.
    #[inline]
    pub fn class(&self, zone: ZoneId) -> ZoneClass {
        self.classes[zone.index()]
    }

    /// The zoned device of a zone, and the zone's number there; `None` on the conventional device.
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

    /// Whether a zone has become read-only or offline.
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
        self.sent.add(label.cause, label.content, (buffer.len() / self.width) as u64);
        Ok(done)
    }

    /// Makes a sequential zone empty.
    pub fn reset(&mut self, zone: ZoneId, at: Time) -> Result<Time, DeviceError> {
        match self.zoned(zone) {
            Some((device, number)) => {
                self.is_zoned_dirty[device] = true;
                self.devices.zoned[device].reset(number, at)
            }
            None => Ok(at),
        }
    }

    /// Makes durable what all devices were given. One that was given nothing since the last time is not asked.
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

    /// Whether any device has a timing model.
    pub fn is_timed(&self) -> bool {
        self.devices.conventional.as_ref().is_some_and(|device| device.is_timed())
            || self.devices.zoned.iter().any(|device| device.is_timed())
    }

    /// What was written to all devices.
    pub fn sent(&self) -> &Tally {
        &self.sent
    }

    /// What the devices have counted.
    pub fn accounts(&self) -> Vec<Account> {
        let conventional = self.devices.conventional.iter().map(|device| device.account());
        conventional.chain(self.devices.zoned.iter().map(|device| device.account())).collect()
    }

    /// The devices again.
    pub fn into_devices(self) -> Devices {
        self.devices
    }
}
