//! What must hold of a mounted volume: each field of each structure, by itself and against all others.
//!
//! A checksum says that bytes are those that were written, and not that they make sense: a bug, or somebody with a
//! purpose, may have written others. So nothing is written before this is known, and what is too much to look at when
//! a large volume is mounted is looked at where it is used:
//!
//! | what | when |
//! |---|---|
//! | fields of a superblock, against its own others and against its copy | when it is read |
//! | its roots, counts, numbers and open segment, against the metadata files and the log | at mount |
//! | the entries of the usage file, against each other and against the blocks of the metadata files | at mount |
//! | entries of the DAT, inodes, and which are said to be in use | when their page is read |
//! | that nothing lives in a segment that usage calls empty | before it is freed |
//! | what a map or a name leads to | when it is followed |
//! | all of it | fsck |

use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::format::usage_pages;
use crate::fs::sfs::media::format::{
    BlockBytes, DAT_ENTRIES, DatEntry, InodeImage, LARGEST, LOST, MEMORY, NO_GROUP, Pointer, Superblock, UsageEntry,
    VERSION,
};
use crate::fs::sfs::media::format::{MOST_BLOCKS, MOST_LEVELS};
use crate::fs::sfs::placement::MOST_GROUPS;
use crate::fs::volume::FileKind;
use crate::units::BLOCK_BYTES;
use zerocopy::{FromBytes, IntoBytes};

/// What holds, or what does not.
pub(in crate::fs::sfs) type Holds = Result<(), String>;

pub(in crate::fs::sfs) fn holds(is_so: bool, why: impl FnOnce() -> String) -> Holds {
    is_so.then_some(()).ok_or_else(why)
}

/// A group that a block can be written in.
fn is_group(group: u8) -> bool {
    usize::from(group) < MOST_GROUPS || group == NO_GROUP
}

/// What must hold of a superblock by itself. `turn`: in which of the two places it was found, on a device of blocks.
pub(in crate::fs::sfs) fn superblock(it: &Superblock, turn: Option<u32>) -> Holds {
    let (segments, segment_blocks) = (it.segments.get(), it.segment_blocks.get());
    let blocks = u64::from(segments) * u64::from(segment_blocks);
    let sequence = it.sequence.get();
    holds((1..LARGEST).contains(&sequence), || format!("its number is {sequence}"))?;
    if let Some(turn) = turn {
        holds(sequence % 2 == u64::from(turn), || format!("number {sequence} belongs to the other place"))?;
        let device_blocks = it.device_blocks.get();
        let fit = device_blocks.checked_div(segment_blocks.into()).and_then(|fit| fit.checked_sub(1));
        holds(fit == Some(segments.into()), || {
            format!("{segments} segments of {segment_blocks} blocks do not fill {device_blocks} blocks")
        })?;
    }
    holds(it.clean.get() <= LOST, || format!("it is neither unmounted nor not, but {}", it.clean))?;
    holds(it.memories.get() as usize <= MEMORY, || format!("it has {} numbers of the grouping", it.memories))?;
    holds((1..LARGEST).contains(&it.next_partial.get()), || format!("partial segment {} is next", it.next_partial))?;
    holds(it.tick.get() < LARGEST, || format!("its clock of hotness shows {}", it.tick))?;
    let (open, open_block) = (it.open_segment.get(), it.open_block.get());
    let is_open = open < segments && (1..segment_blocks).contains(&open_block);
    holds(is_open || (open, open_block) == (u32::MAX, 0), || format!("segment {open} is open at block {open_block}"))?;
    holds(it.next_segment.get() <= segments, || format!("segment {} is next", it.next_segment.get() - 1))?;
    let inodes = it.inodes.get();
    let rooms = it.inode_file.pages.get().saturating_mul(INODES);
    // Version 1 counted the numbers that had been given out, and wrote less than whole pages of them.
    let is_right = if it.version.get() == VERSION { inodes == rooms } else { (2..=rooms).contains(&inodes) };
    holds(is_right, || format!("{inodes} inodes are in {} pages", it.inode_file.pages))?;
    let orphan = it.first_orphan.get();
    holds(orphan < inodes, || format!("the first inode without a name is {orphan} of {inodes}"))?;
    holds((1..inodes).contains(&it.used_inodes.get()), || format!("{} of {inodes} inodes are used", it.used_inodes))?;
    let (used, entries) = (it.used_blocks.get(), it.dat.pages.get().saturating_mul(DAT_ENTRIES));
    holds(used <= entries.saturating_sub(1), || format!("{used} of {entries} virtual blocks are used"))?;
    let pages = usage_pages(segments) as u64;
    holds(it.usage_file.pages.get() == pages, || {
        format!("the usage file has {} pages for {segments} segments", it.usage_file.pages)
    })?;
    let roots = [("DAT", it.dat), ("inode file", it.inode_file), ("usage file", it.usage_file)];
    for (at, (name, root)) in roots.iter().enumerate() {
        let (pages, address) = (root.pages.get(), root.top.address.get());
        holds(pages <= blocks && (pages > 0) == (address > 0) && address < blocks, || {
            format!("the {name} has {pages} pages, and its root lies at block {address} of a log of {blocks}")
        })?;
        let is_shared = roots[..at].iter().any(|(_, other)| address > 0 && other.top.address.get() == address);
        holds(!is_shared, || format!("the root of the {name} lies where another does"))?;
    }
    Ok(())
}

