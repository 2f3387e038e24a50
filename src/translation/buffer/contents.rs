//! The pages in a write buffer, by their numbers and in the order of their last writes.

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

/// A page, and its neighbours in the order of writes.
struct Entry {
    write: PageWrite,
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
        }
    }

    /// The number of pages.
    #[inline]
    pub fn count(&self) -> u32 {
        self.places.len() as u32
    }

    /// The newest write of a page, if it is here.
    #[inline]
    pub fn get(&self, page: LogicalPage) -> Option<&PageWrite> {
        self.places.get(&page.0).map(|&place| &self.entries[place as usize].write)
    }

    /// The pages, from the one that was written longest ago on.
    #[inline]
    pub fn oldest_first(&self) -> impl Iterator<Item = LogicalPage> + '_ {
        let entry = |place: u32| self.entries.get(place as usize);
        std::iter::successors(entry(self.oldest), move |before| entry(before.newer)).map(|entry| entry.write.page)
    }

    /// The pages, in the order of their numbers.
    pub fn by_number(&self) -> Vec<LogicalPage> {
        let mut pages: Vec<LogicalPage> = self.places.keys().copied().map(LogicalPage).collect();
        pages.sort_unstable();
        pages
    }

    /// The writes, in any order.
    pub fn writes(&self) -> impl Iterator<Item = &PageWrite> {
        self.places.values().map(|&place| &self.entries[place as usize].write)
    }

    /// Replaces the write of a page that is here, which then is the newest. Returns the one before; `None` if the page is
    /// not here.
    #[inline]
    pub fn replace(&mut self, write: PageWrite) -> Option<PageWrite> {
        let place = *self.places.get(&write.page.0)?;
        let before = std::mem::replace(&mut self.entries[place as usize].write, write);
        self.unlink(place);
        self.link(place);
        Some(before)
    }

    /// Adds a page that is not here.
    #[inline]
    pub fn insert(&mut self, write: PageWrite) {
        let entry = Entry { write, older: NONE, newer: NONE };
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
        assert!(before.is_none(), "page {} is in the buffer once", write.page.0);
        self.link(place);
    }

    /// Removes a page. Returns its write, if it was here.
    #[inline]
    pub fn remove(&mut self, page: LogicalPage) -> Option<PageWrite> {
        let place = self.places.remove(&page.0)?;
        self.unlink(place);
        self.free.push(place);
        Some(self.entries[place as usize].write)
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
                    assert_eq!(contents.remove(LogicalPage(page)), Some(write(page, list.remove(known).1)));
                }
                (Some(known), _) => {
                    assert_eq!(contents.replace(write(page, stamp)), Some(write(page, list.remove(known).1)));
                    list.push((page, stamp));
                }
                (None, 0) => assert_eq!(contents.remove(LogicalPage(page)), None),
                (None, _) => {
                    assert_eq!(contents.replace(write(page, stamp)), None);
                    contents.insert(write(page, stamp));
                    list.push((page, stamp));
                }
            }
            let order: Vec<u32> = contents.oldest_first().map(|page| page.0).collect();
            assert_eq!(order, list.iter().map(|(page, _)| *page).collect::<Vec<_>>());
            assert_eq!(contents.count() as usize, list.len());
        }
    }
}
