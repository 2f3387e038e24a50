//! Places for a file's blocks, in a map of either kind.

use super::extent_tree::in_extents;
use crate::fs::ext::allocation::blocks::Goal;
use crate::fs::ext::allocation::windows::window_blocks;
use crate::fs::ext::files::map::Maps;
use crate::fs::ext::files::node::File;
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::journal::Handle;
use crate::fs::volume::{FileKind, VolumeError};
use crate::task::Task;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Blocks that a change of a file's map may change: nodes, and bitmaps and descriptors where they are taken.
pub const MAP_BLOCKS: usize = 40;
/// Extents that are taken out of a file in one handle.
const CUT_AT_ONCE: usize = 8;
/// Blocks that one cut changes: a bitmap and a descriptor for each extent in two groups, nodes, the inode.
pub const CUT_BLOCKS: usize = 4 * CUT_AT_ONCE + MAP_BLOCKS;
/// Blocks of an older map that get a place in one handle: each may need a block of numbers.
pub const NUMBERS_AT_ONCE: u64 = 256;

impl Maps<'_> {
    /// A place near which block `at` of a file should lie: behind the block before it, or in the file's group.
    pub fn goal(&self, task: &Task<'_>, file: &File, at: u64) -> Result<Goal, VolumeError> {
        let room = if at > 0 { self.window_of(file) as u32 } else { 0 };
        let near = |near| Goal { near, owner: file.number, room };
        if let Some(before) = at.checked_sub(1)
            && let Some(place) = self.run(task, file, before)?.place
        {
            return Ok(near(place + 1));
        }
        if file.goal != 0 {
            return Ok(near(file.goal));
        }
        let (group, _) = self.metadata.shape.place_of_inode(file.number);
        Ok(near(self.metadata.shape.group_start(group) + self.metadata.shape.blocks_before(group).max(1)))
    }

    /// Blocks of the window of a file: only a regular file has one.
    fn window_of(&self, file: &File) -> u64 {
        match file.kind() {
            FileKind::Regular => {
                let free = self.allocation.space.free.blocks.load(Ordering::Relaxed);
                window_blocks(file.inode.size(), self.metadata.shape.block_bytes, free)
            }
            _ => 0,
        }
    }

    /// Puts a run of the volume where a file has a hole.
    pub fn put_run(
        &self,
        handle: &Handle<'_>,
        file: &mut File,
        first: u64,
        run: Range<u64>,
        is_written: bool,
    ) -> Result<(), VolumeError> {
        file.goal = run.end;
        // A file that is written once and never again has no window.
        if first > 0 {
            self.allocation.space.windows.set(file.number, run.end, self.window_of(file));
        }
        file.inode.add_blocks((run.end - run.start) as i64, self.metadata.shape.block_bytes);
        if file.inode.has(flag::EXTENTS) {
            for extent in in_extents(first, run, is_written) {
                self.add_extent(handle, file, extent)?;
            }
            return Ok(());
        }
        debug_assert!(is_written, "an older map knows no blocks that are not written");
        for (at, block) in (first..).zip(run) {
            self.put_number(handle, file, at, block)?;
        }
        Ok(())
    }

    /// Gives a part of a range of a file's blocks back, the last first. True if there are more.
    pub fn cut_some(&self, handle: &Handle<'_>, file: &mut File, blocks: Range<u64>) -> Result<bool, VolumeError> {
        if blocks.is_empty() {
            return Ok(false);
        }
        let (freed, is_more) = match file.inode.has(flag::EXTENTS) {
            true => self.cut_extents(handle, file, blocks, CUT_AT_ONCE)?,
            false => self.cut_numbers(handle, file, blocks, CUT_AT_ONCE)?,
        };
        let is_logged = file.kind() != FileKind::Regular || self.has_logged_data();
        for run in freed {
            file.inode.add_blocks(-((run.end - run.start) as i64), self.metadata.shape.block_bytes);
            self.allocation.free_blocks(handle, run, is_logged)?;
        }
        Ok(is_more)
    }
}
