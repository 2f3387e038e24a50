//! Blocks: found near a goal, in one run if there is one that is long enough.

use super::bits;
use crate::fs::ext::allocation::Allocation;
use crate::fs::ext::error::damaged;
use crate::fs::ext::journal::Handle;
use crate::fs::volume::VolumeError;
use crate::task::{Gate, Task};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Groups that are searched for a run that is long enough before a shorter one does.
const GROUPS_SEARCHED: u32 = 32;

/// Where in a group a run is searched for: from a place on, or there alone.
#[derive(Clone, Copy)]
struct Search {
    at: u32,
    is_direct: bool,
    owner: u32,
}

/// Where blocks should lie.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The best block.
    pub near: u64,
    /// The inode of the file that they are for; 0 for metadata.
    pub owner: u32,
    /// Free blocks that should follow, since the file grows.
    pub room: u32,
}

impl Goal {
    /// The goal of a block of metadata.
    pub fn of_metadata(near: u64) -> Goal {
        Goal { near, owner: 0, room: 0 }
    }
}

/// Takes a run of a group's blocks that was found.
type TakeRun<'t> = &'t dyn Fn(u32, Range<u32>) -> Result<(), VolumeError>;

/// Blocks that are kept from others. They are let go when this is dropped, unless they were taken.
pub struct Kept<'e> {
    allocation: Allocation<'e>,
    run: Range<u64>,
    is_taken: Cell<bool>,
}

