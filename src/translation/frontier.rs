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

    /// Takes as many pages as [`Frontier::take`] gives one after the other, at most `most`. Returns their number. `places`
    /// gets the first page on each plane from the current one on, of those that take part; the others on a plane follow.
    ///
    /// # Panics
    ///
    /// If several pages are a page of flash: a bug of the caller.
    pub fn take_spread(&mut self, most: usize, places: &mut Vec<PhysicalPage>) -> usize {
        assert_eq!(self.mask, 0, "a page of flash is one page");
        places.clear();
        if self.step == 0 || self.taking_part < self.open.len() {
            return match self.take_run(most as u32) {
                None => 0,
                Some((page, count)) => {
                    places.push(page);
                    count as usize
                }
            };
        }
        if !self.has_room() {
            return 0;
        }
        let planes = self.open.len();
        let mut taken = most;
        for (plane, open) in self.open.iter().enumerate() {
            let turns = if plane < self.turn { plane + planes - self.turn } else { plane - self.turn };
            taken = taken.min(turns + (open.end - open.next) as usize * planes);
        }
        let (rounds, over) = ((taken / planes) as u32, taken % planes);
        let (before, after) = self.open.split_at_mut(self.turn);
        for half in [after, before] {
            places.extend(half.iter().map(|open| PhysicalPage(open.next)));
            half.iter_mut().for_each(|open| open.next += rounds);
        }
        for _ in 0..over {
            self.open[self.turn].next += 1;
            self.turn = if self.turn + 1 == planes { 0 } else { self.turn + 1 };
        }
        taken
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const PAGES: u32 = 16;

    /// Frontiers over so many planes in one state, with blocks of any room open.
    fn alike(planes: u32, random: &mut Random) -> [Frontier; 2] {
        let geometry = Geometry::new(u64::from(planes * PAGES) << 12, 4096, PAGES, (planes, 1, 1)).unwrap();
        let (turn, seldom) = (random.below(u64::from(planes)) as u32, random.below(2) == 0);
        let mut room = || if seldom { 0 } else { random.below(u64::from(PAGES) + 1) as u32 };
        let rooms: Vec<u32> = (0..planes).map(|_| room()).collect();
        std::array::from_fn(|_| {
            let mut frontier = Frontier::new(planes, 1);
            for plane in 0..planes {
                frontier.reopen(plane, EraseBlock(plane), (PAGES - rooms[plane as usize], PAGES), &geometry);
            }
            frontier.go_on_at(turn);
            frontier
        })
    }

    /// Every page that the one gives, one after the other, is where the other says, and both go on alike.
    #[test]
    fn pages_taken_at_once_are_those_taken_one_by_one() {
        let mut random = Random::new(1, "frontier");
        for _ in 0..2000 {
            let planes = 1 + random.below(9) as u32;
            let [mut one, mut all] = alike(planes, &mut random);
            let most = random.below(u64::from(planes * PAGES)) as usize;
            let mut places = Vec::new();
            let taken = all.take_spread(most, &mut places);
            let expected: Vec<PhysicalPage> = (0..taken).map(|_| one.take().unwrap()).collect();
            let place = |page: usize| PhysicalPage(places[page % places.len()].0 + (page / places.len()) as u32);
            assert_eq!((0..taken).map(place).collect::<Vec<_>>(), expected);
            assert_eq!(all.plane(), one.plane());
            assert!(taken == most || !one.has_room(), "it ends where the other finds no room");
            for (all, one) in all.open.iter().zip(&one.open) {
                assert_eq!((all.next, all.end), (one.next, one.end));
            }
        }
    }
}
