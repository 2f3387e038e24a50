//! The file of a block workload, and the space that it finds used in its volume.

use crate::fs::volume::Space;
use crate::units::{BLOCK_BYTES, format_size};

/// The space that a block workload finds used in a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FileShape {
    /// The size of the workload's file, in bytes; `None` for nine tenths of the free space.
    pub bytes: Option<u64>,
    /// The share of all blocks that the file and a dummy file take together; the dummy file is never overwritten
    /// (section 4.1 of the SFS paper: dummy blocks). `None` for no dummy file.
    pub utilization: Option<f64>,
    /// The number of writes after which the file is synced, besides the workload's own flushes.
    pub fsync_every: Option<u64>,
}

impl FileShape {
    /// The given ones as arguments of the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        arguments.extend(self.bytes.map(|bytes| format!("--size {}", format_size(bytes))));
        arguments.extend(self.utilization.map(|share| format!("--utilization {share}")));
        arguments.extend(self.fsync_every.map(|every| format!("--fsync-every {every}")));
        arguments
    }

    /// The blocks of the workload's file in an empty volume.
    pub(super) fn file_blocks(&self, space: &Space) -> u64 {
        self.bytes.unwrap_or(space.free_blocks * 9 / 10 * BLOCK_BYTES) / BLOCK_BYTES
    }

    /// The blocks of the dummy file in an empty volume; `None` for no dummy file.
    pub(super) fn dummy_blocks(&self, space: &Space) -> Option<u64> {
        let blocks = self.file_blocks(space);
        let taken = (space.blocks as f64 * self.utilization?) as u64;
        Some(taken.saturating_sub(blocks + blocks / 64))
    }
}
