//! Block events of ftrace, as the kernel, `trace-cmd report`, `perf script` and systrace print them.

use super::block_line::{device_number, in_brackets, take_extent};
use super::event_line::{Event, OtherEvents, event};
use super::fields::{Reason, take_byte, take_field, take_number, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::nvme;
use super::rwbs;
use super::stage::{Stage, StageCounts};

/// The events that are read, with the stage that each is of. A device without request queues completes its bios.
const EVENTS: [(&[u8], Stage); 5] = [
    (b"block_bio_queue", Stage::Queue),
    (b"block_rq_insert", Stage::Insert),
    (b"block_rq_issue", Stage::Issue),
    (b"block_rq_complete", Stage::Complete),
    (b"block_bio_complete", Stage::Complete),
];
/// The commands that record an event which is read.
const RECORD: &str = "record one by `trace-cmd record -e block:block_rq_issue COMMAND; trace-cmd report >trace.txt`, or by \
                      `perf record -a -e block:block_rq_issue -- COMMAND; perf script >trace.txt`";

/// Lines of events. One stage of requests is read; other events, comments and call chains are skipped.
#[derive(Debug, Default)]
pub(super) struct Ftrace {
    stage: Stage,
    devices: Numbering<u64>,
    stages: StageCounts,
    others: OtherEvents,
    failed: u64,
}

impl Ftrace {
    fn request(&mut self, event: &Event<'_>) -> Result<Option<Request>, Reason> {
        let mut rest = event.fields;
        let device = device_number(take_word(&mut rest)).ok_or("the device is not major,minor")?;
        let letters = take_word(&mut rest);
        if event.name != b"block_bio_queue" && event.name != b"block_bio_complete" {
            skip_command(&mut rest)?;
        }
        let Some((sector, sectors)) = take_extent(&mut rest)? else { return Ok(None) };
        let last = in_brackets(rest);
        if self.stage == Stage::Complete && last != b"0" {
            self.failed += 1;
            return Ok(None);
        }
        let Some(request) = rwbs::request(event.time_ns, letters, sector, sectors, last)? else { return Ok(None) };
        Ok(Some(request.on(self.devices.number(&device)?)))
    }
}

/// Takes `bytes (command)`, of which the bytes are not in completions.
fn skip_command(text: &mut &[u8]) -> Result<(), Reason> {
    let mut rest = text.trim_ascii_start();
    if take_number(&mut rest).is_some() {
        rest = rest.trim_ascii_start();
    }
    take_byte(&mut rest, b'(').ok_or("the command in parentheses is missing")?;
    take_field(&mut rest, b')');
    *text = rest;
    Ok(())
}

impl LineParser for Ftrace {
    fn take_stage(&mut self, stage: Stage) {
        self.stage = stage;
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let Some(event) = event(line)? else { return Ok(None) };
        let Some((_, stage)) = EVENTS.iter().find(|(name, _)| *name == event.name) else {
            self.others.add(event.name);
            return Ok(None);
        };
        self.stages.add(*stage);
        if *stage == self.stage { self.request(&event) } else { Ok(None) }
    }

    /// A command of an NVMe drive without an event of the block layer is better read by its own format.
    fn fits(&mut self, line: &[u8]) -> bool {
        let is_command = |event: &Event<'_>| event.name == nvme::EVENT;
        let fits = self.parse(line).is_ok();
        fits && (self.stages.earliest().is_some() || !matches!(event(line), Ok(Some(event)) if is_command(&event)))
    }

    fn earliest_stage(&self) -> Option<Stage> {
        self.stages.earliest()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.stages.note(self.stage).into_iter().collect();
        if self.stages.earliest().is_none() {
            let events: Vec<String> = EVENTS
                .iter()
                .map(|(name, stage)| format!("{} ({})", name.escape_ascii(), stage.letter() as char))
                .collect();
            let mut note =
                format!("the trace has {}; the events that are read are {}", self.others.list(), events.join(", "));
            if self.others.count(nvme::EVENT) > 0 {
                note.push_str("; nvme_setup_cmd is read by the formats nvme-512 and nvme-4096");
            }
            notes.push(format!("{note}; {RECORD}"));
        }
        if self.failed > 0 {
            notes.push(format!("{} failed requests were skipped", self.failed));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample, read_sample_with, reader_of};
    use super::super::{FORMATS, Format, TraceOptions};
    use super::*;
    use crate::label::Content;
    use crate::workload::Action;

    /// The operations of a text, which is recognised.
    fn recognised(text: &str) -> Vec<crate::workload::Operation> {
        let mut operations = Vec::new();
        let mut reader = reader_of(text.as_bytes(), TraceOptions::default());
        while reader.read_batch(&mut operations, 100).unwrap() > 0 {}
        assert_eq!((reader.format().name(), reader.rejected()), ("ftrace", 0), "{text}");
        operations
    }

    fn why_nothing(text: &str, options: TraceOptions) -> String {
        let options = TraceOptions { format: Format::named(FORMATS, "ftrace"), ..options };
        reader_of(text.as_bytes(), options).read_batch(&mut Vec::new(), 100).unwrap_err().to_string()
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

    /// Only block_bio_queue was read, and a trace of block_rq_issue, which perf and systrace record, had "no operation".
    /// The samples of this format were made from the one event that is best, not from what each tool records.
    #[test]
    fn every_tool_and_every_stage_gives_the_same_requests() {
        let expected =
            [operation(0, Action::Read, 1000 * 512, 4096), operation(500_000, Action::Write, 2000 * 512, 8192)];
        for (before, event) in [
            ("kworker/0:1-100 [000] .... TIME: ", ""),
            ("   kworker/0:1-100   (-----) [000] d..1 TIME: ", ""),
            ("     fio-1234  [000]  TIME: ", ""),
            ("fio  1234 [000]  TIME: ", "block:"),
            ("a b  1234/1234  TIME:          1 ", "block:"),
        ] {
            for (name, [read, write]) in [
                ("block_bio_queue", ["R 1000 + 8 [fio]", "W 2000 + 16 [fio]"]),
                ("block_rq_insert", ["R 4096 () 1000 + 8 [fio]", "W 8192 () 2000 + 16 none,0,0 [fio]"]),
                ("block_rq_issue", ["R 4096 () 1000 + 8 [fio]", "W 8192 () 2000 + 16 be,0,4 [fio]"]),
                ("block_rq_complete", ["R () 1000 + 8 [0]", "W () 2000 + 16 none,0,0 [0]"]),
                ("block_bio_complete", ["R 1000 + 8 [0]", "W 2000 + 16 [0]"]),
            ] {
                let line =
                    |time: &str, fields| format!("{}{event}{name}: 8,0 {fields}\n", before.replace("TIME", time));
                let text = line("1000.000000", read) + &line("1000.000500", write);
                assert_eq!(recognised(&text), expected, "{text}");
            }
        }
    }

    #[test]
    fn the_earliest_stage_is_read_unless_another_is_chosen() {
        let text = "# tracer: nop
 a-1 [000] .... 5.000000: block_rq_insert: 8,0 W 4096 () 8 + 8 [a]
 a-1 [000] .... 5.000001: block_rq_issue: 8,0 W 4096 () 8 + 8 [a]
 a-1 [000] .... 5.000002: block_rq_issue: 8,0 WS 4096 () 16 + 8 [a]
 a-1 [000] .... 5.000003: block_rq_complete: 8,0 W () 8 + 8 [0]
 a-1 [000] .... 5.000004: block_rq_complete: 8,0 WS () 16 + 8 [-5]
";
        let count = |stage| {
            let options = TraceOptions { stage, ..TraceOptions::default() };
            read_sample_with(text.as_bytes(), "ftrace", options).len()
        };
        assert_eq!(count(None), 2, "not every request passes an I/O scheduler: the issue is the first of all");
        assert_eq!((count(Some(Stage::Insert)), count(Some(Stage::Issue)), count(Some(Stage::Complete))), (1, 2, 1));
        let options = TraceOptions { stage: Some(Stage::Queue), ..TraceOptions::default() };
        assert!(why_nothing(text, options).contains("there are 1 I, 2 D, 2 C: choose one with --stage"));
    }

    #[test]
    fn a_trace_of_other_events_names_them_and_those_that_are_read() {
        let text = "fio 7 [000] 1.5: nvme:nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmd=(nvme_cmd_write slba=8)
fio 7 [000] 1.6: sched:sched_switch: prev_comm=a
\tffffffff8110 submit_bio+0x1 ([kernel.kallsyms])
fio 7 [000] 1.7: sched:sched_switch: prev_comm=b
";
        let why = why_nothing(text, TraceOptions::default());
        assert!(why.contains("the trace has nvme_setup_cmd (1), sched_switch (2);"), "{why}");
        assert!(why.contains("block_bio_queue (Q), block_rq_insert (I), block_rq_issue (D)"), "{why}");
        assert!(why.contains("nvme_setup_cmd is read by the formats nvme-512 and nvme-4096"), "{why}");
        assert!(why.contains("perf record -a -e block:block_rq_issue"), "{why}");
    }

    #[test]
    fn flushes_zeroes_and_passed_through_commands_of_the_device_are_told_apart() {
        let issue = |fields: &str| {
            let line = format!("a-1 [000] .... 1.5: block_rq_issue: 8,0 {fields}");
            let mut parser = Ftrace::default();
            parser.take_stage(Stage::Issue);
            parser.parse(line.as_bytes()).map(|request| request.map(|it| it.operation.action))
        };
        assert_eq!(issue("FF 0 () 0 + 0 [kworker/0:1H]"), Ok(Some(Action::Flush)));
        assert_eq!(issue("NS 4096 () 8 + 8 [fio]"), Ok(Some(Action::Write)));
        assert_eq!(issue("DS 4096 () 8 + 8 [fstrim]"), Ok(Some(Action::Discard)));
        assert_eq!(issue("N 36 (12 00 00 00 24 00) 18446744073709551615 + 0 [smartctl]"), Ok(None));
        for wrong in ["W 4096 8 + 8 [a]", "W 4096 () 8 + [a]", "W () 8 + 0 [a]", "8 + 8", ""] {
            assert!(issue(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_that_are_no_events_are_rejected() {
        for wrong in ["a-1 [001] ..... x: block_bio_queue: 7,1 WS 8 + 8 [a]", "hello world", "\tffff nothing"] {
            assert!(Ftrace::default().parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
