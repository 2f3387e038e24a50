//! blkparse's output.

use super::block_line::{device_number, in_brackets, take_extent};
use super::fields::{Reason, decimal, number, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::rwbs;
use super::stage::{Stage, StageCounts};

/// blkparse: `maj,min cpu sequence seconds pid action rwbs sector + sectors [process]`. A request appears at several
/// stages, as lines with different actions; lines of one action are read. The summary at the end is skipped.
#[derive(Debug, Default)]
pub(super) struct Blkparse {
    stage: Stage,
    devices: Numbering<u64>,
    in_summary: bool,
    stages: StageCounts,
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
        if !matches!(action.len(), 1 | 2) || !action.iter().all(u8::is_ascii_alphabetic) {
            return Err("the action is not one of blkparse's letters");
        }
        let stage = Stage::ALL.into_iter().find(|stage| action == [stage.letter()]);
        let Some(stage) = stage else { return Ok(None) };
        self.stages.add(stage);
        if stage != self.stage {
            return Ok(None);
        }
        let letters = take_word(&mut rest);
        let Some((sector, sectors)) = take_extent(&mut rest)? else { return Ok(None) };
        let Some(request) = rwbs::request(time_ns, letters, sector, sectors, in_brackets(rest))? else {
            return Ok(None);
        };
        Ok(Some(request.on(self.devices.number(&device)?)))
    }

    fn earliest_stage(&self) -> Option<Stage> {
        self.stages.earliest()
    }

    fn notes(&self) -> Vec<String> {
        self.stages.note(self.stage).into_iter().collect()
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
    fn a_trace_without_queued_requests_is_read_at_its_earliest_stage() {
        let issued = b"259,0 1 13 42.5 6570 D WS 3932216 + 8 [dd]\n259,0 1 14 42.6 0 C WS 3932216 + 8 [0]\n";
        assert_eq!(read_sample(issued, "blkparse"), [operation(0, Action::Write, 3_932_216 * 512, 4096)]);
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
    }

    #[test]
    fn a_command_that_is_passed_through_is_no_request() {
        let line = b"8,0 3 1 0.000000000 697 Q N 36 (12 00 00 00 24 00) [smartctl]";
        assert_eq!(Blkparse::default().parse(line), Ok(None));
    }
}
