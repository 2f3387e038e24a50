//! `zonemode`: requests zone by zone, and the write pointers of a zoned space.

use crate::workload::Action;

/// The zones of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneMode {
    /// The region has none.
    None,
    /// Requests stay in a range of `range_bytes` until `zone_bytes` are moved; the next range begins `skip_bytes` behind it.
    Strided { zone_bytes: u64, range_bytes: u64, skip_bytes: u64 },
    /// Each zone is written in order, up to its capacity, and reset before it is written again.
    Zoned(ZoneShape),
}

/// The zones of a zoned space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneShape {
    pub zone_bytes: u64,
    pub capacity_bytes: u64,
    /// The zones that are written at the same time; 0 for any number.
    pub max_open: usize,
}

/// The range of a job that strides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stride {
    /// The begin of the range in the region.
    pub start_bytes: u64,
    moved_bytes: u64,
}

impl Stride {
    /// Counts a request, in a region of `length_bytes`. True if the next range begins.
    pub fn advance(&mut self, mode: ZoneMode, request_bytes: u64, length_bytes: u64) -> bool {
        let ZoneMode::Strided { zone_bytes, range_bytes, skip_bytes } = mode else { return false };
        self.moved_bytes += request_bytes;
        if self.moved_bytes < zone_bytes {
            return false;
        }
        self.moved_bytes = 0;
        let next = self.start_bytes.saturating_add(range_bytes).saturating_add(skip_bytes);
        self.start_bytes = if next.saturating_add(range_bytes) > length_bytes { 0 } else { next };
        true
    }
}

/// The write pointers of all zones, which the jobs of a file share.
pub(super) struct ZonedSpace {
    shape: ZoneShape,
    /// The bytes written in each zone; `None` if no job has reset it yet.
    written: Vec<Option<u64>>,
    /// The zones under way.
    open: Vec<usize>,
    has_writers: bool,
}

/// A part of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InZone {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// The zone is reset before.
    pub resets: bool,
}

/// The zones of a job's region, and where a sequential job goes on.
#[derive(Clone, Debug)]
pub(super) struct ZoneCursor {
    first: usize,
    count: usize,
    is_random: bool,
    /// The zone that sequential writes fill.
    written: usize,
    /// The zone, and the place in it, at which sequential reads go on.
    read: (usize, u64),
}

impl ZoneCursor {
    /// The zones from byte `start` on, `length` bytes.
    pub fn new(shape: ZoneShape, start: u64, length: u64, is_random: bool) -> ZoneCursor {
        let (first, count) = ((start / shape.zone_bytes) as usize, (length / shape.zone_bytes) as usize);
        assert!(count > 0, "a region holds a zone");
        ZoneCursor { first, count, is_random, written: first, read: (first, 0) }
    }

    /// The zones of the region from `zone` on, and round again.
    fn from(&self, zone: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.count);
        (0..count).map(move |step| first + (zone - first + step) % count)
    }
}

impl ZonedSpace {
    /// The zones of a device; `has_writers`: some job writes.
    pub fn new(shape: ZoneShape, device_bytes: u64, has_writers: bool) -> ZonedSpace {
        let zones = (device_bytes / shape.zone_bytes) as usize;
        ZonedSpace { shape, written: vec![None; zones], open: Vec::new(), has_writers }
    }

    pub fn shape(&self) -> ZoneShape {
        self.shape
    }

    /// The part of a zone for a request that was drawn at `begin` in the region of `cursor`.
    pub fn place(&mut self, cursor: &mut ZoneCursor, action: Action, (begin, length): (u64, u64)) -> InZone {
        let drawn = cursor.first + ((begin / self.shape.zone_bytes) as usize).min(cursor.count - 1);
        match action {
            Action::Write => self.write(cursor, drawn, length),
            Action::Discard => self.reset(cursor, drawn),
            Action::Read | Action::Flush => self.read(cursor, drawn, begin % self.shape.zone_bytes, length),
        }
    }

    fn write(&mut self, cursor: &mut ZoneCursor, drawn: usize, length: u64) -> InZone {
        let wanted = if cursor.is_random { drawn } else { cursor.written };
        let zone = self.writable(cursor, wanted);
        let resets = !self.open.contains(&zone);
        if resets {
            self.open.push(zone);
            self.written[zone] = Some(0);
        }
        let at = self.written[zone].expect("an open zone has a pointer");
        // The last request of a zone has what is left.
        let length = length.min(self.shape.capacity_bytes - at);
        self.written[zone] = Some(at + length);
        if at + length == self.shape.capacity_bytes {
            self.open.retain(|open| *open != zone);
            cursor.written = cursor.from(zone).nth(1).unwrap_or(zone);
        }
        InZone { offset_bytes: zone as u64 * self.shape.zone_bytes + at, length_bytes: length, resets }
    }

    /// The wanted zone if it is open or may be opened, else an open one of the region.
    fn writable(&self, cursor: &ZoneCursor, wanted: usize) -> usize {
        let is_room = self.shape.max_open == 0 || self.open.len() < self.shape.max_open;
        if self.open.contains(&wanted) || is_room {
            return wanted;
        }
        let of_region = |zone: &&usize| (cursor.first..cursor.first + cursor.count).contains(*zone);
        let open: Vec<usize> = self.open.iter().filter(of_region).copied().collect();
        match open.len() {
            // The others are those of other regions: this one takes a place of its own.
            0 => wanted,
            count => open[(wanted - cursor.first) * count / cursor.count],
        }
    }

    fn reset(&mut self, cursor: &ZoneCursor, drawn: usize) -> InZone {
        let zone = cursor.from(drawn).find(|zone| self.written[*zone] != Some(0)).unwrap_or(drawn);
        self.written[zone] = Some(0);
        self.open.retain(|open| *open != zone);
        let offset_bytes = zone as u64 * self.shape.zone_bytes;
        InZone { offset_bytes, length_bytes: self.shape.zone_bytes, resets: false }
    }

    /// The readable bytes of a zone: those that jobs wrote, or all if no job writes.
    fn readable(&self, zone: usize) -> u64 {
        self.written[zone].unwrap_or(if self.has_writers { 0 } else { self.shape.capacity_bytes })
    }

    fn read(&self, cursor: &mut ZoneCursor, drawn: usize, within: u64, length: u64) -> InZone {
        let (wanted, within) = if cursor.is_random { (drawn, within) } else { cursor.read };
        let has_more =
            |zone: &usize| self.readable(*zone) > if *zone == wanted && !cursor.is_random { within } else { 0 };
        let zone = cursor.from(wanted).find(has_more).unwrap_or(wanted);
        let written = self.readable(zone).max(length.min(self.shape.capacity_bytes));
        let within = match (cursor.is_random, zone == wanted) {
            (false, false) => 0,
            (false, true) if within >= written => 0,
            (false, true) => within,
            // Below the write pointer, in steps of the request.
            (true, _) => within / length % (written / length).max(1) * length,
        };
        let length = length.min(written - within);
        cursor.read = (zone, within + length);
        InZone { offset_bytes: zone as u64 * self.shape.zone_bytes + within, length_bytes: length, resets: false }
    }
}