/// What two superblocks of one checkpoint must have in common. Whether it was unmounted, where the log goes on, what
/// the grouping remembers, and numbers of the superblocks themselves may differ.
pub(in crate::fs::sfs) fn copies(one: &Superblock, other: &Superblock) -> Holds {
    // Each checkpoint writes the usage file anew, where the one before it has nothing.
    let has_same_end = (one.next_partial, one.chain) == (other.next_partial, other.chain);
    if !has_same_end && one.usage_file.top.address != other.usage_file.top.address {
        return Ok(());
    }
    let common = |it: &Superblock| {
        let mut it = *it;
        (it.sequence, it.crc, it.memories, it.tick) = Default::default();
        it.memory = [0.0.into(); MEMORY];
        if one.clean != other.clean {
            (it.clean, it.open_segment, it.open_block, it.next_segment) = Default::default();
        }
        it
    };
    holds(common(one).as_bytes() == common(other).as_bytes(), || {
        format!("superblocks {} and {} are of one checkpoint, and say different things", one.sequence, other.sequence)
    })
}

/// What must hold of an entry of the DAT, as it lies on the media. `blocks`: those of the log.
pub(in crate::fs::sfs) fn dat_entry(it: &DatEntry, blocks: u64) -> Holds {
    if it.is_taken == 0 {
        let is_empty = (it.address, it.writes, it.modified, it.crc, it.is_lost) == Default::default();
        return holds(is_empty && [0, NO_GROUP].contains(&it.group), || "it is free, and not empty".to_string());
    }
    holds(it.is_taken == 1, || format!("it is neither free nor taken, but {}", it.is_taken))?;
    holds(it.address.get() < blocks, || format!("it lies at block {} of a log of {blocks}", it.address))?;
    holds(it.address.get() != 0 || it.crc.get() == 0, || "it lies nowhere, and has a checksum".to_string())?;
    holds(it.is_lost <= 1, || format!("it is neither lost nor not, but {}", it.is_lost))?;
    holds(is_group(it.group), || format!("it was written in group {}", it.group))?;
    holds(it.writes.get() < LARGEST && it.modified.get() < LARGEST, || {
        format!("it has {} writes, the last at {}", it.writes, it.modified)
    })
}

/// What must hold of the first entry, which stands for no block.
pub(in crate::fs::sfs) fn entry_of_none(it: &DatEntry) -> Holds {
    let none = DatEntry { is_taken: 1, group: it.group, reserved: it.reserved, ..DatEntry::default() };
    holds(*it == none, || "it stands for no block, and is one".to_string())
}

