//! `untar`: an archive of a source tree is unpacked, as `tar xf` does. Only what is asked of the file system that holds
//! the tree is asked: the archive is not read.
//!
//! GNU tar reads an archive in records of 10 KiB and writes what a record holds of a file with one call. A file begins
//! behind its header of 512 bytes and ends at a multiple of 512 bytes, so its first write ends where the record ends, and
//! the next ones are whole records. tar also sets times, owners and modes, which is left out.

use super::source_tree::{ArchiveOrder, SourceTree};
use super::{FileOperation, Lane, Name, Parts, Stage, part};
use crate::expression::Settings;
use crate::workload::WorkloadError;
use std::ops::Range;

const STAGES: &[Stage] = &[Stage { name: "unpacking", counted: true }];

/// What an archive is made of: headers, and data filled up to a multiple.
const TAR_BLOCK: u64 = 512;

/// How many of the files are sources and headers, as in `compile`; here it decides their names alone.
const SHARES: (f64, f64) = (0.5, 0.34);

pub(super) fn lanes(settings: &Settings, seed: u64) -> Parts {
    let tree = SourceTree::new("untar", settings, SHARES, seed);
    let record_bytes = settings.size("record");
    let unpacking = Untar { unpacked: 0, order: ArchiveOrder::new(), files: 0..0, at: 0, record_bytes, tree };
    (STAGES, vec![Box::new(unpacking)])
}

struct Untar {
    tree: SourceTree,
    order: ArchiveOrder,
    /// The files that are still to be made in the directory that was made last.
    files: Range<Name>,
    /// Where the archive is read, in bytes.
    at: u64,
    record_bytes: u64,
    unpacked: u64,
}

impl Lane for Untar {
    fn step(&mut self, _stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        let Some(file) = self.files.next() else {
            let directory = self.order.next(&self.tree);
            if let Some(directory) = directory {
                operations.push(FileOperation::MakeDirectory(directory));
                self.files = self.tree.files_in(directory);
                self.at += TAR_BLOCK;
            }
            return Ok(directory.is_some());
        };
        self.unpacked += 1;
        self.at += TAR_BLOCK;
        let size = self.tree.size(file);
        operations.push(FileOperation::Create(file));
        let mut offset = 0;
        while offset < size {
            let length = (self.record_bytes - self.at % self.record_bytes).min(size - offset);
            operations.push(FileOperation::Write { file, offset, length, version: 0 });
            (offset, self.at) = (offset + length, self.at + length);
        }
        self.at = self.at.next_multiple_of(TAR_BLOCK);
        operations.push(FileOperation::Close(file));
        Ok(true)
    }

    fn write_path(&self, name: Name, path: &mut String) {
        self.tree.write_path(name, path);
    }

    fn progress(&self, _stage: usize) -> Option<f64> {
        part(self.unpacked, self.tree.files())
    }
}
