//! Writeback of data (section 3.5): dirty blocks are sorted into groups, and groups that fill a segment are written.
//! Partial groups stay buffered, unless everything must be written.

use super::{Turns, WriteBack};
use crate::fs::sfs::files::dirty_blocks::Slot;
use crate::fs::sfs::log::{Destination, Item};
use crate::fs::sfs::media::format::{DatEntry, NO_GROUP};
use crate::fs::sfs::placement::{BlockView, History, MOST_GROUPS, SegmentView, Tick};
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;

/// Dirty blocks of one group that fill a segment: their slots, and the virtual block of each at the time of grouping.
struct GroupedSegment {
    group: u8,
    slots: Vec<(u32, u64)>,
}

impl<T: Turns> WriteBack<'_, T> {
    /// Writes the groups that fill segments, one segment per turn.
    pub(super) fn write_groups(&mut self) -> Result<(), SfsError> {
        match self.read_state(|sfs| sfs.dirty_blocks.len() < sfs.limits.segment_capacity as usize)? {
            true => Ok(()),
            false => self.write_full_segments(),
        }
    }

    /// Writes the groups that fill segments, then all other dirty blocks.
    pub(super) fn write_all_groups(&mut self) -> Result<(), SfsError> {
        self.write_full_segments()?;
        self.turn(|sfs, task| sfs.write_rest(task))
    }

    pub(super) fn write_full_segments(&mut self) -> Result<(), SfsError> {
        for segment in self.turn(|sfs, task| sfs.full_segments(task))? {
            self.turn(|sfs, task| sfs.write_full_segment(task, &segment))?;
        }
        Ok(())
    }
}

impl Sfs {
    /// Groups all dirty blocks. Returns those that fill segments.
    fn full_segments(&mut self, task: &Task<'_>) -> Result<Vec<GroupedSegment>, SfsError> {
        let capacity = self.limits.segment_capacity as usize;
        let slots: Vec<u32> = self.dirty_blocks.all().collect();
        let mut full = Vec::new();
        for (group, mut slots) in self.group(task, &slots)?.into_iter().enumerate() {
            // The oldest dirty blocks go first.
            slots.sort_unstable_by_key(|slot| self.dirty_blocks.slot(*slot).since);
            full.extend(slots.chunks_exact(capacity).map(|slots| GroupedSegment {
                group: group as u8,
                slots: slots.iter().map(|slot| (*slot, self.dirty_blocks.slot(*slot).number)).collect(),
            }));
        }
        Ok(full)
    }

    /// Writes a segment, unless one of its blocks was freed since the grouping: then the others stay buffered.
    fn write_full_segment(&mut self, task: &Task<'_>, segment: &GroupedSegment) -> Result<(), SfsError> {
        let is_buffered = |(slot, number): &(u32, u64)| {
            self.dirty_blocks.is_used(*slot) && self.dirty_blocks.slot(*slot).number == *number
        };
        if !segment.slots.iter().all(is_buffered) {
            return Ok(());
        }
        let mut slots: Vec<u32> = segment.slots.iter().map(|(slot, _)| *slot).collect();
        self.write_slots(task, Destination::Group(segment.group), &mut slots)
    }

    /// Writes all dirty blocks to the mixed segment.
    pub(super) fn write_rest(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let mut rest: Vec<u32> = self.dirty_blocks.all().collect();
        if rest.is_empty() { Ok(()) } else { self.write_slots(task, Destination::Mixed, &mut rest) }
    }

    /// Writes these dirty blocks, each file's in order, host writes before cleaned blocks so that the label changes
    /// once.
    fn write_slots(&mut self, task: &Task<'_>, to: Destination, slots: &mut [u32]) -> Result<(), SfsError> {
        debug_assert!(slots.iter().all(|slot| self.dirty_blocks.is_used(*slot)), "each slot is in use");
        slots.sort_unstable_by_key(|slot| {
            let slot = self.dirty_blocks.slot(*slot);
            (slot.is_cleaned, slot.inode, slot.place)
        });
        let items: Vec<Item> = slots.iter().map(|slot| Item::Data(*slot)).collect();
        self.write_blocks(task, to, &items)
    }

    /// Sorts dirty blocks into groups.
    fn group(&mut self, task: &Task<'_>, slots: &[u32]) -> Result<Vec<Vec<u32>>, SfsError> {
        let now = self.tick;
        let views: Vec<SegmentView> = self.log.segments.views().filter(|view| self.has_hotness(view)).collect();
        self.grouping.observe(&views, now);
        self.lives.observe(&views, now);
        let count = self.grouping.groups().clamp(1, MOST_GROUPS);
        let mut groups = vec![Vec::new(); count];
        for slot in slots {
            let waits = *self.dirty_blocks.slot(*slot);
            let entry = self.metadata.dat.get(task, waits.number)?;
            let view = self.block_view(task, &waits, &entry)?;
            groups[self.grouping.group_of(&view, now).min(count - 1)].push(*slot);
        }
        Ok(groups)
    }

    /// A dirty block for the grouping, with its entry in the DAT.
    pub(in crate::fs::sfs) fn block_view(
        &mut self,
        task: &Task<'_>,
        waits: &Slot,
        entry: &DatEntry,
    ) -> Result<BlockView, SfsError> {
        let file = self.inode(task, waits.inode)?;
        Ok(BlockView {
            block: History { writes: entry.writes.get(), modified: Tick(entry.modified.get()) },
            file: file.history,
            group: (entry.group != NO_GROUP).then_some(entry.group),
            cleaned_from: waits.is_cleaned.then_some(waits.cleaned_from),
            inode: waits.inode,
            place: waits.place,
            hint: waits.hint.or(file.hint),
            memory: entry.memory,
        })
    }

    /// True if a segment holds data blocks.
    fn has_hotness(&self, view: &SegmentView) -> bool {
        !self.log.segments.get(view.number).is_metadata
    }
}
