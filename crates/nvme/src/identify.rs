//! The data of Identify.

use crate::bytes::{put_text, put_u16, put_u32, put_u64, put_u128};
use crate::command::Command;
use crate::controller::{Controller, Kind, MOST_ENTRIES, MOST_ERRORS, VERSION};
use crate::events::{MOST_WAITING, ZONES_CHANGED};
use crate::namespace::{CommandSet, Drive, Namespace};
use crate::pdu::IN_CAPSULE;
use crate::status::Status;
use crate::subsystem::{DISCOVERY_NAME, Subsystem};
use flashpath::units::BLOCK_BYTES;

/// Bytes of every structure of Identify.
pub const IDENTIFY_BYTES: usize = 4096;
/// The longest data of a command, as a power of two of pages: 512 KiB.
pub const MOST_DATA_SHIFT: u8 = 7;
/// The longest data of a command.
pub const MOST_DATA: usize = 4096 << MOST_DATA_SHIFT;
/// The longest append, as a power of two of pages: 128 KiB.
pub const MOST_APPEND_SHIFT: u8 = 5;
/// The longest append.
pub const MOST_APPEND: usize = 4096 << MOST_APPEND_SHIFT;
/// The block size, as a power of two.
const BLOCK_SHIFT: u8 = BLOCK_BYTES.trailing_zeros() as u8;
/// Ranges of a dataset command.
pub const MOST_RANGES: usize = 256;
/// Source ranges of a copy.
pub const MOST_SOURCES: usize = 128;
/// Blocks of a copy, of one range or of all together.
pub const MOST_COPIED: u64 = MOST_DATA as u64 / BLOCK_BYTES;
/// Numbers in a list of namespaces.
const MOST_LISTED: usize = IDENTIFY_BYTES / 4;
/// Every namespace.
pub const ALL_NAMESPACES: u32 = u32::MAX;

/// The kinds of structures.
mod structure {
    pub const NAMESPACE: u8 = 0x00;
    pub const CONTROLLER: u8 = 0x01;
    pub const NAMESPACES: u8 = 0x02;
    pub const DESCRIPTORS: u8 = 0x03;
    pub const NAMESPACE_OF_SET: u8 = 0x05;
    pub const CONTROLLER_OF_SET: u8 = 0x06;
    pub const NAMESPACES_OF_SET: u8 = 0x07;
    pub const NAMESPACE_OF_ANY_SET: u8 = 0x08;
    pub const ATTACHED_CONTROLLERS: u8 = 0x12;
    pub const CONTROLLERS: u8 = 0x13;
    pub const SETS: u8 = 0x1c;
}

