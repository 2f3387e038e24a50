//! The bytes of an image. docs/stations/zns.md has a diagram.

use super::machine::Record;
use super::shape::{MOST_ZONES, ZnsShape};
use crate::crc;
use crate::device::ZoneState;
use crate::device::nand::Latencies;
use crate::units::BLOCK_BYTES;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const MAGIC: [u8; 8] = *b"FLASHZNS";
/// The version of an image of a drive without random write areas, and of one with.
const VERSIONS: [u32; 2] = [1, 2];
/// The alignment of the data.
const ALIGNMENT: u64 = 1 << 20;
const HEADER_FIELDS: usize = 124;
/// The number of records in a block of a zone table; the rest is its [`Trailer`].
pub(super) const RECORDS_PER_BLOCK: usize = 170;
pub(super) const BLOCK: usize = BLOCK_BYTES as usize;

/// A block of an image.
pub(super) type Block = [u8; BLOCK];

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: U32,
    zero: U32,
    zones: U32,
    conventional: U32,
    zone_blocks: U64,
    capacity_blocks: U64,
    max_open: U32,
    max_active: U32,
    page_bytes: U32,
    channels: U32,
    dies: U32,
    planes: U32,
    endurance: U32,
    zero_too: U32,
    read_ns: U64,
    program_ns: U64,
    erase_ns: U64,
    transfer_ns: U64,
    data_offset: U64,
    area_blocks: U32,
    area_flush_blocks: U32,
    max_areas: U32,
    rest: [u8; BLOCK - HEADER_FIELDS - 4],
    crc: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Epoch {
    epoch: [u8; 16],
    is_known: U32,
    crc: U32,
}

/// A record of a zone table. Its checksum is 0 in the durable table, whose blocks have one: the CRC over structures
/// that each end with their own CRC of the same kind is a constant, and would accept a torn block.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy)]
#[repr(C)]
pub(super) struct ZoneRecord {
    written: U64,
    zone: U32,
    erases: U32,
    state: u8,
    has_area: u8,
    zero: [u8; 2],
    crc: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct TableBlock {
    records: [ZoneRecord; RECORDS_PER_BLOCK],
    generation: U64,
    zero: U32,
    crc: U32,
}

const _: () = assert!(size_of::<Header>() == BLOCK && size_of::<TableBlock>() == BLOCK);
const _: () = assert!(size_of::<ZoneRecord>() == 24);

/// An invalid field of an image.
#[derive(Debug)]
pub(super) struct Damage {
    pub field: String,
    pub found: String,
    pub expected: String,
}

impl Damage {
    fn new(field: impl Into<String>, found: impl ToString, expected: impl ToString) -> Damage {
        Damage { field: field.into(), found: found.to_string(), expected: expected.to_string() }
    }
}

/// The positions of the parts of an image, in bytes from its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// The number of blocks in each of the three zone tables.
    pub table_blocks: u64,
}

impl Layout {
    /// Block 0 is the header.
    pub const EPOCH: u64 = BLOCK_BYTES;

    pub fn of(zones: u32) -> Layout {
        Layout { table_blocks: u64::from(zones).div_ceil(RECORDS_PER_BLOCK as u64) }
    }

    /// A block of one of the two durable tables.
    pub fn durable(&self, copy: usize, block: u64) -> u64 {
        (2 + copy as u64 * self.table_blocks + block) * BLOCK_BYTES
    }

    /// A block of the running table.
    pub fn running(&self, block: u64) -> u64 {
        self.durable(2, block)
    }

    /// A record of the running table.
    pub fn running_record(&self, zone: u32) -> u64 {
        let (block, within) = (zone as usize / RECORDS_PER_BLOCK, zone as usize % RECORDS_PER_BLOCK);
        self.running(block as u64) + (within * size_of::<ZoneRecord>()) as u64
    }

    /// The first byte of the first zone.
    pub fn data(&self) -> u64 {
        self.durable(3, 0).next_multiple_of(ALIGNMENT)
    }

    /// The length of the image in bytes.
    pub fn length(&self, shape: &ZnsShape) -> u64 {
        self.data() + shape.size_bytes()
    }
}

/// Encodes the header of an image of this shape.
pub(super) fn encode_header(shape: &ZnsShape) -> Block {
    let mut header = Header {
        magic: MAGIC,
        version: VERSIONS[usize::from(shape.area_blocks > 0)].into(),
        zero: 0.into(),
        zones: shape.zones.into(),
        conventional: shape.conventional.into(),
        zone_blocks: shape.zone_blocks.into(),
        capacity_blocks: shape.capacity_blocks.into(),
        max_open: shape.max_open.into(),
        max_active: shape.max_active.into(),
        page_bytes: shape.page_bytes.into(),
        channels: shape.channels.into(),
        dies: shape.dies.into(),
        planes: shape.planes.into(),
        endurance: shape.endurance.into(),
        zero_too: 0.into(),
        read_ns: shape.latencies.read_ns.into(),
        program_ns: shape.latencies.program_ns.into(),
        erase_ns: shape.latencies.erase_ns.into(),
        transfer_ns: shape.latencies.read_transfer_ns.into(),
        data_offset: Layout::of(shape.zones).data().into(),
        area_blocks: (shape.area_blocks as u32).into(),
        area_flush_blocks: (shape.area_flush_blocks as u32).into(),
        max_areas: shape.max_areas.into(),
        rest: [0; BLOCK - HEADER_FIELDS - 4],
        crc: 0.into(),
    };
    header.crc = checksum(header.as_bytes()).into();
    zerocopy::transmute!(header)
}

