//! CSV formats: block events as `time_us,rwbs,sector,nsect,comm`, and the output of `convert` and `capture`.

use super::fields::{Reason, extent, number, take_byte, take_field, take_number};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::rwbs;
use crate::label::Content;
use crate::workload::Action;

/// The header of a captured trace.
const CAPTURED_HEADER: &[u8] = b"time_us,rwbs,sector,nsect";

/// The header of `convert`'s CSV and the columns of its Parquet.
pub(super) const OPERATIONS_HEADER: &str = "time_ns,device,action,offset_bytes,length_bytes,content,stream";

/// Times in microseconds, sectors of 512 bytes, one device. See `rwbs` for the kernel's letters.
#[derive(Debug, Default)]
pub(super) struct Captured;

impl LineParser for Captured {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if line.starts_with(CAPTURED_HEADER) {
            return Ok(None);
        }
        let mut rest = line;
        let time_us = take_number(&mut rest).ok_or("the time is not a whole number of microseconds")?;
        let time_ns = time_us.checked_mul(1000).ok_or("the time does not fit 64 bits")?;
        take_byte(&mut rest, b',').ok_or("a comma is missing after the time")?;
        let letters = take_field(&mut rest, b',');
        let sector = take_number(&mut rest).ok_or("the sector is not a whole number")?;
        take_byte(&mut rest, b',').ok_or("a comma is missing after the sector")?;
        let sectors = take_number(&mut rest).ok_or("the number of sectors is not a whole number")?;
        if !rest.is_empty() {
            take_byte(&mut rest, b',').ok_or("a comma is missing after the number of sectors")?;
        }
        rwbs::request(time_ns, letters, sector, sectors, rest)
    }
}

/// The names of actions in `convert`'s formats.
const ACTIONS: [(Action, &str); 4] =
    [(Action::Read, "read"), (Action::Write, "write"), (Action::Discard, "discard"), (Action::Flush, "flush")];

/// The name of an action in `convert`'s formats.
pub(super) fn action_name(action: Action) -> &'static str {
    ACTIONS[match action {
        Action::Read => 0,
        Action::Write => 1,
        Action::Discard => 2,
        Action::Flush => 3,
    }]
    .1
}

/// The action of this name.
pub(super) fn action_named(name: &[u8]) -> Result<Action, Reason> {
    let found = ACTIONS.iter().find(|(_, known)| known.as_bytes() == name);
    found.map(|(action, _)| *action).ok_or("the action is not read, write, discard or flush")
}

/// The content of this name.
pub(super) fn content_named(name: &[u8]) -> Result<Content, Reason> {
    let found = Content::ALL.into_iter().find(|content| content.name().as_bytes() == name);
    found.ok_or("the content is not data, metadata, journal or mapping")
}

/// A request from the columns of `convert`'s formats, in order.
pub(super) fn request_of_columns(
    time_ns: u64,
    device: u32,
    action: Action,
    (offset_bytes, length_bytes): (u64, u64),
    content: Content,
    stream: u8,
) -> Result<Request, Reason> {
    let mut request = match action {
        Action::Flush if length_bytes > 0 => return Err("a flush has no length"),
        Action::Flush => Request::flush(time_ns),
        _ => Request::new(time_ns, action, extent(offset_bytes, length_bytes)?),
    };
    request.operation.content = content;
    request.operation.stream = stream;
    Ok(request.on(device))
}

/// Lines of `convert`'s CSV. Times are nanoseconds since the trace began.
#[derive(Debug, Default)]
pub(super) struct Operations {
    devices: Numbering<u64>,
}

impl LineParser for Operations {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if line == OPERATIONS_HEADER.as_bytes() {
            return Ok(None);
        }
        let mut rest = line;
        let time_ns = number(take_field(&mut rest, b',')).ok_or("time_ns is not a whole number")?;
        let device = number(take_field(&mut rest, b',')).ok_or("device is not a whole number")?;
        let action = action_named(take_field(&mut rest, b','))?;
        let offset_bytes = number(take_field(&mut rest, b',')).ok_or("offset_bytes is not a whole number")?;
        let length_bytes = number(take_field(&mut rest, b',')).ok_or("length_bytes is not a whole number")?;
        let content = content_named(take_field(&mut rest, b','))?;
        let stream = number(rest).and_then(|stream| u8::try_from(stream).ok());
        let stream = stream.ok_or("stream is not a whole number up to 255")?;
        let request = request_of_columns(time_ns, 0, action, (offset_bytes, length_bytes), content, stream)?;
        Ok(Some(request.on(self.devices.number(&device)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_captured_line_is_read_field_by_field() {
        let operations = read_sample(samples::CAPTURED, "captured");
        let mut expected = vec![
            operation(0, Action::Read, 4104 * 512, 4096),
            operation(63_000, Action::Write, 4_456_448 * 512, 16_384),
            operation(301_000, Action::Write, 3_932_160 * 512, 4096),
            operation(900_000, Action::Flush, 0, 0),
            operation(900_000, Action::Write, 3_932_168 * 512, 4096),
            operation(950_000, Action::Flush, 0, 0),
            operation(960_000, Action::Discard, 8 * 512, 8192),
        ];
        expected[0].content = Content::Metadata;
        expected[2].content = Content::Journal;
        expected[4].content = Content::Journal;
        assert_eq!(operations, expected);
    }

    #[test]
    fn converted_lines_are_read_field_by_field() {
        let operations = read_sample(samples::OPERATIONS, "operations");
        let mut expected = vec![
            operation(5, Action::Write, 4096, 8192),
            operation(9, Action::Flush, 0, 0),
            operation(12, Action::Discard, 0, 512),
        ];
        expected[0].content = Content::Journal;
        expected[0].stream = 3;
        expected[1].device = 1;
        assert_eq!(operations, expected);
    }

    #[test]
    fn a_line_is_rejected_with_the_field_that_is_wrong() {
        for (line, reason) in [
            ("x,W,0,8,a", "the time is not a whole number of microseconds"),
            ("1", "a comma is missing after the time"),
            ("1,W,-8,8,a", "the sector is not a whole number"),
            ("1,W,8,8.5,a", "a comma is missing after the number of sectors"),
            ("1,W,8,0,a", "the length is zero"),
            ("1,W,18446744073709551615,8,a", "the address in bytes does not fit 64 bits"),
            ("18446744073709551615,W,8,8,a", "the time does not fit 64 bits"),
        ] {
            assert_eq!(Captured.parse(line.as_bytes()), Err(reason), "{line}");
        }
        for line in ["1,0,write,0,512,data", "1,0,write,0,512,data,256", "1,0,erase,0,1,data,0", "1,0,flush,0,1,data,0"]
        {
            assert!(Operations::default().parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
