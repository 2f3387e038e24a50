//! A metadata file: numbered pages, and a tree of pointers over them with its root in the superblock.
//!
//! In memory the tree is flat: level 0 holds the pointers of all pages, level 1 those of the blocks of level 0, and so
//! on up to a single block. A dirty page dirties one block of each level; all of them are written at a checkpoint.
//!
//! Clean pages can be read again. When the limit is reached, a page not used since the last pass is evicted (second
//! chance).

use crate::crc;
use crate::fs::sfs::SfsError;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{BLOCK, BlockBytes, Pointer, Root, zeroed};
use crate::task::Task;
use std::collections::BTreeSet;
use std::sync::Arc;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

/// Pointers per block.
pub(in crate::fs::sfs) const FANOUT: usize = BLOCK / size_of::<Pointer>();
/// Bits of a block number in a block record; the level is above them.
pub(in crate::fs::sfs) const LEVEL_SHIFT: u32 = 56;

/// A metadata file.
pub(in crate::fs::sfs) struct PagedFile {
    name: &'static str,
    media: Arc<Media>,
    /// Pages in memory; `None` if not read.
    pages: Vec<Option<Box<BlockBytes>>>,
    /// Number of pages in memory.
    present: usize,
    /// Maximum number of clean pages in memory.
    most: usize,
    /// For each page, true if it was used since the clock hand passed.
    used: Vec<bool>,
    /// The clock hand of the eviction.
    hand: usize,
    /// Pointers by level. The last level has one, that of the root.
    levels: Vec<Vec<Pointer>>,
    /// Dirty pages and tree blocks, by level; level 0 are pages.
    dirty: Vec<BTreeSet<u32>>,
    /// The check of each page that is read.
    holds: Option<PageCheck>,
}

/// Checks a page, given its number, bytes, pointer, and the number of blocks of the log. An error describes the
/// violation.
pub(in crate::fs::sfs) type PageCheck = fn(usize, &BlockBytes, &Pointer, u64) -> Result<(), String>;

/// An unreadable block of a metadata file.
pub(in crate::fs::sfs) struct LostBlock {
    /// The number of the block, as in block records.
    pub number: u64,
    /// The address in the pointer to the block.
    pub address: u64,
    pub why: SfsError,
}

impl PagedFile {
    /// An empty file.
    pub fn new(name: &'static str, media: &Arc<Media>) -> PagedFile {
        PagedFile {
            name,
            media: Arc::clone(media),
            pages: Vec::new(),
            present: 0,
            most: usize::MAX,
            used: Vec::new(),
            hand: 0,
            levels: vec![Vec::new()],
            dirty: vec![BTreeSet::new()],
            holds: None,
        }
    }

    /// Sets the maximum number of clean pages in memory, at least 1.
    pub fn keep(&mut self, most: usize) {
        self.most = most.max(1);
    }

    /// Opens a file on the media: reads its tree. Pages are read on demand.
    pub fn open(task: &Task<'_>, name: &'static str, root: &Root, media: &Arc<Media>) -> Result<PagedFile, SfsError> {
        let (file, mut lost) = PagedFile::open_in_part(task, name, root, media, &mut |_| None)?;
        match lost.is_empty() {
            true => Ok(file),
            false => Err(lost.swap_remove(0).why),
        }
    }

    /// Reads the readable part of the tree, and returns the lost blocks. `find` supplies the pointers below a lost
    /// block by their numbers; without one, the page is all zeros.
    /// Fails if the root is not valid for this medium.
    pub fn open_in_part(
        task: &Task<'_>,
        name: &'static str,
        root: &Root,
        media: &Arc<Media>,
        find: &mut dyn FnMut(u64) -> Option<Pointer>,
    ) -> Result<(PagedFile, Vec<LostBlock>), SfsError> {
        let pages = usize::try_from(root.pages.get()).unwrap_or(usize::MAX);
        let bound = media.log_blocks();
        if pages as u64 > bound {
            let why = format!("the superblock gives it {pages} pages, and the volume has {bound} blocks");
            return Err(SfsError::Damaged { what: name.to_string(), why });
        }
        let (mut file, mut lost) = (PagedFile::new(name, media), Vec::new());
        file.grow(pages);
        file.dirty.iter_mut().for_each(BTreeSet::clear);
        if pages == 0 {
            return Ok((file, lost));
        }
        let top = file.levels.len() - 1;
        file.levels[top][0] = root.top;
        for level in (1..=top).rev() {
            for number in 0..file.levels[level].len() {
                let pointer = file.levels[level][number];
                if pointer.address.get() == 0 {
                    continue;
                }
                let block = read_block(task, media, name, &pointer);
                let first = number * FANOUT;
                match block {
                    Ok(block) => {
                        let below = &mut file.levels[level - 1];
                        for (at, pointer) in below[first..].iter_mut().take(FANOUT).enumerate() {
                            let bytes = &block[at * size_of::<Pointer>()..][..size_of::<Pointer>()];
                            *pointer = Pointer::read_from_bytes(bytes).expect("a pointer's length");
                        }
                    }
                    Err(why) => {
                        let address = pointer.address.get();
                        lost.push(LostBlock { number: ((level as u64) << LEVEL_SHIFT) | number as u64, address, why });
                        let below = ((level - 1) as u64) << LEVEL_SHIFT;
                        let count = file.levels[level - 1].len();
                        for at in first..(first + FANOUT).min(count) {
                            file.levels[level - 1][at] = find(below | at as u64).unwrap_or_default();
                        }
                        file.levels[level][number] = Pointer::default();
                        file.dirty[level].insert(number as u32);
                    }
                }
            }
        }
        Ok((file, lost))
    }

