//! Lines of a text whose columns the user describes.

use super::column_option::{Column, Columns, Source};
use super::delimited::{Delimiter, fields};
use super::fields::{Reason, decimal, extent, hexadecimal, number};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::operation_words::action_of;
use crate::workload::Action;
use std::collections::BTreeMap;

/// The number of unknown words, or of names in a header, that are kept for messages.
const MOST_NAMES: usize = 20;
const LONGEST_NAME: usize = 64;
/// The numbers of the columns that are read, from 0.
#[derive(Clone, Copy, Debug)]
struct Places {
    time: Option<usize>,
    op: Option<usize>,
    offset: usize,
    size: Option<usize>,
    device: Option<usize>,
    stream: Option<usize>,
    /// One more than the highest of them.
    count: usize,
}

/// The parser of a described text. A device is each text in the column `device`.
#[derive(Debug)]
pub(super) struct ColumnLines {
    columns: Columns,
    places: Option<Places>,
    delimiter: Option<Delimiter>,
    /// Lines of the header to come; `None`: it is not known if there is one.
    header_lines: Option<u64>,
    /// The names of a header in which a column was not found.
    names: Vec<String>,
    devices: Numbering<Vec<u8>>,
    unknown_words: BTreeMap<Vec<u8>, u64>,
}

/// A whole number in decimal digits, or in hexadecimal ones after `0x`.
fn whole(field: &[u8]) -> Option<u64> {
    if field.starts_with(b"0x") { hexadecimal(field) } else { number(field) }
}

impl ColumnLines {
    pub fn new(columns: Columns) -> ColumnLines {
        let mut lines = ColumnLines {
            places: None,
            delimiter: columns.delimiter,
            header_lines: columns.header,
            names: Vec::new(),
            devices: Numbering::default(),
            unknown_words: BTreeMap::new(),
            columns,
        };
        if lines.columns.all().any(|column| matches!(column, Column::Named(_))) {
            lines.header_lines = lines.header_lines.or(Some(1));
        } else {
            lines.places = lines.places_in(&[]);
        }
        lines
    }

    /// The places of the columns in a header with these names; `None` if one is missing.
    fn places_in(&self, names: &[&[u8]]) -> Option<Places> {
        let place = |column: &Column| match column {
            Column::Number(number) => Some(*number),
            Column::Named(name) => names.iter().position(|known| known.eq_ignore_ascii_case(name.as_bytes())),
        };
        let columns = &self.columns;
        let optional = |column: Option<&Column>| column.map_or(Some(None), |column| place(column).map(Some));
        let op = if let Source::Column(column) = &columns.op { Some(column) } else { None };
        let size = if let Source::Column(column) = &columns.size { Some(column) } else { None };
        let mut places = Places {
            time: optional(columns.time.as_ref())?,
            op: optional(op)?,
            offset: place(&columns.offset)?,
            size: optional(size)?,
            device: optional(columns.device.as_ref())?,
            stream: optional(columns.stream.as_ref())?,
            count: 0,
        };
        let all = [places.time, places.op, Some(places.offset), places.size, places.device, places.stream];
        places.count = all.into_iter().flatten().max().map_or(0, |last| last + 1);
        Some(places)
    }

    /// Takes the names of the columns from the last line of a header.
    fn name_columns(&mut self, line: &[u8]) -> Result<(), Reason> {
        let line = line.trim_ascii_start();
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let delimiters = self.delimiter.map_or(Delimiter::ALL.to_vec(), |delimiter| vec![delimiter]);
        for delimiter in delimiters {
            let names: Vec<&[u8]> = fields(line, delimiter).collect();
            if let Some(places) = self.places_in(&names) {
                (self.places, self.delimiter) = (Some(places), Some(delimiter));
                return Ok(());
            }
            if self.names.len() < names.len() {
                let shown = names.iter().take(MOST_NAMES).map(|name| &name[..name.len().min(LONGEST_NAME)]);
                self.names = shown.map(|name| name.escape_ascii().to_string()).collect();
            }
        }
        Err("the header has not all columns that are named")
    }

