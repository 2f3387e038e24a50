//! The interface of the text formats: a parser of one line.

use super::fields::Reason;
use super::intake::{Intake, Request};
use super::open::{Input, LONGEST_LINE, Line};
use super::rejected::Place;
use super::stage::Stage;
use crate::workload::Operation;
use std::io;

/// Parses lines of one format. A new one is made for each trace.
pub trait LineParser: Default + Send + 'static {
    /// The request of a nonblank line; `None` for a valid line without a request, such as a header or another event; or
    /// the reason for rejecting it.
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason>;

    /// True if a line at the beginning of a file speaks for this format: by default one that it parses.
    fn fits(&mut self, line: &[u8]) -> bool {
        self.parse(line).is_ok()
    }

    /// Selects the stage of requests, in formats with stages.
    fn take_stage(&mut self, _stage: Stage) {}

    /// The earliest stage of the requests in the lines parsed, in formats with stages.
    fn earliest_stage(&self) -> Option<Stage> {
        None
    }

    /// Notes for the user about the lines read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The lines of a trace, with the parser of its format.
pub(super) trait Lines: Send {
    /// True if the parser accepts the line.
    fn fits(&mut self, line: &[u8]) -> bool;

    /// The earliest stage of the requests in the lines so far.
    fn earliest_stage(&self) -> Option<Stage>;

    fn notes(&self) -> Vec<String>;

    /// Appends at most `limit` operations.
    fn read(
        &mut self,
        input: &mut Input,
        intake: &mut Intake,
        out: &mut Vec<Operation>,
        limit: usize,
    ) -> io::Result<()>;
}

/// A parser and its own copy of the reading loop: a dynamic call for each batch, not each line.
pub(super) struct Parsed<P>(pub P);

impl<P: LineParser> Lines for Parsed<P> {
    fn fits(&mut self, line: &[u8]) -> bool {
        self.0.fits(line)
    }

    fn earliest_stage(&self) -> Option<Stage> {
        self.0.earliest_stage()
    }

    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    fn read(
        &mut self,
        input: &mut Input,
        intake: &mut Intake,
        out: &mut Vec<Operation>,
        limit: usize,
    ) -> io::Result<()> {
        let full = out.len() + limit;
        while out.len() < full {
            if intake.release(out) {
                continue;
            }
            // The line number is known only afterwards, and needed only for a rejection.
            let number = input.line_number() + 1;
            match input.line()? {
                None => break,
                Some(Line::TooLong) => {
                    let reason = format!("longer than {} KiB", LONGEST_LINE >> 10);
                    intake.rejections.add(Place::Line(number), &reason, b"");
                }
                Some(Line::Bytes(line)) if line.trim_ascii_start().is_empty() => {}
                Some(Line::Bytes(line)) => intake.settle(self.0.parse(line), || Place::Line(number), line, out),
            }
        }
        Ok(())
    }
}
