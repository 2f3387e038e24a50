//! Block-level mapping with one replacement block: the simplest translation layer on flash that can be used.
//!
//! The map has one entry for each logical block, and a page keeps its place in the block. Flash is programmed in order,
//! so a page behind those programmed is written at once, with fillers between. An update opens a replacement block: it
//! takes the pages of one logical block in order, each written or copied. An update of another block, or of a page that
//! is already in it, ends the merge: the other pages are copied, and the old block is erased. Sequential updates copy
//! nothing; random ones write a block for each page.
//!
//! After a power cut, the map follows from the spare areas. Of two blocks of one logical block the newer one is the
//! replacement, and the merge is ended.

use flashpath::device::nand::{EraseBlock, Erased, Geometry, LogicalPage, Nand, PhysicalPage, Spare, Timing};
use flashpath::expression::{ExpressionError, Kind, OptionKind, Term, Values};
use flashpath::label::{Cause, Label, Tally};
use flashpath::time::Time;
use flashpath::translation::{Flash, FlashLayer, PageWrite, Translation, TranslationError};
use std::collections::BTreeSet;

/// The station `block-map`.
pub static KIND: Kind = Kind {
    name: "block-map",
    about: "block-level mapping with one replacement block: a random update writes its whole block again",
    options: &[OptionKind {
        name: "export",
        values: Values::Share(0.01, 0.999),
        default: "90%",
        about: "the share of the raw blocks that is exported",
    }],
};

/// The parsed options of `block-map`.
#[derive(Debug)]
pub struct BlockMapSettings {
    logical_blocks: u32,
    pages_per_block: u32,
    written_out: String,
}

impl FlashLayer for BlockMapSettings {
    type On<T: Timing + Send + 'static> = BlockMap<T>;

    fn read(term: &Term, geometry: &Geometry) -> Result<BlockMapSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let logical_blocks = (f64::from(geometry.blocks) * settings.share("export")) as u32;
        if logical_blocks == 0 || logical_blocks == geometry.blocks {
            let message = format!("{logical_blocks} of the {} blocks are exported", geometry.blocks);
            let help = "take a larger size: a merge needs a block beside the exported ones".to_string();
            return Err(settings.error("export", message, help));
        }
        let written_out = settings.written_out(&[]);
        Ok(BlockMapSettings { logical_blocks, pages_per_block: geometry.pages_per_block, written_out })
    }

    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn exported_pages(&self) -> u64 {
        u64::from(self.logical_blocks) * u64::from(self.pages_per_block)
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, _seed: u64) -> BlockMap<T> {
        BlockMap::new(flash, self.logical_blocks)
    }
}

/// The layer.
pub struct BlockMap<T: Timing> {
    nand: Nand<T>,
    /// The block of each logical block.
    map: Vec<Option<EraseBlock>>,
    /// The replacement of a logical block.
    replacement: Option<(usize, EraseBlock)>,
    /// By logical page: it was written, and not discarded since.
    is_valid: Vec<bool>,
    /// Erased blocks, the least worn first.
    free: BTreeSet<(u32, EraseBlock)>,
    retired: u32,
    sent: Tally,
    switch_merges: u64,
    full_merges: u64,
}

impl<T: Timing> BlockMap<T> {
    /// A drive with nothing written, that offers this many blocks.
    pub fn new(nand: Nand<T>, logical_blocks: u32) -> BlockMap<T> {
        let geometry = *nand.geometry();
        assert!(logical_blocks < geometry.blocks, "a merge needs a block beside the exported ones");
        BlockMap {
            nand,
            map: vec![None; logical_blocks as usize],
            replacement: None,
            is_valid: vec![false; logical_blocks as usize * geometry.pages_per_block as usize],
            free: (0..geometry.blocks).map(|block| (0, EraseBlock(block))).collect(),
            retired: 0,
            sent: Tally::default(),
            switch_merges: 0,
            full_merges: 0,
        }
    }

    /// The number of the logical block of a page, and the page's place in it.
    fn place_of(&self, page: LogicalPage) -> (usize, u32) {
        let pages_per_block = self.nand.geometry().pages_per_block;
        ((page.0 / pages_per_block) as usize, page.0 % pages_per_block)
    }

    fn page_at(&self, block: EraseBlock, within: u32) -> PhysicalPage {
        PhysicalPage(self.nand.geometry().first_page(block).0 + within)
    }

