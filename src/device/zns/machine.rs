//! The state machine of zones (NVMe Zoned Namespace Command Set Specification 1.1, section 2.1.1.2).
//!
//! It computes the change of a command, and applies the change only after it is stored: a failed command leaves the
//! drive unchanged.

use super::shape::ZnsShape;
use crate::device::zoned::NO_AREAS;
use crate::device::{RandomWriteAreas, ZoneError, ZoneState};

/// The state of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// Its state.
    pub state: ZoneState,
    /// Blocks with data, from its start: the write pointer, except in a zone that was finished early. Those in a random
    /// write area are not among them.
    pub written: u64,
    /// True if it has a random write area.
    pub has_area: bool,
    /// The number of its erases.
    pub erases: u32,
}

impl Record {
    /// The state of a zone of a new drive.
    pub const NEW: Record = Record { state: ZoneState::Empty, written: 0, has_area: false, erases: 0 };

    /// The end of the blocks that may hold data: the write pointer, or the end of its area.
    #[inline]
    pub fn end(&self, shape: &ZnsShape) -> u64 {
        if self.has_area { (self.written + shape.area_blocks).min(shape.capacity_blocks) } else { self.written }
    }
}

/// The change of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// The zone.
    pub zone: u32,
    /// Its new state.
    pub record: Record,
    /// An implicitly open zone that is closed to free a resource.
    pub closes: Option<u32>,
}

/// The action of a Zone Management Send command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Open,
    /// With a random write area.
    OpenWithArea,
    Close,
    Finish,
    Reset,
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Action::Open | Action::OpenWithArea => "open",
            Action::Close => "close",
            Action::Finish => "finish",
            Action::Reset => "reset",
        }
    }
}

/// The zones of a drive, and the open and active resources.
#[derive(Debug)]
pub(super) struct Machine {
    records: Vec<Record>,
    conventional: u32,
    zone_blocks: u64,
    capacity: u64,
    endurance: u32,
    max_open: u32,
    max_active: u32,
    areas: Option<RandomWriteAreas>,
    open: u32,
    active: u32,
    /// Zones with a random write area.
    with_area: u32,
    /// The implicitly open zones, the longest open first; kept only if there is a limit.
    implicitly_open: Vec<u32>,
}

