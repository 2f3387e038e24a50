//! Commands of zoned namespaces (Zoned Namespace Command Set Specification 1.1).

use crate::blocks::{check_range, check_writable};
use crate::bytes::put_u64;
use crate::command::{Command, Transfer, io};
use crate::identify::{MOST_APPEND, MOST_DATA};
use crate::namespace::{Drive, Namespace, state_number};
use crate::status::Status;
use flashpath::device::{Zone, ZoneState};
use flashpath::run::shared::{ServeError, SharedZones, ZoneAction};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;

/// Bytes of the header of a report, and of the description of a zone.
const DESCRIPTION: usize = 64;

/// The result of a command on zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The time at which it is done.
    pub at: Time,
    /// The first block of an append.
    pub place: u64,
}

/// The data of a command, after checks of its fields. `None` for a command that is none of these.
pub fn plan(namespace: &Namespace, command: &Command) -> Result<Option<Transfer>, Status> {
    let Drive::Zones(zones) = &namespace.drive else { return Ok(None) };
    match command.opcode() {
        io::ZONE_APPEND => {
            let bytes = command.blocks() as usize * BLOCK_BYTES as usize;
            if bytes > MOST_APPEND || command.word(12) >> 20 & 15 != 0 {
                return Err(Status::INVALID_FIELD);
            }
            check_range(namespace, command.long(), 1)?;
            zone_of(zones, command.long())?;
            check_writable(namespace)?;
            Ok(Some(Transfer::FromHost(bytes)))
        }
        io::ZONE_SEND => {
            let action = action(zones, command)?;
            check_writable(namespace)?;
            if !is_for_all(command) {
                check_range(namespace, command.long(), 1)?;
                managed(zones, command, action)?;
            } else if matches!(action, ZoneAction::OpenWithArea | ZoneAction::FlushArea(_)) {
                return Err(Status::INVALID_FIELD);
            }
            Ok(Some(Transfer::None))
        }
        io::ZONE_RECEIVE => {
            check_range(namespace, command.long(), 1)?;
            let bytes = (u64::from(command.word(12)) + 1) * 4;
            let (kind, filter) = (command.word(13) & 0xff, command.word(13) >> 8 & 0xff);
            // There are no extensions of descriptions, and so no extended report.
            if kind != 0 || filter > 7 || bytes > MOST_DATA as u64 || (bytes as usize) < DESCRIPTION {
                return Err(Status::INVALID_FIELD);
            }
            Ok(Some(Transfer::ToHost(bytes as usize)))
        }
        _ => Ok(None),
    }
}

/// Executes a planned command. `changed` hears of zones that have changed although no host asked for it.
pub fn execute(
    namespace: &Namespace,
    command: &Command,
    durable: bool,
    input: &[u8],
    output: &mut [u8],
    changed: &dyn Fn(u64),
) -> Result<Done, Status> {
    let Drive::Zones(zones) = &namespace.drive else { return Err(Status::INVALID_OPCODE) };
    let failed = |error: ServeError| Status::of(&error, true);
    match command.opcode() {
        io::ZONE_APPEND => {
            let zone = zone_of(zones, command.long())?;
            let (place, at) = zones.append(zone, input, durable).map_err(failed)?;
            Ok(Done { at, place: place.0 })
        }
        io::ZONE_SEND if is_for_all(command) => manage_all(zones, action(zones, command)?, changed),
        io::ZONE_SEND => {
            let action = action(zones, command)?;
            manage(zones, managed(zones, command, action)?, action, changed)
        }
        io::ZONE_RECEIVE => report(zones, command, output),
        _ => Err(Status::INVALID_OPCODE),
    }
}

fn action(zones: &SharedZones, command: &Command) -> Result<ZoneAction, Status> {
    let has_area = command.word(13) & 1 << 9 != 0;
    match command.word(13) & 0xff {
        3 if has_area => Ok(ZoneAction::OpenWithArea),
        // The last block of the range is named.
        0x11 => Ok(ZoneAction::FlushArea(command.long() % zones.shape().zone_blocks + 1)),
        1 => Ok(ZoneAction::Close),
        2 => Ok(ZoneAction::Finish),
        3 => Ok(ZoneAction::Open),
        4 => Ok(ZoneAction::Reset),
        5 => Ok(ZoneAction::Offline),
        // Extensions of descriptions are not offered.
        _ => Err(Status::INVALID_FIELD),
    }
}

fn is_for_all(command: &Command) -> bool {
    command.word(13) & 1 << 8 != 0
}

/// The zone that begins with this block, which is on the drive.
fn zone_of(zones: &SharedZones, first: u64) -> Result<u32, Status> {
    let zone_blocks = zones.shape().zone_blocks;
    if !first.is_multiple_of(zone_blocks) {
        return Err(Status::INVALID_FIELD);
    }
    Ok((first / zone_blocks) as u32)
}

