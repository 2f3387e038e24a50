//! Rejected lines and records: all counted, the first kept.

use std::fmt;

/// The number of rejected lines or records kept.
pub const KEPT_REJECTIONS: usize = 5;
/// The number of bytes shown of a rejected line.
const SHOWN_BYTES: usize = 80;

/// A place in a decompressed trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A record of a fixed size, or a row, counted from 1.
    Record(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(formatter, "line {number}"),
            Place::Record(number) => write!(formatter, "record {number}"),
            Place::Byte(offset) => write!(formatter, "byte {offset}"),
        }
    }
}

/// A rejected line or record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The place.
    pub place: Place,
    /// The reason.
    pub reason: String,
    /// The escaped beginning of the line; empty for binary records.
    pub excerpt: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.reason)?;
        if !self.excerpt.is_empty() {
            write!(formatter, ": `{}`", self.excerpt)?;
        }
        Ok(())
    }
}

/// The rejections of one reader.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    pub count: u64,
    pub first: Vec<Rejected>,
}

impl Rejections {
    #[cold]
    pub fn add(&mut self, place: Place, reason: &str, line: &[u8]) {
        self.count += 1;
        if self.first.len() < KEPT_REJECTIONS {
            let shown = &line[..line.len().min(SHOWN_BYTES)];
            let ellipsis = if shown.len() < line.len() { "..." } else { "" };
            let excerpt = format!("{}{ellipsis}", shown.escape_ascii());
            self.first.push(Rejected { place, reason: reason.to_string(), excerpt });
        }
    }
}
