//! The blocks at which a journal is recognised: its own superblock, and the marker that replaces it on the device.
//!
//! ```text
//! jbd2 superblock   0 be32 magic 0xC03B3998   4 be32 type 3 or 4   12 be32 bytes of a block   16 be32 blocks of the journal
//! marker            0 magic "FLPHMARK"   8 [16] id of the hold   24 u64 own block   32 text   4092 u32 CRC-32C of the rest
//! ```
//!
//! The marker is no superblock of a journal. So the kernel does not mount the file system, and e2fsck does not replay an
//! older state of the journal, which would leave the file system inconsistent without a message.

use crate::crc::crc32c;
use crate::device::Lba;
use crate::units::BLOCK_BYTES;
use std::ops::Range;

const BLOCK: usize = BLOCK_BYTES as usize;
const JBD2_MAGIC: u32 = 0xC03B_3998;
/// The types of a jbd2 superblock: version 1 and 2.
const JBD2_SUPERBLOCKS: [u32; 2] = [3, 4];
const MARKER_MAGIC: &[u8; 8] = b"FLPHMARK";
const MARKER_TEXT: &[u8] =
    b"A server of flashpath holds this journal in its memory (station hold-journal). If no server runs, \
the journal is in the spill file of the last one, or lost. After a loss: e2fsck -f -y\n";

/// The number that a marker and a spill file share.
pub(super) type HoldId = [u8; 16];

/// Blocks of 4 KiB of the journal whose superblock this block holds; `None` if it holds none.
pub(super) fn journal_blocks(block: &[u8]) -> Option<u64> {
    let word = |at: usize| u32::from_be_bytes(block[at..at + 4].try_into().expect("four bytes"));
    let is_superblock = word(0) == JBD2_MAGIC && JBD2_SUPERBLOCKS.contains(&word(4));
    let bytes = u64::from(word(12)) * u64::from(word(16));
    (is_superblock && bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES)).then_some(bytes / BLOCK_BYTES)
}

/// The marker at `place`.
pub(super) fn marker(id: &HoldId, place: Lba) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    block[..8].copy_from_slice(MARKER_MAGIC);
    block[8..24].copy_from_slice(id);
    block[24..32].copy_from_slice(&place.0.to_le_bytes());
    block[32..32 + MARKER_TEXT.len()].copy_from_slice(MARKER_TEXT);
    let sum = crc32c(&block[..BLOCK - 4]);
    block[BLOCK - 4..].copy_from_slice(&sum.to_le_bytes());
    block
}

/// The id in a block that begins as a marker does. The id of a damaged one, or of one at another place, is zero: it fits
/// no spill file.
pub(super) fn marker_id(block: &[u8], place: Lba) -> Option<HoldId> {
    if &block[..8] != MARKER_MAGIC {
        return None;
    }
    let id: HoldId = block[8..24].try_into().expect("sixteen bytes");
    Some(if marker(&id, place) == block { id } else { HoldId::default() })
}

/// The places of journals' superblocks in ranges of journal blocks, by the content of blocks.
///
/// A journal's superblock is its first block or, on an external journal device, the second. An error if the journals of
/// these superblocks are not exactly as large as the ranges: parts of a journal would be held, and others not.
pub(super) fn superblocks<E>(
    ranges: &[Range<Lba>],
    mut read: impl FnMut(Lba) -> Result<Vec<u8>, E>,
) -> Result<Result<Vec<Lba>, String>, E> {
    let (mut found, mut blocks) = (Vec::new(), 0);
    for range in ranges {
        for place in [range.start, range.start + 1].into_iter().filter(|place| *place < range.end) {
            if let Some(count) = journal_blocks(&read(place)?) {
                found.push(place);
                blocks += count;
                break;
            }
        }
    }
    let there: u64 = ranges.iter().map(|range| range.end.0 - range.start.0).sum();
    if found.is_empty() && there > 0 {
        return Ok(Err(format!("no journal of ext3 or ext4 begins at block {}", ranges[0].start.0)));
    }
    if blocks != there {
        return Ok(Err(format!("its superblock counts {blocks} blocks of 4K, and {there} whole ones belong to it")));
    }
    Ok(Ok(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock(block_bytes: u32, blocks: u32) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        for (at, word) in [(0, JBD2_MAGIC), (4, 4), (12, block_bytes), (16, blocks)] {
            block[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        block
    }

    #[test]
    fn a_marker_is_read_at_its_own_place_only_and_any_damage_voids_it() {
        let id = *b"0123456789abcdef";
        let whole = marker(&id, Lba(7));
        assert_eq!(marker_id(&whole, Lba(7)), Some(id));
        assert_eq!(marker_id(&whole, Lba(8)), Some([0; 16]));
        assert_eq!(journal_blocks(&whole), None);
        for byte in (8..BLOCK).step_by(5) {
            let mut torn = whole.clone();
            torn[byte] ^= 1;
            assert_eq!(marker_id(&torn, Lba(7)), Some([0; 16]), "byte {byte}");
        }
        assert_eq!(marker_id(&vec![0; BLOCK], Lba(7)), None);
    }

    #[test]
    fn superblocks_are_found_if_their_journals_fill_the_ranges() {
        let find = |ranges: &[(u64, u64)], there: &[(u64, Vec<u8>)]| {
            let ranges: Vec<_> = ranges.iter().map(|(start, end)| Lba(*start)..Lba(*end)).collect();
            let read = |place: Lba| -> Result<Vec<u8>, ()> {
                let known = there.iter().find(|(at, _)| *at == place.0);
                Ok(known.map_or(vec![0; BLOCK], |(_, block)| block.clone()))
            };
            superblocks(&ranges, read).unwrap()
        };
        // One, one in two fragments, two, an external one.
        assert_eq!(find(&[(8, 1032)], &[(8, superblock(4096, 1024))]), Ok(vec![Lba(8)]));
        assert_eq!(find(&[(8, 520), (600, 1112)], &[(600, superblock(4096, 1024))]), Ok(vec![Lba(600)]));
        let two = [(8, superblock(1024, 256)), (100, superblock(4096, 30))];
        assert_eq!(find(&[(8, 72), (100, 130)], &two), Ok(vec![Lba(8), Lba(100)]));
        assert_eq!(find(&[(0, 1024)], &[(1, superblock(4096, 1024))]), Ok(vec![Lba(1)]));
        assert_eq!(find(&[], &[]), Ok(vec![]));
        for there in [
            (8, superblock(4096, 1023)),
            (9, superblock(1024, 1024)),
            (8, superblock(1024, 1023)),
            (8, superblock(0, 0)),
            (10, superblock(4096, 1024)),
        ] {
            assert!(find(&[(8, 1032)], &[there]).is_err());
        }
    }
}
