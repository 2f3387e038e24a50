//! Which zone is what: free, kept for reclaim, mapped by a chunk, and in which order they were used.

use super::lru::LeastRecentlyUsed;
use super::media::{Media, ZoneClass, ZoneId};
use crate::time::Time;
use std::collections::VecDeque;

/// What a zone is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nothing: it is no whole zone, or does not work.
    Unusable,
    /// A metadata set, or a super block that identifies a device.
    Metadata,
    /// Nothing yet.
    Free,
    /// Reclaim copies into it; no chunk has it yet.
    Target,
    /// The data of a chunk.
    Data(u32),
    /// What the data zone of a chunk cannot take.
    Buffer(u32),
    /// Nothing more, but the metadata on the media still names it: it is free after the next commit.
    Released,
}

/// All zones.
#[derive(Debug)]
pub struct Zones {
    classes: Vec<ZoneClass>,
    uses: Vec<Use>,
    write_pointers: Vec<u32>,
    /// Until when requests of the zone's chunk are under way, by its data zone.
    busy_until: Vec<Time>,
    /// Holds a journal, or the data beside it: never reclaimed.
    pinned: Vec<bool>,
    /// Takes journal blocks and nothing else.
    journal: Vec<bool>,
    free: [VecDeque<ZoneId>; 3],
    /// Sequential zones for reclaim alone.
    reserve: VecDeque<ZoneId>,
    /// How many of them there should be.
    reserved: usize,
    released: Vec<ZoneId>,
    mapped: [LeastRecentlyUsed; 3],
    pinned_count: u32,
    /// Zones of each class that chunks can have, with the reserve.
    totals: [usize; 3],
}

fn place(class: ZoneClass) -> usize {
    match class {
        ZoneClass::Cache => 0,
        ZoneClass::Random => 1,
        ZoneClass::Sequential => 2,
        ZoneClass::Unusable => unreachable!("such a zone is never free and never mapped"),
    }
}

impl Zones {
    /// Zones as the media report them, used as `uses` says; free ones are taken in the order of their numbers.
    pub fn new(media: &Media, uses: Vec<Use>, reserved: u32) -> Zones {
        let count = media.zones();
        let mut zones = Zones {
            classes: media.classes.clone(),
            write_pointers: (0..count).map(|zone| media.write_pointer(ZoneId(zone))).collect(),
            busy_until: vec![Time::ZERO; count as usize],
            pinned: vec![false; count as usize],
            journal: vec![false; count as usize],
            free: Default::default(),
            reserve: VecDeque::new(),
            reserved: reserved as usize,
            released: Vec::new(),
            mapped: [(); 3].map(|()| LeastRecentlyUsed::new(count)),
            pinned_count: 0,
            totals: [0; 3],
            uses,
        };
        for zone in (0..count).map(ZoneId) {
            if !matches!(zones.uses[zone.index()], Use::Metadata | Use::Unusable) {
                zones.totals[place(zones.classes[zone.index()])] += 1;
            }
            match zones.uses[zone.index()] {
                Use::Free => zones.put_free(zone),
                Use::Data(_) | Use::Buffer(_) => zones.use_now(zone),
                _ => {}
            }
        }
        zones
    }

    /// The status line of the kernel's device mapper for a volume of so many chunks.
    pub fn status(&self, chunks: u32, zone_blocks: u32) -> String {
        let pair = |class| format!("{}/{}", self.free(class), self.total(class));
        format!(
            "0 {} zoned {} zones {} cache {} random {} sequential",
            u64::from(chunks) * u64::from(zone_blocks) * 8,
            self.classes.len(),
            pair(ZoneClass::Cache),
            pair(ZoneClass::Random),
            pair(ZoneClass::Sequential),
        )
    }

    /// What a zone is good for.
    #[inline]
    pub fn class(&self, zone: ZoneId) -> ZoneClass {
        self.classes[zone.index()]
    }

    /// What a zone is used for.
    #[inline]
    pub fn use_of(&self, zone: ZoneId) -> Use {
        self.uses[zone.index()]
    }

    /// Says what a zone is used for from now on.
    pub fn set_use(&mut self, zone: ZoneId, use_of: Use) {
        self.uses[zone.index()] = use_of;
        if matches!(use_of, Use::Data(_) | Use::Buffer(_)) {
            self.use_now(zone);
        }
    }

    /// Blocks of a sequential zone that are written.
    #[inline]
    pub fn write_pointer(&self, zone: ZoneId) -> u32 {
        self.write_pointers[zone.index()]
    }

    /// Moves a write pointer.
    #[inline]
    pub fn set_write_pointer(&mut self, zone: ZoneId, block: u32) {
        self.write_pointers[zone.index()] = block;
    }

    /// A request of a data zone is under way until `done`.
    #[inline]
    pub fn keep_busy(&mut self, zone: ZoneId, done: Time) {
        let until = &mut self.busy_until[zone.index()];
        *until = done.max(*until);
    }

