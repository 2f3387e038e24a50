//! On-media structures. Fields are little-endian; unnamed bytes are zero. All checksums are CRC32C.
//!
//! ```text
//! superblock    4 KiB in two copies, one made durable before the other is written
//! segment       consecutive partial segments, each: summary blocks, then the blocks it describes
//! summary       SummaryHeader (64), BlockRecord (32) for each block, then log records
//! DAT           DatEntry (32) for each virtual block
//! inode file    InodeImage (256) for each inode
//! usage file    UsageEntry (48) for each segment
//! map block     512 numbers of virtual blocks, or of map blocks one level lower
//! directory     see `directory`
//! attributes    see `extended`
//! ```
//!
//! An address is a block of the log: segment x blocks per segment + block in the segment. Address 0 is that of the
//! first summary, so 0 stands for no block; likewise for virtual blocks and inodes.
//!
//! The DAT, the inode file and the usage file are [`PagedFile`](crate::fs::sfs::metadata::paged::PagedFile)s: pages
//! whose [`Pointer`]s hold their checksums, up to a root in the superblock. All other blocks are virtual: the DAT holds
//! their addresses and checksums.

use crate::crc;
use crate::units::BLOCK_BYTES;
use zerocopy::little_endian::{F64, I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a block, as a length.
pub(in crate::fs::sfs) const BLOCK: usize = BLOCK_BYTES as usize;
/// The bytes of a block.
pub(in crate::fs::sfs) type BlockBytes = [u8; BLOCK];

/// A block of zeros.
pub(in crate::fs::sfs) fn zeroed() -> Box<BlockBytes> {
    Box::new([0; BLOCK])
}

/// "FLASHSFS".
pub(in crate::fs::sfs) const MAGIC: [u8; 8] = *b"FLASHSFS";
/// The written format version. Older ones are readable; a volume becomes version 4 when it is mounted for writing.
///
/// | version | differs from the next one |
/// |---|---|
/// | 1 | all extended attributes of a file are in one block, free inodes are chained through their images, reservations are not in the log |
/// | 2 | the log has one open segment, with blocks of all groups, and others that are written at once, each of one group |
/// | 3 | the log has an open segment for each group; no log record holds bytes of files |
/// | 4 | log records hold the bytes of small syncs |
pub(in crate::fs::sfs) const VERSION: u32 = 4;
/// The oldest version with the extended attributes, free inodes and reservations of this one.
pub(in crate::fs::sfs) const INODES_VERSION: u32 = 2;
/// The oldest readable version.
pub(in crate::fs::sfs) const OLDEST_VERSION: u32 = 1;
/// Value of `clean` in a superblock: changes were lost after it, since a write or a flush failed. The log is read, as
/// for any value but 1.
pub(in crate::fs::sfs) const LOST: u32 = 2;
/// "SFSL", the first bytes of a summary.
pub(in crate::fs::sfs) const SUMMARY_MAGIC: [u8; 4] = *b"SFSL";
/// Counters on the media, such as the number of a checkpoint, are less than this.
pub(in crate::fs::sfs) const LARGEST: u64 = 1 << 62;
/// Numbers of grouping state in the superblock.
pub(in crate::fs::sfs) const MEMORY: usize = 32;
/// Maximum open segments of data.
pub(in crate::fs::sfs) const MOST_HEADS: usize = crate::fs::sfs::placement::MOST_GROUPS;
/// Block pointers, or map roots, in an inode.
pub(in crate::fs::sfs) const ROOTS: usize = 8;

/// Maximum levels of a map: more would exceed the largest file offset.
pub(in crate::fs::sfs) const MOST_LEVELS: u8 = 6;
/// Maximum blocks of a file.
pub(in crate::fs::sfs) const MOST_BLOCKS: u64 = (i64::MAX as u64) / BLOCK as u64;
/// Inodes per page.
pub(in crate::fs::sfs) const INODES: u64 = (BLOCK / size_of::<InodeImage>()) as u64;
/// Usage entries per page.
pub(in crate::fs::sfs) const USAGE_ENTRIES: usize = BLOCK / size_of::<UsageEntry>();

/// Pages of the usage file for this number of segments.
pub(in crate::fs::sfs) fn usage_pages(segments: u32) -> usize {
    (segments as usize).div_ceil(USAGE_ENTRIES)
}

/// The address of a block of a [`PagedFile`](crate::fs::sfs::metadata::paged::PagedFile).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct Pointer {
    /// The block's address; 0 if it was never written and is all zeros.
    pub address: U64,
    /// Its checksum.
    pub crc: U32,
    /// For a page of the DAT: the number of entries in use. For a page of the inode file: a bit for each inode, 1 if in
    /// use. A page with none in use has no block.
    pub taken: U32,
}

