//! A log in memory for tests: segments of 16 blocks, with partial segments, damage and unreadable blocks.

use super::LogReader;
use crate::crc;
use crate::device::conv::Conventional;
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba, Medium};
use crate::fs::sfs::media::Media;
use crate::fs::sfs::media::format::{
    BLOCK, BlockRecord, Kind, NO_GROUP, SUMMARY_MAGIC, SummaryHeader, crc_without, summary_blocks,
};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use zerocopy::{FromZeros, IntoBytes};

pub(in crate::fs::sfs) const SEGMENT_BLOCKS: u32 = 16;
pub(in crate::fs::sfs) const SEGMENTS: u32 = 24;
pub(in crate::fs::sfs) const VOLUME: [u8; 16] = [7; 16];

/// A device with unreadable blocks.
struct Scratched {
    device: Conventional,
    unreadable: Arc<Mutex<BTreeSet<u64>>>,
}

impl Abilities for Scratched {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&self.device)
    }
}

impl BlockDevice for Scratched {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let asked = first.0..first.0 + (buffer.len() / BLOCK) as u64;
        match self.unreadable.lock().unwrap().range(asked).next() {
            Some(block) => {
                Err(DeviceError::Station { station: "scratched", reason: format!("block {block} cannot be read") })
            }
            None => self.device.read(first, buffer, at),
        }
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.device.write(first, buffer, label, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.device.discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.device.flush(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

/// A partial segment for a test to write.
#[derive(Clone, Debug)]
pub(in crate::fs::sfs) struct TestPartialSegment {
    pub number: u64,
    /// The checksum of its predecessor.
    pub chain: u32,
    /// Blocks after its summary.
    pub blocks: u32,
    /// Zeros at the end of the summary in place of log records: they are none.
    pub log_bytes: u32,
    pub seals: bool,
    pub flushed_back: u16,
    pub next_segment: Option<u32>,
    pub volume: [u8; 16],
    pub group: u8,
    /// The number of its first virtual block.
    pub first_block: u64,
    pub kind: Kind,
}

impl TestPartialSegment {
    /// A partial segment with this number and two blocks, after the one with the checksum `chain`, all before it
    /// durable.
    pub fn numbered(number: u64, chain: u32) -> TestPartialSegment {
        TestPartialSegment {
            number,
            chain,
            blocks: 2,
            log_bytes: 0,
            seals: true,
            flushed_back: 1,
            next_segment: None,
            volume: VOLUME,
            group: NO_GROUP,
            first_block: number * 100,
            kind: Kind::Data,
        }
    }

    /// Blocks of its summary.
    pub fn summary_blocks(&self) -> u32 {
        summary_blocks(self.blocks, self.log_bytes as usize)
    }

    /// Content of block `at`: number and index, repeated.
    fn block(&self, at: u32) -> Vec<u8> {
        (self.number * 1000 + u64::from(at)).to_le_bytes().repeat(BLOCK / 8)
    }

    /// All bytes, and the checksum of the summary.
    pub fn bytes(&self) -> (Vec<u8>, u32) {
        let mut summary = vec![0; self.summary_blocks() as usize * BLOCK];
        let mut header = SummaryHeader {
            magic: SUMMARY_MAGIC,
            sequence: self.number.into(),
            chain: self.chain.into(),
            summary_blocks: self.summary_blocks().into(),
            blocks: self.blocks.into(),
            log_bytes: self.log_bytes.into(),
            identity: self.volume,
            group: self.group,
            seals: self.seals.into(),
            flushed_back: self.flushed_back.into(),
            next_segment: self.next_segment.map_or(0, |next| next + 1).into(),
            ..SummaryHeader::new_zeroed()
        };
        let mut at = size_of::<SummaryHeader>();
        summary[..at].copy_from_slice(header.as_bytes());
        for block in 0..self.blocks {
            let record = BlockRecord {
                number: (self.first_block + u64::from(block)).into(),
                inode: 5.into(),
                place: u64::from(block).into(),
                crc: crc::crc32c(&self.block(block)).into(),
                kind: self.kind as u8,
                group: NO_GROUP,
                ..BlockRecord::default()
            };
            summary[at..at + size_of::<BlockRecord>()].copy_from_slice(record.as_bytes());
            at += size_of::<BlockRecord>();
        }
        header.crc = crc_without(&summary, 4).into();
        summary[..size_of::<SummaryHeader>()].copy_from_slice(header.as_bytes());
        let blocks = (0..self.blocks).flat_map(|block| self.block(block));
        (summary.iter().copied().chain(blocks).collect(), header.crc.get())
    }
}

/// The media, modified by a test.
pub(in crate::fs::sfs) struct TestLog {
    media: Media,
    task: Task<'static>,
    unreadable: Arc<Mutex<BTreeSet<u64>>>,
}

impl TestLog {
    /// Segments of zeros.
    pub fn empty() -> TestLog {
        let blocks = u64::from(SEGMENT_BLOCKS) * u64::from(SEGMENTS + 1);
        let unreadable = Arc::<Mutex<BTreeSet<u64>>>::default();
        let device = Scratched { device: Conventional::in_memory(blocks, BLOCK), unreadable: unreadable.clone() };
        let media = Media::new(Medium::Blocks(Box::new(device)), SEGMENT_BLOCKS, SEGMENTS);
        TestLog { media, task: Task::at(Time::ZERO), unreadable }
    }

    /// Writes bytes at a block of a segment.
    pub fn put(&self, segment: u32, block: u32, bytes: &[u8]) {
        let label = Label::first(Cause::HostWrite, Content::Data);
        self.media.begin_write(&self.task, address(segment, block), bytes, label).unwrap();
    }

    /// Writes a partial segment, and returns the checksum of its summary.
    pub fn write(&self, segment: u32, block: u32, made: &TestPartialSegment) -> u32 {
        let (bytes, checksum) = made.bytes();
        self.put(segment, block, &bytes);
        checksum
    }

    /// Writes consecutive, chained partial segments from the first block of a segment, and returns the end of the last.
    pub fn write_chain(&self, segment: u32, numbers: std::ops::Range<u64>, chain: u32) -> u32 {
        let (mut at, mut chain) = (0, chain);
        for number in numbers {
            let made = TestPartialSegment::numbered(number, chain);
            chain = self.write(segment, at, &made);
            at += made.summary_blocks() + made.blocks;
        }
        at
    }

    /// Flips a bit of a block.
    pub fn flip(&self, segment: u32, block: u32, byte: usize) {
        let mut bytes = vec![0; BLOCK];
        self.media.read(&self.task, address(segment, block), &mut bytes).unwrap();
        bytes[byte] ^= 1;
        self.put(segment, block, &bytes);
    }

    /// Makes a block unreadable.
    pub fn scratch(&self, segment: u32, block: u32) {
        let place = u64::from(SEGMENT_BLOCKS) + address(segment, block);
        self.unreadable.lock().unwrap().insert(place);
    }

    pub fn reader(&self) -> LogReader<'_> {
        LogReader::new(&self.task, &self.media, VOLUME)
    }
}

fn address(segment: u32, block: u32) -> u64 {
    u64::from(segment) * u64::from(SEGMENT_BLOCKS) + u64::from(block)
}
