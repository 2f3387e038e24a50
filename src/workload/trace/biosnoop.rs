//! The output of bcc's `biosnoop`, of its version in Python and of that in C.
//!
//! ```text
//! TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
//! 0.000004    supervise      1950   xvda1   W 13092560   4096      0.01    0.74
//! ```
//!
//! The time is that of completion. `T` is `R` or `W` in Python, which prints discards and flushes as `R`, and the
//! kernel's letters in C. `QUE(ms)` is there with `-Q`, and a column of the pattern with `-P`: the header tells. Without
//! a header the columns are those of `-Q` or of no option. The name of a process may have blanks.

use super::fields::{Reason, SECTOR_BYTES, decimal, extent, number, take_last_word, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::rwbs::Letters;
use crate::label::Content;
use crate::workload::Action;

/// The most columns after the name of the process.
const MOST_COLUMNS: usize = 10;

/// The columns after the name of the process, from the left: how many there are, and the places of those that are read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Columns {
    count: usize,
    disk: usize,
    letters: usize,
    sector: usize,
    bytes: usize,
}

impl Columns {
    /// The columns without a header, of this many after the name of the process.
    const fn usual(count: usize) -> Columns {
        Columns { count, disk: 1, letters: 2, sector: 3, bytes: 4 }
    }

    /// The columns of a header.
    fn of(header: &[u8]) -> Result<Columns, Reason> {
        let mut rest = header;
        take_word(&mut rest);
        if take_word(&mut rest) != b"COMM" {
            return Err("the header does not begin with TIME(s) COMM");
        }
        let names: Vec<&[u8]> = std::iter::from_fn(|| Some(take_word(&mut rest)).filter(|word| !word.is_empty()))
            .take(MOST_COLUMNS + 1)
            .collect();
        let place = |name: &[u8]| names.iter().position(|known| *known == name);
        match (place(b"DISK"), place(b"T"), place(b"SECTOR"), place(b"BYTES")) {
            (Some(disk), Some(letters), Some(sector), Some(bytes)) if names.len() <= MOST_COLUMNS => {
                Ok(Columns { count: names.len(), disk, letters, sector, bytes })
            }
            _ => Err("the header has not the columns DISK, T, SECTOR and BYTES"),
        }
    }
}

/// Lines of biosnoop. A device is a disk.
#[derive(Debug, Default)]
pub(super) struct Biosnoop {
    columns: Option<Columns>,
    disks: Numbering<Vec<u8>>,
    without_bytes: u64,
}

/// The fields of a line.
struct Fields<'a> {
    time: &'a [u8],
    process: &'a [u8],
    disk: &'a [u8],
    letters: &'a [u8],
    sector: &'a [u8],
    bytes: &'a [u8],
}

/// True for a number with a fraction, as of a latency; those that were not measured are printed as -1.
fn is_measure(word: &[u8]) -> bool {
    word.contains(&b'.') && decimal(word.strip_prefix(b"-").unwrap_or(word), 9).is_some()
}

/// The fields of a line with these columns.
fn fields(line: &[u8], columns: Columns) -> Option<Fields<'_>> {
    let mut rest = line;
    let time = take_word(&mut rest);
    let mut words = [&b""[..]; MOST_COLUMNS];
    for word in words[..columns.count].iter_mut().rev() {
        *word = take_last_word(&mut rest);
    }
    let fields = Fields {
        time,
        process: rest.trim_ascii(),
        disk: words[columns.disk],
        letters: words[columns.letters],
        sector: words[columns.sector],
        bytes: words[columns.bytes],
    };
    let is_whole = !fields.process.is_empty() && is_measure(words[columns.count - 1]);
    (is_whole && number(fields.sector).is_some() && number(fields.bytes).is_some()).then_some(fields)
}

