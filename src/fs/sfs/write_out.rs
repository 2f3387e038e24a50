//! Segment writing (section 3.5): what waits is sorted into groups, and a group that fills a segment is written. What does not fill one
//! waits on, unless everything must go.

use super::format::NO_GROUP;
use super::log::{Destination, Item};
use super::placement::{BlockView, History, MOST_GROUPS, SegmentView, Tick};
use super::{Sfs, SfsError};

impl Sfs {
    /// Writes what waits: the groups that fill segments, and if `everything` must go, the rest behind them in segments of all groups.
    pub(super) fn write_out(&mut self, everything: bool) -> Result<(), SfsError> {
        if !everything {
            self.make_room()?;
        }
        self.write_groups(everything)?;
        if !everything && self.segments_since_checkpoint >= self.settings.checkpoint_segments {
            self.checkpoint(false)?;
        }
        Ok(())
    }

    /// Writes groups that fill segments; if `everything` must go, the rest, too.
    pub(super) fn write_groups(&mut self, everything: bool) -> Result<(), SfsError> {
        let capacity = self.limits.segment_capacity as usize;
        if self.waiting.len() < capacity && !everything {
            return Ok(());
        }
        let slots: Vec<u32> = self.waiting.all().collect();
        let mut grouped = self.group(&slots)?;
        let mut rest = Vec::new();
        for (group, slots) in grouped.iter_mut().enumerate() {
            // Who waits longest goes first.
            slots.sort_unstable_by_key(|slot| self.waiting.slot(*slot).since);
            let full = slots.len() / capacity * capacity;
            rest.extend(slots.drain(full..));
            for segment in slots.chunks_mut(capacity) {
                self.write_slots(Destination::Group(group as u8), segment)?;
            }
        }
        if everything && !rest.is_empty() {
            self.write_slots(Destination::Mixed, &mut rest)?;
        }
        Ok(())
    }

    /// Writes certain waiting blocks, each file's in order; what is cleaned behind what the host wrote, so that a label changes once.
    pub(super) fn write_slots(&mut self, to: Destination, slots: &mut [u32]) -> Result<(), SfsError> {
        debug_assert!(slots.iter().all(|slot| self.waiting.is_used(*slot)), "a slot is written once");
        slots.sort_unstable_by_key(|slot| {
            let slot = self.waiting.slot(*slot);
            (slot.is_cleaned, slot.inode, slot.place)
        });
        let items: Vec<Item> = slots.iter().map(|slot| Item::Waiting(*slot)).collect();
        self.write_blocks(to, &items)
    }

    /// Sorts waiting blocks into groups.
    fn group(&mut self, slots: &[u32]) -> Result<Vec<Vec<u32>>, SfsError> {
        let now = self.tick;
        let views: Vec<SegmentView> = self.segments.views().filter(|view| self.has_hotness(view)).collect();
        self.grouping.look(&views, now);
        let count = self.grouping.groups().clamp(1, MOST_GROUPS);
        let mut groups = vec![Vec::new(); count];
        let mut file = (0, History::default());
        for slot in slots {
            let waits = *self.waiting.slot(*slot);
            let entry = self.dat.get(waits.number, &mut self.media, &mut self.now)?;
            if file.0 != waits.inode {
                file = (waits.inode, self.inode(waits.inode)?.history);
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
