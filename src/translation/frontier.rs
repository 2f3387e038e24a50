//! Where the next page goes: an open block on each plane, written in turn.

use crate::device::nand::{EraseBlock, Geometry, PhysicalPage};

/// The part of an open block that is still to be written; empty if the plane has no open block.
#[derive(Clone, Copy, Default)]
struct OpenBlock {
    next: u32,
    end: u32,
    block: Option<EraseBlock>,
}

/// Open blocks that take one stream of writes, a page on each in turn, so that planes and channels work at once.
pub struct Frontier {
    open: Vec<OpenBlock>,
    turn: usize,
}

impl Frontier {
    /// A frontier over so many planes, with no block open.
    pub fn new(planes: u32) -> Frontier {
        Frontier { open: vec![OpenBlock::default(); planes as usize], turn: 0 }
    }

    /// The next page, if the block whose turn it is has one left.
    #[inline]
    pub fn take(&mut self) -> Option<PhysicalPage> {
        let open = &mut self.open[self.turn];
        if open.next == open.end {
            return None;
        }
        let page = PhysicalPage(open.next);
        open.next += 1;
        self.pass_turn();
        Some(page)
    }

    /// The next pages that follow each other, at most `most`, and how many; none if the block whose turn it is is full.
    /// Where there are several planes that is one page: the next one is on another plane.
    #[inline]
    pub fn take_run(&mut self, most: u32) -> Option<(PhysicalPage, u32)> {
        if self.open.len() > 1 {
            return self.take().map(|page| (page, 1));
        }
        let open = &mut self.open[0];
        debug_assert!(open.next <= open.end, "no page behind the open block is given out");
        let count = most.min(open.end - open.next);
        let page = PhysicalPage(open.next);
        open.next += count;
        (count > 0).then_some((page, count))
    }

    /// Lets the next plane have its turn.
    #[inline]
    pub fn pass_turn(&mut self) {
        self.turn += 1;
        if self.turn == self.open.len() {
            self.turn = 0;
        }
    }

    /// The plane whose turn it is.
    pub fn plane(&self) -> u32 {
        self.turn as u32
    }

    /// How many planes there are.
    pub fn planes(&self) -> usize {
        self.open.len()
    }

    /// Whether the block whose turn it is has a page left.
    pub fn has_room(&self) -> bool {
        let open = &self.open[self.turn];
        open.next < open.end
    }

    /// Passes the turn to the next plane whose block has a page left; answers whether there is one.
    pub fn seek_room(&mut self) -> bool {
        (0..self.planes()).any(|_| {
            let has_room = self.has_room();
            if !has_room {
                self.pass_turn();
            }
            has_room
        })
    }

    /// Gives up the full block whose turn it is.
    pub fn close(&mut self) -> Option<EraseBlock> {
        debug_assert!(!self.has_room(), "a block is given up when it is full");
        self.open[self.turn].block.take()
    }

    /// Opens an erased block for the plane whose turn it is.
    pub fn open(&mut self, block: EraseBlock, geometry: &Geometry) {
        debug_assert!(self.open[self.turn].block.is_none(), "the full block was given up");
        let first = geometry.first_page(block).0;
        let open = OpenBlock { next: first, end: first + geometry.pages_per_block, block: Some(block) };
        self.open[self.turn] = open;
    }

    /// Opens a block that is programmed up to page `programmed` for this plane, if the plane has none open.
    pub fn reopen(&mut self, plane: u32, block: EraseBlock, programmed: u32, geometry: &Geometry) -> bool {
        let open = &mut self.open[plane as usize];
        if open.block.is_some() {
            return false;
        }
        assert!(programmed <= geometry.pages_per_block, "block {} holds no more pages than it has", block.0);
        let first = geometry.first_page(block).0;
        *open = OpenBlock { next: first + programmed, end: first + geometry.pages_per_block, block: Some(block) };
        true
    }

    /// Pages that can still be written without opening a block.
    pub fn room(&self) -> u64 {
        self.open.iter().map(|open| u64::from(open.end - open.next)).sum()
    }
}
