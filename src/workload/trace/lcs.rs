//! libCacheSim's `lcs` traces of version 2 to 8, which have an operation and a tenant.
//!
//! ```text
//!  header     0 u64 magic   8 u64 version   16 statistics, 8000 bytes   8016 unused   8184 u64 magic       8192 bytes
//!  version 2  0 u32 time, s   4 u64 object   12 u32 size   16 u8 operation   17 u24 tenant   20 i64 next access
//!  version 3  0 u32 time, s   4 u64 object   12 i64 size   20 u8 operation   21 u24 tenant   24 u32 ttl   28 i64 next
//!  version 4 to 8: as 3, with 1, 2, 4, 8 or 16 features of 32 bits after it                         little-endian
//! ```
//!
//! Source: libCacheSim's `lcs.h` and `enum.h`. A device is a tenant. An object is an address in a trace of block
//! requests, and its unit is not in the file: sectors where vscsi traces were converted, bytes elsewhere.

use super::fields::{Reason, SECTOR_BYTES, extent};
use super::intake::{Intake, Request};
use super::numbering::Numbering;
use super::open::Input;
use super::records::RecordReader;
use super::rejected::Place;
use super::vscsi::bytes_at;
use crate::workload::{Action, Operation};
use std::io;

const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
const HEADER_BYTES: usize = 8192;
const SECOND_MAGIC_AT: usize = HEADER_BYTES - 8;
const NANOSECONDS: u64 = 1_000_000_000;

/// The layout of the records of one version.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    record_bytes: usize,
    /// True if the size has 64 bits.
    long_size: bool,
}

impl Layout {
    fn of(header: &[u8]) -> Result<Layout, Reason> {
        if header.len() < HEADER_BYTES || header[..8] != MAGIC || header[SECOND_MAGIC_AT..HEADER_BYTES] != MAGIC {
            return Err("the file does not begin with a header of lcs: 8192 bytes between two magic numbers");
        }
        let record_bytes = match u64::from_le_bytes(bytes_at(header, 8)) {
            2 => return Ok(Layout { record_bytes: 28, long_size: false }),
            3 => 36,
            4 => 40,
            5 => 44,
            6 => 52,
            7 => 68,
            8 => 100,
            1 => {
                return Err("version 1 of lcs has no field that tells reads from writes: \
                            use the trace from which it was made, or version 2 or later");
            }
            _ => return Err("the version of lcs is not 2 to 8"),
        };
        Ok(Layout { record_bytes, long_size: true })
    }
}

/// True if a file that begins with `head` is of this format, of any version.
pub(super) fn recognises(head: &[u8]) -> bool {
    head.len() >= HEADER_BYTES && head[..8] == MAGIC && head[SECOND_MAGIC_AT..HEADER_BYTES] == MAGIC
}

/// Reads the records. `UNIT_BYTES` is the unit of objects' addresses.
pub(super) struct LcsReader<const UNIT_BYTES: u64> {
    input: Input,
    intake: Intake,
    layout: Option<Layout>,
    tenants: Numbering<u64>,
    records: u64,
    /// The number of requests to a cache of keys.
    of_keys: u64,
    /// The number of requests whose address is a multiple of 512, of those at another than 0.
    whole_sectors: u64,
    addressed: u64,
}

/// The action of an operation's number, and true if it is one on a key.
fn action_of(operation: u8) -> Result<(Action, bool), Reason> {
    Ok(match operation {
        12 => (Action::Read, false),
        13 | 14 => (Action::Write, false),
        // get, gets
        1 | 2 => (Action::Read, true),
        // set, add, cas, replace
        3..=6 => (Action::Write, true),
        9 => (Action::Discard, true),
        0 | 255 => return Err("the request has no operation: it was not recorded"),
        7 | 8 | 10 | 11 => return Err("the operation changes a part of an object, and its place is not in the trace"),
        _ => return Err("the operation is not one of lcs, 1 to 14"),
    })
}

impl<const UNIT_BYTES: u64> LcsReader<UNIT_BYTES> {
    pub fn new(input: Input, intake: Intake) -> LcsReader<UNIT_BYTES> {
        let tenants = Numbering::default();
        LcsReader { input, intake, layout: None, tenants, records: 0, of_keys: 0, whole_sectors: 0, addressed: 0 }
    }

