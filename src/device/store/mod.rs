//! The storage of a device's blocks: in memory, or on a disk.
//!
//! | file | role |
//! |---|---|
//! | `memory` | blocks in memory |
//! | `disk` | the seam below an image: persistent bytes |
//! | `file` | a file, or a block device of the system, as a disk |
//! | `hole` | holes in a file |
//! | `kernel_use` | mounts and loop devices of an image |
//! | `direct_writer` | asynchronous direct writes to a file |
//! | `error` | errors of creating and opening an image |

mod direct_writer;
mod disk;
mod error;
mod file;
mod hole;
mod kernel_use;
mod memory;

pub use disk::Disk;
pub use error::ImageError;
pub use file::FileDisk;
pub use kernel_use::loop_device_of;
pub use memory::Memory;

use super::{DeviceError, Extent, Lba};
use crate::units::BLOCK_BYTES;
use std::io;

/// The storage of a device's blocks.
pub enum Store {
    /// In memory.
    Memory(Memory),
    /// On a disk, from its first byte on: the image is raw.
    Disk(Box<dyn Disk>),
}

impl Store {
    /// Bytes of a buffer for one block.
    pub fn width(&self) -> usize {
        match self {
            Store::Memory(memory) => memory.width(),
            Store::Disk(_) => BLOCK_BYTES as usize,
        }
    }

    /// Reads the blocks from `first` on.
    pub fn read(&self, first: Lba, buffer: &mut [u8]) -> Result<(), DeviceError> {
        match self {
            Store::Memory(memory) => memory.read(first, buffer),
            Store::Disk(disk) => disk.read_at(first.0 * BLOCK_BYTES, buffer).map_err(failed(disk, "read", first))?,
        }
        Ok(())
    }

    /// Writes the blocks from `first` on.
    pub fn write(&self, first: Lba, buffer: &[u8]) -> Result<(), DeviceError> {
        match self {
            Store::Memory(memory) => memory.write(first, buffer),
            Store::Disk(disk) => disk.write_at(first.0 * BLOCK_BYTES, buffer).map_err(failed(disk, "write", first))?,
        }
        Ok(())
    }

    /// Makes `blocks` blocks read as zeros, and frees their space if possible.
    pub fn clear(&self, first: Lba, blocks: u64) -> Result<(), DeviceError> {
        match self {
            Store::Memory(memory) => memory.clear(first, blocks),
            Store::Disk(disk) => disk.punch(first.0 * BLOCK_BYTES, blocks * BLOCK_BYTES).map_err(failed(
                disk,
                "give back the room",
                first,
            ))?,
        }
        Ok(())
    }

    /// The state of the blocks from `first` on, at most `blocks`.
    pub fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        match self {
            Store::Memory(memory) => Ok(memory.extent(first, blocks)),
            Store::Disk(disk) => {
                let (bytes, is_stored) = disk.extent(first.0 * BLOCK_BYTES, blocks * BLOCK_BYTES).map_err(failed(
                    disk,
                    "look for holes",
                    first,
                ))?;
                // A partly stored block counts as stored.
                let whole = if is_stored { bytes.div_ceil(BLOCK_BYTES) } else { bytes / BLOCK_BYTES };
                Ok(Extent { blocks: whole.clamp(1, blocks.max(1)), is_stored: is_stored || whole == 0 })
            }
        }
    }

    /// Allows writes to be in flight when they are answered: see [`Disk::write_behind`].
    pub fn write_behind(&self, bytes: u64) -> bool {
        match self {
            Store::Memory(_) => false,
            Store::Disk(disk) => disk.write_behind(bytes),
        }
    }

    /// Makes all writes durable.
    pub fn sync(&self) -> Result<(), DeviceError> {
        match self {
            Store::Memory(_) => Ok(()),
            Store::Disk(disk) => disk.sync().map_err(DeviceError::io(format!("make {} durable", disk.name()))),
        }
    }
}

/// Wraps an error with the action, the disk and the block.
#[allow(clippy::borrowed_box, reason = "the message is only made when something failed")]
fn failed<'a>(disk: &'a Box<dyn Disk>, doing: &'a str, first: Lba) -> impl FnOnce(io::Error) -> DeviceError + 'a {
    move |source| DeviceError::Io { doing: format!("{doing} at block {} of {}", first.0, disk.name()), source }
}
