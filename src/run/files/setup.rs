//! Checks that an earlier run has left the setup: draws its operations from the lanes, as that run did, and compares the
//! files that they leave with those of the file system.
//!
//! Every directory must be there, and every file with its length. Of the bytes only the first of each lane's last write
//! are read, which tells a setup with another seed; that, and the look at each file, is all that the caches know of the
//! files when the counted stages begin.

use super::lane::LaneRun;
use super::runner::{Runner, Watch};
use crate::fs::FileSystem;
use crate::run::engine::Progress;
use crate::run::error::{InputFault, RunError, SetupFault};
use crate::workload::files::{FileOperation, Name, Stage, contents};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

/// The bytes of a write that are read again.
const READ_AGAIN: u64 = 64;

impl<F: FileSystem> Runner<'_, F> {
    /// Draws the operations of these stages, which an earlier run has done, and checks their files.
    pub(super) fn skip(&self, stages: &[Stage], name: &str, lanes: &mut [LaneRun<F>], watch: &mut Watch<'_>) {
        if stages.is_empty() {
            return;
        }
        for lane in lanes {
            if self.stops() {
                return;
            }
            if let Err(error) = self.draw(stages, name, lane, watch).and_then(|left| self.check(&left, lane, watch)) {
                self.fail(error);
            }
        }
    }

    fn draw(
        &self,
        stages: &[Stage],
        name: &str,
        lane: &mut LaneRun<F>,
        watch: &mut Watch<'_>,
    ) -> Result<Left, RunError> {
        let (mut left, mut requests) = (Left::default(), 0);
        let mut operations = std::mem::take(&mut lane.operations);
        for (number, stage) in stages.iter().enumerate() {
            while !self.stops() && lane.lane.step(number, &mut operations)? {
                requests += operations.len() as u64;
                operations.drain(..).for_each(|operation| left.add(&operation));
                self.ask(watch, &Progress { phase: stage.name, requests, share: None });
            }
        }
        lane.operations = operations;
        let is_open = !left.open.is_empty() && !self.stops();
        if is_open { Err(InputFault::Inseparable(name.to_string()).into()) } else { Ok(left) }
    }

    fn check(&self, left: &Left, lane: &mut LaneRun<F>, watch: &mut Watch<'_>) -> Result<(), RunError> {
        let directories = left.directories.iter().map(|name| (*name, None));
        let files = left.files.iter().map(|(name, length)| (*name, Some(*length)));
        for ((name, expected), requests) in directories.chain(files).zip(1..) {
            if self.stops() {
                return Ok(());
            }
            lane.write_path(name);
            let path = || lane.path.clone();
            let found = match self.alone(|task| self.files.length(task, &lane.path)) {
                Err(error) if matches!(error.source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Err(InputFault::NotSetUp(SetupFault::Missing(path())).into());
                }
                found => found?,
            };
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                return Err(InputFault::NotSetUp(SetupFault::Length { path: path(), found, expected }).into());
            }
            self.ask(watch, &Progress { phase: "looking for the setup", requests, share: None });
        }
        match left.last_write {
            Some(write) => self.read_again(write, lane),
            None => Ok(()),
        }
    }

    fn read_again(&self, write: Written, lane: &mut LaneRun<F>) -> Result<(), RunError> {
        let length = write.length.min(READ_AGAIN) as usize;
        let (mut expected, mut found) = (vec![0; length], vec![0; length]);
        contents::fill(self.seed, write.file, write.version, write.offset, &mut expected);
        lane.write_path(write.file);
        let file = self.alone(|task| self.files.open(task, &lane.path))?;
        let read = self.alone(|task| self.files.read_at(task, &file, write.offset, &mut found));
        self.alone(|task| self.files.close(task, file))?;
        if read? == length && found == expected {
            return Ok(());
        }
        Err(InputFault::NotSetUp(SetupFault::Contents(lane.path.clone())).into())
    }
}

/// The bytes that an operation wrote.
#[derive(Clone, Copy)]
struct Written {
    file: Name,
    offset: u64,
    length: u64,
    version: u32,
}

/// The files that the operations of one lane leave.
#[derive(Default)]
struct Left {
    directories: Vec<Name>,
    /// The length of each file, in bytes.
    files: BTreeMap<Name, u64>,
    open: BTreeSet<Name>,
    /// The last write, if nothing has happened to its file since.
    last_write: Option<Written>,
}

impl Left {
    fn add(&mut self, operation: &FileOperation) {
        match *operation {
            FileOperation::MakeDirectory(name) => self.directories.push(name),
            FileOperation::Create(name) => {
                self.files.insert(name, 0);
                self.open.insert(name);
            }
            FileOperation::Open(name) => {
                self.open.insert(name);
            }
            FileOperation::Close(name) => {
                self.open.remove(&name);
            }
            FileOperation::Write { file, offset, length, version } => {
                self.grow(file, offset + length);
                self.last_write = Some(Written { file, offset, length, version });
            }
            FileOperation::Preallocate { file, length } => self.grow(file, length),
            FileOperation::Discard { file, .. } => self.forget_write(file),
            FileOperation::Unlink(name) => {
                self.files.remove(&name);
                self.forget_write(name);
            }
            FileOperation::Rename { from, to } => {
                if let Some(length) = self.files.remove(&from) {
                    self.files.insert(to, length);
                }
                self.forget_write(from);
                self.forget_write(to);
            }
            FileOperation::Truncate { file, length } => {
                self.files.entry(file).and_modify(|known| *known = length);
                self.forget_write(file);
            }
            FileOperation::RemoveDirectory(name) => self.directories.retain(|known| *known != name),
            FileOperation::Stat(_)
            | FileOperation::SyncDirectory(_)
            | FileOperation::Link { .. }
            | FileOperation::Symlink { .. }
            | FileOperation::Idle { .. }
            | FileOperation::Read { .. }
            | FileOperation::Fsync(_)
            | FileOperation::Fdatasync(_)
            | FileOperation::Fbarrier(_)
            | FileOperation::Fdatabarrier(_)
            | FileOperation::Sync => {}
        }
    }

    /// A file of another lane is that lane's to account for.
    fn grow(&mut self, file: Name, end: u64) {
        if let Some(length) = self.files.get_mut(&file) {
            *length = end.max(*length);
        }
    }

    fn forget_write(&mut self, file: Name) {
        self.last_write = self.last_write.filter(|write| write.file != file);
    }
}
