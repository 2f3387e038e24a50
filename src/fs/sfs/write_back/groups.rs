//! Writeback of data (section 3.5): dirty blocks are sorted into groups, and those that fill the open segment of their
//! group are written. The others stay buffered, unless they must be written: then each goes to the open segment of its
//! group, too.

use super::writer::{Destination, Item, Writer};
use super::{Turns, WriteBack};
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::records::RecordsToWrite;
use crate::fs::sfs::media::format::MOST_HEADS;
use crate::fs::sfs::placement::{MOST_GROUPS, SegmentView};
use crate::fs::sfs::{Sfs, SfsError};
use crate::task::Task;

/// The grouping observes the segments anew after a segment's blocks divided by this.
const OBSERVATIONS: u64 = 8;

/// Dirty blocks that fill the open segment of a head, or a new one: their slots, and the virtual block of each at the
/// time of grouping.
pub(super) struct FullSegment {
    head: u8,
    slots: Vec<(u32, u64)>,
}

/// Writes the groups that fill segments, if any can.
pub(super) fn write_groups<T: Turns>(write_back: &mut WriteBack<'_, T>) -> Result<(), SfsError> {
    let task = write_back.task;
    match write_back.read_state(|sfs| sfs.files.dirty_blocks.len() < GroupWriter::of(task, sfs).smallest_room())? {
        true => Ok(()),
        false => write_full_segments(write_back),
    }
}

/// Writes the groups that fill segments, one segment per turn.
pub(super) fn write_full_segments<T: Turns>(write_back: &mut WriteBack<'_, T>) -> Result<(), SfsError> {
    for segment in write_back.turn(|sfs, task| GroupWriter::of(task, sfs).full_segments())? {
        write_back.turn(|sfs, task| GroupWriter::of(task, sfs).write_full_segment(&segment))?;
    }
    Ok(())
}

/// Writes the groups that fill segments, then all other dirty blocks.
pub(super) fn write_all_groups<T: Turns>(write_back: &mut WriteBack<'_, T>) -> Result<(), SfsError> {
    write_full_segments(write_back)?;
    write_back.turn(|sfs, task| GroupWriter::of(task, sfs).write_rest())
}

/// The writer of dirty blocks in groups.
pub(super) struct GroupWriter<'w> {
    pub task: &'w Task<'w>,
    pub files: &'w mut Files,
    pub writer: &'w mut Writer,
}