    fn take_erased(&mut self) -> Result<EraseBlock, TranslationError> {
        self.free.pop_first().map(|(_, block)| block).ok_or(TranslationError::WornOut {
            retired: self.retired,
            blocks: self.nand.geometry().blocks,
            endurance: self.nand.endurance(),
        })
    }

    fn programmed(&self, block: EraseBlock) -> u32 {
        self.nand.programmed_pages()[block.index()]
    }

    /// Programs fillers, so that `within` is the next page of `block`.
    fn fill_until(&mut self, block: EraseBlock, within: u32, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let mut done = at;
        for filler in self.programmed(block)..within {
            let page = self.page_at(block, filler);
            done = self.nand.program_filler(page, Cause::Merge, done)?;
            self.sent.add(Label::again(Cause::Merge, Spare::OF_FILLER), 1);
        }
        Ok(done)
    }

    /// Programs the page of a host write, which is behind all programmed pages of `block`.
    fn append(&mut self, block: EraseBlock, write: &PageWrite, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let (_, within) = self.place_of(write.page);
        let at = self.fill_until(block, within, at)?;
        self.sent.add(Label::again(Cause::HostWrite, write.provenance), 1);
        let page = self.page_at(block, within);
        Ok(self.nand.program(page, (write.page, write.provenance), write.stamp, Cause::HostWrite, at)?)
    }

    /// Copies the valid pages of a logical block that its replacement does not have yet, until `end`.
    fn copy_until(
        &mut self,
        (logical_block, to): (usize, EraseBlock),
        end: u32,
        at: T::Moment,
    ) -> Result<T::Moment, TranslationError> {
        let from = self.map[logical_block].expect("a mapped block is replaced");
        let first_page = logical_block * self.nand.geometry().pages_per_block as usize;
        let mut done = at;
        for within in self.programmed(to)..end.min(self.programmed(from)) {
            if !self.is_valid[first_page + within as usize] {
                continue;
            }
            done = self.fill_until(to, within, done)?;
            let (source, target) = (self.page_at(from, within), self.page_at(to, within));
            done = self.nand.copy((source, 1), target, Cause::Merge, done, |_, _| {})?;
            self.nand.count_copies(1, Cause::Merge, &mut self.sent);
        }
        Ok(done)
    }

    /// Ends the open merge, if there is one.
    fn end_merge(&mut self, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let Some((logical_block, to)) = self.replacement else { return Ok(at) };
        let sent = self.sent.total();
        let done = self.copy_until((logical_block, to), u32::MAX, at)?;
        *if self.sent.total() == sent { &mut self.switch_merges } else { &mut self.full_merges } += 1;
        let replaced = self.map[logical_block].replace(to).expect("a mapped block is replaced");
        self.replacement = None;
        self.erase(replaced, done)?;
        Ok(done)
    }

    /// The block that takes the next version of a page: the mapped one or its replacement.
    fn block_for(&mut self, page: LogicalPage, at: T::Moment) -> Result<(EraseBlock, T::Moment), TranslationError> {
        let (logical_block, within) = self.place_of(page);
        let replacement = self.replacement.filter(|&(of, to)| of == logical_block && self.programmed(to) <= within);
        if let Some((_, to)) = replacement {
            return Ok((to, self.copy_until((logical_block, to), within, at)?));
        }
        let is_replaced = self.replacement.is_some_and(|(of, _)| of == logical_block);
        match self.map[logical_block] {
            Some(block) if !is_replaced && self.programmed(block) <= within => return Ok((block, at)),
            Some(_) => {}
            None => {
                let block = self.take_erased()?;
                self.map[logical_block] = Some(block);
                return Ok((block, at));
            }
        }
        let at = self.end_merge(at)?;
        let to = self.take_erased()?;
        self.replacement = Some((logical_block, to));
        Ok((to, self.copy_until((logical_block, to), within, at)?))
    }

    fn erase(&mut self, block: EraseBlock, at: T::Moment) -> Result<(), TranslationError> {
        match self.nand.erase(block, at)?.0 {
            Erased::Usable => {
                self.free.insert((self.nand.erase_counts()[block.index()], block));
            }
            Erased::WornOut | Erased::Failed => self.retired += 1,
        }
        Ok(())
    }
}

impl<T: Timing> Translation for BlockMap<T> {
    type Timing = T;

