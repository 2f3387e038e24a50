//! One operation of a lane as calls of the file system.

use super::lane::{LaneRun, opened};
use super::runner::Runner;
use crate::fs::{Durable, FileSystem, FileSystemError};
use crate::run::error::{RunError, RunFault};
use crate::task::Task;
use crate::workload::files::{FileOperation, Name, contents};
use std::time::Duration;

/// A lane that waits looks so often whether the run is to stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The largest read or write of one call, and so the buffer of a lane.
const LARGEST_CALL: u64 = 16 << 20;

impl<F: FileSystem> Runner<'_, F> {
    /// Does one operation, and returns the file system's time in nanoseconds, without the making of the written bytes.
    pub(super) fn apply(
        &self,
        task: &Task<'_>,
        lane: &mut LaneRun<F>,
        operation: &FileOperation,
    ) -> Result<u64, RunError> {
        let (files, clock) = (self.files, || self.time_of(task));
        let timed = |call: &mut dyn FnMut() -> Result<(), FileSystemError>| {
            let began = clock();
            call()?;
            Ok(clock().saturating_sub(began))
        };
        match *operation {
            FileOperation::MakeDirectory(name) => {
                lane.write_path(name);
                timed(&mut || files.make_directory(task, &lane.path))
            }
            FileOperation::Create(name) | FileOperation::Open(name) => {
                lane.write_path(name);
                let creates = matches!(operation, FileOperation::Create(_));
                let began = clock();
                let file = if creates { files.create(task, &lane.path)? } else { files.open(task, &lane.path)? };
                let latency_ns = clock().saturating_sub(began);
                lane.open.push((name, file));
                Ok(latency_ns)
            }
            FileOperation::Stat(name) => {
                lane.write_path(name);
                timed(&mut || files.length(task, &lane.path).map(|_| ()))
            }
            FileOperation::Read { file, offset, length } => self.read(task, lane, file, offset, length),
            FileOperation::Write { file, offset, length, version } => {
                self.write(task, lane, file, offset, length, version)
            }
            FileOperation::Fsync(name) => timed(&mut || files.sync_file(task, opened(&lane.open, name), Durable::All)),
            FileOperation::Fdatasync(name) => {
                timed(&mut || files.sync_file(task, opened(&lane.open, name), Durable::Data))
            }
            FileOperation::Fbarrier(name) => {
                timed(&mut || files.order_file(task, opened(&lane.open, name), Durable::All))
            }
            FileOperation::Fdatabarrier(name) => {
                timed(&mut || files.order_file(task, opened(&lane.open, name), Durable::Data))
            }
            FileOperation::Close(name) => {
                opened(&lane.open, name);
                let place = lane.open.iter().position(|(open, _)| *open == name).expect("it was just found");
                let (_, file) = lane.open.swap_remove(place);
                let began = clock();
                files.close(task, file)?;
                Ok(clock().saturating_sub(began))
            }
            FileOperation::Unlink(name) => {
                lane.write_path(name);
                timed(&mut || files.unlink(task, &lane.path))
            }
            FileOperation::Rename { from, to } => {
                lane.other_path.clear();
                lane.lane.write_path(to, &mut lane.other_path);
                lane.write_path(from);
                timed(&mut || files.rename(task, &lane.path, &lane.other_path))
            }
            FileOperation::Preallocate { file, length } => {
                timed(&mut || files.preallocate(task, opened(&lane.open, file), 0, length))
            }
            FileOperation::Discard { file, offset, length } => {
                timed(&mut || files.discard(task, opened(&lane.open, file), offset, length))
            }
            FileOperation::Link { from, to } => {
                lane.other_path.clear();
                lane.lane.write_path(to, &mut lane.other_path);
                lane.write_path(from);
                timed(&mut || files.link(task, &lane.path, &lane.other_path))
            }
            FileOperation::Symlink { name, length } => {
                lane.write_path(name);
                let target = "x".repeat(length as usize);
                timed(&mut || files.symlink(task, &lane.path, &target))
            }
            FileOperation::RemoveDirectory(name) => {
                lane.write_path(name);
                timed(&mut || files.remove_directory(task, &lane.path))
            }
            FileOperation::SyncDirectory(name) => {
                lane.write_path(name);
                timed(&mut || files.sync_directory(task, &lane.path))
            }
            FileOperation::Truncate { file, length } => {
                timed(&mut || files.truncate(task, opened(&lane.open, file), length))
            }
            FileOperation::Idle { ns } => {
                self.idle(task, ns);
                Ok(0)
            }
            FileOperation::Sync => timed(&mut || files.sync(task)),
        }
    }

    fn write(
        &self,
        task: &Task<'_>,
        lane: &mut LaneRun<F>,
        file: Name,
        offset: u64,
        length: u64,
        version: u32,
    ) -> Result<u64, RunError> {
        let (mut latency_ns, mut at) = (0, offset);
        while at < offset + length {
            let bytes = room(&mut lane.buffer, (offset + length - at).min(LARGEST_CALL));
            contents::fill(self.seed, file, version, at, bytes);
            let began = self.time_of(task);
            self.files.write_at(task, opened(&lane.open, file), at, bytes)?;
            latency_ns += self.time_of(task).saturating_sub(began);
            at += bytes.len() as u64;
        }
        Ok(latency_ns)
    }

    fn read(
        &self,
        task: &Task<'_>,
        lane: &mut LaneRun<F>,
        file: Name,
        offset: u64,
        length: u64,
    ) -> Result<u64, RunError> {
        let (mut latency_ns, mut at) = (0, offset);
        while at < offset + length {
            let bytes = room(&mut lane.buffer, (offset + length - at).min(LARGEST_CALL));
            let asked = bytes.len();
            let began = self.time_of(task);
            let read = self.files.read_at(task, opened(&lane.open, file), at, bytes)?;
            latency_ns += self.time_of(task).saturating_sub(began);
            if read < asked {
                lane.write_path(file);
                let path = lane.path.clone();
                return Err(RunFault::Short { path, found: at + read as u64, expected: offset + length }.into());
            }
            at += asked as u64;
        }
        Ok(latency_ns)
    }

    /// Waits; in real time no longer than until the run is to stop.
    fn idle(&self, task: &Task<'_>, ns: u64) {
        if task.is_simulated() {
            return task.wait_until(task.now() + ns);
        }
        let mut left = Duration::from_nanos(ns);
        while !left.is_zero() && !self.stops() {
            let part = left.min(LONGEST_SLEEP);
            std::thread::sleep(part);
            left -= part;
        }
    }

    /// Closes the open files of a stopped lane. An error here fails the run, although nothing measured depends on it.
    pub(super) fn close_all(&self, task: &Task<'_>, lane: &mut LaneRun<F>) {
        for (_, file) in std::mem::take(&mut lane.open) {
            if let Err(error) = self.files.close(task, file) {
                self.fail_in(lane, error.into());
            }
        }
    }
}

/// The first `length` bytes of a buffer, which grows if necessary.
fn room(buffer: &mut Vec<u8>, length: u64) -> &mut [u8] {
    let length = length as usize;
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    &mut buffer[..length]
}
