//! Converts the kernel's events to operations of a trace.

use super::guest::Guest;
use super::plan::Plan;
use flashpath::label::Content;
use flashpath::layout::Region;
use flashpath::workload::trace::Letters;
use flashpath::workload::{Action, Operation};
use flashpath_kernel::DataMode;
use flashpath_kernel::tracing::{BlockEvent, EventKind};
use std::ops::Range;

const SECTOR_BYTES: u64 = 512;
/// The size of the requests that write the blocks of the setup.
const AT_ONCE: u64 = 1 << 20;

/// Requests by action.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests {
    pub reads: u64,
    pub writes: u64,
    pub discards: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Those of `written_bytes` that are zeroes, written without their bytes (REQ_OP_WRITE_ZEROES).
    pub zeroed_bytes: u64,
    pub discarded_bytes: u64,
}

/// Writes to one kind of region, with and without the kernel's metadata flag.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flagged {
    pub with: u64,
    pub without: u64,
}

/// The counts of a recording.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// As the file system sent them.
    pub sent: Requests,
    /// As the driver got them, merged and split.
    pub issued: Requests,
    /// Bytes written, by content.
    pub by_content: [u64; Content::COUNT],
    /// Writes by region: journal, fixed metadata, fixed data, and elsewhere.
    pub flagged: [Flagged; 4],
    /// Writes that begin in a region of one kind and end in another.
    pub straddling: u64,
    /// Failed requests.
    pub failed: u64,
    unreadable: u64,
    first_unreadable: Option<String>,
}

/// The names of [`Counts::flagged`].
pub const PLACES: [&str; 4] = ["journal", "metadata", "data", "elsewhere"];

impl Requests {
    fn add(&mut self, action: Action, bytes: u64, zeroes: bool) {
        self.zeroed_bytes += if zeroes { bytes } else { 0 };
        let (count, sum) = match action {
            Action::Read => (&mut self.reads, &mut self.read_bytes),
            Action::Write => (&mut self.writes, &mut self.written_bytes),
            Action::Discard => (&mut self.discards, &mut self.discarded_bytes),
            Action::Flush => {
                self.flushes += 1;
                return;
            }
        };
        *count += 1;
        *sum += bytes;
    }
}

/// Converts events to operations and counts them.
pub struct Labelling<'a> {
    guests: &'a [Guest],
    size_bytes: u64,
    reads: bool,
    journals_data: bool,
    started_ns: u64,
    counts: Counts,
}

