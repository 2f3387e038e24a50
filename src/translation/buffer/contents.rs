//! The pages in a write buffer, by their numbers and in the order of their last writes.
//!
//! Writes have the number of their epoch. A page that is written again in a later epoch is here twice: the older version
//! stays in its place in the order, and is not read any more.

use crate::device::nand::LogicalPage;
use crate::translation::PageWrite;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// No page.
const NONE: u32 = u32::MAX;

/// Spreads the numbers of pages, which nobody chooses to harm: much cheaper than the standard hash.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(self.0 as u32 ^ u32::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The place of a version of a page in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// A version of a page, and its neighbours in the order of writes.
struct Entry {
    write: PageWrite,
    epoch: u32,
    older: u32,
    newer: u32,
}

/// The pages of a buffer.
pub(super) struct Contents {
    places: HashMap<u32, u32, BuildHasherDefault<PageHasher>>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// The epoch of the next write.
    epoch: u32,
}

impl Contents {
    /// No pages yet, and room for so many.
    pub fn new(most: u32) -> Contents {
        Contents {
            places: HashMap::with_capacity_and_hasher(most as usize, BuildHasherDefault::default()),
            entries: Vec::with_capacity(most as usize),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            epoch: 0,
        }
    }

    /// The number of versions of pages.
    #[inline]
    pub fn count(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Writes from now on are of another epoch than those before.
    pub fn begin_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// True if all versions are of one epoch, so that they have no order.
    pub fn is_of_one_epoch(&self) -> bool {
        self.entries.get(self.oldest as usize).is_none_or(|oldest| oldest.epoch == self.epoch)
    }

    /// The newest write of a page, if it is here.
    #[inline]
    pub fn get(&self, page: LogicalPage) -> Option<&PageWrite> {
        self.place_of(page).map(|place| self.at(place).0)
    }

    /// The place of the newest version of a page, if it is here.
    #[inline]
    pub fn place_of(&self, page: LogicalPage) -> Option<Place> {
        self.places.get(&page.0).copied().map(Place)
    }

    /// The write at a place that is taken, and its epoch.
    #[inline]
    pub fn at(&self, place: Place) -> (&PageWrite, u32) {
        let entry = &self.entries[place.0 as usize];
        (&entry.write, entry.epoch)
    }

    /// All places, from the one that was written longest ago on: in the order of epochs.
    #[inline]
    pub fn oldest_first(&self) -> impl Iterator<Item = Place> + '_ {
        let taken = |place: u32| (place != NONE).then_some(Place(place));
        std::iter::successors(taken(self.oldest), move |before| taken(self.entries[before.0 as usize].newer))
    }

    /// All places: epoch by epoch, and each in the order of the numbers of pages.
    pub fn by_number(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.oldest_first().collect();
        for of_one in places.chunk_by_mut(|one, other| self.at(*one).1 == self.at(*other).1) {
            of_one.sort_unstable_by_key(|place| self.at(*place).0.page);
        }
        places
    }

    /// The writes, in their order.
    pub fn writes(&self) -> impl Iterator<Item = &PageWrite> {
        self.oldest_first().map(|place| self.at(place).0)
    }

    /// Replaces the write of a page that is here with one of this epoch, which then is the newest. Returns the one before;
    /// `None` if there is none.
    #[inline]
    pub fn replace(&mut self, write: PageWrite) -> Option<PageWrite> {
        let place = *self.places.get(&write.page.0)?;
        let entry = &mut self.entries[place as usize];
        if entry.epoch != self.epoch {
            return None;
        }
        let before = std::mem::replace(&mut entry.write, write);
        self.unlink(place);
        self.link(place);
        Some(before)
    }

