//! The inode file: all inodes, sixteen to a page.
//!
//! Free numbers are chained through their own images. One that was freed is not given out again before a checkpoint, as
//! the log since the last one may speak of its old owner.

use super::SfsError;
use super::format::{BLOCK, InodeImage, Root};
use super::media::Media;
use super::paged::PagedFile;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Inodes of a page.
pub(super) const INODES: u64 = (BLOCK / size_of::<InodeImage>()) as u64;

/// The inode file.
pub(super) struct InodeFile {
    file: PagedFile,
    /// Numbers that have ever been given out, and 0.
    count: u64,
    first_free: u64,
    /// Freed since the last checkpoint, with the next generation.
    freed: BTreeMap<u64, u32>,
    used: u64,
    /// Given out since the last checkpoint: their images are not in the file yet.
    given: BTreeSet<u64>,
}

impl InodeFile {
    pub fn new() -> InodeFile {
        InodeFile {
            file: PagedFile::new("inode file"),
            count: 1,
            first_free: 0,
            freed: BTreeMap::new(),
            used: 0,
            given: BTreeSet::new(),
        }
    }

    pub fn open(
        root: &Root,
        (count, first_free, used): (u64, u64, u64),
        media: &mut Media,
        now: &mut Time,
    ) -> Result<InodeFile, SfsError> {
        let file = PagedFile::open("inode file", root, media, now)?;
        if count > file.len() as u64 * INODES || first_free >= count.max(1) {
            let why =
                format!("it has {} pages for {count} inodes, of which {first_free} is the first free one", file.len());
            return Err(SfsError::Damaged { what: "the superblock's inode file".to_string(), why });
        }
        Ok(InodeFile { file, count, first_free, freed: BTreeMap::new(), used, given: BTreeSet::new() })
    }

    pub fn file(&mut self) -> &mut PagedFile {
        &mut self.file
    }

