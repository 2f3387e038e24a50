//! A format of traces: a row of the table by which traces are recognised and read.

use super::intake::Intake;
use super::lines::{LineParser, Lines, Parsed};
use super::open::Input;
use super::records::RecordReader;
use super::stage::Stage;
use std::fmt;

/// A format of traces. `docs/traces.md` has a sample line of each.
///
/// A caller can add formats of text lines: [`Format::lines`] in a table of its own
/// ([`TraceOptions::formats`](super::TraceOptions::formats)).
#[derive(Clone, Copy)]
pub struct Format {
    name: &'static str,
    pub(super) records: Records,
    /// True if the format records each request at several stages.
    pub(super) has_stages: bool,
    /// True if times begin at zero by definition.
    pub(super) times_from_zero: bool,
    /// True if it is never recognised, because another format has the same lines.
    pub(super) by_name_alone: bool,
    /// A note for the user if it was recognised.
    pub(super) note: Option<&'static str>,
}

/// The records of a format: how they are recognised and read.
#[derive(Clone, Copy)]
pub(super) enum Records {
    /// Lines of text, recognised by the share of the first lines that the parser accepts.
    Lines(fn(Stage) -> Box<dyn Lines>),
    /// Binary records, recognised by their first bytes.
    Binary {
        begins: fn(&[u8]) -> bool,
        /// The earliest stage of the requests at the beginning of the file.
        earliest_stage: fn(&[u8]) -> Option<Stage>,
        open: fn(Input, Intake, Stage) -> Box<dyn RecordReader>,
    },
    /// Lines of text with columns that the user describes.
    Described,
    /// Columns of a Parquet file.
    Parquet,
    /// None: the format is recognised and refused.
    Refused { begins: fn(&[u8]) -> bool, why: &'static str },
}

fn parsed<P: LineParser>(stage: Stage) -> Box<dyn Lines> {
    let mut parser = P::default();
    parser.take_stage(stage);
    Box::new(Parsed(parser))
}

impl Format {
    const fn of(name: &'static str, records: Records) -> Format {
        Format { name, records, has_stages: false, times_from_zero: false, by_name_alone: false, note: None }
    }

    /// A format of text lines.
    pub const fn lines<P: LineParser>(name: &'static str) -> Format {
        Format::of(name, Records::Lines(parsed::<P>))
    }

    pub(super) const fn binary(
        name: &'static str,
        begins: fn(&[u8]) -> bool,
        open: fn(Input, Intake, Stage) -> Box<dyn RecordReader>,
    ) -> Format {
        Format::of(name, Records::Binary { begins, earliest_stage: |_| None, open })
    }

    /// A binary format with each request at several stages.
    pub(super) const fn binary_with_stages(
        name: &'static str,
        begins: fn(&[u8]) -> bool,
        earliest_stage: fn(&[u8]) -> Option<Stage>,
        open: fn(Input, Intake, Stage) -> Box<dyn RecordReader>,
    ) -> Format {
        Format::of(name, Records::Binary { begins, earliest_stage, open }).with_stages()
    }

    pub(super) const fn parquet(name: &'static str) -> Format {
        Format::of(name, Records::Parquet)
    }

    pub(super) const fn described(name: &'static str) -> Format {
        Format::of(name, Records::Described)
    }

    pub(super) const fn refused(name: &'static str, begins: fn(&[u8]) -> bool, why: &'static str) -> Format {
        Format::of(name, Records::Refused { begins, why })
    }

    /// The same, with each request at several stages.
    pub const fn with_stages(self) -> Format {
        Format { has_stages: true, ..self }
    }

    /// The same, with times that begin at zero by definition.
    pub const fn with_times_from_zero(self) -> Format {
        Format { times_from_zero: true, ..self }
    }

    /// The same, read only if the user names it.
    pub const fn by_name_alone(self) -> Format {
        Format { by_name_alone: true, ..self }
    }

    /// The same, with a note for the user if it was recognised.
    pub const fn with_note(self, note: &'static str) -> Format {
        Format { note: Some(note), ..self }
    }

    /// The name in options and reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The format of this name.
    pub fn named<'f>(formats: &'f [Format], name: &str) -> Option<&'f Format> {
        formats.iter().find(|format| format.name == name)
    }
}

/// Two formats are the same if their names are.
impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Format").field(&self.name).finish()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name)
    }
}
