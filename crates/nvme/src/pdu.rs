//! The protocol data units of the NVMe/TCP transport (NVM Express TCP Transport Specification 1.0), and how each field of a
//! host's is checked. All fields are little-endian.
//!
//! ```text
//!  0      1       2     3     4      8       HLEN        PDO
//!  | type | flags | HLEN | PDO | PLEN | fields | digest | padding | data | digest |
//! ```

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};

/// Types of units.
pub mod kind {
    pub const IC_REQ: u8 = 0x00;
    pub const IC_RESP: u8 = 0x01;
    pub const H2C_TERM_REQ: u8 = 0x02;
    pub const C2H_TERM_REQ: u8 = 0x03;
    pub const CAPSULE_CMD: u8 = 0x04;
    pub const CAPSULE_RESP: u8 = 0x05;
    pub const H2C_DATA: u8 = 0x06;
    pub const C2H_DATA: u8 = 0x07;
    pub const R2T: u8 = 0x09;
}

/// Flags of the common header.
pub mod flag {
    pub const HEADER_DIGEST: u8 = 1;
    pub const DATA_DIGEST: u8 = 1 << 1;
    pub const LAST: u8 = 1 << 2;
}

/// Fatal error statuses of a termination request.
pub mod fatal {
    pub const INVALID_FIELD: u16 = 1;
    pub const SEQUENCE: u16 = 2;
    pub const HEADER_DIGEST: u16 = 3;
    pub const OUT_OF_RANGE: u16 = 4;
    pub const UNSUPPORTED: u16 = 6;
}

/// Bytes of the common header.
pub const COMMON: usize = 8;
/// Bytes of a connection request, and of its response.
pub const IC_BYTES: usize = 128;
/// Bytes of the header of a capsule with a command.
pub const COMMAND_HEADER: usize = 72;
/// Bytes of all other headers.
pub const HEADER: usize = 24;
/// Bytes of a digest.
pub const DIGEST: usize = 4;
/// The greatest data offset: a byte of fours, and the alignment that a host may ask for.
pub const MOST_OFFSET: usize = 128;
/// The longest data within a capsule.
pub const IN_CAPSULE: usize = 8 << 10;
/// The longest data in a unit from the host.
pub const MOST_H2C_DATA: usize = 128 << 10;
/// The longest data of a termination request.
const MOST_TERM_DATA: usize = 128;

/// The digests that a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Headers have one.
    pub header: bool,
    /// Data has one.
    pub data: bool,
}

impl Digests {
    /// Bytes of a header's digest.
    pub fn header_bytes(self) -> usize {
        if self.header { DIGEST } else { 0 }
    }

    /// Bytes of the digest of data, if there is any.
    pub fn data_bytes(self, data: usize) -> usize {
        if self.data && data > 0 { DIGEST } else { 0 }
    }
}

/// A transport error that ends the connection: what the host is told before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// The fatal error status.
    pub status: u16,
    /// The offset of the field at fault, or the digest that was received.
    pub information: u32,
    /// The same in words.
    pub why: &'static str,
}

impl Fatal {
    /// The field at this offset of the header is invalid.
    pub fn field(offset: u32, why: &'static str) -> Fatal {
        Fatal { status: fatal::INVALID_FIELD, information: offset, why }
    }

    /// The unit may not come now.
    pub fn sequence(why: &'static str) -> Fatal {
        Fatal { status: fatal::SEQUENCE, information: 0, why }
    }
}

/// A common header whose lengths fit its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// The type.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// Bytes of the header, without its digest.
    pub header: usize,
    /// Offset of the data; 0 if there is none.
    pub data_offset: usize,
    /// Bytes of data, without their digest.
    pub data: usize,
    /// Bytes of the whole unit.
    pub length: usize,
}

