//! Invariants of a mounted volume: each field by itself and against all others.
//!
//! A checksum shows that bytes are those that were written, not that they are valid: a bug or an attacker may have
//! written others. So a mount writes nothing before these checks, and checks that cost too much at mount are made where
//! the structure is used:
//!
//! | what | when |
//! |---|---|
//! | fields of a superblock, against each other and against the other copy | on reading it |
//! | its roots, counts, numbers and open segment, against the metadata files and the log | at mount |
//! | the entries of the usage file, against each other and against the blocks of the metadata files | at mount |
//! | entries of the DAT, inodes, and their in-use counts or bits | on reading their page |
//! | no live blocks in a segment that the usage file calls empty | before freeing it |
//! | targets of maps and names | on following them |
//! | all of these | fsck |

use crate::fs::sfs::media::format::INODES;
use crate::fs::sfs::media::format::usage_pages;
use crate::fs::sfs::media::format::{
    BlockBytes, DAT_ENTRIES, DatEntry, INODES_VERSION, InodeImage, LARGEST, LOST, MEMORY, NO_GROUP, Pointer,
    Superblock, UsageEntry,
};
use crate::fs::sfs::media::format::{MOST_BLOCKS, MOST_LEVELS};
use crate::fs::sfs::placement::MOST_GROUPS;
use crate::fs::volume::FileKind;
use crate::units::BLOCK_BYTES;
use zerocopy::{FromBytes, IntoBytes};

/// The result of a check; an error describes the violation.
pub(in crate::fs::sfs) type CheckResult = Result<(), String>;

pub(in crate::fs::sfs) fn ensure(is_so: bool, why: impl FnOnce() -> String) -> CheckResult {
    is_so.then_some(()).ok_or_else(why)
}

/// True for a valid group number.
fn is_group(group: u8) -> bool {
    usize::from(group) < MOST_GROUPS || group == NO_GROUP
}

/// Checks a superblock by itself. `turn`: its place, 0 or 1, on a block device.
pub(in crate::fs::sfs) fn superblock(it: &Superblock, turn: Option<u32>) -> CheckResult {
    let (segments, segment_blocks) = (it.segments.get(), it.segment_blocks.get());
    let blocks = u64::from(segments) * u64::from(segment_blocks);
    let sequence = it.sequence.get();
    ensure((1..LARGEST).contains(&sequence), || format!("its sequence number is {sequence}"))?;
    if let Some(turn) = turn {
        ensure(sequence % 2 == u64::from(turn), || format!("superblock {sequence} belongs to the other place"))?;
        let device_blocks = it.device_blocks.get();
        let fit = device_blocks.checked_div(segment_blocks.into()).and_then(|fit| fit.checked_sub(1));
        ensure(fit == Some(segments.into()), || {
            format!("{segments} segments of {segment_blocks} blocks do not fill {device_blocks} blocks")
        })?;
    }
    ensure(it.clean.get() <= LOST, || format!("its clean field is {}", it.clean))?;
    ensure(it.memories.get() as usize <= MEMORY, || format!("it has {} numbers of the grouping", it.memories))?;
    ensure((1..LARGEST).contains(&it.next_partial.get()), || format!("partial segment {} is next", it.next_partial))?;
    ensure(it.tick.get() < LARGEST, || format!("its clock of hotness shows {}", it.tick))?;
    let old = (it.open_segment.get(), it.open_block.get());
    ensure(old.1 > 0 || old == (u32::MAX, 0), || format!("segment {} is open at block 0", old.0))?;
    let ends: Vec<(u32, u32)> = it.open_ends().map(|(_, segment, block)| (segment, block)).collect();
    for (at, (segment, block)) in ends.iter().enumerate() {
        let is_open = *segment < segments && (1..segment_blocks).contains(block);
        ensure(is_open, || format!("segment {segment} is open at block {block}"))?;
        let is_shared = ends[..at].iter().any(|(other, _)| other == segment);
        ensure(!is_shared, || format!("segment {segment} is open twice"))?;
    }
    ensure(it.next_segment.get() <= segments, || format!("segment {} is next", it.next_segment.get() - 1))?;
    let inodes = it.inodes.get();
    let rooms = it.inode_file.pages.get().saturating_mul(INODES);
    // Version 1 counted allocated numbers, and its last page could be partial.
    let is_right = if it.version.get() >= INODES_VERSION { inodes == rooms } else { (2..=rooms).contains(&inodes) };
    ensure(is_right, || format!("{inodes} inodes are in {} pages", it.inode_file.pages))?;
    let orphan = it.first_orphan.get();
    ensure(orphan < inodes, || format!("the first inode without a name is {orphan} of {inodes}"))?;
    ensure((1..inodes).contains(&it.used_inodes.get()), || format!("{} of {inodes} inodes are used", it.used_inodes))?;
    let (used, entries) = (it.used_blocks.get(), it.dat.pages.get().saturating_mul(DAT_ENTRIES));
    ensure(used <= entries.saturating_sub(1), || format!("{used} of {entries} virtual blocks are used"))?;
    let pages = usage_pages(segments) as u64;
    ensure(it.usage_file.pages.get() == pages, || {
        format!("the usage file has {} pages for {segments} segments", it.usage_file.pages)
    })?;
    let roots = [("DAT", it.dat), ("inode file", it.inode_file), ("usage file", it.usage_file)];
    for (at, (name, root)) in roots.iter().enumerate() {
        let (pages, address) = (root.pages.get(), root.top.address.get());
        ensure(pages <= blocks && (pages > 0) == (address > 0) && address < blocks, || {
            format!("the {name} has {pages} pages, and its root lies at block {address} of a log of {blocks}")
        })?;
        let is_shared = roots[..at].iter().any(|(_, other)| address > 0 && other.top.address.get() == address);
        ensure(!is_shared, || format!("the root of the {name} lies where another does"))?;
    }
    Ok(())
}

