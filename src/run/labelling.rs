//! Labels for what a file system writes, where nothing but the writes tells: its own metadata says where its journal is.
//!
//! A wrapper around the device that a file system stands on, be that the kernel's or a client's. It reads where the file
//! systems on the device keep what ([`FileSystems`]), and remembers which blocks said so. Once one of them has been
//! written, it reads again at the next flush: mkfs, a journal made anew in another place, a file system that grows, all
//! end with one. In between, labels are as old as the last flush. Where there is no file system yet, or one that cannot be
//! read, what is written is data.

use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba, blocks_in};
use crate::label::{Content, Label};
use crate::layout::FileSystems;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{RwLock, RwLockReadGuard};

/// A device that labels what is written to it by content, and tells the device below where the journals are.
///
/// The device must carry bytes; where it carries stamps, nothing can be read and all stays as it was labelled. What comes
/// with another label than data keeps it.
pub struct Labelling<D> {
    device: D,
    /// Held to change it while the file systems are read: a write that comes meanwhile is seen to have changed them.
    found: RwLock<Found>,
    /// True if a block that the file systems were read from was written since.
    is_stale: AtomicBool,
}

/// The file systems of the device, as they were last read.
#[derive(Default)]
struct Found {
    file_systems: FileSystems,
    /// The blocks that they were read from.
    looked_at: BTreeSet<u64>,
    /// Where the device below was told the journals are.
    journals: Vec<Range<Lba>>,
}

/// What holds the lock calls the device, which panics for a bug alone.
const UNBROKEN: &str = "no thread panicked while file systems were read";

impl<D: BlockDevice> Labelling<D> {
    /// Reads what file systems are on the device, and labels from now on. Fails if the device does not take the place of a
    /// journal.
    pub fn new(device: D, at: Time) -> Result<Labelling<D>, DeviceError> {
        let labelling = Labelling { device, found: RwLock::default(), is_stale: AtomicBool::new(true) };
        labelling.look_again(at)?;
        Ok(labelling)
    }

    /// How many file systems there were when they were last read.
    pub fn file_systems(&self) -> usize {
        self.found().file_systems.iter().count()
    }

    /// Reads the file systems again, and tells the device below if a journal has moved.
    fn look_again(&self, at: Time) -> Result<(), DeviceError> {
        if self.device.block_width() as u64 != BLOCK_BYTES {
            return Ok(());
        }
        let size_bytes = self.device.blocks() * BLOCK_BYTES;
        let mut now = self.found.write().expect(UNBROKEN);
        let mut looked_at = BTreeSet::new();
        self.is_stale.store(false, Relaxed);
        let mut read = |offset: u64, buffer: &mut [u8]| -> io::Result<()> {
            let blocks = offset / BLOCK_BYTES..(offset + buffer.len() as u64).div_ceil(BLOCK_BYTES);
            let mut bytes = vec![0; ((blocks.end - blocks.start) * BLOCK_BYTES) as usize];
            looked_at.extend(blocks.clone());
            self.device.read(Lba(blocks.start), &mut bytes, at).map_err(io::Error::other)?;
            let from = (offset - blocks.start * BLOCK_BYTES) as usize;
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(())
        };
        let read = FileSystems::read(&mut read, size_bytes);
        if read.is_err() {
            // A device that cannot be read now may be later.
            self.is_stale.store(true, Relaxed);
        }
        (now.file_systems, now.looked_at) = (read.unwrap_or_default(), looked_at);
        let whole_blocks = |range: Range<u64>| Lba(range.start.div_ceil(BLOCK_BYTES))..Lba(range.end / BLOCK_BYTES);
        let journals: Vec<Range<Lba>> =
            now.file_systems.journals().map(whole_blocks).filter(|range| range.start < range.end).collect();
        if journals != now.journals {
            self.device.journal_is_at(&journals)?;
            now.journals = journals;
        }
        Ok(())
    }

    fn found(&self) -> RwLockReadGuard<'_, Found> {
        self.found.read().expect(UNBROKEN)
    }

    /// Takes note if what the file systems were read from has changed.
    fn has_changed(&self, first: Lba, blocks: u64) {
        if self.found().looked_at.range(first.0..first.0.saturating_add(blocks)).next().is_some() {
            self.is_stale.store(true, Relaxed);
        }
    }

    /// Writes each run of blocks that hold the like with its content.
    fn write_labelled(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let width = self.device.block_width();
        if label.content != Content::Data || width as u64 != BLOCK_BYTES {
            return self.device.write(first, buffer, label, at);
        }
        let found = self.found();
        let content_of = |(number, block): (u64, &[u8])| {
            found.file_systems.content_of((first.0 + number).saturating_mul(BLOCK_BYTES), block)
        };
        let contents: Vec<Content> = (0..).zip(buffer.chunks_exact(width)).map(content_of).collect();
        drop(found);
        let (mut block, mut done) = (0, at);
        for run in contents.chunk_by(|a, b| a == b) {
            let part = &buffer[block * width..(block + run.len()) * width];
            let label = Label { content: run[0], ..label };
            done = done.max(self.device.write(first + block as u64, part, label, at)?);
            block += run.len();
        }
        Ok(done)
    }
}

impl<D: BlockDevice> BlockDevice for Labelling<D> {
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
        let written = self.write_labelled(first, buffer, label, at);
        self.has_changed(first, blocks_in(buffer.len(), self.device.block_width()));
        written
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        let done = self.device.discard(first, blocks, at);
        self.has_changed(first, blocks);
        done
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        let done = self.device.flush(at)?;
        if self.is_stale.load(Relaxed) {
            self.look_again(done)?;
        }
        Ok(done)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}

impl<D: BlockDevice> Abilities for Labelling<D> {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&self.device)
    }
}
