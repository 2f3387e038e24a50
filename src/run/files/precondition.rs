//! Preconditioning: the first part of the counted stages, which is not counted.

use crate::workload::WorkloadError;
use crate::workload::files::{FileOperation, FileWorkload, Lane, Name, Stage};

/// Splits the first counted stage of a workload in two. The first part ends when the lanes have written `bytes`, each its
/// share, and is not counted. The second part continues it: both together emit the operations of the one stage.
pub(in crate::run) fn preconditioned(mut workload: FileWorkload, bytes: u64) -> FileWorkload {
    let Some(stage) = workload.stages.iter().position(|stage| stage.counted).filter(|_| bytes > 0) else {
        return workload;
    };
    workload.stages.insert(stage, Stage { name: "preconditioning", counted: false });
    let count = workload.lanes.len() as u64;
    let share = |number: u64| bytes / count + u64::from(number < bytes % count);
    let lanes = std::mem::take(&mut workload.lanes).into_iter().zip(0..);
    workload.lanes = lanes
        .map(|(lane, number)| {
            let bytes = share(number);
            Box::new(Preconditioned { lane, stage, bytes, left: bytes, ended: false }) as Box<dyn Lane>
        })
        .collect();
    workload
}

/// A lane with one of its stages in two parts.
struct Preconditioned {
    lane: Box<dyn Lane>,
    /// The first part's number: that of the stage in the lane itself.
    stage: usize,
    /// Bytes that the first part writes.
    bytes: u64,
    /// The bytes left to write.
    left: u64,
    /// True if the lane ended the stage within the first part.
    ended: bool,
}

impl Lane for Preconditioned {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        if stage < self.stage {
            return self.lane.step(stage, operations);
        }
        if stage > self.stage {
            let is_second_part = stage == self.stage + 1;
            return if is_second_part && self.ended { Ok(false) } else { self.lane.step(stage - 1, operations) };
        }
        if self.left == 0 {
            return Ok(false);
        }
        let before = operations.len();
        self.ended = !self.lane.step(stage, operations)?;
        self.left = self.left.saturating_sub(operations[before..].iter().map(written).sum());
        Ok(!self.ended)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        self.lane.write_path(name, path);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage.cmp(&self.stage) {
            std::cmp::Ordering::Less => self.lane.progress(stage),
            std::cmp::Ordering::Equal => Some(1.0 - self.left as f64 / self.bytes.max(1) as f64),
            std::cmp::Ordering::Greater => self.lane.progress(stage - 1),
        }
    }

    fn rejected(&self) -> u64 {
        self.lane.rejected()
    }

    fn warnings(&self) -> Vec<String> {
        self.lane.warnings()
    }
}

fn written(operation: &FileOperation) -> u64 {
    match operation {
        FileOperation::Write { length, .. } => *length,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse_term;
    use crate::workload::files::file_workload;

    fn workload(text: &str) -> FileWorkload {
        file_workload(&parse_term(text).unwrap(), 3).unwrap()
    }

    /// The operations of each lane in each stage.
    fn asked(mut workload: FileWorkload) -> Vec<Vec<Vec<FileOperation>>> {
        let stages = workload.stages.len();
        let stage_of = |lane: &mut Box<dyn Lane>, stage| {
            let mut operations = Vec::new();
            while lane.step(stage, &mut operations).unwrap() {}
            operations
        };
        workload.lanes.iter_mut().map(|lane| (0..stages).map(|stage| stage_of(lane, stage)).collect()).collect()
    }

    #[test]
    fn both_parts_ask_for_what_the_one_stage_did() {
        let text = "varmail:files=50,loops=100,threads=3";
        for bytes in [1, 100_000, 1 << 40] {
            let parted = preconditioned(workload(text), bytes);
            let counted: Vec<bool> = parted.stages.iter().map(|stage| stage.counted).collect();
            assert_eq!(counted, [false, false, false, true]);
            for (whole, parts) in asked(workload(text)).iter().zip(asked(parted)) {
                assert_eq!(whole[..2], parts[..2]);
                assert_eq!(whole[2], [&parts[2][..], &parts[3]].concat());
                assert_eq!(parts[3].is_empty(), bytes == 1 << 40);
                let share = bytes / 3;
                let first: u64 = parts[2].iter().map(written).sum();
                // A loop is done to its end: it appends twice.
                assert!(first >= share || parts[3].is_empty(), "{first} of {share}");
                assert!(first < share + 1 + 2 * (16 << 10), "{first} of {share}");
            }
        }
        assert_eq!(asked(preconditioned(workload(text), 0)), asked(workload(text)));
    }
}
