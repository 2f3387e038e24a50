//! A ZNS drive: zones that are written in order and reset whole (NVMe Zoned Namespace Command Set Specification 1.1).
//!
//! | file | role |
//! |---|---|
//! | `settings`, `shape` | the options, and the geometry that they and an image's header define |
//! | `areas` | the blocks in random write areas, for the ledger |
//! | `machine` | the states of the zones, and the changes of a command |
//! | `flash` | the pages and erase blocks below the zones, and their timing |
//! | `system` | a zoned block device of the system instead of a drive |
//! | `image`, `format` | the persistent state of the zones on a disk, and its encoding |
//!
//! A command is checked against the state machine, its data is stored, its change is stored, and only then applied: a
//! failed command leaves the drive unchanged. Fault model: a zone wears out (its last erase takes it offline), or fails
//! on request ([`Zns::set_state`]). With an image, answered commands survive the program's death; flushed ones survive
//! a power cut, and no write pointer then exceeds the data.

mod areas;
mod flash;
mod format;
mod image;
mod machine;
mod settings;
mod shape;
mod system;

pub use settings::{KIND, ZnsSettings};
pub use shape::ZnsShape;
use system::open_system_device;
pub use system::{OpenSystemDevice, open_system_devices_with};

use super::block::{blocks_in, check_range};
use super::store::{Disk, FileDisk, ImageError, Memory};
use super::unit_map::UnitMap;
use super::wait_log::{Purpose, WaitLog};
use super::{Account, DeviceError, Lba, Zone, ZoneError, ZoneKind, ZoneState, ZonedDevice, ZonedShape};
use crate::label::{Label, Tally};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use areas::Areas;
use flash::Flash;
use image::Image;
use machine::{Action, Change, Machine, Record};

/// The storage of the blocks.
enum Media {
    Memory(Memory),
    Image(Box<Image>),
}

/// A ZNS drive.
pub struct Zns {
    shape: ZnsShape,
    machine: Machine,
    media: Media,
    flash: Flash,
    areas: Areas,
    /// Blocks written to zones without a random write area.
    received: Tally,
    read_blocks: u64,
    conventional_blocks: u64,
    resets: u64,
    finishes: u64,
    area_flushes: u64,
    worn_out_zones: u64,
}

impl Zns {
    /// A new drive in memory, with blocks of `width` bytes.
    ///
    /// # Panics
    ///
    /// If the settings have an image or a device: a bug of the caller.
    pub fn new(settings: &ZnsSettings, width: usize) -> Zns {
        assert!(settings.is_in_memory(), "only a drive in memory is new");
        let shape = settings.shape().expect("validated when the settings were parsed");
        let records = vec![Record::NEW; shape.zones as usize];
        Zns::of(shape, records, Media::Memory(Memory::new(width)), settings.is_timed)
    }

    /// The same; the waits of its operations are recorded, if there is a log.
    fn recording(mut self, log: Option<&WaitLog>) -> Zns {
        if let Some(log) = log {
            self.flash.record(log);
        }
        self
    }

