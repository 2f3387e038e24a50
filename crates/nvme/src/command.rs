//! Commands and completions.

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::status::Status;

/// Bytes of a command.
pub const COMMAND_BYTES: usize = 64;

/// Opcodes of administration.
pub mod admin {
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const ASYNC_EVENT: u8 = 0x0c;
    pub const KEEP_ALIVE: u8 = 0x18;
    pub const DIRECTIVE_SEND: u8 = 0x19;
    pub const DIRECTIVE_RECEIVE: u8 = 0x1a;
}

/// Opcodes of input and output.
pub mod io {
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const COMPARE: u8 = 0x05;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET: u8 = 0x09;
    pub const VERIFY: u8 = 0x0c;
    pub const MANAGEMENT_RECEIVE: u8 = 0x12;
    pub const COPY: u8 = 0x19;
    pub const MANAGEMENT_SEND: u8 = 0x1d;
    pub const ZONE_SEND: u8 = 0x79;
    pub const ZONE_RECEIVE: u8 = 0x7a;
    pub const ZONE_APPEND: u8 = 0x7d;
}

/// The opcode of commands of the fabric, and their types.
pub mod fabric {
    pub const OPCODE: u8 = 0x7f;
    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
    pub const DISCONNECT: u8 = 0x08;
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(pub [u8; COMMAND_BYTES]);

/// The way of a command's data, with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// There is no data.
    None,
    /// To the host.
    ToHost(usize),
    /// From the host.
    FromHost(usize),
}

/// The place of a command's data, by its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the capsule.
    Capsule,
    /// In units of their own.
    Transport,
}

impl Command {
    /// The opcode.
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// The identifier.
    pub fn id(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// The type of a command of the fabric.
    pub fn fabric_type(&self) -> u8 {
        self.0[4]
    }

    /// The namespace.
    pub fn namespace(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// A double word of the command, 10 to 15.
    pub fn word(&self, number: usize) -> u32 {
        u32_at(&self.0, number * 4)
    }

    /// Double words 10 and 11 as one.
    pub fn long(&self) -> u64 {
        u64_at(&self.0, 40)
    }

    /// True if it is half of a fused operation, which nothing here offers.
    pub fn is_fused(&self) -> bool {
        self.0[1] & 3 != 0
    }

    /// The number of blocks of a read, a write and the like.
    pub fn blocks(&self) -> u64 {
        u64::from(self.word(12) & 0xffff) + 1
    }

    /// True if the data must be durable before the answer.
    pub fn is_durable(&self) -> bool {
        self.word(12) & 1 << 30 != 0
    }

    /// Bytes of the data by its descriptor.
    pub fn described(&self) -> usize {
        u32_at(&self.0, 32) as usize
    }

    /// Checks the descriptor against the data that the command has; `in_capsule` bytes came with it.
    pub fn place(&self, transfer: Transfer, in_capsule: usize) -> Result<Place, Status> {
        let (is_write, length) = match transfer {
            Transfer::None => return Ok(Place::Transport),
            Transfer::ToHost(length) => (false, length),
            Transfer::FromHost(length) => (true, length),
        };
        if self.0[1] >> 6 != 1 {
            return Err(Status::INVALID_FIELD);
        }
        let described = self.described();
        match self.0[39] {
            0x01 if is_write => {
                if u64_at(&self.0, 24) != 0 {
                    return Err(Status::SGL_OFFSET_INVALID);
                }
                if described != length || in_capsule < length {
                    return Err(Status::DATA_LENGTH_INVALID);
                }
                Ok(Place::Capsule)
            }
            0x5a if described == length => Ok(Place::Transport),
            0x5a => Err(Status::DATA_LENGTH_INVALID),
            _ => Err(Status::SGL_TYPE_INVALID),
        }
    }
}

/// Writes a completion.
pub fn put_completion(bytes: &mut [u8], result: u64, head: u16, id: u16, status: Status) {
    put_u64(bytes, 0, result);
    put_u16(bytes, 8, head);
    put_u16(bytes, 10, 0);
    put_u16(bytes, 12, id);
    put_u16(bytes, 14, status.field());
}

/// A failed command: its status, and a result with details where the specification has some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// The result.
    pub result: u32,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { status, result: 0 }
    }
}

/// An entry of the error log.
pub fn put_error(bytes: &mut [u8], number: u64, queue: u16, command: &Command, status: Status) {
    put_u64(bytes, 0, number);
    put_u16(bytes, 8, queue);
    put_u16(bytes, 10, command.id());
    put_u16(bytes, 12, status.field());
    put_u16(bytes, 14, 0xffff);
    put_u64(bytes, 16, command.long());
    put_u32(bytes, 24, command.namespace());
    bytes[29] = 3;
}
