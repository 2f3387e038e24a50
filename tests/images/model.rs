//! The reference: a drive as a vector of zones, as simple as possible.

use flashpath::device::zns::Zns;
use flashpath::device::{DeviceError, Lba, ZoneError, ZoneState, ZonedDevice, fill_with_stamp};
use flashpath::label::{Content, Label};
use flashpath::random::Random;
use flashpath::time::Time;
use std::ops::Range;

pub const ZONES: u32 = 8;
pub const ZONE: u64 = 8;
pub const CAPACITY: u64 = 6;
pub const PAGE_BLOCKS: u64 = 2;
pub const MAX_OPEN: usize = 2;
pub const MAX_ACTIVE: usize = 4;
/// Blocks of a random write area, the multiple by which its write pointer moves, and the number of zones with one.
pub const AREA: u64 = 4;
pub const AREA_FLUSH: u64 = 2;
pub const MAX_AREAS: usize = 2;

/// A zone: a number stands for each block's content, 0 for zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelZone {
    pub state: ZoneState,
    pub written: u64,
    pub has_area: bool,
    pub erases: u32,
    pub blocks: [u32; ZONE as usize],
}

/// The drive of the images' tests. Its first zone is conventional.
#[derive(Clone, Debug)]
pub struct Model {
    pub zones: Vec<ModelZone>,
    /// The states of each zone since the last flush, the present one last.
    pub since_flush: Vec<Vec<ModelZone>>,
    /// Implicitly open zones, the longest open first.
    implicit: Vec<usize>,
    endurance: u32,
    next_stamp: u32,
}

type Answer = Result<(), &'static str>;

impl Model {
    pub fn new(endurance: u32) -> Model {
        let zone = ModelZone::new(ZoneState::Empty, 0);
        let zones = vec![zone; ZONES as usize];
        let since_flush = zones.iter().map(|zone| vec![zone.clone()]).collect();
        Model { zones, since_flush, implicit: Vec::new(), endurance, next_stamp: 1 }
    }

    fn count(&self, states: &[ZoneState]) -> usize {
        self.zones.iter().filter(|zone| states.contains(&zone.state)).count()
    }

    fn become_(&mut self, zone: usize, state: ZoneState) {
        self.implicit.retain(|other| *other != zone);
        if state == ZoneState::ImplicitlyOpen {
            self.implicit.push(zone);
        }
        self.zones[zone].state = state;
    }

    fn take_open_resource(&mut self, zone: usize) -> Answer {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        if self.zones[zone].state == Empty && self.count(&[ImplicitlyOpen, ExplicitlyOpen, Closed]) >= MAX_ACTIVE {
            return Err("too many active");
        }
        if self.count(&[ImplicitlyOpen, ExplicitlyOpen]) >= MAX_OPEN {
            match self.implicit.first() {
                Some(oldest) => self.become_(*oldest, Closed),
                None => return Err("too many open"),
            }
        }
        Ok(())
    }

