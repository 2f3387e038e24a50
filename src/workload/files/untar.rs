//! `untar`: unpacks an archive of a source tree, as `tar xf` does. The archive itself is not read.
//!
//! GNU tar reads an archive in records of 10 KiB and writes the part of a file in one record with one call. A file
//! begins after its header of 512 bytes and ends at a multiple of 512 bytes, so its first write ends where the record
//! ends, and the next ones are whole records. tar also sets times, owners and modes, which is omitted here.

use super::source_tree::{ArchiveOrder, SourceTree};
use super::{FileOperation, Lane, Name, Parts, Stage, part};
use crate::expression::Settings;
use crate::workload::WorkloadError;
use std::ops::Range;

const STAGES: &[Stage] = &[Stage { name: "unpacking", counted: true }];

/// The block size of an archive: a header is one, and data is padded to a multiple.
const TAR_BLOCK: u64 = 512;

/// The shares of sources and headers, as in `compile`; they affect file names only.
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
    /// The files still to be created in the current directory.
    files: Range<Name>,
    /// The position in the archive, in bytes.
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
