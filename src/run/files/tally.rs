//! The operations of the counted stages, by class.

use crate::report::LatencyHistogram;
use crate::units::BLOCK_BYTES;
use crate::workload::files::FileOperation;
use std::collections::BTreeMap;

/// The classes in which operations are counted.
fn class(operation: &FileOperation) -> &'static str {
    match operation {
        FileOperation::MakeDirectory(_) => "mkdir",
        FileOperation::Create(_) => "create",
        FileOperation::Open(_) => "open",
        FileOperation::Stat(_) => "stat",
        FileOperation::Read { .. } => "read",
        FileOperation::Write { .. } => "write",
        FileOperation::Fsync(_) | FileOperation::Fdatasync(_) => "fsync",
        FileOperation::Close(_) => "close",
        FileOperation::Unlink(_) => "unlink",
        FileOperation::Rename { .. } => "rename",
        FileOperation::Preallocate { .. } => "preallocate",
        FileOperation::Discard { .. } => "discard",
        FileOperation::Sync => "sync",
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
