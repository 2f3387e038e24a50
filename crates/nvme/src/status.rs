//! Status codes of completed commands (NVM Express Base Specification 2.0, Zoned Namespace Command Set Specification 1.1).

use flashpath::device::{DeviceError, ZoneError};
use flashpath::run::shared::{Fault, ServeError};

/// A status: the code in bits 7:0, its type in bits 10:8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const INVALID_OPCODE: Status = Status(0x001);
    pub const INVALID_FIELD: Status = Status(0x002);
    pub const INTERNAL_ERROR: Status = Status(0x006);
    pub const ABORT_REQUESTED: Status = Status(0x007);
    pub const INVALID_NAMESPACE: Status = Status(0x00b);
    pub const COMMAND_SEQUENCE: Status = Status(0x00c);
    pub const DATA_LENGTH_INVALID: Status = Status(0x00f);
    pub const SGL_TYPE_INVALID: Status = Status(0x011);
    pub const SGL_OFFSET_INVALID: Status = Status(0x016);
    pub const WRITE_PROTECTED: Status = Status(0x020);
    pub const TRANSPORT_ERROR: Status = Status(0x022);
    pub const FDP_DISABLED: Status = Status(0x029);
    pub const OUT_OF_RANGE: Status = Status(0x080);
    pub const CAPACITY_EXCEEDED: Status = Status(0x081);
    pub const EVENT_LIMIT: Status = Status(0x105);
    pub const INVALID_LOG_PAGE: Status = Status(0x109);
    pub const NOT_CHANGEABLE: Status = Status(0x10e);
    pub const NOT_PER_NAMESPACE: Status = Status(0x10f);
    pub const INVALID_COMMAND_SET: Status = Status(0x12c);
    pub const INCOMPATIBLE_FORMAT: Status = Status(0x180);
    pub const CONTROLLER_BUSY: Status = Status(0x181);
    pub const INVALID_PARAMETERS: Status = Status(0x182);
    pub const SIZE_LIMIT: Status = Status(0x183);
    pub const INVALID_ZONE_OPERATION: Status = Status(0x1b6);
    pub const NO_ZRWA: Status = Status(0x1b7);
    pub const ZONE_BOUNDARY: Status = Status(0x1b8);
    pub const ZONE_FULL: Status = Status(0x1b9);
    pub const ZONE_READ_ONLY: Status = Status(0x1ba);
    pub const ZONE_OFFLINE: Status = Status(0x1bb);
    pub const ZONE_INVALID_WRITE: Status = Status(0x1bc);
    pub const TOO_MANY_ACTIVE: Status = Status(0x1bd);
    pub const TOO_MANY_OPEN: Status = Status(0x1be);
    pub const INVALID_TRANSITION: Status = Status(0x1bf);
    pub const WRITE_FAULT: Status = Status(0x280);
    pub const READ_ERROR: Status = Status(0x281);
    pub const COMPARE_FAILURE: Status = Status(0x285);

    /// The field of a completion: repeating the command does not help, except where a transport or a limit of the moment was
    /// at fault.
    pub fn field(self) -> u16 {
        let may_retry = matches!(self, Self::SUCCESS | Self::TRANSPORT_ERROR | Self::CONTROLLER_BUSY);
        let limits =
            matches!(self, Self::TOO_MANY_ACTIVE | Self::TOO_MANY_OPEN | Self::NO_ZRWA | Self::ABORT_REQUESTED);
        let final_bit = if may_retry || limits { 0 } else { 1 << 14 };
        (self.0 | final_bit) << 1
    }

    /// The status for an error of a device.
    pub fn of(error: &ServeError, is_write: bool) -> Status {
        if let ServeError::Device(DeviceError::Zone(error)) = error {
            return match error {
                ZoneError::BoundaryError { .. } => Self::ZONE_BOUNDARY,
                ZoneError::IsFull { .. } => Self::ZONE_FULL,
                ZoneError::IsReadOnly { .. } => Self::ZONE_READ_ONLY,
                ZoneError::IsOffline { .. } => Self::ZONE_OFFLINE,
                ZoneError::InvalidWrite { .. } => Self::ZONE_INVALID_WRITE,
                ZoneError::TooManyActive { .. } => Self::TOO_MANY_ACTIVE,
                ZoneError::TooManyOpen { .. } => Self::TOO_MANY_OPEN,
                ZoneError::InvalidOperation { .. } => Self::INVALID_ZONE_OPERATION,
                ZoneError::NoAreaLeft { .. } => Self::NO_ZRWA,
                ZoneError::InvalidTransition { .. } => Self::INVALID_TRANSITION,
            };
        }
        match error.fault() {
            Fault::BeyondEnd => Self::OUT_OF_RANGE,
            Fault::ReadOnly => Self::WRITE_PROTECTED,
            Fault::NoSpace => Self::CAPACITY_EXCEEDED,
            Fault::Invalid => Self::INVALID_FIELD,
            Fault::Unreadable => Self::READ_ERROR,
            Fault::Failed if matches!(error, ServeError::Broken) => Self::INTERNAL_ERROR,
            Fault::Failed if is_write => Self::WRITE_FAULT,
            Fault::Failed => Self::READ_ERROR,
        }
    }
}
