//! FAST: a hybrid translation layer. Data blocks are mapped by block; overwrites go to log blocks, which are mapped by
//! page and shared by all data blocks: fully associative sector translation (Lee et al., ACM TECS 6(3), 2007).
//!
//! The first write of a page goes to its offset in its data block, if that is the block's next page. An overwrite goes
//! to the sequential log block (SW) if it is the first page of its block, or continues the sequence; otherwise to the
//! end of the random log blocks (RW). Merges free log blocks; they are counted by kind:
//!
//! - switch: the sequential log block is full and in order. It becomes the data block, and the old one is erased.
//! - partial: another block's first page needs the sequential log block. The missing pages are copied into it, and it
//!   becomes the data block.
//! - full: all random log blocks are full. For each logical block with a newest page in the oldest of them, the newest
//!   pages are copied to a new block, and the old data block is erased; at the end, the log block is erased.
//!
//! Flash is programmed in order: for a missing page, a merge programs a filler ([`Nand::program_filler`]).

mod rebuild;
mod settings;

pub use settings::{FastSettings, KIND};

use super::free_blocks::FreeBlocks;
use super::valid_pages::ValidPages;
use super::{Flash, PageWrite, Translation, TranslationError, UNMAPPED, bits_for, read_newest};
use crate::device::nand::{EraseBlock, Erased, LogicalPage, Nand, PhysicalPage, Spare, Timing};
use crate::label::{Cause, Label, Tally};
use crate::tables::{filled, prefetch};
use std::collections::VecDeque;

/// A logical block: the unit of block mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LogicalBlock(u32);

/// The sequential log block: the first pages of one logical block, in order.
#[derive(Clone, Copy)]
struct SequentialLog {
    of: LogicalBlock,
    block: EraseBlock,
}

/// Merges of each kind.
#[derive(Default, Clone, Copy)]
struct Merges {
    switch: u64,
    partial: u64,
    full: u64,
}

/// FAST on flash.
pub struct Fast<T: Timing> {
    nand: Nand<T>,
    /// The block map: the data block of each logical block, or [`UNMAPPED`].
    data_blocks: Vec<u32>,
    /// The page map of the log blocks: the physical page of each page whose newest version is in a log block.
    logged: Vec<u32>,
    valid: ValidPages,
    /// The number of written pages of each logical block.
    present: Vec<u32>,
    sequential: Option<SequentialLog>,
    /// The random log blocks, the oldest first; the last one is open.
    random: VecDeque<EraseBlock>,
    free: FreeBlocks,
    settings: FastSettings,
    /// The plane of the next block.
    plane: u32,
    retired: u32,
    sent: Tally,
    merges: Merges,
    fillers: u64,
}

impl<T: Timing> Fast<T> {
    /// A drive with nothing written.
    pub fn new(nand: Nand<T>, settings: &FastSettings) -> Fast<T> {
        let mut drive = Fast::without_blocks(nand, settings);
        drive.free.put_all(drive.nand.geometry());
        drive
    }

    fn without_blocks(nand: Nand<T>, settings: &FastSettings) -> Fast<T> {
        let geometry = *nand.geometry();
        Fast {
            data_blocks: vec![UNMAPPED; settings.logical_blocks as usize],
            logged: filled(UNMAPPED, settings.exported_pages as usize),
            valid: ValidPages::new(&geometry),
            present: vec![0; settings.logical_blocks as usize],
            sequential: None,
            random: VecDeque::with_capacity(settings.random_logs as usize),
            free: FreeBlocks::new(&geometry, true),
            settings: settings.clone(),
            plane: 0,
            retired: 0,
            sent: Tally::default(),
            merges: Merges::default(),
            fillers: 0,
            nand,
        }
    }

    fn pages_per_block(&self) -> u32 {
        self.nand.geometry().pages_per_block
    }

    #[inline]
    fn split(&self, page: LogicalPage) -> (LogicalBlock, u32) {
        let pages_per_block = self.pages_per_block();
        (LogicalBlock(page.0 / pages_per_block), page.0 % pages_per_block)
    }

    fn page(&self, of: LogicalBlock, offset: u32) -> LogicalPage {
        LogicalPage(of.0 * self.pages_per_block() + offset)
    }

    /// The next page to program in a block; the number of pages if it is full.
    #[inline]
    fn programmed(&self, block: EraseBlock) -> u32 {
        self.nand.programmed_pages()[block.index()]
    }

