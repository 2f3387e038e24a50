//! A partial segment as described by its summary.

use crate::fs::sfs::log::records::{self, Record};
use crate::fs::sfs::media::format::{BlockRecord, Kind, LARGEST, SummaryHeader};
use zerocopy::FromBytes;

/// A partial segment with a valid summary: its checksum and lengths are right. Its blocks may be damaged.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs) struct PartialSegment {
    pub segment: u32,
    /// The first block of its summary in the segment.
    pub block: u32,
    pub header: SummaryHeader,
    /// The bytes of its summary.
    pub(super) summary: Vec<u8>,
}

impl PartialSegment {
    /// Its sequence number.
    pub fn number(&self) -> u64 {
        self.header.sequence.get()
    }

    /// The segment, and the first block of its summary.
    pub fn place(&self) -> (u32, u32) {
        (self.segment, self.block)
    }

    /// The first block after it.
    pub fn end(&self) -> u32 {
        self.block + self.header.summary_blocks.get() + self.header.blocks.get()
    }

    /// True if `next` holds this summary's checksum as that of its predecessor.
    pub fn is_named_by(&self, next: &PartialSegment) -> bool {
        next.header.chain == self.header.crc
    }

    /// The highest sequence number that was durable when this one was written; `None` if not recorded, as in older
    /// volumes.
    pub fn durable_up_to(&self) -> Option<u64> {
        let back = u64::from(self.header.flushed_back.get());
        (back > 0).then(|| self.number().saturating_sub(back))
    }

    /// True if it seals the log: rolling forward may end here.
    pub fn seals(&self) -> bool {
        self.header.seals == 1
    }

    /// The head that wrote it.
    pub fn head(&self) -> u8 {
        self.header.group
    }

    /// True if it holds blocks of metadata files, which only checkpoints write.
    pub fn is_of_checkpoint(&self) -> bool {
        let kinds = [Kind::Dat, Kind::InodeFile, Kind::UsageFile].map(|kind| kind as u8);
        self.blocks().any(|(_, record)| kinds.contains(&record.kind))
    }

    /// The segment that the log uses next, if recorded.
    pub fn next_segment(&self) -> Option<u32> {
        self.header.next_segment.get().checked_sub(1)
    }

    /// Its blocks, each with its index in the segment.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, BlockRecord)> + '_ {
        let first = self.block + self.header.summary_blocks.get();
        let records = &self.summary[size_of::<SummaryHeader>()..];
        let records = records.chunks_exact(size_of::<BlockRecord>()).take(self.header.blocks.get() as usize);
        (first..).zip(records.map(|record| BlockRecord::read_from_bytes(record).expect("a record's length")))
    }

    /// Its log records, each with the sequence number of the partial segment before which it is applied.
    pub fn records(&self) -> impl Iterator<Item = (u64, Record<'_>)> {
        records::read(self.record_bytes())
    }

    fn record_bytes(&self) -> &[u8] {
        let from = size_of::<SummaryHeader>() + self.header.blocks.get() as usize * size_of::<BlockRecord>();
        &self.summary[from..from + self.header.log_bytes.get() as usize]
    }

    /// True if its clock, log records and kinds of blocks are valid.
    pub fn is_well_formed(&self) -> bool {
        self.header.tick.get() < LARGEST
            && records::are_whole(self.record_bytes())
            && self.blocks().all(|(_, record)| Kind::of_number(record.kind).is_some())
    }
}
