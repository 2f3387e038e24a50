//! A map on flash, with a table of cached entries and a directory of its pages in RAM.

use crate::device::nand::{Geometry, LogicalPage, PhysicalPage};
use crate::tables::{filled, prefetch};
use crate::translation::page_level::{Miss, PageMap};
use crate::translation::segmented_lru::SegmentedLru;
use crate::translation::{UNMAPPED, bits_for};

/// A cached entry.
#[derive(Clone, Copy)]
struct Entry {
    place: u32,
    /// True if it differs from its translation page.
    is_dirty: bool,
}

/// The cached mapping table (CMT), the global translation directory (GTD), and the content of the translation pages.
pub struct CachedMap {
    exported: u32,
    entries_per_page: u32,
    /// The content of the translation pages, or their content at the next write.
    on_flash: Vec<u32>,
    /// The global translation directory: the physical page of each translation page.
    directory: Vec<u32>,
    /// The exported pages with a cached entry, by slot of `cached`.
    table: SegmentedLru,
    cached: Vec<Entry>,
    /// The number of dirty cached entries of each translation page.
    dirty: Vec<u32>,
    /// True if a translation page must be written, as `on_flash` has changed.
    is_stale: Vec<bool>,
    /// The stale translation pages that no miss is about to write; some may have been written since.
    stale: Vec<u32>,
    hits: u64,
    misses: u64,
    /// Dirty entries that were written with an evicted one.
    batched: u64,
}

impl CachedMap {
    /// An empty map; `table` is the number of entries in the table, and of protected ones.
    pub fn new(exported_pages: u64, entries_per_page: u32, table: (u32, u32)) -> CachedMap {
        let translation_pages = exported_pages.div_ceil(u64::from(entries_per_page)) as usize;
        CachedMap {
            exported: exported_pages as u32,
            entries_per_page,
            on_flash: filled(UNMAPPED, exported_pages as usize),
            directory: vec![UNMAPPED; translation_pages],
            table: SegmentedLru::new(table.0, table.1, exported_pages),
            cached: vec![Entry { place: UNMAPPED, is_dirty: false }; table.0 as usize],
            dirty: vec![0; translation_pages],
            is_stale: vec![false; translation_pages],
            stale: Vec::new(),
            hits: 0,
            misses: 0,
            batched: 0,
        }
    }

    #[inline]
    fn translation_page(&self, page: LogicalPage) -> u32 {
        page.0 / self.entries_per_page
    }

    fn logical(&self, translation_page: u32) -> LogicalPage {
        LogicalPage(self.exported + translation_page)
    }

    #[inline]
    fn set_cached(&mut self, page: LogicalPage, slot: usize, place: u32) -> u32 {
        let translation_page = self.translation_page(page);
        let entry = &mut self.cached[slot];
        if !entry.is_dirty {
            entry.is_dirty = true;
            self.dirty[translation_page as usize] += 1;
        }
        std::mem::replace(&mut entry.place, place)
    }

    /// Evicts an entry. If it is dirty, its translation page must be written, and is returned.
    fn evict(&mut self, victim: usize) -> Option<LogicalPage> {
        let page = LogicalPage(self.table.key(victim));
        self.table.remove(victim);
        let Entry { place, is_dirty } = self.cached[victim];
        if !is_dirty {
            return None;
        }
        let translation_page = self.translation_page(page);
        self.on_flash[page.0 as usize] = place;
        debug_assert!(self.dirty[translation_page as usize] > 0, "each dirty entry is counted");
        self.dirty[translation_page as usize] -= 1;
        self.is_stale[translation_page as usize] = true;
        Some(self.logical(translation_page))
    }

    /// Puts all dirty entries of a translation page into it; they stay in the table, clean.
    fn flush_entries(&mut self, translation_page: u32) {
        let first = translation_page * self.entries_per_page;
        let end = (first + self.entries_per_page).min(self.exported);
        let left = &mut self.dirty[translation_page as usize];
        self.batched += u64::from(*left);
        for page in first..end {
            if *left == 0 {
                break;
            }
            if let Some(slot) = self.table.slot(page)
                && std::mem::take(&mut self.cached[slot].is_dirty)
            {
                self.on_flash[page as usize] = self.cached[slot].place;
                *left -= 1;
            }
        }
        debug_assert_eq!(*left, 0, "each dirty entry that is counted is in the table");
    }
}

impl PageMap for CachedMap {
    const STATION: &'static str = "dftl";
    const ON_FLASH: bool = true;

