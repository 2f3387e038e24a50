//! A device that a file system owns, and whose counts the run may look at while the file system works: no gate of the
//! file system is entered for it. The file system's write requests to it are counted.

use super::accounts::Stored;
use super::requests::Requests;
use crate::device::{
    Abilities, Account, BlockDevice, DeviceError, Lba, Medium, Nvm, Survival, Zone, ZonedDevice, ZonedShape, blocks_in,
};
use crate::label::Label;
use crate::time::Time;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The second hold of a device.
#[derive(Clone)]
pub enum Watched {
    Blocks(Blocks),
    Zones(Zones),
    Memory(Memory),
    /// It stores nothing.
    Monitor,
}

impl Watched {
    /// Takes a device apart into what the file system gets, and the hold of the run. Write requests are merged up to
    /// `max_request` bytes.
    pub fn of(medium: Medium, max_request: u64) -> (Medium, Watched) {
        let requests = Arc::new(Requests::new(max_request));
        match medium {
            Medium::Blocks(device) => {
                let blocks = Blocks { device: device.into(), requests };
                (Medium::Blocks(Box::new(blocks.clone())), Watched::Blocks(blocks))
            }
            Medium::Zones(device) => {
                let zones = Zones { device: Arc::new(Mutex::new(device)), requests };
                (Medium::Zones(Box::new(zones.clone())), Watched::Zones(zones))
            }
            Medium::Memory(memory) => {
                let memory = Memory(memory.into());
                (Medium::Memory(Box::new(memory.clone())), Watched::Memory(memory))
            }
            Medium::Monitor(monitor) => (Medium::Monitor(monitor), Watched::Monitor),
        }
    }

    fn account(&self) -> Account {
        match self {
            Watched::Blocks(device) => device.account(),
            Watched::Zones(device) => device.account(),
            Watched::Memory(memory) => memory.account(),
            Watched::Monitor => Account::default(),
        }
    }

    /// What the media of all devices have stored since they were new.
    pub fn stored(devices: &[Watched]) -> Stored {
        let below = devices.iter().map(Watched::account).collect();
        Stored::of(&Account { below, ..Account::default() })
    }
}

/// A device of blocks with two holds.
#[derive(Clone)]
pub struct Blocks {
    device: Arc<dyn BlockDevice>,
    requests: Arc<Requests>,
}

impl BlockDevice for Blocks {
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
        self.requests.write(first, blocks_in(buffer.len(), self.block_width()));
        self.device.write(first, buffer, label, at)
    }

    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, hint: u8, at: Time) -> Result<Time, DeviceError> {
        self.requests.write(first, blocks_in(buffer.len(), self.block_width()));
        self.device.write_placed(first, buffer, label, hint, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.requests.end();
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.requests.end();
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.requests.in_account(self.device.account())
    }
}

impl Abilities for Blocks {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&*self.device)
    }

    fn bytes_behind(&self) -> u64 {
        self.device.bytes_behind()
    }
}

/// A device of zones with two holds.
#[derive(Clone)]
pub struct Zones {
    device: Arc<Mutex<Box<dyn ZonedDevice>>>,
    requests: Arc<Requests>,
}

impl Zones {
    fn device(&self) -> MutexGuard<'_, Box<dyn ZonedDevice>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ZonedDevice for Zones {
    fn shape(&self) -> ZonedShape {
        self.device().shape()
    }

    fn block_width(&self) -> usize {
        self.device().block_width()
    }

    fn is_timed(&self) -> bool {
        self.device().is_timed()
    }

    fn zone(&self, zone: u32) -> Zone {
        self.device().zone(zone)
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device().read(first, buffer, at)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let mut device = self.device();
        self.requests.write(first, blocks_in(buffer.len(), device.block_width()));
        device.write(first, buffer, label, at)
    }

    fn append(&mut self, zone: u32, buffer: &[u8], label: Label, at: Time) -> Result<(Lba, Time), DeviceError> {
        let mut device = self.device();
        let (first, done) = device.append(zone, buffer, label, at)?;
        self.requests.write(first, blocks_in(buffer.len(), device.block_width()));
        Ok((first, done))
    }

    fn open(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.device().open(zone, at)
    }

    fn open_with_area(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.device().open_with_area(zone, at)
    }

    fn flush_area(&mut self, zone: u32, end: u64, at: Time) -> Result<Time, DeviceError> {
        self.device().flush_area(zone, end, at)
    }

    fn close(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.device().close(zone, at)
    }

    fn finish(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.device().finish(zone, at)
    }

    fn reset(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.requests.end();
        self.device().reset(zone, at)
    }

    fn take_offline(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.device().take_offline(zone, at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.requests.end();
        self.device().flush(at)
    }

    fn account(&self) -> Account {
        self.requests.in_account(self.device().account())
    }
}

/// Memory with two holds.
#[derive(Clone)]
pub struct Memory(Arc<dyn Nvm>);

impl Nvm for Memory {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.0.read(at, into);
    }

    fn store(&self, at: u64, from: &[u8]) {
        self.0.store(at, from);
    }

    fn stand_for(&self, bytes: usize) {
        self.0.stand_for(bytes);
    }

    fn fence(&self) {
        self.0.fence();
    }

    fn stored_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        self.0.stored_by(at, bytes)
    }

    fn read_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        self.0.read_by(at, bytes)
    }

    fn survival(&self) -> Survival {
        self.0.survival()
    }

    fn is_timed(&self) -> bool {
        self.0.is_timed()
    }

    fn account(&self) -> Account {
        self.0.account()
    }
}