    fn parse(&mut self, layout: Layout, record: &[u8]) -> Result<Option<Request>, Reason> {
        let time_ns = u64::from(u32::from_le_bytes(bytes_at(record, 0))) * NANOSECONDS;
        let object = u64::from_le_bytes(bytes_at(record, 4));
        let (size, after) = if layout.long_size {
            let size = i64::from_le_bytes(bytes_at(record, 12));
            (u64::try_from(size).map_err(|_| "the size is negative")?, 20)
        } else {
            (u64::from(u32::from_le_bytes(bytes_at(record, 12))), 16)
        };
        let (action, of_key) = action_of(record[after])?;
        let tenant = u64::from(u32::from_le_bytes(bytes_at(record, after)) >> 8);
        let offset = object.checked_mul(UNIT_BYTES).ok_or("the address in bytes does not fit 64 bits")?;
        let request = Request::new(time_ns, action, extent(offset, size)?);
        self.of_keys += u64::from(of_key);
        self.addressed += u64::from(object > 0);
        self.whole_sectors += u64::from(object > 0 && object % SECTOR_BYTES == 0);
        Ok(Some(request.on(self.tenants.number(&tenant)?)))
    }

    /// The layout, which the header tells at the first call; `None` for a file without one.
    fn layout(&mut self) -> io::Result<Option<Layout>> {
        if self.layout.is_none() && self.input.consumed_bytes() == 0 {
            let header = self.input.peek(HEADER_BYTES)?;
            let (layout, left) = (Layout::of(header), header.len());
            match layout {
                Ok(layout) => {
                    self.layout = Some(layout);
                    self.input.consume(HEADER_BYTES);
                }
                Err(reason) => {
                    self.intake.rejections.add(Place::Byte(0), reason, b"");
                    self.input.consume(left);
                }
            }
        }
        Ok(self.layout)
    }
}

