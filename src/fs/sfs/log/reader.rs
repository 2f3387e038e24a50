//! The only reader of summaries: walks partial segments, and searches for them behind damage.
//!
//! | method | reads | for |
//! |---|---|---|
//! | [`at`](LogReader::at) | one summary | the last partial segment of a checkpoint, and the first after it |
//! | [`walk`](LogReader::walk) | consecutive partial segments | contents of a segment, the log since a checkpoint, block records for a lost metadata file |
//! | [`search`](LogReader::search) | blocks that begin like a summary | partial segments behind a damaged summary |
//! | [`damaged_blocks`](LogReader::damaged_blocks) | the blocks of a partial segment | distinguishing torn, damaged and misplaced partial segments |
//!
//! The reader checks layout, checksums and lengths, but not sequence numbers and chains: behind its new blocks, a
//! rewritten segment holds remains of its earlier use. Each caller decides which numbers it accepts.
//! `recovery::log_order` alone decides which partial segments form the log since a checkpoint.
//!
//! A caller is strict or lenient in its use of [`Summary`]: [`Summary::valid`] returns device errors, and `None` for
//! anything that is not a partial segment of this volume.

use super::partial_segment::PartialSegment;
use crate::crc;
use crate::device::DeviceError;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{BLOCK, BlockRecord, SUMMARY_MAGIC, SummaryHeader, crc_without, summary_blocks};
use crate::task::Task;
use std::collections::BTreeSet;
use zerocopy::FromBytes;

/// Blocks per read.
const READ_AT_ONCE: u32 = 256;
/// Offset of the checksum in a summary.
const CRC_FIELD: usize = 4;

/// The content of a block at which a partial segment may begin.
#[derive(Debug)]
pub(in crate::fs::sfs) enum Summary {
    /// A partial segment of this volume, with a valid summary.
    Valid(PartialSegment),
    /// A partial segment of another volume, with a valid summary, such as one made earlier on the device.
    Foreign(PartialSegment),
    /// A block with a summary's magic number or this volume's identifier, but a wrong checksum or lengths: torn by a
    /// crash, or damaged later. Holds the header as stored.
    Broken(SummaryHeader),
    /// Anything else.
    Nothing,
    /// A block that the device cannot read.
    Unreadable(DeviceError),
}

impl Summary {
    /// The partial segment of this volume, if it is one.
    ///
    /// # Errors
    ///
    /// If the device cannot read the block.
    pub fn valid(self) -> Result<Option<PartialSegment>, DeviceError> {
        match self {
            Summary::Valid(partial) => Ok(Some(partial)),
            Summary::Unreadable(error) => Err(error),
            Summary::Foreign(_) | Summary::Broken(_) | Summary::Nothing => Ok(None),
        }
    }
}

/// A reader of one volume's log.
#[derive(Clone, Copy)]
pub(in crate::fs::sfs) struct LogReader<'a> {
    media: &'a Media,
    task: &'a Task<'a>,
    /// The identifier of the volume.
    volume: [u8; 16],
}

impl<'a> LogReader<'a> {
    /// A reader for the volume with this identifier.
    pub fn new(task: &'a Task<'a>, media: &'a Media, volume: [u8; 16]) -> LogReader<'a> {
        LogReader { media, task, volume }
    }

    /// The task that reads.
    pub fn task(&self) -> &'a Task<'a> {
        self.task
    }

    /// Blocks per segment.
    pub fn segment_blocks(&self) -> u32 {
        self.media.segment_blocks()
    }

    /// Number of segments.
    pub fn segments(&self) -> u32 {
        self.media.segments()
    }

    /// Blocks of all segments.
    pub fn log_blocks(&self) -> u64 {
        self.media.log_blocks()
    }

    /// The address of a block of a segment.
    pub fn address(&self, segment: u32, block: u32) -> u64 {
        u64::from(segment) * u64::from(self.segment_blocks()) + u64::from(block)
    }

    fn read(&self, segment: u32, block: u32, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.media.read(self.task, self.address(segment, block), bytes)
    }

    /// Reads a summary at a block of a segment.
    pub fn at(&self, segment: u32, block: u32) -> Summary {
        self.read_summary(segment, block).unwrap_or_else(Summary::Unreadable)
    }

    fn read_summary(&self, segment: u32, block: u32) -> Result<Summary, DeviceError> {
        let mut summary = vec![0; BLOCK];
        self.read(segment, block, &mut summary)?;
        let header = SummaryHeader::read_from_bytes(&summary[..size_of::<SummaryHeader>()]).expect("a header's length");
        let blocks = header.summary_blocks.get();
        let has_lengths = blocks > 0
            && u64::from(blocks) + u64::from(header.blocks.get()) <= u64::from(self.segment_blocks() - block)
            && blocks == summary_blocks(header.blocks.get(), header.log_bytes.get() as usize);
        if header.magic == SUMMARY_MAGIC && has_lengths {
            summary.resize(blocks as usize * BLOCK, 0);
            if blocks > 1 {
                self.read(segment, block + 1, &mut summary[BLOCK..])?;
            }
            if crc_without(&summary, CRC_FIELD) == header.crc.get() {
                let partial = PartialSegment { segment, block, header, summary };
                return Ok(match header.identity == self.volume {
                    true => Summary::Valid(partial),
                    false => Summary::Foreign(partial),
                });
            }
        }
        Ok(match header.magic == SUMMARY_MAGIC || header.identity == self.volume {
            true => Summary::Broken(header),
            false => Summary::Nothing,
        })
    }

    /// Consecutive partial segments of this volume from a block on, up to and including the first block that is none,
    /// or the end of the segment.
    pub fn walk(self, segment: u32, from: u32) -> Walk<'a> {
        Walk { reader: self, segment, next: Some(from) }
    }