    /// True if the line is one of the header, which is taken.
    fn takes_header(&mut self, line: &[u8]) -> Result<bool, Reason> {
        match self.header_lines {
            Some(0) => Ok(false),
            Some(lines) => {
                self.header_lines = Some(lines - 1);
                if lines == 1 && self.places.is_none() {
                    self.name_columns(line)?;
                }
                Ok(true)
            }
            None => {
                self.header_lines = Some(0);
                // Names are no addresses.
                let delimiter = self.delimiter_of(line);
                let offset = self.places.and_then(|places| fields(line, delimiter).nth(places.offset));
                let is_name = |field: &[u8]| !field.is_empty() && !field.iter().any(u8::is_ascii_digit);
                let is_header = offset.is_some_and(is_name);
                if is_header {
                    self.delimiter = self.columns.delimiter;
                }
                Ok(is_header)
            }
        }
    }

    /// The delimiter: the one given, or the first that splits this line into enough fields, which is kept.
    fn delimiter_of(&mut self, line: &[u8]) -> Delimiter {
        if let Some(delimiter) = self.delimiter {
            return delimiter;
        }
        let wanted = self.places.map_or(0, |places| places.count);
        let splits = |delimiter: &Delimiter| fields(line, *delimiter).nth(wanted.saturating_sub(1)).is_some();
        // A single column is a line of any delimiter.
        let found = if wanted > 1 { Delimiter::ALL.into_iter().find(splits) } else { None };
        if found.is_some() {
            self.delimiter = found;
        }
        found.unwrap_or(Delimiter::Blanks)
    }

    fn note_unknown(&mut self, word: &[u8]) {
        let word = &word[..word.len().min(LONGEST_NAME)];
        if let Some(count) = self.unknown_words.get_mut(word) {
            *count += 1;
        } else if self.unknown_words.len() < MOST_NAMES {
            self.unknown_words.insert(word.to_vec(), 1);
        }
    }

    /// The request of a line of data.
    fn request(&mut self, line: &[u8], places: Places) -> Result<Request, Reason> {
        let delimiter = self.delimiter_of(line);
        let [mut time, mut op, mut offset, mut size, mut device, mut stream] = [&b""[..]; 6];
        let mut found = 0;
        for (at, field) in fields(line, delimiter).take(places.count).enumerate() {
            found = at + 1;
            for (place, slot) in [
                (places.time, &mut time),
                (places.op, &mut op),
                (Some(places.offset), &mut offset),
                (places.size, &mut size),
                (places.device, &mut device),
                (places.stream, &mut stream),
            ] {
                if place == Some(at) {
                    *slot = field;
                }
            }
        }
        if found < places.count {
            return Err("there are fewer fields than the columns need: perhaps the delimiter is another");
        }
        let time_ns = match places.time {
            Some(_) => decimal(time, self.columns.time_unit.places).ok_or(self.columns.time_unit.reason)?,
            None => 0,
        };
        let action = match &self.columns.op {
            Source::Always(action) => *action,
            Source::Column(_) => match action_of(op, &self.columns.words) {
                Some(action) => action,
                None => {
                    self.note_unknown(op);
                    return Err("the operation is no known word: name it by read=, write=, discard= or flush=");
                }
            },
        };
        let mut request = if action == Action::Flush {
            Request::flush(time_ns)
        } else {
            let offset = whole(offset).ok_or("the offset is not a whole number")?;
            let offset = offset.checked_mul(self.columns.offset_unit_bytes);
            let offset = offset.ok_or("the address in bytes does not fit 64 bits")?;
            let size = match &self.columns.size {
                Source::Always(bytes) => Some(*bytes),
                Source::Column(_) => {
                    let size = whole(size).ok_or("the size is not a whole number")?;
                    size.checked_mul(self.columns.size_unit_bytes)
                }
            };
            let size = size.ok_or("the length in bytes does not fit 64 bits")?;
            Request::new(time_ns, action, extent(offset, size)?)
        };
        if places.stream.is_some() {
            let stream = number(stream).and_then(|stream| u8::try_from(stream).ok());
            request.operation.stream = stream.ok_or("the stream is not a whole number up to 255")?;
        }
        let device = if places.device.is_some() { self.devices.number(device)? } else { 0 };
        Ok(request.on(device))
    }
}

/// The shortest description, of a trace of reads and writes; a reader has the user's.
impl Default for ColumnLines {
    fn default() -> ColumnLines {
        ColumnLines::new(Columns::parse("op=1,offset=2,size=3").expect("it is whole"))
    }
}

