//! Rebuilds the map after a power cut, from the spare areas of the flash.

use super::{EraseBlock, SuperblockFtl};
use crate::device::nand::{PhysicalPage, Timing};
use crate::time::Time;
use crate::translation::free_blocks::FoundBlock;
use crate::translation::{TranslationError, UNMAPPED, newest_versions, settle_open_pages};

/// Rebuilds all state that was in RAM.
pub fn rebuilt<T: Timing>(lost: SuperblockFtl<T>) -> Result<SuperblockFtl<T>, TranslationError> {
    let SuperblockFtl { mut nand, settings, .. } = lost;
    settle_open_pages(&mut nand, true)?;
    let mut drive = SuperblockFtl::without_blocks(nand, &settings);
    // The counts are lost, too: they continue from the flash's.
    drive.sent = drive.nand.counts_after_power_cut().programmed.clone();
    drive.map = newest_versions(&drive.nand, settings.exported_pages);
    for place in drive.map.iter().filter(|&&place| place != UNMAPPED) {
        drive.valid.set(PhysicalPage(*place));
    }
    let geometry = *drive.nand.geometry();
    for block in (0..geometry.blocks).map(EraseBlock) {
        drive.retired += u32::from(drive.free.put_found(block, &drive.nand) == FoundBlock::WornOut);
        let Some(first) = drive.nand.found(block).next() else { continue };
        let superblock = drive.superblock_of(first.spare.logical_page());
        drive.adopt(superblock, block);
    }
    for superblock in 0..settings.superblocks as usize {
        let blocks = drive.owned[superblock].blocks.clone();
        let invalid = blocks.iter().map(|block| drive.invalid[block.index()]).sum();
        drive.victims.set_invalid(EraseBlock(superblock as u32), invalid);
        drive.update_victim(superblock);
    }
    drive.finish_collections()?;
    Ok(drive)
}

impl<T: Timing> SuperblockFtl<T> {
    /// Adds a block to a superblock. Of partly programmed blocks, the one with the most space is opened; the unwritten
    /// pages of the others count as invalid.
    fn adopt(&mut self, superblock: usize, block: EraseBlock) {
        let geometry = *self.nand.geometry();
        let programmed = self.nand.programmed_pages()[block.index()];
        let valid: u32 = self.valid.words_of(block).map(|word| self.valid.word(word).count_ones()).sum();
        let room = geometry.pages_per_block - programmed;
        self.invalid[block.index()] = programmed - valid;
        let owned = &mut self.owned[superblock];
        owned.blocks.push(block);
        owned.valid += valid;
        if room <= owned.room() {
            self.invalid[block.index()] += room;
            return;
        }
        let first = geometry.first_page(block).0;
        if owned.room() > 0 {
            let other = geometry.block_of(PhysicalPage(owned.next));
            self.invalid[other.index()] += owned.room();
            self.room -= u64::from(owned.room());
        }
        (owned.next, owned.end) = (first + programmed, first + geometry.pages_per_block);
        self.room += u64::from(room);
    }

    /// Completes an interrupted collection before hosts take the space it needs: first one that needs no erased block,
    /// which is the interrupted one.
    fn finish_collections(&mut self) -> Result<(), TranslationError> {
        let at = self.nand.timing().instant(Time::ZERO);
        let ppb = self.nand.geometry().pages_per_block;
        for superblock in 0..self.owned.len() {
            if self.free.count() > self.settings.reserve {
                return Ok(());
            }
            let owned = &self.owned[superblock];
            let most = owned.blocks.iter().map(|block| self.invalid[block.index()]).max().unwrap_or(0);
            if most > 0 && ppb - most <= owned.room() {
                self.collect_block(superblock, at)?;
            }
        }
        while self.free.count() <= self.settings.reserve
            && let Some(victim) = self.victims.choose(0)
        {
            self.release_block(victim.index(), at)?;
        }
        Ok(())
    }
}