    /// When the requests of a data zone that are under way are done.
    #[inline]
    pub fn busy_until(&self, zone: ZoneId) -> Time {
        self.busy_until[zone.index()]
    }

    /// A mapped zone is used.
    #[inline]
    pub fn use_now(&mut self, zone: ZoneId) {
        if !self.pinned[zone.index()] {
            self.mapped[place(self.classes[zone.index()])].use_now(zone);
        }
    }

    /// The mapped zones of a class that reclaim may take, the least recently used first.
    pub fn mapped(&self, class: ZoneClass) -> impl Iterator<Item = ZoneId> + '_ {
        self.mapped[place(class)].iter()
    }

    /// Whether a zone takes journal blocks and nothing else.
    #[inline]
    pub fn is_journal(&self, zone: ZoneId) -> bool {
        self.journal[zone.index()]
    }

    /// Keeps a mapped zone from reclaim; as a journal's zone or as the data zone beside one.
    pub fn pin(&mut self, zone: ZoneId, as_journal: bool) {
        self.journal[zone.index()] = as_journal;
        if !std::mem::replace(&mut self.pinned[zone.index()], true) {
            self.mapped[place(self.classes[zone.index()])].remove(zone);
            self.pinned_count += u32::from(self.classes[zone.index()].is_conventional());
        }
    }

    /// Lets reclaim have a zone again.
    pub fn unpin(&mut self, zone: ZoneId) {
        self.journal[zone.index()] = false;
        if std::mem::replace(&mut self.pinned[zone.index()], false) {
            debug_assert!(
                self.pinned_count > 0 || !self.classes[zone.index()].is_conventional(),
                "each pinned zone is counted"
            );
            self.pinned_count -= u32::from(self.classes[zone.index()].is_conventional());
            if matches!(self.uses[zone.index()], Use::Data(_) | Use::Buffer(_)) {
                self.use_now(zone);
            }
        }
    }

    /// Conventional zones that are kept from reclaim.
    pub fn pinned_conventional(&self) -> u32 {
        self.pinned_count
    }

    /// Free zones of a class, without the reserve.
    pub fn free(&self, class: ZoneClass) -> usize {
        self.free[place(class)].len()
    }

    /// Zones of a class that chunks can have, without the reserve.
    pub fn total(&self, class: ZoneClass) -> usize {
        self.totals[place(class)] - if class == ZoneClass::Sequential { self.reserve.len() } else { 0 }
    }

    /// The class that first writes and buffers are given: cache zones if there are any.
    #[inline]
    pub fn first_class(&self) -> ZoneClass {
        if self.totals[place(ZoneClass::Cache)] > 0 { ZoneClass::Cache } else { ZoneClass::Random }
    }

    /// Takes a free zone of a class.
    pub fn take(&mut self, class: ZoneClass) -> Option<ZoneId> {
        self.free[place(class)].pop_front()
    }

    /// Takes a zone of the reserve.
    pub fn take_reserved(&mut self) -> Option<ZoneId> {
        self.reserve.pop_front()
    }

    /// Whether the reserve is used up.
    pub fn is_reserve_empty(&self) -> bool {
        self.reserve.is_empty()
    }

    /// A zone is free; a sequential one fills the reserve first.
    pub fn put_free(&mut self, zone: ZoneId) {
        // Its write pointer may be anywhere: it is reset before it is written, as after a cut of power.
        debug_assert!(
            !self.reserve.contains(&zone) && !self.free.iter().any(|free| free.contains(&zone)),
            "zone {} is free once: two chunks would write it",
            zone.0
        );
        self.uses[zone.index()] = Use::Free;
        match self.classes[zone.index()] {
            ZoneClass::Sequential if self.reserve.len() < self.reserved => self.reserve.push_back(zone),
            class => self.free[place(class)].push_back(zone),
        }
    }

    /// No chunk has this zone any more. It can be written again once that is committed.
    pub fn release(&mut self, zone: ZoneId) {
        self.unpin(zone);
        self.mapped[place(self.classes[zone.index()])].remove(zone);
        debug_assert!(
            matches!(self.uses[zone.index()], Use::Data(_) | Use::Buffer(_)),
            "zone {} is released by its chunk, and is {:?}",
            zone.0,
            self.uses[zone.index()]
        );
        self.uses[zone.index()] = Use::Released;
        self.released.push(zone);
    }

    /// Whether a commit would free zones.
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// The zones that a commit has freed.
    pub fn take_released(&mut self) -> Vec<ZoneId> {
        std::mem::take(&mut self.released)
    }

    /// A zone does not work: nobody gets it again.
    pub fn retire(&mut self, zone: ZoneId) {
        self.unpin(zone);
        self.mapped[place(self.classes[zone.index()])].remove(zone);
        self.uses[zone.index()] = Use::Unusable;
        self.totals[place(self.classes[zone.index()])] -= 1;
    }
}
