//! Small syncs: an fsync of few changed bytes writes them as log records.
//!
//! A sync writes a summary anyway, which is a whole block of the device. If the changed bytes of a block fit beside its
//! records, perhaps compressed, one block is written instead of two. The file's block stays dirty, and is written later
//! with its group: once, however often it was synced in between. A mount after a crash applies the bytes to the version
//! that they changed.

use super::writer::Writer;
use crate::crc;
use crate::fs::sfs::files::Files;
use crate::fs::sfs::log::packing::Packed;
use crate::fs::sfs::log::records::{BYTES_RECORD, Record, RecordsToWrite};
use crate::fs::sfs::media::format::summary_blocks;

/// Blocks of a sync up to which it is small. In a larger one, a summary costs little beside the blocks.
const MOST: usize = 32;

/// Turns changed blocks of a sync into log records, as far as that saves blocks of the device. Leaves the others in
/// `slots`.
pub(super) fn log_small_changes(
    files: &mut Files,
    writer: &mut Writer,
    slots: &mut Vec<u32>,
    told: &mut RecordsToWrite,
) {
    if files.media.holds_stamps() || slots.len() > MOST {
        return;
    }
    let mut packed: Vec<(u32, Vec<u8>)> = Vec::with_capacity(slots.len());
    for slot in slots.iter().copied() {
        let changed = files.dirty_blocks.slot(slot).changed();
        packed.push((slot, writer.log.packer.pack(&files.dirty_blocks.bytes(slot)[changed])));
    }
    packed.sort_by_key(|(_, bytes)| bytes.len());
    let lengths: Vec<usize> = packed.iter().map(|(_, bytes)| bytes.len()).collect();
    packed.truncate(best_count(&lengths, told.len()));
    let before = writer.superblock.next_partial.get();
    for (slot, bytes) in &packed {
        let waits = *files.dirty_blocks.slot(*slot);
        let changed = waits.changed();
        if !changed.is_empty() {
            let record = Record::Bytes {
                inode: waits.inode,
                place: waits.place,
                at: changed.start as u16,
                crc: crc::crc32c(files.dirty_blocks.bytes(*slot)),
                bytes: Packed { length: changed.len() as u16, bytes },
            };
            told.add(&record, before);
        }
        files.dirty_blocks.set_logged(*slot);
    }
    slots.retain(|slot| packed.iter().all(|(logged, _)| logged != slot));
    writer.events.blocks_logged += packed.len() as u64;
}
/// The number of blocks, of those with the fewest bytes, that become log records, beside `records` bytes of others. Such
/// a block counts as half of one: it is written later, unless it is overwritten or freed before.
fn best_count(lengths: &[usize], records: usize) -> usize {
    let (mut best, mut bytes) = ((u64::MAX, 0), records);
    for count in 0..=lengths.len() {
        if let Some(length) = count.checked_sub(1).map(|last| lengths[last]) {
            bytes += BYTES_RECORD + length;
        }
        let blocks = (lengths.len() - count) as u32;
        let now = u64::from(summary_blocks(blocks, bytes) + blocks);
        best = best.min((2 * now + count as u64, count));
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sfs::media::format::BLOCK;

    /// The record of an inode.
    const RECORDS: usize = 272;

    #[test]
    fn one_block_becomes_a_record_if_it_fits_beside_the_others() {
        let most = BLOCK - 64 - RECORDS - BYTES_RECORD;
        for (length, count) in [(0, 1), (100, 1), (most, 1), (most + 1, 0), (BLOCK, 0)] {
            assert_eq!(best_count(&[length], RECORDS), count, "{length} bytes");
        }
    }

    #[test]
    fn the_blocks_with_the_fewest_bytes_become_records() {
        // A frame of a log over the ends of two blocks: the shorter part beside the other as a block.
        assert_eq!(best_count(&[1024, 3096], RECORDS), 1);
        assert_eq!(best_count(&[1500, 1500], RECORDS), 2);
        assert_eq!(best_count(&[20, 30, BLOCK, BLOCK], RECORDS), 2);
        assert_eq!(best_count(&[BLOCK; 10], RECORDS), 0);
    }

    #[test]
    fn records_are_not_added_where_they_save_nothing() {
        // Each further block of the summary takes the place of two or three blocks of text: as much, with what follows.
        assert_eq!(best_count(&[1400; 4], RECORDS), 2);
        assert_eq!(best_count(&[], RECORDS), 0);
    }
}
