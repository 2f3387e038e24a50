//! Observes the conventional device of a path: the zones to which the file system's journal is written.

use crate::ReproduceError;
use flashpath::device::station::StationError;
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba};
use flashpath::label::{Cause, Content, Label};
use flashpath::run::{Path, Payload};
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned, ZonedSettings};
use std::sync::{Arc, Mutex};

/// The zone of each journal write, in order.
pub type JournalZones = Arc<Mutex<Vec<u32>>>;

/// Opens a path of dm-zoned in memory, with its conventional device observed.
pub fn open(path: &Path, seed: u64) -> Result<(Box<dyn BlockDevice>, JournalZones), ReproduceError> {
    let failed = |error: StationError| ReproduceError::failed(error.to_string());
    let wrong = || ReproduceError::failed(format!("{} is not dm-zoned on a conventional device", path.text));
    let node = path.device().ok_or_else(wrong)?;
    let settings = node.settings::<ZonedSettings>().ok_or_else(wrong)?;
    let mut devices = Devices::of(node.open_below(Payload::Stamps, seed).map_err(failed)?);
    let zone_blocks = devices.zoned.first().map_or(1, |device| device.shape().zone_blocks);
    let zones = JournalZones::default();
    let device = devices.conventional.take().ok_or_else(wrong)?;
    devices.conventional = Some(Box::new(Observed { device, zone_blocks, zones: Arc::clone(&zones) }));
    let volume = DmZoned::create(devices, settings, seed).map_err(|error| ReproduceError::failed(error.to_string()))?;
    Ok((Box::new(volume), zones))
}

struct Observed {
    device: Box<dyn BlockDevice>,
    zone_blocks: u64,
    zones: JournalZones,
}

impl BlockDevice for Observed {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        if (label.cause, label.content) == (Cause::HostWrite, Content::Journal)
            && let Ok(mut zones) = self.zones.lock()
        {
            zones.push((first.0 / self.zone_blocks) as u32);
        }
        self.device.write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

impl Abilities for Observed {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&self.device)
    }
}
