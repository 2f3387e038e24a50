//! Commands of administration.

use crate::command::{Command, Transfer, admin};
use crate::controller::{Controller, Kind};
use crate::directives;
use crate::features;
use crate::identify::{IDENTIFY_BYTES, identify};
use crate::logs;
use crate::status::Status;
use crate::subsystem::Subsystem;

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is completed with this result.
    Now(u32),
    /// It waits for an event.
    Parked,
}

/// The data of a command, after checks of its fields.
pub fn plan(controller: &Controller, command: &Command) -> Result<Transfer, Status> {
    match command.opcode() {
        admin::IDENTIFY => Ok(Transfer::ToHost(IDENTIFY_BYTES)),
        admin::GET_LOG_PAGE => logs::length(controller, command).map(Transfer::ToHost),
        admin::GET_FEATURES => match features::length(command) {
            0 => Ok(Transfer::None),
            length => Ok(Transfer::ToHost(length)),
        },
        admin::SET_FEATURES | admin::ASYNC_EVENT | admin::KEEP_ALIVE => Ok(Transfer::None),
        admin::DIRECTIVE_SEND if controller.kind == Kind::Drives => Ok(Transfer::None),
        admin::DIRECTIVE_RECEIVE if controller.kind == Kind::Drives => {
            directives::length(command).map(Transfer::ToHost)
        }
        admin::ABORT if controller.kind == Kind::Drives => Ok(Transfer::None),
        _ => Err(Status::INVALID_OPCODE),
    }
}

/// Executes a planned command. `aborted` hears of a parked command that an abort has ended.
pub fn execute(
    subsystem: &Subsystem,
    controller: &Controller,
    command: &Command,
    output: &mut [u8],
    aborted: &mut Option<u16>,
) -> Result<Answer, Status> {
    let done = |()| Answer::Now(0);
    match command.opcode() {
        admin::IDENTIFY => identify(subsystem, controller, command, output).map(done),
        admin::GET_LOG_PAGE => logs::log_page(subsystem, controller, command, output).map(done),
        admin::GET_FEATURES => features::get(subsystem, controller, command, output).map(Answer::Now),
        admin::SET_FEATURES => {
            let result = features::set(subsystem, controller, command)?;
            if features::disables_cache(command) {
                flush(subsystem)?;
            }
            Ok(Answer::Now(result))
        }
        admin::DIRECTIVE_SEND => directives::send(subsystem, command).map(done),
        admin::DIRECTIVE_RECEIVE => directives::receive(subsystem, command, output).map(done),
        admin::ASYNC_EVENT if controller.events().park(command.id()) => Ok(Answer::Parked),
        admin::ASYNC_EVENT => Err(Status::EVENT_LIMIT),
        admin::KEEP_ALIVE => Ok(Answer::Now(0)),
        admin::ABORT => {
            let (queue, id) = (command.word(10) as u16, (command.word(10) >> 16) as u16);
            // All other commands are executed when they come.
            if queue == 0 && controller.events().abort(id) {
                *aborted = Some(id);
                return Ok(Answer::Now(0));
            }
            Ok(Answer::Now(1))
        }
        _ => Err(Status::INVALID_OPCODE),
    }
}

/// Makes everything durable in all namespaces.
pub fn flush(subsystem: &Subsystem) -> Result<(), Status> {
    let flush = |drive: &crate::namespace::Drive| drive.flush().map(drop);
    let all = subsystem.namespaces().iter().try_for_each(|namespace| flush(&namespace.drive));
    all.map_err(|error| Status::of(&error, true))
}
