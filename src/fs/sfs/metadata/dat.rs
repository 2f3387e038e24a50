//! The DAT (disk address translation): address, checksum and history of each virtual block (section 4.1).
//!
//! A file's map holds virtual block numbers, so that rewriting or cleaning a block changes only its entry here.
//!
//! A freed number is not allocated again before a checkpoint: records since the last one may refer to its old owner.
//! The lowest page with a free number supplies the next; a page with none in use is a hole, and holes at the end are
//! truncated.

use crate::fs::sfs::SfsError;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{DAT_ENTRIES, DatEntry, NO_GROUP, Root};
use crate::fs::sfs::media::invariants;
use crate::fs::sfs::metadata::paged::PagedFile;
use crate::task::Task;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// The DAT.
pub(in crate::fs::sfs) struct Dat {
    file: PagedFile,
    /// Allocated entries of each page, including those freed since the last checkpoint.
    taken: Vec<u8>,
    /// Pages with allocated entries.
    occupied: u64,
    /// Entries freed since the last checkpoint, by page.
    freed: BTreeMap<u32, u8>,
    /// No page before this one has a free entry.
    cursor: usize,
    used: u64,
}

impl Dat {
    pub fn new(media: &Arc<Media>) -> Dat {
        Dat::of_file(PagedFile::new("DAT", media), 0)
    }

    pub fn open(task: &Task<'_>, root: &Root, used: u64, media: &Arc<Media>) -> Result<Dat, SfsError> {
        let mut file = PagedFile::open(task, "DAT", root, media)?;
        file.check_pages(invariants::dat_page);
        Ok(Dat::of_file(file, used))
    }

    /// The root for the superblock.
    pub fn root(&self) -> Root {
        self.file.root()
    }

    pub fn file(&mut self) -> &mut PagedFile {
        &mut self.file
    }

    /// A DAT whose pages may be only partly readable.
    pub fn of_file(file: PagedFile, used: u64) -> Dat {
        let taken: Vec<u8> = (0..file.len()).map(|page| file.taken(page).min(DAT_ENTRIES as u32) as u8).collect();
        let occupied = taken.iter().filter(|taken| **taken != 0).count() as u64;
        Dat { file, taken, occupied, freed: BTreeMap::new(), cursor: 0, used }
    }

    /// Counts of a page: entries not free by its pointer, entries not free by its content, and entries in use.
    pub fn count_page(&mut self, task: &Task<'_>, page: usize) -> Result<(u32, u8, u64), SfsError> {
        let bytes = self.file.page(task, page)?;
        let entries = bytes.chunks_exact(size_of::<DatEntry>());
        let state = |entry: &[u8]| DatEntry::read_from_bytes(entry).map_or(0, |entry| entry.is_taken);
        let (mut counted, mut used) = (0, 0);
        for (at, entry) in entries.enumerate() {
            counted += u8::from(state(entry) != 0);
            used += u64::from(state(entry) == 1 && (page, at) != (0, 0));
        }
        Ok((self.file.taken(page), counted, used))
    }

    /// Sets the number of entries of a page that are not free.
    pub fn set_counted(&mut self, page: usize, counted: u8) {
        let before = std::mem::replace(&mut self.taken[page], counted);
        self.file.set_taken(page, u32::from(counted));
        self.occupied = self.occupied + u64::from(counted != 0) - u64::from(before != 0);
        if counted < before {
            self.cursor = self.cursor.min(page);
        }
    }

    /// Sets the number of virtual blocks in use.
    pub fn set_used(&mut self, used: u64) {
        self.used = used;
    }

    /// Marks a lost page as empty, except for number 0, which is never allocated.
    pub fn lose_page(&mut self, page: usize) {
        self.file.zero_page(page);
        self.set_counted(page, 0);
    }

    /// Numbers that seem free are not given out before the next checkpoint: maps may name them. The entries of each
    /// page must be counted anew.
    pub fn withhold(&mut self, task: &Task<'_>, numbers: Range<u64>) -> Result<(), SfsError> {
        for number in numbers.start.max(1)..numbers.end {
            self.reach(task, number)?;
            if self.get(task, number)?.is_taken == 0 {
                let entry = DatEntry { is_taken: FREED, group: NO_GROUP, ..DatEntry::default() };
                self.set(task, number, &entry)?;
                *self.freed.entry((number / DAT_ENTRIES) as u32).or_insert(0) += 1;
            }
        }
        Ok(())
    }

    /// Entry 0, which stands for no block.
    pub fn entry_zero(&mut self, task: &Task<'_>) -> Result<DatEntry, SfsError> {
        Ok(DatEntry::read_from_bytes(&self.file.page(task, 0)?[..size_of::<DatEntry>()]).expect("an entry's length"))
    }

    /// Resets entry 0.
    pub fn reset_entry_zero(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let entry = DatEntry { is_taken: 1, group: NO_GROUP, ..DatEntry::default() };
        self.file.page_mut(task, 0)?[..size_of::<DatEntry>()].copy_from_slice(entry.as_bytes());
        Ok(())
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.taken.len()
    }

    /// Number of pages with entries in use.
    pub fn occupied(&self) -> u64 {
        self.occupied
    }

    /// Number of pages that the next checkpoint leaves without entries in use.
    pub fn emptied(&self) -> u64 {
        self.freed.iter().filter(|(page, freed)| self.taken[**page as usize] == **freed).count() as u64
    }

    /// Number of entries that are not free.
    pub fn taken(&self) -> u64 {
        self.taken.iter().map(|taken| u64::from(*taken)).sum()
    }

    /// Number of virtual blocks in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Number of entries, in use or not.
    pub fn len(&self) -> u64 {
        self.taken.len() as u64 * DAT_ENTRIES
    }

