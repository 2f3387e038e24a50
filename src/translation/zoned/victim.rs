//! Selects the zone to reclaim.
//!
//! The order is the kernel's: the least recently used conventional data zone; if there are only buffers, the one whose
//! data zone has the most valid blocks; if the reserve is used up, first a chunk whose sequential zone a merge frees. A
//! chunk with a request in flight waits for the request. A chunk without a destination is skipped: the kernel takes it,
//! fails, and looks again.

use super::Volume;
use super::media::{ZoneClass, ZoneId};
use super::zones::Use;
use crate::time::Time;

/// The chunk to reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Victim {
    pub chunk: u32,
    /// The time at which the last of its requests in flight is done.
    pub idle_at: Time,
}

impl Volume {
    /// The next victim: a chunk without requests in flight at `now` or, if there is none, the first to be. `None` if no
    /// zone can be freed, after any wait.
    pub(super) fn next_victim(&self, idle: bool, now: Time) -> Option<Victim> {
        self.idle_victim(idle, now).or_else(|| {
            let classes = self.classes_to_free(idle).into_iter().flatten();
            let mapped = classes.flat_map(|class| self.zones.mapped(class));
            let idle_at = mapped.filter_map(|zone| self.reclaimable(zone)).map(|chunk| self.idle_at(chunk)).min()?;
            self.idle_victim(idle, idle_at.max(now))
        })
    }

    fn idle_victim(&self, idle: bool, now: Time) -> Option<Victim> {
        let at_rest = |zone: &ZoneId| self.reclaimable(*zone).is_some_and(|chunk| self.idle_at(chunk) <= now);
        let chunk = self.choose(idle, at_rest)?;
        Some(Victim { chunk, idle_at: now })
    }

    /// The classes of zones that writes wait for and, in idle time, the others.
    fn classes_to_free(&self, idle: bool) -> [Option<ZoneClass>; 2] {
        let first = self.zones.first_class();
        [Some(first), (idle && first == ZoneClass::Cache).then_some(ZoneClass::Random)]
    }

    fn idle_at(&self, chunk: u32) -> Time {
        self.zones.busy_until(self.metadata.entry(chunk).data)
    }

    /// The chunk of a mapped conventional zone, if reclaim can free one of its zones.
    fn reclaimable(&self, zone: ZoneId) -> Option<u32> {
        match self.zones.use_of(zone) {
            Use::Data(chunk) => (self.metadata.weight(zone) == 0 || self.has_target(zone)).then_some(chunk),
            Use::Buffer(chunk) => (!self.has_lost(self.metadata.entry(chunk).data)).then_some(chunk),
            _ => None,
        }
    }

    /// The first chunk, in the order of reclaim, with a conventional zone that `may` allows.
    fn choose(&self, idle: bool, may: impl Fn(&ZoneId) -> bool) -> Option<u32> {
        if self.zones.is_reserve_empty() {
            // Without a destination nothing can be moved: a merge may free one.
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
            // The first of the heaviest, in the list's order.
            let heaviest = buffers.fold(None, |best: Option<(u32, u32)>, next| match best {
                Some(best) if best.0 >= next.0 => Some(best),
                _ => Some(next),
            });
            heaviest.map(|(_, chunk)| chunk)
        })
    }
}
