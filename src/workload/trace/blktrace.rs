//! blktrace's binary records, version 7 or 8, in either byte order: one file per CPU.
//!
//! ```text
//! version 7, 48 bytes                                        version 8, 64 bytes
//!   0 u32 magic 0x65617400 | version                           0 u32 magic
//!   4 u32 sequence                                             4 u32 sequence
//!   8 u64 time, ns                                             8 u64 time, ns
//! 16 u64 sector, 512 B 16 u64 sector, 512 B 24 u32 length, bytes 24 u32 length, bytes 28 u32 action: event | category
//! << 16 28 u32 process 32 u32 process 32 u64 action: event | category << 16 36 u32 device: major << 20 | minor 40 u32
//! device 40 u32 CPU 44 u32 CPU 44 u16 error 48 u16 error 46 u16 length of the payload, bytes 50 u16 length of the
//! payload, bytes
//!                                                             52 12 bytes of padding
//! ```
//!
//! Source: the kernel's `blktrace_api.h`.

use super::fields::{Reason, SECTOR_BYTES, extent};
use super::intake::{Intake, Request};
use super::numbering::Numbering;
use super::open::Input;
use super::records::RecordReader;
use super::rejected::Place;
use super::stage::{Stage, StageCounts};
use super::vscsi::bytes_at;
use crate::label::Content;
use crate::workload::{Action, Operation};
use memchr::memmem;
use std::collections::BTreeSet;
use std::io;

const MAGIC: u32 = 0x6561_7400;
const HEADER_7_BYTES: usize = 48;
const HEADER_8_BYTES: usize = 64;
/// Events with this bit have a control group's number before the payload.
const CGROUP_EVENT: u64 = 1 << 8;
const CGROUP_BYTES: usize = 8;

const READ: u64 = 1 << 16;
const WRITE: u64 = 1 << 17;
const FLUSH: u64 = 1 << 18;
const PASSED_THROUGH: u64 = 1 << 25;
const NOTIFY: u64 = 1 << 26;
const METADATA: u64 = 1 << 28;
const DISCARD: u64 = 1 << 29;

/// The byte order and version of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    big_endian: bool,
    version: u8,
}

impl Layout {
    /// The layout of a record, from its first four bytes.
    fn of(head: &[u8]) -> Option<Layout> {
        let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
        [(false, u32::from_le_bytes(magic)), (true, u32::from_be_bytes(magic))]
            .into_iter()
            .find(|(_, word)| word & !0xff == MAGIC && matches!(word & 0xff, 7 | 8))
            .map(|(big_endian, word)| Layout { big_endian, version: word as u8 })
    }

    fn header_bytes(self) -> usize {
        if self.version == 7 { HEADER_7_BYTES } else { HEADER_8_BYTES }
    }

    fn magic(self) -> [u8; 4] {
        let word = MAGIC | u32::from(self.version);
        if self.big_endian { word.to_be_bytes() } else { word.to_le_bytes() }
    }

