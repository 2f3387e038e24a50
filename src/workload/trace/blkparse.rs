//! Text of the kernel's block layer: blkparse's output, and `block_bio_queue` lines of ftrace.

use super::fields::{Reason, decimal, number, take_byte, take_field, take_number, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::rwbs;
use super::stage::Stage;
use memchr::memmem;
use std::collections::BTreeMap;

/// The text before the fields of a queued request in ftrace.
const BIO_QUEUE: &[u8] = b": block_bio_queue: ";

/// The number of a device written as `major,minor`.
fn device_number(word: &[u8]) -> Option<u64> {
    let mut rest = word;
    let major = number(take_field(&mut rest, b','))?;
    let minor = number(rest)?;
    (major >> 32 == 0 && minor >> 32 == 0).then_some(major << 32 | minor)
}

/// The name between the first `[` and the last `]`.
fn process(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    text.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(text)
}

/// Takes `sector + sectors`. A flush may have no extent; a passed-through command has a number without a `+`.
fn take_extent(text: &mut &[u8]) -> Result<Option<(u64, u64)>, Reason> {
    let mut rest = text.trim_ascii_start();
    let Some(sector) = take_number(&mut rest) else { return Ok(Some((0, 0))) };
    rest = rest.trim_ascii_start();
    if take_byte(&mut rest, b'+').is_none() {
        return Ok(rest.starts_with(b"[").then_some((0, 0)));
    }
    rest = rest.trim_ascii_start();
    let sectors = take_number(&mut rest).ok_or("the number of sectors is not a whole number")?;
    *text = rest;
    Ok(Some((sector, sectors)))
}

/// blkparse: `maj,min cpu sequence seconds pid action rwbs sector + sectors [process]`. A request appears at several
/// stages, as lines with different actions; lines of one action are read. The summary at the end is skipped.
#[derive(Debug, Default)]
pub(super) struct Blkparse {
    stage: Stage,
    devices: Numbering<u64>,
    in_summary: bool,
    other_actions: BTreeMap<u8, u64>,
}

/// True for a line that begins blkparse's summary: `CPU0 (sda):` or `Total (sda):`.
fn begins_summary(line: &[u8]) -> bool {
    (line.starts_with(b"CPU") || line.starts_with(b"Total")) && line.ends_with(b":") && line.contains(&b'(')
}

impl LineParser for Blkparse {
    fn take_stage(&mut self, stage: Stage) {
        self.stage = stage;
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if self.in_summary || begins_summary(line) {
            self.in_summary = true;
            return Ok(None);
        }
        let mut rest = line;
        let device = device_number(take_word(&mut rest)).ok_or("the line does not begin with major,minor")?;
        number(take_word(&mut rest)).ok_or("the CPU is not a whole number")?;
        number(take_word(&mut rest)).ok_or("the sequence number is not a whole number")?;
        let time_ns = decimal(take_word(&mut rest), 9).ok_or("the time is not a number of seconds")?;
        number(take_word(&mut rest)).ok_or("the process number is not a whole number")?;
        let action = take_word(&mut rest);
        match action {
            [letter] if *letter == self.stage.letter() => {}
            [letter, more @ ..] if more.len() < 2 && action.iter().all(u8::is_ascii_alphabetic) => {
                *self.other_actions.entry(*letter).or_default() += 1;
                return Ok(None);
            }
            _ => return Err("the action is not one of blkparse's letters"),
        }
        let letters = take_word(&mut rest);
        let Some((sector, sectors)) = take_extent(&mut rest)? else { return Ok(None) };
        let Some(request) = rwbs::request(time_ns, letters, sector, sectors, process(rest))? else { return Ok(None) };
        Ok(Some(request.on(self.devices.number(&device)?)))
    }

    fn notes(&self) -> Vec<String> {
        let chosen = self.stage.letter() as char;
        let others: Vec<String> = [b'Q', b'D', b'C']
            .iter()
            .filter_map(|letter| Some(format!("{} {}", self.other_actions.get(letter)?, *letter as char)))
            .collect();
        if others.is_empty() {
            return Vec::new();
        }
        vec![format!("only lines with action {chosen} were read; there are also {}", others.join(", "))]
    }
}

/// ftrace: `process-pid [cpu] flags seconds: block_bio_queue: maj,min rwbs sector + sectors [process]`. Other events
/// and comments are skipped.
#[derive(Debug, Default)]
pub(super) struct Ftrace {
    devices: Numbering<u64>,
}

/// True for an ftrace event of any kind: it has `[cpu]`, and a time that ends in a colon.
fn is_event(line: &[u8]) -> bool {
    let mut rest = line;
    let mut saw_cpu = false;
    loop {
        let word = take_word(&mut rest);
        match word {
            b"" => return false,
            [b'[', cpu @ .., b']'] => saw_cpu |= number(cpu).is_some(),
            [time @ .., b':'] if saw_cpu && decimal(time, 9).is_some() => return time.contains(&b'.'),
            _ => {}
        }
    }
}

impl LineParser for Ftrace {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let Some(found) = memmem::find(line, BIO_QUEUE) else {
            if line.starts_with(b"#") || is_event(line) {
                return Ok(None);
            }
            return Err("not an ftrace event");
        };
        let mut before = &line[..found];
        let time = super::fields::take_last_word(&mut before);
        let time_ns = decimal(time, 9).ok_or("the time is not a number of seconds")?;
        let mut rest = &line[found + BIO_QUEUE.len()..];
        let device = device_number(take_word(&mut rest)).ok_or("the device is not major,minor")?;
        let letters = take_word(&mut rest);
        let Some((sector, sectors)) = take_extent(&mut rest)? else { return Ok(None) };
        let Some(request) = rwbs::request(time_ns, letters, sector, sectors, process(rest))? else { return Ok(None) };
        Ok(Some(request.on(self.devices.number(&device)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TraceOptions;
    use super::super::samples;
    use super::super::testing::{operation, read_sample, read_sample_with};
    use super::*;
    use crate::label::Content;
    use crate::workload::Action;

    #[test]
    fn a_line_of_blkparse_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 3_932_216 * 512, 4096),
            operation(1_000, Action::Flush, 0, 0),
            operation(2_000, Action::Discard, 16 * 512, 4096),
            operation(3_000, Action::Write, 8 * 512, 4096),
        ];
        expected[2].device = 1;
        expected[3].content = Content::Journal;
        assert_eq!(read_sample(samples::BLKPARSE, "blkparse"), expected);
    }

    #[test]
    fn a_stage_of_blkparse_can_be_chosen() {
        for (stage, time_ns) in [(Stage::Issue, 0), (Stage::Complete, 0)] {
            let options = TraceOptions { stage: Some(stage), ..TraceOptions::default() };
            let operations = read_sample_with(samples::BLKPARSE, "blkparse", options);
            assert_eq!(operations, [operation(time_ns, Action::Write, 3_932_216 * 512, 4096)]);
        }
    }

    #[test]
    fn a_line_of_ftrace_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 854_160 * 512, 57_344),
            operation(1_000, Action::Flush, 0, 0),
            operation(2_000, Action::Write, 8 * 512, 4096),
        ];
        expected[2].content = Content::Journal;
        expected[2].device = 1;
        assert_eq!(read_sample(samples::FTRACE, "ftrace"), expected);
    }

    #[test]
    fn lines_that_are_cut_or_garbled_are_rejected() {
        let good = "259,0 1 11 42.543705759 6570 Q WS 3932216 + 8 [jbd2]";
        assert!(Blkparse::default().parse(good.as_bytes()).unwrap().is_some());
        for wrong in [
            "259 1 11 42.5 6570 Q WS 8 + 8 [a]",
            "259,0 x 11 42.5 6570 Q WS 8 + 8 [a]",
            "259,0 1 11 42.5 6570 Q WS 8 + [a]",
            "259,0 1 11 42.5 6570 Q WS [a]",
            "259,0 1 11 42.5 6570 ? WS 8 + 8 [a]",
            "259,0 1 11",
        ] {
            assert!(Blkparse::default().parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Ftrace::default().parse(b"a-1 [001] ..... x: block_bio_queue: 7,1 WS 8 + 8 [a]").is_err());
        assert!(Ftrace::default().parse(b"hello world").is_err());
    }

    #[test]
    fn a_command_that_is_passed_through_is_no_request() {
        let line = b"8,0 3 1 0.000000000 697 Q N 36 (12 00 00 00 24 00) [smartctl]";
        assert_eq!(Blkparse::default().parse(line), Ok(None));
    }
}
