//! The interface of the text formats: a parser of one line.

use super::fields::Reason;
use super::intake::{Intake, Request};
use super::open::{Input, LONGEST_LINE, Line};
use super::rejected::Place;
use crate::workload::Operation;
use std::io;

/// Reads lines of one format.
pub(super) trait LineParser: Send {
    /// The request of a nonblank line; `None` for a valid line without a request, such as a header or another event; or
    /// the reason for rejecting it.
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason>;

    /// Notes for the user about the lines read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Appends at most `limit` operations. Each parser has its own copy of this loop: a dynamic call for each batch,
    /// not each line.
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
            // The line number is known only afterwards, and needed only for a rejection.
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
