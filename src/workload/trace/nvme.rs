//! The commands of NVMe drives, as ftrace's event `nvme_setup_cmd` has them.
//!
//! `nvme0: disk=nvme0n1, qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_write slba=8, len=7, ...)`, where
//! `len` is one less than the number of blocks. perf and trace-cmd cannot print the command, and print the event's bytes:
//! `disk=nvme0n1 ctrl_id=0 qid=1 opcode=1 ... nsid=1 ... cdw10=ARRAY[08, 00, ...]`, of which the first eight are the
//! address and the two after them the length, little-endian. Source: the kernel's definition of the event, and the NVMe
//! command set.

use super::event_line::{Event, OtherEvents, event};
use super::fields::{Reason, extent_of_units, hexadecimal, number, take_field};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use crate::workload::Action;
use memchr::memmem;

/// The event that is read.
pub(super) const EVENT: &[u8] = b"nvme_setup_cmd";

const FLUSH: u64 = 0x00;
const WRITE: u64 = 0x01;
const READ: u64 = 0x02;
const WRITE_ZEROES: u64 = 0x08;
const DATASET_MANAGEMENT: u64 = 0x09;
const ZONE_MANAGEMENT: u64 = 0x79;
const ZONE_APPEND: u64 = 0x7d;
/// Any other command, which transfers no blocks.
const OTHER: u64 = 0xff;

/// The names of commands in the kernel's output.
const NAMES: [(&[u8], u64); 7] = [
    (b"nvme_cmd_flush", FLUSH),
    (b"nvme_cmd_write", WRITE),
    (b"nvme_cmd_read", READ),
    (b"nvme_cmd_write_zeroes", WRITE_ZEROES),
    (b"nvme_cmd_dsm", DATASET_MANAGEMENT),
    (b"nvme_cmd_zone_mgmt_send", ZONE_MANAGEMENT),
    (b"nvme_cmd_zone_append", ZONE_APPEND),
];

/// Lines of events, of a namespace with blocks of `BLOCK_BYTES`. Each namespace is a device.
#[derive(Debug, Default)]
pub(super) struct Nvme<const BLOCK_BYTES: u64> {
    devices: Numbering<Vec<u8>>,
    others: OtherEvents,
    commands: u64,
    discards: u64,
    transfers: u64,
    /// The number of transfers that do not cover whole 4 KiB, if blocks have 512 bytes.
    partial: u64,
}

/// A command that transfers blocks or flushes.
struct Command {
    opcode: u64,
    first: u64,
    blocks: u64,
}

