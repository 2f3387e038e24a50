//! The structures of a region. All numbers are little-endian; each structure has a CRC-32C of itself, with its field as zero.
//!
//! ```text
//! 0        superblock A    magic, version, state, UUIDs, partitions, slots, hash, generation, number of the mount
//! 4096     superblock B    the same: one of the two is whole at any time
//! 8192     commits         2 records of 1 KiB, written by turns: magic, generation, transaction, cut of each partition
//! 12288    checkpoints     2 records of 1 KiB, written by turns: magic, generation, transaction, head of each partition
//! 16384    partition 0     slots x 64 bytes of headers | slots x block of data
//!          partition 1 ...
//! ```
//!
//! A superblock:
//!
//! ```text
//! 0  magic       4  CRC            8  version: 2       12 in use      16 UUID (16)      32 UUID of the volume (16)
//! 48 partitions  52 hash           56 slots (8)        64 block       68 bytes of data  72 sequence (8)
//! 80 generation (8)                88 next transaction 92 zero        96 number of the volume's mount (8)
//! ```
//!
//! Version 1 has no number of a mount, and zeros there.
//!
//! A slot's header is apart from its data, so that the data is aligned to blocks:
//!
//! ```text
//! 0  magic      4  CRC of header and data    8  index    16  block    24  version
//! 32 transaction    36 kind    40 generation    48 bytes of data    52 ... zero
//! ```
//!
//! A *generation* is the time between two moments at which the region was empty: slots from an earlier one
//! are not taken for anything.

use super::ring::Kept;
use crate::crc;
use crate::device::nvm::{LINE_BYTES, Nvm};
use crate::fs::ext::format::bytes::{le32, le64, put};
use crate::fs::ext::format::checksum::flipped_bit;
use crate::fs::ext::format::mount_number::MountNumber;
use crate::fs::ext::journal::TransactionId;
use std::ops::{Range, RangeInclusive};

pub const SUPERBLOCKS: [u64; 2] = [0, 4096];
const COMMITS: u64 = 8192;
const CHECKPOINTS: u64 = 12288;
const PARTITIONS: u64 = 16384;
/// Two records of a kind are written by turns: while one is written, the other is whole.
const RECORD_BYTES: u64 = 1024;
/// The most partitions: their cuts fit into a record.
pub const MOST_PARTITIONS: u64 = 64;

const SUPERBLOCK_MAGIC: u32 = 0x4a_6d_76_6e;
const COMMIT_MAGIC: u32 = 0x54_6d_76_6e;
const CHECKPOINT_MAGIC: u32 = 0x43_6d_76_6e;
const SLOT_MAGIC: u32 = 0x53_6d_76_6e;
const VERSION: u32 = 2;
/// The versions that are read.
const VERSIONS: RangeInclusive<u32> = 1..=VERSION;

/// The rule that gives a block its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// Its number modulo the number of partitions, as the paper has it.
    Modulo,
    /// Multiplicative (Knuth, TAOCP 6.4): strided numbers do not fall on one partition.
    Multiplicative,
    /// The same of its extent of [`EXTENT`] blocks: neighbours go home in one write.
    Extents,
}

/// Blocks of an extent, for [`Hash::Extents`].
const EXTENT: u64 = 64;

impl Hash {
    /// As a superblock has it.
    fn code(self) -> u32 {
        match self {
            Hash::Modulo => 0,
            Hash::Multiplicative => 1,
            Hash::Extents => 2,
        }
    }

    fn of(code: u32) -> Option<Hash> {
        [Hash::Modulo, Hash::Multiplicative, Hash::Extents].into_iter().find(|hash| hash.code() == code)
    }
}

/// The shape of a region: where things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub partitions: u32,
    /// Slots of each partition.
    pub slots: u64,
    pub hash: Hash,
    /// Bytes of a block on the volume, and of its data in a slot: fewer if stamps stand for blocks.
    pub block_bytes: u32,
    pub width: u32,
}