    /// Sets the check of each page that is read.
    pub fn check_pages(&mut self, holds: PageCheck) {
        self.holds = Some(holds);
    }

    /// Reads every clean block from the media, and returns the damaged ones.
    pub fn damaged(&self, task: &Task<'_>) -> Vec<LostBlock> {
        let mut damaged = Vec::new();
        for (level, pointers) in self.levels.iter().enumerate() {
            for (block, pointer) in pointers.iter().enumerate() {
                if pointer.address.get() == 0 || self.dirty[level].contains(&(block as u32)) {
                    continue;
                }
                if let Err(why) = read_block(task, &self.media, self.name, pointer) {
                    let (number, address) = (((level as u64) << LEVEL_SHIFT) | block as u64, pointer.address.get());
                    damaged.push(LostBlock { number, address, why });
                }
            }
        }
        damaged
    }

    /// Replaces a lost or new page by zeros.
    pub fn zero_page(&mut self, page: usize) {
        self.pages[page].get_or_insert_with(|| {
            self.present += 1;
            zeroed()
        });
        self.levels[0][page] = Pointer::default();
        self.dirty[0].insert(page as u32);
    }

    /// The root for the superblock.
    pub fn root(&self) -> Root {
        let top = self.levels.last().and_then(|level| level.first());
        Root { top: top.copied().unwrap_or_default(), pages: U64::new(self.pages.len() as u64) }
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Extends the file to `pages` pages; new pages are holes.
    pub fn grow(&mut self, pages: usize) {
        if pages <= self.pages.len() {
            return;
        }
        self.pages.resize_with(pages, || None);
        self.used.resize(pages, false);
        let mut count = pages;
        let mut level = 0;
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
                // The old root becomes the first block below the new one, and needs a pointer.
                self.dirty.push(BTreeSet::from([0]));
            }
            self.levels[level].resize(count, Pointer::default());
            if count == 1 {
                break;
            }
            count = count.div_ceil(FANOUT);
            level += 1;
        }
    }

    /// True if the page is a hole: all zeros, without a block.
    pub fn is_hole(&self, page: usize) -> bool {
        self.pages[page].is_none() && self.levels[0][page].address.get() == 0
    }

    /// Turns empty pages into holes, together with tree blocks above them that lead nowhere else, and truncates holes
    /// at the end. Returns the addresses of blocks that are no longer live.
    pub fn free_pages(&mut self, is_empty: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut addresses = Vec::new();
        let mut empty: Vec<bool> = (0..self.pages.len()).map(is_empty).collect();
        let pages = empty.iter().rposition(|is_empty| !is_empty).map_or(0, |last| last + 1).max(1);
        for (page, _) in self.pages.iter_mut().zip(&empty).filter(|(page, is_empty)| **is_empty && page.is_some()) {
            *page = None;
            self.present -= 1;
        }
        for level in 0..self.levels.len() {
            for block in (0..empty.len()).filter(|block| empty[*block]) {
                let address = std::mem::take(&mut self.levels[level][block]).address.get();
                let was_changed = self.dirty[level].remove(&(block as u32));
                if address != 0 {
                    addresses.push(address);
                }
                // One that was lost lies nowhere in memory, and the block above may name it yet.
                if (address != 0 || was_changed)
                    && let Some(above) = self.dirty.get_mut(level + 1)
                {
                    above.insert((block / FANOUT) as u32);
                }
            }
            empty = empty.chunks(FANOUT).map(|children| children.iter().all(|is_empty| *is_empty)).collect();
        }
        self.cut(pages, &mut addresses);
        addresses
    }

    /// Truncates the file to `pages` pages, behind which are only holes. The tree may lose levels.
    fn cut(&mut self, pages: usize, addresses: &mut Vec<u64>) {
        if pages >= self.pages.len() {
            return;
        }
        self.pages.truncate(pages);
        self.used.truncate(pages);
        let (mut count, mut level) = (pages, 0);
        loop {
            self.levels[level].truncate(count);
            self.dirty[level].retain(|block| (*block as usize) < count);
            if count == 1 {
                break;
            }
            count = count.div_ceil(FANOUT);
            level += 1;
        }
        let above = self.levels.drain(level + 1..).flatten();
        addresses.extend(above.map(|pointer| pointer.address.get()).filter(|address| *address != 0));
        self.dirty.truncate(level + 1);
    }

    /// The holes among the children of a tree block, a bit for each. Valid before the next checkpoint writes dirty
    /// blocks.
    pub fn holes(&self, number: u64) -> [u8; FANOUT / 8] {
        let (level, block) = ((number >> LEVEL_SHIFT) as usize, (number & ((1 << LEVEL_SHIFT) - 1)) as usize);
        debug_assert!(level > 0, "a page has no children");
        let mut holes = [0; FANOUT / 8];
        let below = self.levels[level - 1].iter().enumerate().skip(block * FANOUT).take(FANOUT);
        for (at, pointer) in below {
            if pointer.address.get() == 0 && !self.dirty[level - 1].contains(&(at as u32)) {
                holes[at % FANOUT / 8] |= 1 << (at % 8);
            }
        }
        holes
    }

    /// A page, read if it is not in memory.
    pub fn page(&mut self, task: &Task<'_>, number: usize) -> Result<&BlockBytes, SfsError> {
        self.load(task, number)?;
        Ok(self.pages[number].as_ref().expect("the page was loaded"))
    }

    /// A page, marked as dirty.
    pub fn page_mut(&mut self, task: &Task<'_>, number: usize) -> Result<&mut BlockBytes, SfsError> {
        self.load(task, number)?;
        self.dirty[0].insert(number as u32);
        Ok(self.pages[number].as_mut().expect("the page was loaded"))
    }

    #[inline]
    fn load(&mut self, task: &Task<'_>, number: usize) -> Result<(), SfsError> {
        if self.pages[number].is_none() {
            self.evict();
            let pointer = self.levels[0][number];
            let page = match pointer.address.get() {
                0 => zeroed(),
                _ => read_block(task, &self.media, self.name, &pointer)?,
            };
            if let Some(holds) = self.holds {
                let blocks = self.media.log_blocks();
                let what = || name_of_block(self.name, number as u64);
                holds(number, &page, &pointer, blocks).map_err(|why| SfsError::Damaged { what: what(), why })?;
            }
            self.pages[number] = Some(page);
            self.present += 1;
        }
        self.used[number] = true;
        Ok(())
    }

    /// The number of entries in use, or their bits, in a page's pointer.
    pub fn taken(&self, page: usize) -> u32 {
        self.levels[0][page].taken.get()
    }

    /// Sets the number of entries in use, or their bits, in a page's pointer.
    pub fn set_taken(&mut self, page: usize, taken: u32) {
        self.levels[0][page].taken.set(taken);
        // The page itself does not change.
        if let Some(blocks) = self.dirty.get_mut(1) {
            blocks.insert((page / FANOUT) as u32);
        }
    }

    /// True if the block of this number, as in block records, now has this address.
    pub fn is_live(&self, number: u64, address: u64) -> bool {
        self.pointer(number).is_some_and(|pointer| pointer.address.get() == address)
    }

    fn pointer(&self, number: u64) -> Option<&Pointer> {
        let (level, block) = ((number >> LEVEL_SHIFT) as usize, number & ((1 << LEVEL_SHIFT) - 1));
        self.levels.get(level)?.get(usize::try_from(block).ok()?)
    }

    /// Marks the block of a block record as dirty, so that it is written to a new place.
    pub fn mark_dirty(&mut self, task: &Task<'_>, number: u64) -> Result<(), SfsError> {
        let (level, block) = ((number >> LEVEL_SHIFT) as usize, (number & ((1 << LEVEL_SHIFT) - 1)) as u32);
        if level == 0 {
            self.load(task, block as usize)?;
        }
        self.dirty[level].insert(block);
        Ok(())
    }

    /// Number of dirty pages.
    pub fn dirty_pages(&self) -> usize {
        self.dirty[0].len()
    }

    /// The numbers, as in block records, of all blocks that a checkpoint writes: dirty pages first, then the tree above
    /// them.
    pub fn list_to_write(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        for level in 0..self.levels.len() {
            if level > 0 {
                let above: BTreeSet<u32> = self.dirty[level - 1].iter().map(|block| block / FANOUT as u32).collect();
                self.dirty[level].extend(above);
            }
            numbers.extend(self.dirty[level].iter().map(|block| ((level as u64) << LEVEL_SHIFT) | u64::from(*block)));
        }
        numbers
    }

    /// The bytes of a block to be written. Blocks of lower levels have their addresses.
    pub fn bytes(&self, number: u64) -> Box<BlockBytes> {
        let (level, block) = ((number >> LEVEL_SHIFT) as usize, (number & ((1 << LEVEL_SHIFT) - 1)) as usize);
        if level == 0 {
            return self.pages[block].clone().expect("dirty pages are in memory");
        }
        let mut bytes = zeroed();
        let pointers = &self.levels[level - 1][block * FANOUT..];
        for (pointer, place) in pointers.iter().zip(bytes.chunks_exact_mut(size_of::<Pointer>())) {
            place.copy_from_slice(pointer.as_bytes());
        }
        bytes
    }

    /// Sets the new address of a block. Returns the old one, 0 for none.
    pub fn set_address(&mut self, number: u64, address: u64) -> u64 {
        let (level, block) = ((number >> LEVEL_SHIFT) as usize, (number & ((1 << LEVEL_SHIFT) - 1)) as usize);
        debug_assert!(self.dirty[level].contains(&(block as u32)), "block {block} of level {level} is dirty");
        debug_assert_ne!(address, 0, "address 0 stands for a block that was never written");
        let pointer = &mut self.levels[level][block];
        let before = pointer.address.get();
        pointer.address.set(address);
        before
    }

    /// Sets the checksum of a block.
    pub fn set_checksum(&mut self, number: u64, crc: u32) {
        let (level, block) = ((number >> LEVEL_SHIFT) as usize, (number & ((1 << LEVEL_SHIFT) - 1)) as usize);
        self.levels[level][block].crc.set(crc);
    }

    /// Marks all blocks as clean.
    pub fn written(&mut self) {
        self.dirty.iter_mut().for_each(BTreeSet::clear);
    }

    /// Number of clean pages in memory.
    pub fn unchanged(&self) -> usize {
        debug_assert!(self.dirty[0].len() <= self.present, "all dirty pages are in memory");
        self.present - self.dirty[0].len()
    }

    /// Evicts a clean page if the limit is reached.
    fn evict(&mut self) {
        while self.unchanged() >= self.most {
            self.hand = (self.hand + 1) % self.pages.len();
            let at = self.hand;
            let is_used = std::mem::take(&mut self.used[at]);
            if !is_used && self.pages[at].is_some() && !self.dirty[0].contains(&(at as u32)) {
                self.pages[at] = None;
                self.present -= 1;
            }
        }
    }

    /// The blocks of the file: number as in block records, and address.
    pub fn addresses(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.levels.iter().enumerate().flat_map(|(level, pointers)| {
            pointers.iter().enumerate().filter_map(move |(block, pointer)| {
                let address = pointer.address.get();
                (address != 0).then_some((((level as u64) << LEVEL_SHIFT) | block as u64, address))
            })
        })
    }
}