impl Common {
    /// Parses and checks the first [`COMMON`] bytes of a unit from a host that has agreed on these digests.
    pub fn read(bytes: &[u8; COMMON], digests: Digests) -> Result<Common, Fatal> {
        let [kind, flags, header, data_offset, ..] = *bytes;
        let (header, data_offset) = (usize::from(header), usize::from(data_offset));
        let length = u32_at(bytes, 4) as usize;
        let expected = match kind {
            kind::IC_REQ => IC_BYTES,
            kind::CAPSULE_CMD => COMMAND_HEADER,
            kind::H2C_DATA | kind::H2C_TERM_REQ => HEADER,
            _ => return Err(Fatal::field(0, "no unit of a host has this type")),
        };
        if header != expected {
            return Err(Fatal::field(2, "this type has another header length"));
        }
        let has_digests = matches!(kind, kind::CAPSULE_CMD | kind::H2C_DATA);
        let agreed = if has_digests { digests } else { Digests::default() };
        if (flags & flag::HEADER_DIGEST != 0) != agreed.header {
            return Err(Fatal::field(1, "its header digest is not as agreed"));
        }
        if kind == kind::H2C_TERM_REQ {
            return match length.checked_sub(HEADER) {
                Some(data) if data <= MOST_TERM_DATA => {
                    Ok(Common { kind, flags, header, data_offset: HEADER, data, length })
                }
                _ => Err(Fatal::field(4, "a termination request has at most 152 bytes")),
            };
        }
        let bare = header + agreed.header_bytes();
        if length == bare && kind != kind::H2C_DATA {
            return Ok(Common { kind, flags, header, data_offset: 0, data: 0, length });
        }
        let most_data = match kind {
            kind::CAPSULE_CMD => IN_CAPSULE,
            kind::H2C_DATA => MOST_H2C_DATA,
            _ => return Err(Fatal::field(4, "this type has no data")),
        };
        if (flags & flag::DATA_DIGEST != 0) != agreed.data {
            return Err(Fatal::field(1, "its data digest is not as agreed"));
        }
        if data_offset < bare || data_offset > MOST_OFFSET || !data_offset.is_multiple_of(4) {
            return Err(Fatal::field(3, "the data cannot be there"));
        }
        let digest = if agreed.data { DIGEST } else { 0 };
        match length.checked_sub(data_offset + digest) {
            Some(data @ 1..) if data <= most_data => Ok(Common { kind, flags, header, data_offset, data, length }),
            _ => Err(Fatal::field(4, "the length leaves no data, or more than there may be")),
        }
    }
}

/// A connection request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRequest {
    /// The alignment of data to the host, in bytes.
    pub alignment: usize,
    /// The digests that it asks for.
    pub digests: Digests,
}

impl ConnectionRequest {
    /// Parses and checks a request.
    pub fn read(bytes: &[u8; IC_BYTES]) -> Result<ConnectionRequest, Fatal> {
        if u16_at(bytes, 8) != 0 {
            let why = "only version 0 of the format is known";
            return Err(Fatal { status: fatal::UNSUPPORTED, information: 8, why });
        }
        if bytes[10] > 31 {
            return Err(Fatal::field(10, "data is aligned to 128 bytes at the most"));
        }
        if bytes[11] & !3 != 0 {
            return Err(Fatal::field(11, "there are two digests"));
        }
        let digests = Digests { header: bytes[11] & 1 != 0, data: bytes[11] & 2 != 0 };
        Ok(ConnectionRequest { alignment: (usize::from(bytes[10]) + 1) * 4, digests })
    }

    /// The response to it: the digests are those that it asks for.
    pub fn response(self) -> [u8; IC_BYTES] {
        let mut bytes = [0; IC_BYTES];
        put_common(&mut bytes, kind::IC_RESP, 0, IC_BYTES, 0, IC_BYTES);
        bytes[11] = u8::from(self.digests.header) | u8::from(self.digests.data) << 1;
        put_u32(&mut bytes, 12, MOST_H2C_DATA as u32);
        bytes
    }
}

/// The fields of data from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostData {
    /// The command.
    pub command: u16,
    /// The transfer.
    pub tag: u16,
    /// The offset in the command's data.
    pub offset: usize,
    /// True if it is the last of the transfer.
    pub is_last: bool,
}

impl HostData {
    /// Parses and checks a header.
    pub fn read(common: &Common, bytes: &[u8; HEADER]) -> Result<HostData, Fatal> {
        if u32_at(bytes, 16) as usize != common.data {
            return Err(Fatal::field(16, "the length of the data is not that of the unit"));
        }
        Ok(HostData {
            command: u16_at(bytes, 8),
            tag: u16_at(bytes, 10),
            offset: u32_at(bytes, 12) as usize,
            is_last: common.flags & flag::LAST != 0,
        })
    }
}

