//! Namespaces: devices of blocks and of zones, as clients of the subsystem number them.

use crate::identifiers::Shape;
use flashpath::device::{Account, ZoneKind, ZoneState};
use flashpath::random::Random;
use flashpath::run::shared::{Counts, EventCount, ServeError, SharedDevice, SharedZones, Sharing};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use std::sync::Arc;

/// A shared device.
#[derive(Clone)]
pub enum Drive {
    /// Of blocks: an NVM namespace.
    Blocks(Arc<SharedDevice>),
    /// Of zones: a zoned namespace.
    Zones(Arc<SharedZones>),
}

/// Forwards a call to the device of either kind.
macro_rules! of_either {
    ($drive:expr, $device:ident => $call:expr) => {
        match $drive {
            Drive::Blocks($device) => $call,
            Drive::Zones($device) => $call,
        }
    };
}

impl Drive {
    /// Bytes of the device.
    pub fn size_bytes(&self) -> u64 {
        of_either!(self, device => device.size_bytes())
    }

    /// The options with which it is shared.
    pub fn sharing(&self) -> Sharing {
        of_either!(self, device => device.sharing())
    }

    /// The time since it was opened.
    pub fn now(&self) -> Time {
        of_either!(self, device => device.now())
    }

    /// Makes everything durable that was answered.
    pub fn flush(&self) -> Result<Time, ServeError> {
        of_either!(self, device => device.flush())
    }

    /// Ends in good order.
    pub fn close(&self) -> Result<Time, ServeError> {
        of_either!(self, device => device.close())
    }

    /// The accounts of the stations since it was opened.
    pub fn account(&self) -> Result<Account, ServeError> {
        of_either!(self, device => device.account())
    }

    /// The counts of the clients' requests.
    pub fn counts(&self) -> Result<Counts, ServeError> {
        of_either!(self, device => device.counts())
    }

    /// Events that may have messages.
    pub fn news(&self) -> Arc<EventCount> {
        of_either!(self, device => device.news())
    }
}

/// The reason why a device cannot be a namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// It has conventional zones.
    #[error(
        "its first {0} zones are conventional, and NVMe has sequential zones only: make it without them (conventional=0)"
    )]
    Conventional(u32),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] ServeError),
}

/// The kind of commands of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSet {
    /// Blocks.
    Nvm,
    /// Zones.
    Zoned,
}

impl CommandSet {
    /// The number of the set.
    pub fn number(self) -> u8 {
        match self {
            CommandSet::Nvm => 0,
            CommandSet::Zoned => 2,
        }
    }

    /// The set of this number.
    pub fn of(number: u8) -> Option<CommandSet> {
        [CommandSet::Nvm, CommandSet::Zoned].into_iter().find(|set| set.number() == number)
    }
}

/// A namespace.
pub struct Namespace {
    /// The device.
    pub drive: Drive,
    /// The number, from 1.
    pub number: u32,
    /// An identifier that stays the same while the subsystem's name and the number do.
    pub identifier: [u8; 16],
    /// The placement by identifiers, if the device has it.
    pub placement: Option<Shape>,
}

impl Namespace {
    /// The namespace of this number in the subsystem of this name.
    ///
    /// # Errors
    ///
    /// The device has conventional zones, or cannot report its zones.
    pub fn new(drive: Drive, number: u32, subsystem: &str) -> Result<Namespace, NamespaceError> {
        if let Drive::Zones(zones) = &drive {
            let mut conventional = 0;
            zones.report(0, |_, zone| {
                conventional += u32::from(zone.kind == ZoneKind::Conventional);
                zone.kind == ZoneKind::Conventional
            })?;
            if conventional > 0 {
                return Err(NamespaceError::Conventional(conventional));
            }
        }
        let placement = match &drive {
            Drive::Blocks(device) => device.placement()?.as_ref().map(Shape::of),
            Drive::Zones(_) => None,
        };
        let identifier = identifier(&format!("namespace {number} of {subsystem}"));
        Ok(Namespace { drive, number, identifier, placement })
    }

    /// The kind of its commands.
    pub fn set(&self) -> CommandSet {
        match self.drive {
            Drive::Blocks(_) => CommandSet::Nvm,
            Drive::Zones(_) => CommandSet::Zoned,
        }
    }

    /// True for a namespace of zones.
    pub fn is_zoned(&self) -> bool {
        self.set() == CommandSet::Zoned
    }

    /// Blocks of 4 KiB.
    pub fn blocks(&self) -> u64 {
        self.drive.size_bytes() / BLOCK_BYTES
    }

    /// True if nothing may be written.
    pub fn is_read_only(&self) -> bool {
        self.drive.sharing().read_only
    }
}

/// A random UUID (version 4) that is the same for the same text.
pub fn identifier(text: &str) -> [u8; 16] {
    let mut random = Random::new(0, text);
    let mut bytes = (u128::from(random.bits()) << 64 | u128::from(random.bits())).to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// A UUID as text.
pub fn uuid_text(bytes: &[u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// The number of a zone's state.
pub fn state_number(state: ZoneState) -> u8 {
    match state {
        ZoneState::Empty => 0x1,
        ZoneState::ImplicitlyOpen => 0x2,
        ZoneState::ExplicitlyOpen => 0x3,
        ZoneState::Closed => 0x4,
        ZoneState::ReadOnly => 0xd,
        ZoneState::Full => 0xe,
        ZoneState::Offline => 0xf,
    }
}