    /// The map of these zones, the sequential ones.
    fn map<'r>(&self, zones: impl Iterator<Item = &'r Record> + Clone) -> UnitMap {
        UnitMap {
            unit: "zone",
            size: self.shape.capacity_blocks,
            written: zones.clone().map(|zone| zone.written as u32).collect(),
            live: Vec::new(),
            erases: zones.clone().map(|zone| zone.erases).collect(),
            states: zones.map(|zone| zone.state.name()).collect(),
        }
    }

    /// Creates the image of the settings, and opens it. An existing file is replaced only with `force`.
    ///
    /// # Panics
    ///
    /// If the settings have no image: a bug of the caller.
    pub fn create(settings: &ZnsSettings, force: bool) -> Result<Zns, ImageError> {
        let path = settings.image.as_deref().expect("the settings name an image");
        let length = Zns::image_bytes(&settings.shape()?);
        Zns::create_on(Box::new(FileDisk::create(path, length, force)?), settings)
    }

    /// Opens the image of the settings, with its own geometry; an option that contradicts it is an error.
    ///
    /// # Panics
    ///
    /// If the settings have no image: a bug of the caller.
    pub fn open(settings: &ZnsSettings) -> Result<Zns, ImageError> {
        let path = settings.image.as_deref().expect("the settings name an image");
        Zns::open_on(Box::new(FileDisk::open(path)?), settings)
    }

    /// The length of the image of a drive of this shape, in bytes; the file is sparse.
    pub fn image_bytes(shape: &ZnsShape) -> u64 {
        format::Layout::of(shape.zones).length(shape)
    }

    /// Creates the image of a new drive on a disk of zeros.
    pub fn create_on(disk: Box<dyn Disk>, settings: &ZnsSettings) -> Result<Zns, ImageError> {
        let shape = settings.shape()?;
        let (image, records) = Image::create(disk, &shape)?;
        Ok(Zns::of(shape, records, Media::Image(Box::new(image)), settings.is_timed))
    }

    /// Opens the image on a disk.
    pub fn open_on(disk: Box<dyn Disk>, settings: &ZnsSettings) -> Result<Zns, ImageError> {
        let shape = settings.of_image(disk.name(), Image::read_shape(&*disk)?)?;
        let name = disk.name().to_string();
        let (image, records) = Image::load(disk, &shape)?;
        let mut drive = Zns::of(shape, records, Media::Image(Box::new(image)), settings.is_timed);
        drive.find_areas().map_err(|error| ImageError::io(&name, "read")(std::io::Error::other(error)))?;
        Ok(drive)
    }

    /// Finds the blocks in random write areas: those that are not zeros.
    fn find_areas(&mut self) -> Result<(), DeviceError> {
        let width = BLOCK_BYTES as usize;
        for (zone, record) in (0..).zip(self.machine.records()).filter(|(_, record)| record.has_area) {
            let Media::Image(image) = &self.media else { break };
            let blocks = record.end(&self.shape) - record.written;
            let mut buffer = vec![0; blocks as usize * width];
            image.read(Lba(u64::from(zone) * self.shape.zone_blocks + record.written), &mut buffer)?;
            self.areas.found(zone, buffer.chunks_exact(width).map(|block| block.iter().any(|byte| *byte != 0)));
        }
        Ok(())
    }

    fn of(shape: ZnsShape, records: Vec<Record>, media: Media, is_timed: bool) -> Zns {
        Zns {
            flash: Flash::opened(&shape, is_timed, records.iter().skip(shape.conventional as usize)),
            machine: Machine::new(&shape, records),
            shape,
            media,
            areas: Areas::default(),
            received: Tally::default(),
            read_blocks: 0,
            conventional_blocks: 0,
            resets: 0,
            finishes: 0,
            area_flushes: 0,
            worn_out_zones: 0,
        }
    }

    /// The geometry, from its options or its image.
    pub fn drive_shape(&self) -> &ZnsShape {
        &self.shape
    }

    /// The number of erases of a zone.
    pub fn erases(&self, zone: u32) -> u32 {
        self.machine.record(zone).erases
    }

    /// Makes a zone read-only or offline, as a fault would: a seam for tests, and for experiments with the layers
    /// above. Offline is final. An image keeps it.
    pub fn set_state(&mut self, zone: u32, state: ZoneState) -> Result<(), DeviceError> {
        self.check_zone(zone)?;
        let Some(mut change) = self.machine.fail(zone, state)? else { return Ok(()) };
        let Record { written, has_area, .. } = *self.machine.record(zone);
        if !has_area {
            return self.make(&change);
        }
        if state == ZoneState::Offline {
            self.make(&change)?;
            self.areas.drop(zone);
            return Ok(());
        }
        // Readable blocks of the area are in the zone.
        change.record.written += self.areas.written(zone);
        self.make(&change)?;
        self.areas.finish(zone);
        self.flash.write(zone, written..change.record.written, Purpose::Host, Time::ZERO);
        Ok(())
    }

    /// The zone of `first`, and the block in it. Rejects a range beyond the end of the drive.
    #[inline]
    fn locate(&self, first: Lba, count: u64) -> Result<(u32, u64), DeviceError> {
        check_range(first, count, self.shape.blocks())?;
        let zone = first.0 >> self.shape.zone_blocks.trailing_zeros();
        Ok((zone as u32, first.0 & (self.shape.zone_blocks - 1)))
    }

    fn check_zone(&self, zone: u32) -> Result<(), DeviceError> {
        let (blocks, zone_blocks) = (self.shape.blocks(), self.shape.zone_blocks);
        check_range(Lba(u64::from(zone) * zone_blocks), zone_blocks, blocks)
    }

    /// Stores a change, and applies it.
    #[inline]
    fn make(&mut self, change: &Change) -> Result<(), DeviceError> {
        if let Media::Image(image) = &mut self.media {
            image.check_writable()?;
            if let Some(zone) = change.closes {
                image.keep(zone, &self.machine.closed(zone))?;
            }
            image.keep(change.zone, &change.record)?;
        }
        self.machine.apply(change);
        Ok(())
    }

    fn store(&mut self, first: Lba, buffer: &[u8]) -> Result<(), DeviceError> {
        match &mut self.media {
            Media::Memory(memory) => memory.write(first, buffer),
            Media::Image(image) => {
                image.check_writable()?;
                image.write(first, buffer)?;
            }
        }
        Ok(())
    }

    /// Writes to a zone with a random write area, which leads to a change of its write pointer, if any.
    fn write_area(
        &mut self,
        first: Lba,
        buffer: &[u8],
        label: Label,
        change: &Change,
        at: Time,
    ) -> Result<Time, DeviceError> {
        let zone = change.zone;
        let count = blocks_in(buffer.len(), self.block_width());
        let (from, old) = (first.0 & (self.shape.zone_blocks - 1), *self.machine.record(zone));
        self.store(first, buffer)?;
        if change.record != old {
            self.make(change)?;
        }
        let passed = old.written..change.record.written;
        self.areas.write(zone, from - old.written, count, label, passed.end - passed.start);
        Ok(self.flash.write(zone, passed, Purpose::of(label), at))
    }

    fn write_conventional(
        &mut self,
        zone: u32,
        first: Lba,
        buffer: &[u8],
        purpose: Purpose,
        at: Time,
    ) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.block_width());
        let from = first.0 & (self.shape.zone_blocks - 1);
        self.machine.check_conventional_write(zone, from, count)?;
        self.store(first, buffer)?;
        self.conventional_blocks += count;
        Ok(self.flash.pass_conventional(first.0..first.0 + count, Some(purpose), at))
    }
}

