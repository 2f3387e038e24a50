//! Labels the writes of a file system that gives no labels, by reading its metadata.
//!
//! A wrapper around the device below a file system of the kernel or of a client. It reads the layouts of the file
//! systems on the device ([`FileSystems`]) and remembers the blocks read. After a write to one of these, it reads the
//! layouts again at the next flush: mkfs, a moved journal, a growing file system all end with a flush. So labels are as
//! old as the last flush. Without a readable file system, all writes are data.

use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba, NO_HINT, blocks_in};
use crate::label::{Content, Label};
use crate::layout::FileSystems;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{RwLock, RwLockReadGuard};

/// A device that labels the writes to it by content, and sets the journal's location on the device below.
///
/// The device must store bytes; with stamps nothing can be read, and all labels stay. A write with another label than
/// data keeps it.
pub struct Labelling<D> {
    device: D,
    /// Locked for writing while the file systems are read: a concurrent write then waits and makes them stale.
    layouts: RwLock<Layouts>,
    /// True if a block from which the file systems were read was written since.
    is_stale: AtomicBool,
}

/// The file systems of the device as last read.
#[derive(Default)]
struct Layouts {
    file_systems: FileSystems,
    /// The blocks from which they were read.
    blocks_read: BTreeSet<u64>,
    /// The journal ranges set on the device below.
    journals: Vec<Range<Lba>>,
}

/// Code that holds the lock calls the device, which panics for a bug only.
const UNBROKEN: &str = "no thread panicked while file systems were read";

impl<D: BlockDevice> Labelling<D> {
    /// Reads the file systems on the device, and labels writes from now on. Fails if the device rejects a journal.
    pub fn new(device: D, at: Time) -> Result<Labelling<D>, DeviceError> {
        let labelling = Labelling { device, layouts: RwLock::default(), is_stale: AtomicBool::new(true) };
        labelling.read_again(at)?;
        Ok(labelling)
    }

    /// The number of file systems when they were last read.
    pub fn file_systems(&self) -> usize {
        self.layouts().file_systems.iter().count()
    }

    /// Reads the file systems again, and sets the journals on the device below if they have moved.
    fn read_again(&self, at: Time) -> Result<(), DeviceError> {
        if self.device.block_width() as u64 != BLOCK_BYTES {
            return Ok(());
        }
        let size_bytes = self.device.blocks() * BLOCK_BYTES;
        let mut now = self.layouts.write().expect(UNBROKEN);
        let mut blocks_read = BTreeSet::new();
        self.is_stale.store(false, Relaxed);
        let mut read = |offset: u64, buffer: &mut [u8]| -> io::Result<()> {
            let blocks = offset / BLOCK_BYTES..(offset + buffer.len() as u64).div_ceil(BLOCK_BYTES);
            let mut bytes = vec![0; ((blocks.end - blocks.start) * BLOCK_BYTES) as usize];
            blocks_read.extend(blocks.clone());
            self.device.read(Lba(blocks.start), &mut bytes, at).map_err(io::Error::other)?;
            let from = (offset - blocks.start * BLOCK_BYTES) as usize;
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(())
        };
        let read = FileSystems::read(&mut read, size_bytes);
        if read.is_err() {
            // A device that cannot be read now may be readable later.
            self.is_stale.store(true, Relaxed);
        }
        (now.file_systems, now.blocks_read) = (read.unwrap_or_default(), blocks_read);
        let whole_blocks = |range: Range<u64>| Lba(range.start.div_ceil(BLOCK_BYTES))..Lba(range.end / BLOCK_BYTES);
        let journals: Vec<Range<Lba>> =
            now.file_systems.journals().map(whole_blocks).filter(|range| range.start < range.end).collect();
        if journals != now.journals {
            self.device.set_journal(&journals)?;
            now.journals = journals;
        }
        Ok(())
    }

    fn layouts(&self) -> RwLockReadGuard<'_, Layouts> {
        self.layouts.read().expect(UNBROKEN)
    }

    /// Records that blocks from which the file systems were read may have changed.
    fn record_change(&self, first: Lba, blocks: u64) {
        if self.layouts().blocks_read.range(first.0..first.0.saturating_add(blocks)).next().is_some() {
            self.is_stale.store(true, Relaxed);
        }
    }

    /// The content of the first block of `buffer`, which is at `first`, and the bytes of the run of blocks with that content.
    fn next_run(&self, first: Lba, buffer: &[u8]) -> (Content, usize) {
        let layouts = self.layouts();
        let content_of = |(number, block): (u64, &[u8])| {
            layouts.file_systems.content_of((first.0 + number).saturating_mul(BLOCK_BYTES), block)
        };
        let mut contents = (0..).zip(buffer.chunks_exact(BLOCK_BYTES as usize)).map(content_of);
        let content = contents.next().expect("a write holds blocks");
        let blocks = 1 + contents.take_while(|other| *other == content).count();
        (content, blocks * BLOCK_BYTES as usize)
    }

    /// Writes each run of blocks of one content with its label.
    fn write_labelled(
        &self,
        first: Lba,
        buffer: &[u8],
        (label, hint): (Label, u8),
        at: Time,
    ) -> Result<Time, DeviceError> {
        let width = self.device.block_width();
        if label.content != Content::Data || width as u64 != BLOCK_BYTES {
            return self.device.write_placed(first, buffer, label, hint, at);
        }
        let (mut next, mut rest, mut done) = (first, buffer, at);
        while !rest.is_empty() {
            let (content, length) = self.next_run(next, rest);
            let (run, behind) = rest.split_at(length);
            done = done.max(self.device.write_placed(next, run, Label { content, ..label }, hint, at)?);
            next = next + (length / width) as u64;
            rest = behind;
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
        self.write_placed(first, buffer, label, NO_HINT, at)
    }

    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, hint: u8, at: Time) -> Result<Time, DeviceError> {
        let written = self.write_labelled(first, buffer, (label, hint), at);
        self.record_change(first, blocks_in(buffer.len(), self.device.block_width()));
        written
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        let done = self.device.discard(first, blocks, at);
        self.record_change(first, blocks);
        done
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        let done = self.device.flush(at)?;
        if self.is_stale.load(Relaxed) {
            self.read_again(done)?;
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

    fn bytes_behind(&self) -> u64 {
        self.device.bytes_behind()
    }
}
