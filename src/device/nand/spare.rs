//! The spare areas of a drive's pages: what a page says of itself beside its bytes.
//!
//! A page's logical number and its content take 32 bits. Its origin mostly follows from these: what a host wrote, or a
//! mapping page of the layer. Another origin takes four bits a page, from the first page that has one on.
//!
//!     bits of a word   0                              29 30     31
//!                      | logical page, or NO_PAGE       | content |

use super::{Geometry, LogicalPage, PhysicalPage};
use crate::label::{Cause, Content, Provenance};

const LOGICAL_BITS: u32 = 30;
const _: () = assert!(Geometry::MAX_LOGICAL_PAGES == 1 << LOGICAL_BITS);
const _: () = assert!(Cause::COUNT < 1 << ORIGIN_BITS, "an origin, or none of its own, fits in the bits of a page");
const ORIGIN_BITS: u32 = 4;

/// The spare area of a page: its logical page, and the provenance of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    page: LogicalPage,
    provenance: Provenance,
}

impl Spare {
    /// The logical page of a filler, which was programmed only because flash is programmed in order.
    pub const NO_PAGE: LogicalPage = LogicalPage((1 << LOGICAL_BITS) - 1);

    /// The provenance of a filler. It counts as the layer's own metadata, which a merge wrote.
    pub const OF_FILLER: Provenance = Provenance { origin: Cause::Merge, content: Content::Mapping };

    /// The spare area of a filler.
    pub fn filler() -> Spare {
        Spare::new(Self::NO_PAGE, Self::OF_FILLER)
    }

    /// True if the page is a filler.
    #[inline]
    pub fn is_filler(self) -> bool {
        self.page == Self::NO_PAGE
    }

    /// The spare area of a logical page (below [`Geometry::MAX_LOGICAL_PAGES`]).
    #[inline]
    pub fn new(page: LogicalPage, provenance: Provenance) -> Spare {
        debug_assert!(u64::from(page.0) < Geometry::MAX_LOGICAL_PAGES);
        Spare { page, provenance }
    }

    /// The logical page.
    #[inline]
    pub fn logical_page(self) -> LogicalPage {
        self.page
    }

    /// The content and the origin.
    #[inline]
    pub fn provenance(self) -> Provenance {
        self.provenance
    }

    /// The content.
    #[inline]
    pub fn content(self) -> Content {
        self.provenance.content
    }

    /// The word without the origin.
    #[inline]
    fn word(self) -> u32 {
        self.page.0 | (self.provenance.content as u32) << LOGICAL_BITS
    }

    /// The spare area of a page that stores no origin of its own.
    #[inline]
    fn of_word(word: u32) -> Spare {
        let page = LogicalPage(word & ((1 << LOGICAL_BITS) - 1));
        let content = Content::from_low_bits((word >> LOGICAL_BITS) as u8);
        Spare { page, provenance: Provenance { origin: implied_origin(word), content } }
    }
}

/// The spare areas of all pages of a drive, in any state.
pub(super) struct SpareAreas {
    words: Vec<u32>,
    /// For each page 0 if its origin follows from its word, or 1 plus the number of its origin. Two pages share a byte,
    /// the even one has the low bits. Empty as long as all would be 0.
    origins: Vec<u8>,
}

impl SpareAreas {
    /// The spare areas of `pages` pages.
    pub fn new(pages: usize) -> SpareAreas {
        SpareAreas { words: vec![0; pages], origins: Vec::new() }
    }

    /// The logical page of a page.
    #[inline]
    pub fn logical_page(&self, page: PhysicalPage) -> LogicalPage {
        Spare::of_word(self.words[page.0 as usize]).page
    }

    /// The spare area of a page.
    #[inline]
    pub fn get(&self, page: PhysicalPage) -> Spare {
        let spare = Spare::of_word(self.words[page.0 as usize]);
        if self.origins.is_empty() { spare } else { self.with_own_origin(page, spare) }
    }

    /// Stores the spare area of a page that is programmed.
    #[inline]
    pub fn set(&mut self, page: PhysicalPage, spare: Spare) {
        let word = spare.word();
        self.words[page.0 as usize] = word;
        let is_implied = spare.provenance.origin == implied_origin(word);
        if !is_implied || !self.origins.is_empty() {
            self.set_own_origin(page, if is_implied { 0 } else { spare.provenance.origin as u8 + 1 });
        }
    }

    /// Stores the spare area of a page in that of its copy; returns it.
    #[inline]
    pub fn copy(&mut self, from: PhysicalPage, to: PhysicalPage) -> Spare {
        let word = self.words[from.0 as usize];
        self.words[to.0 as usize] = word;
        let spare = Spare::of_word(word);
        if self.origins.is_empty() {
            return spare;
        }
        self.set_own_origin(to, self.own_origin(from));
        self.with_own_origin(from, spare)
    }

    fn with_own_origin(&self, page: PhysicalPage, spare: Spare) -> Spare {
        let Provenance { origin, content } = spare.provenance;
        let origin = self.own_origin(page).checked_sub(1).map_or(origin, Cause::from_number);
        Spare { provenance: Provenance { origin, content }, ..spare }
    }

    fn own_origin(&self, page: PhysicalPage) -> u8 {
        self.origins[page.0 as usize / 2] >> (page.0 % 2 * ORIGIN_BITS) & ((1 << ORIGIN_BITS) - 1)
    }

    fn set_own_origin(&mut self, page: PhysicalPage, number: u8) {
        if self.origins.is_empty() {
            self.origins = vec![0; self.words.len().div_ceil(2)];
        }
        let shift = page.0 % 2 * ORIGIN_BITS;
        let byte = &mut self.origins[page.0 as usize / 2];
        *byte = *byte & !(((1 << ORIGIN_BITS) - 1) << shift) | number << shift;
    }
}

/// The origin of a page that stores none of its own.
#[inline]
fn implied_origin(word: u32) -> Cause {
    const FILLER: u32 = Spare::NO_PAGE.0 | (Spare::OF_FILLER.content as u32) << LOGICAL_BITS;
    const MAPPING: u32 = Content::Mapping as u32;
    match word {
        FILLER => Spare::OF_FILLER.origin,
        _ if word >> LOGICAL_BITS == MAPPING => Cause::Mapping,
        _ => Cause::HostWrite,
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
                assert_eq!(areas.copy(PhysicalPage(number as u32), copy), spare(number));
                assert_eq!(areas.get(copy), spare(number));
            }
        }
        areas.set(PhysicalPage(0), Spare::filler());
        assert_eq!(areas.get(PhysicalPage(0)), Spare::filler());
        assert!(areas.get(PhysicalPage(0)).is_filler());
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
        assert_eq!(areas.origins.capacity(), 0);
        let cleaned = Provenance { origin: Cause::SegmentCleaning, content: Content::Data };
        areas.set(PhysicalPage(4), Spare::new(LogicalPage(3), cleaned));
        assert_eq!(areas.origins.len(), 3, "four bits a page");
        assert_eq!(areas.get(PhysicalPage(1)).provenance(), mapping, "earlier pages keep theirs");
    }
}