/// The value after `key`, which is preceded by a blank, a comma or a parenthesis.
fn value_of<'a>(fields: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let start = memmem::find_iter(fields, key).find(|at| *at == 0 || b" ,(\t".contains(&fields[at - 1]))?;
    let rest = &fields[start + key.len()..];
    let end = rest.iter().position(|byte| b" ,)\t".contains(byte)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// A number in decimal digits, or in hexadecimal ones after `0x`.
fn any_number(field: &[u8]) -> Option<u64> {
    if field.starts_with(b"0x") { hexadecimal(field) } else { number(field) }
}

/// The command as the kernel prints it.
fn printed(fields: &[u8]) -> Option<Result<Command, Reason>> {
    let start = memmem::find(fields, b"cmd=(")?;
    let command = &fields[start + b"cmd=(".len()..];
    let name = command.split(|byte| matches!(byte, b' ' | b')')).next().unwrap_or_default();
    let opcode = NAMES.iter().find(|(known, _)| *known == name).map_or(OTHER, |(_, opcode)| *opcode);
    if !matches!(opcode, WRITE | READ | WRITE_ZEROES) {
        return Some(Ok(Command { opcode, first: 0, blocks: 0 }));
    }
    let value = |key| value_of(command, key).and_then(number);
    Some(match (value(b"slba="), value(b"len=")) {
        (Some(first), Some(length)) => Ok(Command { opcode, first, blocks: length.saturating_add(1) }),
        (None, _) => Err("the address slba= is missing, or not a whole number"),
        (_, None) => Err("the length len= is missing, or not a whole number"),
    })
}

/// The command of an event whose bytes are printed.
fn raw(fields: &[u8]) -> Result<Command, Reason> {
    let opcode = value_of(fields, b"opcode=").and_then(any_number);
    let opcode = opcode.ok_or("there is neither cmd=(...) nor opcode=")?;
    if !matches!(opcode, WRITE | READ | WRITE_ZEROES) {
        return Ok(Command { opcode, first: 0, blocks: 0 });
    }
    let key = b"cdw10=ARRAY[";
    let start = memmem::find(fields, key).ok_or("the command's bytes cdw10=ARRAY[...] are missing")?;
    let mut rest = &fields[start + key.len()..];
    let mut bytes = [0u8; 10];
    for byte in &mut bytes {
        let value = hexadecimal(take_field(&mut rest, b',')).and_then(|value| u8::try_from(value).ok());
        *byte = value.ok_or("cdw10 has fewer than ten bytes, or something else")?;
    }
    let [a, b, c, d, e, f, g, h, low, high] = bytes;
    let first = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    Ok(Command { opcode, first, blocks: u64::from(u16::from_le_bytes([low, high])) + 1 })
}

/// The name of the namespace's device.
fn device_of(fields: &[u8]) -> Result<Vec<u8>, Reason> {
    if let Some(disk) = value_of(fields, b"disk=").filter(|disk| !disk.is_empty()) {
        return Ok(disk.to_vec());
    }
    // Older kernels print the controller alone.
    let controller = match value_of(fields, b"ctrl_id=") {
        Some(number) => number,
        None => take_field(&mut &*fields, b':').trim_ascii(),
    };
    let namespace = value_of(fields, b"nsid=").ok_or("the namespace nsid= is missing")?;
    Ok([controller, b"n", namespace].concat())
}

impl<const BLOCK_BYTES: u64> Nvme<BLOCK_BYTES> {
    fn request(&mut self, event: &Event<'_>) -> Result<Option<Request>, Reason> {
        let queue = value_of(event.fields, b"qid=").and_then(any_number);
        // Commands of queue 0 configure the drive.
        if queue.ok_or("the queue qid= is missing, or not a whole number")? == 0 {
            return Ok(None);
        }
        let Command { opcode, first, blocks } = printed(event.fields).unwrap_or_else(|| raw(event.fields))?;
        let action = match opcode {
            READ => Action::Read,
            WRITE | WRITE_ZEROES => Action::Write,
            FLUSH => {
                let device = device_of(event.fields)?;
                return Ok(Some(Request::flush(event.time_ns).on(self.devices.number(&device)?)));
            }
            DATASET_MANAGEMENT => {
                self.discards += 1;
                return Ok(None);
            }
            ZONE_MANAGEMENT | ZONE_APPEND => return Err("zone operations are not supported"),
            _ => return Ok(None),
        };
        let extent = extent_of_units(first, blocks, BLOCK_BYTES)?;
        self.transfers += 1;
        self.partial += u64::from(first % 8 != 0 || blocks % 8 != 0);
        let device = device_of(event.fields)?;
        Ok(Some(Request::new(event.time_ns, action, extent).on(self.devices.number(&device)?)))
    }
}

impl<const BLOCK_BYTES: u64> LineParser for Nvme<BLOCK_BYTES> {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let Some(event) = event(line)? else { return Ok(None) };
        if event.name == EVENT {
            self.commands += 1;
            return self.request(&event);
        }
        self.others.add(event.name);
        Ok(None)
    }

    /// Events of the block layer have bytes and processes: the format ftrace is better for them.
    fn fits(&mut self, line: &[u8]) -> bool {
        let is_of_blocks = |event: &Event<'_>| event.name.starts_with(b"block_");
        !matches!(event(line), Ok(Some(event)) if is_of_blocks(&event)) && self.parse(line).is_ok()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.commands == 0 {
            notes.push(format!(
                "the trace has {}; the event that is read is nvme_setup_cmd: echo 1 \
                 >/sys/kernel/tracing/events/nvme/nvme_setup_cmd/enable; cat /sys/kernel/tracing/trace_pipe >trace.txt",
                self.others.list()
            ));
        }
        if self.transfers > 0 {
            let other = if BLOCK_BYTES == 512 { 4096 } else { 512 };
            let evidence = match self.partial {
                0 if BLOCK_BYTES == 512 => "all requests are whole 4 KiB, as a file system makes them".to_string(),
                0 => "all addresses and lengths are multiples of 8 blocks, which is rare with blocks of 4096 bytes"
                    .to_string(),
                count => format!("{count} of {} requests are no multiple of 8 blocks", self.transfers),
            };
            notes.push(format!(
                "addresses were read as blocks of {BLOCK_BYTES} bytes; {evidence}. `lsblk -o NAME,LOG-SEC` tells the \
                 drive's blocks: if they have {other} bytes, the format is nvme-{other}"
            ));
        }
        if self.discards > 0 {
            notes.push(format!(
                "{} discards were skipped: nvme_setup_cmd has no addresses of them, block_rq_issue does",
                self.discards
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{operation, read_sample, reader_of};
    use super::super::{TraceOptions, samples};
    use super::*;
    use crate::workload::Operation;

    fn expected(block_bytes: u64) -> Vec<Operation> {
        let mut expected = vec![
            operation(0, Action::Write, 498_455_552 * block_bytes, 8 * block_bytes),
            operation(1_000, Action::Read, 8 * block_bytes, block_bytes),
            operation(2_000, Action::Flush, 0, 0),
            operation(3_000, Action::Write, 16 * block_bytes, 256 * block_bytes),
        ];
        expected[1].device = 1;
        expected
    }

    #[test]
    fn commands_are_read_in_blocks_of_either_size() {
        assert_eq!(read_sample(samples::NVME, "nvme-512"), expected(512));
        assert_eq!(read_sample(samples::NVME, "nvme-4096"), expected(4096));
    }

    #[test]
    fn the_bytes_that_perf_prints_read_alike() {
        assert_eq!(read_sample(samples::NVME_RAW, "nvme-512"), expected(512));
    }

    fn recognised(text: &str) -> (&'static str, Vec<String>) {
        let mut reader = reader_of(text.as_bytes(), TraceOptions::default());
        let read = reader.read_batch(&mut Vec::new(), 100);
        let notes = reader.notes();
        (reader.format().name(), read.err().map(|error| error.to_string()).into_iter().chain(notes).collect())
    }

    #[test]
    fn the_size_of_blocks_and_skipped_discards_are_told() {
        let (format, notes) = recognised(std::str::from_utf8(samples::NVME).unwrap());
        assert_eq!(format, "nvme-512");
        assert!(notes[0].contains("1 of 3 requests are no multiple of 8 blocks"), "{notes:?}");
        assert!(notes[0].contains("the format is nvme-4096"), "{notes:?}");
        assert!(notes[1].contains("1 discards were skipped"), "{notes:?}");
    }

    #[test]
    fn a_trace_with_events_of_the_block_layer_is_read_from_them() {
        let block = " a-1 [000] ..... 5.000000: block_rq_issue: 259,0 W 4096 () 8 + 8 [a]\n";
        let command = " a-1 [000] ..... 5.000001: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=1, nsid=1, \
                       flags=0x0, meta=0x0, cmd=(nvme_cmd_write slba=8, len=7, ctrl=0x0, dsmgmt=0, reftag=0)\n";
        let other = " a-1 [000] ..... 5.000002: sched_switch: prev_comm=a\n";
        assert_eq!(recognised(&[block, command, command].concat()).0, "ftrace");
        assert_eq!(recognised(&[command, block, block, command].concat()).0, "ftrace");
        assert_eq!(recognised(&[other, command, other].concat()).0, "nvme-512");
        let (format, told) = recognised(other);
        assert_eq!(format, "ftrace");
        assert!(told[0].contains("the trace has sched_switch (1)"), "{told:?}");
    }

    #[test]
    fn commands_that_are_wrong_are_rejected_and_those_of_the_drive_skipped() {
        let parse = |fields: &str| {
            let line = format!("a-1 [000] .... 1.5: nvme_setup_cmd: {fields}");
            Nvme::<4096>::default().parse(line.as_bytes()).map(|found| found.map(|found| found.operation.action))
        };
        let reasons = [
            ("nvme0: disk=nvme0n1, nsid=1, cmd=(nvme_cmd_write slba=8, len=7)", "the queue qid="),
            ("nvme0: qid=1, nsid=1, cmd=(nvme_cmd_write slba=x, len=7)", "the address slba="),
            ("nvme0: qid=1, nsid=1, cmd=(nvme_cmd_write slba=8)", "the length len="),
            ("nvme0: qid=1, cmd=(nvme_cmd_write slba=8, len=7)", "the namespace nsid="),
            ("nvme0: qid=1, nsid=1, cmd=(nvme_cmd_write slba=18446744073709551615, len=7)", "the address in bytes"),
            ("nvme0: qid=1, nsid=1, cmd=(nvme_cmd_zone_append slba=8, len=7)", "zone operations"),
            ("nvme0: qid=1, nsid=1", "there is neither"),
            ("ctrl_id=0 qid=1 nsid=1 opcode=2 cdw10=ARRAY[08, 00]", "cdw10 has fewer"),
            ("ctrl_id=0 qid=1 nsid=1 opcode=2", "the command's bytes"),
        ];
        for (fields, reason) in reasons {
            assert!(parse(fields).unwrap_err().starts_with(reason), "{fields}");
        }
        assert_eq!(parse("nvme0: qid=0, cmdid=1, nsid=0, cmd=(nvme_admin_identify cns=1, ctrlid=0)"), Ok(None));
        assert_eq!(parse("nvme0: qid=1, cmdid=1, nsid=1, cmd=(nvme_cmd_verify cdw10=00)"), Ok(None));
        assert_eq!(parse("nvme0: qid=1, nsid=1, cmd=(nvme_cmd_read slba=8, len=7)"), Ok(Some(Action::Read)));
    }
}
