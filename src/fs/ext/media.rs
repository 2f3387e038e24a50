//! The devices below, in blocks of the volume: of 1, 2 or 4 KiB, which may be parts of a device's blocks. There is one, or
//! a second one for the journal, of blocks or of memory.
//!
//! A device of stamps keeps four bytes of a block. A block of metadata goes there as its checksum, and is never read
//! back; a block of a file is its stamp.

use super::error::OpenExtError;
use crate::crc;
use crate::device::{Account, BlockDevice, DeviceError, Lba, Medium, Monitor, Nvm, STAMP_BYTES};
use crate::label::{Cause, Content, Label, Tally};
use crate::task::{Gate, Step, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const UNIT: usize = BLOCK_BYTES as usize;
/// Gates for blocks of the device of which a part is written.
const PART_GATES: usize = 64;

/// The memory in which a journal is.
#[derive(Clone)]
pub enum JournalMemory {
    /// A region of non-volatile memory.
    Region(Arc<dyn Nvm>),
    /// That of the volume's own process, which a monitor keeps.
    Kept(Arc<dyn Monitor>),
}

/// The devices below a volume.
pub struct Below {
    pub volume: Box<dyn BlockDevice>,
    /// The one of blocks that the journal has for itself.
    pub journal: Option<Box<dyn BlockDevice>>,
    /// The memory that the journal has for itself.
    pub memory: Option<JournalMemory>,
}

impl Below {
    /// One or two devices: the second is the journal's.
    pub fn of(media: Vec<Medium>) -> Result<Below, OpenExtError> {
        let refused = |what: &str| Err(OpenExtError::Unsupported(what.to_string()));
        let mut media = media.into_iter();
        let volume = match media.next().expect("the table of stations says that ext stands on a device") {
            Medium::Blocks(device) => device,
            Medium::Zones(_) => return refused("ext stands on blocks that can be written in any order"),
            Medium::Memory(_) => return refused("ext stands on blocks, and memory has none: it can hold the journal"),
            Medium::Monitor(_) => {
                return refused("ext stands on blocks, and a monitor has none: it can keep the journal");
            }
        };
        let (journal, memory) = match media.next() {
            None => (None, None),
            Some(Medium::Blocks(device)) => (Some(device), None),
            Some(Medium::Memory(memory)) => (None, Some(JournalMemory::Region(memory.into()))),
            Some(Medium::Monitor(monitor)) => (None, Some(JournalMemory::Kept(monitor))),
            Some(Medium::Zones(_)) => {
                return refused("a journal needs blocks that can be written in any order, or memory");
            }
        };
        Ok(Below { volume, journal, memory })
    }
}

/// Makes all writes to these devices durable that were answered before. Those that work side by side flush so.
pub fn flush_all(task: &Task<'_>, devices: &[&Media]) -> Result<(), DeviceError> {
    let writes: Vec<u64> = devices.iter().map(|media| media.writes.load(Ordering::SeqCst)).collect();
    task.spend(Step::RequestServed, devices.len() as u64);
    task.ask(|at| -> Result<Time, DeviceError> {
        devices.iter().try_fold(at, |done, media| Ok(done.max(media.device.flush(at)?)))
    })?;
    for (media, writes) in devices.iter().zip(writes) {
        media.flushed.fetch_max(writes, Ordering::SeqCst);
    }
    Ok(())
}

/// Blocks that are written in one run.
pub struct Run {
    pub first: u64,
    /// Whole blocks of metadata, or blocks of a file of [`width`](Media::width) bytes.
    pub bytes: Vec<u8>,
    pub label: Label,
}

/// A device below, in blocks of the volume.
pub struct Media {
    device: Box<dyn BlockDevice>,
    block_bytes: usize,
    holds_stamps: bool,
    parts: Vec<Gate<()>>,
    sent: Mutex<Tally>,
    read_blocks: AtomicU64,
    /// Writes that were answered, and those of them before the last flush that was answered: the rest may be lost.
    writes: AtomicU64,
    flushed: AtomicU64,
    /// The number of writes after the last one of a file's bytes for its user.
    data: AtomicU64,
    /// The device copies the bytes of a write, and is handed parts that stay in a processor's cache.
    is_copied: AtomicBool,
}

/// Bytes of such a part: the least that a disk file writes past the page cache.
const COPIED_AT_ONCE: usize = 1 << 20;

impl Media {
    /// A device in blocks of so many bytes. A device of stamps has blocks of 4 KiB.
    pub fn new(device: Box<dyn BlockDevice>, block_bytes: usize) -> Media {
        let holds_stamps = device.block_width() != UNIT;
        debug_assert!(block_bytes == UNIT || !holds_stamps && block_bytes < UNIT, "a stamp stands for 4 KiB");
        let parts = (0..PART_GATES).map(|_| Gate::new("part of a block", ())).collect();
        let (writes, flushed) = (AtomicU64::new(0), AtomicU64::new(0));
        let (sent, read_blocks, data) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        let is_copied = AtomicBool::new(false);
        Media { device, block_bytes, holds_stamps, parts, sent, read_blocks, writes, flushed, data, is_copied }
    }

    /// The device, to be opened otherwise.
    pub fn into_device(self) -> Box<dyn BlockDevice> {
        self.device
    }

    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Bytes of a buffer for one block of a file.
    pub fn width(&self) -> usize {
        if self.holds_stamps { STAMP_BYTES } else { self.block_bytes }
    }

    /// True if reads return stamps, so that metadata must stay in memory.
    pub fn holds_stamps(&self) -> bool {
        self.holds_stamps
    }

    /// The part of the device that a volume may take. One of smaller blocks may end behind the last block of the device.
    pub fn size_bytes(&self) -> u64 {
        self.device.blocks() * BLOCK_BYTES + self.device.bytes_behind()
    }

    pub fn is_timed(&self) -> bool {
        self.device.is_timed()
    }

    /// The account of the device, the writes sent to it, and blocks of the device that were read.
    pub fn account(&self) -> (Account, Tally, u64) {
        (self.device.account(), self.tally(|sent| sent.clone()), self.read_blocks.load(Ordering::Relaxed))
    }

    fn tally<T>(&self, look: impl FnOnce(&mut Tally) -> T) -> T {
        look(&mut self.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The device's blocks that hold these bytes.
    fn units(&self, first: u64, bytes: usize) -> Range<u64> {
        let from = first * self.block_bytes as u64;
        from / BLOCK_BYTES..(from + bytes as u64).div_ceil(BLOCK_BYTES)
    }

    /// Reads blocks from `first` on, of [`width`](Media::width) bytes each.
    pub fn read(&self, task: &Task<'_>, first: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        task.spend(Step::RequestServed, 1);
        if self.holds_stamps {
            self.read_blocks.fetch_add((buffer.len() / STAMP_BYTES) as u64, Ordering::Relaxed);
            return task.ask(|at| self.device.read(Lba(first), buffer, at));
        }
        let units = self.units(first, buffer.len());
        self.read_blocks.fetch_add(units.end - units.start, Ordering::Relaxed);
        let head = (first * self.block_bytes as u64 - units.start * BLOCK_BYTES) as usize;
        if head == 0 && buffer.len().is_multiple_of(UNIT) {
            return task.ask(|at| self.device.read(Lba(units.start), buffer, at));
        }
        let mut whole = vec![0; (units.end - units.start) as usize * UNIT];
        task.ask(|at| self.device.read(Lba(units.start), &mut whole, at))?;
        buffer.copy_from_slice(&whole[head..head + buffer.len()]);
        Ok(())
    }

    /// Writes blocks from `first` on, of [`width`](Media::width) bytes each.
    pub fn write(&self, task: &Task<'_>, first: u64, bytes: &[u8], label: Label) -> Result<(), DeviceError> {
        let written = self.write_blocks(task, first, bytes, label);
        // A flush that began before the answer does not cover it.
        let writes = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        if label.cause == Cause::HostWrite {
            self.data.fetch_max(writes, Ordering::SeqCst);
        }
        written
    }

    fn write_blocks(&self, task: &Task<'_>, first: u64, bytes: &[u8], label: Label) -> Result<(), DeviceError> {
        if self.holds_stamps {
            return self.send(task, first, bytes, label);
        }
        // Blocks of the device that are written in part are read before; other writers of the rest of them wait.
        let mut rest = bytes;
        let mut at = first * self.block_bytes as u64;
        while !rest.is_empty() {
            let from = (at % BLOCK_BYTES) as usize;
            let count = match from {
                0 if rest.len() >= UNIT => rest.len() / UNIT * UNIT,
                _ => rest.len().min(UNIT - from),
            };
            let (part, behind) = rest.split_at(count);
            let unit = at / BLOCK_BYTES;
            if from == 0 && count >= UNIT {
                self.send(task, unit, part, label)?;
            } else {
                let _alone = self.parts[unit as usize % PART_GATES].enter(task);
                let mut whole = vec![0; UNIT];
                task.ask(|at| self.device.read(Lba(unit), &mut whole, at))?;
                whole[from..from + count].copy_from_slice(part);
                self.send(task, unit, &whole, label)?;
            }
            at += count as u64;
            rest = behind;
        }
        Ok(())
    }

    /// Writes blocks of metadata: their bytes, or a stamp for each.
    pub fn write_metadata(&self, task: &Task<'_>, first: u64, bytes: &[u8], label: Label) -> Result<(), DeviceError> {
        match self.holds_stamps {
            true => self.write(task, first, &self.stamps_of(bytes), label),
            false => self.write(task, first, bytes, label),
        }
    }

    /// A stamp for each block of metadata.
    fn stamps_of(&self, bytes: &[u8]) -> Vec<u8> {
        bytes.chunks_exact(self.block_bytes).flat_map(|block| crc::crc32c(block).to_le_bytes()).collect()
    }

    /// Writes several runs of blocks, of metadata or of files. Whole blocks of the device are under way at the same time.
    pub fn write_runs(&self, task: &Task<'_>, runs: Vec<Run>) -> Result<(), DeviceError> {
        let is_stamped = |run: &Run| self.holds_stamps && run.label.content != Content::Data;
        let form = |run: Run| if is_stamped(&run) { Run { bytes: self.stamps_of(&run.bytes), ..run } } else { run };
        let runs: Vec<Run> = runs.into_iter().map(form).collect();
        self.send_runs(task, &runs)
    }

    /// Writes several runs whose blocks all have [`width`](Media::width) bytes: of metadata, stamps if the device holds
    /// stamps.
    pub fn send_runs(&self, task: &Task<'_>, runs: &[Run]) -> Result<(), DeviceError> {
        if self.block_bytes != UNIT {
            return runs.iter().try_for_each(|run| self.write(task, run.first, &run.bytes, run.label));
        }
        for run in runs {
            let blocks = (run.bytes.len() / self.device.block_width()) as u64;
            self.tally(|sent| sent.add(run.label, blocks));
            self.spend(task, blocks);
        }
        let written = task.ask(|at| -> Result<Time, DeviceError> {
            let write = |run: &Run| self.device.write(Lba(run.first), &run.bytes, run.label, at);
            runs.iter().try_fold(at, |done, run| Ok(done.max(write(run)?)))
        });
        self.writes.fetch_add(1, Ordering::SeqCst);
        written
    }

    fn send(&self, task: &Task<'_>, unit: u64, bytes: &[u8], label: Label) -> Result<(), DeviceError> {
        let width = if self.holds_stamps { STAMP_BYTES } else { UNIT };
        self.tally(|sent| sent.add(label, (bytes.len() / width) as u64));
        self.spend(task, (bytes.len() / width) as u64);
        task.ask(|at| self.device.write(Lba(unit), bytes, label, at))
    }

    /// Spends the CPU time of a request for so many blocks. A device without times is memory, to which a processor copies.
    fn spend(&self, task: &Task<'_>, blocks: u64) {
        task.spend(Step::RequestServed, 1);
        if !self.is_timed() {
            task.spend(Step::BlockCopied, blocks);
        }
    }

    /// Makes all writes durable that were answered before.
    pub fn flush(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        flush_all(task, &[self])
    }

    /// Keeps all writes that were answered before in front of those that are made later, if the device keeps order.
    pub fn barrier(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        let epochs =
            self.device.epochs().expect("a volume on a device that keeps no order was not opened to rely on it");
        task.spend(Step::RequestServed, 1);
        task.ask(|at| epochs.barrier(at))
    }

    /// The device below.
    pub fn device(&self) -> &dyn BlockDevice {
        &*self.device
    }

    /// True if something was written since the last flush.
    pub fn is_unflushed(&self) -> bool {
        self.writes.load(Ordering::SeqCst) > self.flushed.load(Ordering::SeqCst)
    }

    /// True if bytes of a file were written for its user since the last flush. Blocks that a checkpoint has written need not be
    /// flushed for a sync: the journal has it until it is.
    pub fn is_data_unflushed(&self) -> bool {
        self.data.load(Ordering::SeqCst) > self.flushed.load(Ordering::SeqCst)
    }

    /// Lets the device answer writes that are in flight, up to so many bytes, if it can. Nothing here relies on a write
    /// before the next flush.
    pub fn write_behind(&self, bytes: u64) {
        self.is_copied.store(self.device.write_behind(bytes), Ordering::Relaxed);
    }

    /// True if the device answers writes that are in flight.
    pub fn is_written_behind(&self) -> bool {
        self.is_copied.load(Ordering::Relaxed)
    }

    /// Writes `count` blocks that lie one behind the other.
    pub fn write_pages<'p>(
        &self,
        task: &Task<'_>,
        mut first: u64,
        count: usize,
        pages: impl Iterator<Item = &'p [u8]>,
        label: Label,
    ) -> Result<(), DeviceError> {
        let most = if self.is_written_behind() { COPIED_AT_ONCE / self.block_bytes } else { usize::MAX };
        let (mut left, mut bytes) = (count, Vec::with_capacity(count.min(most) * self.width()));
        let mut gathered = 0;
        for page in pages {
            bytes.extend_from_slice(page);
            (left, gathered) = (left - 1, gathered + 1);
            if gathered == most || left == 0 {
                self.write(task, first, &bytes, label)?;
                first += gathered as u64;
                gathered = 0;
                bytes.clear();
            }
        }
        Ok(())
    }

    /// Tells the device where the journal lies.
    pub fn set_journal(&self, runs: &[Range<u64>]) -> Result<(), DeviceError> {
        let in_units = |block: u64| block * self.block_bytes as u64 / BLOCK_BYTES;
        let ranges: Vec<Range<Lba>> = runs.iter().map(|run| Lba(in_units(run.start))..Lba(in_units(run.end))).collect();
        self.device.set_journal(&ranges)
    }

    /// Background work of the device.
    pub fn work(&self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.device.work(now)
    }

    /// Closes the device in good order.
    pub fn close(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        task.ask(|at| self.device.close(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Abilities;
    use crate::device::conv::Conventional;
    use crate::label::Cause;
    use std::sync::{Arc, OnceLock};

    /// A device that is flushed by somebody else while it serves a write.
    struct FlushedMeanwhile {
        device: Conventional,
        media: Arc<OnceLock<Arc<Media>>>,
    }

    impl BlockDevice for FlushedMeanwhile {
        fn blocks(&self) -> u64 {
            self.device.blocks()
        }

        fn block_width(&self) -> usize {
            self.device.block_width()
        }

        fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
            self.device.read(first, buffer, at)
        }

        fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
            if let Some(media) = self.media.get() {
                media.flush(&Task::at(at))?;
            }
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

    impl Abilities for FlushedMeanwhile {
        fn wrapped(&self) -> Option<&dyn BlockDevice> {
            None
        }
    }

    /// A write was counted before it was answered: a flush of another thread meanwhile made it look durable, so that the
    /// writer's fsync did not flush.
    #[test]
    fn a_write_is_not_durable_by_a_flush_that_began_before_its_answer() {
        let seen = Arc::new(OnceLock::new());
        let device = Conventional::in_memory(16, UNIT);
        let media = Media::new(Box::new(FlushedMeanwhile { device, media: Arc::clone(&seen) }), UNIT);
        let media = Arc::new(media);
        assert!(seen.set(Arc::clone(&media)).is_ok());
        let task = Task::at(Time::ZERO);
        media.write(&task, 3, &[1; UNIT], Label::first(Cause::HostWrite, Content::Data)).unwrap();
        assert!(media.is_unflushed(), "the device may still lose it");
        media.flush(&task).unwrap();
        assert!(!media.is_unflushed());
    }
}
