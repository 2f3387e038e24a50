//! A recorded load in a file: the writes of a device's trace, in a file of exactly the blocks that it writes. The
//! blocks keep their order; unwritten space and reads are omitted.

use crate::ReproduceError;
use flashpath::workload::trace::{Addresses, TraceOptions, TraceWorkload};
use flashpath::workload::{Action, Operation, Workload, WorkloadError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BLOCK: u64 = 4096;
const BATCH: usize = 1024;
/// The most repetitions of the trace.
const REPEAT: u64 = 1000;

/// A trace and the blocks that it writes.
#[derive(Debug, PartialEq)]
pub struct Recording {
    pub trace: PathBuf,
    /// The written blocks in ascending order.
    blocks: Vec<u64>,
}

impl Recording {
    /// Reads the trace once.
    pub fn read(trace: &Path) -> Result<Recording, ReproduceError> {
        let mut workload = TraceWorkload::open(trace, TraceOptions::default(), u64::MAX / 2)?;
        let mut blocks = BTreeSet::new();
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch, BATCH)? > 0 {
            for operation in batch.drain(..).filter(|operation| operation.action == Action::Write) {
                blocks.extend(touched(&operation));
            }
        }
        Ok(Recording { trace: trace.to_path_buf(), blocks: blocks.into_iter().collect() })
    }

    /// Bytes of the file for its replay.
    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK
    }
}

fn touched(operation: &Operation) -> std::ops::Range<u64> {
    operation.offset_bytes / BLOCK..operation.end_bytes().div_ceil(BLOCK)
}

/// Repeats the writes of a trace in a file of the blocks that it writes.
pub struct Compact {
    recording: Arc<Recording>,
    inner: TraceWorkload,
    amount: u64,
    left: u64,
}

impl Compact {
    /// Opens the workload for this many bytes of writes.
    pub fn open(recording: &Arc<Recording>, bytes: u64) -> Result<Compact, ReproduceError> {
        let options = TraceOptions { repeat: REPEAT, addresses: Addresses::Refuse, ..TraceOptions::default() };
        let inner = TraceWorkload::open(&recording.trace, options, u64::MAX / 2)?;
        Ok(Compact { recording: Arc::clone(recording), inner, amount: bytes, left: bytes })
    }
}

impl Workload for Compact {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let before = batch.len();
        let mut taken = Vec::new();
        while batch.len() == before && self.left > 0 {
            if self.inner.next_batch(&mut taken, limit)? == 0 {
                break;
            }
            for operation in taken.drain(..).filter(|operation| operation.action == Action::Write) {
                let range = touched(&operation);
                let (first, count) =
                    (self.recording.blocks.partition_point(|block| *block < range.start), range.end - range.start);
                if count == 0 || self.left == 0 {
                    continue;
                }
                let bytes = count * BLOCK;
                self.left = self.left.saturating_sub(bytes);
                // All blocks of a write are in the file, and so are adjacent here, too.
                batch.push(Operation { offset_bytes: first as u64 * BLOCK, length_bytes: bytes, ..operation });
            }
        }
        Ok(batch.len() - before)
    }

    fn progress(&self) -> Option<f64> {
        Some(1.0 - self.left as f64 / self.amount.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_load_keeps_the_order_of_its_blocks_and_omits_unwritten_ones() {
        let file = std::env::temp_dir().join(format!("flashpath-compact-{}.csv", std::process::id()));
        // Sectors of 512 bytes: blocks 100 and 101, a read, block 5, and a part of block 101.
        let rows = ["0,WS,800,16,a", "1,R,0,8,a", "2,W,40,8,a", "3,W,808,1,a"];
        std::fs::write(&file, format!("time_us,rwbs,sector,nsect,comm\n{}\n", rows.join("\n"))).unwrap();
        let recording = Arc::new(Recording::read(&file).ok().unwrap());
        let mut load = Compact::open(&recording, 6 * BLOCK).ok().unwrap();
        let mut batch = Vec::new();
        while load.next_batch(&mut batch, 2).unwrap() > 0 {}
        std::fs::remove_file(&file).unwrap();
        let places: Vec<_> = batch.iter().map(|one| (one.offset_bytes / BLOCK, one.length_bytes / BLOCK)).collect();
        assert_eq!(recording.bytes(), 3 * BLOCK);
        assert_eq!(places, [(1, 2), (0, 1), (2, 1), (1, 2)], "repeated up to the amount");
        assert_eq!(load.progress(), Some(1.0));
    }
}