/// Checks two superblocks of one checkpoint against each other. The clean field, the end of the log, the state of the
/// grouping and the superblocks' own numbers may differ.
pub(in crate::fs::sfs) fn copies(one: &Superblock, other: &Superblock) -> CheckResult {
    // Each checkpoint writes a new usage file, but the initial one has none.
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
            it.heads = Default::default();
        }
        it
    };
    ensure(common(one).as_bytes() == common(other).as_bytes(), || {
        format!("superblocks {} and {} are of one checkpoint, and differ", one.sequence, other.sequence)
    })
}

/// Checks an entry of the DAT on the media. `blocks`: blocks of the log.
pub(in crate::fs::sfs) fn dat_entry(it: &DatEntry, blocks: u64) -> CheckResult {
    if it.is_taken == 0 {
        let is_empty = (it.address, it.writes, it.modified, it.crc, it.is_lost) == Default::default();
        return ensure(is_empty && [0, NO_GROUP].contains(&it.group), || "it is free, and not empty".to_string());
    }
    ensure(it.is_taken == 1, || format!("its in-use field is {}", it.is_taken))?;
    ensure(it.address.get() < blocks, || format!("its address is block {} of a log of {blocks}", it.address))?;
    ensure(it.address.get() != 0 || it.crc.get() == 0, || "it has no address, and has a checksum".to_string())?;
    ensure(it.is_lost <= 1, || format!("its lost field is {}", it.is_lost))?;
    ensure(is_group(it.group), || format!("it was written in group {}", it.group))?;
    ensure(it.writes.get() < LARGEST && it.modified.get() < LARGEST, || {
        format!("it has {} writes, the last at {}", it.writes, it.modified)
    })
}

/// Checks the first entry, which stands for no block.
pub(in crate::fs::sfs) fn entry_zero(it: &DatEntry) -> CheckResult {
    let none = DatEntry { is_taken: 1, group: it.group, memory: it.memory, ..DatEntry::default() };
    ensure(*it == none, || "entry 0 stands for no block, and is not empty".to_string())
}