impl LineParser for ColumnLines {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if self.header_lines != Some(0) {
            let is_comment = self.header_lines.is_none() && line.trim_ascii_start().starts_with(b"#");
            if is_comment || self.takes_header(line)? {
                return Ok(None);
            }
        }
        if line.trim_ascii_start().starts_with(b"#") {
            return Ok(None);
        }
        match self.places {
            Some(places) => self.request(line, places).map(Some),
            None => Err("the header has not all columns that are named"),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.places.is_none() && !self.names.is_empty() {
            let named = self.columns.all().filter_map(|column| match column {
                Column::Named(name) if !self.names.iter().any(|known| known.eq_ignore_ascii_case(name)) => {
                    Some(&**name)
                }
                _ => None,
            });
            let missing: Vec<&str> = named.collect();
            notes.push(format!(
                "the header has the columns {}, and not {}; header=N tells how many lines the header has",
                self.names.join(", "),
                missing.join(", ")
            ));
        }
        if !self.unknown_words.is_empty() {
            let words: Vec<String> =
                self.unknown_words.iter().map(|(word, count)| format!("{} ({count})", word.escape_ascii())).collect();
            notes.push(format!(
                "words of operations that are not known: {}; name them in the columns, as in read=0,write=1",
                words.join(", ")
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{operation, reader_of};
    use super::super::{TraceOptions, samples};
    use super::*;
    use crate::workload::Operation;

    /// The operations of a text by these columns, and the notes and rejections.
    fn read(text: &[u8], columns: &str) -> (Result<Vec<Operation>, String>, Vec<String>) {
        let columns = Some(Columns::parse(columns).unwrap());
        let mut reader = reader_of(text, TraceOptions { columns, ..TraceOptions::default() });
        assert_eq!(reader.format().name(), "columns");
        let mut operations = Vec::new();
        let read = reader.read_batch(&mut operations, 1000).map(|_| operations).map_err(|error| error.to_string());
        let rejected = reader.first_rejected().iter().map(ToString::to_string);
        (read, reader.notes().into_iter().chain(rejected).collect())
    }

    fn expected() -> Vec<Operation> {
        let mut expected = vec![
            operation(0, Action::Write, 4096, 8192),
            operation(500_000, Action::Read, 512, 512),
            operation(1_000_000, Action::Flush, 0, 0),
            operation(2_000_000, Action::Discard, 0, 1 << 20),
        ];
        expected[1].device = 1;
        expected
    }

    #[test]
    fn every_delimiter_is_found_or_given() {
        let columns = "time=1,op=3,offset=4,size=5,unit=sector,device=2";
        for delimiter in [",", ", ", "\t", ";", "|", " ", "   "] {
            let text = String::from_utf8(samples::COLUMNS.to_vec()).unwrap().replace(',', delimiter);
            for text in [
                text.clone(),
                text.replace('\n', "\r\n"),
                format!("a{delimiter}b{delimiter}c{delimiter}d{delimiter}e\n{text}"),
            ] {
                assert_eq!(read(text.as_bytes(), columns), (Ok(expected()), Vec::new()), "{text}");
            }
        }
        let mixed = b"1 8,0 W 8 8\n2 8,16 R 16 8\n";
        let (found, told) = read(mixed, "time=1,device=2,op=3,offset=4,size=5,unit=512,delimiter=space");
        assert_eq!((found.unwrap().len(), told), (2, Vec::new()));
    }

    #[test]
    fn columns_are_named_by_the_last_line_of_the_header() {
        let columns = "time=TIME,time-unit=s,op=type,offset=lba,size=n,unit=sector,device=disk";
        for header in
            ["Time,disk,Type,LBA,n\n", "#time,disk,type,lba,n\n", "\"time\",\"disk\",\"type\",\"lba\",\"n\"\n"]
        {
            let text = [header.as_bytes(), samples::COLUMNS].concat();
            assert_eq!(read(&text, columns), (Ok(expected()), Vec::new()), "{header}");
        }
        let text = [b"made by a tool\n\n# one more\ntime,disk,type,lba,n\n", samples::COLUMNS].concat();
        assert_eq!(read(&text, &format!("{columns},header=3")), (Ok(expected()), Vec::new()));
        let (found, _) = read(b"time,disk,kind,lba,n\n1,a,W,8,8\n", columns);
        let error = found.unwrap_err();
        assert!(error.contains("the header has the columns time, disk, kind, lba, n, and not type"), "{error}");
    }

    #[test]
    fn units_and_constants_scale_offsets_and_sizes() {
        let first = |text: &str, columns: &str| {
            let operations = read(text.as_bytes(), columns).0.unwrap();
            (operations[0].offset_bytes, operations[0].length_bytes)
        };
        assert_eq!(first("7 W 0x10 3", "op=2,offset=3,size=4,unit=4K"), (65536, 12288));
        assert_eq!(first("7 W 16 513", "op=2,offset=3,offset-unit=sector,size=4"), (8192, 513));
        assert_eq!(first("16", "op=write,offset=1,size=16K,unit=16K"), (262_144, 16384));
        for (unit, text, span) in [
            ("s", "1.5", 1_500_000_000),
            ("ms", "1.5", 1_500_000),
            ("us", "7", 7000),
            ("100ns", "3", 300),
            ("ns", "3", 3),
        ] {
            let text = format!("0,W,0,1\n{text},W,0,1\n");
            let (found, _) = read(text.as_bytes(), &format!("time=1,time-unit={unit},op=2,offset=3,size=4"));
            assert_eq!(found.unwrap()[1].time_ns, span, "{unit}");
        }
    }

    #[test]
    fn words_of_operations_are_the_usual_ones_and_those_given() {
        let actions = |words: &str, columns: &str| {
            let text: String = words.split(' ').map(|word| format!("{word},0,1\n")).collect();
            let found = read(text.as_bytes(), &format!("op=1,offset=2,size=3{columns}")).0.unwrap();
            found.iter().map(|operation| operation.action).collect::<Vec<_>>()
        };
        use Action::{Discard, Flush, Read, Write};
        assert_eq!(
            actions("R w READ Write TRIM flush WS RA", ""),
            [Read, Write, Read, Write, Discard, Flush, Write, Read]
        );
        assert_eq!(actions("0 1 r", ",read=0,write=1"), [Read, Write, Read]);
        assert_eq!(actions("28 2A 88 r", ",read=28:88,write=2a:r"), [Read, Write, Read, Write]);
        let (found, told) = read(b"W,0,1\n7,0,1\n7,0,1\nx,0,1\n", "op=1,offset=2,size=3");
        assert_eq!(found.unwrap().len(), 1);
        assert!(
            told[0].contains("not known: 7 (2), x (1); name them in the columns, as in read=0,write=1"),
            "{told:?}"
        );
        assert!(told[1].contains("line 2: the operation is no known word"), "{told:?}");
    }

    #[test]
    fn lines_that_are_wrong_are_told_with_the_reason() {
        let columns = "time=1,op=2,offset=3,size=4,unit=sector,stream=5";
        for (line, reason) in [
            ("2,W,0,8", "fewer fields than the columns need"),
            ("x,W,0,8,0", "the time is not a number of seconds"),
            ("2,W,-8,8,0", "the offset is not a whole number"),
            ("2,W,8.5,8,0", "the offset is not a whole number"),
            ("2,W,8,,0", "the size is not a whole number"),
            ("2,W,8,0,0", "the length is zero"),
            ("2,W,36028797018963968,8,0", "the address in bytes does not fit 64 bits"),
            ("2,W,8,36028797018963968,0", "the length in bytes does not fit 64 bits"),
            ("2,W,8,8,256", "the stream is not a whole number up to 255"),
        ] {
            let text = format!("1,W,0,8,3\n{line}\n");
            let (found, told) = read(text.as_bytes(), columns);
            let found = found.unwrap();
            assert_eq!((found.len(), found[0].stream), (1, 3));
            assert!(told.iter().any(|line| line.contains("line 2") && line.contains(reason)), "{line}: {told:?}");
        }
    }

    #[test]
    fn quoted_fields_may_have_delimiters() {
        let (found, told) = read(b"\"a,b\",\"W\",\"8\", \"16\"\n", "device=1,op=2,offset=3,size=4");
        assert_eq!((found.unwrap(), told), (vec![operation(0, Action::Write, 8, 16)], Vec::new()));
    }
}
