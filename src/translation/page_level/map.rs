//! The seam of the map of a page-level layer.

use super::UNMAPPED;
use crate::device::nand::{Geometry, LogicalPage, PhysicalPage, SpareWord};
use crate::tables::{filled, prefetch};
use crate::translation::bits_for;

/// The work of a miss: the entry is not in RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// The page of the map that must be written first, as its dirty entries are evicted.
    pub write: Option<LogicalPage>,
    /// The page of the map with the entry.
    pub read: Option<LogicalPage>,
}

/// The physical page of each logical page.
///
/// A map may itself be on flash. Its pages then have the logical pages after the exported ones.
pub trait PageMap {
    /// The name of the station with this map.
    const STATION: &'static str;

    /// True if the map has pages on flash.
    const ON_FLASH: bool;

    /// Requests the entry of an exported page; it is in RAM afterwards. Returns the work if it was not.
    fn request(&mut self, page: LogicalPage) -> Option<Miss>;

    /// The physical page of a page, or `UNMAPPED`; also for the map's own pages.
    fn lookup(&self, page: LogicalPage) -> u32;

    /// Maps an exported page, whose entry has been requested, to `to`. Returns its old physical page.
    fn update(&mut self, page: LogicalPage, to: u32) -> u32;

    /// Maps a page to its copy at `to`, whether its entry is in RAM or not; also for the map's own pages.
    fn record_move(&mut self, page: LogicalPage, to: PhysicalPage);

    /// [`PageMap::record_move`] of pages with these spare areas, which went to `places` one after the other and from the first
    /// again: each place but the first of its pages follows the one before.
    fn record_moves(&mut self, words: &[SpareWord], places: &[PhysicalPage]) {
        for (round, words) in (0..).zip(words.chunks(places.len())) {
            for (word, first) in words.iter().zip(places) {
                self.record_move(word.logical_page(), PhysicalPage(first.0 + round));
            }
        }
    }

    /// Maps one of the map's own pages to `to`, written with the newest entries.
    fn record_write(&mut self, page: LogicalPage, to: PhysicalPage);

    /// The next map page on flash that is out of date without dirty entries in RAM.
    fn next_stale(&mut self) -> Option<LogicalPage>;

    /// Rebuilds the map after a loss of RAM from `places`: all pages, the map's own included, as found in the spare
    /// areas.
    fn rebuilt(&mut self, places: Vec<u32>);

    /// Prefetches the entry of a page into the processor's cache. Changes nothing.
    fn prefetch(&self, page: LogicalPage);

    /// The number of its own pages on flash.
    fn pages_on_flash(&self) -> u64;

    /// The number of mapped pages, the map's own included.
    fn pages(&self) -> u64;

    /// The bytes of RAM that the map takes in a real drive.
    fn ram_bytes(&self, geometry: &Geometry) -> u64;

    /// Its counters, by name.
    fn events(&self) -> Vec<(&'static str, u64)>;
}

/// The whole map in RAM.
pub struct RamMap {
    places: Vec<u32>,
}

impl RamMap {
    /// A map without mapped pages.
    pub fn new(exported_pages: u64) -> RamMap {
        RamMap { places: filled(UNMAPPED, exported_pages as usize) }
    }
}

impl PageMap for RamMap {
    const STATION: &'static str = "page";
    const ON_FLASH: bool = false;

    #[inline(always)]
    fn request(&mut self, _page: LogicalPage) -> Option<Miss> {
        None
    }

    #[inline]
    fn lookup(&self, page: LogicalPage) -> u32 {
        self.places[page.0 as usize]
    }

    #[inline]
    fn update(&mut self, page: LogicalPage, to: u32) -> u32 {
        std::mem::replace(&mut self.places[page.0 as usize], to)
    }

    #[inline]
    fn record_move(&mut self, page: LogicalPage, to: PhysicalPage) {
        self.places[page.0 as usize] = to.0;
    }

    #[inline]
    fn record_moves(&mut self, words: &[SpareWord], places: &[PhysicalPage]) {
        let map = &mut self.places[..];
        for (number, &PhysicalPage(first)) in places.iter().enumerate().take(words.len()) {
            let (mut from, mut to) = (number, first);
            while let Some(word) = words.get(from) {
                map[word.logical_page().0 as usize] = to;
                (from, to) = (from + places.len(), to + 1);
            }
        }
    }

    fn record_write(&mut self, page: LogicalPage, _to: PhysicalPage) {
        unreachable!("page {} is exported: none of the map is on flash", page.0);
    }

    fn next_stale(&mut self) -> Option<LogicalPage> {
        None
    }

    fn rebuilt(&mut self, places: Vec<u32>) {
        self.places = places;
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        prefetch(&self.places, page.0 as usize);
    }

    fn pages_on_flash(&self) -> u64 {
        0
    }

    fn pages(&self) -> u64 {
        self.places.len() as u64
    }

    fn ram_bytes(&self, geometry: &Geometry) -> u64 {
        (self.places.len() as u64 * bits_for(geometry.pages())).div_ceil(8)
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::nand::{EraseBlock, Nand, Untimed};
    use crate::label::{Cause, Provenance};

    /// Pages that went to several places in turn are where they are if each is told by itself.
    #[test]
    fn moves_that_are_told_at_once_are_those_told_one_by_one() {
        let geometry = Geometry::new(64 << 12, 4096, 16, (1, 1, 1)).unwrap();
        let mut flash = Nand::new(geometry, 2, false, Untimed);
        for page in 0..16 {
            let content = (LogicalPage(15 - page), Provenance::UNKNOWN);
            flash.program(PhysicalPage(page), content, 0, Cause::HostWrite, ()).unwrap();
        }
        let words = flash.peek_words(EraseBlock(0));
        for planes in 1..=4 {
            let places: Vec<PhysicalPage> = (0..planes).map(|plane| PhysicalPage(100 * (plane + 1))).collect();
            for count in 0..=words.len() {
                let (mut at_once, mut single) = (RamMap::new(16), RamMap::new(16));
                at_once.record_moves(&words[..count], &places);
                for (number, word) in words[..count].iter().enumerate() {
                    let first = places[number % places.len()];
                    single.record_move(word.logical_page(), PhysicalPage(first.0 + (number / places.len()) as u32));
                }
                assert_eq!(at_once.places, single.places, "{count} pages to {planes} planes");
            }
        }
    }
}
