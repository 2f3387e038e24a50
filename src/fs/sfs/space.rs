//! How much there is, and how much is left.
//!
//! A log needs room to move: some segments are kept free for a checkpoint and for the cleaner, and some of what the rest holds must be dead,
//! or cleaning would gain nothing. What is left is for files and their metadata; a new block is refused when that is used up, so that one
//! which was accepted can always be written.

use super::memory::{INODE_BYTES, Shares};
use super::settings::SfsSettings;
use super::write_back::WriteBack;
use super::{Limits, Relief, Sfs, SfsError};
use crate::fs::sfs::files::attributes::Space;
use crate::fs::sfs::media::format::{BLOCK, blocks_that_fit};
use crate::task::Task;

/// One segment in so many is dead at least, even on a full volume.
const DEAD: u32 = 24;
/// What may wait, by default: in segments, and in bytes.
const WAITING_SEGMENTS: u64 = 12;
const WAITING_BYTES: std::ops::RangeInclusive<u64> = (64 << 20)..=(512 << 20);
/// No more of the device than this may wait.
const MOST_WAITING: u64 = 64;
/// No more of it than this may be changed metadata, but on a small device [`FEW_METADATA`], as far as that is no more than may wait.
const MOST_METADATA: u64 = 256;
const FEW_METADATA: u64 = 4 << 20;
/// Blocks of metadata on the way to new blocks of a file: maps, pages of the DAT and of the inode file, a directory's.
const PATH: u64 = 8;
/// Inodes that so many blocks hold, with names of 12 bytes: 16 inodes or 170 names take a block, and a block of names
/// takes a hundredth of one for its map and its entry.
const INODES_OF_MANY: u64 = 16 * 170 * 100;
const MANY: u64 = 170 * 100 + 16 * 101;
/// Segments that there must be at least.
pub(super) const FEWEST_SEGMENTS: u32 = 24;

impl Limits {
    /// The limits of a volume of `segments` segments of `segment_blocks` blocks.
    pub fn of(settings: &SfsSettings, segments: u32, segment_blocks: u32) -> Limits {
        let capacity = blocks_that_fit(segment_blocks, 0).unwrap_or(0).max(1);
        let segment_bytes = u64::from(segment_blocks) * BLOCK as u64;
        let device_bytes = u64::from(segments) * segment_bytes;
        let most = device_bytes / MOST_WAITING;
        let asked = settings
            .dirty_bytes
            .unwrap_or_else(|| (WAITING_SEGMENTS * segment_bytes).clamp(*WAITING_BYTES.start(), *WAITING_BYTES.end()));
        let waiting = asked.min(most).max(segment_bytes) / BLOCK as u64;
        let metadata = (device_bytes / MOST_METADATA).max(FEW_METADATA.min(device_bytes / MOST_WAITING));
        let metadata = metadata.clamp(segment_bytes, 256 << 20) / BLOCK as u64;
        let in_segments = |blocks: u64| blocks.div_ceil(u64::from(capacity)) as u32;
        // A checkpoint needs so many: for what the host wrote, for as much that is being cleaned, for metadata; and each of its parts ends in a
        // segment that is not full.
        let needed = 2 * in_segments(waiting) + in_segments(metadata) + 3;
        // Should one free nothing, there is enough for the next.
        let floor = 2 * needed;
        let reserve = (floor + (segments / DEAD).max(4)).min(segments * 3 / 4);
        let usable = u64::from(segments - reserve) * u64::from(capacity);
        // How much space there is does not depend on this machine's memory.
        let shares = Shares::of(settings, segment_bytes);
        let waiting = (waiting as usize).min(shares.waiting);
        Limits { segment_capacity: capacity, waiting, metadata: metadata as usize, floor, usable, shares }
    }
}

impl Sfs {
    /// Blocks that files and their metadata take.
    pub(super) fn used_blocks(&self) -> u64 {
        // Pages of metadata files go with what they tell of.
        self.metadata.dat.used() + self.metadata.dat.occupied() + self.metadata.inode_file.occupied()
    }

    /// Blocks that the next checkpoint gives back, as nothing in them is in use any more.
    fn reclaimable(&self) -> u64 {
        self.metadata.dat.emptied() + self.metadata.inode_file.emptied()
    }

    /// Whether `blocks` new blocks, and the metadata that they need, can be had, if so much more is given back.
    fn fits(&self, blocks: u64, more: u64) -> bool {
        // A map block for each 512, a page of the DAT for each 128, and the path down to them.
        self.used_blocks() + blocks + blocks / 100 + PATH <= self.limits.usable + more
    }

    /// Whether `blocks` new blocks can be had at once.
    pub(super) fn has_space(&self, blocks: u64) -> bool {
        self.fits(blocks, 0)
    }

    /// Fails unless `blocks` new blocks can be had. Takes a checkpoint, if they can behind it.
    pub(super) fn check_space(&mut self, task: &Task<'_>, blocks: u64) -> Result<(), SfsError> {
        if self.fits(blocks, 0) {
            return Ok(());
        }
        if !self.fits(blocks, self.reclaimable()) {
            let free = self.limits.usable.saturating_sub(self.used_blocks());
            return Err(SfsError::NoSpace { free, blocks: self.limits.usable });
        }
        if self.relief == Relief::ByCaller {
            // Whoever shares the volume takes the checkpoint beside its gate, and makes the call again.
            self.wants_checkpoint = true;
            return Err(SfsError::NoSpace { free: 0, blocks: self.limits.usable });
        }
        self.write_back(task).checkpoint_behind(WriteBack::keep_room)
    }

    /// How much there is, and how much is left.
    pub fn space(&self) -> Space {
        let free = (self.limits.usable + self.reclaimable()).saturating_sub(self.used_blocks());
        // What `check_space` asks for beside the blocks, and what a new file takes, are not promised.
        let promised = free.saturating_sub(2 * PATH);
        let free_inodes = promised * INODES_OF_MANY / MANY;
        Space {
            blocks: self.limits.usable,
            free_blocks: free,
            available_blocks: promised * 100 / 101,
            inodes: self.metadata.inode_file.used() + free_inodes,
            free_inodes,
        }
    }

    /// Bytes that the next checkpoint has to write or to load, beside blocks that wait.
    pub(super) fn changed_bytes(&mut self) -> u64 {
        let blocks = self.metadata.blocks.dirty()
            + self.metadata.dat.file().dirty_pages()
            + self.metadata.inode_file.file().dirty_pages()
            + self.inodes.changed_pages();
        blocks as u64 * BLOCK as u64 + self.inodes.changed() as u64 * INODE_BYTES + self.log.records.len() as u64
    }

    /// After a change: writes what waits, or takes a checkpoint, if there is too much of it.
    pub(super) fn relieve(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        if self.relief == Relief::ByCaller {
            return Ok(());
        }
        self.write_back(task).relieve()
    }
}
