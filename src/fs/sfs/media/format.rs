//! What lies on the media, byte by byte. Little-endian; whatever is not named is zero. All checksums are CRC32C.
//!
//! ```text
//! superblock    4 KiB at both of two places, one written durably before the other
//! segment       partial segments one behind the other, each: summary blocks, then the blocks it tells of
//! summary       SummaryHeader (64), BlockRecord (32) for each block, then the records of the log
//! DAT           DatEntry (32) for each virtual block
//! inode file    InodeImage (256) for each inode
//! usage file    UsageEntry (48) for each segment
//! map block     512 numbers of virtual blocks, or of map blocks one level lower
//! directory     see `directory`
//! attributes    see `extended`
//! ```
//!
//! An address is a block of the log: segment x blocks of a segment + block of the segment. Address 0 is the first
//! summary's, so that 0 stands for none wherever a block is named; so it does for virtual blocks and inodes.
//!
//! The DAT, the inode file and the usage file are [`PagedFile`](crate::fs::sfs::metadata::paged::PagedFile)s: pages whose [`Pointer`]s
//! hold their checksums, up to a root in the superblock. Every other block is virtual: the DAT says where it lies, and
//! its checksum.

use crate::units::BLOCK_BYTES;
use zerocopy::little_endian::{F64, I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a block, as a length.
pub(in crate::fs::sfs) const BLOCK: usize = BLOCK_BYTES as usize;
/// A block's bytes.
pub(in crate::fs::sfs) type BlockBytes = [u8; BLOCK];

/// A block of zeros.
pub(in crate::fs::sfs) fn zeroed() -> Box<BlockBytes> {
    Box::new([0; BLOCK])
}

/// "FLASHSFS".
pub(in crate::fs::sfs) const MAGIC: [u8; 8] = *b"FLASHSFS";
/// The version that is written. Version 1 had all extended attributes of a file in one block, chained free inodes through
/// their images, and told its log of no reservation. It is read, too: a volume is of this version once it was mounted for
/// writing.
pub(in crate::fs::sfs) const VERSION: u32 = 2;
/// The oldest that is read.
pub(in crate::fs::sfs) const OLDEST_VERSION: u32 = 1;
/// `clean` of a superblock: changes were lost since, as a write or a flush failed. It takes the log to be read, as any
/// value but 1 does.
pub(in crate::fs::sfs) const LOST: u32 = 2;
/// "SFSL", the first bytes of a summary.
pub(in crate::fs::sfs) const SUMMARY_MAGIC: [u8; 4] = *b"SFSL";
/// Counters on the media, such as the number of a checkpoint, are below this.
pub(in crate::fs::sfs) const LARGEST: u64 = 1 << 62;
/// Numbers that a grouping may keep in the superblock.
pub(in crate::fs::sfs) const MEMORY: usize = 32;
/// Places in an inode for its blocks, or for the roots of its map.
pub(in crate::fs::sfs) const ROOTS: usize = 8;

/// No map is higher: it then reaches beyond what an offset of a file can say.
pub(in crate::fs::sfs) const MOST_LEVELS: u8 = 6;
/// Blocks that a file can have at most.
pub(in crate::fs::sfs) const MOST_BLOCKS: u64 = (i64::MAX as u64) / BLOCK as u64;
/// Inodes of a page.
pub(in crate::fs::sfs) const INODES: u64 = (BLOCK / size_of::<InodeImage>()) as u64;
/// Entries of a page of the usage file.
pub(in crate::fs::sfs) const USAGE_ENTRIES: usize = BLOCK / size_of::<UsageEntry>();

/// Pages of the usage file of so many segments.
pub(in crate::fs::sfs) fn usage_pages(segments: u32) -> usize {
    (segments as usize).div_ceil(USAGE_ENTRIES)
}

/// Where a block of a [`PagedFile`](crate::fs::sfs::metadata::paged::PagedFile) lies.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct Pointer {
    /// Its address; 0 if it was never written and is all zeros.
    pub address: U64,
    /// Its checksum.
    pub crc: U32,
    /// Of a page of the DAT: how many of its entries are taken. Of one of the inode file: a bit for each of its inodes,
    /// 1 if it is. A page in which none is lies nowhere.
    pub taken: U32,
}

/// A paged file's root, in the superblock.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct Root {
    /// Its highest block.
    pub top: Pointer,
    /// Its pages.
    pub pages: U64,
}

