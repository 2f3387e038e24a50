//! The log of device mapper's `log-writes` target, and of QEMU's `blklogwrites`, which has the same layout.
//!
//! ```text
//!  first sector   0 u64 magic   8 u64 version: 1   16 u64 number of entries   24 u32 bytes of a sector
//!  each entry     0 u64 sector   8 u64 sectors   16 u64 flags   24 u64 bytes of a mark's text   in one sector,
//!                 then the written sectors, which a discard does not have        little-endian
//!  flags          1 flush first   2 force unit access   4 discard   8 mark   16 metadata
//! ```
//!
//! Source: the kernel's documentation of the target, and the definitions of its log. The log has no times.

use super::fields::{Reason, extent_of_units};
use super::intake::{Intake, Request};
use super::open::Input;
use super::records::RecordReader;
use super::rejected::Place;
use super::vscsi::bytes_at;
use crate::label::Content;
use crate::workload::{Action, Operation};
use std::io;

const MAGIC: [u8; 8] = 0x006a_7366_7773_6872_u64.to_le_bytes();
const VERSION: [u8; 8] = 1u64.to_le_bytes();
const HEADER_BYTES: usize = 28;
const ENTRY_BYTES: usize = 32;
const SECTOR_BYTES: std::ops::RangeInclusive<u32> = 512..=65536;

const FLUSH: u64 = 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;
const METADATA: u64 = 1 << 4;

/// The first sector of a log.
#[derive(Clone, Copy, Debug)]
struct Header {
    entries: u64,
    sector_bytes: usize,
}

impl Header {
    fn of(head: &[u8]) -> Result<Header, Reason> {
        if !recognises(head) {
            return Err("the file does not begin with the header of a log of writes, version 1");
        }
        let sector_bytes = u32::from_le_bytes(bytes_at(head, 24));
        if !SECTOR_BYTES.contains(&sector_bytes) || !sector_bytes.is_power_of_two() {
            return Err("the size of a sector in the header is not a power of two from 512 to 65,536 bytes");
        }
        Ok(Header { entries: u64::from_le_bytes(bytes_at(head, 16)), sector_bytes: sector_bytes as usize })
    }
}

/// True if a file that begins with `head` is of this format.
pub(super) fn recognises(head: &[u8]) -> bool {
    head.len() >= HEADER_BYTES && head[..8] == MAGIC && head[8..16] == VERSION
}

/// The request of an entry; `None` for a mark.
fn request(entry: &[u8], sector_bytes: usize) -> Result<Option<Request>, Reason> {
    let sector = u64::from_le_bytes(bytes_at(entry, 0));
    let sectors = u64::from_le_bytes(bytes_at(entry, 8));
    let flags = u64::from_le_bytes(bytes_at(entry, 16));
    if flags & MARK != 0 {
        return Ok(None);
    }
    if sectors == 0 {
        let flush = (flags & FLUSH != 0).then(|| Request::flush(0));
        return flush.map(Some).ok_or("the entry has no sectors, and is neither a flush nor a mark");
    }
    let action = if flags & DISCARD != 0 { Action::Discard } else { Action::Write };
    let mut request = Request::new(0, action, extent_of_units(sector, sectors, sector_bytes as u64)?);
    request.flush_before = flags & FLUSH != 0;
    if flags & METADATA != 0 {
        request.operation.content = Content::Metadata;
    }
    Ok(Some(request))
}

/// The number of bytes of data after an entry; `None` if it does not fit 64 bits.
fn data_bytes(entry: &[u8], sector_bytes: usize) -> Option<u64> {
    let sectors = u64::from_le_bytes(bytes_at(entry, 8));
    let flags = u64::from_le_bytes(bytes_at(entry, 16));
    if flags & DISCARD != 0 { Some(0) } else { sectors.checked_mul(sector_bytes as u64) }
}

/// Reads a log. One device.
pub(super) struct LogWritesReader {
    input: Input,
    intake: Intake,
    header: Option<Header>,
    entries: u64,
}

impl LogWritesReader {
    pub fn new(input: Input, intake: Intake) -> LogWritesReader {
        LogWritesReader { input, intake, header: None, entries: 0 }
    }

    /// The header, read at the first call; `None` for a file without one.
    fn header(&mut self) -> io::Result<Option<Header>> {
        if self.header.is_none() && self.input.consumed_bytes() == 0 {
            let head = self.input.peek(HEADER_BYTES)?;
            let (header, left) = (Header::of(head), head.len());
            match header {
                Ok(header) => {
                    self.header = Some(header);
                    self.skip(header.sector_bytes as u64)?;
                }
                Err(reason) => {
                    self.intake.rejections.add(Place::Byte(0), reason, b"");
                    self.input.consume(left);
                }
            }
        }
        Ok(self.header)
    }

    /// Skips bytes; false if the file ends before.
    fn skip(&mut self, mut bytes: u64) -> io::Result<bool> {
        while bytes > 0 {
            let found = self.input.peek(1)?.len();
            if found == 0 {
                return Ok(false);
            }
            let step = usize::try_from(bytes).unwrap_or(usize::MAX).min(found);
            self.input.consume(step);
            bytes -= step as u64;
        }
        Ok(true)
    }

