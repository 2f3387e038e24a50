//! Asynchronous events of a controller: requests that wait, what happened, and what was told of it.
//!
//! There is one kind of event: the description of a zone has changed although no host changed it, such as by wear. Each
//! namespace is told of once, until its log is read.

use std::collections::{BTreeMap, BTreeSet};

/// Requests that may wait; the field of the controller is one less.
pub const MOST_WAITING: usize = 4;
/// Zones in the log of changed ones.
pub const MOST_ZONES: usize = 511;
/// The bit of the configuration that enables the event.
pub const ZONES_CHANGED: u32 = 1 << 27;

/// The changed zones of a namespace.
#[derive(Debug, Default)]
struct Changed {
    zones: BTreeSet<u64>,
    /// There were more than the log has room for.
    overflows: bool,
    is_told: bool,
}

/// The events of a controller.
#[derive(Debug, Default)]
pub struct Events {
    /// The bits of the enabled events.
    pub enabled: u32,
    waiting: Vec<u16>,
    changed: BTreeMap<u32, Changed>,
}

/// A request that is completed: its identifier, and the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The identifier of the request.
    pub id: u16,
    /// Type, information and log, and the namespace.
    pub result: u64,
}

impl Events {
    /// Parks a request; false if as many wait as may.
    pub fn park(&mut self, id: u16) -> bool {
        let has_room = self.waiting.len() < MOST_WAITING;
        if has_room {
            self.waiting.push(id);
        }
        has_room
    }

    /// Takes a waiting request away; false if none has this identifier.
    pub fn abort(&mut self, id: u16) -> bool {
        let place = self.waiting.iter().position(|waiting| *waiting == id);
        place.map(|place| self.waiting.remove(place)).is_some()
    }

    /// Forgets requests and configuration, as a reset does.
    pub fn reset(&mut self) {
        *self = Events { changed: std::mem::take(&mut self.changed), ..Events::default() };
    }

    /// Notes that the zone from this block on has changed.
    pub fn zone_changed(&mut self, namespace: u32, first: u64) {
        let changed = self.changed.entry(namespace).or_default();
        if changed.zones.len() < MOST_ZONES {
            changed.zones.insert(first);
        } else {
            changed.overflows |= !changed.zones.contains(&first);
        }
    }

    /// The next request that an event completes.
    pub fn next(&mut self) -> Option<Completed> {
        if self.waiting.is_empty() || self.enabled & ZONES_CHANGED == 0 {
            return None;
        }
        let (namespace, changed) = self.changed.iter_mut().find(|(_, changed)| !changed.is_told)?;
        changed.is_told = true;
        let id = self.waiting.remove(0);
        // A notice (2) that the description of a zone has changed (EFh), in log BFh.
        Some(Completed { id, result: u64::from(*namespace) << 32 | 0x00bf_ef02 })
    }

    /// The changed zones of a namespace, and true if there were more. Unless they are kept, they are forgotten, and the next
    /// change is told of.
    pub fn changed_zones(&mut self, namespace: u32, keep: bool) -> (Vec<u64>, bool) {
        let changed = match self.changed.get(&namespace) {
            Some(changed) => (changed.zones.iter().copied().collect(), changed.overflows),
            None => (Vec::new(), false),
        };
        if !keep {
            self.changed.remove(&namespace);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_told_of_once_until_its_log_is_read() {
        let mut events = Events::default();
        assert!((0..4).all(|id| events.park(id)) && !events.park(4));
        events.zone_changed(2, 512);
        assert_eq!(events.next(), None, "the event is not enabled");
        events.enabled = ZONES_CHANGED;
        assert_eq!(events.next(), Some(Completed { id: 0, result: 2 << 32 | 0xbf_ef02 }));
        events.zone_changed(2, 1024);
        assert_eq!(events.next(), None);
        assert_eq!(events.changed_zones(2, true), (vec![512, 1024], false));
        assert_eq!(events.next(), None);
        assert_eq!(events.changed_zones(2, false).0.len(), 2);
        (0..600).for_each(|zone| events.zone_changed(2, zone));
        assert_eq!(events.next().map(|event| event.id), Some(1));
        let (zones, overflows) = events.changed_zones(2, false);
        assert!(zones.len() == MOST_ZONES && overflows);
        assert!(events.abort(3) && !events.abort(3));
        events.reset();
        assert!(!events.abort(2) && events.enabled == 0);
    }
}
