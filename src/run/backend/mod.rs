//! The backends of the engine: the inside of a drive with no dynamic call per page, or any block device.
//!
//! | file | role |
//! |---|---|
//! | `drive` | a translation layer on flash |
//! | `device` | a block device |
//! | `volume` | a file in any volume |
//! | `sfs` | a file in a volume of sfs, with its census |
//! | `file_shape` | the size of the file, and the space that it finds used |

mod device;
mod drive;
mod file_shape;
mod sfs;
mod volume;

pub(super) use device::DeviceBackend;
pub(super) use drive::DriveBackend;
pub use file_shape::FileShape;
pub(super) use sfs::SfsBackend;
pub(super) use volume::VolumeBackend;

use super::accounts::Stored;
use super::error::RunError;
use crate::device::Account;
use crate::fs::sfs::Census;
use crate::label::Content;
use crate::task::CpuTable;
use crate::time::Time;

/// The fields of a host's write besides its range.
#[derive(Clone, Copy)]
pub(super) struct HostWrite {
    pub content: Content,
    pub stream: u8,
    pub stamp: u32,
}

/// A backend of the engine. Ranges are (offset, length) in bytes, within the exported space.
pub(super) trait Backend {
    /// True if completion times are modelled.
    fn is_timed(&self) -> bool;

    /// Bytes of a unit, the granularity of stamps: a flash page or a block, a power of two. A unit that is written in
    /// part is read before, and written whole.
    fn unit_bytes(&self) -> u64;

    /// The exported bytes.
    fn exported_bytes(&self) -> u64;

    /// Prefetches the map entry of `offset`, which is used soon, into the processor's cache.
    #[inline]
    fn prefetch(&self, _offset: u64) {}

    /// Prefetches what a write at `offset` touches through the entry, which was prefetched before.
    #[inline]
    fn prefetch_old(&self, _offset: u64) {}

    /// Does background work at time `at`; the latest request is done at `last_done`.
    fn work(&mut self, last_done: Time, at: Time) -> Result<(), RunError>;

    /// Writes; returns the completion time.
    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Time) -> Result<Time, RunError>;

    /// Reads; returns the completion time. `see` gets the number and the stamp of each unit.
    fn read(&mut self, range: (u64, u64), at: Time, see: impl FnMut(u64, Option<u32>)) -> Result<Time, RunError>;

    /// Discards the units that are covered completely. Returns them and the completion time.
    fn discard(&mut self, range: (u64, u64), at: Time) -> Result<(std::ops::Range<u64>, Time), RunError>;

    /// Makes everything durable that was done before; all earlier requests are done at `at`.
    fn flush(&mut self, at: Time) -> Result<Time, RunError>;

    /// The counts of the backend and everything below it, since they were new.
    fn account(&self) -> Account;

    /// What the media have stored since they were new.
    fn stored(&self) -> Stored;

    /// The table of CPU time that counts; `None` without a file system.
    fn cpu(&self) -> Option<CpuTable> {
        None
    }

    /// For a file in a volume of sfs: live blocks by segment, without segments that only ever held the dummy file.
    fn census(&self) -> Option<Census> {
        None
    }
}