    /// Ends the reading with a rejection: the place of the next entry is not known.
    fn end(&mut self, place: u64, reason: &str, header: Header) {
        self.intake.rejections.add(Place::Byte(place), reason, b"");
        self.entries = header.entries;
    }
}

impl RecordReader for LogWritesReader {
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()> {
        let full = out.len() + limit;
        let Some(header) = self.header()? else { return Ok(()) };
        while out.len() < full {
            if self.intake.release(out) {
                continue;
            }
            if self.entries == header.entries {
                break;
            }
            let place = self.input.consumed_bytes();
            let window = self.input.peek(header.sector_bytes)?;
            if window.len() < header.sector_bytes {
                self.end(place, "the file ends before the last entry that the header counts", header);
                break;
            }
            let entry: [u8; ENTRY_BYTES] = bytes_at(window, 0);
            self.entries += 1;
            let Some(data) = data_bytes(&entry, header.sector_bytes) else {
                self.end(place, "the length in bytes does not fit 64 bits", header);
                break;
            };
            self.input.consume(header.sector_bytes);
            if !self.skip(data)? {
                self.end(place, "the file ends within the data of the entry", header);
                break;
            }
            self.intake.settle(request(&entry, header.sector_bytes), || Place::Byte(place), b"", out);
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
        match self.header {
            Some(Header { entries: 0, .. }) => {
                vec![
                    "the header counts no entries: it is written at a mark (`dmsetup message DEVICE 0 mark NAME`), at \
                      a write with forced unit access, and when the target is removed"
                        .to_string(),
                ]
            }
            Some(_) => vec!["the log has writes, discards and flushes, and no reads and no times".to_string()],
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{operation, read_sample, reader_of};
    use super::super::{TraceOptions, samples};
    use super::*;

    fn expected(sector_bytes: u64) -> Vec<Operation> {
        let mut expected = vec![
            operation(0, Action::Write, 16 * sector_bytes, 3 * sector_bytes),
            operation(0, Action::Flush, 0, 0),
            operation(0, Action::Flush, 0, 0),
            operation(0, Action::Write, 8 * sector_bytes, sector_bytes),
            operation(0, Action::Discard, 0, (1 << 31) * sector_bytes),
        ];
        expected[3].content = Content::Metadata;
        expected
    }

    #[test]
    fn a_log_is_read_entry_by_entry_with_sectors_of_any_size() {
        for sector_bytes in [512, 4096, 65536] {
            let found = read_sample(&samples::log_writes(sector_bytes), "dm-log-writes");
            assert_eq!(found, expected(u64::from(sector_bytes)), "{sector_bytes}");
        }
    }

    fn outcome(bytes: &[u8]) -> (Result<usize, String>, Vec<String>) {
        let mut reader = reader_of(bytes, TraceOptions::default());
        let read = reader.read_batch(&mut Vec::new(), 100).map_err(|error| error.to_string());
        (read, reader.first_rejected().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_log_that_is_cut_is_read_up_to_there_and_the_place_is_told() {
        let sample = samples::log_writes(512);
        for (length, operations, reason) in [
            (512 + 512 + 3 * 512, 1, "byte 2560: the file ends before the last entry"),
            (512 + 512 + 2 * 512, 0, "byte 512: the file ends within the data of the entry"),
        ] {
            let (read, rejected) = outcome(&sample[..length]);
            match operations {
                0 => assert!(read.unwrap_err().contains(reason)),
                _ => assert_eq!((read, rejected[0].contains(reason)), (Ok(operations), true), "{rejected:?}"),
            }
        }
        let mut longer = sample.clone();
        longer.extend([0xee; 5000]);
        assert_eq!(outcome(&longer), (Ok(5), Vec::new()), "what lies behind the last entry is not of the log");
    }

    #[test]
    fn lengths_and_sectors_that_are_too_large_end_the_reading() {
        let mut sample = samples::log_writes(512);
        sample[512 + 8..512 + 16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(outcome(&sample).0.unwrap_err().contains("byte 512: the length in bytes does not fit 64 bits"));
        let mut sample = samples::log_writes(512);
        sample[512..520].copy_from_slice(&u64::MAX.to_le_bytes());
        let (read, rejected) = outcome(&sample);
        assert_eq!(read, Ok(4));
        assert!(rejected[0].contains("byte 512: the address in bytes does not fit 64 bits"), "{rejected:?}");
    }

    #[test]
    fn a_header_without_entries_or_with_a_wrong_sector_is_told() {
        let mut sample = samples::log_writes(512);
        sample[16..24].fill(0);
        assert!(outcome(&sample).0.unwrap_err().contains("the header counts no entries"));
        let mut sample = samples::log_writes(512);
        sample[24] = 1;
        assert!(outcome(&sample).0.unwrap_err().contains("not a power of two from 512"));
    }
}
