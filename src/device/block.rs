//! The seam on which file systems and front ends stand: 4 KiB blocks that can be written anywhere.
//!
//! A block is carried as its bytes or, where nobody will read the bytes, as a stamp that stands for them: a device says
//! how wide a block is ([`BlockDevice::block_width`]), and so many bytes of a buffer are one block. The code that
//! passes blocks on is the same for both; a simulated terabyte costs four bytes a block, and every read can still be
//! checked.

use super::{Account, DeviceError, Lba};
use crate::label::Label;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::ops::Range;

/// The width of a stamp, in bytes: a block width beside [`BLOCK_BYTES`].
pub const STAMP_BYTES: usize = 4;

/// Fills `buffer`, whole blocks of `width` bytes, with what stands for `stamp`: the stamp itself, over and over.
pub fn holding(stamp: u32, buffer: &mut [u8]) {
    for word in buffer.chunks_exact_mut(STAMP_BYTES) {
        word.copy_from_slice(&stamp.to_le_bytes());
    }
}

/// A run of blocks that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Blocks.
    pub blocks: u64,
    /// Whether anything is stored there. What is not reads as zeros.
    pub is_stored: bool,
}

/// A device of 4 KiB blocks that can be written anywhere, which threads share.
///
/// Buffers hold whole blocks of [`block_width`](BlockDevice::block_width) bytes; any other length is a bug of the
/// caller and panics. Each call is told when it is issued and answers when it is done; a device without a timing model
/// answers at once. What was written before a [`flush`](BlockDevice::flush) that succeeded survives a cut of power; of
/// what was not, each block is old or new.
///
/// A device locks what it must, inside. Calls that overlap in time may be served in any order, and of two writes to one
/// block either may be the last; a call that begins after another was answered sees what that one did.
pub trait BlockDevice: Abilities + Send + Sync {
    /// Blocks of the device.
    fn blocks(&self) -> u64;

    /// Bytes of a buffer that are one block: [`BLOCK_BYTES`], or [`STAMP_BYTES`].
    fn block_width(&self) -> usize;

    /// Reads the blocks from `first` on. What was never written, or was discarded, reads as zeros.
    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError>;

    /// Writes the blocks from `first` on, all of them for one reason.
    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError>;

    /// Says that `blocks` blocks are no longer needed. They read as zeros from then on.
    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError>;

    /// Makes durable all that was answered before it is called.
    fn flush(&self, at: Time) -> Result<Time, DeviceError>;

    /// What it, and what is below it, has counted since it was opened.
    fn account(&self) -> Account;

    /// Ends in good order: makes all durable, and leaves nothing on the media that only this program understands.
    fn close(&self, at: Time) -> Result<Time, DeviceError> {
        let flushed = self.flush(at)?;
        self.leave(flushed)
    }
}

/// What a device may be able to do beside. A wrapper leaves to the device that it wraps what it does not do itself, and
/// cannot drop any of it in silence; a device that wraps none does as these say.
pub trait Abilities {
    /// The device to which this one leaves what it does not do itself.
    fn wrapped(&self) -> Option<&dyn BlockDevice>;

    /// True if the device has a timing model. By default it has none.
    fn is_timed(&self) -> bool {
        self.wrapped().is_some_and(|device| device.is_timed())
    }

    /// Writes may be on their way when they are answered, and then be lost or fail as
    /// [`Disk::write_behind`](super::Disk::write_behind) says: who calls this trusts nothing before the next flush, not
    /// even while the machine runs on. At most `bytes` of them are, or one write. A device may go on as before; it
    /// answers whether it does not. By default it does.
    fn write_behind(&self, bytes: u64) -> bool {
        self.wrapped().is_some_and(|device| device.write_behind(bytes))
    }

    /// How the blocks from `first` on, at most `blocks` of them and at least one, are stored. By default all are.
    fn extent(&self, first: Lba, blocks: u64) -> Result<Extent, DeviceError> {
        self.wrapped().map_or(Ok(Extent { blocks, is_stored: true }), |device| device.extent(first, blocks))
    }

    /// Does a bounded piece of what is due in the background at `now`: a part of a copy, a commit of metadata that is
    /// old enough. Answers when there will be more to do: at `now` or before if there is more already, `None` if
    /// nothing is foreseen, which is the default.
    fn work(&self, now: Time) -> Result<Option<Time>, DeviceError> {
        self.wrapped().map_or(Ok(None), |device| device.work(now))
    }

    /// The file system above keeps its journal in these blocks, and nowhere else. A device may give them a place of
    /// their own; by default it does not.
    fn journal_is_at(&self, journal: &[Range<Lba>]) -> Result<(), DeviceError> {
        self.wrapped().map_or(Ok(()), |device| device.journal_is_at(journal))
    }

    /// Leaves nothing on the media that only this program understands, and makes that durable: all else is flushed
    /// already. By default there is nothing.
    fn leave(&self, at: Time) -> Result<Time, DeviceError> {
        self.wrapped().map_or(Ok(at), |device| device.leave(at))
    }
}

/// The number of blocks that `bytes` of a buffer are.
///
/// # Panics
///
/// If they are no whole blocks: a bug of the caller.
pub(crate) fn blocks_in(bytes: usize, width: usize) -> u64 {
    assert!(bytes.is_multiple_of(width), "a buffer holds whole blocks");
    (bytes / width) as u64
}

/// Refuses what reaches beyond the end of a device of `blocks` blocks.
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
}

const _: () = assert!((BLOCK_BYTES as usize).is_multiple_of(STAMP_BYTES));