impl ZonedDevice for Zns {
    fn shape(&self) -> ZonedShape {
        let ZnsShape { zones, zone_blocks, max_open, max_active, .. } = self.shape;
        ZonedShape { zones, zone_blocks, max_open, max_active, areas: self.shape.areas() }
    }

    fn block_width(&self) -> usize {
        match &self.media {
            Media::Memory(memory) => memory.width(),
            Media::Image(_) => BLOCK_BYTES as usize,
        }
    }

    fn is_timed(&self) -> bool {
        self.flash.is_timed()
    }

    fn zone(&self, zone: u32) -> Zone {
        let Record { state, written, has_area, .. } = *self.machine.record(zone);
        if self.machine.is_conventional(zone) {
            let (kind, capacity) = (ZoneKind::Conventional, self.shape.zone_blocks);
            return Zone { kind, state, write_pointer: 0, capacity, has_area };
        }
        let capacity = self.shape.capacity_blocks;
        let write_pointer = if state == ZoneState::Full { capacity } else { written };
        Zone { kind: ZoneKind::Sequential, state, write_pointer, capacity, has_area }
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let width = self.block_width();
        let count = blocks_in(buffer.len(), width);
        let (zone, from) = self.locate(first, count)?;
        if count == 0 {
            return Ok(at);
        }
        self.machine.check_read(zone, from, count)?;
        let is_conventional = self.machine.is_conventional(zone);
        let record = *self.machine.record(zone);
        let stored = if is_conventional { count } else { record.end(&self.shape).saturating_sub(from).min(count) };
        let (below, beyond) = buffer.split_at_mut(stored as usize * width);
        match &self.media {
            Media::Memory(memory) => memory.read(first, below),
            Media::Image(_) if stored == 0 => {}
            Media::Image(image) => image.read(first, below)?,
        }
        beyond.fill(0);
        self.read_blocks += count;
        if is_conventional {
            return Ok(self.flash.pass_conventional(first.0..first.0 + count, None, at));
        }
        let is_full = record.state == ZoneState::Full;
        let programmed = if is_full { self.shape.capacity_blocks } else { record.written };
        Ok(self.flash.read(zone, from..from + stored, programmed, at))
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.block_width());
        let (zone, from) = self.locate(first, count)?;
        if count == 0 {
            return Ok(at);
        }
        let done = if self.machine.is_conventional(zone) {
            self.write_conventional(zone, first, buffer, Purpose::of(label), at)?
        } else {
            let change = self.machine.write(zone, from, count)?;
            if self.machine.record(zone).has_area {
                return self.write_area(first, buffer, label, &change, at);
            }
            if let Media::Image(image) = &mut self.media
                && image.is_below_durable(zone, from)
            {
                image.flush(self.machine.records())?;
            }
            self.store(first, buffer)?;
            self.make(&change)?;
            self.flash.write(zone, from..from + count, Purpose::of(label), at)
        };
        self.received.add(label, count);
        Ok(done)
    }

    fn open(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        if let Some(change) = self.machine.manage(zone, Action::Open)? {
            self.make(&change)?;
        }
        Ok(at)
    }

    fn open_with_area(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        let change = self.machine.manage(zone, Action::OpenWithArea)?.expect("a zone that gets an area has none");
        if let Media::Image(image) = &mut self.media {
            image.make_room_for_area(zone, self.machine.records())?;
        }
        self.make(&change)?;
        self.areas.open(zone);
        Ok(at)
    }

    fn flush_area(&mut self, zone: u32, end: u64, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        let change = self.machine.flush_area(zone, end)?;
        let old = self.machine.record(zone).written;
        self.make(&change)?;
        self.areas.pass(zone, end - old);
        if !change.record.has_area {
            self.areas.drop(zone);
        }
        self.area_flushes += 1;
        Ok(self.flash.write(zone, old..end, Purpose::Host, at))
    }

    fn close(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        if let Some(change) = self.machine.manage(zone, Action::Close)? {
            self.make(&change)?;
        }
        Ok(at)
    }

    fn finish(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        let Some(mut change) = self.machine.manage(zone, Action::Finish)? else { return Ok(at) };
        let Record { written, has_area, .. } = *self.machine.record(zone);
        if has_area {
            change.record.written += self.areas.written(zone);
        }
        self.make(&change)?;
        self.finishes += 1;
        if has_area {
            self.areas.finish(zone);
            self.flash.write(zone, written..change.record.written, Purpose::Host, at);
        }
        Ok(self.flash.finish(zone, change.record.written, at))
    }

    fn reset(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        let Some(mut change) = self.machine.manage(zone, Action::Reset)? else { return Ok(at) };
        let old = *self.machine.record(zone);
        let is_full = old.state == ZoneState::Full;
        if self.flash.needs_erase(old.written, is_full) {
            change.record = self.machine.erased(change.record);
        }
        self.make(&change)?;
        let first = Lba(u64::from(zone) * self.shape.zone_blocks);
        match &mut self.media {
            Media::Memory(memory) => memory.clear(first, self.shape.zone_blocks),
            Media::Image(image) => image.was_reset(zone),
        }
        if old.has_area {
            self.areas.drop(zone);
        }
        self.resets += 1;
        self.worn_out_zones += u64::from(change.record.state == ZoneState::Offline);
        Ok(self.flash.reset(zone, old.written, is_full, at))
    }

    fn take_offline(&mut self, zone: u32, at: Time) -> Result<Time, DeviceError> {
        self.check_zone(zone)?;
        match self.machine.record(zone).state {
            ZoneState::ReadOnly | ZoneState::Offline => self.set_state(zone, ZoneState::Offline)?,
            state => return Err(ZoneError::InvalidTransition { zone, action: "take offline", state }.into()),
        }
        Ok(at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        if let Media::Image(image) = &mut self.media {
            image.flush(self.machine.records())?;
        }
        Ok(at)
    }

    fn account(&self) -> Account {
        let sequential = self.machine.records().iter().skip(self.shape.conventional as usize);
        let (mut received, mut sent) = (self.received.clone(), self.received.clone());
        let areas = self.shape.areas();
        if areas.is_some() {
            self.areas.received().entries().for_each(|(label, count)| received.add(label, count));
            self.areas.sent().entries().for_each(|(label, count)| sent.add(label, count));
        }
        Account {
            station: KIND.name,
            received,
            sent,
            buffer: areas.map(|_| Box::new(self.areas.account())),
            read_blocks: self.read_blocks,
            events: vec![
                ("resets", self.resets),
                ("finishes", self.finishes),
                ("padded_blocks", self.flash.padded_blocks),
                ("dropped_blocks", self.flash.dropped_blocks),
                ("conventional_blocks", self.conventional_blocks),
                ("erased_unprogrammed_pages", self.flash.erased_unprogrammed_pages),
                ("worn_out_zones", self.worn_out_zones),
            ],
            map: Some(self.map(sequential.clone())),
            flash: Some(self.flash.account(sequential)),
            ..Account::default()
        }
    }
}

impl Drop for Zns {
    /// Flushes, so that a closed image is complete on another machine, too.
    fn drop(&mut self) {
        if let Media::Image(image) = &mut self.media {
            // The error cannot be reported here; flushed data is safe in any case.
            let _ = image.flush(self.machine.records());
        }
    }
}
