//! The seam under an image: bytes that stay.
//!
//! What a disk promises: what was written is read back, by any later opener, until the epoch ends; what was written
//! before a [`Disk::sync`] that succeeded is there for ever. When an epoch ends (the machine's power is cut), of what
//! was not synced any part may be there and any may not, down to single sectors of 512 bytes, in whatever order it was
//! written.

use std::io;

/// Bytes that stay, which threads share.
pub trait Disk: Send + Sync {
    /// The name for errors: a file's.
    fn name(&self) -> &str;

    /// Bytes of the disk.
    fn length(&self) -> u64;

    /// Reads the bytes from `offset` on. Those that were never written are zeros.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes the bytes from `offset` on.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes `length` bytes read as zeros, and gives their room back.
    fn punch(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Makes durable all that was done before.
    fn sync(&self) -> io::Result<()>;

    /// From now on writes may be on their way when they are answered, at most `bytes` of them, or one: even if only this program ends, those that were
    /// not synced may be lost, in any order, as in a cut of power. What is read is what was written, as ever; a write
    /// that fails may fail a later one, or the next sync. Answers whether it is so.
    fn write_behind(&self, _bytes: u64) -> bool {
        false
    }

    /// How many of the `length` bytes from `offset` on, at least one, are alike, and whether they are stored. What is
    /// not stored is zeros.
    fn extent(&self, _offset: u64, length: u64) -> io::Result<(u64, bool)> {
        Ok((length, true))
    }

    /// What tells this epoch from all others: while it is the same, all that was written is there, synced or not.
    /// `None` if that cannot be told.
    fn epoch(&self) -> Option<[u8; 16]> {
        None
    }
}
