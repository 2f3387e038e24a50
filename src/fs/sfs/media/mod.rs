//! The log's segments and the two superblocks, on a device of blocks or of zones.
//!
//! | device | superblocks | segments |
//! |---|---|---|
//! | blocks | the first block, and the middle of the first segment's room | all that follows, each aligned to its size |
//! | zones | a log in the first two sequential zones: when one has no room for two, or ends with a torn one, the other is reset | every further sequential zone is one; nothing is written in place |

mod fetching;
pub(super) mod format;
pub(super) mod invariants;
mod queue;

pub(super) use fetching::FetchedBlocks;
pub(super) use queue::BlockRun;

use crate::device::{Account, BlockDevice, DeviceError, Lba, Medium, ZoneKind, ZoneState, ZonedDevice};
use crate::fs::sfs::media::format::{BLOCK, BlockBytes};
use crate::label::{Cause, Content, Label};
use crate::task::Task;
use crate::time::Time;
use fetching::Fetching;
use queue::{Change, Queue};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The label of superblock writes.
const SUPERBLOCK: Label = Label::first(Cause::Checkpoint, Content::Metadata);

/// A medium divided into segments, shared by threads.
pub(super) struct Media {
    device: Device,
    block_width: usize,
    is_timed: bool,
    segment_blocks: u32,
    segments: u32,
    /// On zones: the superblock zone in use, 0 or 1.
    turn: AtomicU32,
    /// On zones: true if the next superblock goes to the other zone.
    leaves_zone: AtomicBool,
    /// On a device of blocks: true if the place of the next superblock holds a damaged one.
    has_damaged_place: AtomicBool,
    /// True if writes may still be in flight to an image.
    has_writes_in_flight: AtomicBool,
    /// Changes that the device makes later.
    queue: Queue,
    /// The time until which begun writes last that nobody waited for.
    writes_until: AtomicU64,
    fetching: Fetching,
    /// A buffer for the next partial segment.
    spare: Mutex<Vec<u8>>,
}

/// The device below. A zoned device is locked here; a block device locks internally.
enum Device {
    Blocks(Box<dyn BlockDevice>),
    Zones(Zones),
}

/// A zoned device.
struct Zones {
    device: Mutex<Box<dyn ZonedDevice>>,
    /// The first sequential zone.
    first: u32,
    zone_blocks: u64,
}

impl Zones {
    fn device(&self) -> MutexGuard<'_, Box<dyn ZonedDevice>> {
        self.device.lock().expect("no thread has panicked in the device")
    }

    /// The zone of a segment.
    fn of_segment(&self, segment: u32) -> u32 {
        self.first + 2 + segment
    }

    /// The superblock zone of this turn.
    fn of_superblocks(&self, turn: u32) -> u32 {
        self.first + turn
    }
}

/// The division of a medium into segments.
impl Medium {
    /// Segment size in blocks and number of segments. A zoned device determines both; on blocks, segments have
    /// `segment_blocks` blocks.
    pub(super) fn cut(&self, segment_blocks: u32) -> (u32, u32) {
        match self {
            Medium::Blocks(device) => {
                let segments = (device.blocks() / u64::from(segment_blocks)).saturating_sub(1);
                (segment_blocks, segments.min(u64::from(u32::MAX - 1)) as u32)
            }
            Medium::Zones(device) => {
                let first = first_sequential(device.as_ref());
                let zones = device.shape().zones;
                let capacity = (first..zones).map(|zone| device.zone(zone).capacity).min().unwrap_or(0);
                (capacity.min(u64::from(u32::MAX)) as u32, zones.saturating_sub(first).saturating_sub(2))
            }
            // The table of stations has neither below sfs: there is no segment on them.
            Medium::Memory(_) | Medium::Monitor(_) => (segment_blocks, 0),
        }
    }

    /// True if the device determines the segment size.
    pub(super) fn prescribes_segments(&self) -> bool {
        matches!(self, Medium::Zones(_))
    }
}

pub(super) fn first_sequential(device: &dyn ZonedDevice) -> u32 {
    let zones = device.shape().zones;
    (0..zones).find(|zone| device.zone(*zone).kind == ZoneKind::Sequential).unwrap_or(zones)
}

