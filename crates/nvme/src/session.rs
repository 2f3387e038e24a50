//! The commands of one queue, whatever carries them: each is planned, which tells its data, and then executed.

use crate::admin::{self, Answer};
use crate::blocks;
use crate::bytes::{array_at, text_at, u16_at};
use crate::command::{Command, Failure, Transfer, fabric, io};
use crate::controller::{Change, Controller, Hangup, Kind, MOST_ENTRIES, MOST_QUEUES, Portal};
use crate::copy;
use crate::events::Completed;
use crate::identify::ALL_NAMESPACES;
use crate::namespace::{CommandSet, Namespace};
use crate::placement;
use crate::status::Status;
use crate::subsystem::{DISCOVERY_NAME, Subsystem};
use crate::zones;
use flashpath::time::Time;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of the data of a connect.
const CONNECT_BYTES: usize = 1024;
/// The number that asks for a new controller.
const ANY_CONTROLLER: u16 = 0xffff;

/// The queue.
enum Queue {
    /// Not connected yet.
    New,
    /// Administration of a controller, which lives as long.
    Admin(Arc<Controller>),
    /// Input and output.
    Io(Arc<Controller>, u16),
}

/// An executed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// It is completed at this time, with this result.
    Done(Time, u64),
    /// It is not completed yet.
    Parked,
    /// It is completed, and the connection ends after that.
    Last,
}

/// The commands of one queue.
pub struct Session<'s> {
    subsystem: &'s Arc<Subsystem>,
    portal: Portal,
    hangup: Hangup,
    queue: Queue,
    /// Reserves a place for a host that connects; false if there is none.
    admit: &'s mut dyn FnMut() -> bool,
    scratch: Vec<u8>,
    /// A parked command that was aborted.
    aborted: Option<u16>,
    /// Entries of the queue.
    entries: u16,
    head: u16,
    has_flow_control: bool,
}

