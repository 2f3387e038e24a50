//! The state of each zone: free, reserved or mapped, and the order of use.

use super::lru::LeastRecentlyUsed;
use super::media::{Media, ZoneClass, ZoneId};
use crate::time::Time;
use std::collections::VecDeque;

/// The use of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// None: the zone is incomplete, or does not work.
    Unusable,
    /// A metadata set, or a super block that identifies a device.
    Metadata,
    /// Free.
    Free,
    /// The destination of a reclaim; not mapped yet.
    Target,
    /// The data zone of a chunk.
    Data(u32),
    /// The buffer zone of a chunk.
    Buffer(u32),
    /// Unmapped, but still mapped by the metadata on the media: it is free after the next commit.
    Released,
}

/// All zones.
#[derive(Debug)]
pub struct Zones {
    classes: Vec<ZoneClass>,
    uses: Vec<Use>,
    write_pointers: Vec<u32>,
    /// The completion time of the requests in flight to the zone's chunk, by its data zone.
    busy_until: Vec<Time>,
    /// True for a journal zone, or the data zone beside one: never reclaimed.
    pinned: Vec<bool>,
    /// True if it takes journal blocks only.
    journal: Vec<bool>,
    free: [VecDeque<ZoneId>; 3],
    /// Sequential zones reserved for reclaim.
    reserve: VecDeque<ZoneId>,
    /// The size of the reserve, in zones.
    reserved: usize,
    released: Vec<ZoneId>,
    mapped: [LeastRecentlyUsed; 3],
    pinned_count: u32,
    /// The number of zones of each class that chunks can have, with the reserve.
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
    /// Zones as the media report them, with the given uses; free ones are taken in numeric order.
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

    /// The status line that the kernel's device mapper prints for a volume of `chunks`.
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

    /// The class of a zone.
    #[inline]
    pub fn class(&self, zone: ZoneId) -> ZoneClass {
        self.classes[zone.index()]
    }

    /// The use of a zone.
    #[inline]
    pub fn use_of(&self, zone: ZoneId) -> Use {
        self.uses[zone.index()]
    }

    /// Sets the use of a zone.
    pub fn set_use(&mut self, zone: ZoneId, use_of: Use) {
        self.uses[zone.index()] = use_of;
        if matches!(use_of, Use::Data(_) | Use::Buffer(_)) {
            self.use_now(zone);
        }
    }

    /// The write pointer of a sequential zone, in blocks.
    #[inline]
    pub fn write_pointer(&self, zone: ZoneId) -> u32 {
        self.write_pointers[zone.index()]
    }

    /// Sets a write pointer.
    #[inline]
    pub fn set_write_pointer(&mut self, zone: ZoneId, block: u32) {
        self.write_pointers[zone.index()] = block;
    }

    /// Records a request in flight to a data zone until `done`.
    #[inline]
    pub fn keep_busy(&mut self, zone: ZoneId, done: Time) {
        let until = &mut self.busy_until[zone.index()];
        *until = done.max(*until);
    }

    /// The completion time of the requests in flight to a data zone.
    #[inline]
    pub fn busy_until(&self, zone: ZoneId) -> Time {
        self.busy_until[zone.index()]
    }

    /// Marks a mapped zone as the most recently used.
    #[inline]
    pub fn use_now(&mut self, zone: ZoneId) {
        if !self.pinned[zone.index()] {
            self.mapped[place(self.classes[zone.index()])].use_now(zone);
        }
    }

    /// The mapped zones of a class that may be reclaimed, the least recently used first.
    pub fn mapped(&self, class: ZoneClass) -> impl Iterator<Item = ZoneId> + '_ {
        self.mapped[place(class)].iter()
    }

    /// True if the zone takes journal blocks only.
    #[inline]
    pub fn is_journal(&self, zone: ZoneId) -> bool {
        self.journal[zone.index()]
    }

    /// Excludes a mapped zone from reclaim, as a journal zone or as the data zone beside one.
    pub fn pin(&mut self, zone: ZoneId, as_journal: bool) {
        self.journal[zone.index()] = as_journal;
        if !std::mem::replace(&mut self.pinned[zone.index()], true) {
            self.mapped[place(self.classes[zone.index()])].remove(zone);
            self.pinned_count += u32::from(self.classes[zone.index()].is_conventional());
        }
    }

    /// Allows the reclaim of a zone again.
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

    /// The number of pinned conventional zones.
    pub fn pinned_conventional(&self) -> u32 {
        self.pinned_count
    }

    /// The number of free zones of a class, without the reserve.
    pub fn free(&self, class: ZoneClass) -> usize {
        self.free[place(class)].len()
    }

    /// The number of zones of a class that chunks can have, without the reserve.
    pub fn total(&self, class: ZoneClass) -> usize {
        self.totals[place(class)] - if class == ZoneClass::Sequential { self.reserve.len() } else { 0 }
    }

    /// The class for first writes and buffers: cache zones if there are any.
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

    /// True if the reserve is used up.
    pub fn is_reserve_empty(&self) -> bool {
        self.reserve.is_empty()
    }

    /// Frees a zone; a sequential one fills the reserve first.
    pub fn put_free(&mut self, zone: ZoneId) {
        // Its write pointer may be anywhere: it is reset before it is written, as after a power cut.
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

    /// Unmaps a zone. It can be written again after a commit.
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

    /// True if a commit would free zones.
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Takes the zones that a commit has freed.
    pub fn take_released(&mut self) -> Vec<ZoneId> {
        std::mem::take(&mut self.released)
    }

    /// Takes a broken zone out of use.
    pub fn retire(&mut self, zone: ZoneId) {
        self.unpin(zone);
        self.mapped[place(self.classes[zone.index()])].remove(zone);
        self.uses[zone.index()] = Use::Unusable;
        self.totals[place(self.classes[zone.index()])] -= 1;
    }
}