    fn timing(&mut self) -> &mut T {
        self.nand.timing()
    }

    fn name(&self) -> &'static str {
        KIND.name
    }

    fn write(&mut self, write: PageWrite, at: T::Moment) -> Result<T::Moment, TranslationError> {
        let (block, at) = self.block_for(write.page, at)?;
        let done = self.append(block, &write, at)?;
        self.is_valid[write.page.0 as usize] = true;
        Ok(done)
    }

    fn read(&mut self, page: LogicalPage, at: T::Moment) -> Result<(Option<u32>, T::Moment), TranslationError> {
        let (logical_block, within) = self.place_of(page);
        if !self.is_valid[page.0 as usize] {
            return Ok((None, at));
        }
        let replacement = self.replacement.filter(|&(of, to)| of == logical_block && within < self.programmed(to));
        let block = replacement.map(|(_, to)| to).or(self.map[logical_block]).expect("a valid page is in a block");
        let (spare, stamp, done) = self.nand.read(self.page_at(block, within), Cause::HostWrite, at)?;
        assert_eq!(spare.logical_page(), page, "the map and the spare area name the same page");
        Ok((Some(stamp), done))
    }

    fn discard(&mut self, page: LogicalPage, at: T::Moment) -> Result<T::Moment, TranslationError> {
        self.is_valid[page.0 as usize] = false;
        Ok(at)
    }

    fn prefetch(&self, _page: LogicalPage) {}

    fn exported_pages(&self) -> u64 {
        self.is_valid.len() as u64
    }

    fn sent(&self) -> &Tally {
        &self.sent
    }

    fn flash(&self) -> Flash<'_> {
        Flash::of(&self.nand)
    }

    fn free_blocks(&self) -> u64 {
        self.free.len() as u64
    }

    fn effective_overprovisioning(&self) -> f64 {
        self.nand.geometry().pages() as f64 / self.exported_pages() as f64 - 1.0
    }

    fn mapping_ram_bytes(&self) -> u64 {
        self.map.len() as u64 * size_of::<u32>() as u64
    }

    fn events(&self) -> Vec<(&'static str, u64)> {
        vec![("switch_merges", self.switch_merges), ("full_merges", self.full_merges)]
    }

    fn after_power_cut(self) -> Result<Self, TranslationError> {
        let logical_blocks = self.map.len() as u32;
        let mut drive = BlockMap::new(self.nand, logical_blocks);
        drive.free.clear();
        drive.sent = drive.nand.counts_after_power_cut().programmed.clone();
        let geometry = *drive.nand.geometry();
        let at = drive.nand.timing().instant(Time::ZERO);
        // The age of a block is that of its first page: a replacement has a copy of it, or another one.
        let mut found: Vec<Vec<((u64, u32), EraseBlock)>> = vec![Vec::new(); logical_blocks as usize];
        for block in (0..geometry.blocks).map(EraseBlock) {
            let first = drive.nand.found(block).next();
            let named = drive.nand.found(block).find(|page| !page.spare.is_filler());
            let erases = drive.nand.erase_counts()[block.index()];
            match (first, named) {
                (Some(first), Some(named)) => {
                    let (logical_block, _) = drive.place_of(named.spare.logical_page());
                    found[logical_block].push((first.sequence, block));
                }
                (Some(_), None) => drive.erase(block, at)?,
                (None, _) if erases >= drive.nand.endurance() => drive.retired += 1,
                (None, _) => {
                    drive.free.insert((erases, block));
                }
            }
        }
        for (logical_block, mut blocks) in found.into_iter().enumerate() {
            blocks.sort_unstable();
            for &(_, block) in &blocks {
                // What a replacement has is newer, and a filler there stands for a page that was discarded.
                let pages: Vec<_> = drive.nand.found(block).map(|page| page.spare).collect();
                for (within, spare) in pages.into_iter().enumerate() {
                    let page = logical_block * geometry.pages_per_block as usize + within;
                    drive.is_valid[page] = !spare.is_filler();
                }
            }
            let mut blocks = blocks.into_iter().map(|(_, block)| block);
            drive.map[logical_block] = blocks.next();
            drive.replacement = blocks.next().map(|to| (logical_block, to));
            drive.end_merge(at)?;
            assert!(blocks.next().is_none(), "a logical block has one replacement");
        }
        Ok(drive)
    }
}