/// The superblock: a checkpoint, and all that is needed to find the rest.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct Superblock {
    pub magic: [u8; 8],
    pub version: U32,
    /// Over the whole block with this field zero.
    pub crc: U32,
    /// The volume's own number.
    pub identity: [u8; 16],
    /// How often it has been written: the higher counts, and odd ones go to the second place.
    pub sequence: U64,
    /// When the volume was made, on the wall clock.
    pub created: I64,
    /// Blocks of the device.
    pub device_blocks: U64,
    /// Blocks of a segment.
    pub segment_blocks: U32,
    /// Segments.
    pub segments: U32,
    /// 1: it was unmounted then, so that nothing can follow in the log. 2: a later write or flush failed, and changes
    /// were lost.
    pub clean: U32,
    /// Numbers in `memory`.
    pub memories: U32,
    /// The sequence number of the next partial segment.
    pub next_partial: U64,
    /// The checksum of the last partial segment's header.
    pub chain: U32,
    /// Where the open segment goes on, if the log does: its number and block. `u32::MAX` for none.
    pub open_segment: U32,
    pub open_block: U32,
    /// The segment that the log takes next, and 1 more; 0 if that is not told, as in older volumes.
    pub next_segment: U32,
    /// The clock of hotness.
    pub tick: U64,
    /// The first inode without a name that was still held: it goes on in their `next`.
    pub first_orphan: U64,
    /// Of version 1: the first free inode.
    pub unused: U64,
    /// The numbers of all inodes are lower.
    pub inodes: U64,
    /// Of which so many are in use.
    pub used_inodes: U64,
    /// Virtual blocks in use.
    pub used_blocks: U64,
    pub dat: Root,
    pub inode_file: Root,
    pub usage_file: Root,
    /// What the grouping remembers: the groups' hotness.
    pub memory: [F64; MEMORY],
}

/// Where the checksum of a superblock lies in it.
pub(in crate::fs::sfs) const SUPERBLOCK_CRC: usize = std::mem::offset_of!(Superblock, crc);

impl Superblock {
    /// Its 4 KiB, with their checksum.
    pub fn with_checksum(&self) -> Box<BlockBytes> {
        let mut bytes = zeroed();
        bytes[..size_of::<Superblock>()].copy_from_slice(self.as_bytes());
        let crc = crc_without(&bytes[..], SUPERBLOCK_CRC);
        bytes[SUPERBLOCK_CRC..SUPERBLOCK_CRC + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// The head of a partial segment's summary.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct SummaryHeader {
    pub magic: [u8; 4],
    /// Over all summary blocks with this field zero.
    pub crc: U32,
    /// The number of the partial segment, counted over the life of the volume.
    pub sequence: U64,
    /// The checksum of the partial segment before it: what follows a lost one is not mistaken for the log.
    pub chain: U32,
    /// Blocks of the summary itself.
    pub summary_blocks: U32,
    /// Blocks behind it.
    pub blocks: U32,
    /// Bytes of log records, behind the block records.
    pub log_bytes: U32,
    /// The clock of hotness when it was written.
    pub tick: U64,
    /// The volume's own number.
    pub identity: [u8; 16],
    /// The group of its blocks; 255 if they are of several.
    pub group: u8,
    /// 1 if it ends a part of the log: all that was done up to here is told. Rolling forward ends at such a one, so
    /// that such parts are atomic.
    pub seals: u8,
    /// How many numbers back the newest partial segment lies that was flushed before this one was written: if this one
    /// is there, that one and all before it were durable. 0 if that is not told, as in older volumes.
    pub flushed_back: U16,
    /// The segment that the log takes next, and 1 more; 0 if that is not told.
    pub next_segment: U32,
}

/// What a block of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::fs::sfs) enum Kind {
    /// A file's bytes: virtual.
    Data = 1,
    /// A directory's, a map's, an attribute block or a link's target: virtual.
    Metadata = 2,
    /// A page of the DAT or a block of its tree.
    Dat = 3,
    /// Of the inode file.
    InodeFile = 4,
    /// Of the usage file.
    UsageFile = 5,
}

impl Kind {
    pub fn of_number(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Data,
            2 => Kind::Metadata,
            3 => Kind::Dat,
            4 => Kind::InodeFile,
            5 => Kind::UsageFile,
            _ => return None,
        })
    }
}

/// A block of a partial segment.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct BlockRecord {
    /// Its virtual block; of a paged file, level x 2^56 + block of that level.
    pub number: U64,
    /// The inode whose it is.
    pub inode: U64,
    /// Its place in the file, in blocks.
    pub place: U64,
    /// Its checksum, as it was written here: of a cleaned one that was damaged before, not the one that the DAT says it
    /// should have.
    pub crc: U32,
    /// What it is: a [`Kind`].
    pub kind: u8,
    /// 1 if it was cleaned, and not written anew.
    pub is_cleaned: u8,
    /// The group it was written in.
    pub group: u8,
    pub reserved: u8,
}

/// Entries in a page of the DAT.
pub(in crate::fs::sfs) const DAT_ENTRIES: u64 = (BLOCK / size_of::<DatEntry>()) as u64;

/// An entry of the DAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct DatEntry {
    /// Where the block lies; 0 if it was reserved and never written. In memory, [`WAITS`] and a slot if it waits to be
    /// written.
    pub address: U64,
    /// Writes since it was made (W_b).
    pub writes: U64,
    /// When it was last written (T^m_b), on the clock of hotness.
    pub modified: U64,
    /// Its checksum.
    pub crc: U32,
    /// The group it was written in last; 255 if it never was.
    pub group: u8,
    /// 1 if the entry is in use.
    pub is_taken: u8,
    /// 1 if the block was damaged, and a repair gave it up: while it lies nowhere, reading it fails.
    pub is_lost: u8,
    pub reserved: u8,
}

