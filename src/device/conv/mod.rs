//! A conventional device: blocks that can be written anywhere, again and again.

use super::block::{blocks_in, check_range};
use super::store::Memory;
use super::{Account, BlockDevice, DeviceError, Extent, Lba};
use crate::label::{Label, Tally};
use crate::time::Time;

/// A conventional device.
#[derive(Debug)]
pub struct Conventional {
    store: Memory,
    blocks: u64,
    received: Tally,
    read_blocks: u64,
}

impl Conventional {
    /// One in memory, of blocks of `width` bytes.
    pub fn in_memory(blocks: u64, width: usize) -> Conventional {
        Conventional { store: Memory::new(blocks, width), blocks, received: Tally::default(), read_blocks: 0 }
    }
}

impl BlockDevice for Conventional {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_width(&self) -> usize {
        self.store.width()
    }

    fn read(&mut self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.store.width());
        check_range(first, count, self.blocks)?;
        self.store.read(first, buffer);
        self.read_blocks += count;
        Ok(at)
    }

    fn write(&mut self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        let count = blocks_in(buffer.len(), self.store.width());
        check_range(first, count, self.blocks)?;
        self.store.write(first, buffer);
        self.received.add(label.cause, label.content, count);
        Ok(at)
    }

    fn discard(&mut self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        self.store.clear(first, blocks);
        Ok(at)
    }

    fn flush(&mut self, at: Time) -> Result<Time, DeviceError> {
        Ok(at)
    }

    fn extent(&mut self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        check_range(first, blocks, self.blocks)?;
        Ok(self.store.extent(first, blocks))
    }

    fn account(&self) -> Account {
        Account {
            station: "conv",
            received: self.received.clone(),
            sent: self.received.clone(),
            read_blocks: self.read_blocks,
            ..Account::default()
        }
    }
}
