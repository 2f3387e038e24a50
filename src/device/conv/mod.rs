//! A conventional device: blocks that can be overwritten in any order.
//!
//! | file | role |
//! |---|---|
//! | `settings` | the options of `conv` |
//! | `service` | the timing model |
//! | `under_way` | requests for the same blocks of an image, one after another |
//!
//! Requests of an image run at once unless one of them writes a block that the other touches. The only other lock held across
//! I/O is that of a flush, against another flush. An image is raw: the device's bytes, and nothing else. A flush makes the
//! image durable (fdatasync). Its length need be no multiple of a block: the bytes behind the last one are not the device's,
//! but a file system of smaller blocks may have some of them ([`Abilities::bytes_behind`]). The flash in the drive and its translation layer are not modelled here.

mod service;
mod settings;
mod under_way;

pub use service::{Service, ServiceTimes};
pub use settings::{ConvFtl, ConvSettings, KIND};

use super::block::{blocks_in, check_range};
use super::store::{Disk, FileDisk, ImageError, Memory, Store};
use super::wait_log::{Purpose, WaitLog};
use super::{Abilities, Account, BlockDevice, DeviceError, Extent, Lba};
use crate::label::{Label, Tally};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use under_way::{Turn, UnderWay};

/// Code that holds one of the locks does not panic.
const UNBROKEN: &str = "no thread panicked in conv";

/// A conventional device.
pub struct Conventional {
    store: Store,
    blocks: u64,
    /// Bytes of the image behind its last block.
    bytes_behind: u64,
    service: Option<Mutex<Service>>,
    counts: Mutex<Counts>,
    /// The requests of an image. Memory locks its blocks itself.
    under_way: Option<UnderWay>,
    /// True after a failed sync: the durable state is unknown.
    is_lost: AtomicBool,
    /// Held during a sync. Of two concurrent syncs only one would get an error.
    syncing: Mutex<()>,
}

#[derive(Default)]
struct Counts {
    received: Tally,
    read_blocks: u64,
    discarded_blocks: u64,
    flushes: u64,
}

impl Conventional {
    /// A device in memory, with blocks of `width` bytes; an image in the settings is ignored.
    pub fn new(settings: &ConvSettings, width: usize) -> Conventional {
        Conventional::on(Store::Memory(Memory::new(width)), settings.blocks(), settings.times)
    }

    /// A device in memory without a timing model, with blocks of `width` bytes.
    pub fn in_memory(blocks: u64, width: usize) -> Conventional {
        Conventional::on(Store::Memory(Memory::new(width)), blocks, None)
    }

    /// Creates the image of the settings, with their size, and opens it. An existing file is replaced only with
    /// `force`. A block device of the system keeps its size.
    ///
    /// # Panics
    ///
    /// If the settings have no image: a bug of the caller.
    pub fn create(settings: &ConvSettings, force: bool) -> Result<Conventional, ImageError> {
        let path = settings.image.as_deref().expect("the settings name an image");
        let disk = FileDisk::create(path, settings.size_bytes, force)?;
        Conventional::open_on(Box::new(disk), settings)
    }

    /// Opens the image of the settings, or a block device of the system. Its size is the device's; another `size` in
    /// the settings is an error.
    ///
    /// # Panics
    ///
    /// If the settings have no image: a bug of the caller.
    pub fn open(settings: &ConvSettings) -> Result<Conventional, ImageError> {
        let path = settings.image.as_deref().expect("the settings name an image");
        Conventional::open_on(Box::new(FileDisk::open(path)?), settings)
    }

    /// Opens the image that is the whole of a disk; otherwise as [`open`](Self::open).
    pub fn open_on(disk: Box<dyn Disk>, settings: &ConvSettings) -> Result<Conventional, ImageError> {
        let (length, name) = (disk.length(), disk.name());
        if length < BLOCK_BYTES {
            return Err(ImageError::Field {
                image: name.to_string(),
                field: "its length".to_string(),
                found: format!("{length} bytes"),
                expected: format!("one or more blocks of {BLOCK_BYTES}"),
            });
        }
        settings.check_size(name, length)?;
        let device = Conventional::on(Store::Disk(disk), length / BLOCK_BYTES, settings.times);
        Ok(Conventional { bytes_behind: length % BLOCK_BYTES, ..device })
    }