    pub fn write(&mut self, zone: usize, from: u64, stamps: &[u32]) -> Answer {
        use ZoneState::{ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        let end = from + stamps.len() as u64;
        match self.zones[zone].state {
            Full => return Err("full"),
            ReadOnly => return Err("read only"),
            Offline => return Err("offline"),
            _ if zone == 0 && end > ZONE => return Err("boundary"),
            _ if zone == 0 => {}
            state if self.zones[zone].has_area => {
                let pointer = self.zones[zone].written;
                if from < pointer || end > pointer + 2 * AREA {
                    return Err("invalid write");
                }
                if end > CAPACITY {
                    return Err("boundary");
                }
                if state != ImplicitlyOpen && state != ExplicitlyOpen {
                    self.take_open_resource(zone)?;
                    self.become_(zone, ImplicitlyOpen);
                }
                while end > self.zones[zone].written + AREA {
                    self.zones[zone].written += AREA_FLUSH;
                }
            }
            _ if from != self.zones[zone].written => return Err("invalid write"),
            _ if end > CAPACITY => return Err("boundary"),
            state => {
                if state != ImplicitlyOpen && state != ExplicitlyOpen {
                    self.take_open_resource(zone)?;
                    self.become_(zone, ImplicitlyOpen);
                }
                if end == CAPACITY {
                    self.become_(zone, Full);
                }
                self.zones[zone].written = end;
            }
        }
        self.zones[zone].blocks[from as usize..end as usize].copy_from_slice(stamps);
        Ok(())
    }

    pub fn open(&mut self, zone: usize) -> Answer {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        match self.zones[zone].state {
            _ if zone == 0 => return Err("transition"),
            Empty | Closed => self.take_open_resource(zone)?,
            ImplicitlyOpen | ExplicitlyOpen => {}
            _ => return Err("transition"),
        }
        self.become_(zone, ExplicitlyOpen);
        Ok(())
    }

    pub fn open_with_area(&mut self, zone: usize) -> Answer {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        match self.zones[zone].state {
            _ if zone == 0 => return Err("transition"),
            Empty => self.take_open_resource_but(zone, self.zones.iter().filter(|zone| zone.has_area).count())?,
            ImplicitlyOpen | ExplicitlyOpen | Closed => return Err("operation"),
            _ => return Err("transition"),
        }
        self.become_(zone, ExplicitlyOpen);
        self.zones[zone].has_area = true;
        Ok(())
    }

    /// Nothing is closed for a zone that gets no area.
    fn take_open_resource_but(&mut self, zone: usize, with_area: usize) -> Answer {
        let before = self.clone();
        self.take_open_resource(zone)?;
        if with_area >= MAX_AREAS {
            *self = before;
            return Err("no area");
        }
        Ok(())
    }

    pub fn flush_area(&mut self, zone: usize, end: u64) -> Answer {
        use ZoneState::{ExplicitlyOpen, Full, ImplicitlyOpen};
        let ModelZone { state, written, has_area, .. } = self.zones[zone];
        let is_whole = (end.saturating_sub(written)).is_multiple_of(AREA_FLUSH) || end == CAPACITY;
        if !has_area || end <= written || end > (written + AREA).min(CAPACITY) || !is_whole {
            return Err("operation");
        }
        if state != ImplicitlyOpen && state != ExplicitlyOpen {
            self.take_open_resource(zone)?;
            self.become_(zone, ImplicitlyOpen);
        }
        self.zones[zone].written = end;
        if end == CAPACITY {
            self.become_(zone, Full);
            self.zones[zone].has_area = false;
        }
        Ok(())
    }

    pub fn close(&mut self, zone: usize) -> Answer {
        use ZoneState::{Closed, ExplicitlyOpen, ImplicitlyOpen};
        if zone == 0 || ![Closed, ExplicitlyOpen, ImplicitlyOpen].contains(&self.zones[zone].state) {
            return Err("transition");
        }
        self.become_(zone, Closed);
        Ok(())
    }

    pub fn finish(&mut self, zone: usize) -> Answer {
        if zone == 0 || [ZoneState::ReadOnly, ZoneState::Offline].contains(&self.zones[zone].state) {
            return Err("transition");
        }
        self.become_(zone, ZoneState::Full);
        self.zones[zone].has_area = false;
        Ok(())
    }

    pub fn reset(&mut self, zone: usize) -> Answer {
        if zone == 0 || [ZoneState::ReadOnly, ZoneState::Offline].contains(&self.zones[zone].state) {
            return Err("transition");
        }
        let old = self.zones[zone].clone();
        let is_programmed = old.state == ZoneState::Full || old.written >= PAGE_BLOCKS;
        let erases = old.erases + u32::from(is_programmed);
        let is_worn_out = is_programmed && erases >= self.endurance;
        self.become_(zone, if is_worn_out { ZoneState::Offline } else { ZoneState::Empty });
        let state = self.zones[zone].state;
        self.zones[zone] = ModelZone::new(state, erases);
        Ok(())
    }

    pub fn fail(&mut self, zone: usize, state: ZoneState) -> Answer {
        if self.zones[zone].state == ZoneState::Offline && state != ZoneState::Offline {
            return Err("transition");
        }
        if self.zones[zone].has_area && state == ZoneState::ReadOnly {
            // The blocks of the area are in the zone.
            let written =
                self.zones[zone].blocks.iter().rposition(|block| *block != 0).map_or(0, |last| last as u64 + 1);
            self.zones[zone].written = self.zones[zone].written.max(written);
        }
        self.zones[zone].has_area = false;
        self.become_(zone, state);
        Ok(())
    }

    /// The state after a power cut: open zones are closed, and zones without data are empty.
    pub fn lose_power(&mut self) {
        self.implicit.clear();
        self.zones.iter_mut().for_each(ModelZone::lose_power);
    }

    fn remember(&mut self) {
        for (history, zone) in self.since_flush.iter_mut().zip(&self.zones) {
            if history.last() != Some(zone) {
                history.push(zone.clone());
            }
        }
    }

    fn was_flushed(&mut self) {
        for (history, zone) in self.since_flush.iter_mut().zip(&self.zones) {
            *history = vec![zone.clone()];
        }
    }

    fn stamps(&mut self, count: u64) -> Vec<u32> {
        let first = self.next_stamp;
        self.next_stamp += count as u32;
        (first..self.next_stamp).collect()
    }
}

impl ModelZone {
    fn new(state: ZoneState, erases: u32) -> ModelZone {
        ModelZone { state, written: 0, has_area: false, erases, blocks: [0; ZONE as usize] }
    }

