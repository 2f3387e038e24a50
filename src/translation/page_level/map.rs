//! Where the map of a page-level layer is kept.

use super::NOWHERE;
use crate::device::nand::{Geometry, LogicalPage, PhysicalPage};
use crate::translation::bits_for;
use crate::translation::prefetch::prefetch;

/// What a look at the map takes if the entry is not in RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// The page of the map that must be written first, as its newest entries are pushed out of RAM.
    pub write: Option<LogicalPage>,
    /// The page of the map that holds the entry.
    pub read: Option<LogicalPage>,
}

/// The physical page of each logical page.
///
/// A map may itself be on flash. Its pages are then logical pages too, beyond those that are exported.
pub trait PageMap {
    /// The name of the station that has such a map.
    const STATION: &'static str;

    /// Whether the map has pages on flash.
    const ON_FLASH: bool;

    /// Asks for the entry of an exported page, which is in RAM afterwards. Answers what that takes, if it was not.
    fn request(&mut self, page: LogicalPage) -> Option<Miss>;

    /// Where a page is, or `NOWHERE`; also for the map's own pages.
    fn place(&self, page: LogicalPage) -> u32;

    /// An exported page, whose entry has been requested, is now at `to`. Answers where it was.
    fn replace(&mut self, page: LogicalPage, to: u32) -> u32;

    /// A copy of the page went to `to`, whether its entry is in RAM or not; also for the map's own pages.
    fn moved(&mut self, page: LogicalPage, to: PhysicalPage);

    /// One of the map's own pages is written to `to`, with the newest entries.
    fn written(&mut self, page: LogicalPage, to: PhysicalPage);

    /// The next of the map's own pages that says on flash what is no longer so, while RAM does not know better.
    fn next_stale(&mut self) -> Option<LogicalPage>;

    /// RAM is lost. `places` has where every page is, the map's own included, as the spare areas tell.
    fn rebuilt(&mut self, places: Vec<u32>);

    /// Brings what is known of a page into the processor's cache. Changes nothing.
    fn prefetch(&self, page: LogicalPage);

    /// Its own pages that are on flash.
    fn pages_on_flash(&self) -> u64;

    /// All pages it can tell the place of, the map's own included.
    fn pages(&self) -> u64;

    /// Bytes that a real drive would hold in RAM.
    fn ram_bytes(&self, geometry: &Geometry) -> u64;

    /// What it counts, by name.
    fn events(&self) -> Vec<(&'static str, u64)>;
}

/// The whole map in RAM.
pub struct RamMap {
    places: Vec<u32>,
}

impl RamMap {
    /// No page is anywhere.
    pub fn new(exported_pages: u64) -> RamMap {
        RamMap { places: vec![NOWHERE; exported_pages as usize] }
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
    fn place(&self, page: LogicalPage) -> u32 {
        self.places[page.0 as usize]
    }

    #[inline]
    fn replace(&mut self, page: LogicalPage, to: u32) -> u32 {
        std::mem::replace(&mut self.places[page.0 as usize], to)
    }

    #[inline]
    fn moved(&mut self, page: LogicalPage, to: PhysicalPage) {
        self.places[page.0 as usize] = to.0;
    }

    fn written(&mut self, page: LogicalPage, _to: PhysicalPage) {
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
