//! The one reader of summaries: what lies at a block of a segment, from block to block or behind damage.
//!
//! | method | reads | for |
//! |---|---|---|
//! | [`at`](LogReader::at) | one summary | the last partial segment of a checkpoint, the first one behind it |
//! | [`walk`](LogReader::walk) | partial segments, each at the end of the one before | contents of a segment, the log since a checkpoint, block records for a lost metadata file |
//! | [`search`](LogReader::search) | whatever begins like a summary, block by block | what lies behind a damaged summary |
//! | [`damaged_blocks`](LogReader::damaged_blocks) | the blocks behind a summary | telling a torn, damaged or misplaced partial segment |
//!
//! The reader knows the layout, checksums and lengths, and nothing of numbers and chains: a segment that was written
//! anew holds what is left of its earlier use behind what is new, so each caller says which numbers it accepts. Which
//! partial segments make up the log since a checkpoint is decided in one place, `recovery::log_order`.
//!
//! A caller is strict or lenient by what it does with a [`Summary`]: [`Summary::valid`] fails where the device does, and
//! ends at anything else that is no partial segment of this volume.

use super::partial_segment::PartialSegment;
use crate::device::DeviceError;
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{BLOCK, BlockRecord, SUMMARY_MAGIC, SummaryHeader, crc_without, summary_blocks};
use crate::task::Task;
use std::collections::BTreeSet;
use zerocopy::FromBytes;

/// Blocks that are read at once.
const READ_AT_ONCE: u32 = 256;
/// Where the checksum of a summary lies in it.
const CRC_FIELD: usize = 4;

/// What lies at a block where a partial segment may begin.
#[derive(Debug)]
pub(in crate::fs::sfs) enum Summary {
    /// A partial segment of this volume. Its summary is whole.
    Valid(PartialSegment),
    /// A partial segment of another volume, as one that lay on the device before. Its summary is whole.
    Foreign(PartialSegment),
    /// It begins like a summary, or names this volume, and its checksum or its lengths are wrong: torn by a crash, or
    /// damaged since. Its header, as it is there.
    Broken(SummaryHeader),
    /// Something else.
    Nothing,
    /// The device cannot read it.
    Unreadable(DeviceError),
}

impl Summary {
    /// The partial segment of this volume that lies here, if one does.
    ///
    /// # Errors
    ///
    /// If the device cannot read it.
    pub fn valid(self) -> Result<Option<PartialSegment>, DeviceError> {
        match self {
            Summary::Valid(partial) => Ok(Some(partial)),
            Summary::Unreadable(error) => Err(error),
            Summary::Foreign(_) | Summary::Broken(_) | Summary::Nothing => Ok(None),
        }
    }
}

/// Reads the log of one volume.
#[derive(Clone, Copy)]
pub(in crate::fs::sfs) struct LogReader<'a> {
    media: &'a Media,
    task: &'a Task<'a>,
    /// The volume's own number.
    volume: [u8; 16],
}

impl<'a> LogReader<'a> {
    /// A reader of the log of the volume with this number.
    pub fn new(task: &'a Task<'a>, media: &'a Media, volume: [u8; 16]) -> LogReader<'a> {
        LogReader { media, task, volume }
    }

    /// Blocks of a segment.
    pub fn segment_blocks(&self) -> u32 {
        self.media.segment_blocks()
    }

    /// Segments.
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

    /// What lies at a block of a segment.
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

    /// What lies at a block, then at the end of that, and so on: partial segments of this volume, and at last what is
    /// none, if the segment does not end before.
    pub fn walk(self, segment: u32, from: u32) -> Walk<'a> {
        Walk { reader: self, segment, next: Some(from) }
    }

    /// Blocks of a segment, from one on, that begin like a summary. Blocks that hold something else are read many at
    /// once.
    pub fn search(&self, segment: u32, from: u32) -> Candidates {
        Candidates { segment, next: from, first: from, bytes: Vec::new(), unreadable: Vec::new() }
    }

    /// Blocks of a partial segment that cannot be read, or are not what its summary says.
    pub fn damaged_blocks(&self, partial: &PartialSegment) -> BTreeSet<u32> {
        let blocks: Vec<(u32, BlockRecord)> = partial.blocks().collect();
        let mut damaged = BTreeSet::new();
        for part in blocks.chunks(READ_AT_ONCE as usize) {
            let mut bytes = vec![0; part.len() * BLOCK];
            let are_read = self.read(partial.segment, part[0].0, &mut bytes).is_ok();
            for ((block, record), bytes) in part.iter().zip(bytes.chunks_exact_mut(BLOCK)) {
                let is_read = are_read || self.read(partial.segment, *block, bytes).is_ok();
                if !is_read || crc32c::crc32c(bytes) != record.crc.get() {
                    damaged.insert(*block);
                }
            }
        }
        damaged
    }