impl Biosnoop {
    fn request(&mut self, fields: &Fields<'_>) -> Result<Option<Request>, Reason> {
        let time_ns = decimal(fields.time, 9).ok_or("the time is not a number of seconds")?;
        let sector = number(fields.sector).ok_or("the sector is not a whole number")?;
        let bytes = number(fields.bytes).ok_or("the bytes are not a whole number")?;
        let letters = Letters::parse(fields.letters)?;
        if bytes == 0 && !letters.flush_before {
            self.without_bytes += 1;
            return Ok(None);
        }
        let device = self.disks.number(fields.disk)?;
        let Some(action) = letters.action.filter(|_| bytes > 0) else {
            return Ok(letters.flush_before.then(|| Request::flush(time_ns).on(device)));
        };
        let offset = sector.checked_mul(SECTOR_BYTES).ok_or("the address in bytes does not fit 64 bits")?;
        let mut request = Request::new(time_ns, action, extent(offset, bytes)?);
        request.flush_before = letters.flush_before;
        if letters.metadata {
            let is_journal = fields.process.starts_with(b"jbd2/") && action == Action::Write;
            request.operation.content = if is_journal { Content::Journal } else { Content::Metadata };
        }
        Ok(Some(request.on(device)))
    }
}

impl LineParser for Biosnoop {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if line.starts_with(b"TIME(s)") {
            self.columns = Some(Columns::of(line)?);
            return Ok(None);
        }
        let fields = match self.columns {
            Some(columns) => fields(line, columns),
            None => fields(line, Columns::usual(6)).or_else(|| fields(line, Columns::usual(7))),
        };
        let fields = fields.ok_or("there are not the columns time, process, pid, disk, T, sector, bytes, latency")?;
        self.request(&fields)
    }

    fn notes(&self) -> Vec<String> {
        let note = || {
            format!(
                "{} requests without bytes were skipped: flushes, or commands that transfer nothing, which this \
                 biosnoop does not tell apart",
                self.without_bytes
            )
        };
        (self.without_bytes > 0).then(note).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;
    use crate::workload::Operation;

    fn expected() -> Vec<Operation> {
        let mut expected = vec![
            operation(0, Action::Write, 13_092_560 * 512, 4096),
            operation(174_000, Action::Read, 16 * 512, 512),
            operation(1_465_000, Action::Write, 24 * 512, 8192),
        ];
        expected[1].device = 1;
        expected
    }

    #[test]
    fn the_output_of_the_version_in_python_is_read_field_by_field() {
        assert_eq!(read_sample(samples::BIOSNOOP, "biosnoop"), expected());
    }

    #[test]
    fn the_output_of_the_version_in_c_has_letters_and_times_in_the_queue() {
        let mut expected = expected();
        expected[2].content = Content::Journal;
        expected.insert(2, operation(1_465_000, Action::Flush, 0, 0));
        expected.push(operation(2_000_000, Action::Flush, 0, 0));
        expected.push(operation(3_000_000, Action::Discard, 0, 1 << 20));
        assert_eq!(read_sample(samples::BIOSNOOP_C, "biosnoop"), expected);
    }

    #[test]
    fn a_header_may_be_missing_and_have_other_columns() {
        let without = samples::BIOSNOOP.split_inclusive(|byte| *byte == b'\n').skip(1).collect::<Vec<_>>().concat();
        assert_eq!(read_sample(&without, "biosnoop"), expected());
        let with_pattern = b"TIME(s)  COMM  PID DISK T P SECTOR BYTES QUE(ms) LAT(ms)
0.5 a b 7 sda W S 8 4096 0.10 0.20
";
        assert_eq!(read_sample(with_pattern, "biosnoop"), [operation(0, Action::Write, 4096, 4096)]);
    }

    #[test]
    fn requests_without_bytes_are_counted() {
        let mut parser = Biosnoop::default();
        assert_eq!(parser.parse(b"1.0 jbd2/sda-8 7 sda R 0 0 0.10"), Ok(None));
        assert!(parser.notes()[0].contains("1 requests without bytes"));
    }

    #[test]
    fn lines_with_wrong_fields_are_rejected() {
        for wrong in [
            "1.0 a 7 sda W 8 4096",
            "1.0 7 sda W 8 4096 0.10",
            "x a 7 sda W 8 4096 0.10",
            "1.0 a 7 sda Q 8 4096 0.10",
            "1.0 a 7 sda W -8 4096 0.10",
            "1.0 a 7 sda W 18446744073709551615 4096 0.10",
            "1.0 ? 0 R 0 4096 0.10",
            "TIME(s) COMM PID DISK LAT(ms)",
            "TIME(s) PID",
        ] {
            assert!(Biosnoop::default().parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
