//! Files that are synced behind every so many calls, as a guest's system syncs them from time to time.

use flashpath::fs::in_process::{InProcess, InProcessFile};
use flashpath::fs::{Durable, FileSystem, FileSystemError, Room};
use flashpath::task::Task;
use flashpath::time::Time;
use std::sync::atomic::{AtomicU64, Ordering};

/// The files, and how often they are synced.
pub struct Pulsed {
    files: InProcess,
    /// Calls from one sync to the next; `None`: no sync.
    every: Option<u64>,
    calls: AtomicU64,
}

impl Pulsed {
    /// These files, synced behind every `every` calls.
    pub fn new(files: InProcess, every: Option<u64>) -> Pulsed {
        Pulsed { files, every, calls: AtomicU64::new(0) }
    }

    /// The time at which the last call ended.
    pub fn now(&self) -> Time {
        self.files.now()
    }

    /// The calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// A call has been answered; a sync may be due.
    fn beat<T>(&self, task: &Task<'_>, answer: Result<T, FileSystemError>) -> Result<T, FileSystemError> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.every.is_some_and(|every| calls.is_multiple_of(every)) {
            self.files.sync(task)?;
        }
        answer
    }
}

impl FileSystem for Pulsed {
    type File = InProcessFile;

    fn make_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.make_directory(task, path))
    }

    fn remove_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.remove_directory(task, path))
    }

    fn create(&self, task: &Task<'_>, path: &str) -> Result<InProcessFile, FileSystemError> {
        self.beat(task, self.files.create(task, path))
    }

    fn open(&self, task: &Task<'_>, path: &str) -> Result<InProcessFile, FileSystemError> {
        self.beat(task, self.files.open(task, path))
    }

    fn close(&self, task: &Task<'_>, file: InProcessFile) -> Result<(), FileSystemError> {
        self.beat(task, self.files.close(task, file))
    }

    fn read_at(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError> {
        self.beat(task, self.files.read_at(task, file, offset, bytes))
    }

    fn write_at(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), FileSystemError> {
        self.beat(task, self.files.write_at(task, file, offset, bytes))
    }

    fn sync_file(&self, task: &Task<'_>, file: &InProcessFile, what: Durable) -> Result<(), FileSystemError> {
        self.beat(task, self.files.sync_file(task, file, what))
    }

    fn order_file(&self, task: &Task<'_>, file: &InProcessFile, what: Durable) -> Result<(), FileSystemError> {
        self.beat(task, self.files.order_file(task, file, what))
    }

    fn truncate(&self, task: &Task<'_>, file: &InProcessFile, length: u64) -> Result<(), FileSystemError> {
        self.beat(task, self.files.truncate(task, file, length))
    }

    fn preallocate(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        length: u64,
    ) -> Result<(), FileSystemError> {
        self.beat(task, self.files.preallocate(task, file, offset, length))
    }

    fn discard(&self, task: &Task<'_>, file: &InProcessFile, offset: u64, length: u64) -> Result<(), FileSystemError> {
        self.beat(task, self.files.discard(task, file, offset, length))
    }

    fn unlink(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.unlink(task, path))
    }

    fn rename(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.rename(task, from, to))
    }

    fn link(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.link(task, from, to))
    }

    fn symlink(&self, task: &Task<'_>, path: &str, target: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.symlink(task, path, target))
    }

    fn sync_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.beat(task, self.files.sync_directory(task, path))
    }

    fn length(&self, task: &Task<'_>, path: &str) -> Result<u64, FileSystemError> {
        self.beat(task, self.files.length(task, path))
    }

    fn sync(&self, task: &Task<'_>) -> Result<(), FileSystemError> {
        self.beat(task, self.files.sync(task))
    }

    fn room(&self) -> Option<Room> {
        self.files.room()
    }
}
