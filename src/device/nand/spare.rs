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
use crate::label::{Cause, Content, Label, Provenance, Tally};

const LOGICAL_BITS: u32 = 30;
const CONTENT_BITS: u32 = 2;
const ORIGIN_BITS: u32 = 4;
const _: () = assert!(Geometry::MAX_LOGICAL_PAGES == 1 << LOGICAL_BITS);
const _: () = assert!(Cause::COUNT < 1 << ORIGIN_BITS, "an origin, or none of its own, fits in the bits of a page");

/// The spare area of a page: its logical page, and the provenance of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// Logical page and content.
    word: u32,
    /// 0 if the origin follows from the word, or 1 plus the number of the origin.
    own_origin: u8,
    /// Follows from both.
    provenance: Provenance,
}

impl Spare {
    /// The logical page of a filler, which was programmed only because flash is programmed in order.
    pub const NO_PAGE: LogicalPage = LogicalPage((1 << LOGICAL_BITS) - 1);

    /// The provenance of a filler. It counts as the layer's own metadata, which a merge wrote.
    pub const OF_FILLER: Provenance = Provenance { origin: Cause::Merge, content: Content::Mapping };

    /// The spare area of a filler.
    pub fn filler() -> Spare {
        Spare::stored(Self::NO_PAGE.0 | (Self::OF_FILLER.content as u32) << LOGICAL_BITS, 0)
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
        let own_origin = if origin == implied_origin(content) { 0 } else { origin as u8 + 1 };
        Spare { word: page.0 | (content as u32) << LOGICAL_BITS, own_origin, provenance }
    }

    #[inline]
    fn stored(word: u32, own_origin: u8) -> Spare {
        let spare = Spare { word, own_origin, provenance: Self::OF_FILLER };
        if spare.is_filler() { spare } else { Spare { provenance: provenance_of(spare.class()), ..spare } }
    }

    /// The logical page.
    #[inline]
    pub fn logical_page(self) -> LogicalPage {
        LogicalPage(self.word & ((1 << LOGICAL_BITS) - 1))
    }

    /// The content and the origin.
    #[inline]
    pub fn provenance(self) -> Provenance {
        self.provenance
    }

    /// The content.
    #[inline]
    pub fn content(self) -> Content {
        Content::from_low_bits((self.word >> LOGICAL_BITS) as u8)
    }

    /// A number that stands for the provenance, except for fillers.
    #[inline]
    fn class(self) -> u8 {
        (self.word >> LOGICAL_BITS) as u8 | self.own_origin << CONTENT_BITS
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

/// A count of copied pages that have one provenance after another, as neighbours mostly do.
#[derive(Default)]
pub struct CopiedRun {
    class: u8,
    pages: u64,
}

impl CopiedRun {
    /// Counts a page. If its provenance is another, `ended` gets the one before and its pages.
    #[inline]
    pub fn add(&mut self, spare: Spare, ended: impl FnOnce(Provenance, u64)) {
        debug_assert!(!spare.is_filler(), "nobody copies a filler");
        if spare.class() != self.class {
            self.end(ended);
            self.class = spare.class();
        }
        self.pages += 1;
    }

    /// Passes on the last provenance and its pages.
    #[inline]
    pub fn end(&mut self, ended: impl FnOnce(Provenance, u64)) {
        ended(provenance_of(self.class), std::mem::take(&mut self.pages));
    }

    /// Counts a page that a layer sent for `cause`.
    #[inline]
    pub fn add_sent(&mut self, spare: Spare, cause: Cause, sent: &mut Tally) {
        self.add(spare, |provenance, pages| sent.add(Label::again(cause, provenance), pages));
    }

    /// Adds the last pages that a layer sent for `cause`.
    #[inline]
    pub fn end_sent(&mut self, cause: Cause, sent: &mut Tally) {
        self.end(|provenance, pages| sent.add(Label::again(cause, provenance), pages));
    }
}

/// The spare areas of all pages of a drive, in any state.
pub(super) struct SpareAreas {
    words: Vec<u32>,
    /// [`Spare::own_origin`] of each page. Two pages share a byte, the even one has the low bits. Empty as long as all are
    /// 0.
    own_origins: Vec<u8>,
}

impl SpareAreas {
    /// The spare areas of `pages` pages.
    pub fn new(pages: usize) -> SpareAreas {
        SpareAreas { words: vec![0; pages], own_origins: Vec::new() }
    }

    /// The spare area of a page.
    #[inline]
    pub fn get(&self, page: PhysicalPage) -> Spare {
        let own_origin = if self.own_origins.is_empty() { 0 } else { self.own_origin(page) };
        Spare::stored(self.words[page.0 as usize], own_origin)
    }

    /// Stores the spare area of a page that is programmed.
    #[inline]
    pub fn set(&mut self, page: PhysicalPage, spare: Spare) {
        self.words[page.0 as usize] = spare.word;
        if spare.own_origin != 0 || !self.own_origins.is_empty() {
            self.set_own_origin(page, spare.own_origin);
        }
    }

    #[inline(never)]
    fn own_origin(&self, page: PhysicalPage) -> u8 {
        self.own_origins[page.0 as usize / 2] >> (page.0 % 2 * ORIGIN_BITS) & ((1 << ORIGIN_BITS) - 1)
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
        let all: Vec<Provenance> = Cause::ALL
            .into_iter()
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
                areas.set(copy, areas.get(PhysicalPage(number as u32)));
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
