//! The inode file: all inodes, 16 to a page.
//!
//! The pointer of a page holds a bit for each of its inodes: allocated or not. The lowest free number is allocated
//! first, so that the file stays short. A page without allocated inodes is a hole, and holes at the end are truncated.
//! A freed number is not allocated again before a checkpoint, as records since the last one may refer to its old owner.

use crate::fs::sfs::SfsError;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::format::{InodeImage, Root};
use crate::fs::sfs::metadata::paged::PagedFile;
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The inode file.
pub(in crate::fs::sfs) struct InodeFile {
    file: PagedFile,
    /// Allocated numbers of each page, including those freed since the last checkpoint.
    taken: Vec<u16>,
    /// Pages with allocated numbers.
    occupied: u64,
    /// Numbers freed since the last checkpoint.
    freed: BTreeSet<u64>,
    /// Numbers freed before the current checkpoint: a bit for each number, by page. The checkpoint stores them as free,
    /// but they are allocated again only when it is durable, since the generation of a new inode is the number of the
    /// last superblock.
    withheld: BTreeMap<u64, u16>,
    /// No page before this one has a free number.
    cursor: usize,
    used: u64,
}

impl InodeFile {
    pub fn new(media: &Arc<Media>) -> InodeFile {
        InodeFile::of_file(PagedFile::new("inode file", media), 0)
    }

    pub fn open(task: &Task<'_>, root: &Root, (count, used): (u64, u64), media: &Arc<Media>) -> Result<Self, SfsError> {
        let file = PagedFile::open(task, "inode file", root, media)?;
        if count > file.len() as u64 * INODES {
            let why = format!("it has {} pages for {count} inodes", file.len());
            return Err(SfsError::Damaged { what: "the superblock's inode file".to_string(), why });
        }
        Ok(InodeFile::of_file(file, used))
    }

    /// An inode file whose pages may be only partly readable.
    pub fn of_file(file: PagedFile, used: u64) -> InodeFile {
        let taken: Vec<u16> = (0..file.len()).map(|page| file.taken(page) as u16).collect();
        let occupied = taken.iter().filter(|taken| **taken != 0).count() as u64;
        InodeFile { file, taken, occupied, freed: BTreeSet::new(), withheld: BTreeMap::new(), cursor: 0, used }
    }

    /// The root for the superblock.
    pub fn root(&self) -> Root {
        self.file.root()
    }

    pub fn file(&mut self) -> &mut PagedFile {
        &mut self.file
    }

    /// All allocated numbers are less than this.
    pub fn count(&self) -> u64 {
        (self.taken.len() as u64 * INODES).max(1)
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.taken.len()
    }

    /// Number of pages with allocated numbers.
    pub fn occupied(&self) -> u64 {
        self.occupied
    }

    /// Inodes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Allocated numbers of a page, a bit for each.
    pub fn taken(&self, page: usize) -> u16 {
        self.taken[page]
    }

    /// Sets the allocated numbers of a page.
    pub fn set_taken(&mut self, page: usize, taken: u16) {
        let before = std::mem::replace(&mut self.taken[page], taken);
        if before != taken {
            self.file.set_taken(page, u32::from(taken));
            self.occupied = self.occupied + u64::from(taken != 0) - u64::from(before != 0);
            self.cursor = self.cursor.min(page);
        }
    }

    /// Recomputes the number of inodes in use from the pages' bits.
    pub fn count_used(&mut self) {
        self.used = self.allocated();
    }

    /// Number of inodes in use by the pages' bits, without those freed since the last checkpoint.
    pub fn allocated(&self) -> u64 {
        let taken: u64 = self.taken.iter().map(|taken| u64::from(taken.count_ones())).sum();
        // Number 0 stands for no inode.
        taken.saturating_sub(1 + self.freed.len() as u64)
    }

    fn grow(&mut self, pages: usize) {
        if pages > self.taken.len() {
            let is_first = self.taken.is_empty();
            self.file.grow(pages);
            self.taken.resize(pages, 0);
            if is_first {
                // Number 0 stands for no inode.
                self.set_taken(0, 1);
            }
        }
    }

    fn mark(&mut self, number: u64, is_taken: bool) {
        let (page, bit) = ((number / INODES) as usize, 1 << (number % INODES));
        let taken = self.taken[page];
        self.set_taken(page, if is_taken { taken | bit } else { taken & !bit });
    }

