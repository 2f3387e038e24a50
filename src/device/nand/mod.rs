//! NAND flash: pages are programmed once and in order, blocks are erased whole and wear out.
//!
//! Fault model: a page programmed out of order or twice, or a page read that was never programmed, is an error of the
//! layer above and is refused ([`NandError`]). A block that has been erased as often as its endurance allows is worn
//! out: the erase that reaches the limit says so, and later ones are refused. Nothing else fails here; faults and power
//! cuts are wrappers' business.
//!
//! The bytes of a page are not kept. Its [`Spare`] area is, and, if asked for, what only a reader of the flash needs: a
//! stamp that stands for the bytes, and the [sequence number](Found::sequence) by which a layer that has lost its RAM
//! tells a new version from an old one.

mod geometry;
mod preset;
mod settings;
mod timing;

pub use geometry::{EraseBlock, Geometry, LogicalPage, PhysicalPage};
pub use preset::Preset;
pub use settings::{KIND, NandSettings, PageBytes};
pub use timing::{Latencies, Reserving, Timing, Untimed};

use crate::label::{Cause, Content, Tally};
use crate::time::Time;

/// What the spare area of a page says of it: which logical page it holds, and what kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare(u32);

impl Spare {
    const LOGICAL_BITS: u32 = 30;
    /// The logical page of a page that holds nothing: it was programmed because flash is programmed in order.
    pub const NO_PAGE: LogicalPage = LogicalPage((1 << Self::LOGICAL_BITS) - 1);

    /// Of a page that holds nothing. It belongs to the structures of the layer that leaves it.
    pub fn filler() -> Spare {
        Spare::new(Self::NO_PAGE, Content::Mapping)
    }

    /// Whether the page holds nothing.
    #[inline]
    pub fn is_filler(self) -> bool {
        self.logical_page() == Self::NO_PAGE
    }

    /// Packs a logical page (below [`Geometry::MAX_LOGICAL_PAGES`]) and a content.
    #[inline]
    pub fn new(page: LogicalPage, content: Content) -> Spare {
        debug_assert!(u64::from(page.0) < Geometry::MAX_LOGICAL_PAGES);
        Spare(page.0 | (content as u32) << Self::LOGICAL_BITS)
    }

    /// The logical page.
    #[inline]
    pub fn logical_page(self) -> LogicalPage {
        LogicalPage(self.0 & ((1 << Self::LOGICAL_BITS) - 1))
    }

    /// The content.
    #[inline]
    pub fn content(self) -> Content {
        Content::from_low_bits((self.0 >> Self::LOGICAL_BITS) as u8)
    }
}

/// What flash refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NandError {
    /// Pages of a block are programmed in ascending order, once each between erases.
    #[error(
        "page {page} of block {block} was programmed when page {expected} was next: flash is programmed in order, once"
    )]
    OutOfOrderProgram {
        /// The erase block.
        block: u32,
        /// The page within it that was asked for.
        page: u32,
        /// The page that could have been programmed; the number of pages if the block is full.
        expected: u32,
    },
    /// Nothing has been programmed there since the last erase.
    #[error("page {page} of block {block} was read, but only {programmed} pages are programmed there")]
    ReadOfErasedPage {
        /// The erase block.
        block: u32,
        /// The page within it.
        page: u32,
        /// How many of its pages are programmed.
        programmed: u32,
    },
    /// The block has been erased as often as it stands.
    #[error("block {block} is worn out: it has been erased {erases} times")]
    WornOut {
        /// The erase block.
        block: u32,
        /// Its erase count.
        erases: u32,
    },
}

/// What an erase leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erased {
    /// A block that can be programmed again.
    Usable,
    /// A block that has reached its endurance: it must be retired.
    WornOut,
}

/// What the flash has done since it was new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NandCounts {
    /// Pages programmed.
    pub programmed: Tally,
    /// Pages read.
    pub read: Tally,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Pages of those blocks that had not been programmed.
    pub erased_unprogrammed: u64,
}

/// A version of a page as flash keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    sequence: u64,
    stamp: u32,
    copies: u32,
}

/// What a layer finds in a page when it reads the flash after its RAM was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The page.
    pub page: PhysicalPage,
    /// What its spare area says.
    pub spare: Spare,
    /// How new it is. The first: later programs have larger numbers, and a copy keeps the number of what it copies. The
    /// second: how often it was copied. A layer would write both to the spare area; the flash counts for all of them.
    pub sequence: (u64, u32),
}

/// A drive's flash.
pub struct Nand<T> {
    geometry: Geometry,
    spare: Vec<u32>,
    versions: Option<Vec<Version>>,
    /// The last sequence number that was given.
    sequence: u64,
    /// The page of each block that can be programmed next.
    next_page: Vec<u32>,
    erase_counts: Vec<u32>,
    endurance: u32,
    counts: NandCounts,
    timing: T,
}

