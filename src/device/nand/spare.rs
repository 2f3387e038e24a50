//! The spare areas of a drive's pages: what a page says of itself beside its bytes.
//!
//! A page's logical number and its content take 32 bits. Its origin mostly follows from these: what a host wrote, or a
//! mapping page of the layer. Another origin takes four bits a page, from the first page that has one on.
//!
//! ```text
//!     bits of a word   0                              29 30     31
//!                      | logical page, or NO_PAGE       | content |
//! ```

use super::{Geometry, LogicalPage, PhysicalPage};
use crate::label::{Cause, Content, Provenance, set_bits};
use crate::tables::{advise_huge_pages, prefetch};
use std::ops::Range;

const LOGICAL_BITS: u32 = 30;
const CONTENT_BITS: u32 = 2;
const ORIGIN_BITS: u32 = 4;
const _: () = assert!(Geometry::MAX_LOGICAL_PAGES == 1 << LOGICAL_BITS);
const _: () = assert!(Cause::ORIGINS < 1 << ORIGIN_BITS, "an origin, or none of its own, fits in the bits of a page");

/// The spare area of a page: its logical page, and the provenance of what it holds.
///
/// The word of the page, and above it the origin's own number: 0 if the origin follows from the word, or 1 plus the number
/// of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare(u64);

/// The stored word of a page, which is all of its spare area if the origin follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpareWord(u32);

impl SpareWord {
    /// The logical page.
    #[inline]
    pub fn logical_page(self) -> LogicalPage {
        LogicalPage(self.0 & ((1 << LOGICAL_BITS) - 1))
    }
}

impl Spare {
    /// The logical page of a filler, which was programmed only because flash is programmed in order.
    pub const NO_PAGE: LogicalPage = LogicalPage((1 << LOGICAL_BITS) - 1);

    /// The provenance of a filler. It counts as the layer's own metadata, which a merge wrote.
    pub const OF_FILLER: Provenance = Provenance { origin: Cause::Merge, content: Content::Mapping };

    /// The provenance of a filler that completes a page of flash.
    pub const OF_PADDING: Provenance = Provenance { origin: Cause::Padding, content: Content::Mapping };

    /// The spare area of a filler.
    pub fn filler() -> Spare {
        Spare::of_word(Self::NO_PAGE.0 | (Self::OF_FILLER.content as u32) << LOGICAL_BITS)
    }

    /// True if the page is a filler.
    #[inline]
    pub fn is_filler(self) -> bool {
        self.logical_page() == Self::NO_PAGE
    }

    /// The spare area of a logical page (below [`Geometry::MAX_LOGICAL_PAGES`]).
    #[inline]
    pub fn new(page: LogicalPage, provenance: Provenance) -> Spare {
        let Provenance { origin, content } = provenance;
        debug_assert!(page < Self::NO_PAGE, "page {} is one of a drive", page.0);
        debug_assert!((origin as usize) < Cause::ORIGINS, "{origin:?} copies, and keeps an origin");
        let own_origin = if origin == implied_origin(content) { 0 } else { origin as u8 + 1 };
        Spare::of_word(page.0 | (content as u32) << LOGICAL_BITS).with_own_origin(own_origin)
    }

    #[inline]
    fn of_word(word: u32) -> Spare {
        Spare(u64::from(word))
    }

    #[inline]
    fn with_own_origin(self, own_origin: u8) -> Spare {
        Spare(self.0 | u64::from(own_origin) << u32::BITS)
    }

