//! An opened device: of blocks, of zones, or of memory; or a monitor.

use super::{Account, BlockDevice, Monitor, Nvm, ZonedDevice};
use crate::units::BLOCK_BYTES;
use std::sync::Arc;

/// An opened device: of blocks, of zones, or of memory.
pub enum Medium {
    /// Blocks that can be written in any order.
    Blocks(Box<dyn BlockDevice>),
    /// Zones, each written in order.
    Zones(Box<dyn ZonedDevice>),
    /// Bytes in lines, durable after a fence.
    Memory(Box<dyn Nvm>),
    /// No medium of its own: keeps the memory of a volume's process.
    Monitor(Arc<dyn Monitor>),
}

impl Medium {
    /// The number of blocks; of memory, the blocks of 4 KiB that fit into it.
    pub fn blocks(&self) -> u64 {
        match self {
            Medium::Blocks(device) => device.blocks(),
            Medium::Zones(device) => u64::from(device.shape().zones) * device.shape().zone_blocks,
            Medium::Memory(memory) => memory.bytes() / BLOCK_BYTES,
            Medium::Monitor(_) => 0,
        }
    }

    /// Bytes of a buffer for one block. Memory always holds bytes.
    pub fn block_width(&self) -> usize {
        match self {
            Medium::Blocks(device) => device.block_width(),
            Medium::Zones(device) => device.block_width(),
            Medium::Memory(_) | Medium::Monitor(_) => BLOCK_BYTES as usize,
        }
    }

    /// True if it has a timing model.
    pub fn is_timed(&self) -> bool {
        match self {
            Medium::Blocks(device) => device.is_timed(),
            Medium::Zones(device) => device.is_timed(),
            Medium::Memory(memory) => memory.is_timed(),
            Medium::Monitor(_) => false,
        }
    }

    /// Its counts.
    pub fn account(&self) -> Account {
        match self {
            Medium::Blocks(device) => device.account(),
            Medium::Zones(device) => device.account(),
            Medium::Memory(memory) => memory.account(),
            Medium::Monitor(monitor) => monitor.account().unwrap_or_default(),
        }
    }
}
