//! What the log says of each block, the newest alone: with it, what a checkpoint has lost is found again.

use super::Sfs;
use super::error::SfsError;
use super::format::{BlockRecord, Kind, Pointer, SUMMARY_MAGIC, SummaryHeader};
use super::paged::{FANOUT, LEVEL_SHIFT};
use super::records::{self, Record};
use std::collections::BTreeMap;
use zerocopy::{FromBytes, IntoBytes};

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
    /// What a partial segment says of holes.
    fn take_holes(&mut self, header: &SummaryHeader, summary: &[u8]) {
        let from = size_of::<SummaryHeader>() + header.blocks.get() as usize * size_of::<BlockRecord>();
        let told = summary.get(from..from + header.log_bytes.get() as usize).unwrap_or_default();
        for (_, record) in records::read(told) {
            let Record::Holes { kind, number, holes } = record else { continue };
            let newest = self.holes.entry((kind, number)).or_default();
            if newest.0 < header.sequence.get() {
                *newest = (header.sequence.get(), holes.to_vec());
            }
        }
    }
}

impl Sfs {
    /// The log, which is read when it is first asked for.
    pub(super) fn said<'a>(&mut self, log: &'a mut Option<Log>) -> Result<&'a Log, SfsError> {
        if log.is_none() {
            *log = Some(self.read_log()?);
        }
        Ok(log.as_ref().expect("it was just read"))
    }

    /// All that the log says of blocks up to the checkpoint that is loaded.
    fn read_log(&mut self) -> Result<Log, SfsError> {
        let mut log = Log { blocks: BTreeMap::new(), holes: BTreeMap::new(), is_whole: true };
        let mut summary = Vec::new();
        for segment in 0..self.media.segments() {
            let first = u64::from(segment) * u64::from(self.media.segment_blocks());
            let mut at = 0;
            while at < self.media.segment_blocks() {
                let Ok(header) = self.summary_at(first + u64::from(at), at, &mut summary) else {
                    log.is_whole = false;
                    break;
                };
                let Some(header) = header else {
                    log.is_whole &= !self.looks_like_summary(&summary);
                    break;
                };
                if header.sequence >= self.superblock.next_partial {
                    break;
                }
                let behind = first + u64::from(at + header.summary_blocks.get());
                let records = summary[size_of::<SummaryHeader>()..].chunks_exact(size_of::<BlockRecord>());
                for (number, record) in (0..header.blocks.get()).zip(records) {
                    let record = BlockRecord::read_from_bytes(record).expect("a record's length");
                    let address = behind + u64::from(number);
                    let told = Told { sequence: header.sequence.get(), tick: header.tick.get(), address, record };
                    // Virtual blocks have one row of numbers, whatever they hold.
                    let kind = if record.kind == Kind::Metadata as u8 { Kind::Data as u8 } else { record.kind };
                    let newest = log.blocks.entry((kind, record.number.get())).or_insert(told);
                    if newest.sequence < told.sequence {
                        *newest = told;
                    }
                }
                log.take_holes(&header, &summary);
                at += header.summary_blocks.get() + header.blocks.get();
            }
        }
        Ok(log)
    }

    /// Whether what is no summary was meant to be one of this volume.
    fn looks_like_summary(&self, bytes: &[u8]) -> bool {
        let Ok((header, _)) = SummaryHeader::read_from_prefix(bytes) else { return false };
        let is_older = header.sequence < self.superblock.next_partial && header.sequence.get() > 0;
        (header.magic == SUMMARY_MAGIC || header.identity.as_bytes() == self.superblock.identity.as_bytes()) && is_older
    }
}