    #[inline]
    fn word(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn own_origin(self) -> u8 {
        (self.0 >> u32::BITS) as u8
    }

    /// The logical page.
    #[inline]
    pub fn logical_page(self) -> LogicalPage {
        LogicalPage(self.word() & ((1 << LOGICAL_BITS) - 1))
    }

    /// The content and the origin.
    #[inline]
    pub fn provenance(self) -> Provenance {
        if self.is_filler() { Self::OF_FILLER } else { provenance_of(self.class()) }
    }

    /// The content.
    #[inline]
    pub fn content(self) -> Content {
        Content::from_low_bits(self.class())
    }

    /// A number that stands for the provenance, except for fillers.
    #[inline]
    fn class(self) -> u8 {
        (self.0 >> LOGICAL_BITS) as u8
    }
}

/// The origin of a page that stores none of its own.
#[inline]
fn implied_origin(content: Content) -> Cause {
    if content == Content::Mapping { Cause::Mapping } else { Cause::HostWrite }
}

#[inline]
fn provenance_of(class: u8) -> Provenance {
    let content = Content::from_low_bits(class);
    let own_origin = class >> CONTENT_BITS;
    let origin = if own_origin == 0 { implied_origin(content) } else { Cause::from_number(own_origin - 1) };
    Provenance { origin, content }
}

/// Pages that one call copied to neighbouring pages, and the provenances that they have between them.
///
/// Neighbours mostly have one provenance. Each page costs two operations on bits, and the pages are looked at again only
/// if they have several.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopiedPages {
    first: PhysicalPage,
    /// The page behind the last.
    end: PhysicalPage,
    /// The bits that are set in the spare areas of all pages.
    all: u64,
    /// The bits that are set in that of any.
    any: u64,
}

impl CopiedPages {
    /// No pages yet; the first is copied to `first`.
    #[inline]
    pub fn new(first: PhysicalPage) -> CopiedPages {
        CopiedPages { first, end: first, all: u64::MAX, any: 0 }
    }

    /// Adds the page that is copied to the next page.
    #[inline]
    pub fn add(&mut self, spare: Spare) {
        debug_assert!(!spare.is_filler(), "nobody copies a filler, whose class is another's");
        self.end.0 += 1;
        self.all &= spare.0;
        self.any |= spare.0;
    }

    /// The place of the next page.
    #[inline]
    pub fn next(&self) -> PhysicalPage {
        self.end
    }

    /// The number of pages.
    #[inline]
    pub fn pages(&self) -> u32 {
        self.end.0 - self.first.0
    }

    /// Adds the pages to `classes`. `spare_of` returns the spare area of a page.
    #[inline]
    pub fn count(&self, spare_of: impl Fn(PhysicalPage) -> Spare, classes: &mut Classes) {
        if (self.all ^ self.any) >> LOGICAL_BITS == 0 {
            classes.add(Spare(self.any), self.pages());
        } else {
            (self.first.0..self.end.0).for_each(|page| classes.add(spare_of(PhysicalPage(page)), 1));
        }
    }
}

/// Numbers of pages by the class of their provenance.
#[derive(Clone, Copy)]
pub(super) struct Classes {
    counts: [u32; CLASSES],
    /// A bit for each class that has pages.
    used: u64,
}

const CLASSES: usize = 1 << (CONTENT_BITS + ORIGIN_BITS);
const _: () = assert!(CLASSES <= u64::BITS as usize, "each class has a bit");

impl Default for Classes {
    fn default() -> Classes {
        Classes { counts: [0; CLASSES], used: 0 }
    }
}

impl Classes {
    /// Adds pages with the class of this one.
    #[inline]
    pub fn add(&mut self, spare: Spare, pages: u32) {
        let class = usize::from(spare.class()) % CLASSES;
        self.counts[class] += pages;
        self.used |= 1 << class;
    }

    /// No pages.
    #[inline]
    pub fn clear(&mut self) {
        self.used().for_each(|class| self.counts[class] = 0);
        self.used = 0;
    }

    /// The classes that have pages.
    #[inline]
    fn used(&self) -> impl Iterator<Item = usize> + use<> {
        set_bits(self.used)
    }