impl<'w> GroupWriter<'w> {
    /// Of this volume.
    pub fn of(task: &'w Task<'w>, volume: &'w mut Sfs) -> GroupWriter<'w> {
        GroupWriter { task, files: &mut volume.files, writer: &mut volume.writer }
    }

    /// Groups all dirty blocks. Returns those that fill segments.
    pub fn full_segments(&mut self) -> Result<Vec<FullSegment>, SfsError> {
        let slots: Vec<u32> = self.files.dirty_blocks.all().collect();
        let mut full = Vec::new();
        for (head, mut slots) in self.by_head(&slots)? {
            // The oldest dirty blocks go first.
            slots.sort_unstable_by_key(|slot| self.files.dirty_blocks.slot(*slot).since);
            let (mut left, mut room) = (&slots[..], self.room_to_fill(head));
            while let Some((slots, rest)) = left.split_at_checked(room) {
                let slots = slots.iter().map(|slot| (*slot, self.files.dirty_blocks.slot(*slot).number)).collect();
                full.push(FullSegment { head, slots });
                (left, room) = (rest, self.writer.limits.segment_capacity as usize);
            }
        }
        Ok(full)
    }

    /// Blocks that fill the open segment of a head, or a new one.
    fn room_to_fill(&self, head: u8) -> usize {
        match self.writer.room_at(self.files.media.segment_blocks(), Destination::Head(head)) {
            0 => self.writer.limits.segment_capacity as usize,
            room => room as usize,
        }
    }

    /// The most of so many blocks that fill the open segment of a head and new ones behind it.
    fn blocks_that_fill(&self, head: u8, blocks: usize) -> usize {
        let (room, capacity) = (self.room_to_fill(head), self.writer.limits.segment_capacity as usize);
        blocks.checked_sub(room).map_or(0, |behind| room + behind / capacity * capacity)
    }

    /// The least number of blocks that fill a segment.
    pub fn smallest_room(&self) -> usize {
        let rest = self.writer.log.rest_head();
        let of_groups = self.writer.log.open_heads().filter(|(head, _)| Some(*head) != rest);
        of_groups.map(|(head, _)| self.room_to_fill(head)).min().unwrap_or(self.writer.limits.segment_capacity as usize)
    }

    /// Writes a segment, unless one of its blocks was freed since the grouping: then the others stay buffered.
    pub fn write_full_segment(&mut self, segment: &FullSegment) -> Result<(), SfsError> {
        let is_buffered = |(slot, number): &(u32, u64)| {
            self.files.dirty_blocks.is_used(*slot) && self.files.dirty_blocks.slot(*slot).number == *number
        };
        if !segment.slots.iter().all(is_buffered) {
            return Ok(());
        }
        let mut slots: Vec<u32> = segment.slots.iter().map(|(slot, _)| *slot).collect();
        self.write_slots(Destination::Head(segment.head), &mut slots, RecordsToWrite::nothing(), false)
    }

    /// Writes all dirty blocks, each at the head of its group, or all at that of the rest.
    pub fn write_rest(&mut self) -> Result<(), SfsError> {
        let slots: Vec<u32> = self.files.dirty_blocks.all().collect();
        let by_head = self.by_head(&slots)?;
        let parts = match self.writer.log.rest_head() {
            Some(rest) if !slots.is_empty() => vec![(rest, slots)],
            _ => by_head,
        };
        for (head, mut slots) in parts {
            self.write_slots(Destination::Head(head), &mut slots, RecordsToWrite::nothing(), false)?;
        }
        Ok(())
    }

    /// The changed blocks of a sync by the heads at which they are written.
    pub fn parts_of_sync(&mut self, slots: &[u32]) -> Result<Vec<(u8, Vec<u32>)>, SfsError> {
        let parts = self.by_head(slots)?;
        let Some(rest_head) = self.writer.log.rest_head() else { return Ok(self.writer.log.sync_heads.merge(&parts)) };
        let (mut full, mut rest) = (Vec::new(), Vec::new());
        for (head, mut slots) in parts {
            rest.extend(slots.split_off(self.blocks_that_fill(head, slots.len())));
            if !slots.is_empty() {
                full.push((head, slots));
            }
        }
        if !rest.is_empty() {
            full.push((rest_head, rest));
        }
        Ok(full)
    }

    /// Writes these dirty blocks after log records, each file's in order, host writes before cleaned blocks so that the
    /// label changes once.
    pub fn write_slots(
        &mut self,
        to: Destination,
        slots: &mut [u32],
        told: RecordsToWrite,
        seals: bool,
    ) -> Result<(), SfsError> {
        debug_assert!(slots.iter().all(|slot| self.files.dirty_blocks.is_used(*slot)), "each slot is in use");
        slots.sort_unstable_by_key(|slot| {
            let slot = self.files.dirty_blocks.slot(*slot);
            (slot.is_cleaned(), slot.inode, slot.place)
        });
        let items: Vec<Item> = slots.iter().map(|slot| Item::Data(*slot)).collect();
        self.writer.write_with_records(self.task, self.files, to, &items, told, seals)
    }

    /// Assigns dirty blocks to groups, and returns them by the heads of these, without heads that have none.
    fn by_head(&mut self, slots: &[u32]) -> Result<Vec<(u8, Vec<u32>)>, SfsError> {
        let now = self.files.clock.tick;
        if self.writer.log.unobserved_blocks >= u64::from(self.writer.limits.segment_capacity) / OBSERVATIONS {
            let views: Vec<SegmentView> = self.files.segments.views().filter(|view| self.has_hotness(view)).collect();
            self.writer.grouping.observe(&views, now);
            self.files.segments.lives.observe(&views, now);
            self.writer.log.unobserved_blocks = 0;
        }
        let count = self.writer.grouping.groups().clamp(1, MOST_GROUPS);
        let mut blocks = Vec::with_capacity(slots.len());
        for slot in slots {
            let waits = *self.files.dirty_blocks.slot(*slot);
            let entry = self.files.metadata.dat.get(self.task, waits.number)?;
            blocks.push(self.files.block_view(self.task, &waits, &entry)?);
        }
        let chosen = self.writer.grouping.groups_of(&blocks, now);
        assert_eq!(chosen.len(), slots.len(), "each block has a group");
        let mut heads = vec![Vec::new(); MOST_HEADS];
        for (slot, group) in slots.iter().zip(chosen) {
            let group = group.min(count - 1);
            self.files.dirty_blocks.slot_mut(*slot).group = group as u8;
            heads[usize::from(self.writer.log.head_of(group, count))].push(*slot);
        }
        Ok((0..).zip(heads).filter(|(_, slots)| !slots.is_empty()).collect())
    }

    /// True if a segment holds data blocks.
    fn has_hotness(&self, view: &SegmentView) -> bool {
        !self.files.segments.get(view.number).is_metadata
    }
}
