//! Total and free space.
//!
//! The log reserves some segments for checkpoints and the cleaner, and a share of the others must be dead, or cleaning
//! would gain nothing. The rest is available to files and their metadata. A new block is refused when no space is left,
//! so that every accepted block can be written.

use super::Limits;
use super::memory::Shares;
use super::metadata::MetadataFiles;
use super::settings::SfsSettings;
use crate::fs::sfs::files::attribute_blocks;
use crate::fs::sfs::media::format::{BLOCK, DAT_ENTRIES, blocks_that_fit};
use crate::fs::volume::Space;

/// At least one segment in this many is dead, even on a full volume.
const DEAD: u32 = 24;
/// Default maximum of dirty data, in segments and in bytes.
const DIRTY_SEGMENTS: u64 = 12;
const DIRTY_BYTES: std::ops::RangeInclusive<u64> = (64 << 20)..=(512 << 20);
/// At most one part in this many of the device may be dirty.
const MOST_DIRTY: u64 = 64;
/// Dirty metadata for which a checkpoint has a reserve of its own, as a fraction of the device; at least
/// [`FEW_METADATA`] bytes, but no more than the dirty data limit or [`MOST_METADATA`] bytes.
const RESERVED_METADATA: u64 = 256;
const FEW_METADATA: u64 = 4 << 20;
const MOST_METADATA: u64 = 256 << 20;
/// By default a checkpoint is taken after one part in so many of the segments was written, but not after fewer than
/// [`FEWEST_OF_LOG`].
const LOG: u32 = 8;
const FEWEST_OF_LOG: u32 = 20;
/// A volume of which a checkpoint takes at most so many segments is small: its reserve has no room for more dirty metadata.
const SMALL: u32 = 10;
/// Metadata blocks on the path to a file's new blocks: maps, pages of the DAT and of the inode file, a directory block.
const PATH: u64 = 8;
/// Inodes stored in `MANY` blocks, with names of 12 bytes: 16 inodes or 170 names per block, and a block of names takes
/// a hundredth of a block for its map and its DAT entry.
const INODES_OF_MANY: u64 = 16 * 170 * 100;
const MANY: u64 = 170 * 100 + 16 * 101;
/// Blocks of extended attributes that a file can have on the smallest volume: one maximum value, and some small ones.
const FEW_ATTRIBUTE_BLOCKS: usize = 18;
/// Minimum number of segments.
pub(super) const FEWEST_SEGMENTS: u32 = 24;

impl Limits {
    /// The limits of a volume of `segments` segments of `segment_blocks` blocks.
    pub fn of(settings: &SfsSettings, segments: u32, segment_blocks: u32) -> Limits {
        let capacity = blocks_that_fit(segment_blocks, 0).unwrap_or(0).max(1);
        let segment_bytes = u64::from(segment_blocks) * BLOCK as u64;
        let device_bytes = u64::from(segments) * segment_bytes;
        let most = device_bytes / MOST_DIRTY;
        let asked = settings
            .dirty_bytes
            .unwrap_or_else(|| (DIRTY_SEGMENTS * segment_bytes).clamp(*DIRTY_BYTES.start(), *DIRTY_BYTES.end()));
        let dirty_blocks = asked.min(most).max(segment_bytes) / BLOCK as u64;
        let reserved = (device_bytes / RESERVED_METADATA).max(FEW_METADATA.min(device_bytes / MOST_DIRTY));
        let reserved = reserved.clamp(segment_bytes, MOST_METADATA) / BLOCK as u64;
        let in_segments = |blocks: u64| blocks.div_ceil(u64::from(capacity)) as u32;
        // Segments of one checkpoint: dirty host data, as much data being cleaned, and metadata. Each of these parts
        // can end in a partly filled segment.
        let needed = 2 * in_segments(dirty_blocks) + in_segments(reserved) + 3;
        // The DAT is a 128th of the device: all of it may be dirty, or a checkpoint would be taken as soon as half of it
        // is. The reserve holds the dirty data twice, and so has room for as much metadata more; that of a small volume has
        // none to spare.
        let metadata = match needed {
            0..=SMALL => reserved,
            _ => (2 * reserved).min(reserved + dirty_blocks).min(MOST_METADATA / BLOCK as u64),
        };
        // Enough for a second checkpoint if the first frees nothing.
        let floor = 2 * needed;
        let reserve = (floor + (segments / DEAD).max(4)).min(segments * 3 / 4);
        let usable = u64::from(segments - reserve) * u64::from(capacity);
        // The size of a volume does not depend on the memory of this machine.
        let shares = Shares::of(settings, segment_bytes);
        let dirty_blocks = (dirty_blocks as usize).min(shares.dirty_blocks);
        let log_segments = settings.checkpoint_segments.unwrap_or((segments / LOG).max(FEWEST_OF_LOG));
        Limits {
            segment_capacity: capacity,
            dirty_blocks,
            metadata: metadata as usize,
            floor,
            log_segments,
            usable,
            shares,
        }
    }
}

impl Limits {
    /// Virtual blocks that there can be in a log of so many blocks: as many as these; as many again that were freed; and what
    /// can be given out between two checkpoints, when no number is given out twice.
    pub fn most_taken(&self, log_blocks: u64) -> u64 {
        2 * log_blocks + (self.metadata as u64 + 1) * DAT_ENTRIES
    }

    /// Maximum blocks reserved at once, so that the next checkpoint fits.
    pub fn most_reserved_at_once(&self) -> u64 {
        (self.metadata as u64 * DAT_ENTRIES / 4).max(1)
    }

    /// Blocks of extended attributes that a file can have: a checkpoint must fit all earlier changes.
    pub fn most_attribute_blocks(&self) -> usize {
        (self.metadata / 2).clamp(FEW_ATTRIBUTE_BLOCKS, attribute_blocks::MOST_BLOCKS)
    }

    /// Segments that one checkpoint may take.
    pub fn of_checkpoint(&self) -> u32 {
        self.floor / 2
    }

    /// Free segments, besides those for dirty data, below which segments are freed: one and a half of what a checkpoint may
    /// take. More of them make cleaning expensive: docs/decisions/0015-heads.md.
    pub fn low(&self) -> u32 {
        let needed = self.of_checkpoint();
        needed + needed / 2
    }

    /// Free segments, besides those for dirty data, above which segments are freed without a checkpoint: by writing their
    /// live blocks, and log records. Below [`Limits::low`], so that cleaned segments are freed by the log as a rule.
    pub fn lowest(&self) -> u32 {
        let needed = self.of_checkpoint();
        needed + (self.low() - needed) / 2
    }

    /// True if `blocks` new blocks and their metadata fit after `more` blocks are freed.
    pub fn fits(&self, metadata: &MetadataFiles, blocks: u64, more: u64) -> bool {
        // A map block for each 512 blocks, a page of the DAT for each 128, and the path down to them.
        metadata.used_blocks() + blocks + blocks / 100 + PATH <= self.usable + more
    }

    /// Total and free space.
    pub fn space(&self, metadata: &MetadataFiles) -> Space {
        let free = (self.usable + metadata.reclaimable()).saturating_sub(metadata.used_blocks());
        // The metadata that is required for new blocks, and the blocks of a new file, are not reported as available.
        let promised = free.saturating_sub(2 * PATH);
        let free_inodes = promised * INODES_OF_MANY / MANY;
        Space {
            blocks: self.usable,
            free_blocks: free,
            available_blocks: promised * 100 / 101,
            inodes: metadata.inode_file.used() + free_inodes,
            free_inodes,
        }
    }
}
