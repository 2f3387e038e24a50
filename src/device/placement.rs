//! Flexible data placement: the host says with a write which reclaim unit handle it goes to.
//!
//! A *reclaim unit* is flash that a drive erases at once. A *reclaim group* is the units of some planes. A *handle*
//! refers to one open unit in each group, and its next writes go there. A *placement identifier* names a handle in a group;
//! hosts number identifiers from 0, those of a group one after the other. (NVM Express Base Specification 2.1, 8.1.10.)
//!
//! A write carries a *hint*: 0 for none, or one more than the number of an identifier, as Linux numbers write streams.

use super::DeviceError;
use crate::expression::Choice;
use crate::time::Time;

/// The hint of a write whose host says nothing.
pub const NO_HINT: u8 = 0;

/// The most placement identifiers of a drive: each has a hint, and one hint is none.
pub const MOST_IDENTIFIERS: u32 = 128;

/// The most events of each side that a drive keeps: those of a log page of the specification.
pub const MOST_EVENTS: usize = 63;

/// The company of the data of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Copies of all such handles share units.
    Initial,
    /// Copies stay with their handle.
    Persistent,
}

impl Choice for Isolation {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("initial", Isolation::Initial, "what collection copies is mixed with copies of other such handles"),
        ("persistent", Isolation::Persistent, "what collection copies stays with its handle"),
    ];
}

/// The kinds of events that a drive notes. A handle whose unit was filled refers to another one by an action of the host: that is
/// no event (NVMe Base Specification 2.1, 5.1.12.1.31.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementEventKind {
    /// A host gave up a unit that it had not filled.
    UnitNotFilled,
    /// A write named no identifier of the drive, and went to the default handle.
    InvalidIdentifier,
    /// Collection moved valid pages of an initially isolated handle.
    Reallocated,
}

impl PlacementEventKind {
    /// The number of kinds.
    pub const COUNT: usize = 3;
    /// All kinds, in numeric order.
    pub const ALL: [PlacementEventKind; Self::COUNT] =
        [PlacementEventKind::UnitNotFilled, PlacementEventKind::InvalidIdentifier, PlacementEventKind::Reallocated];

    /// True if the host is the cause.
    pub fn is_of_host(self) -> bool {
        matches!(self, PlacementEventKind::UnitNotFilled | PlacementEventKind::InvalidIdentifier)
    }

    /// The name of its count.
    pub fn name(self) -> &'static str {
        match self {
            PlacementEventKind::UnitNotFilled => "fdp_units_not_filled",
            PlacementEventKind::InvalidIdentifier => "fdp_invalid_identifiers",
            PlacementEventKind::Reallocated => "fdp_units_reallocated",
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementEvent {
    /// The kind.
    pub kind: PlacementEventKind,
    /// The time of the request behind it; zero where requests have no times.
    pub at: Time,
    /// The identifier, if there is one: copies of several handles have none. For an invalid one, as it was asked for.
    pub identifier: Option<u8>,
    /// The group of the unit.
    pub group: u16,
    /// For moved pages: the first one's offset in the exported space, in bytes, and the bytes of all.
    pub moved: Option<(u64, u64)>,
}

/// The counts of a handle, over all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleAccount {
    /// The company of its data.
    pub isolation: Isolation,
    /// Pages that the host wrote to it.
    pub host_pages: u64,
    /// Pages that were copied out of the units that its host writes filled or, if it is isolated for good, out of all of its units.
    pub copied_pages: u64,
    /// The times that a host gave up its unit.
    pub updates: u64,
}

/// The state of the placement of a drive, and its counts since it was new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementAccount {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a reclaim unit.
    pub unit_bytes: u64,
    /// Reclaim groups.
    pub groups: u32,
    /// The handle of writes without an identifier.
    pub default_handle: u8,
    /// True if a write goes to the handle of its identifier; otherwise hints mean nothing.
    pub is_by_identifier: bool,
    /// The handles.
    pub handles: Vec<HandleAccount>,
    /// The bytes that can still be written to the unit of each identifier; a whole unit if none is open.
    pub available: Vec<u64>,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Bytes that the flash programmed.
    pub media_bytes: u64,
    /// Bytes that the flash erased.
    pub erased_bytes: u64,
    /// Pages that were copied out of units which hold copies of several handles.
    pub shared_copied_pages: u64,
    /// Pages that went to another group than the host asked for, as that was full.
    pub redirected_pages: u64,
    /// The number of events of each kind.
    pub counts: [u64; PlacementEventKind::COUNT],
    /// The last events of the host's side, the oldest first.
    pub host_events: Vec<PlacementEvent>,
    /// The last events of the drive's side, the oldest first.
    pub drive_events: Vec<PlacementEvent>,
}

impl PlacementAccount {
    /// The number of placement identifiers.
    pub fn identifiers(&self) -> u32 {
        self.groups * self.handles.len() as u32
    }

    /// The difference to `earlier`. The state is that of now.
    pub fn since(&self, earlier: &PlacementAccount) -> PlacementAccount {
        let handles = self.handles.iter().zip(&earlier.handles).map(|(now, then)| HandleAccount {
            isolation: now.isolation,
            host_pages: now.host_pages - then.host_pages,
            copied_pages: now.copied_pages - then.copied_pages,
            updates: now.updates - then.updates,
        });
        PlacementAccount {
            handles: handles.collect(),
            host_bytes: self.host_bytes - earlier.host_bytes,
            media_bytes: self.media_bytes - earlier.media_bytes,
            erased_bytes: self.erased_bytes - earlier.erased_bytes,
            shared_copied_pages: self.shared_copied_pages - earlier.shared_copied_pages,
            redirected_pages: self.redirected_pages - earlier.redirected_pages,
            counts: std::array::from_fn(|kind| self.counts[kind] - earlier.counts[kind]),
            ..self.clone()
        }
    }
}

/// The placement of a device, for its host.
pub trait Placement {
    /// The state, and the counts since the device was new.
    fn placement_account(&self) -> PlacementAccount;

    /// Lets the handle of this identifier refer to an empty unit from now on; returns when that is done.
    ///
    /// # Errors
    ///
    /// The device failed. An identifier that the device has not is a bug of the caller.
    fn update_handle(&self, identifier: u8, at: Time) -> Result<Time, DeviceError>;
}