fn read_block(task: &Task<'_>, media: &Media, name: &str, pointer: &Pointer) -> Result<Box<BlockBytes>, SfsError> {
    let mut block = zeroed();
    let address = pointer.address.get();
    check_address(media, name, address)?;
    media.read_metadata(task, address, &mut block[..])?;
    let crc = crc::crc32c(&block[..]);
    if crc != pointer.crc.get() {
        let what = format!("a block of the {name} at {address} of the log");
        return Err(SfsError::Damaged {
            what,
            why: format!("its checksum is {crc:08x}, and should be {:08x}", pointer.crc.get()),
        });
    }
    Ok(block)
}

/// Fails if the address is outside the log.
pub(in crate::fs::sfs) fn check_address(media: &Media, name: &str, address: u64) -> Result<(), SfsError> {
    let end = media.log_blocks();
    if address == 0 || address >= end {
        let why = format!("it refers to block {address} of the log, which has {end}");
        return Err(SfsError::Damaged { what: format!("the {name}"), why });
    }
    Ok(())
}

/// The description of a block of a metadata file, for messages.
pub(in crate::fs::sfs) fn name_of_block(name: &str, number: u64) -> String {
    let (level, block) = (number >> LEVEL_SHIFT, number & ((1 << LEVEL_SHIFT) - 1));
    match level {
        0 => format!("page {block} of the {name}"),
        level => format!("block {block} of level {level} of the {name}'s tree"),
    }
}