/// The zone of a command to one. A range of a random write area is named by its last block, other zones by their first.
fn managed(zones: &SharedZones, command: &Command, action: ZoneAction) -> Result<u32, Status> {
    match action {
        ZoneAction::FlushArea(_) => Ok((command.long() / zones.shape().zone_blocks) as u32),
        _ => zone_of(zones, command.long()),
    }
}

fn manage(zones: &SharedZones, zone: u32, action: ZoneAction, changed: &dyn Fn(u64)) -> Result<Done, Status> {
    let (state, at) = zones.manage(zone, action).map_err(|error| Status::of(&error, true))?;
    if action == ZoneAction::Reset && state == ZoneState::Offline {
        // It was erased for the last time.
        changed(u64::from(zone) * zones.shape().zone_blocks);
    }
    Ok(Done { at, place: 0 })
}

/// True if a command to all zones means those in this state.
fn is_meant(action: ZoneAction, state: ZoneState) -> bool {
    use ZoneState::{Closed, ExplicitlyOpen, Full, ImplicitlyOpen, ReadOnly};
    match action {
        ZoneAction::Close => matches!(state, ImplicitlyOpen | ExplicitlyOpen),
        ZoneAction::Finish => matches!(state, ImplicitlyOpen | ExplicitlyOpen | Closed),
        ZoneAction::Open => state == Closed,
        ZoneAction::Reset => matches!(state, ImplicitlyOpen | ExplicitlyOpen | Closed | Full),
        ZoneAction::Offline => state == ReadOnly,
        // These are for one zone.
        ZoneAction::OpenWithArea | ZoneAction::FlushArea(_) => false,
    }
}

fn manage_all(zones: &SharedZones, action: ZoneAction, changed: &dyn Fn(u64)) -> Result<Done, Status> {
    let (mut meant, mut explicitly_open) = (Vec::new(), 0);
    let mut done = zones
        .report(0, |zone, Zone { state, .. }| {
            explicitly_open += u32::from(state == ZoneState::ExplicitlyOpen);
            if is_meant(action, state) {
                meant.push(zone);
            }
            true
        })
        .map_err(|error| Status::of(&error, false))?;
    let limit = zones.shape().max_open;
    if action == ZoneAction::Open && limit > 0 && explicitly_open as usize + meant.len() > limit as usize {
        // None is opened if not all can be.
        return Err(Status::TOO_MANY_OPEN);
    }
    for zone in meant {
        done = done.max(manage(zones, zone, action, changed)?.at);
    }
    Ok(Done { at: done, place: 0 })
}

/// The states that each filter of a report means.
fn passes(filter: u32, state: ZoneState) -> bool {
    match filter {
        1 => state == ZoneState::Empty,
        2 => state == ZoneState::ImplicitlyOpen,
        3 => state == ZoneState::ExplicitlyOpen,
        4 => state == ZoneState::Closed,
        5 => state == ZoneState::Full,
        6 => state == ZoneState::ReadOnly,
        7 => state == ZoneState::Offline,
        _ => true,
    }
}

fn report(zones: &SharedZones, command: &Command, output: &mut [u8]) -> Result<Done, Status> {
    let (filter, is_partial) = (command.word(13) >> 8 & 0xff, command.word(13) & 1 << 16 != 0);
    let zone_blocks = zones.shape().zone_blocks;
    output.fill(0);
    let (header, descriptions) = output.split_at_mut(DESCRIPTION);
    let room = descriptions.len() / DESCRIPTION;
    let mut count = 0;
    let done = zones.report((command.long() / zone_blocks) as u32, |number, zone| {
        if !passes(filter, zone.state) {
            return true;
        }
        if let Some(place) = descriptions.chunks_exact_mut(DESCRIPTION).nth(count) {
            put_description(place, u64::from(number) * zone_blocks, &zone);
        }
        count += 1;
        !is_partial || count < room
    });
    put_u64(header, 0, if is_partial { count.min(room) } else { count } as u64);
    Ok(Done { at: done.map_err(|error| Status::of(&error, false))?, place: 0 })
}

fn put_description(place: &mut [u8], first: u64, zone: &Zone) {
    // Sequential writes are required.
    place[0] = 2;
    place[1] = state_number(zone.state) << 4;
    place[2] = u8::from(zone.has_area) << 3;
    put_u64(place, 8, zone.capacity);
    put_u64(place, 16, first);
    let has_pointer = !matches!(zone.state, ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline);
    put_u64(place, 24, if has_pointer { first + zone.write_pointer } else { u64::MAX });
}
