//! Cuts files off, punches holes into them, and reserves blocks for them. All blocks that a change of a range may need are
//! promised before anything of the file changes: without room it fails, and the file is as it was.

use super::placing::{CUT_BLOCKS, MAP_BLOCKS};
use crate::fs::ext::allocation::space::Promise;
use crate::fs::ext::files::node::File;
use crate::fs::ext::files::writing::Writes;
use crate::fs::ext::format::extents::{MOST_UNWRITTEN, most_entries};
use crate::fs::ext::format::inode::flag;
use crate::fs::ext::journal::{Reason, Tracker};
use crate::fs::volume::{Allocation, FileKind, VolumeError};
use crate::task::Task;
use std::ops::Range;

/// Behind the last block that a file can have.
const END: u64 = u32::MAX as u64;
/// Blocks of the map that a hole in the middle of an extent may need: a new node at each depth, and some more.
const FOR_A_HOLE: u64 = 8;

impl Writes<'_> {
    /// Sets the size of a file: it is cut off, or lengthened by zeros.
    pub fn resize(&self, task: &Task<'_>, file: &mut File, size: u64) -> Result<(), VolumeError> {
        if size > self.metadata.shape.longest_file(file.inode.has(flag::EXTENTS)) {
            return Err(VolumeError::TooLarge);
        }
        let block = self.metadata.shape.block_bytes as u64;
        if size > file.inode.size() {
            self.clear_tail(task, file)?;
            file.inode.set_size(size);
            file.stored_size = size;
            file.is_unstored = true;
            return Ok(());
        }
        if size == 0 && file.inode.size() > 0 && self.settings.auto_da_alloc {
            self.write_back.waiting.was_emptied(file.number);
        }
        self.clear_bytes(task, file, size..size.next_multiple_of(block))?;
        self.drop_pages(file, size.div_ceil(block)..u64::MAX);
        file.inode.set_size(size);
        file.stored_size = size.min(file.stored_size);
        self.cut_all(task, file, size.div_ceil(block)..END, true)
    }

    /// Forgets pages that wait.
    pub fn drop_pages(&self, file: &mut File, blocks: Range<u64>) {
        let gone: Vec<u64> = file.pages.range(blocks).map(|(at, _)| *at).collect();
        for at in gone {
            let page = file.pages.remove(&at).expect("it is there");
            self.write_back.waiting.take_bytes(self.metadata.shape.block_bytes);
            if page.is_promised {
                self.write_back.inodes.maps.allocation.space.free.take_back(1);
            }
        }
    }

    /// Gives all blocks of a range back, in as many handles as it takes. A file that is cut off is an orphan meanwhile, so
    /// that a mount after a crash goes on. A hole in the middle needs room in the map, which the caller has promised.
    pub fn cut_all(
        &self,
        task: &Task<'_>,
        file: &mut File,
        blocks: Range<u64>,
        is_cut_off: bool,
    ) -> Result<(), VolumeError> {
        assert!(file.flight.is_none(), "blocks in flight are not freed");
        let was_orphan = file.is_orphan;
        let (mut is_more, mut is_in_parts) = (true, false);
        while is_more {
            self.changes.within(task, CUT_BLOCKS, |handle| {
                self.changes.changing(|| {
                    is_more = self.maps().cut_some(handle, file, blocks.clone())?;
                    if is_cut_off && is_more && !file.is_orphan {
                        self.write_back.inodes.add_orphan(handle, file)?;
                        is_in_parts = true;
                    }
                    if is_cut_off && !is_more && file.is_orphan && !was_orphan {
                        self.write_back.inodes.remove_orphan(handle, file)?;
                    }
                    self.write_back.inodes.store_inode(handle, file, true)
                })?;
                handle.tracked(|tracker| match is_in_parts {
                    true => tracker.exclude(Reason::CutInParts),
                    false => track_cut(tracker, file, blocks.clone()),
                });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The work of fallocate on a range of a file. Its times are the caller's.
    pub fn allocate_range(
        &self,
        task: &Task<'_>,
        file: &mut File,
        (offset, length): (u64, u64),
        how: Allocation,
    ) -> Result<(), VolumeError> {
        if length == 0 {
            return Err(VolumeError::Invalid("a range has a byte at least"));
        }
        let longest = self.metadata.shape.longest_file(file.inode.has(flag::EXTENTS));
        let (end, keep_size) = match how {
            Allocation::Reserve { keep_size } | Allocation::Zero { keep_size } => {
                let end = offset.checked_add(length).filter(|end| *end <= longest).ok_or(VolumeError::TooLarge)?;
                (end, keep_size)
            }
            Allocation::Punch => (offset.saturating_add(length).min(longest), true),
        };
        if how != Allocation::Punch && !file.inode.has(flag::EXTENTS) {
            return Err(VolumeError::Unsupported("a file with a block map has no reserved blocks"));
        }
        let block = self.metadata.shape.block_bytes as u64;
        let blocks = offset / block..end.div_ceil(block);
        if how == Allocation::Punch {
            let promise = self.allocation().promise(task, FOR_A_HOLE, false)?;
            if offset < end {
                self.punch(task, file, offset..end)?;
            }
            drop(promise);
            file.is_unstored = true;
            return Ok(());
        }
        let missing = self.missing(task, file, blocks.clone())?;
        // Each block may become an extent of its own, and each part of a long one that becomes unwritten.
        let extents = missing + (blocks.end - blocks.start) / u64::from(MOST_UNWRITTEN);
        let for_map = FOR_A_HOLE + extents.div_ceil(most_entries(self.metadata.shape.block_bytes, true) as u64 / 2);
        let promise = self.allocation().promise(task, missing + for_map, true)?;
        let whole = offset.div_ceil(block)..end / block;
        let zeroed = match how {
            Allocation::Zero { .. } if whole.start > whole.end => {
                self.clear_bytes(task, file, offset..end)?;
                0..0
            }
            Allocation::Zero { .. } => {
                self.clear_bytes(task, file, offset..whole.start * block)?;
                self.clear_bytes(task, file, whole.end * block..end)?;
                self.clear_pages(file, whole.clone());
                whole
            }
            _ => 0..0,
        };
        self.reserve(task, file, blocks, zeroed, promise)?;
        if !keep_size && end > file.inode.size() {
            self.clear_tail(task, file)?;
            file.inode.set_size(end);
            file.stored_size = file.stored_size.max(end);
        }
        file.is_unstored = true;
        Ok(())
    }

    /// Makes bytes zero, and gives their whole blocks back.
    fn punch(&self, task: &Task<'_>, file: &mut File, bytes: Range<u64>) -> Result<(), VolumeError> {
        let block = self.metadata.shape.block_bytes as u64;
        let whole = bytes.start.div_ceil(block)..bytes.end / block;
        if whole.start > whole.end {
            return self.clear_bytes(task, file, bytes);
        }
        self.clear_bytes(task, file, bytes.start..whole.start * block)?;
        self.clear_bytes(task, file, whole.end * block..bytes.end)?;
        if whole.is_empty() {
            return Ok(());
        }
        self.drop_pages(file, whole.clone());
        self.cut_all(task, file, whole.start..whole.end.min(END), false)
    }

    /// Makes the pages of whole blocks zero that wait: those that have a place are forgotten, which is unwritten soon, and the
    /// others keep the promise of one.
    fn clear_pages(&self, file: &mut File, blocks: Range<u64>) {
        let placed: Vec<u64> =
            file.pages.range(blocks.clone()).filter(|(_, page)| !page.is_promised).map(|(at, _)| *at).collect();
        placed.into_iter().for_each(|at| self.drop_pages(file, at..at + 1));
        for page in file.pages.range_mut(blocks).map(|(_, page)| page) {
            page.bytes = vec![0; page.bytes.len()].into();
        }
    }

    /// Gives blocks to the holes of a range, which read as zeros, and has the blocks of `zeroed` read so. All that this takes is
    /// promised.
    fn reserve(
        &self,
        task: &Task<'_>,
        file: &mut File,
        blocks: Range<u64>,
        zeroed: Range<u64>,
        mut promise: Promise<'_>,
    ) -> Result<(), VolumeError> {
        let mut at = blocks.start;
        while at < blocks.end {
            let run = self.maps().run(task, file, at)?;
            let count = run.count.min(blocks.end - at);
            let part = at.max(zeroed.start)..(at + count).min(zeroed.end);
            if run.is_written && run.place.is_some() && part.start < part.end {
                let part = part.start..part.end.min(part.start + u64::from(MOST_UNWRITTEN));
                self.changes.within(task, MAP_BLOCKS, |handle| {
                    self.changes.changing(|| {
                        self.maps().mark_unwritten(handle, file, part.clone())?;
                        self.write_back.inodes.store_inode(handle, file, true)
                    })?;
                    handle.tracked(|tracker| tracker.range(file.number, part.clone()));
                    Ok(())
                })?;
                at = part.end;
                continue;
            }
            if run.place.is_some() {
                at += count;
                continue;
            }
            // Of a hole whose bytes wait, places are promised already.
            let goal = self.maps().goal(task, file, at)?;
            let first = at;
            self.changes.within(task, 2 * MAP_BLOCKS, |handle| {
                self.changes.changing(|| {
                    let taken = self.allocation().take_blocks(handle, goal, count.min(MOST_UNWRITTEN.into()) as u32)?;
                    let end = at + (taken.end - taken.start);
                    let promised = file.pages.range(at..end).filter(|(_, page)| page.is_promised).count() as u64;
                    promise.was_used(end - at - promised);
                    self.maps().put_run(handle, file, at, taken, false)?;
                    at = end;
                    self.write_back.inodes.store_inode(handle, file, true)
                })?;
                handle.tracked(|tracker| tracker.range(file.number, first..at));
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Tracks a cut of a file. One without a name is freed whole by the replay of that loss.
fn track_cut(tracker: &Tracker, file: &File, blocks: Range<u64>) {
    if file.inode.links() > 0 && file.kind() == FileKind::Regular {
        tracker.range(file.number, blocks);
    }
}