impl<T: Timing> Nand<T> {
    /// New flash, erased. `versions` says whether a stamp and a sequence number are kept for each page: without them reads
    /// return 0, and [`Nand::found`] finds nothing.
    pub fn new(geometry: Geometry, endurance: u32, versions: bool, timing: T) -> Nand<T> {
        let blocks = geometry.blocks as usize;
        assert!(blocks > 0 && endurance > 0, "flash has blocks, and each can be erased");
        Nand {
            geometry,
            spare: vec![0; geometry.page_slots()],
            sequence: 0,
            versions: versions.then(|| vec![Version { sequence: 0, stamp: 0, copies: 0 }; geometry.page_slots()]),
            next_page: vec![0; blocks],
            erase_counts: vec![0; blocks],
            endurance,
            counts: NandCounts::default(),
            timing,
        }
    }

    /// The shape.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What has been done since the flash was new.
    pub fn counts(&self) -> &NandCounts {
        &self.counts
    }

    /// How often each block has been erased.
    pub fn erase_counts(&self) -> &[u32] {
        &self.erase_counts
    }

    /// How often a block can be erased.
    pub fn endurance(&self) -> u32 {
        self.endurance
    }

    /// How many pages of each block are programmed.
    pub fn programmed_pages(&self) -> &[u32] {
        &self.next_page
    }

    /// The spare area of `page` as the simulator holds it, whatever the flash's state: a hint for a prefetch, no read.
    #[inline]
    pub fn peek_spare(&self, page: PhysicalPage) -> Spare {
        Spare(self.spare[page.0 as usize])
    }

    /// Programs `page`, and says when it is done.
    #[inline]
    pub fn program(
        &mut self,
        page: PhysicalPage,
        spare: Spare,
        stamp: u32,
        cause: Cause,
        at: Time,
    ) -> Result<Time, NandError> {
        let block = self.geometry.block_of(page);
        let within = self.geometry.page_in_block(page);
        let next = &mut self.next_page[block.index()];
        if *next != within || within >= self.geometry.pages_per_block {
            return Err(NandError::OutOfOrderProgram { block: block.0, page: within, expected: *next });
        }
        *next = within + 1;
        self.spare[page.0 as usize] = spare.0;
        if let Some(versions) = &mut self.versions {
            self.sequence += 1;
            versions[page.0 as usize] = Version { sequence: self.sequence, stamp, copies: 0 };
        }
        self.counts.programmed.add(cause, spare.content(), 1);
        Ok(self.timing.program(block, at))
    }

    /// Reads `page`: its spare area and its stamp (0 if none are kept), and when they are there.
    #[inline]
    pub fn read(&mut self, page: PhysicalPage, cause: Cause, at: Time) -> Result<(Spare, u32, Time), NandError> {
        let block = self.geometry.block_of(page);
        let within = self.geometry.page_in_block(page);
        let programmed = self.next_page[block.index()];
        if within >= programmed {
            return Err(NandError::ReadOfErasedPage { block: block.0, page: within, programmed });
        }
        let spare = Spare(self.spare[page.0 as usize]);
        let stamp = self.versions.as_ref().map_or(0, |versions| versions[page.0 as usize].stamp);
        self.counts.read.add(cause, spare.content(), 1);
        Ok((spare, stamp, self.timing.read(block, at)))
    }

    /// Reads the spare area of `page` for what it says of the mapping, and says when it is there. It takes as long as a
    /// page, and is counted as a read of mapping.
    #[inline]
    pub fn read_spare(&mut self, page: PhysicalPage, at: Time) -> Result<Time, NandError> {
        let block = self.geometry.block_of(page);
        let within = self.geometry.page_in_block(page);
        let programmed = self.next_page[block.index()];
        if within >= programmed {
            return Err(NandError::ReadOfErasedPage { block: block.0, page: within, programmed });
        }
        self.counts.read.add(Cause::Mapping, Content::Mapping, 1);
        Ok(self.timing.read(block, at))
    }