/// Fills `data`, which is all zeros, with the structure that the command asks for.
pub fn identify(
    subsystem: &Subsystem,
    controller: &Controller,
    command: &Command,
    data: &mut [u8],
) -> Result<(), Status> {
    let (kind, first) = ((command.word(10) & 0xff) as u8, (command.word(10) >> 16) as u16);
    if controller.kind == Kind::Discovery {
        return match kind {
            structure::CONTROLLER => {
                put_controller(subsystem, controller, data);
                Ok(())
            }
            _ => Err(Status::INVALID_FIELD),
        };
    }
    let number = command.namespace();
    let set = || CommandSet::of((command.word(11) >> 24) as u8).ok_or(Status::INVALID_FIELD);
    let sees = |namespace: &&Namespace| namespace.set() == CommandSet::Nvm || controller.has_all_sets();
    let seen = || {
        let namespace = subsystem.namespace(number).filter(sees);
        namespace.ok_or(Status::INVALID_NAMESPACE)
    };
    match kind {
        // Without a number: what is common to all.
        structure::NAMESPACE if number == ALL_NAMESPACES => put_common(data),
        structure::NAMESPACE => {
            put_namespace(seen()?, has_several_controllers(subsystem), data);
            if subsystem.has_placement() {
                put_u16(data, 102, number as u16);
            }
        }
        structure::CONTROLLER => put_controller(subsystem, controller, data),
        structure::NAMESPACES => put_list(subsystem.namespaces().iter().filter(sees), number, data)?,
        structure::NAMESPACES_OF_SET => {
            let set = set()?;
            let of_set = subsystem.namespaces().iter().filter(sees).filter(|namespace| namespace.set() == set);
            put_list(of_set, number, data)?;
        }
        structure::DESCRIPTORS => put_descriptors(seen()?, data),
        structure::NAMESPACE_OF_SET => {
            let (namespace, set) = (seen()?, set()?);
            if namespace.set() != set {
                return Err(Status::INVALID_FIELD);
            }
            put_namespace_of_set(namespace, data);
        }
        structure::CONTROLLER_OF_SET => match set()? {
            CommandSet::Nvm => {
                data[0] = MOST_DATA_SHIFT;
                data[3] = (MOST_RANGES - 1) as u8;
            }
            CommandSet::Zoned => data[0] = MOST_APPEND_SHIFT,
        },
        structure::NAMESPACE_OF_ANY_SET => {
            let namespace = seen()?;
            data[1] = u8::from(has_several_controllers(subsystem));
            data[8] = u8::from(namespace.is_read_only());
            data[14] = 1;
        }
        structure::ATTACHED_CONTROLLERS => {
            seen()?;
            put_controllers(subsystem, first, data);
        }
        structure::CONTROLLERS => put_controllers(subsystem, first, data),
        // The sets that can be enabled together: NVM (bit 0) and zoned (bit 2).
        structure::SETS if matches!(first, 0xffff) || first == controller.id => put_u64(data, 0, 0b101),
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(())
}

fn put_controller(subsystem: &Subsystem, controller: &Controller, data: &mut [u8]) {
    let is_discovery = controller.kind == Kind::Discovery;
    put_text(data, 4, 20, subsystem.serial(), b' ');
    put_text(data, 24, 40, "Flashpath", b' ');
    put_text(data, 64, 8, env!("CARGO_PKG_VERSION"), b' ');
    data[77] = MOST_DATA_SHIFT;
    put_u16(data, 78, controller.id);
    put_u32(data, 80, VERSION);
    data[111] = if is_discovery { 2 } else { 1 };
    data[259] = MOST_WAITING as u8 - 1;
    // The effects of commands, and long logs.
    data[261] = 0b110;
    data[262] = MOST_ERRORS as u8 - 1;
    // Keep alive in units of 100 ms.
    put_u16(data, 320, 10);
    put_u16(data, 514, MOST_ENTRIES);
    // Descriptors: of any alignment, with an offset in the capsule, and of the transport.
    put_u32(data, 536, 1 | 1 << 20 | 1 << 21);
    let name = if is_discovery { DISCOVERY_NAME } else { subsystem.name() };
    put_text(data, 768, 256, name, 0);
    put_u32(data, 1792, (64 + IN_CAPSULE as u32) / 16);
    put_u32(data, 1796, 1);
    data[1803] = 1;
    if is_discovery {
        return;
    }
    // Several controllers, unless there are zones.
    data[76] = u8::from(has_several_controllers(subsystem)) << 1;
    put_u32(data, 92, ZONES_CHANGED);
    // No more than four aborts at once.
    data[258] = 3;
    // One slot of firmware, which can only be read.
    data[260] = 0b11;
    // Warning and critical temperature, in kelvin.
    if subsystem.has_placement() {
        // Endurance groups, with flexible data placement.
        put_u32(data, 96, 1 << 4 | 1 << 19);
        put_u16(data, 340, subsystem.namespaces().len() as u16);
        // Directives.
        put_u16(data, 256, 1 << 5);
    }
    put_u16(data, 266, 343);
    put_u16(data, 268, 353);
    data[512] = 0x66;
    data[513] = 0x44;
    put_u32(data, 516, subsystem.namespaces().len() as u32);
    put_u32(data, 540, subsystem.namespaces().len() as u32);
    // Compare, dataset management, write zeroes, verify, copy with ranges of format 0.
    put_u16(data, 520, 1 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8);
    put_u16(data, 534, 1);
    // A volatile cache; a flush of all namespaces is known.
    data[525] = 0b111;
    // Commands of a set are known to be supported by the log of effects; blocks are written as a whole.
    put_u16(data, 526, 0);
    let bytes: u128 = subsystem.namespaces().iter().map(|one| u128::from(one.drive.size_bytes())).sum();
    put_u128(data, 280, bytes);
}

/// Fills in the format, which is common to all namespaces.
fn put_common(data: &mut [u8]) {
    data[130] = BLOCK_SHIFT;
    // Deallocated blocks read as zeros, and zeros may be written by deallocation.
    data[33] = 0b1001;
}

/// True if hosts are told of several controllers. Linux then puts its multipath layer above the namespaces, which (6.1) neither keeps
/// the order of writes to a zone nor shows the limits of zones; so it is not told of a subsystem with zones.
fn has_several_controllers(subsystem: &Subsystem) -> bool {
    subsystem.namespaces().iter().all(|namespace| namespace.set() == CommandSet::Nvm)
}

fn put_namespace(namespace: &Namespace, is_shared: bool, data: &mut [u8]) {
    put_common(data);
    let capacity = match &namespace.drive {
        Drive::Blocks(_) => namespace.blocks(),
        Drive::Zones(zones) => {
            let mut capacity = 0;
            // All zones of a drive have the same capacity; a drive that is broken tells the size.
            match zones.report(0, |_, zone| {
                capacity = zone.capacity;
                false
            }) {
                Ok(_) => capacity * u64::from(zones.shape().zones),
                Err(_) => namespace.blocks(),
            }
        }
    };
    put_u64(data, 0, namespace.blocks());
    put_u64(data, 8, capacity);
    put_u64(data, 16, capacity);
    put_u128(data, 48, u128::from(capacity * BLOCK_BYTES));
    data[30] = u8::from(is_shared);
    put_u16(data, 74, MOST_COPIED as u16);
    put_u32(data, 76, MOST_COPIED as u32);
    data[80] = (MOST_SOURCES - 1) as u8;
    data[99] = u8::from(namespace.is_read_only());
    data[104..120].copy_from_slice(&namespace.identifier);
    if namespace.set() == CommandSet::Zoned {
        // Its zones are reset, not their blocks deallocated.
        data[33] = 0;
    }
}

fn put_list<'n>(all: impl Iterator<Item = &'n Namespace>, above: u32, data: &mut [u8]) -> Result<(), Status> {
    if above >= u32::MAX - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let above = all.map(|namespace| namespace.number).filter(|number| *number > above);
    for (place, number) in above.take(MOST_LISTED).enumerate() {
        put_u32(data, place * 4, number);
    }
    Ok(())
}