    /// True if none of its blocks is what its summary says, as where a summary was written to a wrong place.
    pub fn is_misplaced(&self, partial: &PartialSegment) -> bool {
        self.damaged_blocks(partial).len() >= partial.header.blocks.get() as usize
    }

    /// The block behind the partial segments that lie one behind the other from the first block of a segment, with rising
    /// numbers below `next`: those of before a checkpoint.
    ///
    /// # Errors
    ///
    /// If the device cannot read what lies there.
    pub fn end_before(&self, segment: u32, next: u64) -> Result<u32, DeviceError> {
        let (mut end, mut before) = (0, 0);
        for (_, summary) in self.walk(segment, 0) {
            let Some(partial) = summary.valid()?.filter(|it| (before + 1..next).contains(&it.number())) else { break };
            (end, before) = (partial.end(), partial.number());
        }
        Ok(end)
    }

    /// All blocks that the summaries of a segment describe: each block's place in the segment, and its record. A segment
    /// that was written anew may hold records of its earlier use behind the new ones.
    ///
    /// # Errors
    ///
    /// If the device cannot read a summary.
    pub fn contents(&self, segment: u32) -> Result<Vec<(u32, BlockRecord)>, DeviceError> {
        let mut contents = Vec::new();
        for (_, summary) in self.walk(segment, 0) {
            contents.extend(summary.valid()?.iter().flat_map(PartialSegment::blocks));
        }
        Ok(contents)
    }

    /// Blocks of a segment that may hold anything.
    fn written(&self, segment: u32) -> u32 {
        self.media.written(segment)
    }
}

/// Partial segments one behind the other. Ends behind the first block that holds none.
pub(in crate::fs::sfs) struct Walk<'a> {
    reader: LogReader<'a>,
    segment: u32,
    next: Option<u32>,
}