    fn lose_power(&mut self) {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        if [Closed, ExplicitlyOpen, ImplicitlyOpen].contains(&self.state) {
            self.state = if self.written == 0 && !self.has_area { Empty } else { Closed };
        }
    }
}

fn named(error: &DeviceError) -> &'static str {
    match error {
        DeviceError::Zone(error) => match error {
            ZoneError::BoundaryError { .. } => "boundary",
            ZoneError::IsFull { .. } => "full",
            ZoneError::IsReadOnly { .. } => "read only",
            ZoneError::IsOffline { .. } => "offline",
            ZoneError::InvalidWrite { .. } => "invalid write",
            ZoneError::TooManyActive { .. } => "too many active",
            ZoneError::TooManyOpen { .. } => "too many open",
            ZoneError::InvalidOperation { .. } => "operation",
            ZoneError::NoAreaLeft { .. } => "no area",
            ZoneError::InvalidTransition { .. } => "transition",
        },
        DeviceError::Io { .. } | DeviceError::ReadOnly { .. } => "no power",
        other => panic!("{other}"),
    }
}

fn buffer_of(drive: &Zns, stamps: &[u32]) -> Vec<u8> {
    let width = drive.block_width();
    let mut buffer = vec![0; stamps.len() * width];
    for (stamp, block) in stamps.iter().zip(buffer.chunks_exact_mut(width)) {
        fill_with_stamp(*stamp, block);
    }
    buffer
}

/// The stamps of blocks of a zone. A block that is not a repeated stamp was not written by these tests.
fn stamps_in(drive: &mut Zns, zone: usize, blocks: Range<u64>) -> Result<Vec<u32>, DeviceError> {
    let width = drive.block_width();
    let mut buffer = vec![0xee; (blocks.end - blocks.start) as usize * width];
    drive.read(Lba(zone as u64 * ZONE + blocks.start), &mut buffer, Time::ZERO)?;
    Ok(buffer
        .chunks_exact(width)
        .map(|block| {
            let stamp = u32::from_le_bytes(block[..4].try_into().unwrap());
            assert!(block.chunks_exact(4).all(|word| word == &block[..4]), "zone {zone}: a block is mixed");
            stamp
        })
        .collect())
}