impl Shape {
    /// So many partitions in a region of so many bytes.
    pub fn of(bytes: u64, partitions: u32, hash: Hash, block_bytes: usize, width: usize) -> Shape {
        let slot = (LINE_BYTES + block_bytes) as u64;
        let slots = bytes.saturating_sub(PARTITIONS) / slot / u64::from(partitions);
        Shape { partitions, slots, hash, block_bytes: block_bytes as u32, width: width as u32 }
    }

    /// Bytes of the region that are used.
    pub fn bytes(&self) -> u64 {
        self.partition(self.partitions)
    }

    fn partition(&self, number: u32) -> u64 {
        // Data of stamps is short, and padded to a line.
        let data = u64::from(self.width).next_multiple_of(LINE_BYTES as u64);
        PARTITIONS + u64::from(number) * self.slots * (LINE_BYTES as u64 + data)
    }

    /// The place of a slot's header.
    pub fn header(&self, partition: u32, slot: u64) -> u64 {
        self.partition(partition) + slot * LINE_BYTES as u64
    }

    /// The place of a slot's data.
    pub fn data(&self, partition: u32, slot: u64) -> u64 {
        let data = u64::from(self.width).next_multiple_of(LINE_BYTES as u64);
        self.partition(partition) + self.slots * LINE_BYTES as u64 + slot * data
    }

    /// The bytes of a slot with `data_bytes` of data: header and data, where blocks have all their bytes.
    pub fn bytes_of_slot(&self, partition: u32, slot: u64, data_bytes: u64) -> [Range<u64>; 2] {
        let whole = Shape { width: self.block_bytes, ..*self };
        let (header, data) = (whole.header(partition, slot), whole.data(partition, slot));
        [header..header + LINE_BYTES as u64, data..data + data_bytes]
    }

    /// The partition of a block.
    pub fn partition_of(&self, block: u64) -> u32 {
        let number = match self.hash {
            Hash::Modulo => block,
            Hash::Multiplicative => block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32,
            Hash::Extents => (block / EXTENT).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32,
        };
        (number % u64::from(self.partitions)) as u32
    }
}

/// A region's superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub shape: Shape,
    /// The greater one of two is the newer.
    pub sequence: u64,
    pub generation: u64,
    pub region: [u8; 16],
    pub volume: [u8; 16],
    /// It may hold transactions that are not home.
    pub is_in_use: bool,
    /// The next transaction's number when this was written.
    pub next: u32,
    /// The volume's mount that uses it, or has used it last.
    pub mount: MountNumber,
}

impl Superblock {
    /// That of a region which a volume begins to use: a new one, or one that was found.
    pub fn in_use(
        before: Option<&Superblock>,
        shape: Shape,
        (region, volume): ([u8; 16], [u8; 16]),
        next: TransactionId,
        mount: MountNumber,
    ) -> Superblock {
        let (sequence, generation) = before.map_or((0, 0), |before| (before.sequence, before.generation));
        Superblock {
            shape,
            sequence: sequence + 1,
            generation: generation + 1,
            // One that has not counted gets another name: a copy of it does not say that it is older.
            region: before.filter(|before| before.mount.is_counted()).map_or(region, |before| before.region),
            volume,
            is_in_use: true,
            next: next.0,
            mount,
        }
    }

    fn bytes(&self) -> [u8; 128] {
        let mut bytes = [0; 128];
        put(&mut bytes, 0, SUPERBLOCK_MAGIC.to_le_bytes());
        put(&mut bytes, 8, VERSION.to_le_bytes());
        put(&mut bytes, 12, u32::from(self.is_in_use).to_le_bytes());
        put(&mut bytes, 16, self.region);
        put(&mut bytes, 32, self.volume);
        put(&mut bytes, 48, self.shape.partitions.to_le_bytes());
        put(&mut bytes, 52, self.shape.hash.code().to_le_bytes());
        put(&mut bytes, 56, self.shape.slots.to_le_bytes());
        put(&mut bytes, 64, self.shape.block_bytes.to_le_bytes());
        put(&mut bytes, 68, self.shape.width.to_le_bytes());
        put(&mut bytes, 72, self.sequence.to_le_bytes());
        put(&mut bytes, 80, self.generation.to_le_bytes());
        put(&mut bytes, 88, self.next.to_le_bytes());
        put(&mut bytes, 96, self.mount.0.to_le_bytes());
        sealed(bytes)
    }

