//! The newest record of each block in the log up to the checkpoint: metadata that the checkpoint has lost is rebuilt
//! from them.

use crate::fs::sfs::log::records::Record;
use crate::fs::sfs::log::{LogReader, PartialSegment, Summary};
use crate::fs::sfs::media::format::{BlockRecord, Kind, Pointer};
use crate::fs::sfs::metadata::paged::{FANOUT, LEVEL_SHIFT};
use std::collections::BTreeMap;

/// The newest record of a block.
#[derive(Clone, Copy)]
pub(super) struct NewestRecord {
    /// The number of the partial segment that holds it.
    partial: u64,
    /// The clock of hotness when that was written.
    pub tick: u64,
    /// The address of the block.
    pub address: u64,
    pub record: BlockRecord,
}

/// The newest record of each block.
pub(super) struct NewestRecords {
    /// By kind and number. Data and metadata are numbered in one sequence, and stand under the kind of data.
    blocks: BTreeMap<(u8, u64), NewestRecord>,
    /// For a block of a metadata file's tree, by kind and number: the newest partial segment that has its holes, and a
    /// bit for each block below.
    holes: BTreeMap<(u8, u64), (u64, Vec<u8>)>,
    /// True if no summary is damaged.
    pub is_whole: bool,
}

impl NewestRecords {
    /// The newest records with numbers below `next`, which are read when they are first asked for.
    pub fn once<'a>(newest: &'a mut Option<NewestRecords>, reader: LogReader<'_>, next: u64) -> &'a NewestRecords {
        newest.get_or_insert_with(|| NewestRecords::read(reader, next))
    }

    /// Reads all partial segments with numbers below `next`.
    fn read(reader: LogReader<'_>, next: u64) -> NewestRecords {
        let mut newest = NewestRecords { blocks: BTreeMap::new(), holes: BTreeMap::new(), is_whole: true };
        for segment in 0..reader.segments() {
            for (_, summary) in reader.walk(segment, 0) {
                match summary {
                    Summary::Valid(partial) if partial.number() < next => newest.add(&partial, reader),
                    // It is of the log since the checkpoint.
                    Summary::Valid(_) | Summary::Nothing => break,
                    Summary::Foreign(PartialSegment { header, .. }) | Summary::Broken(header) => {
                        newest.is_whole &= !(1..next).contains(&header.sequence.get());
                    }
                    Summary::Unreadable(_) => newest.is_whole = false,
                }
            }
        }
        newest
    }

    fn add(&mut self, partial: &PartialSegment, reader: LogReader<'_>) {
        for (block, record) in partial.blocks() {
            let (address, tick) = (reader.address(partial.segment, block), partial.header.tick.get());
            let its = NewestRecord { partial: partial.number(), tick, address, record };
            let kind = if record.kind == Kind::Metadata as u8 { Kind::Data as u8 } else { record.kind };
            let newest = self.blocks.entry((kind, record.number.get())).or_insert(its);
            if newest.partial < its.partial {
                *newest = its;
            }
        }
        for (_, record) in partial.records() {
            let Record::Holes { kind, number, holes } = record else { continue };
            let newest = self.holes.entry((kind, number)).or_default();
            if newest.0 < partial.number() {
                *newest = (partial.number(), holes.to_vec());
            }
        }
    }

    /// The newest record of a virtual block.
    pub fn of_virtual_block(&self, number: u64) -> Option<NewestRecord> {
        self.blocks.get(&(Kind::Data as u8, number)).copied()
    }

    /// The pointer to a block of a metadata file. `None` if it is a hole, or if not all summaries are whole.
    pub fn pointer(&self, kind: Kind, number: u64) -> Option<Pointer> {
        let newest = self.blocks.get(&(kind as u8, number)).filter(|_| self.is_whole)?;
        let (level, block) = ((number >> LEVEL_SHIFT) + 1, number & ((1 << LEVEL_SHIFT) - 1));
        let (above, at) = ((level << LEVEL_SHIFT) | (block / FANOUT as u64), block as usize % FANOUT);
        if let Some((partial, holes)) = self.holes.get(&(kind as u8, above))
            && newest.partial < *partial
            && holes.get(at / 8).is_some_and(|holes| holes & (1 << (at % 8)) != 0)
        {
            return None;
        }
        Some(Pointer { address: newest.address.into(), crc: newest.record.crc, taken: 0.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sfs::log::test_log::{TestLog, TestPartialSegment};

    #[test]
    fn the_newest_record_of_a_block_counts_wherever_its_partial_segment_lies() {
        let log = TestLog::empty();
        // Both hold virtual blocks 500 and 501; the second one is newer.
        log.write(4, 0, &TestPartialSegment { first_block: 500, ..TestPartialSegment::numbered(9, 0) });
        log.write(7, 0, &TestPartialSegment { first_block: 500, ..TestPartialSegment::numbered(6, 0) });
        let newest = NewestRecords::read(log.reader(), 20);
        assert!(newest.is_whole);
        let its = newest.of_virtual_block(501).unwrap();
        assert_eq!((its.partial, its.address), (9, log.reader().address(4, 2)));
        // One that was written since the checkpoint does not count.
        assert_eq!(NewestRecords::read(log.reader(), 9).of_virtual_block(501).unwrap().partial, 6);
    }

    #[test]
    fn a_damaged_summary_of_before_the_checkpoint_leaves_the_records_in_doubt() {
        for (number, is_whole) in [(5, false), (30, true)] {
            let log = TestLog::empty();
            log.write(4, 0, &TestPartialSegment::numbered(number, 0));
            log.flip(4, 0, 100);
            assert_eq!(NewestRecords::read(log.reader(), 20).is_whole, is_whole, "{number}");
        }
    }
}
