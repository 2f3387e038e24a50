//! Bytes over a device of whole blocks.

use super::ByteExtent;
use crate::device::{BlockDevice, DeviceError, Lba};
use crate::label::{Content, Label};
use crate::time::Time;
use crate::units::BLOCK_BYTES;

/// Why clients write: what their blocks hold is for stations below to find out.
const LABEL: Label = Label::host(Content::Data);

/// Blocks of zeros that are written at once.
const ZEROS: usize = 64;

/// A device whose ranges need not be whole blocks.
pub(super) struct Bytes {
    device: Box<dyn BlockDevice>,
    /// One block, of which only a part is asked for.
    scratch: Box<[u8]>,
    /// What is written where zeros must be stored.
    zeros: Box<[u8]>,
}

/// A range of bytes as blocks: a part of one, whole ones, and a part of another.
struct Split {
    /// Bytes in the first block, which is not whole; 0 if it is.
    head: usize,
    /// Bytes of whole blocks.
    whole: usize,
    /// Bytes in the last block, which is not whole; 0 if it is.
    tail: usize,
}

impl Split {
    fn of(offset: u64, length: u64) -> Split {
        let into = offset % BLOCK_BYTES;
        let head = if into == 0 { 0 } else { (BLOCK_BYTES - into).min(length) };
        let tail = (length - head) % BLOCK_BYTES;
        debug_assert!(head + tail <= length, "the parts of {length} bytes from {offset} on add up");
        Split { head: head as usize, whole: (length - head - tail) as usize, tail: tail as usize }
    }
}

fn block_of(offset: u64) -> Lba {
    Lba(offset / BLOCK_BYTES)
}

impl Bytes {
    pub fn new(device: Box<dyn BlockDevice>) -> Bytes {
        assert_eq!(device.block_width() as u64, BLOCK_BYTES, "clients read the bytes that they wrote");
        let scratch = vec![0; BLOCK_BYTES as usize].into();
        Bytes { device, scratch, zeros: vec![0; ZEROS * BLOCK_BYTES as usize].into() }
    }

    pub fn device(&mut self) -> &mut dyn BlockDevice {
        &mut *self.device
    }

    pub fn read(&mut self, offset: u64, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, .. } = Split::of(offset, buffer.len() as u64);
        let (head, rest) = buffer.split_at_mut(head);
        let (whole, tail) = rest.split_at_mut(whole);
        let mut done = at;
        if !head.is_empty() {
            done = done.max(self.device.read(block_of(offset), &mut self.scratch, at)?);
            let from = (offset % BLOCK_BYTES) as usize;
            head.copy_from_slice(&self.scratch[from..from + head.len()]);
        }
        let next = offset + head.len() as u64;
        if !whole.is_empty() {
            done = done.max(self.device.read(block_of(next), whole, at)?);
        }
        if !tail.is_empty() {
            done = done.max(self.device.read(block_of(next + whole.len() as u64), &mut self.scratch, at)?);
            tail.copy_from_slice(&self.scratch[..tail.len()]);
        }
        Ok(done)
    }

    pub fn write(&mut self, offset: u64, buffer: &[u8], at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, .. } = Split::of(offset, buffer.len() as u64);
        let (head, rest) = buffer.split_at(head);
        let (whole, tail) = rest.split_at(whole);
        let next = offset + head.len() as u64;
        let mut done = at;
        if !head.is_empty() {
            done = done.max(self.change(offset, head.len(), at, |part| part.copy_from_slice(head))?);
        }
        if !whole.is_empty() {
            done = done.max(self.device.write(block_of(next), whole, LABEL, at)?);
        }
        if !tail.is_empty() {
            let last = next + whole.len() as u64;
            done = done.max(self.change(last, tail.len(), at, |part| part.copy_from_slice(tail))?);
        }
        Ok(done)
    }

    pub fn zero(&mut self, offset: u64, length: u64, keep_stored: bool, at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, tail } = Split::of(offset, length);
        let (first, whole) = (offset + head as u64, whole as u64);
        let mut done = at;
        if head > 0 {
            done = done.max(self.change(offset, head, at, |part| part.fill(0))?);
        }
        if whole > 0 && keep_stored {
            let (mut next, end) = (first, first + whole);
            while next < end {
                let piece = (self.zeros.len() as u64).min(end - next);
                done = done.max(self.device.write(block_of(next), &self.zeros[..piece as usize], LABEL, at)?);
                next += piece;
            }
        } else if whole > 0 {
            done = done.max(self.device.discard(block_of(first), whole / BLOCK_BYTES, at)?);
        }
        if tail > 0 {
            done = done.max(self.change(first + whole, tail, at, |part| part.fill(0))?);
        }
        Ok(done)
    }

    pub fn discard(&mut self, offset: u64, length: u64, at: Time) -> Result<Time, DeviceError> {
        let Split { head, whole, .. } = Split::of(offset, length);
        match whole as u64 / BLOCK_BYTES {
            0 => Ok(at),
            blocks => self.device.discard(block_of(offset + head as u64), blocks, at),
        }
    }

    pub fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        self.device.flush(at)
    }

    pub fn extent(&mut self, offset: u64, length: u64) -> Result<ByteExtent, DeviceError> {
        let first = block_of(offset);
        let blocks = (offset + length).div_ceil(BLOCK_BYTES) - first.0;
        let extent = self.device.extent(first, blocks)?;
        debug_assert!((1..=blocks).contains(&extent.blocks), "a run is of those asked for, and not empty");
        let end = (first + extent.blocks).0 * BLOCK_BYTES;
        Ok(ByteExtent { length: (end - offset).min(length), is_stored: extent.is_stored })
    }

    /// Changes a part of one block.
    fn change(
        &mut self,
        offset: u64,
        length: usize,
        at: Time,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<Time, DeviceError> {
        let block = block_of(offset);
        let from = (offset % BLOCK_BYTES) as usize;
        assert!(
            length > 0 && from + length <= self.scratch.len(),
            "{length} bytes from {offset} on are in one block, of which the others stay"
        );
        let read = self.device.read(block, &mut self.scratch, at)?;
        change(&mut self.scratch[from..from + length]);
        self.device.write(block, &self.scratch, LABEL, read)
    }
}
