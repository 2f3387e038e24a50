//! A volume as a block device that threads share.

use super::{Devices, Volume, ZonedSettings, ZonedVolumeError};
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Extent, Lba};
use crate::label::Label;
use crate::time::Time;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A volume. Its map, its zones and its devices are one state behind one lock.
pub struct DmZoned {
    blocks: u64,
    width: usize,
    is_timed: bool,
    volume: Mutex<Volume>,
}

impl DmZoned {
    /// Makes a new volume and opens it.
    pub fn create(devices: Devices, settings: &ZonedSettings, seed: u64) -> Result<DmZoned, ZonedVolumeError> {
        Ok(DmZoned::of(Volume::create(devices, settings, seed)?))
    }

    /// Opens a volume. A metadata set that is older than the other, or damaged, is made equal to it before this
    /// returns.
    ///
    /// Fails if both are damaged, if the devices do not belong to one volume, and if the map is inconsistent.
    pub fn open(devices: Devices, settings: &ZonedSettings) -> Result<DmZoned, ZonedVolumeError> {
        Ok(DmZoned::of(Volume::open(devices, settings)?))
    }

    fn of(volume: Volume) -> DmZoned {
        let (blocks, width, is_timed) = (volume.blocks(), volume.media.width, volume.media.is_timed());
        DmZoned { blocks, width, is_timed, volume: Mutex::new(volume) }
    }

    /// The status line that the kernel's device mapper prints for the same state.
    pub fn status(&self) -> String {
        self.volume().status()
    }

    /// The devices, in their current state: data that is not flushed is not durable.
    pub fn into_devices(self) -> Devices {
        self.volume.into_inner().unwrap_or_else(PoisonError::into_inner).media.into_devices()
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.volume.lock().expect("no thread panicked in dm-zoned")
    }
}

impl BlockDevice for DmZoned {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_width(&self) -> usize {
        self.width
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.volume().read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.volume().write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.volume().discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.volume().commit(at)
    }

    fn account(&self) -> Account {
        self.volume().account()
    }

    fn close(&self, at: Time) -> Result<Time, DeviceError> {
        self.volume().close(at)
    }
}

impl Abilities for DmZoned {
    /// No single device below: an address here differs from one there.
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }

    fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        self.volume().extent(first, blocks)
    }

    fn work(&self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.volume().background(now)
    }

    fn set_journal(&self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        self.volume().set_journals(journal)
    }

    fn make_portable(&self, at: Time) -> Result<Time, DeviceError> {
        self.volume().close(at)
    }
}
