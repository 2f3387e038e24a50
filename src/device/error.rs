//! Why a device cannot serve.

use super::{Lba, ZoneState};
use std::io;

/// Why a device cannot serve. Such errors are data: what is refused leaves the device as it was.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The request reaches beyond the end.
    #[error("blocks {} to {} were asked for, and the device has {blocks}", first.0, first.0.saturating_add(*count))]
    BeyondEnd {
        /// The first block.
        first: Lba,
        /// How many.
        count: u64,
        /// Blocks of the device.
        blocks: u64,
    },
    /// A zone does not allow it.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// What stores the bits failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, and to what.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// It can only be read.
    #[error("{what} can only be read: {why}")]
    ReadOnly {
        /// The device, chunk or zone.
        what: String,
        /// Why.
        why: String,
    },
    /// There is no place left for a write.
    #[error("{what} is full: {why}")]
    Full {
        /// The device.
        what: String,
        /// Why, and what would help.
        why: String,
    },
    /// A station cannot go on.
    #[error("{station}: {reason}")]
    Station {
        /// The station.
        station: &'static str,
        /// Why.
        reason: String,
    },
}

impl DeviceError {
    /// Turns what the system says into an error that says what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> DeviceError {
        let doing = doing.into();
        move |source| DeviceError::Io { doing, source }
    }
}

/// What a zone does not allow, by the status codes of the Zoned Namespace Command Set Specification (figure 36).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// Zone Boundary Error: a write or read leaves its zone, or its capacity.
    #[error("zone boundary error: blocks {from} to {end} of zone {zone} were asked for, and it has {capacity}")]
    BoundaryError {
        /// The zone.
        zone: u32,
        /// The first block, from the zone's start.
        from: u64,
        /// The first block behind the request, from the zone's start.
        end: u64,
        /// Blocks of the zone that can be used.
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
        /// Where the write would have begun, from the zone's start.
        from: u64,
        /// Where the write pointer is, from the zone's start.
        write_pointer: u64,
    },
    /// Too Many Active Zones.
    #[error("too many active zones: zone {zone} would be one more than {limit}")]
    TooManyActive {
        /// The zone.
        zone: u32,
        /// How many there may be.
        limit: u32,
    },
    /// Too Many Open Zones.
    #[error("too many open zones: zone {zone} would be one more than {limit}, and none is implicitly open")]
    TooManyOpen {
        /// The zone.
        zone: u32,
        /// How many there may be.
        limit: u32,
    },
    /// Invalid Zone State Transition.
    #[error("invalid zone state transition: cannot {action} zone {zone}, which is {}", state.name())]
    InvalidTransition {
        /// The zone.
        zone: u32,
        /// What was asked for.
        action: &'static str,
        /// The state it is in.
        state: ZoneState,
    },
}
