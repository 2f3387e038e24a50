//! Non-volatile memory: bytes that are stored to in lines of 64 bytes, and are durable after a fence.
//!
//! A store writes the memory's lines back from the processor's caches; the next fence of the same thread makes them
//! durable. Between a store and its fence each line may or may not survive a loss of power.

use super::Account;
use crate::time::Time;
use std::ops::Range;

/// Bytes of a line: what a processor writes back at once.
pub const LINE_BYTES: usize = 64;

/// The greatest failure that the content of a memory survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// A loss of power: the memory is non-volatile, and mapped so that stores reach it.
    PowerLoss,
    /// The end of the process, but not that of the system.
    Process,
    /// Nothing: it is the memory of this process.
    Nothing,
}

/// A region of non-volatile memory, which threads share.
///
/// Ranges that are being stored to are read by nobody, and stored to by nobody else: whoever uses a region sees to that.
pub trait Nvm: Send + Sync {
    /// Its length in bytes.
    fn bytes(&self) -> u64;

    /// Reads `into.len()` bytes from byte `at` on.
    ///
    /// # Panics
    ///
    /// If the region ends before them.
    fn read(&self, at: u64, into: &mut [u8]);

    /// Stores bytes from byte `at` on. They are durable after the next [`fence`](Nvm::fence) of the same thread.
    ///
    /// # Panics
    ///
    /// If the region ends before them.
    fn store(&self, at: u64, from: &[u8]);

    /// Counts bytes of a block that were not stored, because a stamp stands for the block.
    fn stand_for(&self, _bytes: usize) {}

    /// Makes durable what this thread has stored.
    fn fence(&self);

    /// The time at which a store of these bytes that begins at `at`, and its fence, are done. Memory without a timing
    /// model answers `at`: the processor's own time is that of the caller. Of a block for which a stamp stands, they are all
    /// its bytes: they may lie behind the end of the region.
    fn stored_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time;

    /// The time at which a read of these bytes that begins at `at` is done.
    fn read_by(&self, at: Time, bytes: &mut dyn Iterator<Item = Range<u64>>) -> Time;

    /// The greatest failure that its content survives.
    fn survival(&self) -> Survival;

    /// True if it has a timing model.
    fn is_timed(&self) -> bool {
        true
    }

    /// Its counts. Memory has no blocks, so its tallies are empty, and bytes and fences are among its events.
    fn account(&self) -> Account {
        Account::default()
    }
}
