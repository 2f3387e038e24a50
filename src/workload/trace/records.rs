//! The seam of the formats: what reads the records of one trace.

use super::intake::Intake;
use crate::workload::Operation;
use std::io;

/// Reads records, whatever their format. One dynamic call is made for each batch.
pub(super) trait RecordReader: Send {
    /// Appends at most `limit` operations; none means that the trace has ended.
    fn read_batch(&mut self, out: &mut Vec<Operation>, limit: usize) -> io::Result<()>;

    /// What was taken so far, and what was not.
    fn intake(&self) -> &Intake;

    /// How many decompressed bytes were met, for the text of an error.
    fn met_bytes(&self) -> u64;

    /// What a user should know of what was read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
