//! The seam below an image: persistent bytes.
//!
//! Guarantees of a disk: written data is read back, by any later opener, until the epoch ends; data written before a
//! successful [`Disk::sync`] is durable. An epoch ends with a power cut of the machine. Of the data that was not synced
//! then, any part may be there or missing, down to single sectors of 512 bytes, in any order.

use std::io;

/// Persistent bytes, shared by threads.
pub trait Disk: Send + Sync {
    /// The name for errors, such as a file's.
    fn name(&self) -> &str;

    /// The size in bytes.
    fn length(&self) -> u64;

    /// Reads the bytes from `offset` on. Bytes that were never written are zeros.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes the bytes from `offset` on.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes `length` bytes read as zeros, and frees their space.
    fn punch(&self, offset: u64, length: u64) -> io::Result<()>;

    /// Makes everything durable that was done before.
    fn sync(&self) -> io::Result<()>;

    /// Allows writes to be in flight when they are answered, at most `bytes` of them, or one write: even if only this
    /// program ends, writes that were not synced may be lost, in any order, as in a power cut. Reads return written
    /// data as before; a failed write may fail a later one, or the next sync. True if the disk does so.
    fn write_behind(&self, _bytes: u64) -> bool {
        false
    }

    /// The length of the run from `offset` on with one state, from 1 to `length` bytes, and true if it is stored. Bytes
    /// that are not stored are zeros.
    fn extent(&self, _offset: u64, length: u64) -> io::Result<(u64, bool)> {
        Ok((length, true))
    }

    /// The ID of the epoch: while it is the same, all written data is there, synced or not. `None` if unknown.
    fn epoch(&self) -> Option<[u8; 16]> {
        None
    }
}
