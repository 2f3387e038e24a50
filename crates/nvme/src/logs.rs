//! The pages of Get Log Page. Each is made whole, and the part that was asked for is copied: it may be any part.

use crate::bytes::{put_text, put_u16, put_u32, put_u64, put_u128};
use crate::command::{Command, admin, io};
use crate::controller::{Controller, Kind, MOST_ERRORS};
use crate::discovery;
use crate::events::MOST_ZONES;
use crate::health::Health;
use crate::identify::{ALL_NAMESPACES, MOST_DATA};
use crate::namespace::{CommandSet, Drive, Namespace};
use crate::placement;
use crate::status::Status;
use crate::subsystem::Subsystem;

/// The numbers of the pages.
mod page {
    pub const SUPPORTED: u8 = 0x00;
    pub const ERRORS: u8 = 0x01;
    pub const HEALTH: u8 = 0x02;
    pub const FIRMWARE: u8 = 0x03;
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    pub const EFFECTS: u8 = 0x05;
    pub const PLACEMENT: u8 = 0x20;
    pub const PLACEMENT_USAGE: u8 = 0x21;
    pub const PLACEMENT_STATISTICS: u8 = 0x22;
    pub const PLACEMENT_EVENTS: u8 = 0x23;
    pub const DISCOVERY: u8 = 0x70;
    pub const CHANGED_ZONES: u8 = 0xbf;
    pub const OCP_HEALTH: u8 = 0xc0;
    pub const OF_DRIVES: [u8; 8] =
        [SUPPORTED, ERRORS, HEALTH, FIRMWARE, CHANGED_NAMESPACES, EFFECTS, CHANGED_ZONES, OCP_HEALTH];
    pub const OF_PLACEMENT: [u8; 4] = [PLACEMENT, PLACEMENT_USAGE, PLACEMENT_STATISTICS, PLACEMENT_EVENTS];
    pub const OF_DISCOVERY: [u8; 3] = [SUPPORTED, ERRORS, DISCOVERY];
}

/// The identifier of the page of the Open Compute Project, as its bytes are sent.
const OCP_GUID: u128 = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5;
/// The temperature that is told, in kelvin: there is none.
const TEMPERATURE: u16 = 300;

/// The bytes that a command asks for, after checks of its length and offset.
pub fn length(controller: &Controller, command: &Command) -> Result<usize, Status> {
    let is_of_placement = controller.kind == Kind::Drives && page::OF_PLACEMENT.contains(&number(command));
    let pages = if controller.kind == Kind::Discovery { &page::OF_DISCOVERY[..] } else { &page::OF_DRIVES };
    if !pages.contains(&number(command)) && !is_of_placement {
        return Err(Status::INVALID_LOG_PAGE);
    }
    let words = u64::from(command.word(11) & 0xffff) << 16 | u64::from(command.word(10) >> 16);
    let is_index = command.word(14) & 1 << 23 != 0;
    match (words + 1) * 4 {
        length if length <= MOST_DATA as u64 && offset(command).is_multiple_of(4) && !is_index => Ok(length as usize),
        _ => Err(Status::INVALID_FIELD),
    }
}

fn number(command: &Command) -> u8 {
    (command.word(10) & 0xff) as u8
}

fn offset(command: &Command) -> u64 {
    u64::from(command.word(13)) << 32 | u64::from(command.word(12))
}

/// Fills `data`, which is all zeros, with the part of the page.
pub fn log_page(
    subsystem: &Subsystem,
    controller: &Controller,
    command: &Command,
    data: &mut [u8],
) -> Result<(), Status> {
    let keeps_event = command.word(10) & 1 << 15 != 0;
    let whole = match number(command) {
        page::SUPPORTED => supported(subsystem, controller),
        page::ERRORS => {
            let mut log = vec![0; 64 * MOST_ERRORS];
            controller.put_errors(&mut log);
            log
        }
        page::HEALTH => health(subsystem, controller, command)?,
        page::FIRMWARE => {
            let mut log = vec![0; 512];
            log[0] = 1;
            put_text(&mut log, 8, 8, env!("CARGO_PKG_VERSION"), b' ');
            log
        }
        // Namespaces do not change while the server runs.
        page::CHANGED_NAMESPACES => vec![0; 4096],
        page::EFFECTS => {
            let set = CommandSet::of((command.word(14) >> 24) as u8).ok_or(Status::INVALID_COMMAND_SET)?;
            effects(set, subsystem.has_placement())
        }
        of_placement if page::OF_PLACEMENT.contains(&of_placement) => {
            // An endurance group is the namespace of its number.
            let namespace = subsystem.namespace(command.word(11) >> 16).filter(|_| subsystem.has_placement());
            let namespace = namespace.ok_or(Status::INVALID_FIELD)?;
            match of_placement {
                page::PLACEMENT => placement::configurations(namespace)?,
                page::PLACEMENT_USAGE => placement::usage(namespace)?,
                page::PLACEMENT_STATISTICS => placement::statistics(namespace)?,
                _ => placement::events(namespace, command.word(10) >> 8 & 1 == 1)?,
            }
        }
        page::DISCOVERY => discovery::log(subsystem, &controller.portal),
        page::CHANGED_ZONES => {
            let namespace = subsystem.namespace(command.namespace()).ok_or(Status::INVALID_NAMESPACE)?;
            changed_zones(controller, namespace, keeps_event)?
        }
        page::OCP_HEALTH => ocp_health(subsystem, command)?,
        _ => return Err(Status::INVALID_LOG_PAGE),
    };
    let from = usize::try_from(offset(command)).ok().filter(|from| *from <= whole.len());
    let rest = &whole[from.ok_or(Status::INVALID_FIELD)?..];
    let count = rest.len().min(data.len());
    data[..count].copy_from_slice(&rest[..count]);
    Ok(())
}