impl DatEntry {
    /// Whether reading the block must fail, as nobody knows what it held.
    pub fn is_given_up(&self) -> bool {
        self.address.get() == 0 && self.is_lost == 1
    }
}

/// In the address of an entry in memory: the block waits to be written, and the rest is its slot.
pub(in crate::fs::sfs) const WAITS: u64 = 1 << 63;
/// No group.
pub(in crate::fs::sfs) const NO_GROUP: u8 = 255;

/// An inode.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct InodeImage {
    /// Its own number; 0 if it is free.
    pub number: U64,
    /// The low bits of the superblock's sequence when the number was given out: no number is twice between two.
    pub generation: U32,
    /// A [`FileKind`](crate::fs::sfs::FileKind).
    pub kind: u8,
    /// Levels of map blocks under the roots.
    pub levels: u8,
    pub permissions: U16,
    pub links: U32,
    pub user: U32,
    pub group: U32,
    pub reserved: U32,
    pub device: U64,
    pub size: U64,
    /// Virtual blocks that it has, map blocks among them.
    pub blocks: U64,
    pub accessed: I64,
    pub modified: I64,
    pub changed: I64,
    pub created: I64,
    /// Block writes since it was made (W_f).
    pub writes: U64,
    /// When a block of it was last written (T^m_f), on the clock of hotness.
    pub written: U64,
    /// The virtual block of its extended attributes, or of the list of their blocks; 0 if it has none.
    pub attributes: U64,
    /// The directory in which a directory is.
    pub parent: U64,
    /// The next without a name.
    pub next: U64,
    /// Its blocks, or the roots of its map.
    pub roots: [U64; ROOTS],
    pub rest: [u8; 64],
}

/// An entry of the usage file.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct UsageEntry {
    /// Blocks that are live.
    pub live: U32,
    /// 0 free, 1 in use.
    pub in_use: u8,
    /// The group of its blocks; 255 if they are of several.
    pub group: u8,
    /// Whether it holds metadata, and no hotness is counted.
    pub is_metadata: u8,
    pub reserved: u8,
    /// The sum of T^m of its live blocks.
    pub modified: U64,
    /// The sum of W of its live blocks.
    pub writes: U64,
    /// The youngest T^m.
    pub youngest: U64,
    /// When it was written.
    pub written: U64,
    pub rest: [u8; 8],
}

const _: () = assert!(size_of::<Superblock>() <= BLOCK);
const _: () = assert!(size_of::<SummaryHeader>() == 64);
const _: () = assert!(size_of::<BlockRecord>() == 32);
const _: () = assert!(size_of::<DatEntry>() == 32);
const _: () = assert!(size_of::<InodeImage>() == 256);
const _: () = assert!(size_of::<UsageEntry>() == 48);
const _: () = assert!(size_of::<Pointer>() == 16);

/// Summary blocks of a partial segment of `blocks` blocks and `log_bytes` bytes of log records.
pub(in crate::fs::sfs) fn summary_blocks(blocks: u32, log_bytes: usize) -> u32 {
    let bytes = size_of::<SummaryHeader>() + blocks as usize * size_of::<BlockRecord>() + log_bytes;
    bytes.div_ceil(BLOCK) as u32
}

/// The most blocks that fit behind their summary into `room` blocks, with `log_bytes` of log records; `None` if not
/// even the summary does.
pub(in crate::fs::sfs) fn blocks_that_fit(room: u32, log_bytes: usize) -> Option<u32> {
    let head = size_of::<SummaryHeader>() + log_bytes;
    let bytes = room as usize * BLOCK;
    let blocks = bytes.checked_sub(head)? / (BLOCK + size_of::<BlockRecord>());
    // The division forgets that a summary takes whole blocks.
    let blocks = blocks as u32;
    Some(if blocks + summary_blocks(blocks, log_bytes) > room { blocks - 1 } else { blocks })
}

/// The checksum of a structure that begins a block: over all of `bytes`, with the four at `field` zero.
pub(in crate::fs::sfs) fn crc_without(bytes: &[u8], field: usize) -> u32 {
    let crc = crc32c::crc32c(&bytes[..field]);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, &bytes[field + 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_segment_fills_its_room_as_far_as_whole_blocks_go() {
        for room in 1..20_000 {
            for log_bytes in [0, 100, 5000] {
                let Some(blocks) = blocks_that_fit(room, log_bytes) else {
                    assert!(summary_blocks(0, log_bytes) > room);
                    continue;
                };
                assert!(blocks + summary_blocks(blocks, log_bytes) <= room, "{room} {log_bytes}");
                assert!(blocks + 1 + summary_blocks(blocks + 1, log_bytes) > room, "{room} {log_bytes}");
            }
        }
    }
}