/// Decodes a header, and validates the shape.
pub(super) fn decode_header(block: Block) -> Result<ZnsShape, Damage> {
    let header: Header = zerocopy::transmute!(block);
    if header.magic != MAGIC {
        let found = header.magic.escape_ascii().to_string();
        return Err(Damage::new("the magic", found, "FLASHZNS, that of a ZNS image"));
    }
    if !VERSIONS.contains(&header.version.get()) {
        return Err(Damage::new("the version", header.version, "1 or 2"));
    }
    let crc = checksum(header.as_bytes());
    if header.crc.get() != crc {
        return Err(Damage::new(
            "the header's checksum",
            format!("{:#010x}", header.crc.get()),
            format!("{crc:#010x}"),
        ));
    }
    let shape = ZnsShape {
        zones: header.zones.get(),
        conventional: header.conventional.get(),
        zone_blocks: header.zone_blocks.get(),
        capacity_blocks: header.capacity_blocks.get(),
        max_open: header.max_open.get(),
        max_active: header.max_active.get(),
        area_blocks: u64::from(header.area_blocks.get()),
        area_flush_blocks: u64::from(header.area_flush_blocks.get()),
        max_areas: header.max_areas.get(),
        page_bytes: header.page_bytes.get(),
        channels: header.channels.get(),
        dies: header.dies.get(),
        planes: header.planes.get(),
        endurance: header.endurance.get(),
        latencies: Latencies::new(
            header.read_ns.get(),
            header.program_ns.get(),
            header.erase_ns.get(),
            header.transfer_ns.get(),
        ),
    };
    if (shape.area_blocks > 0) != (header.version.get() == VERSIONS[1]) {
        let expected = "an area in version 2, and none in version 1";
        return Err(Damage::new("the header's zrwa", format!("{} blocks of 4K", shape.area_blocks), expected));
    }
    if let Some(flaw) = shape.flaw() {
        return Err(Damage::new(format!("the header's {}", flaw.option), flaw.found, flaw.expected));
    }
    let latencies = [
        ("read", shape.latencies.read_ns),
        ("program", shape.latencies.program_ns),
        ("erase", shape.latencies.erase_ns),
        ("transfer", shape.latencies.read_transfer_ns),
    ];
    for (option, nanoseconds) in latencies {
        if nanoseconds > super::settings::MOST_NS {
            return Err(Damage::new(format!("the header's {option}"), format!("{nanoseconds} ns"), "at most 10 s"));
        }
    }
    let data_offset = Layout::of(shape.zones).data();
    if header.data_offset.get() != data_offset {
        return Err(Damage::new("the header's data offset", header.data_offset, data_offset));
    }
    Ok(shape)
}

/// Encodes the block with the epoch of the running table.
pub(super) fn encode_epoch(epoch: Option<[u8; 16]>) -> Block {
    let mut fields =
        Epoch { epoch: epoch.unwrap_or_default(), is_known: u32::from(epoch.is_some()).into(), crc: 0.into() };
    fields.crc = checksum(fields.as_bytes()).into();
    let mut block = [0; BLOCK];
    block[..size_of::<Epoch>()].copy_from_slice(fields.as_bytes());
    block
}

/// The epoch of the running table, if known.
pub(super) fn decode_epoch(block: &Block) -> Option<[u8; 16]> {
    let (fields, _) = Epoch::read_from_prefix(block).ok()?;
    let is_right = fields.crc.get() == checksum(fields.as_bytes()) && fields.is_known.get() == 1;
    is_right.then_some(fields.epoch)
}

fn number_of(state: ZoneState) -> u8 {
    // The numbers of a zone descriptor (section 3.4.2.2.3 of the specification).
    match state {
        ZoneState::Empty => 0x1,
        ZoneState::ImplicitlyOpen => 0x2,
        ZoneState::ExplicitlyOpen => 0x3,
        ZoneState::Closed => 0x4,
        ZoneState::ReadOnly => 0xd,
        ZoneState::Full => 0xe,
        ZoneState::Offline => 0xf,
    }
}

fn state_of(number: u8) -> Option<ZoneState> {
    Some(match number {
        0x1 => ZoneState::Empty,
        0x2 => ZoneState::ImplicitlyOpen,
        0x3 => ZoneState::ExplicitlyOpen,
        0x4 => ZoneState::Closed,
        0xd => ZoneState::ReadOnly,
        0xe => ZoneState::Full,
        0xf => ZoneState::Offline,
        _ => return None,
    })
}