/// What must hold of a page of the DAT.
pub(in crate::fs::sfs) fn dat_page(page: usize, bytes: &BlockBytes, pointer: &Pointer, blocks: u64) -> Holds {
    let mut taken = 0;
    for (at, entry) in bytes.chunks_exact(size_of::<DatEntry>()).enumerate() {
        let entry = DatEntry::read_from_bytes(entry).expect("an entry's length");
        let number = page as u64 * DAT_ENTRIES + at as u64;
        let holds = if number == 0 { entry_of_none(&entry) } else { dat_entry(&entry, blocks) };
        holds.map_err(|why| format!("virtual block {number}: {why}"))?;
        taken += u32::from(entry.is_taken);
    }
    holds(taken == pointer.taken.get(), || format!("{taken} of its entries are taken, and not {}", pointer.taken))
}

/// What must hold of a page of the inode file. The numbers of new inodes are given out before their images are there.
pub(in crate::fs::sfs) fn inode_page(page: usize, bytes: &BlockBytes, pointer: &Pointer, _: u64) -> Holds {
    for (at, image) in bytes.chunks_exact(size_of::<InodeImage>()).enumerate() {
        let image = InodeImage::ref_from_bytes(image).expect("an image's length");
        let number = page as u64 * INODES + at as u64;
        holds(image.number.get() == 0 || pointer.taken.get() & (1 << at) != 0, || {
            format!("inode {number} is in use, and its number is said to be free")
        })?;
    }
    Ok(())
}

/// What must hold of an inode that is in use, besides what its kind must be.
pub(in crate::fs::sfs) fn inode(it: &InodeImage, number: u64) -> Holds {
    holds(it.number.get() == number, || format!("it says it is inode {}", it.number))?;
    holds(it.levels <= MOST_LEVELS, || format!("its map has {} levels", it.levels))?;
    let size = it.size.get();
    holds(size.div_ceil(BLOCK_BYTES) <= MOST_BLOCKS, || format!("its size is {size}"))?;
    holds(it.writes.get() < LARGEST && it.written.get() < LARGEST, || {
        format!("it has {} writes, the last at {}", it.writes, it.written)
    })?;
    match FileKind::of_number(it.kind) {
        None => Err(format!("its kind is {}", it.kind)),
        Some(FileKind::Symlink) => {
            holds((1..BLOCK_BYTES).contains(&size), || format!("it is a symbolic link whose target has {size} bytes"))
        }
        Some(_) => Ok(()),
    }
}

/// What must hold of an entry of the usage file.
pub(in crate::fs::sfs) fn usage_entry(it: &UsageEntry, segment_blocks: u32) -> Holds {
    holds(it.in_use <= 1 && it.is_metadata <= 1, || "it is neither free nor in use, or holds neither".to_string())?;
    holds(is_group(it.group), || format!("it was written for group {}", it.group))?;
    holds(it.live.get() < segment_blocks, || format!("{} of its {segment_blocks} blocks live", it.live))?;
    holds(it.in_use == 1 || it.as_bytes().iter().all(|byte| *byte == 0), || "it is free, and not empty".to_string())?;
    let sums = (it.writes.get(), it.modified.get());
    holds(it.live.get() > 0 || sums == (0, 0), || format!("nothing lives there, with sums {sums:?}"))?;
    holds(it.written.get() < LARGEST && it.youngest.get() < LARGEST, || format!("it was written at {}", it.written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn an_inode_in_use_whose_number_is_said_to_be_free_is_refused() {
        let mut page = crate::fs::sfs::media::format::zeroed();
        let image = InodeImage { number: 2.into(), ..InodeImage::new_zeroed() };
        page[2 * size_of::<InodeImage>()..3 * size_of::<InodeImage>()].copy_from_slice(image.as_bytes());
        let said = |taken: u32| Pointer { taken: taken.into(), ..Pointer::default() };
        assert_eq!(inode_page(0, &page, &said(0b111), 0), Ok(()));
        assert_eq!(inode_page(0, &page, &said(0b1111), 0), Ok(()), "a number is given out before its image is stored");
        let why = inode_page(0, &page, &said(0b011), 0).unwrap_err();
        assert_eq!(why, "inode 2 is in use, and its number is said to be free");
        let why = inode_page(3, &page, &said(0), 0).unwrap_err();
        assert!(why.starts_with(&format!("inode {} ", 3 * INODES + 2)), "{why}");
    }
}
