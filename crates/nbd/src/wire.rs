//! The numbers of the NBD protocol, and its headers (github.com/NetworkBlockDevice/nbd, doc/proto.md). All are big-endian.

/// First in the greeting, before [`HAVE_OPTIONS`] and the server's handshake flags (16 bits).
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Before each option of a client, and in the greeting.
pub const HAVE_OPTIONS: u64 = 0x4948_4156_454f_5054;
/// Before each reply to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Before each request.
pub const REQUEST: u32 = 0x2560_9513;
/// Before each simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// Before each chunk of a structured reply.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Handshake flags: options with replies; no zeros after the answer to `EXPORT_NAME`.
pub mod handshake_flag {
    pub const FIXED_NEWSTYLE: u32 = 1;
    pub const NO_ZEROES: u32 = 2;
}

/// Options.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod option_reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const UNSUPPORTED: u32 = 0x8000_0001;
    pub const POLICY: u32 = 0x8000_0002;
    pub const INVALID: u32 = 0x8000_0003;
    pub const UNKNOWN: u32 = 0x8000_0006;
    pub const TOO_BIG: u32 = 0x8000_0009;
}

/// Types of information about an export.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub mod export_flag {
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod command_flag {
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types of the chunks of structured replies.
pub mod chunk {
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 0x8001;
}

/// The flag of the last chunk of a structured reply.
pub const CHUNK_DONE: u16 = 1;

/// States of `base:allocation`.
pub mod allocation {
    pub const HOLE: u32 = 1;
    pub const ZERO: u32 = 2;
}

/// Errors of commands.
pub mod error {
    pub const PERMISSION: u32 = 1;
    pub const IO: u32 = 5;
    pub const INVALID: u32 = 22;
    pub const NO_SPACE: u32 = 28;
    pub const OVERFLOW: u32 = 75;
    pub const NOT_SUPPORTED: u32 = 95;
}

/// The longest text that the protocol allows, in bytes.
pub const LONGEST_TEXT: usize = 4096;

/// The header of a request:
///
/// ```text
///  0      4      6      8                16               24     28
///  | magic | flags | type | cookie          | offset         | length |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Flags of the command.
    pub flags: u16,
    /// The command.
    pub command: u16,
    /// Repeated in the reply.
    pub cookie: u64,
    /// The first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u32,
}

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply's header: magic, error, cookie.
pub const SIMPLE_BYTES: usize = 16;
/// Bytes of a chunk's header: magic, flags, type, cookie, length.
pub const CHUNK_BYTES: usize = 20;

impl RequestHeader {
    /// Parses a header; `None` if the magic is wrong.
    pub fn read(bytes: &[u8; REQUEST_BYTES]) -> Option<RequestHeader> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST {
            return None;
        }
        Some(RequestHeader {
            flags: fields.u16()?,
            command: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        })
    }
}

/// The header of a simple reply.
pub fn simple_reply(error: u32, cookie: u64) -> [u8; SIMPLE_BYTES] {
    let mut header = [0; SIMPLE_BYTES];
    header[0..4].copy_from_slice(&SIMPLE_REPLY.to_be_bytes());
    header[4..8].copy_from_slice(&error.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header
}

/// The header of a chunk of `length` bytes.
pub fn chunk_header(flags: u16, kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_BYTES] {
    let mut header = [0; CHUNK_BYTES];
    header[0..4].copy_from_slice(&STRUCTURED_REPLY.to_be_bytes());
    header[4..6].copy_from_slice(&flags.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..20].copy_from_slice(&length.to_be_bytes());
    header
}

/// Fields read one after the other; `None` where bytes are missing.
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Fields<'b> {
    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// A field of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A field of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A field of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text after its length in 32 bits.
    pub fn text(&mut self) -> Option<&'b [u8]> {
        let length = self.u32()? as usize;
        if length > LONGEST_TEXT {
            return None;
        }
        self.bytes(length)
    }
}
