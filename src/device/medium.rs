//! An opened device: of blocks, or of zones.

use super::{Account, BlockDevice, ZonedDevice};

/// An opened device: of blocks, or of zones.
pub enum Medium {
    /// Blocks that can be written in any order.
    Blocks(Box<dyn BlockDevice>),
    /// Zones, each written in order.
    Zones(Box<dyn ZonedDevice>),
}

impl Medium {
    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        match self {
            Medium::Blocks(device) => device.blocks(),
            Medium::Zones(device) => u64::from(device.shape().zones) * device.shape().zone_blocks,
        }
    }

    /// Bytes of a buffer for one block.
    pub fn block_width(&self) -> usize {
        match self {
            Medium::Blocks(device) => device.block_width(),
            Medium::Zones(device) => device.block_width(),
        }
    }

    /// True if it has a timing model.
    pub fn is_timed(&self) -> bool {
        match self {
            Medium::Blocks(device) => device.is_timed(),
            Medium::Zones(device) => device.is_timed(),
        }
    }

    /// Its counts.
    pub fn account(&self) -> Account {
        match self {
            Medium::Blocks(device) => device.account(),
            Medium::Zones(device) => device.account(),
        }
    }
}