impl Media {
    /// A medium with segments of `segment_blocks` blocks, as [`Medium::cut`] computes them.
    pub fn new(medium: Medium, segment_blocks: u32, segments: u32) -> Media {
        let (block_width, is_timed) = (medium.block_width(), medium.is_timed());
        let device = match medium {
            Medium::Blocks(device) => Device::Blocks(device),
            Medium::Zones(device) => {
                let (first, zone_blocks) = (first_sequential(device.as_ref()), device.shape().zone_blocks);
                Device::Zones(Zones { device: Mutex::new(device), first, zone_blocks })
            }
            Medium::Memory(_) | Medium::Monitor(_) => panic!("memory has no segments"),
        };
        Media {
            device,
            block_width,
            is_timed,
            segment_blocks,
            segments,
            turn: AtomicU32::new(0),
            leaves_zone: AtomicBool::new(false),
            has_damaged_place: AtomicBool::new(false),
            has_writes_in_flight: AtomicBool::new(false),
            queue: Queue::default(),
            writes_until: AtomicU64::new(0),
            fetching: Fetching::new(segments),
            spare: Mutex::default(),
        }
    }

    /// Allows up to `bytes` of acknowledged writes in flight, where the device supports it. After a crash only flushed
    /// blocks count, and those confirmed by the log's checksums.
    pub fn write_behind(&self, bytes: u64) {
        if let Device::Blocks(device) = &self.device {
            self.has_writes_in_flight.store(device.write_behind(bytes), Ordering::Relaxed);
        }
    }

