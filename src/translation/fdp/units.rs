//! Reclaim units: a block on each plane of a group, which are written, collected and erased together.
//!
//! ```text
//!     plane            0     1     2     3          two groups of four planes
//!     unit 0 of        g0    g1    g0    g1         block = row x planes + plane
//!     each group       blk 0 blk 1 blk 2 blk 3      group = plane mod groups
//! ```
//!
//! Neighbouring planes are on different channels, so that groups have channels of their own if their number divides that
//! of the channels. Blocks behind the last whole row are never used.

use crate::device::nand::{EraseBlock, Geometry, PhysicalPage};
use crate::translation::frontier::Frontier;
use std::collections::BTreeSet;

/// A reclaim unit: the number of its group times the units of a group, plus its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit(pub u32);

impl Unit {
    /// The index in an array with one entry for each unit.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The writer of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The host, by this handle.
    Host(u8),
    /// Collection, with copies of this handle alone.
    CopiesOf(u8),
    /// Collection, with copies of all initially isolated handles.
    SharedCopies,
}

/// In a spare area: the copies of one handle, beside the number of the handle.
const COPIES: u16 = 1 << 8;
/// In a spare area: copies of all initially isolated handles.
const SHARED: u16 = 1 << 9;

impl Owner {
    /// The number in the spare areas of a unit.
    pub fn mark(self) -> u16 {
        match self {
            Owner::Host(handle) => handle.into(),
            Owner::CopiesOf(handle) => COPIES | u16::from(handle),
            Owner::SharedCopies => SHARED,
        }
    }

    /// The owner with this number in the spare areas.
    pub fn of_mark(mark: u16) -> Owner {
        match mark {
            SHARED => Owner::SharedCopies,
            mark if mark & COPIES != 0 => Owner::CopiesOf(mark as u8),
            mark => Owner::Host(mark as u8),
        }
    }
}

/// The units of a drive: their blocks, and those that are erased.
pub struct Units {
    groups: u32,
    /// Units of a group.
    rows: u32,
    /// Planes of the drive.
    planes: u32,
    /// Pages of a unit.
    pages: u32,
    /// The unit of each block of a whole row.
    unit_of_block: Vec<Unit>,
    /// The erased units of each group, in the order in which they are taken.
    erased: Vec<BTreeSet<(u64, u32)>>,
    /// The units of each group that are out of use.
    retired: Vec<u32>,
    /// True if the least worn one is taken first; otherwise the one that was erased first.
    by_wear: bool,
    /// Units that were erased so far.
    freed: u64,
}

impl Units {
    /// The units of a drive, none of them erased.
    pub fn new(geometry: &Geometry, groups: u32, by_wear: bool) -> Units {
        let planes = geometry.units();
        assert!(planes.is_multiple_of(groups), "each group has as many planes");
        let rows = geometry.blocks / planes;
        let unit_of = |block: u32| Unit(block % planes % groups * rows + block / planes);
        Units {
            groups,
            rows,
            planes,
            pages: planes / groups * geometry.pages_per_block,
            unit_of_block: (0..rows * planes).map(unit_of).collect(),
            erased: vec![BTreeSet::new(); groups as usize],
            retired: vec![0; groups as usize],
            by_wear,
            freed: 0,
        }
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups as usize
    }

    /// The number of units of a group.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The planes of a group.
    pub fn planes_of_group(&self) -> u32 {
        self.planes / self.groups
    }

    /// The pages of a unit.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The blocks behind the last whole row.
    pub fn unused_blocks(&self, geometry: &Geometry) -> u32 {
        geometry.blocks - self.rows * self.planes
    }

    /// All units.
    pub fn all(&self) -> impl Iterator<Item = Unit> + use<> {
        (0..self.groups * self.rows).map(Unit)
    }

    /// The unit of a block.
    #[inline]
    pub fn unit_of(&self, block: EraseBlock) -> Unit {
        self.unit_of_block[block.index()]
    }

    /// The group of a unit, and its row, as a block of the group's candidates.
    #[inline]
    pub fn place(&self, unit: Unit) -> (usize, EraseBlock) {
        match self.groups {
            1 => (0, EraseBlock(unit.0)),
            _ => ((unit.0 / self.rows) as usize, EraseBlock(unit.0 % self.rows)),
        }
    }

    /// The unit at this row of a group.
    pub fn unit_at(&self, group: usize, row: EraseBlock) -> Unit {
        Unit(group as u32 * self.rows + row.0)
    }

    /// The blocks of a unit, by plane.
    pub fn blocks_of(&self, unit: Unit) -> impl Iterator<Item = EraseBlock> + use<> {
        let (group, row) = self.place(unit);
        let (first, groups) = (row.0 * self.planes + group as u32, self.groups);
        (0..self.planes_of_group()).map(move |number| EraseBlock(first + number * groups))
    }

    /// The number of erased units of a group.
    #[inline]
    pub fn erased_in(&self, group: usize) -> u32 {
        self.erased[group].len() as u32
    }

    /// The number of erased units.
    pub fn erased(&self) -> u32 {
        self.erased.iter().map(|units| units.len() as u32).sum()
    }

    /// The number of units of a group that are out of use.
    pub fn retired_in(&self, group: usize) -> u32 {
        self.retired[group]
    }

