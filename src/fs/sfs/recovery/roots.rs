//! The roots of the metadata files against their trees: the number of pages in a superblock.
//!
//! The number of pages gives the levels of the tree. If it is wrong, a page is read as pointers, or pointers as a page,
//! all with right checksums. So the level is taken from the block record of the highest block, and the number of pages
//! from the pointers: a checkpoint cuts off empty pages at the end.

use super::finding::{Finding, Structure};
use crate::fs::sfs::log::{LogReader, Summary};
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{Kind, Root};
use crate::fs::sfs::metadata::paged::{FANOUT, LEVEL_SHIFT, PagedFile};
use std::sync::Arc;

/// The name of a metadata file.
pub(super) fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Dat => "DAT",
        Kind::InodeFile => "inode file",
        _ => "usage file",
    }
}

/// Answers a root with the number of pages that its tree has, and a finding if that is another number.
pub(super) fn correct_root(
    media: &Arc<Media>,
    reader: LogReader<'_>,
    kind: Kind,
    root: &Root,
) -> (Root, Option<Finding>) {
    let Some(pages) = pages_of_tree(media, reader, kind, root).filter(|pages| *pages != root.pages.get()) else {
        return (*root, None);
    };
    let name = name_of(kind);
    let found = format!("it is said to have {} pages", root.pages);
    let place = format!("the root of the {name}");
    let expected = format!("{pages}, as its tree has");
    let finding = Finding::new(Structure::Superblock, place, found, expected, "the number is put right");
    (Root { pages: pages.into(), ..*root }, Some(finding))
}

/// Pages of a metadata file by its tree. If the root has more for the same level, those are empty, and count.
/// `None` if no block record has the level.
fn pages_of_tree(media: &Arc<Media>, reader: LogReader<'_>, kind: Kind, root: &Root) -> Option<u64> {
    let reach = |level: u32| (FANOUT as u64).saturating_pow(level);
    let level = level_of_root(reader, kind, root)?;
    let least = level.checked_sub(1).map_or(1, |below| reach(below) + 1);
    let most = reach(level).min(media.log_blocks());
    let whole = Root { pages: most.into(), ..*root };
    let (tree, _) = PagedFile::open_in_part(reader.task(), name_of(kind), &whole, media, &mut |_| None).ok()?;
    let pages = tree.addresses().filter(|(number, _)| number >> LEVEL_SHIFT == 0).map(|(page, _)| page + 1);
    let used = pages.max().unwrap_or(0).max(least);
    let pages = root.pages.get();
    Some(if pages <= most { pages.max(used) } else { used })
}

/// The level of the highest block of a metadata file, by its block record. `None` if no summary that can be read
/// describes that block with this checksum.
fn level_of_root(reader: LogReader<'_>, kind: Kind, root: &Root) -> Option<u32> {
    let (address, segment_blocks) = (root.top.address.get(), u64::from(reader.segment_blocks()));
    if address == 0 || address >= reader.log_blocks() {
        return None;
    }
    let (segment, block) = ((address / segment_blocks) as u32, (address % segment_blocks) as u32);
    // A summary lies before its blocks. The volume's number in the superblock may be wrong, too.
    let record = (1..=block).find_map(|back| match reader.at(segment, block - back) {
        Summary::Valid(partial) | Summary::Foreign(partial) => {
            partial.blocks().find(|(at, _)| *at == block).map(|(_, record)| record)
        }
        Summary::Broken(_) | Summary::Nothing | Summary::Unreadable(_) => None,
    })?;
    let is_its = record.kind == kind as u8 && record.crc == root.top.crc;
    is_its.then_some((record.number.get() >> LEVEL_SHIFT) as u32)
}
