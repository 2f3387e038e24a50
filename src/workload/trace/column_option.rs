//! The description of a text's columns by the user: `time=1,op=3,offset=4,size=5,unit=sector`.

use super::delimited::Delimiter;
use super::fields::SECTOR_BYTES;
use crate::units::parse_size;
use crate::workload::Action;
use std::fmt;

/// The highest number of a column.
const MOST_COLUMNS: usize = 1000;
/// The most lines before the first request.
const MOST_HEADER_LINES: u64 = 1_000_000;

/// A column of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Counted from 0; users count from 1.
    Number(usize),
    /// The name in the last line of the header.
    Named(String),
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source<T> {
    Column(Column),
    /// The same for all requests.
    Always(T),
}

/// A unit of time: the number of decimal places by which its numbers are scaled to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeUnit {
    pub places: u32,
    /// The reason for rejecting what is no such number.
    pub reason: &'static str,
}

/// The words for units of time.
const TIME_UNITS: [(&str, TimeUnit); 5] = [
    ("s", TimeUnit { places: 9, reason: "the time is not a number of seconds, or does not fit 64 bits in ns" }),
    ("ms", TimeUnit { places: 6, reason: "the time is not a number of milliseconds, or does not fit 64 bits in ns" }),
    ("us", TimeUnit { places: 3, reason: "the time is not a number of microseconds, or does not fit 64 bits in ns" }),
    ("100ns", TimeUnit { places: 2, reason: "the time is not a number of 100 ns, or does not fit 64 bits in ns" }),
    ("ns", TimeUnit { places: 0, reason: "the time is not a number of nanoseconds" }),
];

/// The words for delimiters.
const DELIMITERS: [(&str, Delimiter); 5] = [
    ("comma", Delimiter::Byte(b',')),
    ("tab", Delimiter::Byte(b'\t')),
    ("semicolon", Delimiter::Byte(b';')),
    ("pipe", Delimiter::Byte(b'|')),
    ("space", Delimiter::Blanks),
];

/// The words for operations, in `op=` and for words of the trace.
const ACTIONS: [(&str, Action); 4] =
    [("read", Action::Read), ("write", Action::Write), ("discard", Action::Discard), ("flush", Action::Flush)];

/// The keys, for messages.
const KEYS: &str = "time, time-unit, op, read, write, discard, flush, offset, size, unit, offset-unit, size-unit, device, \
                    stream, delimiter and header";

/// A description of a text's columns, by which its requests are read. See `docs/traces.md`.
///
/// Columns are counted from 1, or named as in the header.
///
/// ```
/// use flashpath::workload::trace::Columns;
/// assert!(Columns::parse("time=1,op=3,offset=4,size=5,unit=sector").is_ok());
/// assert!(Columns::parse("time=1,op=3").unwrap_err().contains("offset"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    text: String,
    pub(super) time: Option<Column>,
    pub(super) time_unit: TimeUnit,
    pub(super) op: Source<Action>,
    /// Words of operations besides the usual ones, in lower case.
    pub(super) words: Vec<(Vec<u8>, Action)>,
    pub(super) offset: Column,
    pub(super) offset_unit_bytes: u64,
    /// A constant is in bytes.
    pub(super) size: Source<u64>,
    pub(super) size_unit_bytes: u64,
    pub(super) device: Option<Column>,
    pub(super) stream: Option<Column>,
    /// `None`: the one that splits the first line into enough fields.
    pub(super) delimiter: Option<Delimiter>,
    /// The number of lines before the first request; `None`: a first line without an address.
    pub(super) header: Option<u64>,
}

/// The value of a word in a table.
fn named<T: Copy>(table: &[(&str, T)], key: &str, value: &str) -> Result<T, String> {
    table.iter().find(|(name, _)| *name == value).map(|(_, found)| *found).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        format!("{key}={value}: expected one of {}", names.join(", "))
    })
}

/// A column's number or name.
fn column(key: &str, value: &str) -> Result<Column, String> {
    if !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Column::Named(value.to_string()));
    }
    let number = value.parse().ok().filter(|number| (1..=MOST_COLUMNS).contains(number));
    let number = number.ok_or_else(|| format!("{key}={value}: columns are counted from 1 to {MOST_COLUMNS}"))?;
    Ok(Column::Number(number - 1))
}

