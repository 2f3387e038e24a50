//! A zone, as a device of zones reports it.

/// How a zone may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// Anywhere, again and again; it has no write pointer. NVMe has none such, SMR disks do.
    Conventional,
    /// At its write pointer only.
    Sequential,
}

/// The state of a sequential zone (section 2.1.1.2.1, figure 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nothing is written; the write pointer is at its start.
    Empty,
    /// A write opened it.
    ImplicitlyOpen,
    /// A command opened it.
    ExplicitlyOpen,
    /// Written in part, and it takes no open resource.
    Closed,
    /// Nothing can be written until it is reset.
    Full,
    /// It can be read for ever and never written again.
    ReadOnly,
    /// It can neither be read nor written.
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

/// A zone, as the device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// How it may be written.
    pub kind: ZoneKind,
    /// Its state; a conventional zone that works is [`ZoneState::Empty`] for ever.
    pub state: ZoneState,
    /// Blocks from its start that are written: the next write goes there. 0 in a conventional zone.
    pub write_pointer: u64,
    /// Blocks that can be written, at most those of its size.
    pub capacity: u64,
}
