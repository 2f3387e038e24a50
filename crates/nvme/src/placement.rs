//! Flexible data placement: identifiers, handles, statistics and events, as hosts see them (NVM Express Base Specification 2.1).
//!
//! A namespace whose device places writes by identifiers is alone in an endurance group of its number. It has one
//! configuration, which is enabled, and all handles of the drive, in order: placement handle n is reclaim unit handle n.

use crate::bytes::{put_u16, put_u32, put_u64, put_u128, u16_at};
use crate::command::{Command, Transfer, io};
use crate::identifiers::Shape;
use crate::identify::MOST_DATA;
use crate::namespace::{Drive, Namespace};
use crate::status::Status;
use flashpath::device::{Isolation, NO_HINT, PlacementAccount, PlacementEvent, PlacementEventKind};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;

/// The type of the directive.
pub const DIRECTIVE: u32 = 2;
/// A hint that no drive knows: the device notes the event, and takes its default.
const WRONG_HINT: u8 = u8::MAX;
/// The operations of management: the status of handles, or their update.
const HANDLES: u32 = 1;

/// Bytes of the header of a configuration, of an event, and of their logs.
const CONFIGURATION: usize = 64;
const EVENT: usize = 64;
const STATUS: usize = 32;

/// The state of a device's placement.
fn account(drive: &Drive) -> Result<Option<PlacementAccount>, Status> {
    match drive {
        Drive::Blocks(device) => device.placement().map_err(|error| Status::of(&error, false)),
        Drive::Zones(_) => Ok(None),
    }
}

/// The shape and the state of a namespace with placement.
fn placed(namespace: &Namespace) -> Result<(Shape, PlacementAccount), Status> {
    let shape = namespace.placement.ok_or(Status::FDP_DISABLED)?;
    Ok((shape, account(&namespace.drive)?.ok_or(Status::FDP_DISABLED)?))
}

/// Checks the directive of a write.
pub fn check_directive(namespace: &Namespace, command: &Command) -> Result<(), Status> {
    match directive(command) {
        0 => Ok(()),
        DIRECTIVE if namespace.placement.is_some() => Ok(()),
        _ => Err(Status::INVALID_FIELD),
    }
}

fn directive(command: &Command) -> u32 {
    command.word(12) >> 20 & 15
}

/// The hint of a write, after the check of its directive. An invalid identifier is an event of the drive, not an error.
pub fn hint(namespace: &Namespace, command: &Command) -> u8 {
    match namespace.placement {
        Some(shape) if directive(command) == DIRECTIVE => {
            shape.number((command.word(13) >> 16) as u16).map_or(WRONG_HINT, |number| number + 1)
        }
        _ => NO_HINT,
    }
}

/// The data of a command of management, after checks of its fields. `None` for a command that is none.
pub fn plan(namespace: &Namespace, command: &Command) -> Result<Option<Transfer>, Status> {
    let operation = command.word(10) & 0xff;
    if !matches!(command.opcode(), io::MANAGEMENT_SEND | io::MANAGEMENT_RECEIVE) || namespace.is_zoned() {
        return Ok(None);
    }
    match operation {
        0 => return Ok(Some(Transfer::None)),
        HANDLES => {}
        _ => return Err(Status::INVALID_FIELD),
    }
    let shape = namespace.placement.ok_or(Status::FDP_DISABLED)?;
    if command.opcode() == io::MANAGEMENT_RECEIVE {
        let length = (u64::from(command.word(11)) + 1) * 4;
        return match length <= MOST_DATA as u64 {
            true => Ok(Some(Transfer::ToHost(length as usize))),
            false => Err(Status::INVALID_FIELD),
        };
    }
    let identifiers = (command.word(10) >> 16) + 1;
    if identifiers > shape.identifiers() {
        return Err(Status::INVALID_FIELD);
    }
    Ok(Some(Transfer::FromHost(identifiers as usize * 2)))
}

/// Executes a planned command of management.
pub fn execute(namespace: &Namespace, command: &Command, input: &[u8], output: &mut [u8]) -> Result<Time, Status> {
    if command.word(10) & 0xff != HANDLES {
        return Ok(namespace.drive.now());
    }
    match command.opcode() {
        io::MANAGEMENT_RECEIVE => {
            let (shape, placement) = placed(namespace)?;
            put_part(&handle_status(shape, &placement), 0, output)?;
            Ok(namespace.drive.now())
        }
        _ => update(namespace, input),
    }
}

/// Lets handles refer to empty units. All are checked before the first.
fn update(namespace: &Namespace, input: &[u8]) -> Result<Time, Status> {
    let shape = namespace.placement.ok_or(Status::FDP_DISABLED)?;
    let Drive::Blocks(device) = &namespace.drive else { return Err(Status::INVALID_OPCODE) };
    let numbers = input.chunks_exact(2).map(|identifier| shape.number(u16_at(identifier, 0)));
    let numbers: Vec<u8> = numbers.collect::<Option<_>>().ok_or(Status::INVALID_FIELD)?;
    device.update_handles(&numbers).map_err(|error| Status::of(&error, true))
}

/// Copies a part of a log into zeros.
pub fn put_part(whole: &[u8], from: usize, data: &mut [u8]) -> Result<(), Status> {
    let rest = whole.get(from..).ok_or(Status::INVALID_FIELD)?;
    let count = rest.len().min(data.len());
    data[..count].copy_from_slice(&rest[..count]);
    data[count..].fill(0);
    Ok(())
}

