//! The device below, in blocks of the volume: of 1, 2 or 4 KiB, which may be parts of the device's blocks.
//!
//! A device of stamps keeps four bytes of a block. A block of metadata goes there as its checksum, and is never read
//! back; a block of a file is its stamp.

use crate::device::{Account, BlockDevice, DeviceError, Lba, STAMP_BYTES};
use crate::label::{Label, Tally};
use crate::task::{Gate, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const UNIT: usize = BLOCK_BYTES as usize;
/// Gates for blocks of the device of which a part is written.
const PART_GATES: usize = 64;

/// The device below, in blocks of the volume.
pub struct Media {
    device: Box<dyn BlockDevice>,
    block_bytes: usize,
    holds_stamps: bool,
    parts: Vec<Gate<()>>,
    sent: Mutex<Tally>,
    read_blocks: AtomicU64,
    /// Writes, and writes before the last flush that was answered: what may be lost.
    writes: AtomicU64,
    flushed: AtomicU64,
}

impl Media {
    /// A device in blocks of so many bytes. A device of stamps has blocks of 4 KiB.
    pub fn new(device: Box<dyn BlockDevice>, block_bytes: usize) -> Media {
        let holds_stamps = device.block_width() != UNIT;
        debug_assert!(block_bytes == UNIT || !holds_stamps && block_bytes < UNIT, "a stamp stands for 4 KiB");
        let parts = (0..PART_GATES).map(|_| Gate::new("part of a block", ())).collect();
        let (writes, flushed) = (AtomicU64::new(0), AtomicU64::new(0));
        let (sent, read_blocks) = (Mutex::default(), AtomicU64::new(0));
        Media { device, block_bytes, holds_stamps, parts, sent, read_blocks, writes, flushed }
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

    /// True if what is read back are stamps, so that metadata must stay in memory.
    pub fn holds_stamps(&self) -> bool {
        self.holds_stamps
    }

    pub fn size_bytes(&self) -> u64 {
        self.device.blocks() * BLOCK_BYTES
    }

    pub fn is_timed(&self) -> bool {
        self.device.is_timed()
    }

    /// The account of the device, what was sent to it, and blocks of the device that were read.
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
        self.writes.fetch_add(1, Ordering::SeqCst);
        if self.holds_stamps {
            return self.send(task, first, bytes, label);
        }
        // Blocks of the device that are written in part are read before; others who write the rest of them wait.
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
        if !self.holds_stamps {
            return self.write(task, first, bytes, label);
        }
        let stamps: Vec<u8> =
            bytes.chunks_exact(self.block_bytes).flat_map(|block| crc32c::crc32c(block).to_le_bytes()).collect();
        self.write(task, first, &stamps, label)
    }

    fn send(&self, task: &Task<'_>, unit: u64, bytes: &[u8], label: Label) -> Result<(), DeviceError> {
        let width = if self.holds_stamps { STAMP_BYTES } else { UNIT };
        self.tally(|sent| sent.add(label, (bytes.len() / width) as u64));
        task.ask(|at| self.device.write(Lba(unit), bytes, label, at))
    }

    /// Makes all writes durable that were answered before.
    pub fn flush(&self, task: &Task<'_>) -> Result<(), DeviceError> {
        let writes = self.writes.load(Ordering::SeqCst);
        task.ask(|at| self.device.flush(at))?;
        self.flushed.fetch_max(writes, Ordering::SeqCst);
        Ok(())
    }

    /// True if something was written since the last flush.
    pub fn is_unflushed(&self) -> bool {
        self.writes.load(Ordering::SeqCst) > self.flushed.load(Ordering::SeqCst)
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
