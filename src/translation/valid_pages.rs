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