impl Kept<'_> {
    pub fn run(&self) -> Range<u64> {
        self.run.clone()
    }

    /// Marks them as used.
    pub fn take(&self, handle: &Handle<'_>) -> Result<(), VolumeError> {
        let (group, first) = self.allocation.metadata.shape.place_of_block(self.run.start);
        let _alone = self.allocation.group_gate(group).enter(handle.task);
        self.allocation.mark(handle, group, first..first + (self.run.end - self.run.start) as u32)?;
        self.let_go();
        Ok(())
    }

    fn let_go(&self) {
        if !self.is_taken.replace(true)
            && let Ok(journal) = self.allocation.changes.journal()
        {
            journal.common().unhold(self.run.start);
        }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl<'e> Allocation<'e> {
    /// The gate of a group.
    pub fn group_gate(&self, group: u32) -> &Gate<()> {
        &self.space.groups[group as usize % self.space.groups.len()]
    }

    /// Takes at most `count` blocks in one run, near `goal` if it can. Their number was promised; the promise is not
    /// touched.
    pub fn take_blocks(&self, handle: &Handle<'_>, goal: Goal, count: u32) -> Result<Range<u64>, VolumeError> {
        self.search(handle.task, goal, count, &|group, run| self.mark(handle, group, run))
    }

    /// Keeps at most `count` blocks in one run from being taken by others, until they are taken or let go.
    pub fn keep_blocks(&self, task: &Task<'_>, goal: Goal, count: u32) -> Result<Kept<'e>, VolumeError> {
        let run = self.search(task, goal, count, &|group, run| {
            let first = self.metadata.shape.group_start(group);
            self.changes.journal()?.common().withhold(first + u64::from(run.start)..first + u64::from(run.end));
            Ok(())
        })?;
        Ok(Kept { allocation: *self, run, is_taken: Cell::new(false) })
    }

    /// Searches for a run, and has `take` take it behind the group's gate. Windows of other files are taken from last.
    fn search(&self, task: &Task<'_>, goal: Goal, count: u32, take: TakeRun) -> Result<Range<u64>, VolumeError> {
        match self.search_outside_of_windows(task, goal, count, take) {
            Err(VolumeError::NoSpace { .. }) if self.space.windows.clear() => {
                self.search_outside_of_windows(task, goal, count, take)
            }
            found => found,
        }
    }

    fn search_outside_of_windows(
        &self,
        task: &Task<'_>,
        Goal { near, owner, room }: Goal,
        count: u32,
        take: TakeRun,
    ) -> Result<Range<u64>, VolumeError> {
        let near = if self.metadata.shape.holds(near, 1) { near } else { self.metadata.shape.first_data_block + 1 };
        let (first, from) = self.metadata.shape.place_of_block(near);
        // A run directly behind the goal is best, however short it is.
        if let Some(run) = self.take_in(task, first, Search { at: from, is_direct: true, owner }, count, 1, take)? {
            return Ok(run);
        }
        let mut best: Option<(u32, u32)> = None;
        for step in 0..self.metadata.shape.groups {
            if step >= GROUPS_SEARCHED && best.is_some() {
                break;
            }
            let group = (first + step) % self.metadata.shape.groups;
            let search = Search { at: if step == 0 { from } else { 0 }, is_direct: false, owner };
            for room in [room, 0].into_iter().skip(usize::from(room == 0)) {
                if let Some(run) = self.take_in(task, group, search, count, count + room, take)? {
                    return Ok(run);
                }
            }
            let longest = self.longest_run(task, group, owner, count)?;
            if longest > best.map_or(0, |(_, longest)| longest) {
                best = Some((group, longest));
            }
        }
        // Somebody else may take it meanwhile; then any does.
        let groups = best.map(|(group, _)| group).into_iter().chain(0..self.metadata.shape.groups);
        for group in groups {
            if let Some(run) = self.take_in(task, group, Search { at: 0, is_direct: false, owner }, count, 1, take)? {
                return Ok(run);
            }
        }
        Err(self.no_space())
    }

    /// The bitmap of a group with the blocks that the file `owner` may not use: those that were freed and not committed, and
    /// windows of other files.
    fn usable_bits(&self, task: &Task<'_>, group: u32, owner: u32) -> Result<Option<Vec<u8>>, VolumeError> {
        let descriptor = self.metadata.descriptor(task, group)?;
        if descriptor.free_blocks == 0 {
            return Ok(None);
        }
        let mut bits = self.block_bitmap(task, group, &descriptor)?.to_vec();
        let first = self.metadata.shape.group_start(group);
        let blocks = first..first + self.metadata.shape.blocks_of_group(group);
        for range in self.unusable(owner, blocks)? {
            bits::put(&mut bits, (range.start - first) as u32..(range.end - first) as u32, true);
        }
        Ok(Some(bits))
    }

    /// The parts of a range of blocks that the file `owner` may not use, although they are free.
    fn unusable(
        &self,
        owner: u32,
        blocks: Range<u64>,
    ) -> Result<impl Iterator<Item = Range<u64>> + use<>, VolumeError> {
        let withheld = self.changes.journal()?.common().withheld(blocks.clone());
        Ok(withheld.into_iter().chain(self.space.windows.of_others(owner, &blocks)))
    }

    /// The run of at most `count` blocks of a group, which ends at `end`, that begins where the search says: `None` if that block
    /// cannot be used.
    fn usable_run_at(
        &self,
        task: &Task<'_>,
        group: u32,
        search: Search,
        end: u32,
        count: u32,
    ) -> Result<Option<Range<u32>>, VolumeError> {
        let descriptor = self.metadata.descriptor(task, group)?;
        if descriptor.free_blocks == 0 {
            return Ok(None);
        }
        let bits = self.block_bitmap(task, group, &descriptor)?;
        let Some(mut run) = bits::run_at(&bits, search.at, end, count) else { return Ok(None) };
        let first = self.metadata.shape.group_start(group);
        for range in self.unusable(search.owner, first + u64::from(run.start)..first + u64::from(run.end))? {
            run.end = run.end.min((range.start - first) as u32);
        }
        Ok(Some(run).filter(|run| !run.is_empty()))
    }

    fn longest_run(&self, task: &Task<'_>, group: u32, owner: u32, count: u32) -> Result<u32, VolumeError> {
        let _alone = self.group_gate(group).enter(task);
        let end = self.metadata.shape.blocks_of_group(group) as u32;
        let bits = self.usable_bits(task, group, owner)?;
        let run = bits.and_then(|bits| bits::find_run(&bits, 0, end, count));
        Ok(run.map_or(0, |run| run.end - run.start))
    }

    /// Takes `count` blocks of a group at the most, from a free run of at least `least`.
    fn take_in(
        &self,
        task: &Task<'_>,
        group: u32,
        search: Search,
        count: u32,
        least: u32,
        take: TakeRun,
    ) -> Result<Option<Range<u64>>, VolumeError> {
        let _alone = self.group_gate(group).enter(task);
        let end = self.metadata.shape.blocks_of_group(group) as u32;
        let found = match search.is_direct {
            true => self.usable_run_at(task, group, search, end, count)?,
            false => self
                .usable_bits(task, group, search.owner)?
                .and_then(|bits| bits::find_run(&bits, search.at.min(end), end, count.max(least))),
        };
        let Some(run) = found.filter(|run| run.end - run.start >= least) else {
            return Ok(None);
        };
        let run = run.start..run.end.min(run.start + count);
        let first = self.metadata.shape.group_start(group);
        let blocks = first + u64::from(run.start)..first + u64::from(run.end);
        if self.metadata.own_blocks.overlaps(&blocks) {
            let why = format!("blocks {blocks:?} are free, and some of them are the volume's own");
            return Err(damaged(format!("the block bitmap of group {group}"), why));
        }
        take(group, run)?;
        Ok(Some(blocks))
    }

    /// Marks blocks of a group as used. The task is behind its gate.
    fn mark(&self, handle: &Handle<'_>, group: u32, run: Range<u32>) -> Result<(), VolumeError> {
        let mut descriptor = self.metadata.descriptor(handle.task, group)?;
        let mut bits = self.block_bitmap(handle.task, group, &descriptor)?.to_vec();
        bits::put(&mut bits, run.clone(), true);
        descriptor.free_blocks = descriptor.free_blocks.saturating_sub(run.end - run.start);
        self.store_block_bitmap(handle, group, &mut descriptor, bits)?;
        self.space.free.blocks.fetch_sub((run.end - run.start).into(), Ordering::SeqCst);
        Ok(())
    }

    /// Takes these blocks, which are free.
    ///
    /// # Errors
    ///
    /// One of them is in use, or can be none of a file.
    pub fn take_exactly(&self, handle: &Handle<'_>, range: Range<u64>) -> Result<(), VolumeError> {
        let what = || format!("blocks {range:?}");
        if range.is_empty() || !self.metadata.can_be_a_files(range.start, range.end - range.start) {
            return Err(damaged(what(), "they can be none of a file"));
        }
        let mut at = range.start;
        while at < range.end {
            let (group, first) = self.metadata.shape.place_of_block(at);
            let count = (range.end - at).min(self.metadata.shape.group_blocks - u64::from(first)) as u32;
            let _alone = self.group_gate(group).enter(handle.task);
            let descriptor = self.metadata.descriptor(handle.task, group)?;
            let bits = self.block_bitmap(handle.task, group, &descriptor)?;
            if let Some(used) = bits::next_used(&bits, first, first + count) {
                let block = self.metadata.shape.group_start(group) + u64::from(used);
                return Err(damaged(what(), format!("block {block} is in use")));
            }
            self.mark(handle, group, first..first + count)?;
            at += u64::from(count);
        }
        Ok(())
    }

    /// Takes one block for metadata, which was promised.
    pub fn take_block(&self, handle: &Handle<'_>, near: u64) -> Result<u64, VolumeError> {
        Ok(self.take_blocks(handle, Goal::of_metadata(near), 1)?.start)
    }

    /// Gives blocks back. `is_logged`: they may be in the log.
    pub fn free_blocks(&self, handle: &Handle<'_>, range: Range<u64>, is_logged: bool) -> Result<(), VolumeError> {
        if range.is_empty() {
            return Ok(());
        }
        if !self.metadata.can_be_a_files(range.start, range.end - range.start) {
            return Err(damaged(format!("blocks {range:?}"), "they are none of a file"));
        }
        let mut at = range.start;
        while at < range.end {
            let (group, first) = self.metadata.shape.place_of_block(at);
            let count = (range.end - at).min(self.metadata.shape.group_blocks - u64::from(first)) as u32;
            let _alone = self.group_gate(group).enter(handle.task);
            let mut descriptor = self.metadata.descriptor(handle.task, group)?;
            let mut bits = self.block_bitmap(handle.task, group, &descriptor)?.to_vec();
            if let Some(free) = bits::next_clear(&bits, first, first + count) {
                let block = self.metadata.shape.group_start(group) + u64::from(free);
                return Err(damaged(
                    format!("the block bitmap of group {group}"),
                    format!("block {block} is free twice"),
                ));
            }
            bits::put(&mut bits, first..first + count, false);
            descriptor.free_blocks += count;
            self.store_block_bitmap(handle, group, &mut descriptor, bits)?;
            handle.free(at..at + u64::from(count), is_logged);
            self.space.free.blocks.fetch_add(count.into(), Ordering::SeqCst);
            at += u64::from(count);
        }
        Ok(())
    }
}
