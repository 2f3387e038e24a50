//! Rebuilds the map after a power cut, from the spare areas of the flash.

use super::{PageLevel, PageMap, Streams, collection};
use crate::device::nand::{EraseBlock, PhysicalPage, Timing};
use crate::label::Cause;
use crate::time::Time;
use crate::translation::free_blocks::FoundBlock;
use crate::translation::{TranslationError, UNMAPPED, newest_versions, settle_open_pages};

/// Rebuilds all state that was in RAM.
pub fn rebuilt<T: Timing, M: PageMap>(lost: PageLevel<T, M>) -> Result<PageLevel<T, M>, TranslationError> {
    let PageLevel { mut nand, settings, map, seed, .. } = lost;
    nand.lose_due_blocks();
    settle_open_pages(&mut nand, !settings.fills_before_erase)?;
    let mut drive = PageLevel::without_blocks(nand, &settings, map, seed);
    // The counts are lost, too: they continue from the flash's.
    drive.sent = drive.nand.counts_after_power_cut().programmed.clone();
    drive.written = drive.sent.total();
    let places = newest_versions(&drive.nand, drive.map.pages());
    for place in places.iter().filter(|&&place| place != UNMAPPED) {
        drive.valid.set(PhysicalPage(*place));
    }
    drive.map.rebuilt(places);
    let geometry = *drive.nand.geometry();
    let mut partly_programmed = Vec::new();
    for block in (0..geometry.blocks).map(EraseBlock) {
        drive.stream_of_block[block.index()] = stream_of(&drive, block) as u8;
        let programmed = drive.nand.programmed_pages()[block.index()];
        match found(&mut drive, block) {
            FoundBlock::Erased => {}
            FoundBlock::WornOut => drive.retired += 1,
            FoundBlock::Bad => add_bad(&mut drive, block),
            FoundBlock::Programmed if programmed < drive.nand.pages_of(block) => {
                partly_programmed.push((programmed, block));
            }
            FoundBlock::Programmed => close(&mut drive, block),
        }
    }
    reopen(&mut drive, partly_programmed);
    if let Some(cache) = &mut drive.cache {
        // In the order in which they were written.
        cache.sort_closed(|block| drive.nand.found(block).next().map_or((0, 0), |found| found.sequence));
    }
    let made_room = make_room(&mut drive);
    drive.or_read_only(made_room)?;
    drive.check_spare_blocks();
    Ok(drive)
}

/// Frees the space that the drive keeps erased, as far as it can.
fn make_room<T: Timing, M: PageMap>(drive: &mut PageLevel<T, M>) -> Result<(), TranslationError> {
    let pages_per_block = u64::from(drive.nand.geometry().pages_per_block);
    let at = drive.nand.timing().instant(Time::ZERO);
    if drive.planes.is_some() {
        return (0..drive.nand.geometry().units()).try_for_each(|plane| make_room_on(drive, plane, at));
    }
    // Completes an interrupted collection before hosts take the space it needs. Its victim is the emptiest block;
    // whatever the policy, that is the one that fits.
    while drive.free.count() == 0
        && let Some(victim) = emptiest(drive, |_, _| true)
    {
        if drive.nand.is_slc(victim) {
            drive.fold_first(victim, at)?;
        } else {
            drive.collect(victim, Cause::GarbageCollection, at)?;
        }
    }
    while drive.free.count() <= drive.settings.reserve && !drive.is_read_only() {
        if drive.fold_for_space(at)?.is_some() {
            continue;
        }
        if drive.victims.invalid_in_candidates() < pages_per_block {
            break;
        }
        drive.collect_one(at)?;
    }
    drive.write_moved(Cause::Mapping, at)?;
    Ok(())
}

/// Frees the space that a plane keeps erased, as far as it can: first for an interrupted collection, as [`make_room`].
fn make_room_on<T: Timing, M: PageMap>(
    drive: &mut PageLevel<T, M>,
    plane: u32,
    at: T::Moment,
) -> Result<(), TranslationError> {
    let on_plane = |drive: &PageLevel<T, M>, block| drive.nand.geometry().unit_of(block) == plane;
    while drive.free.count_of(plane as usize) == 0
        && let Some(victim) = emptiest(drive, on_plane)
    {
        drive.collect(victim, Cause::GarbageCollection, at)?;
    }
    let pages_per_block = u64::from(drive.nand.geometry().pages_per_block);
    let has_gain = drive.victims.invalid_on(plane as usize) >= pages_per_block;
    if has_gain { collection::make_room_on(drive, plane, at) } else { Ok(()) }
}