/// The root of a paged file, in the superblock.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct Root {
    /// The highest block of the tree.
    pub top: Pointer,
    /// Number of pages.
    pub pages: U64,
}

/// The superblock: a checkpoint, with the roots of all metadata.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct Superblock {
    pub magic: [u8; 8],
    pub version: U32,
    /// Over the whole block with this field zero.
    pub crc: U32,
    /// The identifier of the volume.
    pub identity: [u8; 16],
    /// The number of the superblock write. The highest valid one is current; odd ones are in the second place.
    pub sequence: U64,
    /// Wall-clock time of mkfs.
    pub created: I64,
    /// Blocks of the device.
    pub device_blocks: U64,
    /// Blocks per segment.
    pub segment_blocks: U32,
    /// Number of segments.
    pub segments: U32,
    /// 1: unmounted, so that no log follows. 2: a later write or flush failed, and changes were lost.
    pub clean: U32,
    /// Used numbers in `memory`.
    pub memories: U32,
    /// The sequence number of the next partial segment.
    pub next_partial: U64,
    /// The checksum of the last partial segment's header.
    pub chain: U32,
    /// In versions 1 and 2: the segment in which the log continues, and the block in it. `u32::MAX` and 0 for none, as
    /// in version 3.
    pub open_segment: U32,
    pub open_block: U32,
    /// The segment that the log uses next, plus 1; 0 if unknown, as in older volumes.
    pub next_segment: U32,
    /// The clock of hotness.
    pub tick: U64,
    /// Head of the list of inodes without a name that were still referenced, linked by `next`.
    pub first_orphan: U64,
    /// In version 1: the first free inode.
    pub unused: U64,
    /// All inode numbers are less than this.
    pub inodes: U64,
    /// Inodes in use.
    pub used_inodes: U64,
    /// Virtual blocks in use.
    pub used_blocks: U64,
    pub dat: Root,
    pub inode_file: Root,
    pub usage_file: Root,
    /// State of the grouping: the groups' hotness.
    pub memory: [F64; MEMORY],
    /// The open segments of data, by their heads' numbers.
    pub heads: [OpenEnd; MOST_HEADS],
}

/// The end of an open segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct OpenEnd {
    pub segment: U32,
    /// The block at which the log continues; 0 for none.
    pub block: U32,
}

/// Offset of the checksum in a superblock.
pub(in crate::fs::sfs) const SUPERBLOCK_CRC: usize = std::mem::offset_of!(Superblock, crc);

impl Superblock {
    /// The generation of inodes that are made after this checkpoint. A number of an inode is given out at most once between two
    /// checkpoints, so the number of the last one distinguishes the inode from earlier ones of its number, over crashes and
    /// mounts: an old file handle never refers to a new file.
    pub fn generation(&self) -> u32 {
        self.sequence.get() as u32
    }