    /// All that is programmed in `block`, in order, as a layer finds it that has lost its RAM. Neither timed nor counted:
    /// it happens before the drive serves. Nothing, unless the flash keeps versions.
    pub fn found(&self, block: EraseBlock) -> impl Iterator<Item = Found> + '_ {
        let first = self.geometry.first_page(block).0;
        let programmed = if self.versions.is_some() { self.next_page[block.index()] } else { 0 };
        (first..first + programmed).map(|page| Found {
            page: PhysicalPage(page),
            spare: Spare(self.spare[page as usize]),
            sequence: self.versions.as_ref().map_or((0, 0), |versions| {
                let Version { sequence, copies, .. } = versions[page as usize];
                (sequence, copies)
            }),
        })
    }

    /// Copies pages of one block: those of the bits set in `pages`, counted from `from`, in order, to consecutive pages
    /// from `to` on. Each is read and programmed as by [`Nand::read`] and [`Nand::program`]; `moved` is told where each
    /// went. Answers when the last is programmed. It is one call so that what can be checked once is.
    #[inline]
    pub fn copy(
        &mut self,
        (from, pages): (PhysicalPage, u64),
        to: PhysicalPage,
        cause: Cause,
        at: Time,
        mut moved: impl FnMut(Spare, PhysicalPage),
    ) -> Result<Time, NandError> {
        let count = pages.count_ones();
        debug_assert!(pages != 0, "a copy of no page takes no time, and says none");
        let (source, target) = (self.geometry.block_of(from), self.geometry.block_of(to));
        let last = self.geometry.page_in_block(from) + pages.checked_ilog2().unwrap_or(0);
        let programmed = self.next_page[source.index()];
        if last >= programmed {
            return Err(NandError::ReadOfErasedPage { block: source.0, page: last, programmed });
        }
        debug_assert_ne!(source, target, "a block that is collected takes no copies");
        let within = self.geometry.page_in_block(to);
        let next = self.next_page[target.index()];
        if next != within || within + count > self.geometry.pages_per_block {
            return Err(NandError::OutOfOrderProgram { block: target.0, page: within, expected: next });
        }
        let (mut rest, mut to, mut done) = (pages, to, at);
        while rest != 0 {
            let from = PhysicalPage(from.0 + rest.trailing_zeros());
            rest &= rest - 1;
            let spare = Spare(self.spare[from.0 as usize]);
            self.spare[to.0 as usize] = spare.0;
            if let Some(versions) = &mut self.versions {
                let version = versions[from.0 as usize];
                versions[to.0 as usize] = Version { copies: version.copies + 1, ..version };
            }
            // One by one, so that the flash is whole whenever a timing model cuts its power.
            self.next_page[target.index()] += 1;
            self.counts.read.add(cause, spare.content(), 1);
            self.counts.programmed.add(cause, spare.content(), 1);
            moved(spare, to);
            let read = self.timing.read(source, at);
            done = done.max(self.timing.program(target, read));
            to.0 += 1;
        }
        Ok(done)
    }

    /// Erases `block`, and says when it is done and whether the block can be used again.
    pub fn erase(&mut self, block: EraseBlock, at: Time) -> Result<(Erased, Time), NandError> {
        let erases = &mut self.erase_counts[block.index()];
        if *erases >= self.endurance {
            return Err(NandError::WornOut { block: block.0, erases: *erases });
        }
        *erases += 1;
        let erased = if *erases == self.endurance { Erased::WornOut } else { Erased::Usable };
        let programmed = std::mem::take(&mut self.next_page[block.index()]);
        debug_assert!(programmed <= self.geometry.pages_per_block, "a block holds no more pages than it has");
        self.counts.erased_blocks += 1;
        self.counts.erased_unprogrammed += u64::from(self.geometry.pages_per_block - programmed);
        Ok((erased, self.timing.erase(block, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flash() -> Nand<Untimed> {
        let geometry = Geometry::new(64 << 10, 4096, 4, (1, 1, 1)).unwrap();
        Nand::new(geometry, 2, true, Untimed)
    }

    fn program(flash: &mut Nand<Untimed>, page: u32) -> Result<Time, NandError> {
        let spare = Spare::new(LogicalPage(page + 100), Content::Journal);
        flash.program(PhysicalPage(page), spare, page, Cause::HostWrite, Time::ZERO)
    }

    #[test]
    fn pages_are_programmed_in_order_and_once() {
        let mut flash = flash();
        assert_eq!(program(&mut flash, 1), Err(NandError::OutOfOrderProgram { block: 0, page: 1, expected: 0 }));
        program(&mut flash, 0).unwrap();
        assert_eq!(program(&mut flash, 0), Err(NandError::OutOfOrderProgram { block: 0, page: 0, expected: 1 }));
        for page in 1..4 {
            program(&mut flash, page).unwrap();
        }
        assert_eq!(program(&mut flash, 3), Err(NandError::OutOfOrderProgram { block: 0, page: 3, expected: 4 }));
        flash.erase(EraseBlock(0), Time::ZERO).unwrap();
        program(&mut flash, 0).unwrap();
    }

    #[test]
    fn a_read_returns_what_was_programmed_and_refuses_what_was_not() {
        let mut flash = flash();
        program(&mut flash, 0).unwrap();
        let (spare, stamp, _) = flash.read(PhysicalPage(0), Cause::HostWrite, Time::ZERO).unwrap();
        assert_eq!((spare.logical_page(), spare.content(), stamp), (LogicalPage(100), Content::Journal, 0));
        let error = flash.read(PhysicalPage(1), Cause::HostWrite, Time::ZERO).unwrap_err();
        assert_eq!(error, NandError::ReadOfErasedPage { block: 0, page: 1, programmed: 1 });
    }

    #[test]
    fn a_block_wears_out_at_its_endurance() {
        let mut flash = flash();
        assert_eq!(flash.erase(EraseBlock(3), Time::ZERO).unwrap().0, Erased::Usable);
        assert_eq!(flash.erase(EraseBlock(3), Time::ZERO).unwrap().0, Erased::WornOut);
        assert_eq!(flash.erase(EraseBlock(3), Time::ZERO), Err(NandError::WornOut { block: 3, erases: 2 }));
    }
}