    fn u16(self, record: &[u8], at: usize) -> u16 {
        let bytes = bytes_at(record, at);
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(self, record: &[u8], at: usize) -> u32 {
        let bytes = bytes_at(record, at);
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u64(self, record: &[u8], at: usize) -> u64 {
        let bytes = bytes_at(record, at);
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }

    /// The fields of a header of this layout's length.
    fn header(self, record: &[u8]) -> Header {
        let seven = self.version == 7;
        let at = |version_7, version_8| if seven { version_7 } else { version_8 };
        Header {
            time_ns: self.u64(record, 8),
            sector: self.u64(record, 16),
            bytes: u64::from(self.u32(record, 24)),
            action: if seven { u64::from(self.u32(record, 28)) } else { self.u64(record, 32) },
            process: self.u32(record, at(32, 28)),
            device: u64::from(self.u32(record, at(36, 40))),
            error: self.u16(record, at(44, 48)),
            payload_bytes: usize::from(self.u16(record, at(46, 50))),
        }
    }
}

struct Header {
    time_ns: u64,
    sector: u64,
    bytes: u64,
    action: u64,
    process: u32,
    device: u64,
    error: u16,
    payload_bytes: usize,
}

/// True if a file that begins with `head` is of this format.
pub(super) fn recognises(head: &[u8]) -> bool {
    Layout::of(head).is_some()
}

/// The stage of a record's event.
fn stage_of(header: &Header) -> Option<Stage> {
    match header.action & 0xff {
        1 => Some(Stage::Queue),
        7 => Some(Stage::Issue),
        8 => Some(Stage::Complete),
        12 => Some(Stage::Insert),
        _ => None,
    }
    .filter(|_| header.action & (NOTIFY | PASSED_THROUGH) == 0)
}

/// The earliest stage of the requests in the records that `head` begins with.
pub(super) fn earliest_stage(head: &[u8]) -> Option<Stage> {
    let layout = Layout::of(head)?;
    let mut stages = StageCounts::default();
    let mut rest = head;
    while let Some(record) = rest.get(..layout.header_bytes()) {
        if Layout::of(record) != Some(layout) {
            break;
        }
        let header = layout.header(record);
        if let Some(stage) = stage_of(&header) {
            stages.add(stage);
        }
        rest = rest.get(layout.header_bytes() + header.payload_bytes..).unwrap_or_default();
    }
    stages.earliest()
}

/// Reads one CPU's file, or several concatenated.
pub(super) struct BlktraceReader {
    input: Input,
    intake: Intake,
    records: Records,
    layout: Option<Layout>,
}

/// The state kept between records.
#[derive(Default)]
struct Records {
    stage: Stage,
    stages: StageCounts,
    devices: Numbering<u64>,
    journal_processes: BTreeSet<u32>,
    failed: u64,
}

impl Records {
    fn parse(&mut self, header: &Header, payload: &[u8]) -> Result<Option<Request>, Reason> {
        if header.action & NOTIFY != 0 {
            self.note_process(header, payload);
            return Ok(None);
        }
        let Some(stage) = stage_of(header) else { return Ok(None) };
        self.stages.add(stage);
        if stage != self.stage {
            return Ok(None);
        }
        if header.error != 0 {
            self.failed += 1;
            return Ok(None);
        }
        let Some(request) = self.request(header)? else { return Ok(None) };
        Ok(Some(request.on(self.devices.number(&header.device)?)))
    }

    /// Notes the name of a process from a notification.
    fn note_process(&mut self, header: &Header, payload: &[u8]) {
        if header.action & 0xff != 0 {
            return;
        }
        let name_at = if header.action & CGROUP_EVENT != 0 { CGROUP_BYTES } else { 0 };
        if payload.get(name_at..).is_some_and(|name| name.starts_with(b"jbd2/")) {
            self.journal_processes.insert(header.process);
        } else {
            self.journal_processes.remove(&header.process);
        }
    }

    fn request(&self, header: &Header) -> Result<Option<Request>, Reason> {
        let flush_before = header.action & FLUSH != 0;
        if header.bytes == 0 {
            return Ok(flush_before.then(|| Request::flush(header.time_ns)));
        }
        let action = match header.action {
            action if action & DISCARD != 0 => Action::Discard,
            action if action & WRITE != 0 => Action::Write,
            action if action & READ != 0 => Action::Read,
            _ => return Ok(None),
        };
        let offset = header.sector.checked_mul(SECTOR_BYTES).ok_or("the address in bytes does not fit 64 bits")?;
        let mut request = Request::new(header.time_ns, action, extent(offset, header.bytes)?);
        request.flush_before = flush_before;
        if header.action & METADATA != 0 {
            let journal = self.journal_processes.contains(&header.process);
            request.operation.content = if journal { Content::Journal } else { Content::Metadata };
        }
        Ok(Some(request))
    }
}

impl BlktraceReader {
    pub fn new(input: Input, intake: Intake, stage: Stage) -> BlktraceReader {
        BlktraceReader { input, intake, records: Records { stage, ..Records::default() }, layout: None }
    }

    /// Skips to the next record of the file's layout.
    fn resynchronise(&mut self) -> io::Result<()> {
        let start = self.input.consumed_bytes();
        let magic = self.layout.map(Layout::magic);
        self.input.consume(1);
        let mut skipped = 1u64;
        loop {
            let window = self.input.peek(HEADER_8_BYTES)?;
            let found = match magic {
                Some(magic) => memmem::find(window, &magic),
                None => window.windows(4).position(|head| Layout::of(head).is_some()),
            };
            let length = window.len();
            let step = match found {
                Some(found) => found,
                // The magic number may lie across the end of the window.
                None if length > 3 && !self.input.shows_the_end() => length - 3,
                None => length,
            };
            self.input.consume(step);
            skipped += step as u64;
            if found.is_some() || step == length {
                break;
            }
        }
        let reason = format!("not a record; skipped {skipped} bytes");
        self.intake.rejections.add(Place::Byte(start), &reason, b"");
        Ok(())
    }

    fn reject_cut(&mut self, left: usize) {
        let place = Place::Byte(self.input.consumed_bytes());
        self.intake.rejections.add(place, "the file ends within the record", b"");
        self.input.consume(left);
    }
}

impl RecordReader for BlktraceReader {
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()> {
        let full = out.len() + limit;
        while out.len() < full {
            if self.intake.release(out) {
                continue;
            }
            let window = self.input.peek(HEADER_8_BYTES)?;
            let left = window.len();
            if left == 0 {
                break;
            }
            let Some(layout) = Layout::of(window).filter(|layout| self.layout.is_none_or(|first| first == *layout))
            else {
                self.resynchronise()?;
                continue;
            };
            self.layout = Some(layout);
            if left < layout.header_bytes() {
                self.reject_cut(left);
                break;
            }
            let header = layout.header(window);
            let whole = layout.header_bytes() + header.payload_bytes;
            let window = self.input.peek(whole)?;
            if window.len() < whole {
                let left = window.len();
                self.reject_cut(left);
                break;
            }
            let parsed = self.records.parse(&header, &window[layout.header_bytes()..whole]);
            let place = Place::Byte(self.input.consumed_bytes());
            self.intake.settle(parsed, || place, b"", out);
            self.input.consume(whole);
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
        let mut notes: Vec<String> = self.records.stages.note(self.records.stage).into_iter().collect();
        if self.records.failed > 0 {
            notes.push(format!("{} failed requests were skipped", self.records.failed));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::TraceOptions;
    use super::super::samples;
    use super::super::testing::{operation, read_sample, read_sample_with, reader_of};
    use super::*;

    fn expected() -> Vec<Operation> {
        let mut expected = vec![
            operation(0, Action::Write, 3_932_216 * 512, 4096),
            operation(1000, Action::Flush, 0, 0),
            operation(1000, Action::Write, 64 * 512, 4096),
            operation(2000, Action::Discard, 8 * 512, 8192),
        ];
        expected[0].content = Content::Journal;
        expected[2].content = Content::Metadata;
        expected[3].device = 1;
        expected
    }

    #[test]
    fn records_of_both_versions_and_byte_orders_read_alike() {
        for version in [7, 8] {
            for big_endian in [false, true] {
                let sample = samples::blktrace(version, big_endian);
                assert_eq!(read_sample(&sample, "blktrace"), expected(), "version {version}");
            }
        }
    }

    #[test]
    fn another_stage_can_be_chosen() {
        let options = TraceOptions { stage: Some(Stage::Issue), ..TraceOptions::default() };
        let operations = read_sample_with(&samples::blktrace(7, false), "blktrace", options);
        assert_eq!(operations, [operation(0, Action::Write, 3_932_216 * 512, 8192)]);
    }

    #[test]
    fn bytes_that_are_no_record_are_skipped_and_a_cut_record_is_rejected() {
        let sample = samples::blktrace(7, false);
        let garbage = [&sample[..], &[0xee; 1000][..], &sample[..]].concat();
        let mut reader = reader_of(&garbage, TraceOptions::default());
        let mut operations = Vec::new();
        while reader.read_batch(&mut operations, 3).unwrap() > 0 {}
        assert_eq!(operations.len(), 2 * expected().len());
        assert_eq!(reader.rejected(), 1);

        let mut reader = reader_of(&sample[..sample.len() - 1], TraceOptions::default());
        let mut operations = Vec::new();
        while reader.read_batch(&mut operations, 3).unwrap() > 0 {}
        assert_eq!((operations.len(), reader.rejected()), (expected().len() - 1, 1));
    }
}
