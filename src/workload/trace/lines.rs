//! The seam of the text formats: a parser of one line.

use super::fields::Reason;
use super::intake::{Intake, Request};
use super::open::{Input, LONGEST_LINE, Line};
use super::rejected::Place;
use crate::workload::Operation;
use std::io;

/// Reads lines of one format.
pub(super) trait LineParser: Send {
    /// The request of a line that is not blank; `None` if the line is of the format and holds none, as a header or an
    /// event of another kind; or why it cannot be read.
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason>;

    /// What a user should know of what was read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Appends at most `limit` operations. Every parser gets its own copy of this loop, so that a dynamic call is made
    /// for each batch and not for each line.
    fn read_lines(
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
            // The number of the line is known only afterwards; it is wanted only for a rejection.
            let number = input.line_number() + 1;
            match input.line()? {
                None => break,
                Some(Line::TooLong) => {
                    let reason = format!("longer than {} KiB", LONGEST_LINE >> 10);
                    intake.rejections.add(Place::Line(number), &reason, b"");
                }
                Some(Line::Bytes(line)) if line.trim_ascii_start().is_empty() => {}
                Some(Line::Bytes(line)) => intake.settle(self.parse(line), || Place::Line(number), line, out),
            }
        }
        Ok(())
    }
}