    #[inline]
    fn at_offset(&self, block: EraseBlock, offset: u32) -> PhysicalPage {
        PhysicalPage(self.nand.geometry().first_page(block).0 + offset)
    }

    #[inline]
    fn data_block(&self, of: LogicalBlock) -> Option<EraseBlock> {
        let block = self.data_blocks[of.0 as usize];
        (block != UNMAPPED).then_some(EraseBlock(block))
    }

    /// The physical page of the newest version of a page.
    #[inline]
    fn lookup(&self, page: LogicalPage) -> Option<PhysicalPage> {
        let logged = self.logged[page.0 as usize];
        if logged != UNMAPPED {
            return Some(PhysicalPage(logged));
        }
        let (of, offset) = self.split(page);
        let place = self.at_offset(self.data_block(of)?, offset);
        self.valid.contains(place).then_some(place)
    }

    fn take_free(&mut self) -> Result<EraseBlock, TranslationError> {
        let block = self.free.take(self.plane).ok_or_else(|| self.worn_out())?;
        self.plane = (self.plane + 1) % self.nand.geometry().units();
        Ok(block)
    }

    fn erase(&mut self, block: EraseBlock, at: T::Moment) -> Result<T::Moment, TranslationError> {
        debug_assert!(self.valid.words_of(block).all(|word| self.valid.word(word) == 0), "nothing newest is erased");
        let (erased, done) = self.nand.erase(block, at)?;
        match erased {
            Erased::Usable => {
                let plane = self.nand.geometry().unit_of(block);
                self.free.put(plane, block, self.nand.erase_counts()[block.index()]);
            }
            Erased::WornOut | Erased::Failed => {
                self.retired += 1;
                if self.nand.geometry().blocks - self.retired < self.settings.needed_blocks() {
                    return Err(self.worn_out());
                }
            }
        }
        Ok(done)
    }

    fn worn_out(&self) -> TranslationError {
        TranslationError::worn_out(&self.nand, self.retired)
    }

    /// The physical page for a write, and true if it is in a log block.
    #[inline]
    fn place_for(&mut self, page: LogicalPage, at: T::Moment) -> Result<(PhysicalPage, bool), TranslationError> {
        let (of, offset) = self.split(page);
        match (self.sequential.filter(|log| log.of == of), self.data_block(of)) {
            (Some(log), _) if self.programmed(log.block) == offset => {
                return Ok((self.at_offset(log.block, offset), true));
            }
            // The sequential log block will replace the data block, which takes no more pages.
            (Some(_), _) => {}
            (None, Some(block)) if self.programmed(block) == offset => {
                return Ok((self.at_offset(block, offset), false));
            }
            (None, None) if offset == 0 => {
                let block = self.take_free()?;
                self.data_blocks[of.0 as usize] = block.0;
                return Ok((self.at_offset(block, 0), false));
            }
            _ => {}
        }
        let block = if offset == 0 { self.start_sequential(of, at)? } else { self.random_log(at)? };
        Ok((self.at_offset(block, self.programmed(block)), true))
    }

    /// Assigns the sequential log block to a logical block.
    fn start_sequential(&mut self, of: LogicalBlock, at: T::Moment) -> Result<EraseBlock, TranslationError> {
        self.merge_sequential(at)?;
        let block = self.take_free()?;
        self.sequential = Some(SequentialLog { of, block });
        Ok(block)
    }

    /// A random log block with a free page.
    fn random_log(&mut self, at: T::Moment) -> Result<EraseBlock, TranslationError> {
        if let Some(&block) = self.random.back()
            && self.programmed(block) < self.pages_per_block()
        {
            return Ok(block);
        }
        if self.random.len() as u32 >= self.settings.random_logs {
            self.merge_oldest_random(at)?;
        }
        debug_assert!((self.random.len() as u32) < self.settings.random_logs, "a merge frees a random log block");
        let block = self.take_free()?;
        self.random.push_back(block);
        Ok(block)
    }

    /// Switch or partial merge: makes the sequential log block a data block.
    fn merge_sequential(&mut self, at: T::Moment) -> Result<(), TranslationError> {
        let Some(log) = self.sequential.take() else { return Ok(()) };
        if self.programmed(log.block) == self.pages_per_block() {
            self.merges.switch += 1;
        } else {
            self.merges.partial += 1;
        }
        self.complete(log.of, log.block, at)
    }

