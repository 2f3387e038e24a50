//! Valid pages, those with the newest version of a logical page, as a bitmap.

use crate::device::nand::{EraseBlock, Geometry, PhysicalPage};
use crate::tables::{advise_huge_pages, prefetch};
use std::ops::Range;

/// A bit for each physical page; each block starts at a new word.
pub struct ValidPages {
    words: Vec<u64>,
    words_per_block: usize,
    /// Low bits of a page's address that select the bit in a word: 6, or fewer if a block is shorter than a word.
    word_bits: u32,
}

impl ValidPages {
    /// All pages invalid.
    pub fn new(geometry: &Geometry) -> ValidPages {
        let word_bits = geometry.page_bits().min(u64::BITS.trailing_zeros());
        let words_per_block = 1 << (geometry.page_bits() - word_bits);
        let mut words = vec![0; words_per_block * geometry.blocks as usize];
        advise_huge_pages(&mut words);
        ValidPages { words, words_per_block, word_bits }
    }

    /// Prefetches the bit of a page into the processor's cache.
    #[inline]
    pub fn prefetch(&self, page: PhysicalPage) {
        prefetch(&self.words, self.place(page).0);
    }

    #[inline]
    fn place(&self, page: PhysicalPage) -> (usize, u64) {
        ((page.0 >> self.word_bits) as usize, 1 << (page.0 & ((1 << self.word_bits) - 1)))
    }

    /// Marks a page valid.
    #[inline]
    pub fn set(&mut self, page: PhysicalPage) {
        let (word, bit) = self.place(page);
        self.words[word] |= bit;
    }

    /// Marks `count` consecutive pages of one block valid (1 to 64).
    #[inline]
    pub fn set_run(&mut self, first: PhysicalPage, count: u32) {
        debug_assert!((1..=u64::BITS).contains(&count), "a run of {count} pages fits no two words");
        let (word, bit) = self.place(first);
        let run = (u64::MAX >> (u64::BITS - count)) as u128 * bit as u128;
        self.words[word] |= run as u64;
        let beyond = (run >> u64::BITS) as u64;
        if beyond != 0 {
            debug_assert_ne!((word + 1) % self.words_per_block, 0, "the run ends in the block in which it begins");
            self.words[word + 1] |= beyond;
        }
    }

    /// Marks `count` consecutive pages of one block valid.
    #[inline]
    pub fn set_all(&mut self, first: PhysicalPage, count: u32) {
        let bits = 1 << self.word_bits;
        let mut next = first.0;
        let end = first.0 + count;
        while next < end {
            let run = (end - next).min(bits - (next & (bits - 1)));
            self.set_run(PhysicalPage(next), run);
            next += run;
        }
    }

    /// Marks a page invalid.
    #[inline]
    pub fn clear(&mut self, page: PhysicalPage) {
        let (word, bit) = self.place(page);
        debug_assert!(self.words[word] & bit != 0, "page {} becomes invalid once", page.0);
        self.words[word] &= !bit;
    }

    /// True if the page is valid.
    #[inline]
    pub fn contains(&self, page: PhysicalPage) -> bool {
        let (word, bit) = self.place(page);
        self.words[word] & bit != 0
    }

    /// The words of a block's pages.
    pub fn words_of(&self, block: EraseBlock) -> Range<usize> {
        let first = block.index() * self.words_per_block;
        first..first + self.words_per_block
    }

    /// The number of the page in its block behind the last valid one of a block; 0 if none is valid.
    pub fn end_of(&self, block: EraseBlock) -> u32 {
        let last = self.words_of(block).rev().find(|&word| self.words[word] != 0);
        last.map_or(0, |word| {
            let before = (word % self.words_per_block) as u32;
            (before << self.word_bits) + self.words[word].ilog2() + 1
        })
    }

    /// Marks all pages of a block invalid.
    pub fn clear_all(&mut self, block: EraseBlock) {
        let words = self.words_of(block);
        self.words[words].fill(0);
    }

    /// The bits of a word.
    #[inline]
    pub fn word(&self, word: usize) -> u64 {
        self.words[word]
    }

    /// Returns the bits of a word and clears them.
    #[inline]
    pub fn take_word(&mut self, word: usize) -> u64 {
        std::mem::take(&mut self.words[word])
    }

    /// Clears `pages`, bits of a word.
    #[inline]
    pub fn take_bits(&mut self, word: usize, pages: u64) {
        debug_assert_eq!(pages & !self.words[word], 0, "only valid pages are taken");
        self.words[word] &= !pages;
    }

    /// The page of a bit in a word.
    #[inline]
    pub fn page(&self, word: usize, bit: u32) -> PhysicalPage {
        PhysicalPage(((word as u32) << self.word_bits) + bit)
    }
}

/// The lowest set bits of `bits`, at most `count`.
#[inline]
pub fn lowest_bits(bits: u64, count: u32) -> u64 {
    if bits.count_ones() <= count {
        return bits;
    }
    let mut rest = bits;
    for _ in 0..count {
        rest &= rest - 1;
    }
    bits & !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_marked_whole_in_blocks_of_any_length() {
        for pages_per_block in [4, 48, 64, 200, 256] {
            let geometry =
                Geometry::new((3 * u64::from(pages_per_block)) << 12, 4096, pages_per_block, (1, 1, 1)).unwrap();
            let first = geometry.first_page(EraseBlock(1)).0;
            for (start, count) in [(0, pages_per_block), (1, pages_per_block - 2), (pages_per_block / 3, 1), (2, 0)] {
                let mut valid = ValidPages::new(&geometry);
                valid.set_all(PhysicalPage(first + start), count);
                for page in 0..geometry.page_slots() as u32 {
                    let is_in = (first + start..first + start + count).contains(&page);
                    assert_eq!(valid.contains(PhysicalPage(page)), is_in, "page {page}, {count} from {start} on");
                }
                assert_eq!(valid.end_of(EraseBlock(1)), if count == 0 { 0 } else { start + count });
                valid.clear_all(EraseBlock(1));
                assert_eq!(valid.end_of(EraseBlock(1)), 0);
            }
        }
    }
}