    /// The number of units out of use.
    pub fn retired(&self) -> u32 {
        self.retired.iter().sum()
    }

    /// Adds an erased unit, whose blocks were erased so often.
    pub fn put(&mut self, unit: Unit, erases: u32) {
        let (group, row) = self.place(unit);
        self.freed += 1;
        let order = if self.by_wear { erases.into() } else { self.freed };
        let is_new = self.erased[group].insert((order, row.0));
        assert!(is_new, "unit {} is erased once: two owners would write it", unit.0);
    }

    /// Takes an erased unit of a group.
    pub fn take(&mut self, group: usize) -> Option<Unit> {
        let (_, row) = self.erased[group].pop_first()?;
        Some(self.unit_at(group, EraseBlock(row)))
    }

    /// A unit is out of use.
    pub fn retire(&mut self, unit: Unit) {
        let (group, _) = self.place(unit);
        self.retired[group] += 1;
    }
}

/// The unit that an owner writes, if there is one: a stripe over its planes after the other.
pub struct OpenUnit {
    frontier: Frontier,
    unit: Option<Unit>,
}

impl OpenUnit {
    /// No unit, for a group with so many planes.
    pub fn new(planes: u32, pages_per_program: u32) -> OpenUnit {
        OpenUnit { frontier: Frontier::new(planes, pages_per_program), unit: None }
    }

    /// The next page, if the unit has one left.
    #[inline]
    pub fn take(&mut self) -> Option<PhysicalPage> {
        self.frontier.take()
    }

    /// The next page, if others of its page of flash were taken.
    pub fn take_rest(&mut self) -> Option<PhysicalPage> {
        self.frontier.take_rest()
    }

    /// True if the unit has a page left: its planes are full one after the other, and the current one is the last.
    pub fn has_room(&self) -> bool {
        self.frontier.has_room()
    }

    /// The pages that are left.
    pub fn room(&self) -> u64 {
        self.frontier.room()
    }

    /// The unit, if one is open.
    pub fn unit(&self) -> Option<Unit> {
        self.unit
    }

    /// Gives up the unit, full or not.
    pub fn give_up(&mut self) -> Option<Unit> {
        self.frontier.give_up_all();
        self.unit.take()
    }

    /// Opens a unit with these blocks, of which so many pages are programmed: none of an erased one.
    pub fn open(&mut self, unit: Unit, blocks: impl Iterator<Item = (EraseBlock, u32)>, geometry: &Geometry) {
        assert!(self.unit.is_none(), "unit {} is opened behind another", unit.0);
        self.unit = Some(unit);
        let (mut least, mut next) = (u32::MAX, 0);
        for (plane, (block, programmed)) in (0..).zip(blocks) {
            let is_open = self.frontier.reopen(plane, block, (programmed, geometry.pages_per_block), geometry);
            debug_assert!(is_open, "plane {plane} had a block of another unit");
            if programmed < least {
                (least, next) = (programmed, plane);
            }
        }
        self.frontier.go_on_at(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        // 2 channels x 2 dies, 17 blocks of 4 pages: a row of four and one block that is left over.
        Geometry::new(17 * 4 * 4096, 4096, 4, (2, 2, 1)).unwrap()
    }

    #[test]
    fn every_block_of_a_whole_row_is_in_one_unit_of_the_group_of_its_plane() {
        for groups in [1, 2, 4] {
            let units = Units::new(&geometry(), groups, true);
            let mut seen = [0; 17];
            for unit in units.all() {
                for block in units.blocks_of(unit) {
                    assert_eq!(units.unit_of(block), unit);
                    assert_eq!(geometry().unit_of(block) % groups, units.place(unit).0 as u32);
                    seen[block.index()] += 1;
                }
            }
            assert_eq!(seen[..16], [1; 16]);
            assert_eq!((seen[16], units.unused_blocks(&geometry())), (0, 1));
        }
    }

    #[test]
    fn a_unit_goes_on_where_it_was_after_a_cut() {
        let units = Units::new(&geometry(), 1, true);
        for done in 0..16u32 {
            let mut open = OpenUnit::new(4, 1);
            open.open(Unit(2), units.blocks_of(Unit(2)).map(|block| (block, 0)), &geometry());
            let mut programmed = [0; 4];
            for _ in 0..done {
                let page = open.take().unwrap();
                programmed[(geometry().block_of(page).0 % 4) as usize] += 1;
            }
            let mut again = OpenUnit::new(4, 1);
            again.open(Unit(2), units.blocks_of(Unit(2)).zip(programmed), &geometry());
            assert_eq!(again.room(), u64::from(16 - done));
            for _ in done..16 {
                assert_eq!(again.take(), open.take());
            }
            assert_eq!((again.take(), again.has_room()), (None, false));
        }
    }

    #[test]
    fn an_owner_is_known_by_its_mark() {
        let handles = || (0..=127u8).flat_map(|handle| [Owner::Host(handle), Owner::CopiesOf(handle)]);
        let marks: std::collections::BTreeSet<u16> = handles().chain([Owner::SharedCopies]).map(Owner::mark).collect();
        assert_eq!(marks.len(), 257, "each has its own");
        assert!(handles().chain([Owner::SharedCopies]).all(|owner| Owner::of_mark(owner.mark()) == owner));
    }
}
