//! What the engine drives: the inside of a drive with no dynamic call per page, or any block device.
//!
//! | file | what it is |
//! |---|---|
//! | `drive` | a translation layer on flash |
//! | `device` | a block device |
//! | `file` | a file in a volume of sfs |

mod device;
mod drive;
mod file;

pub(super) use device::DeviceBackend;
pub(super) use drive::DriveBackend;
pub(super) use file::FileBackend;
pub use file::FileShape;

use super::error::RunError;
use crate::device::Account;
use crate::fs::sfs::Census;
use crate::label::Content;
use crate::time::Time;

/// What of a host's write its address does not say.
#[derive(Clone, Copy)]
pub(super) struct HostWrite {
    pub content: Content,
    pub stream: u8,
    pub stamp: u32,
}

/// What the engine drives. Ranges are (offset, length) in bytes, within what is exported.
pub(super) trait Backend {
    /// Whether times mean anything.
    fn is_timed(&self) -> bool;

    /// Bytes that a stamp stands for: a flash page or a block, a power of two. What a write covers in part of one is
    /// read before, and written whole.
    fn unit_bytes(&self) -> u64;

    /// Bytes that can be written.
    fn exported_bytes(&self) -> u64;

    /// `offset` will be asked for soon.
    fn prefetch(&self, offset: u64);

    /// It is `at`, and the last request that was issued will be done, or was, at `last_done`: lets the backend do what
    /// it does in the background.
    fn work(&mut self, last_done: Time, at: Time) -> Result<(), RunError>;

    /// Writes, and says when it is done.
    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError>;

    /// Reads, and says when it is done. `see` is shown the number of each unit, and its stamp.
    fn read(&mut self, range: (u64, u64), at: Time, see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError>;

    /// Discards the units that are covered whole. Says which, and when that is done.
    fn discard(&mut self, range: (u64, u64), at: Time) -> Result<(std::ops::Range<u64>, Time), RunError>;

    /// Makes durable all that was done until now; `at` all requests before are done.
    fn flush(&mut self, at: Time) -> Result<Time, RunError>;

    /// What it and all below it have counted since they were new.
    fn account(&self) -> Account;

    /// Bytes that the media have stored since they were new, for whatever cause.
    fn stored_bytes(&self) -> u64;

    /// Of a file in a volume of sfs: what lives in the segments, but for those that only ever held the file beside it.
    fn census(&self) -> Option<Census> {
        None
    }
}