    /// Frees the oldest random log block: a full merge for every logical block with a newest page in it.
    fn merge_oldest_random(&mut self, at: T::Moment) -> Result<(), TranslationError> {
        let victim = self.random.pop_front().ok_or_else(|| self.worn_out())?;
        for word in self.valid.words_of(victim) {
            // Each merge moves all pages of its logical block, also those in this word.
            while self.valid.word(word) != 0 {
                let page = self.valid.page(word, self.valid.word(word).trailing_zeros());
                let (of, _) = self.split(self.nand.peek_logical_page(page));
                self.merge_full(of, at)?;
            }
        }
        self.erase(victim, at)?;
        Ok(())
    }

    /// Copies all newest pages of a logical block to one block.
    fn merge_full(&mut self, of: LogicalBlock, at: T::Moment) -> Result<(), TranslationError> {
        if self.sequential.is_some_and(|log| log.of == of) {
            // The sequential log block has the first pages already, and can take the rest.
            return self.merge_sequential(at);
        }
        self.merges.full += 1;
        let target = self.take_free()?;
        self.complete(of, target, at)
    }

    /// Copies the missing pages to `target`, which has the first pages of the logical block, makes it the data block,
    /// and erases the old one.
    fn complete(&mut self, of: LogicalBlock, target: EraseBlock, at: T::Moment) -> Result<(), TranslationError> {
        debug_assert!(!self.random.contains(&target), "a random log block becomes no data block");
        let mut copies = 0;
        let copied = self.copy_missing(of, target, at, &mut copies);
        self.nand.count_copies(copies, Cause::Merge, &mut self.sent);
        let done = copied?;
        self.forget_logged(of, target);
        let old = std::mem::replace(&mut self.data_blocks[of.0 as usize], target.0);
        if old != UNMAPPED {
            self.erase(EraseBlock(old), done)?;
        }
        Ok(())
    }

    /// Copies the missing pages of a logical block to `target`, with fillers between them, and adds them to `copies`.
    /// Returns the time of the last one.
    fn copy_missing(
        &mut self,
        of: LogicalBlock,
        target: EraseBlock,
        at: T::Moment,
        copies: &mut u64,
    ) -> Result<T::Moment, TranslationError> {
        let pages_per_block = self.pages_per_block();
        let first = self.page(of, 0).0;
        let mut offset = self.programmed(target);
        let mut done = at;
        let last = (offset..pages_per_block).rev().find(|&offset| self.lookup(LogicalPage(first + offset)).is_some());
        let end = last.map_or(offset, |last| last + 1);
        while offset < end {
            let to = self.at_offset(target, offset);
            match self.lookup(LogicalPage(first + offset)) {
                None => {
                    self.fillers += 1;
                    self.sent.add(Label::again(Cause::Merge, Spare::OF_FILLER), 1);
                    done = self.nand.program_filler(to, Cause::Merge, done)?;
                    offset += 1;
                }
                Some(from) => {
                    let run = self.run_length(first + offset, first + end, from);
                    let one = self.copy_run(from, run, to, at)?;
                    done = self.nand.timing().later(done, one);
                    *copies += u64::from(run);
                    offset += run;
                }
            }
        }
        Ok(done)
    }

    /// Removes the pages in `block` from the page map: the block map finds them from now on.
    fn forget_logged(&mut self, of: LogicalBlock, block: EraseBlock) {
        let first = self.page(of, 0).0;
        for page in first..first + self.pages_per_block() {
            let place = self.logged[page as usize];
            if place != UNMAPPED && self.nand.geometry().block_of(PhysicalPage(place)) == block {
                self.logged[page as usize] = UNMAPPED;
            }
        }
    }

    /// The number of consecutive pages, at most a word of bits, that are in order in the block of `from`, the newest
    /// version of `page`, up to `end` of the logical block.
    fn run_length(&self, page: u32, end: u32, from: PhysicalPage) -> u32 {
        let rest_of_block = self.pages_per_block() - self.nand.geometry().page_in_block(from);
        let most = (end - page).min(rest_of_block).min(u64::BITS);
        let follows = |run: &u32| self.lookup(LogicalPage(page + run)) == Some(PhysicalPage(from.0 + run));
        1 + (1..most).take_while(follows).count() as u32
    }

    /// Copies consecutive pages of one block.
    fn copy_run(
        &mut self,
        from: PhysicalPage,
        run: u32,
        to: PhysicalPage,
        at: T::Moment,
    ) -> Result<T::Moment, TranslationError> {
        debug_assert!((1..=u64::BITS).contains(&run), "a run of {run} pages fits a word");
        for step in 0..run {
            self.valid.clear(PhysicalPage(from.0 + step));
        }
        self.valid.set_run(to, run);
        let logged = &mut self.logged;
        let pages = u64::MAX >> (u64::BITS - run);
        Ok(self.nand.copy((from, pages), to, Cause::Merge, at, |page, to| logged[page.0 as usize] = to.0)?)
    }

