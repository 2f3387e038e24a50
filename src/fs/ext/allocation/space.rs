//! How much is free, and how much of it is promised: to bytes of files that wait without a place, and to calls that are
//! under way.

use crate::fs::ext::allocation::Allocation;
use crate::fs::volume::VolumeError;
use crate::task::Task;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks that are kept for the maps of files whose bytes wait.
pub const KEPT_FOR_MAPS: u64 = 32;

/// Free blocks and inodes of the whole volume.
#[derive(Debug, Default)]
pub struct Free {
    pub blocks: AtomicU64,
    pub inodes: AtomicU64,
    promised: AtomicU64,
}

/// Blocks that are promised to a call, until it is dropped.
pub struct Promise<'f> {
    free: &'f Free,
    blocks: u64,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.free.take_back(self.blocks);
    }
}

impl Promise<'_> {
    /// So many of its blocks were taken.
    pub fn was_used(&mut self, blocks: u64) {
        debug_assert!(blocks <= self.blocks, "{blocks} of {} promised", self.blocks);
        let blocks = blocks.min(self.blocks);
        self.blocks -= blocks;
        self.free.take_back(blocks);
    }

    /// Keeps the promise beyond the call.
    pub fn keep(mut self) {
        self.blocks = 0;
    }
}

impl Free {
    /// Blocks that were promised are not any more: they are used, or not needed.
    pub fn take_back(&self, blocks: u64) {
        self.promised.fetch_sub(blocks, Ordering::SeqCst);
    }

    /// Promises blocks, if so many of `usable` are left.
    fn promise(&self, blocks: u64, usable: u64) -> Option<Promise<'_>> {
        let promised = self.promised.fetch_add(blocks, Ordering::SeqCst);
        let promise = Promise { free: self, blocks };
        (promised + blocks <= usable).then_some(promise)
    }

    pub fn promised(&self) -> u64 {
        self.promised.load(Ordering::SeqCst)
    }
}

impl<'e> Allocation<'e> {
    /// Promises blocks to a call. Those that were freed are waited for if there are no others: the task has no handle.
    pub fn promise(&self, task: &Task<'_>, blocks: u64, is_for_data: bool) -> Result<Promise<'e>, VolumeError> {
        let journal = self.changes.journal()?;
        let kept = if is_for_data { KEPT_FOR_MAPS + self.space.free.promised() / 64 } else { 0 };
        for is_last in [false, true] {
            let free = self.space.free.blocks.load(Ordering::SeqCst);
            let usable = free.saturating_sub(journal.common().withheld_blocks() + kept);
            if let Some(promise) = self.space.free.promise(blocks, usable) {
                return Ok(promise);
            }
            if is_last || journal.common().withheld_blocks() == 0 {
                break;
            }
            journal.commit_freed(task)?;
        }
        Err(self.no_space())
    }

    /// There is not enough room.
    pub fn no_space(&self) -> VolumeError {
        let units = |blocks: u64| blocks * self.metadata.shape.block_bytes as u64 / crate::units::BLOCK_BYTES;
        VolumeError::NoSpace {
            free: units(self.space.free.blocks.load(Ordering::SeqCst)),
            blocks: units(self.metadata.shape.blocks),
        }
    }
}