fn supported(subsystem: &Subsystem, controller: &Controller) -> Vec<u8> {
    let pages = if controller.kind == Kind::Discovery { &page::OF_DISCOVERY[..] } else { &page::OF_DRIVES };
    let mut log = vec![0; 1024];
    if controller.kind == Kind::Drives && subsystem.has_placement() {
        page::OF_PLACEMENT.iter().for_each(|page| put_u32(&mut log, usize::from(*page) * 4, 1));
    }
    pages.iter().for_each(|page| put_u32(&mut log, usize::from(*page) * 4, 1));
    log
}

/// The drives that a command means: one, or all.
fn drives<'s>(subsystem: &'s Subsystem, command: &Command) -> Result<Vec<&'s Drive>, Status> {
    match command.namespace() {
        0 | ALL_NAMESPACES => Ok(subsystem.namespaces().iter().map(|namespace| &namespace.drive).collect()),
        number => Ok(vec![&subsystem.namespace(number).ok_or(Status::INVALID_NAMESPACE)?.drive]),
    }
}

fn health_of(drives: Vec<&Drive>) -> Result<Health, Status> {
    Health::of(drives.into_iter()).map_err(|error| Status::of(&error, false))
}

fn health(subsystem: &Subsystem, controller: &Controller, command: &Command) -> Result<Vec<u8>, Status> {
    if !matches!(command.namespace(), 0 | ALL_NAMESPACES) {
        return Err(Status::INVALID_FIELD);
    }
    let health = health_of(drives(subsystem, command)?)?;
    let mut log = vec![0; 512];
    // Reliability is degraded.
    log[0] = u8::from(health.is_worn) << 2;
    put_u16(&mut log, 1, TEMPERATURE);
    log[3] = 100;
    log[4] = 10;
    log[5] = health.percent_used.min(255) as u8;
    // Thousands of 512 bytes, rounded up.
    put_u128(&mut log, 32, health.host_read.div_ceil(512_000));
    put_u128(&mut log, 48, health.host_written.div_ceil(512_000));
    put_u128(&mut log, 64, health.reads);
    put_u128(&mut log, 80, health.writes);
    put_u128(&mut log, 112, 1);
    put_u128(&mut log, 128, u128::from(health.seconds / 3600));
    put_u128(&mut log, 160, health.failed);
    put_u128(&mut log, 176, u128::from(controller.error_count()));
    Ok(log)
}

/// The page of the Open Compute Project, from which others read the written media.
fn ocp_health(subsystem: &Subsystem, command: &Command) -> Result<Vec<u8>, Status> {
    let health = health_of(drives(subsystem, command)?)?;
    let mut log = vec![0; 512];
    put_u128(&mut log, 0, health.media_written);
    put_u128(&mut log, 16, health.media_read);
    log[80] = health.percent_used.min(255) as u8;
    put_u32(&mut log, 88, health.most_erases);
    put_u32(&mut log, 92, health.least_erases);
    let bytes: u64 = drives(subsystem, command)?.iter().map(|drive| drive.size_bytes()).sum();
    put_u64(&mut log, 152, bytes / 512);
    put_u16(&mut log, 494, 3);
    put_u128(&mut log, 496, OCP_GUID);
    Ok(log)
}

/// The commands of a set and of administration; those that change content have a bit of their own.
fn effects(set: CommandSet, has_placement: bool) -> Vec<u8> {
    const SUPPORTED: u32 = 1;
    const CHANGES_CONTENT: u32 = SUPPORTED | 1 << 1;
    let mut log = vec![0; 4096];
    for opcode in [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::ASYNC_EVENT,
        admin::KEEP_ALIVE,
    ] {
        put_u32(&mut log, usize::from(opcode) * 4, SUPPORTED);
    }
    if has_placement {
        for opcode in [admin::DIRECTIVE_SEND, admin::DIRECTIVE_RECEIVE] {
            put_u32(&mut log, usize::from(opcode) * 4, SUPPORTED);
        }
    }
    if has_placement && set == CommandSet::Nvm {
        for opcode in [io::MANAGEMENT_SEND, io::MANAGEMENT_RECEIVE] {
            put_u32(&mut log, 1024 + usize::from(opcode) * 4, SUPPORTED);
        }
    }
    let reads = [io::FLUSH, io::READ, io::COMPARE, io::VERIFY];
    let writes = [io::WRITE, io::WRITE_ZEROES, io::COPY];
    let (more_reads, more_writes): (&[u8], &[u8]) = match set {
        CommandSet::Nvm => (&[], &[io::DATASET]),
        CommandSet::Zoned => (&[io::ZONE_RECEIVE], &[io::ZONE_SEND, io::ZONE_APPEND]),
    };
    for opcode in reads.iter().chain(more_reads) {
        put_u32(&mut log, 1024 + usize::from(*opcode) * 4, SUPPORTED);
    }
    for opcode in writes.iter().chain(more_writes) {
        put_u32(&mut log, 1024 + usize::from(*opcode) * 4, CHANGES_CONTENT);
    }
    log
}

fn changed_zones(controller: &Controller, namespace: &Namespace, keeps_event: bool) -> Result<Vec<u8>, Status> {
    if namespace.set() != CommandSet::Zoned {
        return Err(Status::INVALID_FIELD);
    }
    let (zones, overflows) = controller.events().changed_zones(namespace.number, keeps_event);
    let mut log = vec![0; 8 + 8 * MOST_ZONES];
    put_u16(&mut log, 0, if overflows { 0xffff } else { zones.len() as u16 });
    for (place, zone) in zones.into_iter().enumerate() {
        put_u64(&mut log, 8 + place * 8, zone);
    }
    Ok(log)
}