    /// The open segments: the number of each head, as in [`SummaryHeader::group`], its segment, and the block at which
    /// it continues.
    pub fn open_ends(&self) -> impl Iterator<Item = (u8, u32, u32)> + '_ {
        let old = (NO_GROUP, self.open_segment.get(), self.open_block.get());
        let heads = (0..).zip(&self.heads).map(|(head, end)| (head, end.segment.get(), end.block.get()));
        std::iter::once(old).chain(heads).filter(|(_, _, block)| *block != 0)
    }

    /// Forgets an open segment.
    pub fn close_end(&mut self, segment: u32) {
        if self.open_segment.get() == segment {
            (self.open_segment, self.open_block) = (u32::MAX.into(), 0.into());
        }
        self.heads.iter_mut().filter(|end| end.segment.get() == segment).for_each(|end| *end = OpenEnd::default());
    }

    /// The superblock's 4 KiB, with the checksum.
    pub fn with_checksum(&self) -> Box<BlockBytes> {
        let mut bytes = zeroed();
        bytes[..size_of::<Superblock>()].copy_from_slice(self.as_bytes());
        let crc = crc_without(&bytes[..], SUPERBLOCK_CRC);
        bytes[SUPERBLOCK_CRC..SUPERBLOCK_CRC + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// The header of a partial segment's summary.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct SummaryHeader {
    pub magic: [u8; 4],
    /// Over all summary blocks with this field zero.
    pub crc: U32,
    /// The number of the partial segment, counted since mkfs.
    pub sequence: U64,
    /// The checksum of the previous partial segment: partial segments after a lost one are not taken for the log.
    pub chain: U32,
    /// Blocks of the summary.
    pub summary_blocks: U32,
    /// Blocks after the summary.
    pub blocks: U32,
    /// Bytes of log records, after the block records.
    pub log_bytes: U32,
    /// The clock of hotness at the write.
    pub tick: U64,
    /// The identifier of the volume.
    pub identity: [u8; 16],
    /// The head that wrote it: usually the group of its blocks, which their records hold. 255 for metadata, and in
    /// versions 1 and 2 for blocks of several groups.
    pub group: u8,
    /// 1 if this partial segment seals the log: all changes up to here are recorded. Rolling forward ends at a seal, so
    /// that each sealed part is atomic.
    pub seals: u8,
    /// Distance, in sequence numbers, to the newest partial segment that was flushed before this one was written. If
    /// this one is stored, that one and all before it are durable. 0 if unknown, as in older volumes.
    pub flushed_back: U16,
    /// The segment that the log uses next, plus 1; 0 if unknown.
    pub next_segment: U32,
}

/// The kind of a block of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::fs::sfs) enum Kind {
    /// File data; a virtual block.
    Data = 1,
    /// A block of a directory, a map, attributes or a link's target; a virtual block.
    Metadata = 2,
    /// A page of the DAT, or a block of its tree.
    Dat = 3,
    /// A page of the inode file, or a block of its tree.
    InodeFile = 4,
    /// A page of the usage file, or a block of its tree.
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

/// The record of a block in a summary.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct BlockRecord {
    /// The virtual block; for a paged file, level x 2^56 + block of that level.
    pub number: U64,
    /// The inode of the block.
    pub inode: U64,
    /// The block's index in the file.
    pub place: U64,
    /// The checksum of the written bytes. For a cleaned block that was already damaged, this differs from the checksum
    /// in the DAT.
    pub crc: U32,
    /// A [`Kind`].
    pub kind: u8,
    /// 0 for a write of the host, or [`COPIED`], or [`COPIED_AND_COUNTED`].
    pub cleaned: u8,
    /// The group of the block.
    pub group: u8,
    pub reserved: u8,
}

/// The block was copied by cleaning, and kept its history.
pub(in crate::fs::sfs) const COPIED: u8 = 1;
/// The block was copied by cleaning, and the copy counts as a write (`hotness=all`).
pub(in crate::fs::sfs) const COPIED_AND_COUNTED: u8 = 2;

impl BlockRecord {
    /// True if the block was copied by cleaning.
    pub fn is_copy(&self) -> bool {
        self.cleaned != 0
    }

    /// True if this write is in the block's history: its DAT entry has the time of this write.
    pub fn is_counted(&self) -> bool {
        !self.is_copy() || self.cleaned == COPIED_AND_COUNTED
    }
}

/// DAT entries per page.
pub(in crate::fs::sfs) const DAT_ENTRIES: u64 = (BLOCK / size_of::<DatEntry>()) as u64;

