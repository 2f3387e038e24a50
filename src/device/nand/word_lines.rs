//! Word lines under way: which of their pages are on flash, and when they are programmed.
//!
//! A page whose word line is not programmed to its end is in the controller, in memory that a cut of power does not lose, and
//! is read from there. Blocks in SLC mode have one page for each word line.

use super::cells::{Cells, PageKind, WordLinePrograms};
use super::geometry::{EraseBlock, Geometry};
use super::timing::Timing;
use crate::device::wait_log::Purpose;

/// The word lines of a drive's blocks.
pub(super) struct WordLines<M> {
    bits: u32,
    programs: WordLinePrograms,
    /// Units of a page of flash, as a power of two.
    unit_bits: u32,
    /// Pages of flash of a block.
    pages_per_block: u32,
    is_slc: Vec<bool>,
    /// When the pages of the open word line of each block are in the controller.
    gathered: Vec<Option<M>>,
    /// Programs by kind.
    programmed: [u64; PageKind::COUNT],
}

impl<M: Copy> WordLines<M> {
    pub fn new(cells: &Cells, geometry: &Geometry) -> WordLines<M> {
        let pages_per_block = geometry.pages_per_block / geometry.pages_per_program;
        assert!(pages_per_block.is_multiple_of(cells.bits), "a block has whole word lines");
        WordLines {
            bits: cells.bits,
            programs: cells.programs,
            unit_bits: geometry.pages_per_program.trailing_zeros(),
            pages_per_block,
            is_slc: vec![false; geometry.blocks as usize],
            gathered: (0..geometry.blocks).map(|_| None).collect(),
            programmed: [0; PageKind::COUNT],
        }
    }

    /// Sets the mode of a block that is erased.
    pub fn set_slc(&mut self, block: EraseBlock, is_slc: bool) {
        self.is_slc[block.index()] = is_slc;
    }

    /// Programs since the flash was new, by kind.
    pub fn programs(&self) -> [u64; PageKind::COUNT] {
        self.programmed
    }

    fn issue<T: Timing<Moment = M>>(
        &mut self,
        timing: &mut T,
        (block, kind): (EraseBlock, PageKind),
        purpose: Purpose,
        at: M,
    ) -> M {
        self.programmed[kind.index()] += 1;
        timing.program_kind(block, kind, purpose, at)
    }

    /// The kind of a page that is read, by its number among the units of its block.
    pub fn kind_of(&self, block: EraseBlock, within: u32) -> PageKind {
        match self.is_slc[block.index()] {
            true => PageKind::SLC,
            false => PageKind::of_word_line((within >> self.unit_bits) % self.bits),
        }
    }

    /// The first units of a block that are on flash, of those that were programmed.
    pub fn on_flash(&self, block: EraseBlock, programmed: u32) -> u32 {
        let pages = programmed >> self.unit_bits;
        let whole = pages - pages % self.bits;
        let on_flash = match self.programs {
            _ if self.is_slc[block.index()] => pages,
            WordLinePrograms::ByPage => pages,
            WordLinePrograms::OneShot => whole,
            // The last word line of a block has no next one to wait for.
            WordLinePrograms::TwoPasses if pages == self.pages_per_block => pages,
            WordLinePrograms::TwoPasses => whole.saturating_sub(self.bits),
        };
        on_flash << self.unit_bits
    }