    /// The image of an inode; the image of a free inode has number 0.
    pub fn get(&mut self, task: &Task<'_>, number: u64) -> Result<InodeImage, SfsError> {
        if number == 0 || number >= self.count() || number / INODES >= self.file.len() as u64 {
            return Err(SfsError::NotFound);
        }
        let page = (number / INODES) as usize;
        if self.file.is_hole(page) {
            return Ok(InodeImage::new_zeroed());
        }
        let page = self.file.page(task, page)?;
        let at = (number % INODES) as usize * size_of::<InodeImage>();
        Ok(InodeImage::read_from_bytes(&page[at..at + size_of::<InodeImage>()]).expect("an image's length"))
    }

    /// Stores the image of an inode in its page.
    pub fn set(&mut self, task: &Task<'_>, number: u64, image: &InodeImage) -> Result<(), SfsError> {
        debug_assert!(
            number != 0 && [0, number].contains(&image.number.get()),
            "the image of inode {} is stored as inode {number}",
            image.number
        );
        let page = (number / INODES) as usize;
        self.grow(page + 1);
        let at = (number % INODES) as usize * size_of::<InodeImage>();
        self.file.page_mut(task, page)?[at..at + size_of::<InodeImage>()].copy_from_slice(image.as_bytes());
        Ok(())
    }

    /// Numbers of a page that cannot be allocated now, a bit for each.
    fn unavailable(&self, page: usize) -> u16 {
        self.taken.get(page).unwrap_or(&0) | self.withheld.get(&(page as u64)).unwrap_or(&0)
    }

    /// Allocates the lowest free number.
    pub fn take(&mut self, task: &Task<'_>) -> Result<u64, SfsError> {
        while self.unavailable(self.cursor) == u16::MAX {
            self.cursor += 1;
        }
        let page = self.cursor;
        self.grow(page + 1);
        let number = page as u64 * INODES + u64::from(self.unavailable(page).trailing_ones());
        if self.get(task, number)?.number.get() != 0 {
            let why = "its page's pointer says it is free, and its image says it is in use".to_string();
            return Err(SfsError::Damaged { what: format!("inode {number}"), why });
        }
        self.mark(number, true);
        self.used += 1;
        Ok(number)
    }

    /// Allocates the number that a log record refers to.
    pub fn take_found(&mut self, number: u64) {
        self.grow((number / INODES) as usize + 1);
        self.mark(number, true);
        self.used += 1;
    }

    /// Frees a number.
    pub fn free(&mut self, number: u64) {
        self.freed.insert(number);
        self.used = self.used.saturating_sub(1);
    }

    /// True if the number was freed since the last checkpoint.
    pub fn is_freed(&self, number: u64) -> bool {
        self.freed.contains(&number)
    }

    /// Numbers freed since the last checkpoint.
    pub fn freed(&self) -> impl Iterator<Item = u64> + '_ {
        self.freed.iter().copied()
    }

    /// Number of pages that the next checkpoint leaves without allocated numbers.
    pub fn emptied(&self) -> u64 {
        let pages: Vec<u64> = self.freed.iter().map(|number| number / INODES).collect();
        let is_emptied = |freed: &&[u64]| self.taken[freed[0] as usize].count_ones() as usize == freed.len();
        pages.chunk_by(|one, next| one == next).filter(is_emptied).count() as u64
    }

    /// Prepares a checkpoint, in which freed numbers are free.
    pub fn apply_frees(&mut self, task: &Task<'_>) -> Result<(), SfsError> {
        let freed = std::mem::take(&mut self.freed);
        for page in freed.iter().map(|number| number / INODES).collect::<BTreeSet<u64>>() {
            let numbers = freed.range(page * INODES..(page + 1) * INODES);
            let bits = numbers.clone().fold(0, |bits, number| bits | 1 << (number % INODES));
            let left = self.taken[page as usize] & !bits;
            // A page without allocated numbers becomes a hole.
            if left != 0 {
                numbers.copied().try_for_each(|number| self.set(task, number, &InodeImage::new_zeroed()))?;
            }
            self.set_taken(page as usize, left);
            self.withheld.insert(page, bits);
        }
        Ok(())
    }

    /// Ends a durable checkpoint: numbers freed before it can be allocated.
    pub fn end_checkpoint(&mut self) {
        if let Some((page, _)) = std::mem::take(&mut self.withheld).pop_first() {
            self.cursor = self.cursor.min(page as usize);
        }
    }

    /// Turns pages without allocated numbers into holes. Returns the addresses of blocks that are no longer live.
    pub fn free_pages(&mut self) -> Vec<u64> {
        let taken = &self.taken;
        let addresses = self.file.free_pages(|page| taken[page] == 0);
        self.taken.truncate(self.file.len());
        self.cursor = self.cursor.min(self.taken.len());
        addresses
    }
}
