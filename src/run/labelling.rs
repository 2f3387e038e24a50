//! Labels for what a file system writes, where nothing but the writes tells: its own metadata says where its journal is.
//!
//! A wrapper around the device that a file system stands on, be that the kernel's or a client's. It reads where the file
//! systems on the device keep what ([`FileSystems`]), and remembers which blocks said so. Once one of them has been
//! written, it reads again at the next flush: mkfs, a journal made anew in another place, a file system that grows, all
//! end with one. In between, labels are as old as the last flush. Where there is no file system yet, or one that cannot be
//! read, what is written is data.

use crate::device::{Account, BlockDevice, DeviceError, Extent, Lba, blocks_in};
use crate::label::{Content, Label};
use crate::layout::FileSystems;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

/// A device that labels what is written to it by content, and tells the device below where the journals are.
///
/// The device must carry bytes; where it carries stamps, nothing can be read and all stays as it was labelled. What comes
/// with another label than data keeps it.
pub struct Labelling<D> {
    device: D,
    file_systems: FileSystems,
    /// The blocks that the file systems were read from.
    looked_at: BTreeSet<u64>,
    /// Whether one of those was written since.
    is_stale: bool,
    /// Where the device below was told the journals are.
    journals: Vec<Range<Lba>>,
}

impl<D: BlockDevice> Labelling<D> {
    /// Reads what file systems are on the device, and labels from now on. Fails if the device does not take the place of a
    /// journal.
    pub fn new(device: D, at: Time) -> Result<Labelling<D>, DeviceError> {
        let mut labelling = Labelling {
            device,
            file_systems: FileSystems::default(),
            looked_at: BTreeSet::new(),
            is_stale: true,
            journals: Vec::new(),
        };
        labelling.look_again(at)?;
        Ok(labelling)
    }

    /// The file systems, as they were last read.
    pub fn file_systems(&self) -> &FileSystems {
        &self.file_systems
    }

    /// Reads the file systems again, and tells the device below if a journal has moved.
    fn look_again(&mut self, at: Time) -> Result<(), DeviceError> {
        if self.device.block_width() as u64 != BLOCK_BYTES {
            return Ok(());
        }
        let size_bytes = self.device.blocks() * BLOCK_BYTES;
        let (device, looked_at) = (&mut self.device, &mut self.looked_at);
        looked_at.clear();
        let mut read = |offset: u64, buffer: &mut [u8]| -> io::Result<()> {
            let blocks = offset / BLOCK_BYTES..(offset + buffer.len() as u64).div_ceil(BLOCK_BYTES);
            let mut bytes = vec![0; ((blocks.end - blocks.start) * BLOCK_BYTES) as usize];
            looked_at.extend(blocks.clone());
            device.read(Lba(blocks.start), &mut bytes, at).map_err(io::Error::other)?;
            let from = (offset - blocks.start * BLOCK_BYTES) as usize;
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(())
        };
        let found = FileSystems::read(&mut read, size_bytes);
        // A device that cannot be read now may be later.
        self.is_stale = found.is_err();
        self.file_systems = found.unwrap_or_default();
        let whole_blocks = |range: Range<u64>| Lba(range.start.div_ceil(BLOCK_BYTES))..Lba(range.end / BLOCK_BYTES);
        let journals: Vec<Range<Lba>> =
            self.file_systems.journals().map(whole_blocks).filter(|range| range.start < range.end).collect();
        if journals != self.journals {
            self.device.journal_is_at(&journals)?;
            self.journals = journals;
        }
        Ok(())
    }

    /// Takes note if what the file systems were read from changes.
    fn changes(&mut self, first: Lba, blocks: u64) {
        self.is_stale |= self.looked_at.range(first.0..first.0.saturating_add(blocks)).next().is_some();
    }
}

impl<D: BlockDevice> BlockDevice for Labelling<D> {
    fn blocks(&self) -> u64 {
        self.device.blocks()
    }

    fn block_width(&self) -> usize {
        self.device.block_width()
    }

    fn is_timed(&self) -> bool {
        self.device.is_timed()
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.device.read(first, buffer, at)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let width = self.device.block_width();
        let count = blocks_in(buffer.len(), width);
        self.changes(first, count);
        if label.content != Content::Data || width as u64 != BLOCK_BYTES {
            return self.device.write(first, buffer, label, at);
        }
        let content_of = |(number, block): (u64, &[u8])| {
            self.file_systems.content_of((first.0 + number).saturating_mul(BLOCK_BYTES), block)
        };
        let contents: Vec<Content> = (0..).zip(buffer.chunks_exact(width)).map(content_of).collect();
        let (mut block, mut done) = (0, at);
        for run in contents.chunk_by(|a, b| a == b) {
            let part = &buffer[block * width..(block + run.len()) * width];
            let label = Label { content: run[0], ..label };
            done = done.max(self.device.write(first + block as u64, part, label, at)?);
            block += run.len();
        }
        Ok(done)
    }

    fn discard(&mut self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.changes(first, blocks);
        self.device.discard(first, blocks, at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        let done = self.device.flush(at)?;
        if self.is_stale {
            self.look_again(done)?;
        }
        Ok(done)
    }

    fn extent(&mut self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        self.device.extent(first, blocks)
    }

    fn work(&mut self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.device.work(now)
    }

    fn journal_is_at(&mut self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        self.device.journal_is_at(journal)
    }

    fn close(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.device.close(at)
    }

    fn account(&self) -> Account {
        self.device.account()
    }
}