    /// Adds a version of a page that has none of this epoch.
    #[inline]
    pub fn insert(&mut self, write: PageWrite) {
        let entry = Entry { write, epoch: self.epoch, older: NONE, newer: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        let before = self.places.insert(write.page.0, place);
        let is_other = before.is_none_or(|before| self.entries[before as usize].epoch != self.epoch);
        assert!(is_other, "page {} is in an epoch once", write.page.0);
        self.link(place);
    }

    /// Removes the version at a place that is taken. Returns its write.
    #[inline]
    pub fn remove(&mut self, place: Place) -> PageWrite {
        let write = self.entries[place.0 as usize].write;
        if self.places.get(&write.page.0) == Some(&place.0) {
            self.places.remove(&write.page.0);
        }
        self.unlink(place.0);
        self.free.push(place.0);
        write
    }

    /// Makes a place the newest.
    fn link(&mut self, place: u32) {
        let older = std::mem::replace(&mut self.newest, place);
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = place,
            None => self.oldest = place,
        }
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.newer) = (older, NONE);
    }

    /// Takes a place out of the order.
    fn unlink(&mut self, place: u32) {
        let Entry { older, newer, .. } = self.entries[place as usize];
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Provenance;
    use crate::random::Random;

    fn write(page: u32, stamp: u32) -> PageWrite {
        PageWrite { page: LogicalPage(page), provenance: Provenance::UNKNOWN, stream: 0, stamp }
    }

    /// Random operations beside a list in the order of writes.
    #[test]
    fn pages_stand_in_the_order_of_their_last_writes() {
        let (mut contents, mut list) = (Contents::new(8), Vec::<(u32, u32)>::new());
        let mut random = Random::new(1, "contents");
        for stamp in 0..5000 {
            let page = random.below(12) as u32;
            let known = list.iter().position(|(other, _)| *other == page);
            match (known, random.below(3)) {
                (Some(known), 0) => {
                    let place = contents.place_of(LogicalPage(page)).unwrap();
                    assert_eq!(contents.remove(place), write(page, list.remove(known).1));
                }
                (Some(known), _) => {
                    assert_eq!(contents.replace(write(page, stamp)), Some(write(page, list.remove(known).1)));
                    list.push((page, stamp));
                }
                (None, 0) => assert_eq!(contents.place_of(LogicalPage(page)), None),
                (None, _) => {
                    assert_eq!(contents.replace(write(page, stamp)), None);
                    contents.insert(write(page, stamp));
                    list.push((page, stamp));
                }
            }
            assert!(contents.is_of_one_epoch());
            let order: Vec<u32> = contents.writes().map(|write| write.page.0).collect();
            assert_eq!(order, list.iter().map(|(page, _)| *page).collect::<Vec<_>>());
            assert_eq!(contents.count() as usize, list.len());
        }
    }

    /// Random writes in many epochs beside a list of all versions: an older one stays where it is, and the newest is read.
    #[test]
    fn a_page_has_a_version_for_each_epoch_in_which_it_was_written() {
        let (mut contents, mut list) = (Contents::new(8), Vec::<(u32, u32, u32)>::new());
        let mut random = Random::new(2, "contents");
        let mut epoch = 0;
        for stamp in 0..5000 {
            let page = random.below(6) as u32;
            match random.below(8) {
                0 => {
                    contents.begin_epoch();
                    epoch += 1;
                }
                1..4 if !list.is_empty() => {
                    let first = contents.oldest_first().next().unwrap();
                    let (epoch, page, stamp) = list.remove(0);
                    assert_eq!(contents.at(first), (&write(page, stamp), epoch));
                    assert_eq!(contents.remove(first), write(page, stamp));
                }
                _ => {
                    let known = list.iter().position(|(of, other, _)| (*of, *other) == (epoch, page));
                    let before = known.map(|known| list.remove(known).2);
                    assert_eq!(contents.replace(write(page, stamp)), before.map(|stamp| write(page, stamp)));
                    if before.is_none() {
                        contents.insert(write(page, stamp));
                    }
                    list.push((epoch, page, stamp));
                }
            }
            let newest = list.iter().rfind(|(_, other, _)| *other == page).map(|(_, page, stamp)| write(*page, *stamp));
            assert_eq!(contents.get(LogicalPage(page)).copied(), newest);
            let found: Vec<PageWrite> = contents.writes().copied().collect();
            assert_eq!(found, list.iter().map(|(_, page, stamp)| write(*page, *stamp)).collect::<Vec<_>>());
            let by_number: Vec<(u32, u32)> = contents
                .by_number()
                .iter()
                .map(|place| (contents.at(*place).1, contents.at(*place).0.page.0))
                .collect();
            assert!(by_number.is_sorted() && by_number.len() == list.len());
            let is_of_one = list.iter().all(|(of, ..)| *of == epoch);
            assert_eq!(contents.is_of_one_epoch(), is_of_one);
        }
    }
}
