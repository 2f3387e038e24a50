//! A controller: its registers, and what the queues of one host share.

use crate::bytes::array_at;
use crate::command::{Command, put_error};
use crate::events::Events;
use crate::status::Status;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Ends a connection, from any thread.
pub type Hangup = Arc<dyn Fn() + Send + Sync>;

/// Entries of a queue.
pub const MOST_ENTRIES: u16 = 128;
/// Queues of input and output that a host gets.
pub const MOST_QUEUES: u16 = 32;
/// Entries of the error log.
pub const MOST_ERRORS: usize = 64;
/// The version of the specification: 2.0.
pub const VERSION: u32 = 0x0002_0000;
/// Offsets of registers.
mod register {
    pub const CAPABILITIES: u32 = 0x00;
    pub const VERSION: u32 = 0x08;
    pub const CONFIGURATION: u32 = 0x14;
    pub const STATUS: u32 = 0x1c;
    pub const RESET: u32 = 0x20;
}
/// Capabilities: entries less one, contiguous queues, 15 s to be ready, the NVM command set and others.
const CAPABILITIES: u64 = (MOST_ENTRIES as u64 - 1) | 1 << 16 | 30 << 24 | 1 << 37 | 1 << 43;
const ENABLED: u32 = 1;
const READY: u32 = 1;
/// The status after a shutdown.
const SHUT_DOWN: u32 = 2 << 2;
const SHUTDOWN_ASKED: u32 = 3 << 14;

/// The place at which a host has connected, and that the discovery log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Portal {
    /// An address and a port.
    Tcp(IpAddr, u16),
    /// A socket on this machine.
    Local(String),
}

/// The kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has queues of input and output.
    Drives,
    /// It tells where the drives are.
    Discovery,
}

/// The consequence of a write to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing outside of the register.
    None,
    /// The controller was reset: its queues of input and output end.
    Reset,
    /// A shutdown was asked for: everything is to be made durable.
    Shutdown,
}

#[derive(Debug, Default)]
struct Registers {
    configuration: u32,
    status: u32,
}

/// Features that a host sets.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Arbitration, temperature threshold, error recovery, atomicity: kept, without an effect.
    pub kept: [u32; 16],
    /// The longest time between two signs of life; zero for no limit.
    pub keep_alive: Duration,
}

#[derive(Debug, Default)]
struct Errors {
    count: u64,
    newest_first: VecDeque<[u8; 64]>,
}

/// A controller.
pub struct Controller {
    /// The number.
    pub id: u16,
    /// The kind.
    pub kind: Kind,
    /// The name of the host.
    pub host: String,
    /// The identifier of the host.
    pub host_id: [u8; 16],
    /// The place at which it has connected.
    pub portal: Portal,
    registers: Mutex<Registers>,
    features: Mutex<Features>,
    events: Mutex<Events>,
    errors: Mutex<Errors>,
    /// The connections of its queues of input and output.
    queues: Mutex<BTreeMap<u16, Hangup>>,
    /// False if each write is to be durable before its answer.
    pub has_write_cache: AtomicBool,
    /// Held for reading by each command of input and output: a reset waits for them.
    is_ready: RwLock<bool>,
    heard_of: Mutex<Instant>,
}