fn put_controllers(subsystem: &Subsystem, first: u16, data: &mut [u8]) {
    let numbers = subsystem.controller_numbers().into_iter().filter(|number| *number >= first);
    let mut count = 0;
    for number in numbers.take(MOST_LISTED * 2 - 1) {
        count += 1;
        put_u16(data, count * 2, number);
    }
    put_u16(data, 0, count as u16);
}

fn put_descriptors(namespace: &Namespace, data: &mut [u8]) {
    let set = [namespace.set().number()];
    let mut at = 0;
    for (kind, value) in [(2u8, &namespace.identifier[..]), (3, &namespace.identifier[..]), (4, &set[..])] {
        (data[at], data[at + 1]) = (kind, value.len() as u8);
        data[at + 4..at + 4 + value.len()].copy_from_slice(value);
        at += 4 + value.len();
    }
}

fn put_namespace_of_set(namespace: &Namespace, data: &mut [u8]) {
    let Drive::Zones(zones) = &namespace.drive else { return };
    let shape = zones.shape();
    // Resources are counted from 0, and all ones mean no limit: as a limit of 0 does here.
    put_u32(data, 4, shape.max_active.wrapping_sub(1));
    put_u32(data, 8, shape.max_open.wrapping_sub(1));
    put_u64(data, 2816, shape.zone_blocks);
    if let Some(areas) = shape.areas {
        // Random write areas, which are flushed by a command, too.
        put_u16(data, 2, 1 << 1);
        put_u32(data, 44, areas.count);
        put_u16(data, 48, areas.flush_blocks as u16);
        put_u16(data, 50, areas.blocks as u16);
        data[52] = 1;
    }
}
