//! The backends of the engine: the inside of a drive with no dynamic call per page, or any block device.
//!
//! | file | role |
//! |---|---|
//! | `drive` | a translation layer on flash |
//! | `device` | a block device |
//! | `zones` | a zoned device |
//! | `answered` | the completions of those that answer with a time |
//! | `volume` | a file in any volume |
//! | `sfs` | a file in a volume of sfs, with its census |
//! | `file_shape` | the size of the file, and the space that it finds used |

mod answered;
mod device;
mod drive;
mod file_shape;
mod sfs;
mod volume;
mod zones;

pub(super) use device::DeviceBackend;
pub(super) use drive::DriveBackend;
pub use file_shape::FileShape;
pub(super) use sfs::SfsBackend;
pub(super) use volume::VolumeBackend;
pub(super) use zones::ZonesBackend;

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
    /// The end of a request: a time, or a handle for a time that is not known yet.
    type Moment: Copy;

    /// True if completion times are modelled.
    fn is_timed(&self) -> bool;

    /// Bytes of a unit, the granularity of stamps: a flash page or a block, a power of two. A unit that is written in
    /// part is read before, and written whole.
    fn unit_bytes(&self) -> u64;

    /// The exported bytes.
    fn exported_bytes(&self) -> u64;

    /// False for what lies between the capacity of a zone and its end, which nothing can be written to.
    fn is_stored(&self, _offset: u64) -> bool {
        true
    }

    /// Prefetches the map entry of `offset`, which is used soon, into the processor's cache.
    #[inline]
    fn prefetch(&self, _offset: u64) {}

    /// Prefetches what a write at `offset` touches through the entry, which was prefetched before.
    #[inline]
    fn prefetch_old(&self, _offset: u64) {}

    /// The instant at which a request is issued, after all that happens before.
    fn issue(&mut self, at: Time) -> Self::Moment;

    /// The later of both; only the result may be used afterwards.
    fn later(&mut self, sum: Self::Moment, other: Self::Moment) -> Self::Moment;

    /// Request `number` is done at `moment`, and will be told.
    fn watch(&mut self, number: u64, moment: Self::Moment);

    /// The next watched request that is done, and when, if that is not after `until`, before which nothing is issued.
    fn next_done(&mut self, until: Time) -> Option<(u64, Time)>;

    /// Does the background work that is due at `at`, before a request that is issued then.
    fn work(&mut self, _at: Time) -> Result<(), RunError> {
        Ok(())
    }

    /// Nothing is in flight from `from` until `until`.
    fn idle(&mut self, _from: Time, _until: Time) -> Result<(), RunError> {
        Ok(())
    }

    /// Writes; returns when it is done.
    fn write(&mut self, range: (u64, u64), write: HostWrite, at: Self::Moment) -> Result<Self::Moment, RunError>;

    /// Reads; returns when it is done. `see` gets the number and the stamp of each unit.
    fn read(
        &mut self,
        range: (u64, u64),
        at: Self::Moment,
        see: impl FnMut(u64, Option<u32>),
    ) -> Result<Self::Moment, RunError>;

    /// The end of the last read that failed since errors could not be corrected; `at` if there are no times of these.
    fn failed_read(&mut self, at: Self::Moment) -> Self::Moment {
        at
    }

    /// The drive lies without power for so long. Only flash with errors is changed by it.
    fn rest(&mut self, _rest_ns: u64) {}

    /// Discards the units that are covered completely. Returns them, and when it is done.
    fn discard(
        &mut self,
        range: (u64, u64),
        at: Self::Moment,
    ) -> Result<(std::ops::Range<u64>, Self::Moment), RunError>;

    /// Makes everything durable that was done before; all earlier requests are done at `at`.
    fn flush(&mut self, at: Self::Moment) -> Result<Self::Moment, RunError>;

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