fn is_open(state: ZoneState) -> bool {
    matches!(state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
}

fn is_active(state: ZoneState) -> bool {
    is_open(state) || state == ZoneState::Closed
}

impl Machine {
    /// The zones of a drive of this shape. None is open: a drive closes all when it loses power.
    pub fn new(shape: &ZnsShape, records: Vec<Record>) -> Machine {
        assert_eq!(records.len(), shape.zones as usize, "each zone of the drive has a record");
        debug_assert!(!records.iter().any(|record| is_open(record.state)), "no zone is open when a drive gets power");
        let active = records.iter().filter(|record| is_active(record.state)).count() as u32;
        let with_area = records.iter().filter(|record| record.has_area).count() as u32;
        Machine {
            records,
            conventional: shape.conventional,
            zone_blocks: shape.zone_blocks,
            capacity: shape.capacity_blocks,
            endurance: shape.endurance,
            max_open: shape.max_open,
            max_active: shape.max_active,
            areas: shape.areas(),
            open: 0,
            active,
            with_area,
            implicitly_open: Vec::new(),
        }
    }

    /// The states of all zones.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    pub fn record(&self, zone: u32) -> &Record {
        &self.records[zone as usize]
    }

    #[inline]
    pub fn is_conventional(&self, zone: u32) -> bool {
        zone < self.conventional
    }

    /// Checks a read of `count` blocks of a zone.
    #[inline]
    pub fn check_read(&self, zone: u32, from: u64, count: u64) -> Result<(), ZoneError> {
        if self.record(zone).state == ZoneState::Offline {
            return Err(ZoneError::IsOffline { zone });
        }
        self.check_within(zone, from, count, self.zone_blocks)
    }

    /// Checks a write of `count` blocks, at least one, to a conventional zone.
    pub fn check_conventional_write(&self, zone: u32, from: u64, count: u64) -> Result<(), ZoneError> {
        match self.record(zone).state {
            ZoneState::ReadOnly => Err(ZoneError::IsReadOnly { zone }),
            ZoneState::Offline => Err(ZoneError::IsOffline { zone }),
            _ => self.check_within(zone, from, count, self.zone_blocks),
        }
    }

    fn check_within(&self, zone: u32, from: u64, count: u64, capacity: u64) -> Result<(), ZoneError> {
        match from + count {
            end if end > capacity => Err(ZoneError::BoundaryError { zone, from, end, capacity }),
            _ => Ok(()),
        }
    }

    /// The change of a write of `count` blocks, at least one, to a sequential zone.
    #[inline]
    pub fn write(&self, zone: u32, from: u64, count: u64) -> Result<Change, ZoneError> {
        debug_assert!(!self.is_conventional(zone) && count > 0, "zone {zone} is sequential, and something is written");
        let record = self.record(zone);
        match record.state {
            ZoneState::Full => return Err(ZoneError::IsFull { zone }),
            ZoneState::ReadOnly => return Err(ZoneError::IsReadOnly { zone }),
            ZoneState::Offline => return Err(ZoneError::IsOffline { zone }),
            _ => {}
        }
        if record.has_area {
            return self.write_area(zone, from, count);
        }
        if from != record.written {
            return Err(ZoneError::InvalidWrite { zone, from, write_pointer: record.written });
        }
        self.check_within(zone, from, count, self.capacity)?;
        let closes = if is_open(record.state) { None } else { self.room_for(zone, record.state)? };
        let written = from + count;
        let state = match record.state {
            _ if written == self.capacity => ZoneState::Full,
            ZoneState::ExplicitlyOpen => ZoneState::ExplicitlyOpen,
            _ => ZoneState::ImplicitlyOpen,
        };
        Ok(Change { zone, record: Record { state, written, ..*record }, closes })
    }

    /// The change of a write to a zone with a random write area. A write behind the area moves the write pointer.
    fn write_area(&self, zone: u32, from: u64, count: u64) -> Result<Change, ZoneError> {
        let areas = self.areas.expect("only a drive with areas has a zone with one");
        let record = self.record(zone);
        let (end, write_pointer) = (from + count, record.written);
        if from < write_pointer || end > write_pointer + 2 * areas.blocks {
            return Err(ZoneError::InvalidWrite { zone, from, write_pointer });
        }
        self.check_within(zone, from, count, self.capacity)?;
        let behind = end.saturating_sub(write_pointer + areas.blocks);
        let written = write_pointer + behind.next_multiple_of(areas.flush_blocks);
        debug_assert!(written < end, "the last block of a write is in the area of zone {zone}");
        self.written_to(zone, written)
    }

    /// The change of the command that moves the write pointer of a zone with a random write area to `end`.
    pub fn flush_area(&self, zone: u32, end: u64) -> Result<Change, ZoneError> {
        let record = self.record(zone);
        let refused = |why| Err(ZoneError::InvalidOperation { zone, action: "flush the area of", why });
        let Some(areas) = self.areas.filter(|_| record.has_area) else {
            return refused("it has no random write area");
        };
        let area_end = (record.written + areas.blocks).min(self.capacity);
        if end <= record.written || end > area_end {
            return refused("the end of the range is not in the area");
        }
        if !(end - record.written).is_multiple_of(areas.flush_blocks) && end != self.capacity {
            return refused("the range is no multiple of the flush granularity");
        }
        self.written_to(zone, end)
    }

    /// The change of a zone with a random write area, which is open or closed, whose write pointer moves.
    fn written_to(&self, zone: u32, written: u64) -> Result<Change, ZoneError> {
        let record = self.record(zone);
        let closes = if is_open(record.state) { None } else { self.room_for(zone, record.state)? };
        let state = match record.state {
            _ if written == self.capacity => ZoneState::Full,
            ZoneState::ExplicitlyOpen => ZoneState::ExplicitlyOpen,
            _ => ZoneState::ImplicitlyOpen,
        };
        let has_area = state != ZoneState::Full;
        Ok(Change { zone, record: Record { state, written, has_area, ..*record }, closes })
    }

    /// The change of a command; `None` if the zone is in that state already.
    pub fn manage(&self, zone: u32, action: Action) -> Result<Option<Change>, ZoneError> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let record = *self.record(zone);
        let state = record.state;
        let mut closes = None;
        let record = match (action, state) {
            _ if self.is_conventional(zone) => {
                return Err(ZoneError::InvalidTransition { zone, action: action.verb(), state });
            }
            (Action::Open, ExplicitlyOpen) | (Action::Close, Closed) => return Ok(None),
            (Action::Finish, Full) | (Action::Reset, Empty) => return Ok(None),
            (Action::Open, Empty | ImplicitlyOpen | Closed) => {
                if state != ImplicitlyOpen {
                    closes = self.room_for(zone, state)?;
                }
                Record { state: ExplicitlyOpen, ..record }
            }
            (Action::OpenWithArea, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed) => {
                let refused = |why| Err(ZoneError::InvalidOperation { zone, action: action.verb(), why });
                let Some(areas) = self.areas else { return refused(NO_AREAS) };
                if state != Empty {
                    return refused("only an empty zone gets a random write area");
                }
                closes = self.room_for(zone, state)?;
                if self.with_area >= areas.count {
                    return Err(ZoneError::NoAreaLeft { zone, limit: areas.count });
                }
                Record { state: ExplicitlyOpen, has_area: true, ..record }
            }
            (Action::Close, ImplicitlyOpen | ExplicitlyOpen) => Record { state: Closed, ..record },
            (Action::Finish, Empty | ImplicitlyOpen | ExplicitlyOpen | Closed) => {
                Record { state: Full, has_area: false, ..record }
            }
            (Action::Reset, ImplicitlyOpen | ExplicitlyOpen | Closed | Full) => {
                Record { state: Empty, written: 0, has_area: false, ..record }
            }
            _ => return Err(ZoneError::InvalidTransition { zone, action: action.verb(), state }),
        };
        Ok(Some(Change { zone, record, closes }))
    }

    /// The change of a fault: a zone becomes read-only or offline, from any state; offline is final.
    pub fn fail(&self, zone: u32, state: ZoneState) -> Result<Option<Change>, ZoneError> {
        let record = *self.record(zone);
        match (record.state, state) {
            (old, new) if old == new => Ok(None),
            (ZoneState::Offline, _) => {
                Err(ZoneError::InvalidTransition { zone, action: "bring back", state: record.state })
            }
            (_, ZoneState::ReadOnly | ZoneState::Offline) => {
                Ok(Some(Change { zone, record: Record { state, has_area: false, ..record }, closes: None }))
            }
            (old, _) => Err(ZoneError::InvalidTransition { zone, action: "set the state of", state: old }),
        }
    }

    /// The state of a zone after one more erase: empty or, after its last erase, offline.
    pub fn erased(&self, record: Record) -> Record {
        let erases = record.erases.saturating_add(1);
        let state = if erases >= self.endurance { ZoneState::Offline } else { record.state };
        Record { state, erases, ..record }
    }

    /// Checks that `zone`, which is empty or closed, may be opened; returns the zone to close for it.
    fn room_for(&self, zone: u32, state: ZoneState) -> Result<Option<u32>, ZoneError> {
        if state == ZoneState::Empty && self.max_active > 0 && self.active >= self.max_active {
            return Err(ZoneError::TooManyActive { zone, limit: self.max_active });
        }
        if self.max_open == 0 || self.open < self.max_open {
            return Ok(None);
        }
        match self.implicitly_open.first() {
            Some(oldest) => Ok(Some(*oldest)),
            None => Err(ZoneError::TooManyOpen { zone, limit: self.max_open }),
        }
    }

    /// The state of the zone that is closed to free a resource.
    pub fn closed(&self, zone: u32) -> Record {
        Record { state: ZoneState::Closed, ..*self.record(zone) }
    }

    /// Applies a change.
    #[inline]
    pub fn apply(&mut self, change: &Change) {
        if let Some(zone) = change.closes {
            debug_assert_eq!(self.record(zone).state, ZoneState::ImplicitlyOpen, "only such a zone {zone} makes room");
            self.set(zone, self.closed(zone));
        }
        self.set(change.zone, change.record);
        debug_assert!(change.record.written <= self.zone_blocks, "zone {} has at most its blocks written", change.zone);
    }

    #[inline]
    fn set(&mut self, zone: u32, new: Record) {
        let old = std::mem::replace(&mut self.records[zone as usize], new);
        self.with_area = self.with_area + u32::from(new.has_area) - u32::from(old.has_area);
        if old.state != new.state {
            self.count(zone, old.state, new.state);
        }
    }

    fn count(&mut self, zone: u32, old: ZoneState, new: ZoneState) {
        self.open = self.open + u32::from(is_open(new)) - u32::from(is_open(old));
        self.active = self.active + u32::from(is_active(new)) - u32::from(is_active(old));
        debug_assert!(self.open <= self.active, "an open zone is active");
        if self.max_open > 0 {
            match (old, new) {
                (ZoneState::ImplicitlyOpen, _) => self.implicitly_open.retain(|other| *other != zone),
                (_, ZoneState::ImplicitlyOpen) => self.implicitly_open.push(zone),
                _ => {}
            }
        }
    }
}
