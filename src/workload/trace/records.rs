//! The interface of the formats: a reader of one trace's records.

use super::intake::Intake;
use crate::workload::Operation;
use std::io;

/// Reads records of any format, with one dynamic call for each batch.
pub(super) trait RecordReader: Send {
    /// Appends at most `limit` operations; none at the end of the trace.
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()>;

    /// The counts and rejections so far.
    fn intake(&self) -> &Intake;

    /// The number of bytes decompressed so far, for error messages.
    fn decompressed_bytes(&self) -> u64;

    /// Notes for the user about the records read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