impl<'s> Session<'s> {
    /// A connection without a queue, at this place. `hangup` ends it from any thread.
    pub fn new(
        subsystem: &'s Arc<Subsystem>,
        portal: Portal,
        hangup: Hangup,
        admit: &'s mut dyn FnMut() -> bool,
    ) -> Session<'s> {
        let (scratch, aborted, entries, head) = (Vec::new(), None, MOST_ENTRIES, 0);
        Session {
            subsystem,
            portal,
            hangup,
            queue: Queue::New,
            admit,
            scratch,
            aborted,
            entries,
            head,
            has_flow_control: true,
        }
    }

    /// Entries of the queue: as many commands may be under way.
    pub fn entries(&self) -> u16 {
        self.entries
    }

    /// The position of the queue after one more command; all ones if the host did without.
    pub fn next_head(&mut self) -> u16 {
        if !self.has_flow_control {
            return u16::MAX;
        }
        self.head = (self.head + 1) % self.entries;
        self.head
    }

    /// The position of the queue.
    pub fn head(&self) -> u16 {
        if self.has_flow_control { self.head } else { u16::MAX }
    }

    /// The time of the devices.
    pub fn now(&self) -> Time {
        self.subsystem.now()
    }

    /// The data of a command, after checks of its fields.
    pub fn plan(&mut self, command: &Command) -> Result<Transfer, Status> {
        if let Queue::Admin(controller) = &self.queue {
            controller.hear();
        }
        if command.is_fused() {
            return Err(Status::INVALID_FIELD);
        }
        if command.opcode() == fabric::OPCODE {
            return match (command.fabric_type(), &self.queue) {
                (fabric::CONNECT, Queue::New) => Ok(Transfer::FromHost(CONNECT_BYTES)),
                (fabric::PROPERTY_SET | fabric::PROPERTY_GET, Queue::Admin(_)) => Ok(Transfer::None),
                (fabric::DISCONNECT, Queue::Io(..)) => Ok(Transfer::None),
                (fabric::CONNECT, _) | (_, Queue::New) => Err(Status::COMMAND_SEQUENCE),
                _ => Err(Status::INVALID_OPCODE),
            };
        }
        match &self.queue {
            Queue::New => Err(Status::COMMAND_SEQUENCE),
            Queue::Admin(controller) | Queue::Io(controller, _) if !controller.is_ready() => {
                Err(Status::COMMAND_SEQUENCE)
            }
            Queue::Admin(controller) => admin::plan(controller, command),
            Queue::Io(..) if is_flush_of_all(command) => Ok(Transfer::None),
            Queue::Io(controller, _) => {
                let namespace = namespace(self.subsystem, controller, command)?;
                if command.opcode() == io::FLUSH {
                    return Ok(Transfer::None);
                }
                if command.opcode() == io::COPY {
                    return copy::length(namespace, command).map(Transfer::FromHost);
                }
                let planned = match blocks::plan(namespace, command)? {
                    Some(planned) => Some(planned),
                    None => zones::plan(namespace, command)?,
                };
                let planned = match planned {
                    Some(planned) => Some(planned),
                    None => placement::plan(namespace, command)?,
                };
                planned.ok_or(Status::INVALID_OPCODE)
            }
        }
    }

    /// Executes a planned command: `input` is its data from the host, `output` is filled with the data to it.
    pub fn execute(&mut self, command: &Command, input: &[u8], output: &mut [u8]) -> Result<Executed, Failure> {
        if command.opcode() == fabric::OPCODE {
            return self.execute_fabric(command, input);
        }
        match &self.queue {
            Queue::New => Err(Status::COMMAND_SEQUENCE.into()),
            Queue::Admin(controller) => {
                output.fill(0);
                match admin::execute(self.subsystem, controller, command, output, &mut self.aborted)? {
                    Answer::Now(result) => Ok(Executed::Done(self.now(), u64::from(result))),
                    Answer::Parked => Ok(Executed::Parked),
                }
            }
            Queue::Io(controller, _) => {
                let controller = Arc::clone(controller);
                let (at, result) = self.execute_io(&controller, command, input, output)?;
                Ok(Executed::Done(at, result))
            }
        }
    }

    fn execute_io(
        &mut self,
        controller: &Controller,
        command: &Command,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(Time, u64), Status> {
        let _entered = controller.enter()?;
        if is_flush_of_all(command) {
            admin::flush(self.subsystem)?;
            return Ok((self.now(), 0));
        }
        let namespace = namespace(self.subsystem, controller, command)?;
        let durable = command.is_durable() || !controller.has_write_cache.load(Ordering::Relaxed);
        match command.opcode() {
            io::FLUSH => {
                let flushed = namespace.drive.flush().map_err(|error| Status::of(&error, true))?;
                Ok((flushed, 0))
            }
            io::COPY => Ok((copy::copy(namespace, command, durable, input, &mut self.scratch)?, 0)),
            io::MANAGEMENT_SEND | io::MANAGEMENT_RECEIVE => {
                Ok((placement::execute(namespace, command, input, output)?, 0))
            }
            io::ZONE_APPEND | io::ZONE_SEND | io::ZONE_RECEIVE => {
                let changed = |first| self.subsystem.zone_changed(namespace.number, first);
                let done = zones::execute(namespace, command, durable, input, output, &changed)?;
                Ok((done.at, done.place))
            }
            _ => {
                let done = blocks::execute(namespace, command, durable, input, output, &mut self.scratch)?;
                Ok((done, 0))
            }
        }
    }

    fn execute_fabric(&mut self, command: &Command, input: &[u8]) -> Result<Executed, Failure> {
        let (attribute, offset) = (command.0[40] & 7, command.word(11));
        let is_long = attribute == 1;
        match (command.fabric_type(), &self.queue) {
            (fabric::CONNECT, Queue::New) => {
                let controller = self.connect(command, input)?;
                Ok(Executed::Done(self.now(), u64::from(controller)))
            }
            (fabric::DISCONNECT, Queue::Io(..)) => Ok(Executed::Last),
            (fabric::PROPERTY_GET, Queue::Admin(controller)) if attribute <= 1 => {
                Ok(Executed::Done(self.now(), controller.register(offset, is_long)?))
            }
            (fabric::PROPERTY_SET, Queue::Admin(controller)) if attribute <= 1 => {
                let value = u64::from(command.word(12)) | u64::from(command.word(13)) << 32;
                if controller.set_register(offset, is_long, value)? == Change::Shutdown {
                    admin::flush(self.subsystem)?;
                }
                Ok(Executed::Done(self.now(), 0))
            }
            _ => Err(Status::INVALID_FIELD.into()),
        }
    }

    /// Connects the queue; returns the number of the controller.
    fn connect(&mut self, command: &Command, data: &[u8]) -> Result<u16, Failure> {
        // The offset of the field at fault, in the command (false) or in the data.
        let invalid = |in_data: bool, offset: u32| Failure {
            status: Status::INVALID_PARAMETERS,
            result: offset | u32::from(in_data) << 16,
        };
        let (format, queue, last_entry) = (u16_at(&command.0, 40), u16_at(&command.0, 42), u16_at(&command.0, 44));
        if format != 0 {
            return Err(Status::INCOMPATIBLE_FORMAT.into());
        }
        if last_entry == 0 || last_entry >= MOST_ENTRIES {
            return Err(invalid(false, 44));
        }
        if queue > MOST_QUEUES {
            return Err(invalid(false, 42));
        }
        let host = text_at(data, 512, 256).filter(|host| !host.is_empty()).ok_or(invalid(true, 512))?;
        let kind = match text_at(data, 256, 256) {
            Some(name) if name == self.subsystem.name() => Kind::Drives,
            Some(DISCOVERY_NAME) if queue == 0 => Kind::Discovery,
            _ => return Err(invalid(true, 256)),
        };
        let host_id = array_at::<16>(data, 0);
        let wanted = u16_at(data, 16);
        let controller = if queue == 0 {
            if wanted != ANY_CONTROLLER {
                return Err(invalid(true, 16));
            }
            if !(self.admit)() {
                return Err(Status::CONTROLLER_BUSY.into());
            }
            let keep_alive = Duration::from_secs(u64::from(command.word(12)).div_ceil(1000));
            let added = self.subsystem.add_controller(kind, host, host_id, keep_alive, &self.portal);
            let controller = added.ok_or(Status::CONTROLLER_BUSY)?;
            // A reset or the end of the administration ends the other queues: its own connection ends by itself.
            self.queue = Queue::Admin(Arc::clone(&controller));
            controller
        } else {
            let known = self.subsystem.controller(wanted).filter(|known| known.kind == Kind::Drives);
            let controller = known.ok_or(invalid(true, 16))?;
            if controller.host != host || controller.host_id != host_id {
                return Err(invalid(true, 512));
            }
            if !controller.is_ready() {
                return Err(Status::COMMAND_SEQUENCE.into());
            }
            if !(self.admit)() {
                return Err(Status::CONTROLLER_BUSY.into());
            }
            if !controller.add_queue(queue, Arc::clone(&self.hangup)) {
                return Err(invalid(false, 42));
            }
            self.queue = Queue::Io(Arc::clone(&controller), queue);
            // The controller may have been removed or reset meanwhile.
            if self.subsystem.controller(wanted).is_none() || !controller.is_ready() {
                return Err(invalid(true, 16));
            }
            controller
        };
        self.entries = last_entry + 1;
        self.has_flow_control = command.0[46] & 1 << 2 == 0;
        Ok(controller.id)
    }

    /// Notes a failed command in the log of errors.
    pub fn note_error(&self, command: &Command, status: Status) {
        match &self.queue {
            Queue::New => {}
            Queue::Admin(controller) => controller.note_error(0, command, status),
            Queue::Io(controller, queue) => controller.note_error(*queue, command, status),
        }
    }

    /// A parked command that was aborted since the last call.
    pub fn take_aborted(&mut self) -> Option<u16> {
        self.aborted.take()
    }

    /// The next parked command that an event completes.
    pub fn next_event(&self) -> Option<Completed> {
        match &self.queue {
            Queue::Admin(controller) => controller.events().next(),
            Queue::New | Queue::Io(..) => None,
        }
    }

    /// True if the host has been silent for longer than it said it would be.
    pub fn is_forsaken(&self) -> bool {
        matches!(&self.queue, Queue::Admin(controller) if controller.is_forsaken())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        match &self.queue {
            Queue::New => {}
            Queue::Admin(controller) => self.subsystem.remove_controller(controller.id),
            Queue::Io(controller, queue) => controller.remove_queue(*queue),
        }
    }
}

fn is_flush_of_all(command: &Command) -> bool {
    command.opcode() == io::FLUSH && command.namespace() == ALL_NAMESPACES
}

/// The namespace of a command, if the host sees it.
fn namespace<'s>(
    subsystem: &'s Subsystem,
    controller: &Controller,
    command: &Command,
) -> Result<&'s Namespace, Status> {
    let namespace = subsystem.namespace(command.namespace()).ok_or(Status::INVALID_NAMESPACE)?;
    if namespace.set() == CommandSet::Zoned && !controller.has_all_sets() {
        return Err(Status::INVALID_NAMESPACE);
    }
    Ok(namespace)
}
