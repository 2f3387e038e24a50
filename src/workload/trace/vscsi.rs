//! VMware's vscsiStats, binary, version 1: the format of CloudPhysics' traces.
//!
//! ```text
//!  byte  0        4        8        12       14       16             24             32
//!        | number | length | nSG    | command| version| address      | time         |
//!        | u32    | bytes  | u32    | u16    | 0x0100 | u64, 512 B   | u64, us      |   little-endian
//! ```

use super::fields::{Reason, SECTOR_BYTES, extent};
use super::intake::{Intake, Request};
use super::open::Input;
use super::records::RecordReader;
use super::rejected::Place;
use crate::workload::{Action, Operation};
use std::io;

/// Bytes of a record of version 1.
pub(super) const RECORD_BYTES: usize = 32;
/// Bytes of a record of version 2, which is recognised but not read.
const RECORD_2_BYTES: usize = 40;

/// The request of a SCSI command on device 0; `None` for a command that moves no blocks.
pub(super) fn request(time_ns: u64, command: u64, sector: u64, bytes: u64) -> Result<Option<Request>, Reason> {
    let action = match command {
        // READ (6, 10, 12, 16)
        0x08 | 0x28 | 0xa8 | 0x88 => Action::Read,
        // WRITE (6, 10, 12, 16), WRITE AND VERIFY (10, 16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e => Action::Write,
        // SYNCHRONIZE CACHE (10, 16)
        0x35 | 0x91 => return Ok(Some(Request::flush(time_ns))),
        // TEST UNIT READY, REQUEST SENSE, INQUIRY, MODE SENSE (6, 10), READ CAPACITY (10, 16), REPORT LUNS
        0x00 | 0x03 | 0x12 | 0x1a | 0x5a | 0x25 | 0x9e | 0xa0 => return Ok(None),
        0x42 => return Err("an UNMAP, whose addresses are not in the trace"),
        _ => return Err("a SCSI command that is neither a read nor a write"),
    };
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or("the address in bytes does not fit 64 bits")?;
    Ok(Some(Request::new(time_ns, action, extent(offset, bytes)?)))
}

/// The `N` bytes at `at`. The caller has checked the size of the record.
pub(super) fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

fn is_version_1(record: &[u8]) -> bool {
    let command = u64::from(u16::from_le_bytes(bytes_at(record, 12)));
    record[14..16] == [0x00, 0x01] && command < 0x100
}

fn is_version_2(record: &[u8]) -> bool {
    record[2..4] == [0x00, 0x02] && record[1] == 0
}

/// True if the first records of `head` are of version 1.
pub(super) fn recognises(head: &[u8]) -> bool {
    head.len() >= RECORD_BYTES && head.chunks_exact(RECORD_BYTES).take(16).all(is_version_1)
}

/// True if the first records of `head` are of version 2. It is not read: no sample was available.
pub(super) fn recognises_version_2(head: &[u8]) -> bool {
    head.len() >= 2 * RECORD_2_BYTES && head.chunks_exact(RECORD_2_BYTES).take(16).all(is_version_2)
}

/// Reads records of version 1. One device.
pub(super) struct VscsiReader {
    input: Input,
    intake: Intake,
    records: u64,
}

impl VscsiReader {
    pub fn new(input: Input, intake: Intake) -> VscsiReader {
        VscsiReader { input, intake, records: 0 }
    }
}

fn parse(record: &[u8]) -> Result<Option<Request>, Reason> {
    if record.len() < RECORD_BYTES {
        return Err("the record is cut short: it has fewer than 32 bytes");
    }
    if !is_version_1(record) {
        return Err("the record is not of version 1");
    }
    let bytes = u64::from(u32::from_le_bytes(bytes_at(record, 4)));
    let command = u64::from(u16::from_le_bytes(bytes_at(record, 12)));
    let sector = u64::from_le_bytes(bytes_at(record, 16));
    let time_us = u64::from_le_bytes(bytes_at(record, 24));
    let time_ns = time_us.checked_mul(1000).ok_or("the time does not fit 64 bits")?;
    request(time_ns, command, sector, bytes)
}

impl RecordReader for VscsiReader {
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()> {
        let full = out.len() + limit;
        while out.len() < full {
            let window = self.input.peek(RECORD_BYTES)?;
            if window.is_empty() {
                break;
            }
            self.records += 1;
            let record = &window[..window.len().min(RECORD_BYTES)];
            let number = self.records;
            self.intake.settle(parse(record), || Place::Record(number), b"", out);
            self.input.consume(RECORD_BYTES);
        }
        Ok(())
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn decompressed_bytes(&self) -> u64 {
        self.input.decompressed_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_record_is_read_field_by_field() {
        let expected = [
            operation(0, Action::Write, 42_932_745 * 512, 512),
            operation(1_500_000, Action::Read, 96 * 512, 8192),
            operation(1_600_000, Action::Write, 1 << 31, 4096),
        ];
        assert_eq!(read_sample(&samples::vscsi(), "vscsi"), expected);
    }

    #[test]
    fn a_record_that_is_cut_short_or_of_another_version_is_rejected() {
        let sample = samples::vscsi();
        assert!(parse(&sample[..31]).is_err());
        let mut record = sample[..32].to_vec();
        record[15] = 7;
        assert!(parse(&record).is_err());
    }

    #[test]
    fn commands_that_move_no_blocks_are_no_requests() {
        assert_eq!(request(0, 0x12, 0, 36), Ok(None));
        assert_eq!(request(5, 0x35, 0, 0), Ok(Some(Request::flush(5))));
        assert!(request(0, 0x42, 0, 24).is_err());
    }
}