/// Encodes a zone's record in the running table.
pub(super) fn encode_record(zone: u32, record: &Record) -> ZoneRecord {
    let mut bytes = record_of(zone, record);
    bytes.crc = checksum(bytes.as_bytes()).into();
    bytes
}

fn record_of(zone: u32, record: &Record) -> ZoneRecord {
    ZoneRecord {
        written: record.written.into(),
        zone: zone.into(),
        erases: record.erases.into(),
        state: number_of(record.state),
        has_area: u8::from(record.has_area),
        zero: [0; 2],
        crc: 0.into(),
    }
}

impl ZoneRecord {
    fn is_whole(&self) -> bool {
        self.crc.get() == checksum(self.as_bytes())
    }

    /// Decodes the record of `zone` of a drive of this shape.
    fn decode(&self, zone: u32, shape: &ZnsShape) -> Result<Record, Damage> {
        let damage = |field: &str, found: String, expected: String| {
            Err(Damage::new(format!("the {field} in the record of zone {zone}"), found, expected))
        };
        if self.zone.get() != zone {
            return damage("zone number", self.zone.to_string(), zone.to_string());
        }
        let Some(state) = state_of(self.state) else {
            return damage("state", format!("{:#x}", self.state), "0x1 to 0x4, 0xd, 0xe or 0xf".to_string());
        };
        let is_conventional = zone < shape.conventional;
        let written = self.written.get();
        let allowed = match state {
            _ if is_conventional => 0..=0,
            ZoneState::Empty => 0..=0,
            _ => 0..=shape.capacity_blocks,
        };
        if !allowed.contains(&written) {
            let expected = format!("{} to {} in a zone that is {}", allowed.start(), allowed.end(), state.name());
            return damage("write pointer", written.to_string(), expected);
        }
        if is_conventional && !matches!(state, ZoneState::Empty | ZoneState::ReadOnly | ZoneState::Offline) {
            let expected = "empty, read-only or offline, as the zone is conventional";
            return damage("state", state.name().to_string(), expected.to_string());
        }
        let can_have_area = shape.area_blocks > 0 && !is_conventional && written < shape.capacity_blocks;
        let has_area = match (self.has_area, state) {
            (0, _) => false,
            (1, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed) if can_have_area => true,
            (found, _) => {
                let expected = "0, or 1 in an open or closed zone of a drive with such areas";
                return damage("random write area", found.to_string(), expected.to_string());
            }
        };
        Ok(Record { state, written, has_area, erases: self.erases.get() })
    }
}

/// Encodes a block of the durable table.
pub(super) fn encode_durable_block(block: u64, records: &[Record], generation: u64) -> Block {
    let mut bytes = table_block(block, records, record_of);
    bytes.generation = generation.into();
    bytes.crc = checksum(bytes.as_bytes()).into();
    zerocopy::transmute!(bytes)
}

/// Encodes a block of the running table, which has neither a generation nor a checksum.
pub(super) fn encode_running_block(block: u64, records: &[Record]) -> Block {
    zerocopy::transmute!(table_block(block, records, encode_record))
}

fn table_block(block: u64, records: &[Record], encode: fn(u32, &Record) -> ZoneRecord) -> TableBlock {
    let mut bytes = TableBlock::new_zeroed();
    let first = block as usize * RECORDS_PER_BLOCK;
    for (slot, zone) in bytes.records.iter_mut().zip(first..records.len()) {
        *slot = encode(zone as u32, &records[zone]);
    }
    bytes
}

/// The generation of a block of a durable zone table; `None` if it is torn.
pub(super) fn generation_of(block: &Block) -> Option<u64> {
    let bytes = TableBlock::ref_from_bytes(block).ok()?;
    (bytes.crc.get() == checksum(block)).then(|| bytes.generation.get())
}

/// Decodes the records of a block of the durable table. A valid record of the running table replaces each.
pub(super) fn decode_table_block(
    number: u64,
    durable: &Block,
    running: Option<&Block>,
    shape: &ZnsShape,
) -> Result<Vec<(Record, Record)>, Damage> {
    let durable = table_of(durable);
    let running = running.map(table_of);
    let first = number as usize * RECORDS_PER_BLOCK;
    let zones = (shape.zones as usize - first).min(RECORDS_PER_BLOCK);
    (0..zones)
        .map(|slot| {
            let zone = (first + slot) as u32;
            let kept = durable.records[slot].decode(zone, shape)?;
            let newest = match running.map(|block| &block.records[slot]) {
                Some(record) if record.is_whole() => record.decode(zone, shape)?,
                _ => kept,
            };
            Ok((kept, newest))
        })
        .collect()
}

fn table_of(block: &Block) -> &TableBlock {
    zerocopy::transmute_ref!(block)
}

/// CRC-32C of a structure whose last four bytes are the checksum.
fn checksum(bytes: &[u8]) -> u32 {
    crc::crc32c(&bytes[..bytes.len() - 4])
}

const _: () = assert!(MOST_ZONES <= u32::MAX as u64);
