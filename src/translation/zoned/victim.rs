//! Whose zone reclaim frees next.
//!
//! The order is the kernel's: the conventional data zone that was unused for longest; if there are only buffers, the one
//! whose data zone is heaviest; if the reserve is used up, first of all a chunk whose sequential zone a merge frees. A
//! chunk with a request under way is not taken before the request is done. Nor is one whose blocks have nowhere to go: the
//! kernel takes it, fails, and looks again.

use super::Volume;
use super::media::{ZoneClass, ZoneId};
use super::zones::Use;
use crate::time::Time;

/// Whose zone is freed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Victim {
    pub chunk: u32,
    /// When the last of its requests that are under way is done.
    pub rests_at: Time,
}

impl Volume {
    /// The chunk whose zone is freed next: one at rest at `now` or, if there is none, the first to be. `None` if no zone
    /// can be freed, however long one waits.
    pub(super) fn next_victim(&self, idle: bool, now: Time) -> Option<Victim> {
        self.victim_at_rest(idle, now).or_else(|| {
            let classes = self.classes_to_free(idle).into_iter().flatten();
            let mapped = classes.flat_map(|class| self.zones.mapped(class));
            let rests_at = mapped.filter_map(|zone| self.reclaimable(zone)).map(|chunk| self.rests_at(chunk)).min()?;
            self.victim_at_rest(idle, rests_at.max(now))
        })
    }

    fn victim_at_rest(&self, idle: bool, now: Time) -> Option<Victim> {
        let at_rest = |zone: &ZoneId| self.reclaimable(*zone).is_some_and(|chunk| self.rests_at(chunk) <= now);
        let chunk = self.choose(idle, at_rest)?;
        Some(Victim { chunk, rests_at: now })
    }

    /// The classes of the zones that a write waits for and, if there is time for it, of the others.
    fn classes_to_free(&self, idle: bool) -> [Option<ZoneClass>; 2] {
        let first = self.zones.first_class();
        [Some(first), (idle && first == ZoneClass::Cache).then_some(ZoneClass::Random)]
    }

    fn rests_at(&self, chunk: u32) -> Time {
        self.zones.busy_until(self.metadata.entry(chunk).data)
    }

    /// The chunk of a mapped conventional zone, if reclaim can free a zone of it.
    fn reclaimable(&self, zone: ZoneId) -> Option<u32> {
        match self.zones.use_of(zone) {
            Use::Data(chunk) => (self.metadata.weight(zone) == 0 || self.has_target(zone)).then_some(chunk),
            Use::Buffer(chunk) => (!self.has_lost(self.metadata.entry(chunk).data)).then_some(chunk),
            _ => None,
        }
    }

    /// The first chunk in the order of reclaim of which `may` allows the conventional zone.
    fn choose(&self, idle: bool, may: impl Fn(&ZoneId) -> bool) -> Option<u32> {
        if self.zones.is_reserve_empty() {
            // Without a target nothing can be moved: a merge may free one.
            let buffer = |zone: ZoneId| {
                let Use::Data(chunk) = self.zones.use_of(zone) else { return None };
                let buffer =
                    self.metadata.entry(chunk).buffer.some().filter(|buffer| !self.zones.is_journal(*buffer))?;
                may(&buffer).then_some(chunk)
            };
            if let Some(chunk) = self.zones.mapped(ZoneClass::Sequential).find_map(buffer) {
                return Some(chunk);
            }
        }
        self.classes_to_free(idle).into_iter().flatten().find_map(|class| self.choose_of(class, &may))
    }

    fn choose_of(&self, class: ZoneClass, may: impl Fn(&ZoneId) -> bool) -> Option<u32> {
        let allowed = || self.zones.mapped(class).filter(&may);
        let data = allowed().find_map(|zone| match self.zones.use_of(zone) {
            Use::Data(chunk) => Some(chunk),
            _ => None,
        });
        data.or_else(|| {
            let buffers = allowed().filter_map(|zone| match self.zones.use_of(zone) {
                Use::Buffer(chunk) => Some((self.metadata.weight(self.metadata.entry(chunk).data), chunk)),
                _ => None,
            });
            // The first of the heaviest, as the list has it.
            let heaviest = buffers.fold(None, |best: Option<(u32, u32)>, next| match best {
                Some(best) if best.0 >= next.0 => Some(best),
                _ => Some(next),
            });
            heaviest.map(|(_, chunk)| chunk)
        })
    }
}