/// Locks state that is valid whoever panicked.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller {
    /// A controller that is not enabled.
    pub fn new(
        id: u16,
        kind: Kind,
        host: String,
        host_id: [u8; 16],
        keep_alive: Duration,
        portal: Portal,
    ) -> Controller {
        Controller {
            id,
            kind,
            host,
            host_id,
            portal,
            registers: Mutex::default(),
            features: Mutex::new(Features { kept: [0; 16], keep_alive }),
            events: Mutex::default(),
            errors: Mutex::default(),
            queues: Mutex::default(),
            has_write_cache: AtomicBool::new(true),
            is_ready: RwLock::new(false),
            heard_of: Mutex::new(Instant::now()),
        }
    }

    /// The features.
    pub fn features(&self) -> MutexGuard<'_, Features> {
        lock(&self.features)
    }

    /// The asynchronous events.
    pub fn events(&self) -> MutexGuard<'_, Events> {
        lock(&self.events)
    }

    /// True if it is enabled.
    pub fn is_ready(&self) -> bool {
        *self.is_ready.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a command be executed, if the controller is enabled. A reset waits until the guard is dropped.
    pub fn enter(&self) -> Result<RwLockReadGuard<'_, bool>, Status> {
        let ready = self.is_ready.read().unwrap_or_else(PoisonError::into_inner);
        if *ready { Ok(ready) } else { Err(Status::COMMAND_SEQUENCE) }
    }

    fn set_ready(&self, is_ready: bool) {
        *self.is_ready.write().unwrap_or_else(PoisonError::into_inner) = is_ready;
    }

    /// Ends it: no command of its host is executed from now on, whatever has arrived.
    pub fn disable(&self) {
        self.set_ready(false);
        self.hang_up();
    }

    /// True if the host asked for all sets of commands, and so sees zoned namespaces.
    pub fn has_all_sets(&self) -> bool {
        lock(&self.registers).configuration >> 4 & 7 == 6
    }

    /// The value of a register.
    pub fn register(&self, offset: u32, is_long: bool) -> Result<u64, Status> {
        let registers = lock(&self.registers);
        match (offset, is_long) {
            (register::CAPABILITIES, true) => Ok(CAPABILITIES),
            (register::VERSION, false) => Ok(u64::from(VERSION)),
            (register::CONFIGURATION, false) => Ok(u64::from(registers.configuration)),
            (register::STATUS, false) => Ok(u64::from(registers.status)),
            (register::RESET, false) => Ok(0),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Sets a register: the configuration alone can be.
    pub fn set_register(&self, offset: u32, is_long: bool, value: u64) -> Result<Change, Status> {
        if (offset, is_long) != (register::CONFIGURATION, false) {
            return Err(Status::INVALID_FIELD);
        }
        let value = value as u32;
        let mut registers = lock(&self.registers);
        let (was_enabled, is_enabled) = (registers.configuration & ENABLED != 0, value & ENABLED != 0);
        if is_enabled && !was_enabled {
            // The sets: NVM, all, or none; pages of 4 KiB; entries of 64 and 16 bytes.
            let has_set = matches!(value >> 4 & 7, 0 | 6 | 7);
            let entries = (value >> 16 & 15, value >> 20 & 15);
            let has_entries = self.kind == Kind::Discovery || entries == (6, 4);
            if !has_set || value >> 7 & 15 != 0 || !has_entries {
                return Err(Status::INVALID_FIELD);
            }
        }
        let asks_shutdown = value & SHUTDOWN_ASKED != 0 && registers.configuration & SHUTDOWN_ASKED == 0;
        registers.configuration = value;
        if was_enabled && !is_enabled {
            registers.status = 0;
            drop(registers);
            self.set_ready(false);
            self.events().reset();
            self.hang_up();
            return Ok(Change::Reset);
        }
        if is_enabled && !was_enabled {
            registers.status = READY;
            self.set_ready(true);
        }
        if asks_shutdown {
            registers.status |= SHUT_DOWN;
            return Ok(Change::Shutdown);
        }
        Ok(Change::None)
    }

    /// Adds the connection of a queue; false if there is one of this number.
    pub fn add_queue(&self, queue: u16, hangup: Hangup) -> bool {
        let mut queues = lock(&self.queues);
        let is_new = !queues.contains_key(&queue);
        if is_new {
            queues.insert(queue, hangup);
        }
        is_new
    }

    /// Forgets the connection of a queue.
    pub fn remove_queue(&self, queue: u16) {
        lock(&self.queues).remove(&queue);
    }

    /// Ends the connections of all queues of input and output.
    pub fn hang_up(&self) {
        lock(&self.queues).values().for_each(|hangup| hangup());
    }

    /// Notes a failed command.
    pub fn note_error(&self, queue: u16, command: &Command, status: Status) {
        let mut errors = lock(&self.errors);
        errors.count += 1;
        let mut entry = [0; 64];
        put_error(&mut entry, errors.count, queue, command, status);
        errors.newest_first.truncate(MOST_ERRORS - 1);
        errors.newest_first.push_front(entry);
    }

    /// The number of failed commands.
    pub fn error_count(&self) -> u64 {
        lock(&self.errors).count
    }

    /// Writes the error log, the newest entry first.
    pub fn put_errors(&self, log: &mut [u8]) {
        let errors = lock(&self.errors);
        for (entry, place) in errors.newest_first.iter().zip(log.chunks_exact_mut(64)) {
            place.copy_from_slice(&array_at::<64>(entry, 0));
        }
    }

    /// Notes a sign of life of the host.
    pub fn hear(&self) {
        *lock(&self.heard_of) = Instant::now();
    }

    /// True if the host has been silent for longer than it said it would be.
    pub fn is_forsaken(&self) -> bool {
        let limit = self.features().keep_alive;
        !limit.is_zero() && lock(&self.heard_of).elapsed() > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Controller {
        let portal = Portal::Local("s".into());
        Controller::new(1, Kind::Drives, "host".into(), [0; 16], Duration::ZERO, portal)
    }

    #[test]
    fn registers_enable_reset_and_shut_down() {
        let controller = controller();
        let set = |value| controller.set_register(0x14, false, value);
        assert_eq!(set(0x46_0011), Err(Status::INVALID_FIELD), "set 1 of commands is reserved");
        assert_eq!(set(0x44_0001), Err(Status::INVALID_FIELD), "entries of 16 bytes");
        assert_eq!(set(0x46_0081), Err(Status::INVALID_FIELD), "pages of 8 KiB");
        assert_eq!(set(0x46_0061), Ok(Change::None));
        assert!(controller.is_ready() && controller.has_all_sets());
        assert_eq!(controller.register(0x1c, false), Ok(1));
        assert_eq!(set(0x46_4061), Ok(Change::Shutdown));
        assert_eq!(controller.register(0x1c, false), Ok(9));
        assert_eq!(set(0x46_0060), Ok(Change::Reset));
        assert_eq!((controller.register(0x1c, false), controller.is_ready()), (Ok(0), false));
        for (offset, is_long) in [(0, false), (0x1c, true), (4, false), (0x28, true)] {
            assert_eq!(controller.register(offset, is_long), Err(Status::INVALID_FIELD));
            assert_eq!(controller.set_register(offset, is_long, 0), Err(Status::INVALID_FIELD));
        }
    }

    #[test]
    fn the_error_log_has_the_newest_first_and_forgets_the_oldest() {
        let controller = controller();
        (0..70).for_each(|_| controller.note_error(1, &Command([0; 64]), Status::INVALID_FIELD));
        let mut log = [0; 64 * MOST_ERRORS];
        controller.put_errors(&mut log);
        assert_eq!((log[0], log[63 * 64], controller.error_count()), (70, 7, 70));
    }
}