/// Writes a common header.
pub fn put_common(bytes: &mut [u8], kind: u8, flags: u8, header: usize, data_offset: usize, length: usize) {
    bytes[..4].copy_from_slice(&[kind, flags, header as u8, data_offset as u8]);
    put_u32(bytes, 4, length as u32);
}

/// A request for `length` bytes of the data of a command, from `offset` on.
pub fn put_ready_to_transfer(bytes: &mut [u8], command: u16, tag: u16, offset: usize, length: usize) {
    put_u16(bytes, 8, command);
    put_u16(bytes, 10, tag);
    put_u32(bytes, 12, offset as u32);
    put_u32(bytes, 16, length as u32);
}

/// The whole unit that tells of a fatal error, with the header at fault behind it.
pub fn termination(fatal: &Fatal, at_fault: &[u8]) -> Vec<u8> {
    let at_fault = &at_fault[..at_fault.len().min(MOST_TERM_DATA)];
    let mut bytes = vec![0; HEADER];
    put_common(&mut bytes, kind::C2H_TERM_REQ, 0, HEADER, 0, HEADER + at_fault.len());
    put_u16(&mut bytes, 8, fatal.status);
    put_u32(&mut bytes, 10, fatal.information);
    bytes.extend(at_fault);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(kind: u8, flags: u8, header: u8, data_offset: u8, length: u32, digests: Digests) -> Result<Common, u32> {
        let mut bytes = [kind, flags, header, data_offset, 0, 0, 0, 0];
        put_u32(&mut bytes, 4, length);
        Common::read(&bytes, digests).map_err(|fatal| fatal.information)
    }

    #[test]
    fn each_length_that_does_not_fit_names_its_field() {
        let none = Digests::default();
        let both = Digests { header: true, data: true };
        for (kind, flags, header, offset, length, digests, field) in [
            (1, 0, 128, 0, 128, none, 0),
            (9, 0, 24, 0, 24, none, 0),
            (0, 0, 127, 0, 128, none, 2),
            (0, 0, 128, 0, 129, none, 4),
            (0, 1, 128, 0, 128, none, 1),
            (4, 0, 71, 0, 72, none, 2),
            (4, 0, 72, 0, 71, none, 3),
            (4, 0, 72, 73, 100, none, 3),
            (4, 0, 72, 132, 200, none, 3),
            (4, 0, 72, 68, 100, none, 3),
            (4, 0, 72, 72, 72 + 8193, none, 4),
            (4, 0, 72, 72, u32::MAX, none, 4),
            (4, 1, 72, 72, 100, none, 1),
            (4, 2, 72, 72, 100, none, 1),
            (4, 0, 72, 72, 76, both, 1),
            (4, 1, 72, 76, 100, both, 1),
            (4, 3, 72, 76, 80, both, 4),
            (6, 0, 24, 0, 24, none, 3),
            (6, 0, 24, 24, 24, none, 4),
            (6, 0, 24, 24, 24 + (128 << 10) + 1, none, 4),
            (2, 0, 24, 0, 23, none, 4),
            (2, 0, 24, 0, 153, none, 4),
        ] {
            assert_eq!(
                common(kind, flags, header, offset, length, digests),
                Err(field),
                "{kind} {flags} {header} {offset} {length}"
            );
        }
        let with_data = common(4, 3, 72, 76, 76 + 16 + 4, both).unwrap();
        assert_eq!((with_data.data, with_data.data_offset), (16, 76));
        assert_eq!(common(4, 1, 72, 0, 76, both).unwrap().data, 0);
        assert_eq!(common(6, 4, 24, 32, 36, none).unwrap().data, 4);
    }

    #[test]
    fn a_connection_request_is_answered_with_its_digests() {
        let mut bytes = [0; IC_BYTES];
        (bytes[10], bytes[11]) = (3, 3);
        let request = ConnectionRequest::read(&bytes).unwrap();
        assert_eq!(request.alignment, 16);
        assert_eq!((request.response()[0], request.response()[11]), (kind::IC_RESP, 3));
        for (field, value) in [(8, 1), (10, 32), (11, 4)] {
            let mut wrong = bytes;
            wrong[field] = value;
            assert_eq!(ConnectionRequest::read(&wrong).unwrap_err().information, field as u32);
        }
    }
}
