//! What a failed write or flush has cost: what a volume says of it when it ends.

use std::fmt;

/// What a failed write or flush has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What failed.
    pub why: String,
    /// Files and directories that were changed since the last checkpoint. An fsync may have stored some of these changes.
    pub inodes: u64,
    /// The first of them by number.
    pub first_inodes: Vec<u64>,
    /// Blocks that waited, or were written and not flushed.
    pub blocks: u64,
}

impl fmt::Display for Lost {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lost { why, inodes, first_inodes, blocks } = self;
        write!(
            to,
            "{why}; lost is what was not synced since the last checkpoint: changes to {inodes} files and directories"
        )?;
        if !first_inodes.is_empty() {
            let numbers: Vec<String> = first_inodes.iter().map(u64::to_string).collect();
            let more = if first_inodes.len() as u64 == *inodes { "" } else { ", ..." };
            write!(to, " (inodes {}{more})", numbers.join(", "))?;
        }
        write!(to, ", {blocks} blocks of 4 KiB")
    }
}
