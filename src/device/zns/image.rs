//! The persistent state of a drive's zones, on a disk.
//!
//! There are two zone tables. The *durable* one holds the state of the last flush; each of its blocks has two copies,
//! written in turn. The *running* one is written with every change, and is valid only within its epoch: a killed
//! program loses no answered command.
//!
//! After a power cut only the durable table is used, and it is correct: data is synced before the record that covers
//! it, and **blocks below a durable write pointer are not overwritten before a durable record makes the zone empty**.
//! So a reset zone that is written at once costs a flush in between.

use super::format::{
    self, BLOCK, Block, Damage, Layout, RECORDS_PER_BLOCK, decode_table_block, encode_durable_block, encode_epoch,
    encode_header, encode_record, encode_running_block,
};
use super::machine::Record;
use super::shape::ZnsShape;
use crate::device::store::{Disk, ImageError};
use crate::device::{DeviceError, Lba, ZoneState};
use crate::units::BLOCK_BYTES;
use std::io;
use zerocopy::IntoBytes;

/// No drive flushes this often: a larger number is damage.
const MOST_GENERATIONS: u64 = 1 << 60;

/// The zones of a drive on a disk.
pub(super) struct Image {
    disk: Box<dyn Disk>,
    layout: Layout,
    shape: ZnsShape,
    /// For each block of the durable table: its generation, its newest copy, and whether records have changed since.
    table: Vec<TablePlace>,
    /// The end of the blocks that may hold data of each zone, by its durable record.
    durable: Vec<u64>,
    /// Zones reset since the last flush: their space is freed once that is durable.
    resets: Vec<u32>,
    is_unsynced: bool,
    /// True after a failed sync: the durable state is unknown.
    is_lost: bool,
}

#[derive(Debug, Clone, Copy)]
struct TablePlace {
    generation: u64,
    copy: usize,
    is_changed: bool,
}

impl Image {
    /// Creates the image of a new drive on a disk of zeros that is long enough.
    pub fn create(disk: Box<dyn Disk>, shape: &ZnsShape) -> Result<(Image, Vec<Record>), ImageError> {
        let layout = Layout::of(shape.zones);
        let records = vec![Record::NEW; shape.zones as usize];
        check_length(&*disk, layout.length(shape))?;
        let name = disk.name().to_string();
        for block in 0..layout.table_blocks {
            let bytes = encode_durable_block(block, &records, 1);
            disk.write_at(layout.durable(0, block), &bytes).map_err(ImageError::io(&name, "write"))?;
        }
        // The header is last: without it there is no image.
        disk.sync()
            .and_then(|()| disk.write_at(0, &encode_header(shape)))
            .and_then(|()| disk.sync())
            .map_err(ImageError::io(&name, "write"))?;
        Image::load(disk, shape)
    }

    /// Reads the geometry of the drive on this disk.
    pub fn read_shape(disk: &dyn Disk) -> Result<ZnsShape, ImageError> {
        if disk.length() < BLOCK_BYTES {
            return Err(damaged(disk, Damage::short(disk.length(), BLOCK_BYTES)));
        }
        let mut block = [0; BLOCK];
        disk.read_at(0, &mut block).map_err(ImageError::io(disk.name(), "read"))?;
        let shape = format::decode_header(block).map_err(|damage| damaged(disk, damage))?;
        check_length(disk, Layout::of(shape.zones).length(&shape))?;
        Ok(shape)
    }