    /// Frees the blocks of a logical block without written pages.
    fn drop_empty(&mut self, of: LogicalBlock, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        if let Some(log) = self.sequential.take_if(|log| log.of == of) {
            done = self.erase(log.block, at)?;
        }
        let data = std::mem::replace(&mut self.data_blocks[of.0 as usize], UNMAPPED);
        if data != UNMAPPED {
            let one = self.erase(EraseBlock(data), at)?;
            done = self.nand.timing().later(done, one);
        }
        Ok(done)
    }
}

impl<T: Timing> Translation for Fast<T> {
    type Timing = T;

    fn timing(&mut self) -> &mut T {
        self.nand.timing()
    }

    fn name(&self) -> &'static str {
        "fast"
    }

    #[inline]
    fn write(&mut self, write: PageWrite, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let (to, is_logged) = self.place_for(write.page, at)?;
        let (of, _) = self.split(write.page);
        match self.lookup(write.page) {
            Some(from) => self.valid.clear(from),
            None => self.present[of.0 as usize] += 1,
        }
        self.logged[write.page.0 as usize] = if is_logged { to.0 } else { UNMAPPED };
        debug_assert!(!self.valid.contains(to), "page {} is given out once between erases", to.0);
        self.valid.set(to);
        self.sent.add(Label::again(Cause::HostWrite, write.provenance), 1);
        let done = self.nand.program(to, (write.page, write.provenance), write.stamp, Cause::HostWrite, at)?;
        if self.sequential.is_some_and(|log| log.of == of && self.programmed(log.block) == self.pages_per_block()) {
            self.merge_sequential(done)?;
        }
        Ok(done)
    }

    #[inline]
    fn read(&mut self, page: LogicalPage, at: T::Moment) -> Result<(Option<u32>, T::Moment), TranslationError> {
        let Some(from) = self.lookup(page) else { return Ok((None, at)) };
        read_newest(&mut self.nand, page, from, at)
    }

    fn discard(&mut self, page: LogicalPage, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let Some(from) = self.lookup(page) else { return Ok(at) };
        self.valid.clear(from);
        self.logged[page.0 as usize] = UNMAPPED;
        let (of, _) = self.split(page);
        debug_assert!(self.present[of.0 as usize] > 0, "each page that is somewhere is counted");
        self.present[of.0 as usize] -= 1;
        if self.present[of.0 as usize] == 0 { self.drop_empty(of, at) } else { Ok(at) }
    }

    #[inline]
    fn prefetch(&self, page: LogicalPage) {
        prefetch(&self.logged, page.0 as usize);
        prefetch(&self.data_blocks, self.split(page).0.0 as usize);
    }

    fn exported_pages(&self) -> u64 {
        self.settings.exported_pages
    }

    fn sent(&self) -> &Tally {
        &self.sent
    }

    fn programmed(&self) -> Tally {
        self.nand.programmed()
    }

    fn flash(&self) -> Flash<'_> {
        Flash::of(&self.nand)
    }

    fn free_blocks(&self) -> u64 {
        self.free.count().into()
    }

    fn effective_overprovisioning(&self) -> f64 {
        // Only log blocks take updates.
        f64::from(self.settings.random_logs + 1) / f64::from(self.settings.logical_blocks)
    }

    fn mapping_ram_bytes(&self) -> u64 {
        let block_map = u64::from(self.settings.logical_blocks) * bits_for(u64::from(self.nand.geometry().blocks));
        let logs = u64::from(self.settings.random_logs + 1);
        // For each log block its number, and the logical page of each of its pages.
        let page_map = u64::from(self.pages_per_block()) * bits_for(self.settings.exported_pages);
        let log_map = logs * (bits_for(u64::from(self.nand.geometry().blocks)) + page_map);
        (block_map + log_map).div_ceil(8)
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        let Merges { switch, partial, full } = self.merges;
        vec![
            ("switch_merges", switch),
            ("partial_merges", partial),
            ("full_merges", full),
            ("filler_pages", self.fillers),
        ]
    }

    fn after_power_cut(self) -> Result<Self, TranslationError> {
        rebuild::rebuilt(self)
    }
}
