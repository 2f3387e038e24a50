//! Converts the kernel's events to operations of a trace, and counts them by device.

use super::device::Device;
use flashpath::label::Content;
use flashpath::units::human_size;
use flashpath::workload::trace::Letters;
use flashpath::workload::{Action, Operation};
use flashpath_kernel::tracing::{BlockEvent, EventKind};

const SECTOR_BYTES: u64 = 512;

/// The stage of a request's life at which it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedStage {
    /// A file system or a program sent it.
    Queued,
    /// The driver got it.
    Issued,
}

impl RecordedStage {
    /// Its letter in traces of block events.
    pub fn letter(self) -> char {
        match self {
            RecordedStage::Queued => 'Q',
            RecordedStage::Issued => 'D',
        }
    }

    fn kind(self) -> EventKind {
        match self {
            RecordedStage::Queued => EventKind::Queued,
            RecordedStage::Issued => EventKind::Issued,
        }
    }
}

/// The requests of a device.
pub struct Counts {
    /// The stage at which they are recorded.
    pub stage: RecordedStage,
    pub reads: u64,
    pub writes: u64,
    pub discards: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub discarded_bytes: u64,
    /// Requests that the device failed.
    pub failed: u64,
    /// Commands that are no request for sectors, which traces cannot have.
    passed: u64,
    unreadable: u64,
    first_unreadable: Option<String>,
}

impl Counts {
    fn new(stage: RecordedStage) -> Counts {
        let (reads, writes, discards, flushes) = (0, 0, 0, 0);
        let (read_bytes, written_bytes, discarded_bytes) = (0, 0, 0);
        let (failed, passed, unreadable, first_unreadable) = (0, 0, 0, None);
        Counts {
            stage,
            reads,
            writes,
            discards,
            flushes,
            read_bytes,
            written_bytes,
            discarded_bytes,
            failed,
            passed,
            unreadable,
            first_unreadable,
        }
    }

    /// True if no request was recorded.
    pub fn is_empty(&self) -> bool {
        self.reads + self.writes + self.discards + self.flushes == 0
    }

    fn add(&mut self, operation: &Operation) {
        let (count, bytes) = match operation.action {
            Action::Read => (&mut self.reads, &mut self.read_bytes),
            Action::Write => (&mut self.writes, &mut self.written_bytes),
            Action::Discard => (&mut self.discards, &mut self.discarded_bytes),
            Action::Flush => {
                self.flushes += 1;
                return;
            }
        };
        *count += 1;
        *bytes += operation.length_bytes;
    }

    /// A line for people.
    pub fn text(&self, has_reads: bool) -> String {
        let bytes = |bytes: u64| human_size(bytes as f64);
        let mut parts = vec![format!("{} writes ({})", self.writes, bytes(self.written_bytes))];
        if has_reads {
            parts.push(format!("{} reads ({})", self.reads, bytes(self.read_bytes)));
        }
        if self.discards > 0 {
            parts.push(format!("{} discards ({})", self.discards, bytes(self.discarded_bytes)));
        }
        parts.push(format!("{} flushes", self.flushes));
        format!("{}, at stage {}", parts.join(", "), self.stage.letter())
    }

    /// Notes on requests that are no operations as they are.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.failed > 0 {
            notes.push(format!("the device failed {} requests, which are in the trace", self.failed));
        }
        if self.passed > 0 {
            notes.push(format!("{} commands without sectors are left out, such as those of nvme-cli", self.passed));
        }
        notes
    }
}

/// Converts events to operations, and counts them.
pub struct Requests<'a> {
    devices: &'a [Device],
    counts: Vec<Counts>,
    has_reads: bool,
    started_ns: u64,
}

impl Requests<'_> {
    /// Requests of these devices from the moment `started_ns` on; without a stage each device has its own.
    pub fn new(devices: &[Device], stage: Option<RecordedStage>, has_reads: bool, started_ns: u64) -> Requests<'_> {
        let own = |device: &Device| if device.has_queue { RecordedStage::Issued } else { RecordedStage::Queued };
        let counts = devices.iter().map(|device| Counts::new(stage.unwrap_or_else(|| own(device)))).collect();
        Requests { devices, counts, has_reads, started_ns }
    }

    /// Appends the operations of an event: at most a flush and the request after it.
    pub fn add(&mut self, event: &BlockEvent, operations: &mut Vec<Operation>) {
        let Some(at) = self.devices.iter().position(|device| device.number == event.device) else { return };
        let counts = &mut self.counts[at];
        if event.kind == EventKind::Failed {
            counts.failed += 1;
            return;
        }
        if event.kind != counts.stage.kind() {
            return;
        }
        let letters = match Letters::parse(event.letters()) {
            Ok(letters) => letters,
            Err(reason) => {
                counts.unreadable += 1;
                counts.first_unreadable.get_or_insert_with(|| format!("{}: {reason}", event.letters().escape_ascii()));
                return;
            }
        };
        let bytes = u64::from(event.sectors) * SECTOR_BYTES;
        let flush = Operation {
            time_ns: event.time_ns.saturating_sub(self.started_ns),
            offset_bytes: 0,
            length_bytes: 0,
            action: Action::Flush,
            content: Content::Data,
            stream: 0,
            device: at as u32,
        };
        let mut add = |operation: Operation| {
            counts.add(&operation);
            operations.push(operation);
        };
        if letters.flush_before {
            add(flush);
        }
        match letters.action {
            Some(Action::Read) if !self.has_reads => {}
            Some(action) if bytes > 0 => {
                let content = if letters.metadata { Content::Metadata } else { Content::Data };
                let offset_bytes = event.sector.saturating_mul(SECTOR_BYTES);
                add(Operation { action, offset_bytes, length_bytes: bytes, content, ..flush });
            }
            Some(_) => counts.passed += 1,
            None => {}
        }
    }

    /// The reasons why the trace is partial.
    pub fn problems(&self) -> Vec<String> {
        let unreadable = self.counts.iter().zip(self.devices).filter(|(counts, _)| counts.unreadable > 0);
        let told = unreadable.map(|(counts, device)| {
            let first = counts.first_unreadable.as_deref().unwrap_or_default();
            format!("{}: {} events were not understood: {first}", device.file.display(), counts.unreadable)
        });
        told.collect()
    }

    /// The counts, by device.
    pub fn counts(self) -> Vec<Counts> {
        self.counts
    }
}
