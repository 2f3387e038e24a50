//! A recorded load as a file system sees it: the writes of a trace of a device, in a file of exactly the blocks that it writes. The blocks
//! keep their order; space that is never written, and reads, are left out.

use crate::failure::Failure;
use flashpath::workload::trace::{Addresses, TraceOptions, TraceWorkload};
use flashpath::workload::{Action, Operation, Workload, WorkloadError};
use std::path::Path;

const BLOCK: u64 = 4096;
const BATCH: usize = 1024;
/// The trace begins anew so often at most.
const REPEAT: u64 = 1000;

/// The blocks that a trace writes, in order.
pub fn written_blocks(trace: &Path) -> Result<Vec<u64>, Failure> {
    let mut workload = TraceWorkload::open(trace, TraceOptions::default(), u64::MAX / 2)?;
    let mut blocks = Vec::new();
    let mut batch = Vec::new();
    while workload.next_batch(&mut batch, BATCH)? > 0 {
        for operation in batch.drain(..).filter(|operation| operation.action == Action::Write) {
            blocks.extend(touched(&operation));
        }
        if blocks.len() > 1 << 24 {
            blocks.sort_unstable();
            blocks.dedup();
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    Ok(blocks)
}

fn touched(operation: &Operation) -> std::ops::Range<u64> {
    operation.offset_bytes / BLOCK..operation.end_bytes().div_ceil(BLOCK)
}

/// The writes of a trace, again and again, in a file of what it writes.
pub struct Compact {
    blocks: Vec<u64>,
    inner: TraceWorkload,
    asked: u64,
    left: u64,
}

impl Compact {
    /// So many bytes of writes.
    pub fn open(trace: &Path, bytes: u64) -> Result<Compact, Failure> {
        let blocks = written_blocks(trace)?;
        let options = TraceOptions { repeat: REPEAT, addresses: Addresses::Refuse, ..TraceOptions::default() };
        let inner = TraceWorkload::open(trace, options, u64::MAX / 2)?;
        Ok(Compact { blocks, inner, asked: bytes, left: bytes })
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
                    (self.blocks.partition_point(|block| *block < range.start), range.end - range.start);
                if count == 0 || self.left == 0 {
                    continue;
                }
                let bytes = count * BLOCK;
                self.left = self.left.saturating_sub(bytes);
                // All blocks of a write are written, and so are neighbours here, too.
                batch.push(Operation { offset_bytes: first as u64 * BLOCK, length_bytes: bytes, ..operation });
            }
        }
        Ok(batch.len() - before)
    }

    fn progress(&self) -> Option<f64> {
        Some(1.0 - self.left as f64 / self.asked.max(1) as f64)
    }
}