    /// Blocks of a segment, from `from` on, that begin like a summary. Other blocks are read in large requests.
    pub fn search(&self, segment: u32, from: u32) -> Candidates {
        Candidates { segment, next: from, first: from, bytes: Vec::new(), unreadable: Vec::new() }
    }

    /// The blocks of a partial segment that are unreadable or do not match its summary.
    pub fn damaged_blocks(&self, partial: &PartialSegment) -> BTreeSet<u32> {
        let blocks: Vec<(u32, BlockRecord)> = partial.blocks().collect();
        let mut damaged = BTreeSet::new();
        for part in blocks.chunks(READ_AT_ONCE as usize) {
            let mut bytes = vec![0; part.len() * BLOCK];
            let are_read = self.read(partial.segment, part[0].0, &mut bytes).is_ok();
            for ((block, record), bytes) in part.iter().zip(bytes.chunks_exact_mut(BLOCK)) {
                let is_read = are_read || self.read(partial.segment, *block, bytes).is_ok();
                if !is_read || crc::crc32c(bytes) != record.crc.get() {
                    damaged.insert(*block);
                }
            }
        }
        damaged
    }

    /// True if no block matches the summary, as if the summary was written to a wrong place.
    pub fn is_misplaced(&self, partial: &PartialSegment) -> bool {
        self.damaged_blocks(partial).len() >= partial.header.blocks.get() as usize
    }

    /// The end of the partial segments from the first block of a segment with ascending numbers below `next`: those
    /// from before a checkpoint.
    ///
    /// # Errors
    ///
    /// If the device cannot read a block.
    pub fn end_before(&self, segment: u32, next: u64) -> Result<u32, DeviceError> {
        let (mut end, mut before) = (0, 0);
        for (_, summary) in self.walk(segment, 0) {
            let Some(partial) = summary.valid()?.filter(|it| (before + 1..next).contains(&it.number())) else { break };
            (end, before) = (partial.end(), partial.number());
        }
        Ok(end)
    }

    /// All blocks described by the summaries of a segment: index in the segment, and record. Behind its new records, a
    /// rewritten segment may hold records of its earlier use. Stamps cannot be read back: their records are `in_memory`, and the
    /// summaries are read for the time that it takes.
    ///
    /// # Errors
    ///
    /// If the device cannot read a summary.
    pub fn contents(
        &self,
        segment: u32,
        in_memory: Option<&[(u32, BlockRecord)]>,
    ) -> Result<Vec<(u32, BlockRecord)>, DeviceError> {
        let mut contents = Vec::new();
        if let Some(in_memory) = in_memory {
            let mut stamp = vec![0; self.media.block_width()];
            for block in 0..summary_blocks(in_memory.len() as u32, 0) {
                self.read(segment, block, &mut stamp)?;
            }
            contents.extend_from_slice(in_memory);
            return Ok(contents);
        }
        for (_, summary) in self.walk(segment, 0) {
            contents.extend(summary.valid()?.iter().flat_map(PartialSegment::blocks));
        }
        Ok(contents)
    }

    /// Blocks of a segment that may hold data.
    fn written(&self, segment: u32) -> u32 {
        self.media.written(segment)
    }
}

/// Consecutive partial segments. Ends after the first block that is none.
pub(in crate::fs::sfs) struct Walk<'a> {
    reader: LogReader<'a>,
    segment: u32,
    next: Option<u32>,
}

impl Iterator for Walk<'_> {
    /// A block of the segment, and its summary.
    type Item = (u32, Summary);

    fn next(&mut self) -> Option<(u32, Summary)> {
        let at = self.next.filter(|at| *at < self.reader.segment_blocks())?;
        let summary = self.reader.at(self.segment, at);
        self.next = if let Summary::Valid(partial) = &summary { Some(partial.end()) } else { None };
        Some((at, summary))
    }
}

