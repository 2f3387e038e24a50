//! fio's I/O logs, of version 2 and 3: a header, then one line per call.

use super::fields::{Reason, extent, number, take_last_word, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use crate::workload::Action;

/// Version 2: `file action [offset length]`; time passes only in `wait` lines, whose offset counts microseconds.
/// Version 3: `milliseconds file action [offset length]`. Offsets and lengths are bytes; each file is a device.
#[derive(Debug, Default)]
pub(super) struct Iolog<const VERSION: u8> {
    saw_header: bool,
    clock_us: u64,
    devices: Numbering<Vec<u8>>,
}

impl<const VERSION: u8> Iolog<VERSION> {
    fn header(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let expected: &[u8] = if VERSION == 2 { b"fio version 2 iolog" } else { b"fio version 3 iolog" };
        if line.trim_ascii_end() != expected {
            return Err("the log does not begin with `fio version N iolog`, where N is its version");
        }
        self.saw_header = true;
        Ok(None)
    }

    /// Splits `file action` or `file action offset length` from the end, since file names may have blanks.
    fn call<'a>(&self, line: &'a [u8]) -> Result<Call<'a>, Reason> {
        let mut rest = line;
        let last = take_last_word(&mut rest);
        if matches!(last, b"add" | b"open" | b"close" | b"sync" | b"datasync") && !rest.trim_ascii().is_empty() {
            return Ok(Call { file: rest.trim_ascii(), action: last, offset: 0, length: 0 });
        }
        let length = number(last).ok_or("the line does not end with add, open, close or a length in bytes")?;
        let offset = number(take_last_word(&mut rest)).ok_or("the offset is not a whole number")?;
        let action = take_last_word(&mut rest);
        let file = rest.trim_ascii();
        if file.is_empty() {
            return Err("there are not four fields: file, action, offset, length");
        }
        Ok(Call { file, action, offset, length })
    }
}

struct Call<'a> {
    file: &'a [u8],
    action: &'a [u8],
    offset: u64,
    length: u64,
}

impl<const VERSION: u8> LineParser for Iolog<VERSION> {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if !self.saw_header {
            return self.header(line);
        }
        let mut rest = line;
        let mut time_us = self.clock_us;
        if VERSION == 3 {
            let time_ms = number(take_word(&mut rest)).ok_or("the time is not a whole number of milliseconds")?;
            time_us = time_ms.checked_mul(1000).ok_or("the time does not fit 64 bits")?;
        }
        let call = self.call(rest)?;
        let time_ns = time_us.checked_mul(1000).ok_or("the time does not fit 64 bits")?;
        let action = match call.action {
            b"read" => Action::Read,
            b"write" => Action::Write,
            b"trim" => Action::Discard,
            b"sync" | b"datasync" => {
                return Ok(Some(Request::flush(time_ns).on(self.devices.number(call.file)?)));
            }
            b"wait" if VERSION == 2 => {
                self.clock_us = time_us.checked_add(call.offset).ok_or("the time does not fit 64 bits")?;
                return Ok(None);
            }
            b"add" | b"open" | b"close" => return Ok(None),
            _ => return Err("the action is not add, open, close, read, write, trim, sync, datasync or wait"),
        };
        let request = Request::new(time_ns, action, extent(call.offset, call.length)?);
        Ok(Some(request.on(self.devices.number(call.file)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_log_of_version_2_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 4096, 8192),
            operation(250_000, Action::Read, 0, 512),
            operation(250_000, Action::Flush, 0, 0),
            operation(250_000, Action::Discard, 4096, 4096),
        ];
        expected[1].device = 1;
        expected[3].device = 1;
        assert_eq!(read_sample(samples::FIO_V2, "fio-v2"), expected);
    }

    #[test]
    fn a_log_of_version_3_is_read_field_by_field() {
        let expected = [
            operation(0, Action::Write, 491_520, 4096),
            operation(2_000_000, Action::Read, 0, 4096),
            operation(3_000_000, Action::Flush, 0, 0),
        ];
        assert_eq!(read_sample(samples::FIO_V3, "fio-v3"), expected);
    }

    #[test]
    fn lines_without_a_header_or_a_known_action_are_rejected() {
        assert!(Iolog::<2>::default().parse(b"/dev/sdb write 4096 8192").is_err());
        let mut log = Iolog::<3>::default();
        assert_eq!(log.parse(b"fio version 3 iolog"), Ok(None));
        for wrong in ["/f write 0 512", "1 /f write 0 0", "1 /f erase 0 1", "1 write 0 1", "1 /f wait 5 0", "add"] {
            assert!(log.parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
