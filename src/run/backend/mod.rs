//! What the engine drives: the inside of a drive with no dynamic call per page, or any block device.
//!
//! | file | what it is |
//! |---|---|
//! | `drive` | a translation layer on flash, and what its flash tells |
//! | `device` | a block device |
//! | `file` | a file in a volume of sfs |
//! | `blocks` | the blocks of a range of bytes, for the last two |
//! | `accounts` | what the accounts of a device, and of all below it, tell |

pub(super) mod accounts;
pub(super) mod blocks;
mod device;
mod drive;
mod file;

pub(super) use device::DeviceBackend;
pub(super) use drive::DriveBackend;
pub(super) use file::FileBackend;
pub use file::FileShape;

use super::engine::{RunError, Served};
use crate::fs::sfs::Census;
use crate::label::{Cause, Content, Tally};
use crate::report::{FlashResult, LedgerRow, SumCheck, TranslationResult, Wear};
use crate::time::Time;
use crate::units::BLOCK_BYTES;

/// What of a host's write its address does not say.
#[derive(Clone, Copy)]
pub(super) struct HostWrite {
    pub content: Content,
    pub stream: u8,
    pub stamp: u32,
}

/// What the engine drives. Ranges are (offset, length) in bytes, within what is exported.
///
/// A backend counts from when it was made, or from [`begin_counting`](Backend::begin_counting) on.
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

    /// What was done so far does not count.
    fn begin_counting(&mut self);

    /// Bytes that the media have stored, for whatever cause, since counting began.
    fn stored_bytes(&self) -> u64;

    /// What was counted, of `served` requests.
    fn tell(&self, served: &Served) -> Told;
}

/// What a backend tells of a run, for its result.
pub(super) struct Told {
    /// Below the workload's rows.
    pub ledger: Vec<LedgerRow>,
    /// The stations of the ledger that store.
    pub media: Vec<String>,
    pub flash: FlashResult,
    pub translation: TranslationResult,
    pub wear: Wear,
    pub sums: Vec<SumCheck>,
    /// What the stations warn of.
    pub warnings: Vec<String>,
    /// What lives in the segments of a volume of sfs.
    pub census: Option<Census>,
}

/// The rows of a station that passed on what `tally` counts, each count of so many bytes.
pub(super) fn rows<'a>(station: &'a str, tally: &'a Tally, unit_bytes: u64) -> impl Iterator<Item = LedgerRow> + 'a {
    let per_unit = unit_bytes as f64 / BLOCK_BYTES as f64;
    tally.entries().map(move |(cause, content, count)| row(station, cause, content, count as f64 * per_unit))
}

/// A row of the ledger.
pub(super) fn row(station: &str, cause: Cause, content: Content, blocks: f64) -> LedgerRow {
    LedgerRow {
        station: station.to_string(),
        cause: cause.name().to_string(),
        content: content.name().to_string(),
        blocks,
    }
}

/// A sum that holds if both sides are equal, and `same` what they are the sums of.
fn check(name: impl Into<String>, left: u64, right: u64, same: bool) -> SumCheck {
    SumCheck { name: name.into(), left: left as f64, right: right as f64, holds: same && left == right }
}
