//! A zone, as reported by its device.

/// The write order of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// Writable in any order; it has no write pointer. SMR disks have such zones, NVMe has not.
    Conventional,
    /// Writable at its write pointer only.
    Sequential,
}

/// The state of a sequential zone (section 2.1.1.2.1, figure 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing is written; the write pointer is at its start.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by a command.
    ExplicitlyOpen,
    /// Written in part, and not open.
    Closed,
    /// Not writable before a reset.
    Full,
    /// Readable, and never writable again.
    ReadOnly,
    /// Neither readable nor writable.
    Offline,
}

impl ZoneState {
    /// The name in errors and reports.
    pub fn name(self) -> &'static str {
        match self {
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly open",
            ZoneState::ExplicitlyOpen => "explicitly open",
            ZoneState::Closed => "closed",
            ZoneState::Full => "full",
            ZoneState::ReadOnly => "read-only",
            ZoneState::Offline => "offline",
        }
    }
}

/// A zone, as reported by its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its write order.
    pub kind: ZoneKind,
    /// Its state; always [`ZoneState::Empty`] in a working conventional zone.
    pub state: ZoneState,
    /// Written blocks from its start: the position of the next write. 0 in a conventional zone.
    pub write_pointer: u64,
    /// Writable blocks, at most its size.
    pub capacity: u64,
    /// True if it has a random write area (ZRWA), from its write pointer on.
    pub has_area: bool,
}