    /// Adds pages whose spare areas are these words, which mostly have one class.
    #[inline]
    pub fn add_all(&mut self, words: &[SpareWord]) {
        debug_assert!(
            words.iter().all(|word| word.logical_page() != Spare::NO_PAGE),
            "nobody copies a filler, whose class is another's"
        );
        let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word.0, any | word.0));
        if (all ^ any) >> LOGICAL_BITS == 0 {
            self.add(Spare::of_word(any), words.len() as u32);
        } else {
            words.iter().for_each(|word| self.add(Spare::of_word(word.0), 1));
        }
    }

    /// The number of all pages.
    pub fn pages(&self) -> u64 {
        self.used().map(|class| u64::from(self.counts[class])).sum()
    }

    /// Passes on each provenance that pages have, and their number.
    pub fn each(&self, mut pass: impl FnMut(Provenance, u64)) {
        self.used().for_each(|class| pass(provenance_of(class as u8), u64::from(self.counts[class])));
    }
}

/// The spare areas of all pages of a drive, in any state.
pub(super) struct SpareAreas {
    words: Vec<SpareWord>,
    /// The origin's own number of each page. Two pages share a byte, the even one has the low bits. Empty as long as all are
    /// 0.
    own_origins: Vec<u8>,
}

impl SpareAreas {
    /// The spare areas of `pages` pages.
    pub fn new(pages: usize) -> SpareAreas {
        let mut words = vec![SpareWord::default(); pages];
        advise_huge_pages(&mut words);
        SpareAreas { words, own_origins: Vec::new() }
    }

    /// The spare area of a page.
    #[inline]
    pub fn get(&self, page: PhysicalPage) -> Spare {
        let spare = Spare::of_word(self.words[page.0 as usize].0);
        if self.own_origins.is_empty() { spare } else { spare.with_own_origin(self.own_origin(page)) }
    }

    /// Prefetches the words of `count` pages from `first` on, a cache line at a time.
    pub fn prefetch(&self, first: PhysicalPage, count: u32) {
        let words_of_line = 64 / size_of::<u32>();
        (first.0 as usize..(first.0 + count) as usize)
            .step_by(words_of_line)
            .for_each(|page| prefetch(&self.words, page));
    }

    /// Stores the spare area of a page that is programmed.
    #[inline]
    pub fn set(&mut self, page: PhysicalPage, spare: Spare) {
        self.words[page.0 as usize] = SpareWord(spare.word());
        if spare.own_origin() != 0 || !self.own_origins.is_empty() {
            self.set_own_origin(page, spare.own_origin());
        }
    }

    /// True if no page has an origin that does not follow from its content.
    #[inline]
    pub fn all_origins_follow(&self) -> bool {
        self.own_origins.is_empty()
    }

    /// Copies the spare area of a page to another, and returns it. `ALL_FOLLOW`: [`SpareAreas::all_origins_follow`].
    #[inline]
    pub fn copy<const ALL_FOLLOW: bool>(&mut self, from: PhysicalPage, to: PhysicalPage) -> Spare {
        debug_assert!(!ALL_FOLLOW || self.all_origins_follow(), "no page has an origin of its own");
        let word = self.words[from.0 as usize];
        self.words[to.0 as usize] = word;
        let spare = Spare::of_word(word.0);
        if ALL_FOLLOW || self.all_origins_follow() {
            spare
        } else {
            spare.with_own_origin(self.copy_own_origin(from, to))
        }
    }

    /// The stored words of consecutive pages.
    #[inline]
    pub fn words(&self, pages: Range<PhysicalPage>) -> &[SpareWord] {
        &self.words[pages.start.0 as usize..pages.end.0 as usize]
    }

    /// Stores the spare areas of consecutive pages that are programmed, from `first` on: every `step`th of `words`. No page has
    /// an origin of its own.
    #[inline]
    pub fn set_words(&mut self, first: PhysicalPage, words: &[SpareWord], step: usize) {
        debug_assert!(self.all_origins_follow(), "no page has an origin of its own");
        let first = first.0 as usize;
        let places = &mut self.words[first..first + words.len().div_ceil(step)];
        if step == 1 {
            return places.copy_from_slice(words);
        }
        let mut from = 0;
        for place in places {
            *place = words[from];
            from += step;
        }
    }