    /// Loads the last state of each zone, and continues from there.
    pub fn load(disk: Box<dyn Disk>, shape: &ZnsShape) -> Result<(Image, Vec<Record>), ImageError> {
        let layout = Layout::of(shape.zones);
        let name = disk.name().to_string();
        let epoch = disk.epoch();
        let is_running = epoch.is_some() && {
            let mut block = [0; BLOCK];
            disk.read_at(Layout::EPOCH, &mut block).map_err(ImageError::io(&name, "read"))?;
            format::decode_epoch(&block) == epoch
        };
        let (mut table, mut durable, mut records, mut resets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for block in 0..layout.table_blocks {
            let read = |offset| read_block(&*disk, offset);
            let copies = [read(layout.durable(0, block))?, read(layout.durable(1, block))?];
            let generations = copies.each_ref().map(format::generation_of);
            let (copy, generation) = match generations {
                [None, None] => return Err(damaged(&*disk, Damage::torn(block))),
                [first, second] if first >= second => (0, first),
                [_, second] => (1, second),
            };
            if generation.is_some_and(|generation| generation > MOST_GENERATIONS) {
                return Err(damaged(&*disk, Damage::generation(block, generation.unwrap_or(0))));
            }
            let running = if is_running { Some(read(layout.running(block))?) } else { None };
            let found = decode_table_block(block, &copies[copy], running.as_ref(), shape)
                .map_err(|damage| damaged(&*disk, damage))?;
            let is_changed = found.iter().any(|(kept, newest)| kept != newest);
            table.push(TablePlace { generation: generation.unwrap_or(0), copy, is_changed });
            let first = durable.len() as u32;
            let emptied = found.iter().zip(first..).filter(|((kept, newest), _)| newest.end(shape) < kept.end(shape));
            resets.extend(emptied.map(|(_, zone)| zone));
            durable.extend(found.iter().map(|(kept, _)| kept.end(shape)));
            records.extend(found.iter().map(|(_, newest)| without_power(*newest)));
        }
        // What was written behind an area without an answer is not there. No durable record covers it: one of another life
        // of the zone was replaced before this life began.
        for (zone, record) in (0..).zip(&records).filter(|(_, record)| record.has_area) {
            punch(&*disk, layout, shape, zone, record.end(shape)).map_err(ImageError::io(&name, "write"))?;
        }
        // The running table is completed before it is valid for this epoch.
        for block in 0..layout.table_blocks {
            disk.write_at(layout.running(block), &encode_running_block(block, &records))
                .map_err(ImageError::io(&name, "write"))?;
        }
        disk.write_at(Layout::EPOCH, &encode_epoch(epoch)).map_err(ImageError::io(&name, "write"))?;
        let image = Image { disk, layout, shape: *shape, table, durable, resets, is_unsynced: true, is_lost: false };
        Ok((image, records))
    }

    /// Reads the blocks from `first` on.
    pub fn read(&self, first: Lba, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let offset = self.layout.data() + first.0 * BLOCK_BYTES;
        self.disk.read_at(offset, buffer).map_err(|source| self.failed("read", first, source))
    }

    /// Writes the blocks from `first` on.
    pub fn write(&mut self, first: Lba, buffer: &[u8]) -> Result<(), DeviceError> {
        let offset = self.layout.data() + first.0 * BLOCK_BYTES;
        self.is_unsynced = true;
        self.disk.write_at(offset, buffer).map_err(|source| self.failed("write", first, source))
    }

    /// True if the blocks of a zone from `from` on must not be overwritten before a flush.
    #[inline]
    pub fn is_below_durable(&self, zone: u32, from: u64) -> bool {
        from < self.durable[zone as usize]
    }

    /// Makes an empty zone read as zeros, which then gets a random write area. Until that ends with the zone's life, no
    /// durable record is of another life of the zone.
    pub fn make_room_for_area(&mut self, zone: u32, records: &[Record]) -> Result<(), DeviceError> {
        if self.is_below_durable(zone, 0) || self.resets.contains(&zone) {
            self.flush(records)?;
        }
        self.check_writable()?;
        let first = Lba(u64::from(zone) * self.shape.zone_blocks);
        self.is_unsynced = true;
        punch(&*self.disk, self.layout, &self.shape, zone, 0)
            .map_err(|source| self.failed("make room for an area", first, source))
    }

    /// Fails after a failed sync: nothing may be changed any more.
    pub fn check_writable(&self) -> Result<(), DeviceError> {
        if self.is_lost {
            return Err(DeviceError::ReadOnly {
                what: self.disk.name().to_string(),
                why: "making it durable failed, and its content is unknown: open it again".to_string(),
            });
        }
        Ok(())
    }

    /// Stores the new state of a zone.
    pub fn keep(&mut self, zone: u32, record: &Record) -> Result<(), DeviceError> {
        self.is_unsynced = true;
        self.table[zone as usize / RECORDS_PER_BLOCK].is_changed = true;
        let bytes = encode_record(zone, record);
        let first = Lba(u64::from(zone) * self.shape.zone_blocks);
        self.disk
            .write_at(self.layout.running_record(zone), bytes.as_bytes())
            .map_err(|source| self.failed("keep the state of the zone", first, source))
    }

    /// Records that the space of a zone can be freed.
    pub fn was_reset(&mut self, zone: u32) {
        self.resets.push(zone);
    }

    /// Makes all written data durable, and then the records of the zones.
    pub fn flush(&mut self, records: &[Record]) -> Result<(), DeviceError> {
        self.check_writable()?;
        if !self.is_unsynced {
            return Ok(());
        }
        // After a failed write, the kernel marks its pages clean: a second sync would succeed without the data.
        self.try_flush(records).map_err(|source| {
            self.is_lost = true;
            DeviceError::Io { doing: format!("make {} durable", self.disk.name()), source }
        })?;
        self.is_unsynced = false;
        for zone in std::mem::take(&mut self.resets) {
            let end = records[zone as usize].end(&self.shape);
            let first = Lba(u64::from(zone) * self.shape.zone_blocks + end);
            punch(&*self.disk, self.layout, &self.shape, zone, end)
                .map_err(|source| self.failed("give back the room", first, source))?;
        }
        Ok(())
    }

    fn try_flush(&mut self, records: &[Record]) -> io::Result<()> {
        self.disk.sync()?;
        let mut is_changed = false;
        for (block, place) in self.table.iter().enumerate().filter(|(_, place)| place.is_changed) {
            let bytes = encode_durable_block(block as u64, records, place.generation + 1);
            self.disk.write_at(self.layout.durable(1 - place.copy, block as u64), &bytes)?;
            is_changed = true;
        }
        if !is_changed {
            return Ok(());
        }
        self.disk.sync()?;
        for (block, place) in self.table.iter_mut().enumerate().filter(|(_, place)| place.is_changed) {
            *place = TablePlace { generation: place.generation + 1, copy: 1 - place.copy, is_changed: false };
            let first = block * RECORDS_PER_BLOCK;
            let end = (first + RECORDS_PER_BLOCK).min(records.len());
            for (durable, record) in self.durable[first..end].iter_mut().zip(&records[first..end]) {
                *durable = record.end(&self.shape);
            }
        }
        Ok(())
    }

    fn failed(&self, doing: &str, first: Lba, source: io::Error) -> DeviceError {
        let (zone, within) = (first.0 / self.shape.zone_blocks, first.0 % self.shape.zone_blocks);
        DeviceError::Io { doing: format!("{doing}, block {within} of zone {zone} of {}", self.disk.name()), source }
    }
}

impl Damage {
    fn short(length: u64, needed: u64) -> Damage {
        Damage {
            field: "its length".to_string(),
            found: format!("{length} bytes"),
            expected: format!("at least {needed}"),
        }
    }