    /// Writes it over the older one of the two.
    pub fn write(&self, nvm: &dyn Nvm) {
        nvm.store(SUPERBLOCKS[(self.sequence % 2) as usize], &self.bytes());
        nvm.fence();
    }

    /// Clears the superblocks and the records of memory that is formatted, with any content.
    pub fn clear(nvm: &dyn Nvm) {
        nvm.store(0, &[0; PARTITIONS as usize]);
        nvm.fence();
    }

    /// Reads the newer one that is whole; `None` if neither is.
    pub fn read(nvm: &dyn Nvm) -> Option<Superblock> {
        let all = SUPERBLOCKS.into_iter().filter(|at| at + 4096 <= nvm.bytes()).filter_map(|at| Self::read_at(nvm, at));
        all.max_by_key(|superblock| superblock.sequence)
    }

    fn read_at(nvm: &dyn Nvm, at: u64) -> Option<Superblock> {
        let mut bytes = [0; 128];
        nvm.read(at, &mut bytes);
        if !is_sealed(&bytes) || le32(&bytes, 0) != SUPERBLOCK_MAGIC || !VERSIONS.contains(&le32(&bytes, 8)) {
            return None;
        }
        let hash = Hash::of(le32(&bytes, 52))?;
        let (partitions, slots) = (le32(&bytes, 48), le64(&bytes, 56));
        let (block_bytes, width) = (le32(&bytes, 64), le32(&bytes, 68));
        let is_possible = (1..=MOST_PARTITIONS).contains(&partitions.into())
            && (1..1 << 40).contains(&slots)
            && (4..=4096).contains(&width)
            && width <= block_bytes
            && block_bytes <= 4096;
        is_possible.then(|| Superblock {
            shape: Shape { partitions, slots, hash, block_bytes, width },
            sequence: le64(&bytes, 72),
            generation: le64(&bytes, 80),
            region: bytes[16..32].try_into().expect("16 bytes"),
            volume: bytes[32..48].try_into().expect("16 bytes"),
            is_in_use: le32(&bytes, 12) != 0,
            next: le32(&bytes, 88),
            mount: MountNumber(le64(&bytes, 96)),
        })
    }
}

/// Says how far the partitions reach: a commit, or a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub generation: u64,
    /// The last transaction that it covers.
    pub transaction: u32,
    /// The first index of each partition that it does not cover.
    pub cut: Vec<u64>,
}

impl Record {
    fn bytes(&self, magic: u32) -> Vec<u8> {
        let mut bytes = vec![0; (24 + 8 * self.cut.len()).next_multiple_of(LINE_BYTES)];
        put(&mut bytes, 0, magic.to_le_bytes());
        put(&mut bytes, 8, self.generation.to_le_bytes());
        put(&mut bytes, 16, self.transaction.to_le_bytes());
        put(&mut bytes, 20, (self.cut.len() as u32).to_le_bytes());
        for (number, cut) in self.cut.iter().enumerate() {
            put(&mut bytes, 24 + 8 * number, cut.to_le_bytes());
        }
        seal(&mut bytes);
        bytes
    }

    fn read(nvm: &dyn Nvm, at: u64, magic: u32, of: &Superblock) -> Option<Record> {
        let partitions = of.shape.partitions as usize;
        let mut bytes = vec![0; (24 + 8 * partitions).next_multiple_of(LINE_BYTES)];
        nvm.read(at, &mut bytes);
        Record::of(&bytes, magic, of)
    }

    /// The record in these bytes.
    fn of(bytes: &[u8], magic: u32, of: &Superblock) -> Option<Record> {
        let partitions = of.shape.partitions as usize;
        let is_one = is_sealed(bytes)
            && le32(bytes, 0) == magic
            && le64(bytes, 8) == of.generation
            && le32(bytes, 20) as usize == partitions;
        is_one.then(|| Record {
            generation: of.generation,
            transaction: le32(bytes, 16),
            cut: (0..partitions).map(|number| le64(bytes, 24 + 8 * number)).collect(),
        })
    }