impl<const UNIT_BYTES: u64> RecordReader for LcsReader<UNIT_BYTES> {
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()> {
        let full = out.len() + limit;
        let Some(layout) = self.layout()? else { return Ok(()) };
        let mut record = [0; 128];
        while out.len() < full {
            let window = self.input.peek(layout.record_bytes)?;
            if window.is_empty() {
                break;
            }
            let length = window.len().min(layout.record_bytes);
            record[..length].copy_from_slice(&window[..length]);
            self.input.consume(length);
            self.records += 1;
            let parsed = match length == layout.record_bytes {
                true => self.parse(layout, &record),
                false => Err("the file ends within the record"),
            };
            let number = self.records;
            self.intake.settle(parsed, || Place::Record(number), b"", out);
        }
        Ok(())
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn decompressed_bytes(&self) -> u64 {
        self.input.decompressed_bytes()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.of_keys > 0 {
            notes.push(format!(
                "{} requests are those of a cache of keys (get, set, ...): their objects were taken for addresses, which \
                 hashes of keys are not",
                self.of_keys
            ));
        }
        if UNIT_BYTES == SECTOR_BYTES && self.addressed > 0 && self.whole_sectors == self.addressed {
            notes.push(
                "all objects are multiples of 512, and were read as numbers of sectors: if they are addresses in bytes, \
                 the format is lcs-bytes"
                    .to_string(),
            );
        }
        if UNIT_BYTES == 1 && self.whole_sectors < self.addressed {
            notes.push(format!(
                "{} of {} objects are not multiples of 512, and were read as addresses in bytes: if they are numbers of \
                 sectors, the format is lcs",
                self.addressed - self.whole_sectors,
                self.addressed
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{operation, read_sample, reader_of};
    use super::super::{FORMATS, Format, TraceOptions, samples};
    use super::*;

    fn expected() -> Vec<Operation> {
        let mut expected = vec![
            operation(0, Action::Write, 4096, 4096),
            operation(0, Action::Read, 16 * 512, 513),
            operation(2 * NANOSECONDS, Action::Write, 4096, 512),
            operation(2 * NANOSECONDS, Action::Discard, 0, 8192),
        ];
        expected[1].device = 1;
        expected
    }

    #[test]
    fn records_of_all_versions_read_alike() {
        for version in 2..=8 {
            assert_eq!(read_sample(&samples::lcs(version), "lcs"), expected(), "version {version}");
        }
    }

    #[test]
    fn addresses_in_bytes_are_read_by_another_name() {
        let offsets: Vec<u64> =
            read_sample(&samples::lcs(2), "lcs-bytes").iter().map(|operation| operation.offset_bytes).collect();
        assert_eq!(offsets, [8, 16, 8, 0]);
    }

    fn outcome(bytes: &[u8], format: &str) -> (Result<usize, String>, Vec<String>) {
        let options = TraceOptions { format: Format::named(FORMATS, format), ..TraceOptions::default() };
        let mut reader = reader_of(bytes, options);
        let read = reader.read_batch(&mut Vec::new(), 100).map_err(|error| error.to_string());
        (read, reader.notes().into_iter().chain(reader.first_rejected().iter().map(ToString::to_string)).collect())
    }

    #[test]
    fn versions_without_an_operation_and_unknown_ones_are_refused_with_the_reason() {
        for (version, reason) in [(1, "version 1 of lcs has no field"), (9, "the version of lcs is not 2 to 8")] {
            let mut sample = samples::lcs(2);
            sample[8] = version;
            let (read, _) = outcome(&sample, "lcs");
            assert!(read.as_ref().unwrap_err().contains(reason), "{read:?}");
            let error = reader_of(&sample, TraceOptions::default()).read_batch(&mut Vec::new(), 1).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
        let (read, _) = outcome(b"too short", "lcs");
        assert!(read.unwrap_err().contains("does not begin with a header of lcs"));
    }

    #[test]
    fn a_record_that_is_wrong_is_counted_with_its_number_and_reason() {
        let header = samples::lcs(3)[..HEADER_BYTES].to_vec();
        let record = |object: u64, size: i64, operation: u8| {
            let mut record = [0; 36];
            record[4..12].copy_from_slice(&object.to_le_bytes());
            record[12..20].copy_from_slice(&size.to_le_bytes());
            record[20] = operation;
            record
        };
        for (bad, reason) in [
            (record(0, 512, 0), "record 2: the request has no operation"),
            (record(0, 512, 10), "record 2: the operation changes a part of an object"),
            (record(0, 512, 77), "record 2: the operation is not one of lcs"),
            (record(0, -1, 13), "record 2: the size is negative"),
            (record(0, 0, 13), "record 2: the length is zero"),
            (record(u64::MAX, 512, 13), "record 2: the address in bytes does not fit"),
            (record(u64::MAX / 512, i64::MAX, 13), "record 2: the end of the request does not fit"),
        ] {
            let bytes = [&header[..], &record(8, 512, 13), &bad].concat();
            let (read, told) = outcome(&bytes, "lcs");
            assert_eq!(read, Ok(1));
            assert!(told.iter().any(|line| line.contains(reason)), "{reason}: {told:?}");
        }
        let (_, told) = outcome(&[&header[..], &record(8, 512, 13), &[0; 35]].concat(), "lcs");
        assert!(told[0].contains("record 2: the file ends within the record"), "{told:?}");
    }

    #[test]
    fn doubtful_addresses_are_told() {
        let (_, notes) = outcome(&samples::lcs(2), "lcs");
        assert!(notes[0].contains("1 requests are those of a cache of keys"), "{notes:?}");
        let (_, notes) = outcome(&samples::lcs(2), "lcs-bytes");
        assert!(notes[1].contains("3 of 3 objects are not multiples of 512"), "{notes:?}");
        let mut in_bytes = samples::lcs(2)[..HEADER_BYTES + 28].to_vec();
        in_bytes[HEADER_BYTES + 4..][..8].copy_from_slice(&4096u64.to_le_bytes());
        let (_, notes) = outcome(&in_bytes, "lcs");
        assert!(notes[0].contains("the format is lcs-bytes"), "{notes:?}");
    }
}
