//! File workloads without some of their calls.

use flashpath::workload::WorkloadError;
use flashpath::workload::files::{FileOperation, FileWorkload, Lane, Name};

/// The workload without its reads: a kernel's trace has no reads that hit the page cache, and a volume in this process
/// has no page cache.
pub fn with_cached_reads(workload: FileWorkload) -> FileWorkload {
    without(workload, |operation| matches!(operation, FileOperation::Read { .. }))
}

/// The workload without its syncs.
pub fn without_syncs(workload: FileWorkload) -> FileWorkload {
    without(workload, |operation| {
        use FileOperation::{Fdatasync, Fsync, Sync, SyncDirectory};
        matches!(operation, Fsync(_) | Fdatasync(_) | SyncDirectory(_) | Sync)
    })
}

/// True for the calls that are left out.
type IsLeftOut = fn(&FileOperation) -> bool;

fn without(mut workload: FileWorkload, is_left_out: IsLeftOut) -> FileWorkload {
    let lanes = std::mem::take(&mut workload.lanes).into_iter();
    workload.lanes = lanes.map(|lane| Box::new(Without { lane, is_left_out }) as Box<dyn Lane>).collect();
    workload
}

struct Without {
    lane: Box<dyn Lane>,
    is_left_out: IsLeftOut,
}

impl Lane for Without {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        let goes_on = self.lane.step(stage, operations)?;
        operations.retain(|operation| !(self.is_left_out)(operation));
        Ok(goes_on)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        self.lane.write_path(name, path);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        self.lane.progress(stage)
    }

    fn rejected(&self) -> u64 {
        self.lane.rejected()
    }

    fn warnings(&self) -> Vec<String> {
        self.lane.warnings()
    }
}