    /// The same of a record in which one bit is flipped, as its checksum says.
    fn mended(nvm: &dyn Nvm, at: u64, magic: u32, of: &Superblock) -> Option<Record> {
        let mut bytes = vec![0; (24 + 8 * of.shape.partitions as usize).next_multiple_of(LINE_BYTES)];
        nvm.read(at, &mut bytes);
        let mut summed = bytes.clone();
        put(&mut summed, 4, [0; 4]);
        let change = crc::crc32c(&summed) ^ le32(&bytes, 4);
        if change.is_power_of_two() {
            let right = le32(&bytes, 4) ^ change;
            put(&mut bytes, 4, right.to_le_bytes());
        } else {
            let (at, bit) = flipped_bit(change, bytes.len())?;
            bytes[at] ^= bit;
        }
        Record::of(&bytes, magic, of)
    }

    /// Stores the record of commit number `sequence`, which is durable when this returns; answers where.
    pub fn commit(&self, nvm: &dyn Nvm, sequence: u64) -> Range<u64> {
        let bytes = self.bytes(COMMIT_MAGIC);
        let at = COMMITS + sequence % 2 * RECORD_BYTES;
        nvm.store(at, &bytes);
        nvm.fence();
        at..at + bytes.len() as u64
    }

    /// The records of commits that are whole.
    pub fn commits<'n>(nvm: &'n dyn Nvm, of: &'n Superblock) -> impl Iterator<Item = Record> + 'n {
        (0..2).filter_map(|slot| Self::read(nvm, COMMITS + slot * RECORD_BYTES, COMMIT_MAGIC, of))
    }

    /// The record of a commit in which one bit is flipped. It counts, also if a loss of power has torn it there: what it
    /// covers was durable before it was stored.
    pub fn flipped_commit(nvm: &dyn Nvm, of: &Superblock) -> Option<Record> {
        let record = |slot| {
            let at = COMMITS + slot * RECORD_BYTES;
            let is_whole = Self::read(nvm, at, COMMIT_MAGIC, of).is_some();
            if is_whole { None } else { Self::mended(nvm, at, COMMIT_MAGIC, of) }
        };
        (0..2).find_map(record)
    }

    /// True if no record of a commit is whole, although the second was stored: not one, but both are damaged. Of the first
    /// alone, a part may be there.
    pub fn are_commits_lost(nvm: &dyn Nvm, of: &Superblock) -> bool {
        let mut line = [0; LINE_BYTES];
        nvm.read(COMMITS + RECORD_BYTES, &mut line);
        let is_stored = le32(&line, 0) == COMMIT_MAGIC && le64(&line, 8) == of.generation;
        is_stored && Self::commits(nvm, of).next().is_none()
    }

    /// Stores the record of checkpoint number `sequence`, which is durable when this returns.
    pub fn checkpoint(&self, nvm: &dyn Nvm, sequence: u64) {
        nvm.store(CHECKPOINTS + sequence % 2 * RECORD_BYTES, &self.bytes(CHECKPOINT_MAGIC));
        nvm.fence();
    }

    /// The records of checkpoints that are whole.
    pub fn checkpoints<'n>(nvm: &'n dyn Nvm, of: &'n Superblock) -> impl Iterator<Item = Record> + 'n {
        (0..2).filter_map(|slot| Self::read(nvm, CHECKPOINTS + slot * RECORD_BYTES, CHECKPOINT_MAGIC, of))
    }
}

/// The header of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub index: u64,
    /// The block, or the number of ranges of freed blocks.
    pub block: u64,
    pub version: u64,
    pub transaction: u32,
    pub what: Kept,
    pub generation: u64,
    /// Bytes of data.
    pub length: u32,
}