/// Blocks of a segment that begin like a summary.
pub(in crate::fs::sfs) struct Candidates {
    segment: u32,
    next: u32,
    /// The first block in `bytes`.
    first: u32,
    bytes: Vec<u8>,
    /// Unreadable blocks, with their errors.
    pub unreadable: Vec<(u32, DeviceError)>,
}

impl Candidates {
    /// The next block that begins like a summary.
    pub fn next(&mut self, reader: LogReader<'_>) -> Option<u32> {
        let end = reader.written(self.segment);
        while self.next < end {
            let at = self.next;
            if at < self.first || at >= self.first + (self.bytes.len() / BLOCK) as u32 {
                self.fill(reader, (end - at).min(READ_AT_ONCE));
            }
            self.next += 1;
            let block = &self.bytes[(at - self.first) as usize * BLOCK..][..BLOCK];
            if block[..SUMMARY_MAGIC.len()] == SUMMARY_MAGIC {
                return Some(at);
            }
        }
        None
    }

    /// Continues the search at a block.
    pub fn skip_to(&mut self, block: u32) {
        self.next = block;
    }

    /// Reads the next blocks. Unreadable ones are zeros, and are recorded.
    fn fill(&mut self, reader: LogReader<'_>, count: u32) {
        self.first = self.next;
        self.bytes.clear();
        self.bytes.resize(count as usize * BLOCK, 0);
        if reader.read(self.segment, self.first, &mut self.bytes).is_ok() {
            return;
        }
        for (block, bytes) in (self.first..).zip(self.bytes.chunks_exact_mut(BLOCK)) {
            if let Err(error) = reader.read(self.segment, block, bytes) {
                bytes.fill(0);
                self.unreadable.push((block, error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sfs::log::test_log::{SEGMENT_BLOCKS, TestLog, TestPartialSegment};

    /// The summary at a block, as a word.
    fn at(log: &TestLog, segment: u32, block: u32) -> String {
        match log.reader().at(segment, block) {
            Summary::Valid(partial) => format!("valid {}", partial.number()),
            Summary::Foreign(partial) => format!("foreign {}", partial.number()),
            Summary::Broken(header) => format!("broken {}", header.sequence),
            Summary::Nothing => "nothing".to_string(),
            Summary::Unreadable(error) => error.to_string(),
        }
    }

    #[test]
    fn a_summary_is_valid_broken_foreign_unreadable_or_nothing() {
        let log = TestLog::empty();
        let checksum = log.write(0, 0, &TestPartialSegment::numbered(9, 77));
        assert_eq!(at(&log, 0, 0), "valid 9");
        assert_eq!(at(&log, 0, 1), "nothing");
        assert_eq!(at(&log, 1, 0), "nothing");
        let partial = log.reader().at(0, 0).valid().unwrap().unwrap();
        assert_eq!((partial.place(), partial.end(), partial.header.chain.get()), ((0, 0), 3, 77));
        assert_eq!((partial.header.crc.get(), partial.durable_up_to()), (checksum, Some(8)));
        assert!(log.reader().damaged_blocks(&partial).is_empty() && partial.is_well_formed());
        // One bit in each part of the summary. Without both the magic number and the volume's identifier it is nothing.
        for byte in [8, 16, 20, 24, 28, 70, 4000] {
            log.flip(0, 0, byte);
            assert!(at(&log, 0, 0).starts_with("broken "), "byte {byte}: {}", at(&log, 0, 0));
            log.flip(0, 0, byte);
        }
        log.flip(0, 0, 0);
        assert_eq!(at(&log, 0, 0), "broken 9", "the volume's identifier is intact");
        log.flip(0, 0, 40);
        assert_eq!(at(&log, 0, 0), "nothing");
        log.write(0, 0, &TestPartialSegment { volume: [8; 16], ..TestPartialSegment::numbered(9, 77) });
        assert_eq!(at(&log, 0, 0), "foreign 9");
        log.scratch(0, 0);
        assert_eq!(at(&log, 0, 0), "scratched: block 16 cannot be read");
        assert!(log.reader().at(0, 0).valid().is_err(), "a strict reader fails");
    }

    #[test]
    fn a_summary_of_two_blocks_without_its_second_is_broken() {
        let log = TestLog::empty();
        let made = TestPartialSegment { log_bytes: 5000, ..TestPartialSegment::numbered(3, 0) };
        assert_eq!(made.summary_blocks(), 2);
        log.write(0, 4, &made);
        assert_eq!(at(&log, 0, 4), "valid 3");
        log.flip(0, 5, 0);
        assert_eq!(at(&log, 0, 4), "broken 3");
        log.scratch(0, 5);
        assert_eq!(at(&log, 0, 4), "scratched: block 21 cannot be read");
    }

    #[test]
    fn a_summary_that_exceeds_its_segment_is_broken() {
        let log = TestLog::empty();
        let (bytes, _) = TestPartialSegment::numbered(3, 0).bytes();
        log.put(0, SEGMENT_BLOCKS - 2, &bytes[..2 * BLOCK]);
        assert_eq!(at(&log, 0, SEGMENT_BLOCKS - 2), "broken 3");
    }

    #[test]
    fn a_walk_returns_consecutive_partial_segments_and_the_first_block_that_is_none() {
        let log = TestLog::empty();
        assert_eq!(log.write_chain(2, 5..9, 0), 12);
        let walked = |from: u32| {
            let word = |(block, summary): (u32, Summary)| match summary {
                Summary::Valid(partial) => (block, Some(partial.number())),
                _ => (block, None),
            };
            log.reader().walk(2, from).map(word).collect::<Vec<_>>()
        };
        assert_eq!(walked(0), [(0, Some(5)), (3, Some(6)), (6, Some(7)), (9, Some(8)), (12, None)]);
        assert_eq!(walked(6), [(6, Some(7)), (9, Some(8)), (12, None)]);
        assert_eq!(walked(1), [(1, None)]);
        assert_eq!(walked(SEGMENT_BLOCKS), []);
        let contents = log.reader().contents(2, None).unwrap();
        let blocks: Vec<(u32, u64)> = contents.iter().map(|(block, record)| (*block, record.number.get())).collect();
        assert_eq!(blocks, [(1, 500), (2, 501), (4, 600), (5, 601), (7, 700), (8, 701), (10, 800), (11, 801)]);
    }

    #[test]
    fn partial_segments_before_a_checkpoint_end_at_its_number_or_at_a_lower_one() {
        let log = TestLog::empty();
        log.write_chain(0, 5..10, 0);
        assert_eq!(log.reader().end_before(0, 8).unwrap(), 9);
        assert_eq!(log.reader().end_before(0, 5).unwrap(), 0);
        // The segment was rewritten up to block 6; its old blocks follow.
        log.write_chain(0, 20..22, 0);
        assert_eq!(log.reader().end_before(0, 30).unwrap(), 6);
        assert_eq!(
            log.reader().contents(0, None).unwrap().len(),
            10,
            "callers of contents check which blocks are live"
        );
    }

    #[test]
    fn a_search_finds_each_block_that_begins_like_a_summary_and_skips_as_asked() {
        let log = TestLog::empty();
        log.write_chain(0, 5..7, 0);
        log.flip(0, 0, 100);
        // A file that holds an image of a summary.
        let (image, _) = TestPartialSegment::numbered(99, 0).bytes();
        log.put(0, 5, &image[..BLOCK]);
        let searched = |skip: Option<u32>| {
            let (mut candidates, mut blocks) = (log.reader().search(0, 0), Vec::new());
            while let Some(block) = candidates.next(log.reader()) {
                blocks.push(block);
                skip.filter(|_| block == 3).inspect(|to| candidates.skip_to(*to));
            }
            blocks
        };
        assert_eq!(searched(None), [0, 3, 5], "the first summary is damaged");
        assert_eq!(searched(Some(6)), [0, 3]);
    }

    #[test]
    fn a_search_continues_behind_unreadable_blocks_and_lists_them() {
        let log = TestLog::empty();
        log.write(0, 7, &TestPartialSegment::numbered(4, 0));
        log.scratch(0, 2);
        log.scratch(0, 11);
        let mut candidates = log.reader().search(0, 1);
        assert_eq!(candidates.next(log.reader()), Some(7));
        assert_eq!(candidates.next(log.reader()), None);
        let blocks: Vec<u32> = candidates.unreadable.iter().map(|(block, _)| *block).collect();
        assert_eq!(blocks, [2, 11]);
    }

    #[test]
    fn damaged_blocks_are_listed_and_a_misplaced_summary_matches_none() {
        let log = TestLog::empty();
        log.write(0, 0, &TestPartialSegment { blocks: 3, ..TestPartialSegment::numbered(4, 0) });
        log.flip(0, 2, 9);
        log.scratch(0, 3);
        let partial = log.reader().at(0, 0).valid().unwrap().unwrap();
        assert_eq!(log.reader().damaged_blocks(&partial), BTreeSet::from([2, 3]));
        assert!(!log.reader().is_misplaced(&partial));
        let (bytes, _) = TestPartialSegment::numbered(4, 0).bytes();
        log.put(3, 5, &bytes[..BLOCK]);
        let misplaced = log.reader().at(3, 5).valid().unwrap().unwrap();
        assert_eq!(log.reader().damaged_blocks(&misplaced), BTreeSet::from([6, 7]));
        assert!(log.reader().is_misplaced(&misplaced));
    }
}
