//! Google's Thesios: requests to the files of a storage server (ASPLOS'24), with a header of named fields.
//!
//! `file_offset` and `request_io_size_bytes` are bytes, `start_time` seconds since 1970. Each file is a device, as in a
//! log of fio; the stream is the application that owns the file, in order of appearance. A read that the server's cache
//! answered (`cache_hit` is 1) never came to the disk, and is skipped. Source: the traces' README.

use super::fields::{Reason, decimal, extent, number};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use crate::workload::Action;

/// The fields that are read; the last is optional.
const FIELDS: [&[u8]; 7] =
    [b"filename", b"application", b"file_offset", b"op_type", b"request_io_size_bytes", b"start_time", b"cache_hit"];
const OPTIONAL: usize = 6;
/// The most fields of a line.
const MOST_FIELDS: usize = 64;

/// Lines of a trace.
#[derive(Debug, Default)]
pub(super) struct Thesios {
    /// The place of each field in a line.
    places: Option<[usize; FIELDS.len()]>,
    files: Numbering<Vec<u8>>,
    applications: Numbering<Vec<u8>>,
    hits: u64,
}

/// The places of the fields in a header.
fn places_in(header: &[u8]) -> Option<[usize; FIELDS.len()]> {
    let mut places = [usize::MAX; FIELDS.len()];
    for (at, name) in header.split(|byte| *byte == b',').take(MOST_FIELDS).enumerate() {
        if let Some(field) = FIELDS.iter().position(|known| *known == name.trim_ascii()) {
            places[field] = at;
        }
    }
    places[..OPTIONAL].iter().all(|place| *place != usize::MAX).then_some(places)
}

impl LineParser for Thesios {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        // Files that were joined have a header each.
        if let Some(places) = places_in(line) {
            self.places = Some(places);
            return Ok(None);
        }
        let places =
            self.places.ok_or("there is no header with filename, application, file_offset, op_type and others")?;
        let mut fields = [None; FIELDS.len()];
        for (at, field) in line.split(|byte| *byte == b',').take(MOST_FIELDS).enumerate() {
            if let Some(place) = places.iter().position(|place| *place == at) {
                fields[place] = Some(field.trim_ascii());
            }
        }
        let [Some(file), Some(application), Some(offset), Some(kind), Some(size), Some(time), hit] = fields else {
            return Err("there are fewer fields than in the header");
        };
        let action = match kind {
            b"READ" => Action::Read,
            b"WRITE" => Action::Write,
            _ => return Err("op_type is not READ or WRITE"),
        };
        let time_ns = decimal(time, 9).ok_or("start_time is not a number of seconds")?;
        let offset = number(offset).ok_or("file_offset is not a whole number of bytes")?;
        let size = number(size).ok_or("request_io_size_bytes is not a whole number of bytes")?;
        let extent = extent(offset, size)?;
        if action == Action::Read && hit == Some(b"1") {
            self.hits += 1;
            return Ok(None);
        }
        let mut request = Request::new(time_ns, action, extent);
        // More applications than streams share the last one.
        request.operation.stream = u8::try_from(self.applications.number(application)?).unwrap_or(u8::MAX);
        Ok(Some(request.on(self.files.number(file)?)))
    }

    fn notes(&self) -> Vec<String> {
        let note = || format!("{} reads that the server's cache answered were skipped", self.hits);
        (self.hits > 0).then(note).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_trace_is_read_by_the_names_of_its_header() {
        let mut expected =
            vec![operation(0, Action::Write, 8192, 4096), operation(1_500_000, Action::Read, 1 << 20, 513)];
        (expected[1].device, expected[1].stream) = (1, 1);
        assert_eq!(read_sample(samples::THESIOS, "thesios"), expected);
        let mut parser = Thesios::default();
        for line in samples::THESIOS.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            parser.parse(line).unwrap();
        }
        assert_eq!(parser.notes(), ["1 reads that the server's cache answered were skipped"]);
    }

    #[test]
    fn lines_with_wrong_fields_are_rejected() {
        let header = b"filename,application,file_offset,op_type,request_io_size_bytes,start_time";
        for (line, reason) in [
            ("f,a,0,READ,512", "there are fewer fields"),
            ("f,a,0,TRIM,512,1.0", "op_type is not"),
            ("f,a,-1,READ,512,1.0", "file_offset is not"),
            ("f,a,0,READ,x,1.0", "request_io_size_bytes is not"),
            ("f,a,0,READ,0,1.0", "the length is zero"),
            ("f,a,0,READ,512,1e9", "start_time is not"),
        ] {
            let mut parser = Thesios::default();
            assert_eq!(parser.parse(header), Ok(None));
            assert!(parser.parse(line.as_bytes()).unwrap_err().starts_with(reason), "{line}");
            assert!(Thesios::default().parse(line.as_bytes()).unwrap_err().starts_with("there is no header"));
        }
    }
}
