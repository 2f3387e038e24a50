//! The operations of the counted stages, by class.

use crate::label::Content;
use crate::report::{LatencyHistogram, LogRow};
use crate::run::windows::Asked;
use crate::units::BLOCK_BYTES;
use crate::workload::files::FileOperation;
use std::collections::BTreeMap;

/// The classes in which operations are counted.
pub(super) const CLASSES: [&str; 19] = [
    "mkdir",
    "create",
    "open",
    "stat",
    "read",
    "write",
    "fsync",
    "close",
    "unlink",
    "rename",
    "preallocate",
    "discard",
    "sync",
    "rmdir",
    "link",
    "symlink",
    "truncate",
    "idle",
    "fbarrier",
];

/// The place of an operation's class in [`CLASSES`].
pub(super) fn class_index(operation: &FileOperation) -> usize {
    match operation {
        FileOperation::MakeDirectory(_) => 0,
        FileOperation::Create(_) => 1,
        FileOperation::Open(_) => 2,
        FileOperation::Stat(_) => 3,
        FileOperation::Read { .. } => 4,
        FileOperation::Write { .. } => 5,
        FileOperation::Fsync(_) | FileOperation::Fdatasync(_) => 6,
        FileOperation::Close(_) => 7,
        FileOperation::Unlink(_) => 8,
        FileOperation::Rename { .. } => 9,
        FileOperation::Preallocate { .. } => 10,
        FileOperation::Discard { .. } => 11,
        FileOperation::Sync => 12,
        FileOperation::SyncDirectory(_) => 6,
        FileOperation::RemoveDirectory(_) => 13,
        FileOperation::Link { .. } => 14,
        FileOperation::Symlink { .. } => 15,
        FileOperation::Truncate { .. } => 16,
        FileOperation::Idle { .. } => 17,
        FileOperation::Fbarrier(_) | FileOperation::Fdatabarrier(_) => 18,
    }
}

/// The class of an operation.
pub(super) fn class(operation: &FileOperation) -> &'static str {
    CLASSES[class_index(operation)]
}

/// The row of an operation in the log, without its times.
pub(super) fn log_row(thread: u32, operation: &FileOperation) -> LogRow {
    let (file, range) = match *operation {
        FileOperation::MakeDirectory(name)
        | FileOperation::Create(name)
        | FileOperation::Open(name)
        | FileOperation::Stat(name)
        | FileOperation::Fsync(name)
        | FileOperation::Fdatasync(name)
        | FileOperation::Fbarrier(name)
        | FileOperation::Fdatabarrier(name)
        | FileOperation::Close(name)
        | FileOperation::Unlink(name)
        | FileOperation::RemoveDirectory(name)
        | FileOperation::SyncDirectory(name)
        | FileOperation::Symlink { name, .. }
        | FileOperation::Truncate { file: name, .. }
        | FileOperation::Link { from: name, .. }
        | FileOperation::Rename { from: name, .. } => (Some(name), None),
        FileOperation::Preallocate { file, length } => (Some(file), Some((0, length))),
        FileOperation::Read { file, offset, length }
        | FileOperation::Write { file, offset, length, .. }
        | FileOperation::Discard { file, offset, length } => (Some(file), Some((offset, length))),
        FileOperation::Sync | FileOperation::Idle { .. } => (None, None),
    };
    LogRow {
        thread,
        action: class(operation),
        file,
        offset_bytes: range.map(|(offset, _)| offset),
        length_bytes: range.map(|(_, length)| length),
        content: matches!(operation, FileOperation::Write { .. }).then(|| Content::Data.name()),
        time: None,
    }
}

/// The blocks that an operation writes and reads.
pub(super) fn moved(operation: &FileOperation) -> Asked {
    match *operation {
        FileOperation::Read { offset, length, .. } => Asked { written_blocks: 0, read_blocks: blocks(offset, length) },
        FileOperation::Write { offset, length, .. } => Asked { written_blocks: blocks(offset, length), read_blocks: 0 },
        _ => Asked { written_blocks: 0, read_blocks: 0 },
    }
}

/// The operations of the counted stages.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) latencies: BTreeMap<&'static str, LatencyHistogram>,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) read_blocks: u64,
    pub(super) written_blocks: u64,
    pub(super) discarded_blocks: u64,
}

impl Tally {
    pub(super) fn count(&mut self, operation: &FileOperation, latency_ns: u64) {
        self.latencies.entry(class(operation)).or_default().record(latency_ns);
        match *operation {
            FileOperation::Read { offset, length, .. } => {
                self.read_bytes += length;
                self.read_blocks += blocks(offset, length);
            }
            FileOperation::Write { offset, length, .. } => {
                self.written_bytes += length;
                self.written_blocks += blocks(offset, length);
            }
            FileOperation::Discard { offset, length, .. } => self.discarded_blocks += blocks(offset, length),
            _ => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Tally) {
        for (class, latency) in &other.latencies {
            self.latencies.entry(class).or_default().merge(latency);
        }
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.read_blocks += other.read_blocks;
        self.written_blocks += other.written_blocks;
        self.discarded_blocks += other.discarded_blocks;
    }
}

/// Blocks of 4 KiB that these bytes touch; there is one byte at least.
fn blocks(offset: u64, length: u64) -> u64 {
    (offset + length - 1) / BLOCK_BYTES - offset / BLOCK_BYTES + 1
}
