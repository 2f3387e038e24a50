//! The seam below file systems and front ends: 4 KiB blocks that can be written in any order.
//!
//! A block is passed as its bytes or, if they are never used, as a stamp that stands for them:
//! [`BlockDevice::block_width`] is the number of bytes of a buffer for one block. The same code passes both; a
//! simulated terabyte costs four bytes a block, and every read can still be verified.

use super::{Account, DeviceError, Epochs, Lba, Placement};
use crate::label::Label;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// The width of a stamp, in bytes; the other block width is [`BLOCK_BYTES`].
pub const STAMP_BYTES: usize = 4;

/// Fills `buffer`, whole blocks of `width` bytes, with repetitions of `stamp`.
pub fn fill_with_stamp(stamp: u32, buffer: &mut [u8]) {
    for word in buffer.chunks_exact_mut(STAMP_BYTES) {
        word.copy_from_slice(&stamp.to_le_bytes());
    }
}

/// A run of blocks in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of blocks.
    pub blocks: u64,
    /// True if the blocks are stored; others read as zeros.
    pub is_stored: bool,
}

/// A device of 4 KiB blocks that can be written in any order, shared by threads.
///
/// Buffers hold whole blocks of [`block_width`](BlockDevice::block_width) bytes; any other length is a bug of the
/// caller and panics. Each call gets the time of its issue and returns the time of its completion; without a timing
/// model they are equal. Data written before a successful [`flush`](BlockDevice::flush) survives a power cut; of later
/// writes, each block is old or new.
///
/// A device does its own locking. Concurrent calls may be served in any order, and of two writes to one block either
/// may be the last; a call that begins after another was answered sees its effect.
pub trait BlockDevice: Abilities + Send + Sync {
    /// The number of blocks.
    fn blocks(&self) -> u64;

    /// Bytes of a buffer for one block: [`BLOCK_BYTES`], or [`STAMP_BYTES`].
    fn block_width(&self) -> usize;

    /// Reads the blocks from `first` on. Blocks that were never written, or were discarded, read as zeros.
    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError>;

    /// Writes the blocks from `first` on, all with one label.
    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError>;

    /// Writes with the host's placement hint ([`Placement`]). A station that passes a write on at once passes its hint on;
    /// one that writes later, or elsewhere, drops it: then this is [`BlockDevice::write`], the default.
    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, _hint: u8, at: Time) -> Result<Time, DeviceError> {
        self.write(first, buffer, label, at)
    }

    /// Discards `blocks` blocks. They read as zeros from then on.
    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError>;

    /// Makes all writes durable that were answered before the call.
    fn flush(&self, at: Time) -> Result<Time, DeviceError>;

    /// The counts of this device and those below it since they were opened.
    fn account(&self) -> Account;

    /// Closes in good order: makes everything durable, and removes state from the media that only this program
    /// understands.
    fn close(&self, at: Time) -> Result<Time, DeviceError> {
        let flushed = self.flush(at)?;
        self.make_portable(flushed)
    }
}

/// Optional abilities of a device. A wrapper forwards to its wrapped device by default, and so cannot drop an ability
/// silently; the defaults apply to a device that wraps none.
pub trait Abilities {
    /// The device to which this one forwards.
    fn wrapped(&self) -> Option<&dyn BlockDevice>;

    /// True if the device has a timing model. Default: false.
    fn is_timed(&self) -> bool {
        self.wrapped().is_some_and(|device| device.is_timed())
    }

    /// Bytes behind the last block, fewer than a block. The block after the last one holds them: it reads with zeros
    /// behind them, and is written with zeros there. Default: none; a wrapper does not forward them, as it has no such block.
    fn bytes_behind(&self) -> u64 {
        0
    }

    /// Allows writes to be in flight when they are answered, and then be lost or fail as
    /// [`Disk::write_behind`](super::Disk::write_behind) says: the caller relies on nothing before the next flush, even
    /// while the machine keeps running. At most `bytes` of them are in flight, or one write. True if the device does
    /// so; a device may decline. Default: false.
    fn write_behind(&self, bytes: u64) -> bool {
        self.wrapped().is_some_and(|device| device.write_behind(bytes))
    }

    /// The state of the blocks from `first` on: a run of at least one and at most `blocks`. Default: all are stored.
    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        self.wrapped().map_or(Ok(Extent { blocks, is_stored: true }), |device| device.extent(first, blocks))
    }

    /// Does a bounded piece of the background work that is due at `now`: a part of a copy, a commit of old metadata.
    /// Returns the time of the next piece, at `now` or before if it is due already; `None` if none is foreseen, which
    /// is the default.
    fn work(&self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.wrapped().map_or(Ok(None), |device| device.work(now))
    }

    /// Sets the blocks of the journal of the file system above, replacing the previous ones. A device may store them
    /// separately; the default ignores them.
    fn set_journal(&self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        self.wrapped().map_or(Ok(()), |device| device.set_journal(journal))
    }

    /// The placement of writes by hints, if there is one. A station that drops hints has none. Default: none.
    fn placement(&self) -> Option<&dyn Placement> {
        self.wrapped().and_then(|device| device.placement())
    }

    /// The order of epochs, if the device keeps it. A station that writes later, or in another order, has none. Default: none.
    fn epochs(&self) -> Option<&dyn Epochs> {
        self.wrapped().and_then(|device| device.epochs())
    }

    /// Removes state from the media that only this program understands, and makes that durable; everything else is
    /// flushed already. Default: nothing to do.
    fn make_portable(&self, at: Time) -> Result<Time, DeviceError> {
        self.wrapped().map_or(Ok(at), |device| device.make_portable(at))
    }
}

/// The number of blocks in `bytes` of a buffer.
///
/// # Panics
///
/// If `bytes` is not a multiple of the width: a bug of the caller.
pub(crate) fn blocks_in(bytes: usize, width: usize) -> u64 {
    assert!(bytes.is_multiple_of(width), "a buffer holds whole blocks");
    (bytes / width) as u64
}

/// Rejects a range beyond the end of a device of `blocks` blocks.
pub(crate) fn check_range(first: Lba, count: u64, blocks: u64) -> Result<(), DeviceError> {
    match first.0.checked_add(count) {
        Some(end) if end <= blocks => Ok(()),
        _ => Err(DeviceError::BeyondEnd { first, count, blocks }),
    }
}

impl BlockDevice for Box<dyn BlockDevice> {
    fn blocks(&self) -> u64 {
        (**self).blocks()
    }

    fn block_width(&self) -> usize {
        (**self).block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        (**self).read(first, buffer, at)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        (**self).write(first, buffer, label, at)
    }

    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, hint: u8, at: Time) -> Result<Time, DeviceError> {
        (**self).write_placed(first, buffer, label, hint, at)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        (**self).discard(first, blocks, at)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        (**self).flush(at)
    }

    fn account(&self) -> Account {
        (**self).account()
    }
}

impl Abilities for Box<dyn BlockDevice> {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        Some(&**self)
    }

    fn bytes_behind(&self) -> u64 {
        (**self).bytes_behind()
    }
}

const _: () = assert!((BLOCK_BYTES as usize).is_multiple_of(STAMP_BYTES));