/// One random step on both, with a comparison of the answers. False if it was not done: there is no power.
pub fn step(drive: &mut Zns, model: &mut Model, random: &mut Random) -> bool {
    let zone = random.below(u64::from(ZONES)) as usize;
    let device = zone as u32;
    let before = model.clone();
    let pointer = match &model.zones[zone] {
        _ if zone == 0 => random.below(ZONE),
        known if known.has_area => (known.written + random.below(AREA + 2)).min(ZONE - 1),
        known => known.written,
    };
    let label = Label::host(Content::Data);
    let (answer, expected) = match random.below(100) {
        dice @ 0..45 => {
            let from = if dice < 40 { pointer } else { random.below(ZONE) };
            let count = 1 + random.below(4).min(ZONE - 1 - from.min(ZONE - 1));
            let stamps = model.stamps(count);
            let buffer = buffer_of(drive, &stamps);
            let first = Lba(zone as u64 * ZONE + from);
            let answer =
                if dice < 8 && zone != 0 && from == drive.zone(device).write_pointer && !model.zones[zone].has_area {
                    drive.append(device, &buffer, label, Time::ZERO).map(|(at, _)| assert_eq!(at, first))
                } else if first.0 + count > u64::from(ZONES) * ZONE {
                    return true;
                } else {
                    drive.write(first, &buffer, label, Time::ZERO).map(drop)
                };
            (answer, model.write(zone, from, &stamps))
        }
        45..50 => (drive.open_with_area(device, Time::ZERO).map(drop), model.open_with_area(zone)),
        50..53 => (drive.open(device, Time::ZERO).map(drop), model.open(zone)),
        53..60 => (drive.close(device, Time::ZERO).map(drop), model.close(zone)),
        60..64 => (drive.finish(device, Time::ZERO).map(drop), model.finish(zone)),
        64..82 => (drive.reset(device, Time::ZERO).map(drop), model.reset(zone)),
        82..90 => {
            let answer = drive.flush(Time::ZERO).map(drop);
            if answer.is_ok() {
                model.was_flushed();
            }
            (answer, Ok(()))
        }
        90 if random.below(20) == 0 => {
            let state = if random.below(2) == 0 { ZoneState::ReadOnly } else { ZoneState::Offline };
            (drive.set_state(device, state), model.fail(zone, state))
        }
        91..95 => {
            let end = model.zones[zone].written + random.below(AREA + 2);
            (drive.flush_area(device, end, Time::ZERO).map(drop), model.flush_area(zone, end))
        }
        _ => {
            let from = random.below(ZONE);
            let blocks = from..from + 1 + random.below(ZONE - from);
            match stamps_in(drive, zone, blocks.clone()) {
                Ok(found) => {
                    assert_eq!(found, model.zones[zone].blocks[blocks.start as usize..blocks.end as usize]);
                    (Ok(()), Ok(()))
                }
                Err(error) => {
                    let is_offline = model.zones[zone].state == ZoneState::Offline;
                    (Err(error), if is_offline { Err("offline") } else { Ok(()) })
                }
            }
        }
    };
    let answer = answer.map_err(|error| named(&error));
    if answer == Err("no power") {
        // Any part of a write to the conventional zone, or to a random write area, may be there.
        let attempted = [0, zone].map(|zone| model.zones[zone].clone());
        let has_area = before.zones[zone].has_area && attempted[1].has_area;
        *model = before;
        let [conventional, attempted] = attempted;
        model.since_flush[0].push(conventional);
        if has_area {
            model.since_flush[zone].push(attempted);
        }
        return false;
    }
    assert_eq!(answer, expected, "zone {zone}: {:?}", before.zones[zone]);
    let reported = drive.zone(device);
    assert_eq!(reported.state, model.zones[zone].state, "zone {zone}");
    model.remember();
    true
}

fn found(drive: &mut Zns, zone: usize) -> ModelZone {
    let reported = drive.zone(zone as u32);
    let blocks = match reported.state {
        ZoneState::Offline => [0; ZONE as usize],
        _ => stamps_in(drive, zone, 0..ZONE).unwrap().try_into().unwrap(),
    };
    let (state, written, has_area) = (reported.state, reported.write_pointer, reported.has_area);
    ModelZone { state, written, has_area, erases: drive.erases(zone as u32), blocks }
}