/// Bytes of a unit.
fn unit(key: &str, value: &str) -> Result<u64, String> {
    let bytes = match value {
        "byte" | "bytes" => Some(1),
        "sector" | "sectors" => Some(SECTOR_BYTES),
        size => parse_size(size).filter(|bytes| *bytes > 0),
    };
    bytes.ok_or_else(|| format!("{key}={value}: expected byte, sector (512 bytes) or a size, such as 4K"))
}

impl Columns {
    /// Parses a description. The error says which key is wrong, and what is expected.
    pub fn parse(text: &str) -> Result<Columns, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("{part}: expected KEY=VALUE, as in time=1"))?;
            if value.is_empty() {
                return Err(format!("{key}: the value after = is missing"));
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(format!("{key} is given twice"));
            }
            pairs.push((key, value));
        }
        let mut taken = 0;
        let mut get = |key: &'static str| {
            let found = pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
            taken += usize::from(found.is_some());
            found
        };
        let required = |key, value: Option<_>| {
            value.ok_or_else(|| format!("{key}= is missing: time=1,op=2,offset=3,size=4 is whole"))
        };
        let both = get("unit").map(|value| unit("unit", value)).transpose()?.unwrap_or(1);
        let unit_of = |key, value: Option<&str>| value.map(|value| unit(key, value)).transpose();
        let optional = |key, value: Option<&str>| value.map(|value| column(key, value)).transpose();
        let mut words = Vec::new();
        for (name, action) in ACTIONS {
            let listed = get(name).into_iter().flat_map(|list| list.split(':'));
            words.extend(listed.map(|word| (word.to_ascii_lowercase().into_bytes(), action)));
        }
        let op = required("op", get("op"))?;
        let op = match ACTIONS.iter().find(|(name, _)| *name == op) {
            Some((_, action @ (Action::Read | Action::Write | Action::Discard))) => Source::Always(*action),
            Some(_) => return Err("op=flush: a trace of flushes alone has no addresses".to_string()),
            None => Source::Column(column("op", op)?),
        };
        let size = required("size", get("size"))?;
        // A number is a column; with a letter after it, it is a size.
        let is_constant = !size.bytes().all(|byte| byte.is_ascii_digit());
        let size = match parse_size(size).filter(|_| is_constant) {
            Some(0) => return Err(format!("size={size}: a request has bytes")),
            Some(bytes) => Source::Always(bytes),
            None => Source::Column(column("size", size)?),
        };
        let columns = Columns {
            text: text.to_string(),
            time: optional("time", get("time"))?,
            time_unit: named(&TIME_UNITS, "time-unit", get("time-unit").unwrap_or("s"))?,
            op,
            words,
            offset: column("offset", required("offset", get("offset"))?)?,
            offset_unit_bytes: unit_of("offset-unit", get("offset-unit"))?.unwrap_or(both),
            size,
            size_unit_bytes: unit_of("size-unit", get("size-unit"))?.unwrap_or(both),
            device: optional("device", get("device"))?,
            stream: optional("stream", get("stream"))?,
            delimiter: get("delimiter").map(|value| named(&DELIMITERS, "delimiter", value)).transpose()?,
            header: get("header").map(header).transpose()?,
        };
        if taken < pairs.len() {
            let unknown = pairs.iter().find(|(key, _)| !KEYS.split([',', ' ']).any(|known| known == *key));
            let unknown = unknown.map_or("a key", |(key, _)| key);
            return Err(format!("{unknown} is unknown: the keys are {KEYS}"));
        }
        columns.check()?;
        Ok(columns)
    }

    /// Refuses values that contradict each other.
    fn check(&self) -> Result<(), String> {
        if self.time.is_none() && self.text.contains("time-unit=") {
            return Err("time-unit= is given without time=".to_string());
        }
        if matches!(self.op, Source::Always(_)) && !self.words.is_empty() {
            return Err("words of operations are given, and op= is one for all requests: name the column".to_string());
        }
        if matches!(self.size, Source::Always(_)) && self.text.contains("size-unit=") {
            return Err("size-unit= is given, and size= is in bytes, the same for all requests".to_string());
        }
        for (at, (word, action)) in self.words.iter().enumerate() {
            if self.words[..at].iter().any(|(other, of)| other == word && of != action) {
                return Err(format!("{} is the word of two operations", word.escape_ascii()));
            }
        }
        if self.header == Some(0) && self.all().any(|column| matches!(column, Column::Named(_))) {
            return Err("columns are named, and header=0 says that the text has no names".to_string());
        }
        Ok(())
    }

    /// All columns that are read.
    pub(super) fn all(&self) -> impl Iterator<Item = &Column> {
        let op = if let Source::Column(column) = &self.op { Some(column) } else { None };
        let size = if let Source::Column(column) = &self.size { Some(column) } else { None };
        [self.time.as_ref(), op, Some(&self.offset), size, self.device.as_ref(), self.stream.as_ref()]
            .into_iter()
            .flatten()
    }

    /// The text that describes them.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