/// The status of the handles, by identifier.
fn handle_status(shape: Shape, placement: &PlacementAccount) -> Vec<u8> {
    let count = placement.available.len();
    let mut data = vec![0; 16 + STATUS * count];
    put_u16(&mut data, 14, count as u16);
    for (number, available) in (0..).zip(&placement.available) {
        let at = 16 + STATUS * number as usize;
        put_u16(&mut data, at, shape.identifier(number));
        put_u16(&mut data, at + 2, shape.handle_of(number));
        put_u64(&mut data, at + 8, available / BLOCK_BYTES);
    }
    data
}

/// The log of configurations: the one that is enabled.
pub fn configurations(namespace: &Namespace) -> Result<Vec<u8>, Status> {
    let (shape, placement) = placed(namespace)?;
    let length = (CONFIGURATION + 4 * placement.handles.len()).next_multiple_of(8);
    let mut data = vec![0; 16 + length];
    // The number of configurations is counted from 0.
    put_u32(&mut data, 4, 16 + length as u32);
    let one = &mut data[16..];
    put_u16(one, 0, length as u16);
    // Valid, with a volatile write cache.
    one[2] = 1 << 7 | 1 << 4 | shape.group_bits() as u8;
    put_u32(one, 4, shape.groups());
    put_u16(one, 8, shape.handles() as u16);
    put_u16(one, 10, (shape.identifiers() - 1) as u16);
    put_u32(one, 12, 1);
    put_u64(one, 16, placement.unit_bytes);
    for (number, handle) in placement.handles.iter().enumerate() {
        one[CONFIGURATION + 4 * number] = match handle.isolation {
            Isolation::Initial => 1,
            Isolation::Persistent => 2,
        };
    }
    Ok(data)
}

/// The log of the use of handles: all are given to the namespace.
pub fn usage(namespace: &Namespace) -> Result<Vec<u8>, Status> {
    let (shape, _) = placed(namespace)?;
    let mut data = vec![0; 8 + 8 * shape.handles() as usize];
    put_u16(&mut data, 0, shape.handles() as u16);
    (0..shape.handles() as usize).for_each(|handle| data[8 + 8 * handle] = 1);
    Ok(data)
}

/// The log of statistics.
pub fn statistics(namespace: &Namespace) -> Result<Vec<u8>, Status> {
    let (_, placement) = placed(namespace)?;
    let mut data = vec![0; 64];
    put_u128(&mut data, 0, placement.host_bytes.into());
    put_u128(&mut data, 16, placement.media_bytes.into());
    put_u128(&mut data, 32, placement.erased_bytes.into());
    Ok(data)
}

/// The number of an event's kind. 81h, a handle that the controller modified without an action of the host, never happens: units have
/// no time limit.
fn event_number(kind: PlacementEventKind) -> u8 {
    match kind {
        PlacementEventKind::UnitNotFilled => 0x00,
        PlacementEventKind::InvalidIdentifier => 0x03,
        PlacementEventKind::Reallocated => 0x80,
    }
}

/// The log of events of the host's side, or else of the drive's, the oldest first.
pub fn events(namespace: &Namespace, of_host: bool) -> Result<Vec<u8>, Status> {
    let (shape, placement) = placed(namespace)?;
    let events = if of_host { &placement.host_events } else { &placement.drive_events };
    let mut data = vec![0; 64 + EVENT * events.len()];
    put_u32(&mut data, 0, events.len() as u32);
    for (event, entry) in events.iter().zip(data[64..].chunks_exact_mut(EVENT)) {
        put_event(namespace, shape, event, entry);
    }
    Ok(data)
}

fn put_event(namespace: &Namespace, shape: Shape, event: &PlacementEvent, entry: &mut [u8]) {
    // The flags: the identifier, the namespace and the place of the unit are known.
    const IDENTIFIER: u8 = 1;
    const NAMESPACE: u8 = 1 << 1;
    const PLACE: u8 = 1 << 2;
    entry[0] = event_number(event.kind);
    entry[1] = NAMESPACE;
    // Milliseconds in 48 bits.
    put_u64(entry, 4, (event.at.0 / 1_000_000) & ((1 << 48) - 1));
    put_u32(entry, 12, namespace.number);
    let known = event.identifier.filter(|number| u32::from(*number) < shape.identifiers());
    if let Some(number) = known {
        entry[1] |= IDENTIFIER | PLACE;
        put_u16(entry, 2, shape.identifier(number.into()));
        put_u16(entry, 32, event.group);
        entry[34] = shape.handle_of(number.into()) as u8;
    }
    if let Some((offset, bytes)) = event.moved {
        // The first block is valid; the number of blocks has 16 bits.
        entry[16] = 1;
        put_u16(entry, 18, (bytes / BLOCK_BYTES).min(u16::MAX.into()) as u16);
        put_u64(entry, 20, offset / BLOCK_BYTES);
    }
}

/// Fills in the events that a namespace can have, each with a byte that says that it is noted; returns their number.
pub fn supported_events(data: &mut [u8]) -> u32 {
    let kinds = PlacementEventKind::ALL;
    for (kind, entry) in kinds.iter().zip(data.chunks_exact_mut(2)) {
        entry.copy_from_slice(&[event_number(*kind), 1]);
    }
    kinds.len() as u32
}

/// Fills in the directives that are supported and enabled: that of identification, and this one.
pub fn put_directives(namespace: &Namespace, data: &mut [u8]) {
    let directives = 1 | u8::from(namespace.placement.is_some()) << DIRECTIVE;
    for field in [0, 32] {
        if let Some(byte) = data.get_mut(field) {
            *byte = directives;
        }
    }
    // Placement stays enabled through a reset.
    if let Some(byte) = data.get_mut(64) {
        *byte = directives & !1;
    }
}
