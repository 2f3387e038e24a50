//! A file system with a hook before each call.

use flashpath::fs::{Durable, FileSystem, FileSystemError};
use flashpath::task::Task;
use std::io;

/// A file system with a hook before each call. The hook receives the task, the call, and the number of bytes written;
/// its error becomes the call's.
pub struct Hooked<F, H> {
    pub files: F,
    pub hook: H,
    /// Bytes missing at the end of each read.
    pub lost_bytes: usize,
}

impl<F: FileSystem, H: Fn(&Task<'_>, &'static str, u64) -> io::Result<()> + Send + Sync> Hooked<F, H> {
    pub fn new(files: F, hook: H) -> Hooked<F, H> {
        Hooked { files, hook, lost_bytes: 0 }
    }

    fn at(&self, task: &Task<'_>, call: &'static str, bytes: usize) -> Result<&F, FileSystemError> {
        let path = "somewhere".to_string();
        let failed = |source| FileSystemError { operation: call, path, source };
        (self.hook)(task, call, bytes as u64).map(|()| &self.files).map_err(failed)
    }
}

impl<F: FileSystem, H: Fn(&Task<'_>, &'static str, u64) -> io::Result<()> + Send + Sync> FileSystem for Hooked<F, H> {
    type File = F::File;
    fn make_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.at(task, "mkdir", 0)?.make_directory(task, path)
    }
    fn remove_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.at(task, "rmdir", 0)?.remove_directory(task, path)
    }
    fn create(&self, task: &Task<'_>, path: &str) -> Result<F::File, FileSystemError> {
        self.at(task, "create", 0)?.create(task, path)
    }
    fn open(&self, task: &Task<'_>, path: &str) -> Result<F::File, FileSystemError> {
        self.at(task, "open", 0)?.open(task, path)
    }
    fn close(&self, task: &Task<'_>, file: F::File) -> Result<(), FileSystemError> {
        self.at(task, "close", 0)?.close(task, file)
    }
    fn read_at(
        &self,
        task: &Task<'_>,
        file: &F::File,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError> {
        let read = self.at(task, "read", 0)?.read_at(task, file, offset, bytes)?;
        Ok(read.saturating_sub(self.lost_bytes))
    }
    fn write_at(&self, task: &Task<'_>, file: &F::File, offset: u64, bytes: &[u8]) -> Result<(), FileSystemError> {
        self.at(task, "write", bytes.len())?.write_at(task, file, offset, bytes)
    }
    fn sync_file(&self, task: &Task<'_>, file: &F::File, what: Durable) -> Result<(), FileSystemError> {
        self.at(task, "fsync", 0)?.sync_file(task, file, what)
    }
    fn order_file(&self, task: &Task<'_>, file: &F::File, what: Durable) -> Result<(), FileSystemError> {
        self.at(task, "fbarrier", 0)?.order_file(task, file, what)
    }
    fn truncate(&self, task: &Task<'_>, file: &F::File, length: u64) -> Result<(), FileSystemError> {
        self.at(task, "truncate", 0)?.truncate(task, file, length)
    }
    fn preallocate(&self, task: &Task<'_>, file: &F::File, offset: u64, length: u64) -> Result<(), FileSystemError> {
        self.at(task, "preallocate", 0)?.preallocate(task, file, offset, length)
    }
    fn discard(&self, task: &Task<'_>, file: &F::File, offset: u64, length: u64) -> Result<(), FileSystemError> {
        self.at(task, "discard", 0)?.discard(task, file, offset, length)
    }
    fn unlink(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.at(task, "unlink", 0)?.unlink(task, path)
    }
    fn rename(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.at(task, "rename", 0)?.rename(task, from, to)
    }
    fn link(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.at(task, "link", 0)?.link(task, from, to)
    }
    fn symlink(&self, task: &Task<'_>, path: &str, target: &str) -> Result<(), FileSystemError> {
        self.at(task, "symlink", 0)?.symlink(task, path, target)
    }
    fn sync_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.at(task, "fsync", 0)?.sync_directory(task, path)
    }
    fn length(&self, task: &Task<'_>, path: &str) -> Result<u64, FileSystemError> {
        self.at(task, "stat", 0)?.length(task, path)
    }
    fn sync(&self, task: &Task<'_>) -> Result<(), FileSystemError> {
        self.at(task, "sync", 0)?.sync(task)
    }
}