/// An entry of the DAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct DatEntry {
    /// The block's address; 0 if it was reserved and never written. In memory, [`DIRTY`] and a slot if the block is
    /// dirty.
    pub address: U64,
    /// Writes since the block was allocated (W_b): those of the host, and with `hotness=all` those of cleaning.
    pub writes: U64,
    /// The last of these writes (T^m_b), on the clock of hotness.
    pub modified: U64,
    /// Its checksum.
    pub crc: U32,
    /// The group of the last write; 255 if never written.
    pub group: u8,
    /// 1 if the entry is in use.
    pub is_taken: u8,
    /// 1 if the block was lost to damage in a repair: reading it fails while it has no address.
    pub is_lost: u8,
    /// The byte that the grouping keeps with the block; 0 if none. Written by version 2 since the grouping `lifetime`
    /// exists; older volumes hold 0. It only guides placement, so any value is valid.
    pub memory: u8,
}

impl DatEntry {
    /// True if reading the block must fail, as its content is lost.
    pub fn is_given_up(&self) -> bool {
        self.address.get() == 0 && self.is_lost == 1
    }
}

/// Flag in the address of an entry in memory: the block is dirty, and the other bits are its slot.
pub(in crate::fs::sfs) const DIRTY: u64 = 1 << 63;
/// No group.
pub(in crate::fs::sfs) const NO_GROUP: u8 = 255;

/// An inode.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct InodeImage {
    /// The inode's own number; 0 if free.
    pub number: U64,
    /// The low bits of the superblock's sequence when the number was allocated: no number is allocated twice between
    /// two superblocks.
    pub generation: U32,
    /// A [`FileKind`](crate::fs::sfs::FileKind).
    pub kind: u8,
    /// Levels of map blocks below the roots.
    pub levels: u8,
    pub permissions: U16,
    pub links: U32,
    pub user: U32,
    pub group: U32,
    /// A [`Hint`](crate::fs::sfs::placement::Hint). It only guides placement, so any value is valid.
    pub hint: u8,
    pub reserved: [u8; 3],
    pub device: U64,
    pub size: U64,
    /// Virtual blocks of the file, including map blocks.
    pub blocks: U64,
    pub accessed: I64,
    pub modified: I64,
    pub changed: I64,
    pub created: I64,
    /// Block writes since the file was created (W_f).
    pub writes: U64,
    /// The last write of a block (T^m_f), on the clock of hotness.
    pub written: U64,
    /// The virtual block of the extended attributes, or of the list of their blocks; 0 if none.
    pub attributes: U64,
    /// The parent of a directory.
    pub parent: U64,
    /// The next inode without a name.
    pub next: U64,
    /// Block pointers, or the roots of the map.
    pub roots: [U64; ROOTS],
    pub rest: [u8; 64],
}

/// An entry of the usage file.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::fs::sfs) struct UsageEntry {
    /// Live blocks.
    pub live: U32,
    /// 0 free, 1 in use.
    pub in_use: u8,
    /// The group of the blocks; 255 if they are of several groups.
    pub group: u8,
    /// 1 if the segment holds metadata, whose hotness is not counted.
    pub is_metadata: u8,
    pub reserved: u8,
    /// The sum of T^m of the live blocks.
    pub modified: U64,
    /// The sum of W of the live blocks.
    pub writes: U64,
    /// The most recent T^m.
    pub youngest: U64,
    /// The time of the write, on the clock of hotness.
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

/// The maximum number of blocks that fit, with their summary, into `room` blocks, with `log_bytes` of log records;
/// `None` if the summary does not fit.
pub(in crate::fs::sfs) fn blocks_that_fit(room: u32, log_bytes: usize) -> Option<u32> {
    let head = size_of::<SummaryHeader>() + log_bytes;
    let bytes = room as usize * BLOCK;
    let blocks = bytes.checked_sub(head)? / (BLOCK + size_of::<BlockRecord>());
    // The division does not account for whole summary blocks.
    let blocks = blocks as u32;
    Some(if blocks + summary_blocks(blocks, log_bytes) > room { blocks - 1 } else { blocks })
}

/// The checksum of a structure at the start of a block: over all of `bytes`, with the four at `field` zero.
pub(in crate::fs::sfs) fn crc_without(bytes: &[u8], field: usize) -> u32 {
    let crc = crc::crc32c(&bytes[..field]);
    let crc = crc::crc32c_append(crc, &[0; 4]);
    crc::crc32c_append(crc, &bytes[field + 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_and_blocks_of_a_partial_segment_fill_its_space() {
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