impl Labelling<'_> {
    pub fn new<'a>(guests: &'a [Guest], plan: &Plan, started_ns: u64) -> Labelling<'a> {
        let counts = Counts::default();
        let journals_data = plan.data == Some(DataMode::Journal);
        Labelling { guests, size_bytes: plan.size_bytes, reads: plan.reads, journals_data, started_ns, counts }
    }

    /// Appends writes of the blocks that were on the guests' devices before; returns their bytes. They are not counted.
    pub fn append_existing(&self, existing: &[Vec<(Range<u64>, Content)>], operations: &mut Vec<Operation>) -> u64 {
        let mut bytes = 0;
        for (guest, runs) in self.guests.iter().zip(existing) {
            for (run, content) in runs {
                bytes += run.end - run.start;
                for start in run.clone().step_by(AT_ONCE as usize) {
                    operations.push(Operation {
                        time_ns: 0,
                        offset_bytes: u64::from(guest.number) * self.size_bytes + start,
                        length_bytes: AT_ONCE.min(run.end - start),
                        action: Action::Write,
                        content: *content,
                        stream: 0,
                        device: 0,
                    });
                }
            }
        }
        bytes
    }

    /// Appends the operations of an event: at most a flush and the request after it.
    pub fn add(&mut self, event: &BlockEvent, operations: &mut Vec<Operation>) {
        let Some(guest) = self.guests.iter().find(|guest| guest.device == event.device) else { return };
        if event.kind == EventKind::Failed {
            self.counts.failed += 1;
            return;
        }
        let letters = match Letters::parse(event.letters()) {
            Ok(letters) => letters,
            Err(reason) => return self.reject(event, reason),
        };
        let bytes = u64::from(event.sectors) * SECTOR_BYTES;
        let offset = event.sector.saturating_mul(SECTOR_BYTES);
        let action = letters.action.filter(|action| bytes > 0 && (self.reads || *action != Action::Read));
        if event.kind == EventKind::Issued {
            return match action {
                Some(action) => self.counts.issued.add(action, bytes, letters.zeroes),
                None if bytes == 0 => self.counts.issued.add(Action::Flush, 0, false),
                None => {}
            };
        }
        let mut operation = Operation {
            time_ns: event.time_ns.saturating_sub(self.started_ns),
            offset_bytes: 0,
            length_bytes: 0,
            action: Action::Flush,
            content: Content::Data,
            stream: 0,
            device: 0,
        };
        if letters.flush_before {
            self.counts.sent.add(Action::Flush, 0, false);
            operations.push(operation);
        }
        let Some(action) = action else { return };
        if offset.checked_add(bytes).is_none_or(|end| end > self.size_bytes) {
            return self.reject(event, "it ends beyond the device");
        }
        operation.action = action;
        operation.offset_bytes = u64::from(guest.number) * self.size_bytes + offset;
        operation.length_bytes = bytes;
        if action == Action::Write {
            operation.content = self.content(guest, offset, letters.metadata);
            self.count_write(guest, offset, bytes, operation.content, letters.metadata);
        }
        self.counts.sent.add(action, bytes, letters.zeroes);
        operations.push(operation);
    }

    /// The content of a write. All checkpointed journal blocks have the metadata flag; if they may be data, the block
    /// itself is examined.
    fn content(&self, guest: &Guest, offset: u64, is_flagged: bool) -> Content {
        let is_known = guest.layout.regions.at(offset).is_some();
        let is_flagged = is_flagged && (is_known || !self.journals_data || guest.was_left_as_metadata(offset));
        guest.layout.content_at(offset, is_flagged)
    }

    fn count_write(&mut self, guest: &Guest, offset: u64, bytes: u64, content: Content, is_flagged: bool) {
        self.counts.by_content[content as usize] += bytes;
        let region = guest.layout.regions.at(offset);
        let place = match region {
            Some(Region::Journal) => 0,
            Some(Region::Metadata) => 1,
            Some(Region::Data) => 2,
            None => 3,
        };
        let flagged = &mut self.counts.flagged[place];
        *(if is_flagged { &mut flagged.with } else { &mut flagged.without }) += 1;
        self.counts.straddling += u64::from(guest.layout.regions.at(offset + bytes - 1) != region);
    }

    fn reject(&mut self, event: &BlockEvent, reason: &str) {
        self.counts.unreadable += 1;
        self.counts.first_unreadable.get_or_insert_with(|| {
            let letters = event.letters().escape_ascii();
            format!("{letters} of {} sectors at sector {}: {reason}", event.sectors, event.sector)
        });
    }

    /// The reasons why the trace is incomplete. `counted_bytes` is the kernel's count of bytes written during the
    /// recording.
    pub fn problems(&self, counted_bytes: Option<u64>) -> Vec<String> {
        let mut problems = Vec::new();
        let written_bytes = self.counts.sent.written_bytes;
        if let Some(counted) = counted_bytes.filter(|counted| *counted != written_bytes && self.counts.failed == 0) {
            problems.push(format!("the trace writes {written_bytes} bytes, but the device counted {counted}"));
        }
        if let Some(first) = &self.counts.first_unreadable {
            problems.push(format!("{} events were not understood: {first}", self.counts.unreadable));
        }
        if self.counts.failed > 0 {
            problems.push(format!(
                "the device failed {} requests, as it does without space for its file (--dir)",
                self.counts.failed
            ));
        }
        problems
    }

    /// The counts of a recording.
    pub fn counts(self) -> Counts {
        self.counts
    }
}
