//! A block workload in one preallocated file of a file system, like a virtual machine's disk image.
//!
//! A discard punches a hole (as QEMU's `discard=unmap` does), and a flush makes the data durable (fdatasync, as QEMU
//! does). Requests are served one after the other.

use super::fill::Fill;
use crate::units::{BLOCK_BYTES, format_size};
use crate::workload::files::{FileOperation, FileWorkload, Lane, Name, ROOT, Setup, Stage};
use crate::workload::{Action, Operation, Workload, WorkloadError};

/// The name of the file.
pub const DISK_FILE: &str = "flashpath.disk";

/// The number of operations taken from the workload at once.
const BATCH: usize = 256;

/// The size of a write that fills the file, in bytes.
const FILL_BLOCK: u64 = 1 << 20;

/// The options of a block workload in a file.
#[derive(Clone, Copy, Debug)]
pub struct DiskFile {
    /// The size of the disk, in bytes, for which the workload was opened.
    pub size_bytes: u64,
    /// The part of the file that is written once, in order, before the counted run.
    pub fill: Fill,
    /// The number of writes after which the file is flushed, besides the workload's own flushes.
    pub fsync_every: Option<u64>,
}

impl DiskFile {
    /// Converts the block workload to a file workload.
    pub fn workload(self, workload: Box<dyn Workload>, seed: u64) -> FileWorkload {
        let name = workload.name().to_string();
        let lane = DiskLane {
            disk: self,
            workload,
            batch: Vec::with_capacity(BATCH),
            next: 0,
            writes: 0,
            filled: 0,
            is_made: false,
            is_open: true,
        };
        let stages = vec![Stage { name: "disk", counted: false }, Stage { name: "requests", counted: true }];
        FileWorkload { name, root: DISK_FILE, seed, stages, setup: Setup::default(), lanes: vec![Box::new(lane)] }
    }

    /// The options as arguments of the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("--size {}", format_size(self.size_bytes))];
        arguments.extend(self.fill.argument());
        arguments.extend(self.fsync_every.map(|every| format!("--fsync-every {every}")));
        arguments
    }
}

struct DiskLane {
    disk: DiskFile,
    workload: Box<dyn Workload>,
    batch: Vec<Operation>,
    /// The next operation of the batch.
    next: usize,
    writes: u64,
    /// Bytes written by the setup.
    filled: u64,
    is_made: bool,
    is_open: bool,
}

impl DiskLane {
    fn set_up(&mut self, operations: &mut Vec<FileOperation>) -> bool {
        let size = self.disk.size_bytes;
        if !self.is_made {
            self.is_made = true;
            operations.extend([FileOperation::Create(ROOT), FileOperation::Preallocate { file: ROOT, length: size }]);
            return true;
        }
        let filling = self.disk.fill.part_of(size / BLOCK_BYTES) * BLOCK_BYTES;
        let filling = if self.disk.fill == Fill::ALL { size } else { filling };
        if self.filled >= filling {
            return false;
        }
        let length = FILL_BLOCK.min(filling - self.filled);
        operations.push(FileOperation::Write { file: ROOT, offset: self.filled, length, version: 0 });
        self.filled += length;
        if self.filled == filling {
            operations.push(FileOperation::Fsync(ROOT));
        }
        true
    }

    fn serve(&mut self, operation: Operation, operations: &mut Vec<FileOperation>) -> Result<(), WorkloadError> {
        let Operation { offset_bytes: offset, length_bytes: length, action, .. } = operation;
        let file = ROOT;
        if operation.end_bytes() > self.disk.size_bytes {
            let (end, size) = (operation.end_bytes(), self.disk.size_bytes);
            let reason = format!("a request ends at byte {end}, and the disk has {size} bytes: take a larger --size");
            return Err(WorkloadError::Unusable { file: self.workload.name().to_string(), reason });
        }
        match action {
            Action::Flush => operations.push(FileOperation::Fdatasync(file)),
            _ if length == 0 => {}
            Action::Read => operations.push(FileOperation::Read { file, offset, length }),
            Action::Discard => operations.push(FileOperation::Discard { file, offset, length }),
            Action::Write => {
                self.writes += 1;
                operations.push(FileOperation::Write { file, offset, length, version: self.writes as u32 });
                if self.disk.fsync_every.is_some_and(|every| self.writes.is_multiple_of(every)) {
                    operations.push(FileOperation::Fdatasync(file));
                }
            }
        }
        Ok(())
    }
}

impl Lane for DiskLane {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        if stage == 0 {
            return Ok(self.set_up(operations));
        }
        if self.next == self.batch.len() {
            self.batch.clear();
            self.next = 0;
            if self.workload.next_batch(&mut self.batch, BATCH)? == 0 {
                if self.is_open {
                    operations.push(FileOperation::Close(ROOT));
                }
                return Ok(std::mem::take(&mut self.is_open));
            }
        }
        self.next += 1;
        self.serve(self.batch[self.next - 1], operations)?;
        Ok(true)
    }

    fn write_path(&self, _name: Name, path: &mut String) {
        path.push_str(DISK_FILE);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        match stage {
            0 => Some(self.filled as f64 / self.disk.fill.part_of(self.disk.size_bytes).max(1) as f64),
            _ => self.workload.progress(),
        }
    }

    fn rejected(&self) -> u64 {
        self.workload.rejected()
    }

    fn warnings(&self) -> Vec<String> {
        self.workload.warnings()
    }
}
