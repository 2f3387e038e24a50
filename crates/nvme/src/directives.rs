//! Directives: the identification of those that a namespace has. Data placement is always enabled where it is offered.

use crate::command::Command;
use crate::identify::IDENTIFY_BYTES;
use crate::namespace::Namespace;
use crate::placement;
use crate::status::Status;
use crate::subsystem::Subsystem;

/// The directive of identification, and its operation: parameters are received, a directive is enabled.
const IDENTIFICATION: u32 = 0;
const PARAMETERS: u32 = 1;

/// The type and the operation of a command.
fn kind(command: &Command) -> (u32, u32) {
    (command.word(11) >> 8 & 0xff, command.word(11) & 0xff)
}

fn namespace<'s>(subsystem: &'s Subsystem, command: &Command) -> Result<&'s Namespace, Status> {
    subsystem.namespace(command.namespace()).ok_or(Status::INVALID_NAMESPACE)
}

/// The bytes that a receive asks for, after checks of its fields.
pub fn length(command: &Command) -> Result<usize, Status> {
    let length = (u64::from(command.word(10)) + 1) * 4;
    let is_known = kind(command) == (IDENTIFICATION, PARAMETERS) && length <= IDENTIFY_BYTES as u64;
    if is_known { Ok(length as usize) } else { Err(Status::INVALID_FIELD) }
}

/// Fills `data`, which is all zeros, with the directives of a namespace.
pub fn receive(subsystem: &Subsystem, command: &Command, data: &mut [u8]) -> Result<(), Status> {
    placement::put_directives(namespace(subsystem, command)?, data);
    Ok(())
}

/// Enables a directive that is enabled; nothing can be disabled.
pub fn send(subsystem: &Subsystem, command: &Command) -> Result<(), Status> {
    let namespace = namespace(subsystem, command)?;
    let (directive, enables) = (command.word(12) >> 8 & 0xff, command.word(12) & 1 == 1);
    let is_there = directive == placement::DIRECTIVE && namespace.placement.is_some();
    match kind(command) {
        (IDENTIFICATION, PARAMETERS) if is_there && enables => Ok(()),
        _ => Err(Status::INVALID_FIELD),
    }
}
