//! The modes of erase blocks: all bits of a cell, or one, and the wear of each.
//!
//! A block that is used in both modes is worn out when the shares of both endurances that it has used add up to one.

use super::geometry::EraseBlock;

/// The modes of all blocks.
pub(super) struct Modes {
    bits: u32,
    is_slc: Vec<bool>,
    /// The erases that ended a use in SLC mode.
    slc_erases: Vec<u32>,
    slc_endurance: u32,
    /// The first blocks, which are always in SLC mode.
    fixed: u32,
}

/// A view of the modes of a drive's blocks.
#[derive(Debug, Clone, Copy)]
pub struct ModesView<'a> {
    /// The bits of a cell.
    pub bits: u32,
    /// True for each block in SLC mode.
    pub is_slc: &'a [bool],
    /// The erases of each block that ended a use in SLC mode.
    pub slc_erases: &'a [u32],
    /// Erases before a block that is used in SLC mode alone is worn out.
    pub slc_endurance: u32,
    /// The blocks, from the first on, that are always in SLC mode; 0 if any block may be.
    pub fixed: u32,
}

impl Modes {
    pub fn new(bits: u32, blocks: usize, slc_endurance: u32) -> Modes {
        assert!(slc_endurance > 0, "a block can be erased");
        Modes { bits, is_slc: vec![false; blocks], slc_erases: vec![0; blocks], slc_endurance, fixed: 0 }
    }

    pub fn view(&self) -> ModesView<'_> {
        let Modes { bits, slc_endurance, fixed, .. } = *self;
        ModesView { bits, is_slc: &self.is_slc, slc_erases: &self.slc_erases, slc_endurance, fixed }
    }

    pub fn is_slc(&self, block: EraseBlock) -> bool {
        self.is_slc[block.index()]
    }

    pub fn fix(&mut self, blocks: u32) {
        self.fixed = blocks;
        self.is_slc[..blocks as usize].fill(true);
    }

    pub fn set_slc(&mut self, block: EraseBlock, is_slc: bool) {
        assert!(is_slc || block.0 >= self.fixed, "block {} stays in SLC mode", block.0);
        self.is_slc[block.index()] = is_slc;
    }

    /// The pages of a block in its mode, of `pages_per_block`.
    pub fn pages_of(&self, block: EraseBlock, pages_per_block: u32) -> u32 {
        if self.is_slc(block) { pages_per_block / self.bits } else { pages_per_block }
    }

    pub fn erase(&mut self, block: EraseBlock) {
        self.slc_erases[block.index()] += u32::from(self.is_slc(block));
    }

    /// True if a block with so many erases, of both modes, is worn out.
    pub fn is_worn_out(&self, block: EraseBlock, erases: u32, endurance: u32) -> bool {
        let slc = u64::from(self.slc_erases[block.index()]);
        let (endurance, slc_endurance) = (u64::from(endurance), u64::from(self.slc_endurance));
        (u64::from(erases) - slc) * slc_endurance + slc * endurance >= endurance * slc_endurance
    }
}

impl ModesView<'_> {
    /// The share of its life that a block with so many erases has used in SLC mode, and in the other.
    pub fn used(&self, block: usize, erases: u32, endurance: u32) -> (f64, f64) {
        let slc = self.slc_erases[block];
        (f64::from(slc) / f64::from(self.slc_endurance), f64::from(erases - slc) / f64::from(endurance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_both_modes_is_worn_out_when_its_shares_add_up_to_one() {
        let mut modes = Modes::new(3, 2, 10);
        let block = EraseBlock(1);
        modes.set_slc(block, true);
        (0..5).for_each(|_| modes.erase(block));
        // Half of its life in SLC mode, half of it at two of four erases.
        for (erases, worn) in [(5, false), (6, false), (7, true)] {
            assert_eq!(modes.is_worn_out(block, erases, 4), worn, "{erases} erases");
        }
        assert_eq!(modes.view().used(1, 6, 4), (0.5, 0.25));
        (5..10).for_each(|_| modes.erase(block));
        assert!(modes.is_worn_out(block, 10, 4), "in SLC mode alone");
    }
}