    /// Blocks per segment.
    pub fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    /// Number of segments.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Blocks of all segments.
    pub fn log_blocks(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_blocks)
    }

    /// The segment of an address.
    pub fn segment_of(&self, address: u64) -> u32 {
        (address / u64::from(self.segment_blocks)) as u32
    }

    /// Bytes per block in a buffer.
    pub fn block_width(&self) -> usize {
        self.block_width
    }

    /// True if blocks hold stamps, which cannot be read back as metadata: metadata stays in memory.
    pub fn holds_stamps(&self) -> bool {
        self.block_width != BLOCK
    }

    /// True if the device has a timing model.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// The counters of the device.
    pub fn account(&self) -> Account {
        match &self.device {
            Device::Blocks(device) => device.account(),
            Device::Zones(zones) => zones.device().account(),
        }
    }

    /// The medium without its division into segments.
    #[cfg(test)]
    pub fn into_medium(self) -> Medium {
        match self.device {
            Device::Blocks(device) => Medium::Blocks(device),
            Device::Zones(zones) => Medium::Zones(zones.device.into_inner().expect("no thread has panicked in it")),
        }
    }

    /// The device address of a block of the log.
    fn place(&self, address: u64) -> Lba {
        let (segment, block) = (self.segment_of(address), address % u64::from(self.segment_blocks));
        match &self.device {
            Device::Blocks(_) => Lba((u64::from(segment) + 1) * u64::from(self.segment_blocks) + block),
            Device::Zones(zones) => Lba(u64::from(zones.of_segment(segment)) * zones.zone_blocks + block),
        }
    }

    /// Reads blocks of one segment, and waits for them.
    pub fn read(&self, task: &Task<'_>, address: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        task.wait_until(self.begin_read(task, address, buffer)?);
        Ok(())
    }

    /// Reads blocks of one segment, and returns the completion time, so that requests issued together overlap.
    pub fn begin_read(&self, task: &Task<'_>, address: u64, buffer: &mut [u8]) -> Result<Time, DeviceError> {
        let width = self.block_width();
        debug_assert!(buffer.len().is_multiple_of(width), "whole blocks are read");
        task.give_way();
        let blocks = (buffer.len() / width) as u64;
        if blocks == 1 && self.copy_fetched(address, buffer) {
            return Ok(task.now());
        }
        // The queue is searched before the device is read: a change leaves the queue only after the device made it.
        let queued = self.queue.find(address, blocks, width);
        let (mut at, mut done) = (0, task.now());
        while at < blocks {
            let stored = (at..blocks).find(|block| queued.iter().any(|(number, ..)| number == block)).unwrap_or(blocks);
            if at < stored {
                let bytes = &mut buffer[at as usize * width..stored as usize * width];
                done = done.max(self.read_device(task, address + at, bytes)?);
            }
            at = stored + 1;
        }
        for (block, bytes, range) in queued {
            buffer[block as usize * width..][..width].copy_from_slice(&bytes[range]);
        }
        Ok(done)
    }

    fn read_device(&self, task: &Task<'_>, address: u64, buffer: &mut [u8]) -> Result<Time, DeviceError> {
        let place = self.place(address);
        match &self.device {
            Device::Blocks(device) => device.read(place, buffer, task.now()),
            Device::Zones(zones) => zones.device().read(place, buffer, task.now()),
        }
    }

    /// Starts or stops queueing changes of the log for [`make_changes`](Media::make_changes).
    pub fn queue_changes(&self, is_queued: bool) {
        self.queue.set_used(is_queued);
    }

    /// Makes queued changes in order, and waits for all that have begun. After a failure no further change is made.
    ///
    /// Writes overlap: those of a sync at several heads lie far from each other, so that the device can serve them at once.
    pub fn make_changes(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        while let Some(change) = self.queue.first() {
            self.begin_change(task, &change).inspect_err(|_| self.queue.fail())?;
            self.queue.pop();
            if let Change::Write(bytes, _) = change
                && let Ok(bytes) = Arc::try_unwrap(bytes)
            {
                self.keep(bytes);
            }
        }
        self.wait_for_writes(task);
        Ok(())
    }

    fn wait_for_writes(&self, task: &Task<'_>) {
        task.wait_until(Time(self.writes_until.swap(0, Ordering::Relaxed)));
    }

    /// Begins a write, or makes another change.
    fn begin_change(&self, task: &Task<'_>, change: &Change) -> Result<(), DeviceError> {
        match change {
            Change::Write(bytes, runs) => {
                for run in runs {
                    let done = self.begin_write(task, run.address, &bytes[run.bytes.clone()], run.label)?;
                    self.writes_until.fetch_max(done.0, Ordering::Relaxed);
                }
                Ok(())
            }
            Change::Begin(segment) => self.on_zone(task, *segment, empty),
            Change::End(segment) => self.on_zone(task, *segment, |device, zone, at| match device.zone(zone).state {
                ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => device.finish(zone, at),
                _ => Ok(at),
            }),
            Change::Discard(segment) => {
                if let Device::Blocks(device) = &self.device {
                    let first = self.place(u64::from(*segment) * u64::from(self.segment_blocks));
                    task.ask(|at| device.discard(first, u64::from(self.segment_blocks), at))?;
                }
                self.on_zone(task, *segment, empty)
            }
        }
    }

    /// Makes a change, or queues it. [`make_changes`](Media::make_changes) waits for it.
    fn change(&self, task: &Task<'_>, change: Change) -> Result<(), DeviceError> {
        match self.queue.is_used() {
            true => {
                self.queue.push(change);
                Ok(())
            }
            false => self.begin_change(task, &change),
        }
    }

    /// An empty buffer for blocks to write.
    pub fn buffer(&self) -> Vec<u8> {
        std::mem::take(&mut self.spare.lock().expect("no thread panics while it holds the buffer"))
    }

    fn keep(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        *self.spare.lock().expect("no thread panics while it holds the buffer") = bytes;
    }

    /// Writes these blocks, or queues them.
    pub fn write(&self, task: &Task<'_>, bytes: Vec<u8>, runs: Vec<BlockRun>) -> Result<(), DeviceError> {
        let bytes = Arc::new(bytes);
        let written = self.change(task, Change::Write(Arc::clone(&bytes), runs));
        if let Ok(bytes) = Arc::try_unwrap(bytes) {
            self.keep(bytes);
        }
        written
    }

    /// Appends blocks to one segment, and returns the completion time.
    pub fn begin_write(&self, task: &Task<'_>, address: u64, buffer: &[u8], label: Label) -> Result<Time, DeviceError> {
        let (blocks, segment_blocks) = ((buffer.len() / self.block_width()) as u64, u64::from(self.segment_blocks));
        assert!(
            address / segment_blocks < u64::from(self.segments)
                && address % segment_blocks + blocks <= segment_blocks
                && buffer.len().is_multiple_of(self.block_width()),
            "{blocks} blocks at {address} of the log exceed a segment"
        );
        task.give_way();
        let place = self.place(address);
        match &self.device {
            Device::Blocks(device) => device.write(place, buffer, label, task.now()),
            Device::Zones(zones) => zones.device().write(place, buffer, label, task.now()),
        }
    }

    /// Applies an operation to a segment's zone, and waits for it. Does nothing on blocks.
    fn on_zone(
        &self,
        task: &Task<'_>,
        segment: u32,
        act: impl FnOnce(&mut dyn ZonedDevice, u32, Time) -> Result<Time, DeviceError>,
    ) -> Result<(), DeviceError> {
        assert!(segment < self.segments, "segment {segment} of {}", self.segments);
        if let Device::Zones(zones) = &self.device {
            // What is written before is in the zone first.
            self.wait_for_writes(task);
            task.ask(|at| act(&mut **zones.device(), zones.of_segment(segment), at))?;
        }
        Ok(())
    }

    /// Prepares a segment for writing from its first block.
    pub fn begin(&self, task: &Task<'_>, segment: u32) -> Result<(), DeviceError> {
        self.fetching.begin(segment);
        self.change(task, Change::Begin(segment))
    }

    /// Ends writing to a segment.
    pub fn end(&self, task: &Task<'_>, segment: u32) -> Result<(), DeviceError> {
        self.change(task, Change::End(segment))
    }

    /// Discards a segment, or resets its zone.
    pub fn discard(&self, task: &Task<'_>, segment: u32) -> Result<(), DeviceError> {
        assert!(segment < self.segments, "segment {segment} of {}", self.segments);
        self.change(task, Change::Discard(segment))
    }

    /// True if discards are slow, and better done when idle.
    pub fn discards_slowly(&self) -> bool {
        self.has_writes_in_flight.load(Ordering::Relaxed)
    }

    /// Maximum segments that can be partly written at once; `None` if there is no limit.
    pub fn most_open_segments(&self) -> Option<u32> {
        let Device::Zones(zones) = &self.device else { return None };
        let shape = zones.device().shape();
        let limit = [shape.max_open, shape.max_active].into_iter().filter(|limit| *limit > 0).min()?;
        // A zone of superblocks is open, too, and for a moment both.
        Some(limit.saturating_sub(2))
    }

    /// True if segments are zones.
    pub fn is_zoned(&self) -> bool {
        matches!(self.device, Device::Zones(_))
    }

    /// True if writing can continue at this block of the segment.
    pub fn can_append_at(&self, segment: u32, block: u32) -> bool {
        match &self.device {
            Device::Blocks(_) => true,
            Device::Zones(zones) => zones.device().zone(zones.of_segment(segment)).write_pointer == u64::from(block),
        }
    }

    /// Blocks of a segment that may hold data: for a zone, those before its write pointer.
    pub fn written(&self, segment: u32) -> u32 {
        match &self.device {
            Device::Blocks(_) => self.segment_blocks,
            Device::Zones(zones) => {
                let zone = zones.device().zone(zones.of_segment(segment));
                match zone.state {
                    ZoneState::Full => self.segment_blocks,
                    _ => zone.write_pointer.min(self.segment_blocks.into()) as u32,
                }
            }
        }
    }

    /// Resets zones that hold data of an earlier volume.
    pub fn clear_zones(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        match self.is_zoned() {
            true => (0..self.segments).try_for_each(|segment| self.begin(task, segment)),
            false => Ok(()),
        }
    }

    /// Makes queued changes, flushes, and waits.
    pub fn flush(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        self.make_changes(task)?;
        task.ask(|at| match &self.device {
            Device::Blocks(device) => device.flush(at),
            Device::Zones(zones) => zones.device().flush(at),
        })
    }

    /// Does a piece of the device's own background work, and returns the time of the next.
    pub fn work(&self, task: &Task<'_>) -> Result<Option<Time>, DeviceError> {
        match &self.device {
            Device::Blocks(device) => device.work(task.now()),
            Device::Zones(_) => Ok(None),
        }
    }

    /// Closes the device.
    pub fn close(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        self.make_changes(task)?;
        match &self.device {
            Device::Blocks(device) => task.ask(|at| device.close(at)),
            Device::Zones(_) => self.flush(task),
        }
    }

    /// On a device of blocks, the place of the next superblock holds a damaged one.
    pub fn note_damaged_place(&self) {
        self.has_damaged_place.store(true, Ordering::Relaxed);
    }

    /// Wipes the place of the superblock with this sequence number, if it holds a damaged one. That may be a torn one of the same
    /// number, which a mount wrote that crashed. Were the next one torn over it, sectors in which both are equal could complete the
    /// older one, though the metadata that it names has been overwritten.
    pub fn wipe_damaged_place(&self, task: &Task<'_>, sequence: u64) -> Result<(), DeviceError> {
        let Device::Blocks(device) = &self.device else { return Ok(()) };
        if !self.has_damaged_place.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let place = superblock_places(self.segment_blocks)[(sequence % 2) as usize];
        // No sector of a superblock is so.
        let filled = vec![0xFF; self.block_width()];
        task.ask(|at| device.write(place, &filled, SUPERBLOCK, at))?;
        self.flush(task)
    }

    /// Writes the superblock with this sequence number.
    pub fn write_superblock(&self, task: &Task<'_>, sequence: u64, bytes: &BlockBytes) -> Result<(), DeviceError> {
        let width = self.block_width();
        let buffer = if width == BLOCK { &bytes[..] } else { &bytes[..width] };
        task.ask(|at| match &self.device {
            Device::Blocks(device) => {
                let place = superblock_places(self.segment_blocks)[(sequence % 2) as usize];
                device.write(place, buffer, SUPERBLOCK, at)
            }
            Device::Zones(zones) => {
                let mut at = at;
                let mut device = zones.device();
                let mut turn = self.turn.load(Ordering::Relaxed);
                let report = device.zone(zones.of_superblocks(turn));
                let is_left = self.leaves_zone.swap(false, Ordering::Relaxed);
                if is_left || report.write_pointer >= report.capacity || report.state == ZoneState::Full {
                    turn = 1 - turn;
                    self.turn.store(turn, Ordering::Relaxed);
                    at = device.reset(zones.of_superblocks(turn), at)?;
                }
                let zone = zones.of_superblocks(turn);
                let place = Lba(u64::from(zone) * zones.zone_blocks + device.zone(zone).write_pointer);
                device.write(place, buffer, SUPERBLOCK, at)
            }
        })
    }

    /// The next two superblocks are of one checkpoint. On zones they lie in one zone, so that two damaged ones in one
    /// zone were not torn by crashes.
    pub fn keep_superblocks_together(&self) {
        if let Device::Zones(zones) = &self.device {
            let report = zones.device().zone(zones.of_superblocks(self.turn.load(Ordering::Relaxed)));
            if report.write_pointer + 2 > report.capacity {
                self.leave_superblock_zone();
            }
        }
    }

    /// On zones, the next superblock begins the other one of the two.
    pub fn leave_superblock_zone(&self) {
        self.leaves_zone.store(true, Ordering::Relaxed);
    }

    /// Empties the places of superblocks, before a volume is made: its own, and those in the same room where that of an
    /// older volume would be found first, should its own first one be damaged.
    pub fn clear_superblocks(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        self.turn.store(0, Ordering::Relaxed);
        match &self.device {
            Device::Blocks(device) => {
                let zeros = vec![0; self.block_width()];
                let others =
                    (3..=17).map(|power| 1 << power).filter(|place| *place < u64::from(self.segment_blocks)).map(Lba);
                for place in superblock_places(self.segment_blocks).into_iter().chain(others) {
                    task.ask(|at| device.write(place, &zeros, SUPERBLOCK, at))?;
                }
            }
            Device::Zones(zones) => {
                for turn in 0..2 {
                    task.ask(|at| zones.device().reset(zones.of_superblocks(turn), at))?;
                }
            }
        }
        Ok(())
    }

    /// Continues in the superblock zone that holds the newest superblock.
    pub fn resume_superblocks_in(&self, turn: u32) {
        assert!(turn < 2, "there are two superblock zones");
        self.turn.store(turn, Ordering::Relaxed);
    }
}

