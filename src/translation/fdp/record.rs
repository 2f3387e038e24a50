//! The statistics and events of placement.

use super::settings::FdpSettings;
use super::units::Owner;
use crate::device::{HandleAccount, MOST_EVENTS, PlacementEvent, PlacementEventKind};
use crate::time::Time;
use std::collections::VecDeque;

/// The counts of a drive's placement since it was new, and its last events.
///
/// A drive keeps them through power cuts, as its counters of health.
#[derive(Clone)]
pub struct Record {
    pub handles: Vec<HandleAccount>,
    pub shared_copied_pages: u64,
    pub redirected_pages: u64,
    /// Collected units with valid pages, of all handles.
    pub moved_units: u64,
    /// Units that followed a full one of the same handle.
    pub followed_units: u64,
    pub counts: [u64; PlacementEventKind::COUNT],
    /// The last events of the drive's side (0) and the host's (1).
    events: [VecDeque<PlacementEvent>; 2],
    /// The time of the request under way.
    pub now: Time,
}

impl Record {
    /// Nothing has happened.
    pub fn new(settings: &FdpSettings) -> Record {
        let handle =
            |isolation: &_| HandleAccount { isolation: *isolation, host_pages: 0, copied_pages: 0, updates: 0 };
        Record {
            handles: settings.handles.iter().map(handle).collect(),
            shared_copied_pages: 0,
            redirected_pages: 0,
            moved_units: 0,
            followed_units: 0,
            counts: [0; PlacementEventKind::COUNT],
            events: [VecDeque::new(), VecDeque::new()],
            now: Time::ZERO,
        }
    }

    /// Notes an event.
    pub fn note(
        &mut self,
        kind: PlacementEventKind,
        (group, identifier): (usize, Option<u8>),
        moved: Option<(u64, u64)>,
    ) {
        self.counts[kind as usize] += 1;
        let events = &mut self.events[usize::from(kind.is_of_host())];
        if events.len() == MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(PlacementEvent { kind, at: self.now, identifier, group: group as u16, moved });
    }

    /// Counts pages that were copied out of a unit of this owner.
    pub fn count_copies(&mut self, owner: Owner, pages: u64) {
        match owner {
            Owner::Host(handle) | Owner::CopiesOf(handle) => self.handles[usize::from(handle)].copied_pages += pages,
            Owner::SharedCopies => self.shared_copied_pages += pages,
        }
    }

    /// The last events of the host's side, or else of the drive's, the oldest first.
    pub fn events(&self, of_host: bool) -> Vec<PlacementEvent> {
        self.events[usize::from(of_host)].iter().copied().collect()
    }
}
