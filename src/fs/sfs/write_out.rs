//! Segment writing (section 3.5): what waits is sorted into groups, and a group that fills a segment is written. What does not fill one
//! waits on, unless everything must go.

use super::checkpoint::WrittenCheckpoint;
use super::format::NO_GROUP;
use super::log::{Destination, Item};
use super::placement::{BlockView, History, MOST_GROUPS, SegmentView, Tick};
use super::{Sfs, SfsError};
use crate::task::Task;

impl Sfs {
    /// Writes the groups that fill segments. Answers the checkpoint that is due then, if one is.
    pub(super) fn begin_write_out(&mut self, task: &Task<'_>) -> Result<Option<WrittenCheckpoint>, SfsError> {
        self.make_room(task)?;
        self.write_groups(task, false)?;
        match self.segments_since_checkpoint >= self.settings.checkpoint_segments {
            true => self.begin_checkpoint(task, false).map(Some),
            false => Ok(None),
        }
    }

    /// Writes groups that fill segments; if `everything` must go, the rest, too.
    pub(super) fn write_groups(&mut self, task: &Task<'_>, everything: bool) -> Result<(), SfsError> {
        let capacity = self.limits.segment_capacity as usize;
        if self.waiting.len() < capacity && !everything {
            return Ok(());
        }
        let slots: Vec<u32> = self.waiting.all().collect();
        let mut grouped = self.group(task, &slots)?;
        let mut rest = Vec::new();
        for (group, slots) in grouped.iter_mut().enumerate() {
            // Who waits longest goes first.
            slots.sort_unstable_by_key(|slot| self.waiting.slot(*slot).since);
            let full = slots.len() / capacity * capacity;
            rest.extend(slots.drain(full..));
            for segment in slots.chunks_mut(capacity) {
                self.write_slots(task, Destination::Group(group as u8), segment)?;
            }
        }
        if everything && !rest.is_empty() {
            self.write_slots(task, Destination::Mixed, &mut rest)?;
        }
        Ok(())
    }

    /// Writes certain waiting blocks, each file's in order; what is cleaned behind what the host wrote, so that a label changes once.
    pub(super) fn write_slots(&mut self, task: &Task<'_>, to: Destination, slots: &mut [u32]) -> Result<(), SfsError> {
        debug_assert!(slots.iter().all(|slot| self.waiting.is_used(*slot)), "a slot is written once");
        slots.sort_unstable_by_key(|slot| {
            let slot = self.waiting.slot(*slot);
            (slot.is_cleaned, slot.inode, slot.place)
        });
        let items: Vec<Item> = slots.iter().map(|slot| Item::Waiting(*slot)).collect();
        self.write_blocks(task, to, &items)
    }

    /// Sorts waiting blocks into groups.
    fn group(&mut self, task: &Task<'_>, slots: &[u32]) -> Result<Vec<Vec<u32>>, SfsError> {
        let now = self.tick;
        let views: Vec<SegmentView> = self.segments.views().filter(|view| self.has_hotness(view)).collect();
        self.grouping.look(&views, now);
        let count = self.grouping.groups().clamp(1, MOST_GROUPS);
        let mut groups = vec![Vec::new(); count];
        let mut file = (0, History::default());
        for slot in slots {
            let waits = *self.waiting.slot(*slot);
            let entry = self.dat.get(task, waits.number)?;
            if file.0 != waits.inode {
                file = (waits.inode, self.inode(task, waits.inode)?.history);
            }
            let view = BlockView {
                block: History { writes: entry.writes.get(), modified: Tick(entry.modified.get()) },
                file: file.1,
                group: (entry.group != NO_GROUP).then_some(entry.group),
                cleaned_from: waits.is_cleaned.then_some(waits.cleaned_from),
            };
            groups[self.grouping.group_of(&view, now).min(count - 1)].push(*slot);
        }
        Ok(groups)
    }

    /// Whether a segment holds blocks of files.
    fn has_hotness(&self, view: &SegmentView) -> bool {
        !self.segments.get(view.number).is_metadata
    }
}