    fn generation(block: u64, generation: u64) -> Damage {
        Damage {
            field: format!("the generation of block {block} of the zone table"),
            found: generation.to_string(),
            expected: format!("at most {MOST_GENERATIONS}"),
        }
    }

    fn torn(block: u64) -> Damage {
        Damage {
            field: format!("block {block} of the zone table"),
            found: "torn in both copies".to_string(),
            expected: "a right checksum in one".to_string(),
        }
    }
}

/// Frees the space of a zone from block `from` on.
fn punch(disk: &dyn Disk, layout: Layout, shape: &ZnsShape, zone: u32, from: u64) -> io::Result<()> {
    let first = u64::from(zone) * shape.zone_blocks + from;
    disk.punch(layout.data() + first * BLOCK_BYTES, (shape.zone_blocks - from) * BLOCK_BYTES)
}

/// The state of a zone after a loss of power: open zones are closed, and empty ones are not active. Random write areas
/// stay, with what they hold.
fn without_power(record: Record) -> Record {
    let state = match record.state {
        ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed
            if record.written == 0 && !record.has_area =>
        {
            ZoneState::Empty
        }
        ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => ZoneState::Closed,
        state => state,
    };
    Record { state, ..record }
}

fn damaged(disk: &dyn Disk, damage: Damage) -> ImageError {
    let Damage { field, found, expected } = damage;
    ImageError::Field { image: disk.name().to_string(), field, found, expected }
}

fn check_length(disk: &dyn Disk, needed: u64) -> Result<(), ImageError> {
    if disk.length() < needed {
        return Err(damaged(disk, Damage::short(disk.length(), needed)));
    }
    Ok(())
}

fn read_block(disk: &dyn Disk, offset: u64) -> Result<Block, ImageError> {
    let mut block = [0; BLOCK];
    disk.read_at(offset, &mut block).map_err(ImageError::io(disk.name(), "read"))?;
    Ok(block)
}
