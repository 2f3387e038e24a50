//! Get Features and Set Features.

use crate::command::Command;
use crate::controller::{Controller, Kind, MOST_QUEUES};
use crate::placement;
use crate::status::Status;
use crate::subsystem::Subsystem;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The numbers of the features.
mod feature {
    pub const ARBITRATION: u8 = 0x01;
    pub const POWER: u8 = 0x02;
    pub const TEMPERATURE: u8 = 0x04;
    pub const ERROR_RECOVERY: u8 = 0x05;
    pub const WRITE_CACHE: u8 = 0x06;
    pub const QUEUES: u8 = 0x07;
    pub const ATOMICITY: u8 = 0x0a;
    pub const EVENTS: u8 = 0x0b;
    pub const KEEP_ALIVE: u8 = 0x0f;
    pub const COMMAND_SETS: u8 = 0x19;
    pub const PLACEMENT: u8 = 0x1d;
    pub const PLACEMENT_EVENTS: u8 = 0x1e;
    pub const HOST: u8 = 0x81;
}

/// The bytes of the identifier of a host.
pub const HOST_BYTES: usize = 16;

/// Queues of both kinds that a host gets, each counted from 0.
const QUEUES: u32 = (MOST_QUEUES as u32 - 1) | (MOST_QUEUES as u32 - 1) << 16;

fn number(command: &Command) -> u8 {
    (command.word(10) & 0xff) as u8
}

/// The bytes that a get returns.
pub fn length(command: &Command) -> usize {
    match number(command) {
        feature::HOST => HOST_BYTES,
        // Two bytes for each event that the host has room for.
        feature::PLACEMENT_EVENTS => (command.word(11) >> 16 & 0xff) as usize * 2,
        _ => 0,
    }
}

/// True if a discovery controller has the feature.
fn is_known(controller: &Controller, number: u8) -> bool {
    controller.kind == Kind::Drives || matches!(number, feature::EVENTS | feature::KEEP_ALIVE | feature::HOST)
}

/// The value of a feature.
pub fn get(subsystem: &Subsystem, controller: &Controller, command: &Command, data: &mut [u8]) -> Result<u32, Status> {
    // Values are not saved, so there is only the current one.
    if command.word(10) >> 8 & 7 != 0 || !is_known(controller, number(command)) {
        return Err(Status::INVALID_FIELD);
    }
    match number(command) {
        number @ (feature::ARBITRATION | feature::TEMPERATURE | feature::ERROR_RECOVERY | feature::ATOMICITY) => {
            Ok(controller.features().kept[usize::from(number)])
        }
        feature::POWER | feature::COMMAND_SETS => Ok(0),
        feature::WRITE_CACHE => Ok(u32::from(controller.has_write_cache.load(Ordering::Relaxed))),
        feature::QUEUES => Ok(QUEUES),
        feature::EVENTS => Ok(controller.events().enabled),
        feature::KEEP_ALIVE => Ok(controller.features().keep_alive.as_millis() as u32),
        // Enabled, in the configuration 0; an endurance group is the namespace of its number.
        feature::PLACEMENT => {
            let group = subsystem.namespace(command.word(11) & 0xffff).ok_or(Status::INVALID_FIELD)?;
            Ok(u32::from(group.placement.is_some()))
        }
        feature::PLACEMENT_EVENTS => {
            placed(subsystem, command)?;
            Ok(placement::supported_events(data))
        }
        feature::HOST if command.word(11) & 1 != 0 => {
            data[..HOST_BYTES].copy_from_slice(&controller.host_id);
            Ok(0)
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Checks that a namespace places writes, and has the handle that a command names.
fn placed(subsystem: &Subsystem, command: &Command) -> Result<(), Status> {
    let namespace = subsystem.namespace(command.namespace()).ok_or(Status::INVALID_NAMESPACE)?;
    let shape = namespace.placement.ok_or(Status::FDP_DISABLED)?;
    if command.word(11) & 0xffff < shape.handles() { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

/// Sets a feature; returns the result.
pub fn set(subsystem: &Subsystem, controller: &Controller, command: &Command) -> Result<u32, Status> {
    if command.word(10) & 1 << 31 != 0 || !is_known(controller, number(command)) {
        // Nothing can be saved.
        return Err(Status::INVALID_FIELD);
    }
    let value = command.word(11);
    match number(command) {
        number @ (feature::ARBITRATION | feature::TEMPERATURE | feature::ERROR_RECOVERY | feature::ATOMICITY) => {
            controller.features().kept[usize::from(number)] = value;
            Ok(0)
        }
        // There is one state of power, and one combination of sets.
        feature::POWER | feature::COMMAND_SETS if value == 0 => Ok(0),
        feature::WRITE_CACHE if value & !1 == 0 => {
            controller.has_write_cache.store(value == 1, Ordering::Relaxed);
            Ok(0)
        }
        feature::QUEUES if value & 0xffff != 0xffff && value >> 16 != 0xffff => Ok(QUEUES),
        feature::EVENTS => {
            controller.events().enabled = value;
            Ok(0)
        }
        feature::KEEP_ALIVE => {
            // In whole seconds, rounded up.
            controller.features().keep_alive = Duration::from_secs(u64::from(value).div_ceil(1000));
            Ok(0)
        }
        // It changes only while an endurance group has no namespace.
        feature::PLACEMENT if subsystem.namespace(value & 0xffff).is_some() => Err(Status::COMMAND_SEQUENCE),
        feature::PLACEMENT_EVENTS => {
            placed(subsystem, command)?;
            Err(Status::NOT_CHANGEABLE)
        }
        feature::HOST => Err(Status::NOT_CHANGEABLE),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// True if a set turns the write cache off.
pub fn disables_cache(command: &Command) -> bool {
    number(command) == feature::WRITE_CACHE && command.word(11) & 1 == 0
}
