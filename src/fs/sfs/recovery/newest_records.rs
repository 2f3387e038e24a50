//! What the log says of each block, the newest alone: with it, what a checkpoint has lost is found again.

use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::format::{BlockRecord, Kind, Pointer};
use crate::fs::sfs::log::{PartialSegment, Summary};
use crate::fs::sfs::paged::{FANOUT, LEVEL_SHIFT};
use crate::fs::sfs::records::Record;
use crate::task::Task;
use std::collections::BTreeMap;

/// The newest block record of a block.
#[derive(Clone, Copy)]
pub(super) struct Told {
    sequence: u64,
    pub tick: u64,
    pub address: u64,
    pub record: BlockRecord,
}

/// What the log says of each block, the newest alone.
pub(super) struct Log {
    /// By kind and number.
    pub blocks: BTreeMap<(u8, u64), Told>,
    /// Of a block of a metadata file's tree: the partial segment that last told which blocks below are holes, and which.
    holes: BTreeMap<(u8, u64), (u64, Vec<u8>)>,
    /// Whether all its summaries are whole.
    pub is_whole: bool,
}

impl Log {
    /// Where a block of a metadata file lies.
    pub fn pointer(&self, kind: Kind, number: u64) -> Option<Pointer> {
        let told = self.blocks.get(&(kind as u8, number)).filter(|_| self.is_whole)?;
        let (level, block) = ((number >> LEVEL_SHIFT) + 1, number & ((1 << LEVEL_SHIFT) - 1));
        let (above, at) = ((level << LEVEL_SHIFT) | (block / FANOUT as u64), block as usize % FANOUT);
        if let Some((sequence, holes)) = self.holes.get(&(kind as u8, above))
            && told.sequence < *sequence
            && holes.get(at / 8).is_some_and(|holes| holes & (1 << (at % 8)) != 0)
        {
            return None;
        }
        Some(Pointer { address: told.address.into(), crc: told.record.crc, taken: 0.into() })
    }
}

impl Log {
    fn add(&mut self, partial: &PartialSegment, segment_blocks: u64) {
        for (block, record) in partial.blocks() {
            let address = u64::from(partial.segment) * segment_blocks + u64::from(block);
            let told = Told { sequence: partial.number(), tick: partial.header.tick.get(), address, record };
            // Virtual blocks are numbered in one sequence, whatever they hold.
            let kind = if record.kind == Kind::Metadata as u8 { Kind::Data as u8 } else { record.kind };
            let newest = self.blocks.entry((kind, record.number.get())).or_insert(told);
            if newest.sequence < told.sequence {
                *newest = told;
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
}

impl Sfs {
    /// The log, which is read when it is first asked for.
    pub(super) fn said<'a>(&mut self, task: &Task<'_>, log: &'a mut Option<Log>) -> Result<&'a Log, SfsError> {
        if log.is_none() {
            *log = Some(self.read_log(task));
        }
        Ok(log.as_ref().expect("it was just read"))
    }

    /// The block records of all partial segments up to the checkpoint that is loaded.
    fn read_log(&mut self, task: &Task<'_>) -> Log {
        let mut log = Log { blocks: BTreeMap::new(), holes: BTreeMap::new(), is_whole: true };
        let next = self.superblock.next_partial.get();
        let segment_blocks = u64::from(self.media.segment_blocks());
        let mut reader = self.log_reader(task);
        for segment in 0..reader.segments() {
            for (_, summary) in reader.walk(segment, 0) {
                match summary {
                    Summary::Valid(partial) if partial.number() < next => log.add(&partial, segment_blocks),
                    // It is of the log since the checkpoint.
                    Summary::Valid(_) | Summary::Nothing => break,
                    Summary::Foreign(PartialSegment { header, .. }) | Summary::Broken(header) => {
                        log.is_whole &= !(1..next).contains(&header.sequence.get());
                    }
                    Summary::Unreadable(_) => log.is_whole = false,
                }
            }
        }
        log
    }
}
