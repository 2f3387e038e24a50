//! Answers as units, with the digests and the alignment that were agreed on.

use crate::bytes::put_u32;
use crate::command::put_completion;
use crate::error::ConnectionError;
use crate::output::Output;
use crate::pdu::{DIGEST, Digests, Fatal, HEADER, flag, kind, put_common, put_ready_to_transfer, termination};
use crate::status::Status;
use flashpath::crc::crc32c;
use flashpath::time::Time;

/// The form of units to the host.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Their digests.
    pub digests: Digests,
    /// The alignment of data, in bytes.
    pub alignment: usize,
}

/// A completion.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The identifier of the command.
    pub id: u16,
    /// The position of the queue.
    pub head: u16,
    /// The result.
    pub result: u64,
    /// The status.
    pub status: Status,
}

impl Form {
    fn header_length(self) -> usize {
        HEADER + self.digests.header_bytes()
    }

    /// Writes the common header, and the digest of the header if there is one.
    fn seal(self, unit: &mut [u8], kind: u8, flags: u8, data_offset: usize, length: usize) {
        let digest = if self.digests.header { flag::HEADER_DIGEST } else { 0 };
        put_common(unit, kind, flags | digest, HEADER, data_offset, length);
        if self.digests.header {
            let sum = crc32c(&unit[..HEADER]);
            put_u32(unit, HEADER, sum);
        }
    }

    /// Bytes of a completion.
    pub fn completion_bytes(self) -> usize {
        self.header_length()
    }

    /// Writes a completion to the beginning of `unit`.
    pub fn put_completion(self, unit: &mut [u8], completion: &Completion) {
        put_completion(&mut unit[8..HEADER], completion.result, completion.head, completion.id, completion.status);
        self.seal(unit, kind::CAPSULE_RESP, 0, 0, self.header_length());
    }

    /// Sends a completion.
    pub fn send(self, output: &mut impl Output, completion: &Completion, done: Time) -> Result<(), ConnectionError> {
        let bytes = self.completion_bytes();
        self.put_completion(output.room(bytes)?, completion);
        output.end(bytes, done)
    }

    /// The offset of the data in its unit, and the bytes of the unit.
    pub fn data_unit(self, data: usize) -> (usize, usize) {
        let offset = self.header_length().next_multiple_of(self.alignment);
        (offset, offset + data + self.digests.data_bytes(data))
    }

    /// Completes a unit whose data is in its place.
    pub fn seal_data(self, unit: &mut [u8], command: u16, data: usize) {
        let (offset, length) = self.data_unit(data);
        unit[8..offset].fill(0);
        unit[8..10].copy_from_slice(&command.to_le_bytes());
        put_u32(unit, 16, data as u32);
        let digest = if self.digests.data { flag::DATA_DIGEST } else { 0 };
        self.seal(unit, kind::C2H_DATA, flag::LAST | digest, offset, length);
        if self.digests.data {
            let sum = crc32c(&unit[offset..offset + data]);
            put_u32(unit, length - DIGEST, sum);
        }
    }

    /// Asks for the data of a command.
    pub fn ask(
        self,
        output: &mut impl Output,
        command: u16,
        tag: u16,
        length: usize,
        now: Time,
    ) -> Result<(), ConnectionError> {
        let bytes = self.header_length();
        let unit = output.room(bytes)?;
        unit.fill(0);
        put_ready_to_transfer(unit, command, tag, 0, length);
        self.seal(unit, kind::R2T, 0, 0, bytes);
        output.end(bytes, now)
    }
}

/// Tells the host of a fatal error; `at_fault` is the header of its unit.
pub fn terminate(output: &mut impl Output, fatal: &Fatal, at_fault: &[u8], now: Time) -> Result<(), ConnectionError> {
    let unit = termination(fatal, at_fault);
    output.room(unit.len())?.copy_from_slice(&unit);
    output.end(unit.len(), now)?;
    output.before_waiting()
}
