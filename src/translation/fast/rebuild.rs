//! Rebuilds the maps after a power cut, from the spare areas of the flash.
//!
//! A block is in order if its first page is the first of a logical block, or a filler: it is a data block, the
//! sequential log block or the target of a merge. All others are random log blocks, as the first page of a logical
//! block never goes there. Of two blocks in order for one logical block, the newer one was about to replace the older,
//! and gets its missing pages.

use super::{EraseBlock, Fast, LogicalBlock};
use crate::device::nand::{PhysicalPage, Timing};
use crate::time::Time;
use crate::translation::free_blocks::FoundBlock;
use crate::translation::{TranslationError, UNMAPPED, newest_versions};
use std::collections::BTreeMap;

/// The age of a version: see [`crate::device::nand::Found::sequence`].
type Sequence = (u64, u32);

/// Rebuilds all state that was in RAM.
pub fn rebuilt<T: Timing>(lost: Fast<T>) -> Result<Fast<T>, TranslationError> {
    let Fast { nand, settings, .. } = lost;
    let mut drive = Fast::without_blocks(nand, &settings);
    // The counts are lost, too: they continue from the flash's.
    drive.sent = drive.nand.counts_after_power_cut().programmed.clone();
    drive.logged = newest_versions(&drive.nand, settings.exported_pages);
    for (page, place) in (0u32..).zip(&drive.logged) {
        if *place != UNMAPPED {
            drive.valid.set(PhysicalPage(*place));
            drive.present[(page / drive.nand.geometry().pages_per_block) as usize] += 1;
        }
    }
    let mut in_order: BTreeMap<u32, Vec<(Sequence, EraseBlock)>> = BTreeMap::new();
    let mut random = Vec::new();
    let mut of_fillers = Vec::new();
    let geometry = *drive.nand.geometry();
    for block in (0..geometry.blocks).map(EraseBlock) {
        drive.retired += u32::from(drive.free.put_found(block, &drive.nand) == FoundBlock::WornOut);
        let Some(first) = drive.nand.found(block).next() else { continue };
        let known = drive.nand.found(block).find(|found| !found.spare.is_filler());
        match known.map(|found| drive.split(found.spare.logical_page())) {
            None => of_fillers.push(block),
            Some((LogicalBlock(of), offset)) if first.spare.is_filler() || offset == 0 => {
                in_order.entry(of).or_default().push((first.sequence, block));
            }
            Some(_) => random.push((first.sequence, block)),
        }
    }
    let at = drive.nand.timing().instant(Time::ZERO);
    for block in of_fillers {
        drive.erase(block, at)?;
    }
    random.sort_unstable();
    drive.random.extend(random.into_iter().map(|(_, block)| block));
    for (of, mut blocks) in in_order {
        blocks.sort_unstable();
        let (of, base) = (LogicalBlock(of), blocks[0].1);
        drive.data_blocks[of.0 as usize] = base.0;
        if let Some(&(_, newer)) = blocks.get(1) {
            drive.forget_discarded(of, base, newer);
            drive.merges.partial += 1;
            drive.complete(of, newer, at)?;
        } else {
            // The block map finds all its pages from now on.
            drive.forget_logged(of, base);
        }
    }
    Ok(drive)
}

impl<T: Timing> Fast<T> {
    /// Drops the pages of `base` that the interrupted merge had passed without copying: they had been discarded.
    fn forget_discarded(&mut self, of: LogicalBlock, base: EraseBlock, newer: EraseBlock) {
        for offset in 0..self.programmed(newer) {
            let page = self.page(of, offset).0 as usize;
            let place = PhysicalPage(self.logged[page]);
            if place.0 != UNMAPPED && self.nand.geometry().block_of(place) == base {
                self.logged[page] = UNMAPPED;
                self.valid.clear(place);
                self.present[of.0 as usize] -= 1;
            }
        }
    }
}