/// The model's zone as a drive reports it.
fn reported(zone: &ModelZone) -> ModelZone {
    let mut zone = zone.clone();
    zone.lose_power();
    if zone.state == ZoneState::Full {
        zone.written = CAPACITY;
    }
    if zone.state == ZoneState::Offline {
        zone.blocks = [0; ZONE as usize];
    }
    zone
}

/// Checks that drive and model are equal after both lost power.
pub fn check(drive: &mut Zns, model: &Model, context: &str) {
    for zone in 0..ZONES as usize {
        assert_eq!(found(drive, zone), reported(&model.zones[zone]), "{context}, zone {zone}");
    }
}

/// Checks that each zone is one of its versions as a whole: state, write pointer, erases and every block. In the
/// conventional zone, and in a random write area, this holds for each sector: an image is as atomic as its disk.
pub fn check_is_one_of(drive: &mut Zns, versions: impl Fn(usize) -> Vec<ModelZone>, context: &str) {
    let conventional: Vec<ModelZone> = versions(0).iter().map(reported).collect();
    let state = drive.zone(0).state;
    assert!(conventional.iter().any(|version| version.state == state), "{context}: zone 0 is {state:?}");
    if state != ZoneState::Offline {
        let mut buffer = vec![0; ZONE as usize * drive.block_width()];
        drive.read(Lba(0), &mut buffer, Time::ZERO).unwrap();
        let sectors_per_block = drive.block_width() / 512;
        for (number, sector) in buffer.chunks_exact(512).enumerate() {
            let stamp = u32::from_le_bytes(sector[..4].try_into().unwrap());
            assert!(sector.chunks_exact(4).all(|word| word == &sector[..4]), "{context}: sector {number} is mixed");
            let block = number / sectors_per_block;
            assert!(
                versions(0).iter().any(|version| version.blocks[block] == stamp),
                "{context}: block {block} of zone 0"
            );
        }
    }
    for zone in 1..ZONES as usize {
        let versions: Vec<ModelZone> = versions(zone).iter().map(reported).collect();
        if drive.zone(zone as u32).has_area {
            check_area(drive, zone, &versions, context);
            continue;
        }
        let found = found(drive, zone);
        assert!(versions.contains(&found), "{context}: zone {zone} is {found:?}, none of {versions:#?}");
    }
}

/// Checks a zone with a random write area: state and blocks before the write pointer are those of one version, and in the area each
/// sector is of one.
fn check_area(drive: &mut Zns, zone: usize, versions: &[ModelZone], context: &str) {
    let (reported, erases) = (drive.zone(zone as u32), drive.erases(zone as u32));
    let fixed = reported.write_pointer as usize;
    let before = stamps_in(drive, zone, 0..reported.write_pointer).unwrap();
    let is_like = |version: &&ModelZone| {
        let state = (version.state, version.written, version.has_area, version.erases);
        state == (reported.state, reported.write_pointer, true, erases) && version.blocks[..fixed] == before
    };
    let like = versions.iter().find(is_like);
    assert!(like.is_some(), "{context}: zone {zone} is {reported:?}, {before:?}, none of {versions:#?}");
    let mut buffer = vec![0; ZONE as usize * drive.block_width()];
    drive.read(Lba(zone as u64 * ZONE), &mut buffer, Time::ZERO).unwrap();
    let sectors_per_block = drive.block_width() / 512;
    for (number, sector) in buffer.chunks_exact(512).enumerate().skip(fixed * sectors_per_block) {
        let stamp = u32::from_le_bytes(sector[..4].try_into().unwrap());
        assert!(sector.chunks_exact(4).all(|word| word == &sector[..4]), "{context}: sector {number} is mixed");
        let block = number / sectors_per_block;
        let is_known = versions.iter().any(|version| version.has_area && version.blocks[block] == stamp);
        assert!(is_known, "{context}: block {block} of zone {zone} has {stamp}, none of {versions:#?}");
    }
}
