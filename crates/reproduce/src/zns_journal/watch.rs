//! The conventional device of a path, watched: into which of its zones the file system's journal is written.

use crate::ReproduceError;
use flashpath::device::conv::Conventional;
use flashpath::device::zns::Zns;
use flashpath::device::{Account, BlockDevice, DeviceError, Extent, Lba, STAMP_BYTES, ZonedDevice};
use flashpath::label::{Cause, Content, Label};
use flashpath::run::{Path, Stack};
use flashpath::time::Time;
use flashpath::translation::zoned::{Devices, DmZoned};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The zone of each journal write, in their order.
pub type JournalZones = Arc<Mutex<Vec<u32>>>;

/// Opens a path of dm-zoned in memory, with its conventional device watched.
pub fn open(path: &Path, seed: u64) -> Result<(Box<dyn BlockDevice>, JournalZones), ReproduceError> {
    let Stack::Zoned { settings, conventional: Some(conventional), zoned } = &path.stack else {
        return Err(ReproduceError::failed(format!("{} is not dm-zoned on a conventional device", path.text)));
    };
    let zoned: Vec<Box<dyn ZonedDevice>> =
        zoned.iter().map(|device| Box::new(Zns::new(device, STAMP_BYTES)) as Box<dyn ZonedDevice>).collect();
    let zone_blocks = zoned.first().map_or(1, |device| device.shape().zone_blocks);
    let zones = JournalZones::default();
    let watched =
        Watched { device: Conventional::new(conventional, STAMP_BYTES), zone_blocks, zones: Arc::clone(&zones) };
    let devices = Devices { conventional: Some(Box::new(watched)), zoned };
    let volume = DmZoned::create(devices, settings, seed).map_err(|error| ReproduceError::failed(error.to_string()))?;
    Ok((Box::new(volume), zones))
}

struct Watched {
    device: Conventional,
    zone_blocks: u64,
    zones: JournalZones,
}

impl BlockDevice for Watched {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn is_timed(&self) -> bool {
        self.device.is_timed()
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.read(first, buffer, at)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        if (label.cause, label.content) == (Cause::HostWrite, Content::Journal)
            && let Ok(mut zones) = self.zones.lock()
        {
            zones.push((first.0 / self.zone_blocks) as u32);
        }
        self.device.write(first, buffer, label, at)
    }

    fn discard(&mut self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.device.discard(first, blocks, at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.device.flush(at)
    }

    fn extent(&mut self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        self.device.extent(first, blocks)
    }

    fn work(&mut self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.device.work(now)
    }

    fn journal_is_at(&mut self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        self.device.journal_is_at(journal)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}