    /// A page of flash, by its number in the block, is in the controller at `at`. Programs what is whole; returns when that is
    /// done, and otherwise `at`.
    pub fn program<T: Timing<Moment = M>>(
        &mut self,
        timing: &mut T,
        (block, page): (EraseBlock, u32),
        purpose: Purpose,
        at: M,
    ) -> M {
        if self.is_slc[block.index()] {
            return self.issue(timing, (block, PageKind::SLC), purpose, at);
        }
        if self.programs == WordLinePrograms::ByPage {
            return self.issue(timing, (block, PageKind::of_word_line(page % self.bits)), purpose, at);
        }
        let gathered = &mut self.gathered[block.index()];
        let all = timing.gather(gathered.take(), at);
        if (page + 1) % self.bits != 0 {
            *gathered = Some(all);
            return at;
        }
        let mut done = self.issue(timing, (block, PageKind::WORD_LINE), purpose, all);
        if self.programs == WordLinePrograms::TwoPasses {
            let fine = u32::from(page >= self.bits) + u32::from(page + 1 == self.pages_per_block);
            for _ in 0..fine {
                done = self.issue(timing, (block, PageKind::FINE), purpose, done);
            }
        }
        done
    }

    /// Nothing is under way in a block that is erased.
    pub fn forget(&mut self, block: EraseBlock) {
        self.gathered[block.index()] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::nand::NandSettings;
    use crate::expression::parse_term;
    use crate::time::Time;

    /// Counts programs by kind.
    struct Counting(Vec<PageKind>);

    impl Timing for Counting {
        const TIMED: bool = true;
        type Moment = Time;

        fn instant(&mut self, at: Time) -> Time {
            at
        }

        fn later(&mut self, sum: Time, other: Time) -> Time {
            sum.max(other)
        }

        fn settle(&mut self, moment: Time, _until: Time) -> Option<Time> {
            Some(moment)
        }

        fn read(&mut self, _block: EraseBlock, _purpose: Purpose, at: Time) -> Time {
            at
        }

        fn program(&mut self, _block: EraseBlock, _purpose: Purpose, _at: Time) -> Time {
            unreachable!("a page of a word line has a kind")
        }

        fn program_kind(&mut self, _block: EraseBlock, kind: PageKind, _purpose: Purpose, at: Time) -> Time {
            self.0.push(kind);
            at
        }

        fn erase(&mut self, _block: EraseBlock, at: Time) -> Time {
            at
        }
    }

    /// The programs of a block of three word lines of three pages, and the pages on flash after each page.
    fn programs(options: &str, is_slc: bool) -> (Vec<PageKind>, Vec<u32>) {
        let term = parse_term(&format!("nand:size=1M,pages-per-block=9,cells=tlc{options}")).unwrap();
        let settings = NandSettings::read(&term).unwrap();
        let cells = settings.cells.unwrap();
        let mut lines = WordLines::new(&cells, &settings.geometry);
        let (block, mut timing, mut on_flash) = (EraseBlock(1), Counting(Vec::new()), Vec::new());
        lines.set_slc(block, is_slc);
        for page in 0..if is_slc { 3 } else { 9 } {
            lines.program(&mut timing, (block, page), Purpose::Host, Time::ZERO);
            on_flash.push(lines.on_flash(block, page + 1));
        }
        (timing.0, on_flash)
    }

    #[test]
    fn a_word_line_is_programmed_when_it_is_whole_and_finely_when_the_next_one_is() {
        let [lower, middle, upper] = [0, 1, 2].map(PageKind::of_word_line);
        let (kinds, on_flash) = programs("", false);
        assert_eq!(kinds, [lower, middle, upper].repeat(3));
        assert_eq!(on_flash, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let (coarse, fine) = (PageKind::WORD_LINE, PageKind::FINE);
        let (kinds, on_flash) = programs(",program-passes=1", false);
        assert_eq!(kinds, [coarse; 3]);
        assert_eq!(on_flash, [0, 0, 3, 3, 3, 6, 6, 6, 9]);
        let (kinds, on_flash) = programs(",program-passes=2", false);
        assert_eq!(kinds, [coarse, coarse, fine, coarse, fine, fine]);
        assert_eq!(on_flash, [0, 0, 0, 0, 0, 3, 3, 3, 9]);
        let (kinds, on_flash) = programs(",program-passes=2", true);
        assert_eq!((kinds, on_flash), (vec![PageKind::SLC; 3], vec![1, 2, 3]));
    }
}