    /// The entry of a virtual block.
    #[inline]
    pub fn get(&mut self, task: &Task<'_>, number: u64) -> Result<DatEntry, SfsError> {
        let (page, at) = self.place(number)?;
        let page = self.file.page(task, page)?;
        Ok(DatEntry::read_from_bytes(&page[at..at + size_of::<DatEntry>()]).expect("an entry's length"))
    }

    /// Changes the entry of a virtual block.
    #[inline]
    pub fn set(&mut self, task: &Task<'_>, number: u64, entry: &DatEntry) -> Result<(), SfsError> {
        let (page, at) = self.place(number)?;
        let page = self.file.page_mut(task, page)?;
        page[at..at + size_of::<DatEntry>()].copy_from_slice(entry.as_bytes());
        Ok(())
    }

    fn place(&self, number: u64) -> Result<(usize, usize), SfsError> {
        let page = number / DAT_ENTRIES;
        if number == 0 || page >= self.taken.len() as u64 {
            let why = format!("it refers to virtual block {number}, and there are {}", self.len());
            return Err(SfsError::Damaged { what: "a map".to_string(), why });
        }
        Ok((page as usize, (number % DAT_ENTRIES) as usize * size_of::<DatEntry>()))
    }

    /// Allocates a free number, whose entry has no address.
    pub fn take(&mut self, task: &Task<'_>) -> Result<u64, SfsError> {
        let pages = self.taken.len();
        let free = (self.cursor..pages).find(|page| u64::from(self.taken[*page]) < DAT_ENTRIES);
        let page = match free {
            Some(page) => page,
            None => {
                // The file grows by several pages at once, so that the search above stays rare.
                let more = (pages / 16).clamp(1, 1024);
                self.file.grow(pages + more);
                self.taken.resize(pages + more, 0);
                if pages == 0 {
                    // Number 0 stands for no block.
                    self.file.zero_page(0);
                    self.reset_entry_zero(task)?;
                    self.set_counted(0, 1);
                }
                pages
            }
        };
        self.cursor = page;
        let bytes = self.file.page_mut(task, page)?;
        let entries = bytes.chunks_exact_mut(size_of::<DatEntry>());
        // The value 2 marks entries freed since the last checkpoint.
        let is_free = |entry: &&mut [u8]| DatEntry::read_from_bytes(entry).is_ok_and(|entry| entry.is_taken == 0);
        let mut free = entries.enumerate().filter(|(_, entry)| is_free(entry));
        let Some((at, place)) = free.next() else {
            let why = format!("the pointer of page {page} says it has a free entry, and it has none");
            return Err(SfsError::Damaged { what: "the DAT".to_string(), why });
        };
        let entry = DatEntry { is_taken: 1, group: NO_GROUP, ..DatEntry::default() };
        place.copy_from_slice(entry.as_bytes());
        self.set_counted(page, self.taken[page] + 1);
        self.used += 1;
        Ok(page as u64 * DAT_ENTRIES + at as u64)
    }

    /// Allocates the number that a log record refers to.
    pub fn take_found(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        let page = (number / DAT_ENTRIES) as usize;
        self.reach(task, number)?;
        match self.get(task, number)?.is_taken {
            1 => return Ok(()),
            FREED => *self.freed.get_mut(&(page as u32)).expect("freed entries are counted") -= 1,
            _ => self.set_counted(page, self.taken[page] + 1),
        }
        let entry = DatEntry { is_taken: 1, group: NO_GROUP, ..DatEntry::default() };
        self.set(task, number, &entry)?;
        self.used += 1;
        Ok(())
    }

    /// Makes the DAT so long that it has an entry of this number.
    fn reach(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        let page = (number / DAT_ENTRIES) as usize;
        while self.taken.is_empty() {
            let first = self.take(task)?;
            self.free_unlogged(task, first)?;
        }
        if page >= self.taken.len() {
            self.file.grow(page + 1);
            self.taken.resize(page + 1, 0);
        }
        Ok(())
    }

    /// Frees a number, which can be taken again after the next checkpoint.
    pub fn free(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        let entry = DatEntry { is_taken: FREED, group: NO_GROUP, ..DatEntry::default() };
        self.set(task, number, &entry)?;
        *self.freed.entry((number / DAT_ENTRIES) as u32).or_insert(0) += 1;
        self.used -= 1;
        Ok(())
    }

    /// Frees a number allocated since the last checkpoint that no log record refers to.
    pub fn free_unlogged(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        self.set(task, number, &DatEntry { group: NO_GROUP, ..DatEntry::default() })?;
        let page = (number / DAT_ENTRIES) as usize;
        self.set_counted(page, self.taken[page] - 1);
        self.used -= 1;
        Ok(())
    }

    /// Prepares a checkpoint, in which freed numbers are free.
    pub fn apply_frees(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        for (page, count) in std::mem::take(&mut self.freed) {
            let page = page as usize;
            for place in self.file.page_mut(task, page)?.chunks_exact_mut(size_of::<DatEntry>()) {
                let entry = DatEntry::mut_from_bytes(place).expect("an entry's length");
                if entry.is_taken == FREED {
                    entry.is_taken = 0;
                }
            }
            self.set_counted(page, self.taken[page] - count);
        }
        Ok(())
    }

    /// Turns pages without entries in use into holes. Returns the addresses of blocks that are no longer live.
    pub fn free_pages(&mut self) -> Vec<u64> {
        let taken = &self.taken;
        let addresses = self.file.free_pages(|page| taken[page] == 0);
        self.taken.truncate(self.file.len());
        self.cursor = self.cursor.min(self.taken.len());
        addresses
    }
}

/// Value of an entry in memory: freed since the last checkpoint.
const FREED: u8 = 2;
