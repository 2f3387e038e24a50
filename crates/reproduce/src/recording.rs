//! A recorded load in a file: the writes and flushes of a device's trace, in a file of exactly the blocks that it writes.
//! The blocks keep their order; unwritten space and reads are omitted.

use crate::ReproduceError;
use flashpath::label::Content;
use flashpath::workload::trace::{TraceOptions, TraceWorkload};
use flashpath::workload::{Action, Operation, Workload, WorkloadError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BLOCK: u64 = 4096;
const BATCH: usize = 1024;
/// Blocks of an extent: a sample holds all of its blocks, or none.
const EXTENT: u64 = 16;

/// A request of a recording: a write of blocks of its file, or a flush.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    first: u32,
    /// 0 for a flush.
    blocks: u32,
    content: Content,
}

/// A trace in memory, and the number of blocks that it writes.
#[derive(Debug, PartialEq)]
pub struct Recording {
    pub trace: PathBuf,
    blocks: u64,
    requests: Vec<Request>,
}

impl Recording {
    /// Reads a trace.
    pub fn read(trace: &Path) -> Result<Recording, ReproduceError> {
        Recording::sample(trace, 1)
    }

    /// Reads the requests to one in `parts` of the trace's extents, chosen by a hash: a smaller load with the same skew,
    /// and with the same lifetimes as shares of all that is written.
    pub fn sample(trace: &Path, parts: u64) -> Result<Recording, ReproduceError> {
        let mut workload = TraceWorkload::open(trace, TraceOptions::default(), u64::MAX / 2)?;
        let (mut blocks, mut runs) = (BTreeSet::new(), Vec::new());
        let mut batch = Vec::new();
        while workload.next_batch(&mut batch, BATCH)? > 0 {
            for operation in batch.drain(..) {
                match operation.action {
                    Action::Write => {
                        let mut written: Vec<u64> = touched(&operation).filter(|at| is_sampled(*at, parts)).collect();
                        blocks.extend(written.iter().copied());
                        written.sort_unstable();
                        let adjacent = written.chunk_by(|one, next| one + 1 == *next);
                        runs.extend(adjacent.map(|run| (run[0], run.len() as u32, operation.content)));
                    }
                    Action::Flush => runs.push((0, 0, operation.content)),
                    Action::Read | Action::Discard => {}
                }
            }
        }
        let blocks: Vec<u64> = blocks.into_iter().collect();
        // All blocks of a run are in the file, and so are adjacent there, too.
        let place = |block: u64| blocks.partition_point(|other| *other < block) as u32;
        let requests = runs.into_iter().map(|(block, count, content)| Request {
            first: if count > 0 { place(block) } else { 0 },
            blocks: count,
            content,
        });
        Ok(Recording { trace: trace.to_path_buf(), requests: requests.collect(), blocks: blocks.len() as u64 })
    }

    /// Bytes that all requests write.
    pub fn written_bytes(&self) -> u64 {
        self.requests.iter().map(|request| u64::from(request.blocks) * BLOCK).sum()
    }

    /// Bytes of the file for its replay.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK
    }
}

fn touched(operation: &Operation) -> std::ops::Range<u64> {
    operation.offset_bytes / BLOCK..operation.end_bytes().div_ceil(BLOCK)
}

fn is_sampled(block: u64, parts: u64) -> bool {
    let mixed = (block / EXTENT).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    parts == 1 || (mixed ^ mixed >> 32).wrapping_mul(0xBF58_476D_1CE4_E5B9).is_multiple_of(parts)
}

/// Repeats the writes of a recording in a file of the blocks that it writes.
pub struct Compact {
    recording: Arc<Recording>,
    name: String,
    keeps_flushes: bool,
    next: usize,
    amount: u64,
    left: u64,
}

impl Compact {
    /// The workload of this many bytes of writes, with the recorded flushes or without.
    ///
    /// Fails if the recording has no write.
    pub fn open(recording: &Arc<Recording>, bytes: u64, keeps_flushes: bool) -> Result<Compact, WorkloadError> {
        let name = recording.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if recording.blocks == 0 {
            return Err(WorkloadError::Unusable { file: name, reason: "it writes nothing".to_string() });
        }
        let recording = Arc::clone(recording);
        Ok(Compact { recording, name, keeps_flushes, next: 0, amount: bytes, left: bytes })
    }
}

impl Workload for Compact {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_batch(&mut self, batch: &mut Vec<Operation>, limit: usize) -> Result<usize, WorkloadError> {
        let before = batch.len();
        while batch.len() < before + limit && self.left > 0 {
            let Request { first, blocks, content } = self.recording.requests[self.next];
            self.next = (self.next + 1) % self.recording.requests.len();
            if blocks == 0 && !self.keeps_flushes {
                continue;
            }
            let length_bytes = u64::from(blocks) * BLOCK;
            self.left = self.left.saturating_sub(length_bytes);
            batch.push(Operation {
                time_ns: 0,
                offset_bytes: u64::from(first) * BLOCK,
                length_bytes,
                action: if blocks == 0 { Action::Flush } else { Action::Write },
                content,
                stream: 0,
                device: 0,
            });
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

    fn recording(name: &str, rows: &[&str], parts: u64) -> Arc<Recording> {
        let file = std::env::temp_dir().join(format!("flashpath-{name}-{}.csv", std::process::id()));
        std::fs::write(&file, format!("time_us,rwbs,sector,nsect,comm\n{}\n", rows.join("\n"))).unwrap();
        let recording = Recording::sample(&file, parts).ok().unwrap();
        std::fs::remove_file(&file).unwrap();
        Arc::new(recording)
    }

    fn all(load: &mut Compact, limit: usize) -> Vec<(u64, u64)> {
        let mut batch = Vec::new();
        while load.next_batch(&mut batch, limit).unwrap() > 0 {}
        batch.iter().map(|one| (one.offset_bytes / BLOCK, one.length_bytes / BLOCK)).collect()
    }

    #[test]
    fn a_recorded_load_keeps_the_order_of_its_blocks_and_omits_unwritten_ones() {
        // Sectors of 512 bytes: blocks 100 and 101, a read, block 5, a flush, and a part of block 101.
        let rows = ["0,WS,800,16,a", "1,R,0,8,a", "2,W,40,8,a", "3,F,0,0,a", "4,W,808,1,a"];
        let recording = recording("compact", &rows, 1);
        assert_eq!(recording.bytes(), 3 * BLOCK);
        let mut load = Compact::open(&recording, 6 * BLOCK, false).ok().unwrap();
        assert_eq!(all(&mut load, 2), [(1, 2), (0, 1), (2, 1), (1, 2)], "repeated up to the amount");
        assert_eq!(load.progress(), Some(1.0));
        let mut flushed = Compact::open(&recording, 4 * BLOCK, true).ok().unwrap();
        assert_eq!(all(&mut flushed, 9), [(1, 2), (0, 1), (0, 0), (2, 1)]);
    }

    #[test]
    fn a_sample_has_whole_extents_of_the_trace() {
        // 1,024 blocks of 8 sectors in one write.
        let recording = recording("sample", &["0,W,0,8192,a"], 4);
        let blocks = recording.bytes() / BLOCK;
        assert!((128..512).contains(&blocks) && blocks.is_multiple_of(EXTENT), "{blocks}");
        let mut load = Compact::open(&recording, recording.bytes(), false).ok().unwrap();
        assert!(all(&mut load, 9).iter().all(|(first, count)| first % EXTENT == 0 && count % EXTENT == 0));
    }
}