    #[inline(never)]
    fn own_origin(&self, page: PhysicalPage) -> u8 {
        self.own_origins[page.0 as usize / 2] >> (page.0 % 2 * ORIGIN_BITS) & ((1 << ORIGIN_BITS) - 1)
    }

    #[inline(never)]
    fn copy_own_origin(&mut self, from: PhysicalPage, to: PhysicalPage) -> u8 {
        let number = self.own_origin(from);
        self.set_own_origin(to, number);
        number
    }

    #[inline(never)]
    fn set_own_origin(&mut self, page: PhysicalPage, number: u8) {
        if self.own_origins.is_empty() {
            self.own_origins = vec![0; self.words.len().div_ceil(2)];
        }
        let shift = page.0 % 2 * ORIGIN_BITS;
        let byte = &mut self.own_origins[page.0 as usize / 2];
        *byte = *byte & !(((1 << ORIGIN_BITS) - 1) << shift) | number << shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every provenance on neighbouring pages, then in the other order over them: none leaves a trace in another.
    #[test]
    fn a_spare_area_returns_every_provenance_that_was_stored() {
        let all: Vec<Provenance> = Cause::ALL[..Cause::ORIGINS]
            .iter()
            .copied()
            .flat_map(|origin| Content::ALL.map(|content| Provenance { origin, content }))
            .collect();
        let mut areas = SpareAreas::new(all.len() + 1);
        for round in 0..2 {
            let ordered: Vec<Provenance> = match round {
                0 => all.clone(),
                _ => all.iter().rev().copied().collect(),
            };
            let spare = |number: usize| Spare::new(LogicalPage(7 * number as u32), ordered[number]);
            (0..ordered.len()).for_each(|number| areas.set(PhysicalPage(number as u32), spare(number)));
            for number in 0..ordered.len() {
                assert_eq!(areas.get(PhysicalPage(number as u32)), spare(number));
                let copy = PhysicalPage(ordered.len() as u32);
                assert_eq!(areas.copy::<false>(PhysicalPage(number as u32), copy), spare(number));
                assert_eq!(areas.get(copy).provenance(), ordered[number]);
            }
        }
        areas.set(PhysicalPage(0), Spare::filler());
        assert_eq!(areas.get(PhysicalPage(0)), Spare::filler());
        assert!(areas.get(PhysicalPage(0)).is_filler());
        assert_eq!(areas.get(PhysicalPage(0)).provenance(), Spare::OF_FILLER);
    }

    /// A page of a drive costs eight bytes, four of them here; a drive without a path above needs no more.
    #[test]
    fn origins_take_memory_only_where_some_do_not_follow_from_the_content() {
        let mut areas = SpareAreas::new(5);
        let host = |content| Spare::new(LogicalPage(1), Provenance { origin: Cause::HostWrite, content });
        for content in [Content::Data, Content::Journal, Content::Metadata] {
            areas.set(PhysicalPage(0), host(content));
        }
        let mapping = Provenance { origin: Cause::Mapping, content: Content::Mapping };
        areas.set(PhysicalPage(1), Spare::new(LogicalPage(2), mapping));
        areas.set(PhysicalPage(2), Spare::filler());
        assert_eq!(areas.own_origins.capacity(), 0);
        let cleaned = Provenance { origin: Cause::SegmentCleaning, content: Content::Data };
        areas.set(PhysicalPage(4), Spare::new(LogicalPage(3), cleaned));
        assert_eq!(areas.own_origins.len(), 3, "four bits a page");
        assert_eq!(areas.get(PhysicalPage(1)).provenance(), mapping, "earlier pages keep theirs");
    }
}
