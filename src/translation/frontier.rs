//! The write frontier: an open block on each plane, written in turn.

use crate::device::nand::{EraseBlock, Geometry, PhysicalPage};

/// The unwritten part of an open block; empty if the plane has no open block.
#[derive(Clone, Copy, Default)]
struct OpenBlock {
    next: u32,
    end: u32,
    block: Option<EraseBlock>,
}

/// Open blocks for one stream of writes. Pages of flash go to the planes in turn, so that planes and channels work in
/// parallel.
pub struct Frontier {
    open: Vec<OpenBlock>,
    turn: usize,
    /// The planes to go on by after a page of flash: one, or none if the frontier stays where it is told to go on.
    step: usize,
    /// The number of planes that take part; the others follow.
    taking_part: usize,
    /// The rounds over the planes until the next one takes part, now and each time.
    rounds_left: u32,
    rounds: u32,
    /// One less than the pages of a page of flash.
    mask: u32,
}

impl Frontier {
    /// A frontier over `planes` planes, with no block open, on which so many pages are a page of flash.
    pub fn new(planes: u32, pages_per_program: u32) -> Frontier {
        let taking_part = planes as usize;
        let (open, mask) = (vec![OpenBlock::default(); planes as usize], pages_per_program - 1);
        Frontier { open, turn: 0, step: 1, taking_part, rounds_left: 0, rounds: 0, mask }
    }

    /// The same frontier before its first page, of which the planes begin one after the other: their blocks are not full at
    /// once, so that erased blocks are taken one by one.
    pub fn staggered(self, pages_per_block: u32) -> Frontier {
        let rounds = (pages_per_block / (self.mask + 1) / self.open.len() as u32).max(1);
        Frontier { taking_part: 1, rounds_left: rounds, rounds, ..self }
    }

    /// The same frontier, which stays on a plane until it is told to go on at another.
    pub fn staying(self) -> Frontier {
        Frontier { step: 0, ..self }
    }

    /// The next page, if the current plane's block has one left.
    #[inline]
    pub fn take(&mut self) -> Option<PhysicalPage> {
        let open = &mut self.open[self.turn];
        if open.next == open.end {
            return None;
        }
        let page = PhysicalPage(open.next);
        open.next += 1;
        if open.next & self.mask == 0 {
            self.next_plane();
        }
        Some(page)
    }

    /// The next page, if others of its page of flash were taken.
    pub fn take_rest(&mut self) -> Option<PhysicalPage> {
        if self.open[self.turn].next & self.mask == 0 { None } else { self.take() }
    }

    /// The next consecutive pages and their number, at most `most`; `None` if the current plane's block is full. With
    /// several planes it is one page: the next one may be on another plane.
    #[inline]
    pub fn take_run(&mut self, most: u32) -> Option<(PhysicalPage, u32)> {
        if self.open.len() > 1 {
            return self.take().map(|page| (page, 1));
        }
        let open = &mut self.open[0];
        debug_assert!(open.next <= open.end, "no page after the open block is returned");
        let count = most.min(open.end - open.next);
        let page = PhysicalPage(open.next);
        open.next += count;
        (count > 0).then_some((page, count))
    }

    /// Moves to the next plane.
    #[inline]
    pub fn next_plane(&mut self) {
        self.turn += self.step;
        if self.turn == self.taking_part {
            self.turn = 0;
            if self.taking_part < self.open.len() {
                self.end_round();
            }
        }
    }

    /// A round over the planes that take part is over.
    #[cold]
    fn end_round(&mut self) {
        self.rounds_left -= 1;
        if self.rounds_left == 0 {
            self.rounds_left = self.rounds;
            self.taking_part += 1;
        }
    }

    /// The current plane.
    pub fn plane(&self) -> u32 {
        self.turn as u32
    }

    /// The number of planes.
    pub fn planes(&self) -> usize {
        self.open.len()
    }

    /// True if the current plane's block has a page left.
    pub fn has_room(&self) -> bool {
        let open = &self.open[self.turn];
        open.next < open.end
    }

    /// Moves to the next plane whose block has a page left; false if there is none.
    pub fn seek_room(&mut self) -> bool {
        (0..self.planes()).any(|_| {
            let has_room = self.has_room();
            if !has_room {
                self.next_plane();
            }
            has_room
        })
    }

    /// Removes the current plane's block, which is full.
    pub fn close(&mut self) -> Option<EraseBlock> {
        debug_assert!(!self.has_room(), "a block is given up when it is full");
        self.open[self.turn].block.take()
    }

    /// Gives up all open blocks, full or not. The next block opens on the first plane.
    pub fn give_up_all(&mut self) {
        self.open.fill(OpenBlock::default());
        self.turn = 0;
    }

    /// The next page is on this plane.
    pub fn go_on_at(&mut self, plane: u32) {
        self.turn = plane as usize;
    }

    /// Opens an erased block, of which so many pages can be programmed, on the current plane.
    pub fn open(&mut self, (block, usable): (EraseBlock, u32), geometry: &Geometry) {
        debug_assert!(self.open[self.turn].block.is_none(), "the full block was given up");
        debug_assert_eq!(usable & self.mask, 0, "pages of flash are programmed whole");
        let first = geometry.first_page(block).0;
        self.open[self.turn] = OpenBlock { next: first, end: first + usable, block: Some(block) };
    }

    /// Gives up an open block with pages left, unless a page of flash is begun there. Returns their number.
    pub fn give_up(&mut self, block: EraseBlock) -> Option<u32> {
        let mask = self.mask;
        let open = self.open.iter_mut().find(|open| open.block == Some(block))?;
        let left = open.end - open.next;
        (left > 0 && open.next & mask == 0).then(|| {
            *open = OpenBlock::default();
            left
        })
    }

    /// Gives up the pages that are not begun: the open blocks are full as they are.
    pub fn seal(&mut self) {
        for open in &mut self.open {
            open.end = open.end.min((open.next + self.mask) & !self.mask);
        }
    }

    /// Opens a block of which so many pages are programmed, and so many can be, on `plane`, if the plane has none open.
    pub fn reopen(
        &mut self,
        plane: u32,
        block: EraseBlock,
        (programmed, usable): (u32, u32),
        geometry: &Geometry,
    ) -> bool {
        let open = &mut self.open[plane as usize];
        if open.block.is_some() {
            return false;
        }
        assert!(programmed <= usable, "block {} holds no more pages than it has", block.0);
        let first = geometry.first_page(block).0;
        *open = OpenBlock { next: first + programmed, end: first + usable, block: Some(block) };
        self.taking_part = self.open.len();
        true
    }

    /// Pages that can be written without opening a block.
    pub fn room(&self) -> u64 {
        self.open.iter().map(|open| u64::from(open.end - open.next)).sum()
    }
}