/// Adds a bad block that holds pages. Valid ones are to be moved.
fn add_bad<T: Timing, M: PageMap>(drive: &mut PageLevel<T, M>, block: EraseBlock) {
    drive.retired += 1;
    let holds_valid = drive.valid.words_of(block).any(|word| drive.valid.word(word) != 0);
    if let Some(upkeep) = drive.upkeep.as_mut().filter(|_| holds_valid) {
        upkeep.add_bad(block);
    }
}

/// Adds an erased block to those of the drive or of its cache, and counts one in SLC mode. Returns the state of the block; one
/// that the cache keeps is none of the drive's, and is told as erased.
fn found<T: Timing, M: PageMap>(drive: &mut PageLevel<T, M>, block: EraseBlock) -> FoundBlock {
    let Some(cache) = drive.cache.as_mut().filter(|_| drive.nand.is_slc(block)) else {
        return drive.free.put_found(block, &drive.nand);
    };
    if drive.nand.programmed_pages()[block.index()] > 0 {
        cache.has_taken();
        return FoundBlock::Programmed;
    }
    if !cache.owns(block) {
        drive.nand.set_slc(block, false);
        return drive.free.put_found(block, &drive.nand);
    }
    if cache.free().put_found(block, &drive.nand) == FoundBlock::WornOut {
        cache.retire();
    }
    FoundBlock::Erased
}

/// The stream of a block's first page. Hints are not on flash: such blocks count as the first stream's.
fn stream_of<T: Timing, M: PageMap>(drive: &PageLevel<T, M>, block: EraseBlock) -> usize {
    let Some(first) = drive.nand.found(block).next() else { return 0 };
    if u64::from(first.spare.logical_page().0) >= drive.settings.exported_pages {
        return drive.settings.streams.count();
    }
    if drive.settings.streams == Streams::Content { first.spare.content() as usize } else { 0 }
}

/// Closes a block: all its pages that are not valid are invalid.
fn close<T: Timing, M: PageMap>(drive: &mut PageLevel<T, M>, block: EraseBlock) {
    let valid: u32 = drive.valid.words_of(block).map(|word| drive.valid.word(word).count_ones()).sum();
    for _ in valid..drive.nand.pages_of(block) {
        drive.victims.invalidate(block, &drive.stream_of_block, 0);
    }
    drive.close(block);
}

/// Reopens blocks that were open. Those with the most space take copies: the interrupted collection then finds at least
/// the space it had.
fn reopen<T: Timing, M: PageMap>(drive: &mut PageLevel<T, M>, mut blocks: Vec<(u32, EraseBlock)>) {
    blocks.sort_unstable();
    let geometry = *drive.nand.geometry();
    for (programmed, block) in blocks {
        let stream = drive.stream_of_block[block.index()] as usize;
        let own_plane = geometry.unit_of(block);
        let others = if drive.planes.is_some() { 1 } else { geometry.units() };
        let planes = || (0..others).map(|step| (own_plane + step) % geometry.units());
        let (part, is_slc) = ((programmed, drive.nand.usable_pages(block)), drive.nand.is_slc(block));
        // Copies do not go to blocks in SLC mode.
        let copies = drive.copies.get_mut(stream).filter(|_| !is_slc);
        let taken = copies.is_some_and(|copies| planes().any(|p| copies.reopen(p, block, part, &geometry)))
            || planes().any(|p| drive.host[stream].reopen(p, block, part, &geometry));
        if taken {
            // Its invalid pages are counted, as before the cut.
            let first = geometry.first_page(block).0;
            let invalid = (first..first + programmed).filter(|&page| !drive.valid.contains(PhysicalPage(page))).count();
            for _ in 0..invalid {
                drive.victims.invalidate(block, &drive.stream_of_block, 0);
            }
        } else {
            close(drive, block);
        }
    }
}

/// The candidate with the fewest valid pages, of those that `is_asked` for; also of the blocks that a dynamic cache gives back.
fn emptiest<T: Timing, M: PageMap>(
    drive: &PageLevel<T, M>,
    is_asked: impl Fn(&PageLevel<T, M>, EraseBlock) -> bool,
) -> Option<EraseBlock> {
    let blocks = (0..drive.nand.geometry().blocks).map(EraseBlock).filter(|block| is_asked(drive, *block));
    let candidates = blocks.filter_map(|block| Some((drive.victims.invalid_in(block, &drive.stream_of_block)?, block)));
    let whole = drive.nand.geometry().pages_per_block;
    let of_cache = drive.cache.iter().flat_map(|cache| cache.closed().iter().filter(|block| !cache.owns(**block)));
    let of_cache = of_cache.map(|&block| {
        let valid: u32 = drive.valid.words_of(block).map(|word| drive.valid.word(word).count_ones()).sum();
        (whole - valid, block)
    });
    candidates.chain(of_cache).max().filter(|(invalid, _)| *invalid > 0).map(|(_, block)| block)
}