    fn on(store: Store, blocks: u64, times: Option<ServiceTimes>) -> Conventional {
        Conventional {
            under_way: matches!(store, Store::Disk(_)).then(UnderWay::default),
            store,
            blocks,
            bytes_behind: 0,
            service: times.map(|times| Mutex::new(Service::new(times))),
            counts: Mutex::default(),
            is_lost: AtomicBool::new(false),
            syncing: Mutex::default(),
        }
    }

    /// The same, which records the waits of its requests, if there is a log.
    fn recording(self, log: Option<&WaitLog>) -> Conventional {
        let record = |service: Mutex<Service>| {
            let service = service.into_inner().expect(UNBROKEN);
            Mutex::new(match log {
                Some(log) => service.recording(log.clone()),
                None => service,
            })
        };
        Conventional { service: self.service.map(record), ..self }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect(UNBROKEN)
    }

    /// The completion time of the service that `ask` requests.
    fn served(&self, at: Time, ask: impl FnOnce(&mut Service) -> Time) -> Time {
        self.service.as_ref().map_or(at, |service| ask(&mut service.lock().expect(UNBROKEN)))
    }

    fn begin(&self, first: Lba, blocks: u64, is_write: bool) -> Option<Turn<'_>> {
        self.under_way.as_ref().map(|under_way| under_way.begin(first, blocks, is_write))
    }

    /// Blocks that can be read and written: the last one may be a part.
    fn reachable_blocks(&self) -> u64 {
        self.blocks + u64::from(self.bytes_behind > 0)
    }

    /// The bytes of a buffer for blocks from `first` on that the image has.
    fn stored_bytes(&self, first: Lba, bytes: usize) -> usize {
        match self.bytes_behind {
            0 => bytes,
            behind => bytes.min((self.blocks.saturating_sub(first.0) * BLOCK_BYTES + behind) as usize),
        }
    }

    fn check_writable(&self) -> Result<(), DeviceError> {
        if self.is_lost.load(Relaxed) {
            return Err(DeviceError::ReadOnly {
                what: "the image of conv".to_string(),
                why: "making it durable failed, and its content is unknown: open it again".to_string(),
            });
        }
        Ok(())
    }
}

impl BlockDevice for Conventional {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_width(&self) -> usize {
        self.store.width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.store.width());
        check_range(first, count, self.reachable_blocks())?;
        let turn = self.begin(first, count, false);
        let (stored, behind) = buffer.split_at_mut(self.stored_bytes(first, buffer.len()));
        self.store.read(first, stored)?;
        behind.fill(0);
        drop(turn);
        self.counts().read_blocks += count;
        Ok(self.served(at, |service| service.read(first, count, at)))
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.store.width());
        check_range(first, count, self.reachable_blocks())?;
        self.check_writable()?;
        let (stored, behind) = buffer.split_at(self.stored_bytes(first, buffer.len()));
        if behind.iter().any(|byte| *byte != 0) {
            return Err(DeviceError::BeyondEnd { first, count, blocks: self.blocks });
        }
        let turn = self.begin(first, count, true);
        self.store.write(first, stored)?;
        drop(turn);
        self.counts().received.add(label, count);
        Ok(self.served(at, |service| service.write(count, Purpose::of(label), at)))
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        self.check_writable()?;
        let turn = self.begin(first, blocks, true);
        self.store.clear(first, blocks)?;
        drop(turn);
        self.counts().discarded_blocks += blocks;
        Ok(at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        let _alone = self.syncing.lock().expect(UNBROKEN);
        self.check_writable()?;
        // After a failed write, the kernel marks its pages clean: a second sync would succeed without the data.
        self.store.sync().inspect_err(|_| self.is_lost.store(true, Relaxed))?;
        self.counts().flushes += 1;
        Ok(at)
    }

    fn account(&self) -> Account {
        let counts = self.counts();
        Account {
            station: KIND.name,
            received: counts.received.clone(),
            sent: counts.received.clone(),
            read_blocks: counts.read_blocks,
            events: vec![("discarded_blocks", counts.discarded_blocks), ("flushes", counts.flushes)],
            ..Account::default()
        }
    }
}

impl Abilities for Conventional {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }

    fn bytes_behind(&self) -> u64 {
        self.bytes_behind
    }

    fn is_timed(&self) -> bool {
        self.service.is_some()
    }

    fn write_behind(&self, bytes: u64) -> bool {
        self.store.write_behind(bytes)
    }

    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        self.store.extent(first, blocks)
    }
}