/// Bytes of a range of freed blocks in the data of a slot: its first block, and its end.
const RANGE_BYTES: usize = 16;
/// The most ranges of a slot, for blocks of any size.
pub const MOST_RANGES: usize = 1024 / RANGE_BYTES;

/// The data of a slot with freed blocks.
pub fn ranges_to_bytes(ranges: &[Range<u64>]) -> Vec<u8> {
    ranges.iter().flat_map(|range| [range.start, range.end]).flat_map(u64::to_le_bytes).collect()
}

/// Reads them back.
pub fn ranges_of_bytes(data: &[u8]) -> impl Iterator<Item = Range<u64>> + '_ {
    data.chunks_exact(RANGE_BYTES).map(|range| le64(range, 0)..le64(range, 8))
}

impl Header {
    /// Stores the slot with its data. It is durable after the next fence.
    pub fn store(&self, nvm: &dyn Nvm, header_at: u64, data_at: u64, data: &[u8]) {
        let mut bytes = [0; LINE_BYTES];
        put(&mut bytes, 0, SLOT_MAGIC.to_le_bytes());
        put(&mut bytes, 8, self.index.to_le_bytes());
        put(&mut bytes, 16, self.block.to_le_bytes());
        put(&mut bytes, 24, self.version.to_le_bytes());
        put(&mut bytes, 32, self.transaction.to_le_bytes());
        put(&mut bytes, 36, self.what.code().to_le_bytes());
        put(&mut bytes, 40, self.generation.to_le_bytes());
        put(&mut bytes, 48, self.length.to_le_bytes());
        // The processor works out the sum of a block while the memory takes in the one before.
        let sum = crc::crc32c_append(crc::crc32c(&bytes), data);
        nvm.store(data_at, data);
        put(&mut bytes, 4, sum.to_le_bytes());
        nvm.store(header_at, &bytes);
    }

    /// Reads a slot and its data; fails with the fault.
    pub fn read(nvm: &dyn Nvm, shape: &Shape, partition: u32, slot: u64) -> Result<(Header, Vec<u8>), String> {
        let mut bytes = [0; LINE_BYTES];
        nvm.read(shape.header(partition, slot), &mut bytes);
        if le32(&bytes, 0) != SLOT_MAGIC {
            return Err("its header has no magic number".to_string());
        }
        let length = le32(&bytes, 48);
        let what = Kept::of(le32(&bytes, 36)).ok_or_else(|| format!("it is of kind {}", le32(&bytes, 36)))?;
        let wanted = match what {
            // Of those that stamps stand for, nothing is read back.
            Kept::Revoke => le64(&bytes, 16).saturating_mul(RANGE_BYTES as u64),
            Kept::Image(_) => shape.width.into(),
        };
        if u64::from(length) != wanted || length > shape.width {
            return Err(format!("it has {length} bytes of data, and should have {wanted}"));
        }
        let mut data = vec![0; length as usize];
        nvm.read(shape.data(partition, slot), &mut data);
        let said = le32(&bytes, 4);
        put(&mut bytes, 4, [0; 4]);
        let sum = crc::crc32c_append(crc::crc32c(&bytes), &data);
        if sum != said {
            return Err(format!("its checksum is {said:08x}, and should be {sum:08x}"));
        }
        let header = Header {
            index: le64(&bytes, 8),
            block: le64(&bytes, 16),
            version: le64(&bytes, 24),
            transaction: le32(&bytes, 32),
            what,
            generation: le64(&bytes, 40),
            length,
        };
        Ok((header, data))
    }
}

/// Puts the checksum into bytes 4 to 8, which are zero.
fn seal(bytes: &mut [u8]) {
    debug_assert_eq!(le32(bytes, 4), 0, "nothing else lies there");
    let sum = crc::crc32c(bytes);
    put(bytes, 4, sum.to_le_bytes());
}

fn sealed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    seal(&mut bytes);
    bytes
}

fn is_sealed(bytes: &[u8]) -> bool {
    let mut whole = bytes.to_vec();
    put(&mut whole, 4, [0; 4]);
    crc::crc32c(&whole) == le32(bytes, 4)
}