/// Resets a zone that is not empty.
fn empty(device: &mut dyn ZonedDevice, zone: u32, at: Time) -> Result<Time, DeviceError> {
    match device.zone(zone).write_pointer {
        0 => Ok(at),
        _ => device.reset(zone, at),
    }
}

pub(super) fn superblock_places(segment_blocks: u32) -> [Lba; 2] {
    [Lba(0), Lba(u64::from(segment_blocks / 2))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::conv::Conventional;

    const DATA: Label = Label::first(Cause::HostWrite, Content::Data);

    #[test]
    fn segments_lie_behind_the_first_superblock_and_around_the_second() {
        let task = Task::at(Time::ZERO);
        let media = Media::new(Medium::Blocks(Box::new(Conventional::in_memory(64, BLOCK))), 16, 3);
        let block = |byte: u8| [byte; BLOCK];
        for address in [0, 15, 16, 47] {
            media.begin_write(&task, address, &block(address as u8 + 1), DATA).unwrap();
        }
        media.write_superblock(&task, 6, &block(6)).unwrap();
        media.write_superblock(&task, 7, &block(7)).unwrap();
        media.flush(&task).unwrap();
        assert_eq!((media.segment_of(15), media.segment_of(16), media.log_blocks()), (0, 1, 48));
        for address in [0, 15, 16, 47] {
            let mut bytes = [0; BLOCK];
            media.read(&task, address, &mut bytes).unwrap();
            assert_eq!(bytes, block(address as u8 + 1), "block {address} of the log");
        }
        let Medium::Blocks(device) = media.into_medium() else { panic!("the medium is a block device") };
        for (place, byte) in [(0, 6), (8, 7), (16, 1), (63, 48)] {
            let mut bytes = [0; BLOCK];
            device.read(Lba(place), &mut bytes, Time::ZERO).unwrap();
            assert_eq!(bytes, block(byte), "block {place} of the device");
        }
    }
}