impl Iterator for Walk<'_> {
    /// A block of the segment, and what lies there.
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
    /// The first block that is in `bytes`.
    first: u32,
    bytes: Vec<u8>,
    /// Blocks that the device could not read, and why.
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

    /// Goes on at a block, behind what lies before it.
    pub fn skip_to(&mut self, block: u32) {
        self.next = block;
    }

    /// Reads blocks from the next one on. What the device cannot read is zeros, and is noted.
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
    use crate::fs::sfs::log::made_up::{Made, MadeUpLog, SEGMENT_BLOCKS};

    /// What lies at a block, in a word.
    fn at(log: &MadeUpLog, segment: u32, block: u32) -> String {
        match log.reader().at(segment, block) {
            Summary::Valid(partial) => format!("valid {}", partial.number()),
            Summary::Foreign(partial) => format!("foreign {}", partial.number()),
            Summary::Broken(header) => format!("broken {}", header.sequence),
            Summary::Nothing => "nothing".to_string(),
            Summary::Unreadable(error) => error.to_string(),
        }
    }

    #[test]
    fn a_summary_is_whole_broken_of_another_volume_unreadable_or_none() {
        let log = MadeUpLog::empty();
        let checksum = log.write(0, 0, &Made::numbered(9, 77));
        assert_eq!(at(&log, 0, 0), "valid 9");
        assert_eq!(at(&log, 0, 1), "nothing");
        assert_eq!(at(&log, 1, 0), "nothing");
        let partial = log.reader().at(0, 0).valid().unwrap().unwrap();
        assert_eq!((partial.place(), partial.end(), partial.header.chain.get()), ((0, 0), 3, 77));
        assert_eq!((partial.header.crc.get(), partial.durable_up_to()), (checksum, Some(8)));
        assert!(log.reader().damaged_blocks(&partial).is_empty() && partial.is_well_formed());
        // A bit of any part of the summary, but of the magic number and of the volume's: with neither it is nothing.
        for byte in [8, 16, 20, 24, 28, 70, 4000] {
            log.flip(0, 0, byte);
            assert!(at(&log, 0, 0).starts_with("broken "), "byte {byte}: {}", at(&log, 0, 0));
            log.flip(0, 0, byte);
        }
        log.flip(0, 0, 0);
        assert_eq!(at(&log, 0, 0), "broken 9", "the volume's number is there");
        log.flip(0, 0, 40);
        assert_eq!(at(&log, 0, 0), "nothing");
        log.write(0, 0, &Made { volume: [8; 16], ..Made::numbered(9, 77) });
        assert_eq!(at(&log, 0, 0), "foreign 9");
        log.scratch(0, 0);
        assert_eq!(at(&log, 0, 0), "scratched: block 16 cannot be read");
        assert!(log.reader().at(0, 0).valid().is_err(), "strict readers fail");
    }

    #[test]
    fn a_summary_of_two_blocks_is_torn_without_its_second() {
        let log = MadeUpLog::empty();
        let made = Made { log_bytes: 5000, ..Made::numbered(3, 0) };
        assert_eq!(made.summary_blocks(), 2);
        log.write(0, 4, &made);
        assert_eq!(at(&log, 0, 4), "valid 3");
        log.flip(0, 5, 0);
        assert_eq!(at(&log, 0, 4), "broken 3");
        log.scratch(0, 5);
        assert_eq!(at(&log, 0, 4), "scratched: block 21 cannot be read");
    }

    #[test]
    fn what_says_that_it_reaches_beyond_its_segment_is_broken() {
        let log = MadeUpLog::empty();
        let (bytes, _) = Made::numbered(3, 0).bytes();
        log.put(0, SEGMENT_BLOCKS - 2, &bytes[..2 * BLOCK]);
        assert_eq!(at(&log, 0, SEGMENT_BLOCKS - 2), "broken 3");
    }

    #[test]
    fn partial_segments_are_read_one_behind_the_other_up_to_what_is_none() {
        let log = MadeUpLog::empty();
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
        let contents = log.reader().contents(2).unwrap();
        let blocks: Vec<(u32, u64)> = contents.iter().map(|(block, record)| (*block, record.number.get())).collect();
        assert_eq!(blocks, [(1, 500), (2, 501), (4, 600), (5, 601), (7, 700), (8, 701), (10, 800), (11, 801)]);
    }

    #[test]
    fn those_of_before_a_checkpoint_end_where_a_number_is_its_own_or_falls() {
        let log = MadeUpLog::empty();
        log.write_chain(0, 5..10, 0);
        assert_eq!(log.reader().end_before(0, 8).unwrap(), 9);
        assert_eq!(log.reader().end_before(0, 5).unwrap(), 0);
        // The segment was written anew up to block 6; behind it is what it held before.
        log.write_chain(0, 20..22, 0);
        assert_eq!(log.reader().end_before(0, 30).unwrap(), 6);
        assert_eq!(log.reader().contents(0).unwrap().len(), 10, "who asks for the contents asks what lives");
    }

    #[test]
    fn a_search_finds_each_block_that_begins_like_a_summary_and_steps_over_what_it_is_told_to() {
        let log = MadeUpLog::empty();
        log.write_chain(0, 5..7, 0);
        log.flip(0, 0, 100);
        // A file holds an image of a summary.
        let (image, _) = Made::numbered(99, 0).bytes();
        log.put(0, 5, &image[..BLOCK]);
        let searched = |skip: Option<u32>| {
            let (mut candidates, mut blocks) = (log.reader().search(0, 0), Vec::new());
            while let Some(block) = candidates.next(log.reader()) {
                blocks.push(block);
                skip.filter(|_| block == 3).inspect(|to| candidates.skip_to(*to));
            }
            blocks
        };
        assert_eq!(searched(None), [0, 3, 5], "the first is damaged");
        assert_eq!(searched(Some(6)), [0, 3]);
    }

    #[test]
    fn a_search_goes_on_behind_blocks_that_cannot_be_read_and_names_them() {
        let log = MadeUpLog::empty();
        log.write(0, 7, &Made::numbered(4, 0));
        log.scratch(0, 2);
        log.scratch(0, 11);
        let mut candidates = log.reader().search(0, 1);
        assert_eq!(candidates.next(log.reader()), Some(7));
        assert_eq!(candidates.next(log.reader()), None);
        let blocks: Vec<u32> = candidates.unreadable.iter().map(|(block, _)| *block).collect();
        assert_eq!(blocks, [2, 11]);
    }

    #[test]
    fn damaged_blocks_are_named_and_a_summary_in_a_wrong_place_has_no_other() {
        let log = MadeUpLog::empty();
        log.write(0, 0, &Made { blocks: 3, ..Made::numbered(4, 0) });
        log.flip(0, 2, 9);
        log.scratch(0, 3);
        let partial = log.reader().at(0, 0).valid().unwrap().unwrap();
        assert_eq!(log.reader().damaged_blocks(&partial), BTreeSet::from([2, 3]));
        assert!(!log.reader().is_misplaced(&partial));
        let (bytes, _) = Made::numbered(4, 0).bytes();
        log.put(3, 5, &bytes[..BLOCK]);
        let misplaced = log.reader().at(3, 5).valid().unwrap().unwrap();
        assert_eq!(log.reader().damaged_blocks(&misplaced), BTreeSet::from([6, 7]));
        assert!(log.reader().is_misplaced(&misplaced));
    }
}