/// Checks a page of the DAT.
pub(in crate::fs::sfs) fn dat_page(page: usize, bytes: &BlockBytes, pointer: &Pointer, blocks: u64) -> CheckResult {
    let mut taken = 0;
    for (at, entry) in bytes.chunks_exact(size_of::<DatEntry>()).enumerate() {
        let entry = DatEntry::read_from_bytes(entry).expect("an entry's length");
        let number = page as u64 * DAT_ENTRIES + at as u64;
        let checked = if number == 0 { entry_zero(&entry) } else { dat_entry(&entry, blocks) };
        checked.map_err(|why| format!("virtual block {number}: {why}"))?;
        taken += u32::from(entry.is_taken);
    }
    ensure(taken == pointer.taken.get(), || {
        format!("{taken} of its entries are in use, and its pointer says {}", pointer.taken)
    })
}

/// Checks a page of the inode file. A number is allocated before its image is stored.
pub(in crate::fs::sfs) fn inode_page(page: usize, bytes: &BlockBytes, pointer: &Pointer, _: u64) -> CheckResult {
    for (at, image) in bytes.chunks_exact(size_of::<InodeImage>()).enumerate() {
        let image = InodeImage::ref_from_bytes(image).expect("an image's length");
        let number = page as u64 * INODES + at as u64;
        ensure(image.number.get() == 0 || pointer.taken.get() & (1 << at) != 0, || {
            format!("inode {number} is in use, and its pointer says it is free")
        })?;
    }
    Ok(())
}

/// Checks an inode in use, except for the rules of its kind.
pub(in crate::fs::sfs) fn inode(it: &InodeImage, number: u64) -> CheckResult {
    ensure(it.number.get() == number, || format!("its number field says inode {}", it.number))?;
    ensure(it.levels <= MOST_LEVELS, || format!("its map has {} levels", it.levels))?;
    let size = it.size.get();
    ensure(size.div_ceil(BLOCK_BYTES) <= MOST_BLOCKS, || format!("its size is {size}"))?;
    ensure(it.writes.get() < LARGEST && it.written.get() < LARGEST, || {
        format!("it has {} writes, the last at {}", it.writes, it.written)
    })?;
    match FileKind::of_number(it.kind) {
        None => Err(format!("its kind is {}", it.kind)),
        Some(FileKind::Symlink) => {
            ensure((1..BLOCK_BYTES).contains(&size), || format!("it is a symbolic link whose target has {size} bytes"))
        }
        Some(_) => Ok(()),
    }
}

/// Checks an entry of the usage file.
pub(in crate::fs::sfs) fn usage_entry(it: &UsageEntry, segment_blocks: u32) -> CheckResult {
    ensure(it.in_use <= 1 && it.is_metadata <= 1, || "its in-use or metadata field is not 0 or 1".to_string())?;
    ensure(is_group(it.group), || format!("it was written for group {}", it.group))?;
    ensure(it.live.get() < segment_blocks, || format!("{} of its {segment_blocks} blocks are live", it.live))?;
    ensure(it.in_use == 1 || it.as_bytes().iter().all(|byte| *byte == 0), || "it is free, and not empty".to_string())?;
    let sums = (it.writes.get(), it.modified.get());
    ensure(it.live.get() > 0 || sums == (0, 0), || format!("it has no live blocks, but sums {sums:?}"))?;
    ensure(it.written.get() < LARGEST && it.youngest.get() < LARGEST, || format!("it was written at {}", it.written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn an_inode_in_use_that_its_pointer_calls_free_is_refused() {
        let mut page = crate::fs::sfs::media::format::zeroed();
        let image = InodeImage { number: 2.into(), ..InodeImage::new_zeroed() };
        page[2 * size_of::<InodeImage>()..3 * size_of::<InodeImage>()].copy_from_slice(image.as_bytes());
        let said = |taken: u32| Pointer { taken: taken.into(), ..Pointer::default() };
        assert_eq!(inode_page(0, &page, &said(0b111), 0), Ok(()));
        assert_eq!(inode_page(0, &page, &said(0b1111), 0), Ok(()), "a number is allocated before its image is stored");
        let why = inode_page(0, &page, &said(0b011), 0).unwrap_err();
        assert_eq!(why, "inode 2 is in use, and its pointer says it is free");
        let why = inode_page(3, &page, &said(0), 0).unwrap_err();
        assert!(why.starts_with(&format!("inode {} ", 3 * INODES + 2)), "{why}");
    }
}