/// The number of lines of a header.
fn header(value: &str) -> Result<u64, String> {
    let lines = value.parse().ok().filter(|lines| *lines <= MOST_HEADER_LINES);
    lines.ok_or_else(|| format!("header={value}: expected a number of lines, at most {MOST_HEADER_LINES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_key_by_key() {
        let columns = Columns::parse("time=1,op=3,offset=4,size=5,unit=sector").unwrap();
        assert_eq!(columns.time, Some(Column::Number(0)));
        assert_eq!(columns.time_unit.places, 9);
        assert_eq!((columns.op, columns.offset), (Source::Column(Column::Number(2)), Column::Number(3)));
        assert_eq!(columns.size, Source::Column(Column::Number(4)));
        assert_eq!((columns.offset_unit_bytes, columns.size_unit_bytes), (512, 512));
        assert_eq!((columns.device, columns.stream, columns.delimiter, columns.header), (None, None, None, None));

        let text = "op=write, offset=LBA, offset-unit=sector, size=4K, delimiter=tab, header=2, device=7";
        let columns = Columns::parse(text).unwrap();
        assert_eq!((columns.op, columns.size), (Source::Always(Action::Write), Source::Always(4096)));
        assert_eq!(columns.offset, Column::Named("LBA".to_string()));
        assert_eq!((columns.offset_unit_bytes, columns.size_unit_bytes), (512, 1));
        assert_eq!((columns.delimiter, columns.header), (Some(Delimiter::Byte(b'\t')), Some(2)));

        let columns =
            Columns::parse("time=1,time-unit=100ns,op=2,read=28:88,write=2A,offset=3,size=4,stream=5").unwrap();
        assert_eq!(columns.time_unit.places, 2);
        let words: Vec<(&[u8], Action)> = columns.words.iter().map(|(word, action)| (&word[..], *action)).collect();
        assert_eq!(words, [(&b"28"[..], Action::Read), (b"88", Action::Read), (b"2a", Action::Write)]);
    }

    #[test]
    fn errors_name_the_key_and_what_is_right() {
        for (text, part) in [
            ("", "op= is missing: time=1,op=2,offset=3,size=4"),
            ("time=1,op=2,size=3", "offset= is missing"),
            ("time=1,op=2,offset=3", "size= is missing"),
            ("time,op=2", "time: expected KEY=VALUE"),
            ("op=2,op=3,offset=1,size=4", "op is given twice"),
            ("op=,offset=1,size=4", "op: the value after = is missing"),
            ("op=0,offset=1,size=4", "op=0: columns are counted from 1"),
            ("op=1001,offset=1,size=4", "from 1 to 1000"),
            ("op=1,offset=2,size=3,unit=block", "unit=block: expected byte, sector"),
            ("op=1,offset=2,size=3,unit=0", "unit=0: expected"),
            ("op=1,offset=2,size=0K", "size=0K: a request has bytes"),
            ("op=1,offset=2,size=3,time=4,time-unit=min", "expected one of s, ms, us, 100ns, ns"),
            ("op=1,offset=2,size=3,time-unit=s", "without time="),
            ("op=1,offset=2,size=3,delimiter=x", "expected one of comma, tab"),
            ("op=1,offset=2,size=3,header=x", "header=x: expected a number"),
            ("op=1,offset=2,size=3,lba=7", "lba is unknown: the keys are time, time-unit"),
            ("op=flush,offset=2,size=3", "a trace of flushes"),
            ("op=write,write=1,offset=2,size=3", "name the column"),
            ("op=1,read=1,write=1,offset=2,size=3", "1 is the word of two operations"),
            ("op=1,offset=2,size=4K,size-unit=sector", "size-unit= is given"),
            ("op=type,offset=2,size=3,header=0", "header=0 says"),
        ] {
            let error = Columns::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