    /// Numbers that have ever been given out, and 0.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn first_free(&self) -> u64 {
        self.first_free
    }

    /// Inodes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// An inode's image; that of a free one has the number 0.
    pub fn get(&mut self, number: u64, media: &mut Media, now: &mut Time) -> Result<InodeImage, SfsError> {
        if number == 0 || number >= self.count || number / INODES >= self.file.len() as u64 {
            return Err(SfsError::NotFound);
        }
        let page = self.file.page((number / INODES) as usize, media, now)?;
        let at = (number % INODES) as usize * size_of::<InodeImage>();
        Ok(InodeImage::read_from_bytes(&page[at..at + size_of::<InodeImage>()]).expect("an image's length"))
    }

    /// Writes an inode's image into its page.
    pub fn set(&mut self, number: u64, image: &InodeImage, media: &mut Media, now: &mut Time) -> Result<(), SfsError> {
        let page = (number / INODES) as usize;
        self.file.grow(page + 1);
        let at = (number % INODES) as usize * size_of::<InodeImage>();
        self.file.page_mut(page, media, now)?[at..at + size_of::<InodeImage>()].copy_from_slice(image.as_bytes());
        Ok(())
    }

    /// A free number, and its generation.
    pub fn take(&mut self, media: &mut Media, now: &mut Time) -> Result<(u64, u32), SfsError> {
        let number = self.first_free;
        let taken = if number == 0 {
            let number = self.count;
            self.file.grow((number / INODES) as usize + 1);
            if let Some(used) = self.used_behind(number, 1, media, now)? {
                let why = format!("it is in use, and there are said to be {number}");
                return Err(SfsError::Damaged { what: format!("inode {used}"), why });
            }
            self.count += 1;
            (number, 0)
        } else {
            let image = self.get(number, media, now)?;
            let is_free = image.number.get() == 0 && !self.given.contains(&number) && !self.is_freed(number);
            if !is_free || image.next.get() >= self.count {
                let why = "it is in the chain of free ones, and is none".to_string();
                return Err(SfsError::Damaged { what: format!("inode {number}"), why });
            }
            self.first_free = image.next.get();
            (number, image.generation.get())
        };
        self.given.insert(taken.0);
        self.used += 1;
        Ok(taken)
    }

    /// The first inode in use among `most` numbers from one on that was never given out.
    pub fn used_behind(
        &mut self,
        from: u64,
        most: u64,
        media: &mut Media,
        now: &mut Time,
    ) -> Result<Option<u64>, SfsError> {
        let end = (self.file.len() as u64 * INODES).min(from.saturating_add(most));
        for number in from..end {
            let page = self.file.page((number / INODES) as usize, media, now)?;
            let at = (number % INODES) as usize * size_of::<InodeImage>();
            let image = InodeImage::ref_from_bytes(&page[at..at + size_of::<InodeImage>()]).expect("an image's length");
            if image.number.get() != 0 {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// A certain number is in use, as the log says.
    pub fn take_found(&mut self, number: u64) {
        self.count = self.count.max(number + 1);
        self.file.grow((self.count.div_ceil(INODES)) as usize);
        self.used += 1;
    }

    /// A number below the highest was never used.
    pub fn skip(&mut self, number: u64) {
        self.freed.insert(number, 0);
    }

    /// Frees a number.
    pub fn free(&mut self, number: u64, generation: u32) {
        self.freed.insert(number, generation.wrapping_add(1));
        self.used = self.used.saturating_sub(1);
    }

    /// Whether a number was freed since the last checkpoint.
    pub fn is_freed(&self, number: u64) -> bool {
        self.freed.contains_key(&number)
    }

    /// Numbers that were freed since the last checkpoint.
    pub fn freed(&self) -> impl Iterator<Item = u64> + '_ {
        self.freed.keys().copied()
    }

    /// One whose pages may be read in part.
    pub fn of_file(file: PagedFile, (count, first_free, used): (u64, u64, u64)) -> InodeFile {
        let count = count.clamp(1, (file.len() as u64 * INODES).max(1));
        InodeFile { file, count, first_free, freed: BTreeMap::new(), used, given: BTreeSet::new() }
    }

    /// All numbers that its pages have room for have been given out, it says from now on.
    pub fn raise_count(&mut self) {
        self.count = (self.file.len() as u64 * INODES).max(1);
    }

    /// Chains these free numbers, and says that the others are used. Their generations stay.
    pub fn chain(&mut self, free: &[u64], media: &mut Media, now: &mut Time) -> Result<(), SfsError> {
        self.first_free = 0;
        for number in free.iter().rev() {
            let generation = self.get(*number, media, now)?.generation;
            let image = InodeImage { generation, next: self.first_free.into(), ..InodeImage::new_zeroed() };
            self.set(*number, &image, media, now)?;
            self.first_free = *number;
        }
        self.used = (self.count - 1).saturating_sub(free.len() as u64 + self.freed.len() as u64);
        Ok(())
    }

    /// A checkpoint is about to be written, in which what was freed is free.
    pub fn settle(&mut self, media: &mut Media, now: &mut Time) -> Result<(), SfsError> {
        self.given.clear();
        for (number, generation) in std::mem::take(&mut self.freed) {
            let image =
                InodeImage { generation: generation.into(), next: self.first_free.into(), ..InodeImage::new_zeroed() };
            self.set(number, &image, media, now)?;
            self.first_free = number;
        }
        Ok(())
    }

    /// Takes the numbers that `is_used` says are used out of the chain of free ones.
    pub fn unchain(
        &mut self,
        is_used: impl Fn(u64) -> bool,
        media: &mut Media,
        now: &mut Time,
    ) -> Result<(), SfsError> {
        let (mut at, mut left, mut free) = (self.first_free, self.count, Vec::new());
        while at != 0 && left > 0 {
            if !is_used(at) {
                free.push(at);
            }
            at = self.get(at, media, now)?.next.get();
            left -= 1;
        }
        self.first_free = 0;
        for number in free.into_iter().rev() {
            let mut image = self.get(number, media, now)?;
            if image.next.get() != self.first_free {
                image.next = self.first_free.into();
                self.set(number, &image, media, now)?;
            }
            self.first_free = number;
        }
        Ok(())
    }
}
