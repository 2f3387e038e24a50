//! Errors of a device.

use super::{Lba, ZoneState};
use std::io;

/// The reason why a device cannot serve a request. A rejected request leaves the device unchanged.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The request extends beyond the end.
    #[error("blocks {} to {} were asked for, and the device has {blocks}", first.0, first.0.saturating_add(*count))]
    BeyondEnd {
        /// The first block.
        first: Lba,
        /// The number of blocks.
        count: u64,
        /// The number of blocks of the device.
        blocks: u64,
    },
    /// A zone does not allow it.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The storage failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed action and its object.
        doing: String,
        /// The error of the system.
        source: io::Error,
    },
    /// It is read-only.
    #[error("{what} can only be read: {why}")]
    ReadOnly {
        /// The device, chunk or zone.
        what: String,
        /// The reason.
        why: String,
    },
    /// There is no space for a write.
    #[error("{what} is full: {why}")]
    Full {
        /// The device.
        what: String,
        /// The reason and a remedy.
        why: String,
    },
    /// Its flash is worn out, and so there is no space for a write.
    #[error("{what} is worn out: {why}")]
    WornOut {
        /// The device.
        what: String,
        /// The reason and a remedy.
        why: String,
    },
    /// What it holds of a range cannot be read: the correction of errors has failed.
    #[error(
        "{station}: blocks {} to {} cannot be read: they have more wrong bits than can be corrected; write them again",
        first.0,
        first.0 + count - 1
    )]
    Uncorrectable {
        /// The station.
        station: &'static str,
        /// The first block.
        first: Lba,
        /// The number of blocks.
        count: u64,
    },
    /// A station failed.
    #[error("{station}: {reason}")]
    Station {
        /// The station.
        station: &'static str,
        /// The reason.
        reason: String,
    },
}

impl DeviceError {
    /// Wraps an error of the system with the failed action.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> DeviceError {
        let doing = doing.into();
        move |source| DeviceError::Io { doing, source }
    }
}

/// A rejected zone request, by the status codes of the Zoned Namespace Command Set Specification (figure 36).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// Zone Boundary Error: a write or read leaves its zone, or its capacity.
    #[error("zone boundary error: blocks {from} to {end} of zone {zone} were asked for, and it has {capacity}")]
    BoundaryError {
        /// The zone.
        zone: u32,
        /// The first block, from the zone's start.
        from: u64,
        /// The end of the request, from the zone's start.
        end: u64,
        /// Usable blocks of the zone.
        capacity: u64,
    },
    /// Zone Is Full.
    #[error("zone is full: zone {zone}")]
    IsFull {
        /// The zone.
        zone: u32,
    },
    /// Zone Is Read Only.
    #[error("zone is read only: zone {zone}")]
    IsReadOnly {
        /// The zone.
        zone: u32,
    },
    /// Zone Is Offline.
    #[error("zone is offline: zone {zone}")]
    IsOffline {
        /// The zone.
        zone: u32,
    },
    /// Zone Invalid Write: a write that is not at the write pointer.
    #[error("zone invalid write: at block {from} of zone {zone}, whose write pointer is {write_pointer}")]
    InvalidWrite {
        /// The zone.
        zone: u32,
        /// The start of the write, from the zone's start.
        from: u64,
        /// The write pointer, from the zone's start.
        write_pointer: u64,
    },
    /// Too Many Active Zones.
    #[error("too many active zones: zone {zone} would be one more than {limit}")]
    TooManyActive {
        /// The zone.
        zone: u32,
        /// The limit.
        limit: u32,
    },
    /// Too Many Open Zones.
    #[error("too many open zones: zone {zone} would be one more than {limit}, and none is implicitly open")]
    TooManyOpen {
        /// The zone.
        zone: u32,
        /// The limit.
        limit: u32,
    },
    /// Invalid Zone Operation Request: a command on a random write area that there cannot be.
    #[error("invalid zone operation request: cannot {action} zone {zone}: {why}")]
    InvalidOperation {
        /// The zone.
        zone: u32,
        /// The requested action.
        action: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// ZRWA Resources Unavailable.
    #[error("zone random write area unavailable: that of zone {zone} would be one more than {limit}")]
    NoAreaLeft {
        /// The zone.
        zone: u32,
        /// The limit.
        limit: u32,
    },
    /// Invalid Zone State Transition.
    #[error("invalid zone state transition: cannot {action} zone {zone}, which is {}", state.name())]
    InvalidTransition {
        /// The zone.
        zone: u32,
        /// The requested action.
        action: &'static str,
        /// The state of the zone.
        state: ZoneState,
    },
}
