//! A block device as a backend of the engine.

use super::answered::{Answered, answers_with_times};
use super::{Backend, HostWrite};
use crate::device::{Account, BlockDevice, DeviceError, Lba, STAMP_BYTES, fill_with_stamp};
use crate::label::Label;
use crate::run::accounts::Stored;
use crate::run::blocks::{AT_ONCE, TORN, covered, cut, parts, touched};
use crate::run::error::RunError;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// A block device as a backend.
pub struct DeviceBackend {
    device: Box<dyn BlockDevice>,
    width: usize,
    blocks: u64,
    is_timed: bool,
    /// Holds the largest part of a request.
    buffer: Vec<u8>,
    answered: Answered,
}

impl DeviceBackend {
    pub fn new(device: Box<dyn BlockDevice>) -> DeviceBackend {
        let (width, blocks, is_timed) = (device.block_width(), device.blocks(), device.is_timed());
        DeviceBackend {
            device,
            width,
            blocks,
            is_timed,
            buffer: vec![0; AT_ONCE as usize * width],
            answered: Answered::default(),
        }
    }

    /// Reads blocks.
    fn read_blocks(
        &mut self,
        blocks: Range<u64>,
        at: Time,
        mut see: impl FnMut(u64, Option<u32>),
    ) -> Result<Time, DeviceError> {
        let mut done = at;
        for (block, count) in parts(blocks) {
            let buffer = &mut self.buffer[..count as usize * self.width];
            done = done.max(self.device.read(Lba(block), buffer, at)?);
            for (bytes, number) in buffer.chunks_exact(self.width).zip(block..) {
                see(number, stamp_of(bytes));
            }
        }
        Ok(done)
    }
}

/// The stamp of a block; `None` for zeros.
pub(super) fn stamp_of(block: &[u8]) -> Option<u32> {
    let mut words =
        block.chunks_exact(STAMP_BYTES).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let first = words.next().unwrap_or(0);
    match words.all(|word| word == first) {
        true => (first != 0).then_some(first),
        false => Some(TORN),
    }
}

impl Backend for DeviceBackend {
    answers_with_times!();

    fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn unit_bytes(&self) -> u64 {
        BLOCK_BYTES
    }

    fn exported_bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// Works until the device has nothing more that is due.
    fn work(&mut self, at: Time) -> Result<(), RunError> {
        while self.device.work(at)?.is_some_and(|more| more <= at) {}
        Ok(())
    }

    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError> {
        let mut begin = at;
        for block in cut(range) {
            begin = begin.max(self.read_blocks(block..block + 1, at, |_, _| {})?);
        }
        let mut done = begin;
        for (block, count) in parts(touched(range)) {
            let buffer = &mut self.buffer[..count as usize * self.width];
            fill_with_stamp(write.stamp, buffer);
            let label = Label::host(write.content);
            done = done.max(self.device.write_placed(Lba(block), buffer, label, write.stream, begin)?);
        }
        Ok(done)
    }

    fn read(&mut self, range: (u64, u64), at: Time, see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError> {
        Ok(self.read_blocks(touched(range), at, see)?)
    }

    fn discard(&mut self, range: (u64, u64), at: Time) -> Result<(Range<u64>, Time), RunError> {
        let blocks = covered(range);
        let done = match blocks.end - blocks.start {
            0 => at,
            count => self.device.discard(Lba(blocks.start), count, at)?,
        };
        Ok((blocks, done))
    }

    fn flush(&mut self, at: Time) -> Result<Time, RunError> {
        Ok(self.device.flush(at)?)
    }

    fn account(&self) -> Account {
        self.device.account()
    }

    fn stored(&self) -> Stored {
        Stored::of(&self.device.account())
    }
}
