//! A file workload whose reads hit the page cache.

use flashpath::workload::WorkloadError;
use flashpath::workload::files::{FileOperation, FileWorkload, Lane, Name};

/// The workload without its reads: a kernel's trace has no reads that hit the page cache, and a volume in this process
/// has no page cache.
pub fn with_cached_reads(mut workload: FileWorkload) -> FileWorkload {
    workload.lanes = workload.lanes.into_iter().map(|lane| Box::new(CachedReads { lane }) as Box<dyn Lane>).collect();
    workload
}

struct CachedReads {
    lane: Box<dyn Lane>,
}

impl Lane for CachedReads {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        let goes_on = self.lane.step(stage, operations)?;
        operations.retain(|operation| !matches!(operation, FileOperation::Read { .. }));
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