    #[inline]
    fn request(&mut self, page: LogicalPage) -> Option<Miss> {
        if let Some(slot) = self.table.slot(page.0) {
            self.hits += 1;
            self.table.touch(slot);
            return None;
        }
        self.misses += 1;
        let write = match self.table.victim() {
            Some(victim) => self.evict(victim),
            None => None,
        };
        let slot = self.table.insert(page.0);
        self.cached[slot] = Entry { place: self.on_flash[page.0 as usize], is_dirty: false };
        Some(Miss { write, read: Some(self.logical(self.translation_page(page))) })
    }

    #[inline]
    fn lookup(&self, page: LogicalPage) -> u32 {
        if page.0 >= self.exported {
            return self.directory[(page.0 - self.exported) as usize];
        }
        match self.table.slot(page.0) {
            Some(slot) => self.cached[slot].place,
            None => self.on_flash[page.0 as usize],
        }
    }

    #[inline]
    fn update(&mut self, page: LogicalPage, to: u32) -> u32 {
        let slot = self.table.slot(page.0).expect("the entry was requested, and nothing was since");
        self.set_cached(page, slot, to)
    }

    #[inline]
    fn record_move(&mut self, page: LogicalPage, to: PhysicalPage) {
        if page.0 >= self.exported {
            self.directory[(page.0 - self.exported) as usize] = to.0;
        } else if let Some(slot) = self.table.slot(page.0) {
            self.set_cached(page, slot, to.0);
        } else {
            self.on_flash[page.0 as usize] = to.0;
            let translation_page = self.translation_page(page);
            if !std::mem::replace(&mut self.is_stale[translation_page as usize], true) {
                self.stale.push(translation_page);
            }
        }
    }

    fn record_write(&mut self, page: LogicalPage, to: PhysicalPage) {
        let translation_page = page.0 - self.exported;
        self.flush_entries(translation_page);
        self.is_stale[translation_page as usize] = false;
        self.directory[translation_page as usize] = to.0;
    }

    fn next_stale(&mut self) -> Option<LogicalPage> {
        while let Some(page) = self.stale.pop() {
            if self.is_stale[page as usize] {
                return Some(self.logical(page));
            }
        }
        None
    }

    fn rebuilt(&mut self, places: Vec<u32>) {
        let entries = self.entries_per_page;
        let lost = std::mem::replace(self, CachedMap::new(u64::from(self.exported), entries, (1, 0)));
        let capacity = lost.cached.len() as u32;
        assert_eq!(places.len() as u64, self.pages(), "each page of the map has a place, or is nowhere");
        let (exported, directory) = places.split_at(self.exported as usize);
        self.table = SegmentedLru::new(capacity, lost.table.protected_capacity(), u64::from(self.exported));
        self.cached = vec![Entry { place: UNMAPPED, is_dirty: false }; capacity as usize];
        self.directory = directory.to_vec();
        self.on_flash = exported.to_vec();
        (self.hits, self.misses, self.batched) = (lost.hits, lost.misses, lost.batched);
        let parts = self.on_flash.chunks(entries as usize).zip(lost.on_flash.chunks(entries as usize));
        // A translation page whose newest version is lost lacks what that one had.
        let moved = self.directory.iter().zip(&lost.directory).map(|(now, then)| now != then);
        let stale = parts.zip(lost.is_stale).zip(moved);
        self.is_stale = stale.map(|(((now, then), was_stale), moved)| was_stale || moved || now != then).collect();
        self.stale = (0..).zip(&self.is_stale).filter(|(_, stale)| **stale).map(|(page, _)| page).collect();
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        self.table.prefetch(page.0);
        prefetch(&self.on_flash, page.0 as usize);
    }

    fn pages_on_flash(&self) -> u64 {
        self.directory.iter().filter(|&&place| place != UNMAPPED).count() as u64
    }

    fn pages(&self) -> u64 {
        u64::from(self.exported) + self.directory.len() as u64
    }

    fn ram_bytes(&self, geometry: &Geometry) -> u64 {
        let place = bits_for(geometry.pages());
        let page = bits_for(u64::from(self.exported));
        // A cached entry has its page, its physical page, and a dirty bit.
        let table = self.cached.len() as u64 * (page + place + 1);
        (table + self.directory.len() as u64 * place).div_ceil(8)
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        vec![("table_hits", self.hits), ("table_misses", self.misses), ("entries_written_together", self.batched)]
    }
}
