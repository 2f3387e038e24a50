//! A directory of this machine as a [`FileSystem`]: each operation is the system call of the same name.
//!
//! No operation leaves the root. A path with `..`, an empty name or a leading `/` is refused, and `openat2` (Linux 5.6)
//! follows no symbolic link and stays beneath the root. Calls without such flags (`mkdirat`, `unlinkat`, `renameat`)
//! receive only the last name, and a parent directory opened that way. Outside the root directory itself this costs two
//! more calls (an `O_PATH` open and its close), which touch only the kernel's name cache.

use super::{Durable, FileSystem, FileSystemError, Room};
use crate::task::Task;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Files under one directory of this machine.
#[derive(Debug)]
pub struct Directory {
    root: OwnedFd,
    path: PathBuf,
}

/// An open file of a [`Directory`].
#[derive(Debug)]
pub struct DirectoryFile {
    file: File,
    path: Box<str>,
}

impl Directory {
    /// Opens the existing directory at `path`.
    pub fn open(path: &Path) -> Result<Directory, FileSystemError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| FileSystemError {
            operation: "open directory",
            path: path.display().to_string(),
            source: error.into(),
        })?;
        Ok(Directory { root, path: path.to_path_buf() })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of `operation` on `path`, relative to the root.
    fn error(&self, operation: &'static str, path: &str, source: io::Error) -> FileSystemError {
        FileSystemError { operation, path: self.path.join(path).display().to_string(), source }
    }

    fn beneath(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        check(path)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // openat2 refuses a mode without O_CREAT.
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
        loop {
            match rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, mode, resolve) {
                // EAGAIN: a concurrent rename disturbed the lookup beneath the root.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                answer => return Ok(answer?),
            }
        }
    }

    /// Applies `act` to the parent directory and the last name of a path.
    fn in_parent<T>(
        &self,
        path: &str,
        act: impl FnOnce(BorrowedFd<'_>, &str) -> Result<T, rustix::io::Errno>,
    ) -> io::Result<T> {
        check(path)?;
        match path.rsplit_once('/') {
            None => Ok(act(self.root.as_fd(), path)?),
            Some((parent, name)) => {
                let parent = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?;
                Ok(act(parent.as_fd(), name)?)
            }
        }
    }

    fn file(&self, operation: &'static str, path: &str, flags: OFlags) -> Result<DirectoryFile, FileSystemError> {
        let opened = self.beneath(path, flags | OFlags::RDWR).map_err(|error| self.error(operation, path, error))?;
        Ok(DirectoryFile { file: opened.into(), path: path.into() })
    }
}

/// Refuses a path that could leave the root.
fn check(path: &str) -> io::Result<()> {
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path has no empty name, no '.' and no '..'"));
    }
    Ok(())
}

impl FileSystem for Directory {
    type File = DirectoryFile;

    fn make_directory(&self, _: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.in_parent(path, |parent, name| rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)))
            .map_err(|error| self.error("make directory", path, error))
    }

    fn remove_directory(&self, _: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.in_parent(path, |parent, name| rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR))
            .map_err(|error| self.error("remove directory", path, error))
    }

    fn create(&self, _: &Task<'_>, path: &str) -> Result<DirectoryFile, FileSystemError> {
        self.file("create", path, OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, _: &Task<'_>, path: &str) -> Result<DirectoryFile, FileSystemError> {
        self.file("open", path, OFlags::empty())
    }

    fn close(&self, _: &Task<'_>, file: DirectoryFile) -> Result<(), FileSystemError> {
        // The standard library drops the errors of close (an NFS server's full disk, for example). A workload that
        // needs them calls fsync.
        drop(file);
        Ok(())
    }

    fn read_at(
        &self,
        _: &Task<'_>,
        file: &DirectoryFile,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError> {
        let mut done = 0;
        while done < bytes.len() {
            match file.file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error("read", &file.path, error)),
            }
        }
        Ok(done)
    }

    fn write_at(&self, _: &Task<'_>, file: &DirectoryFile, offset: u64, bytes: &[u8]) -> Result<(), FileSystemError> {
        file.file.write_all_at(bytes, offset).map_err(|error| self.error("write", &file.path, error))
    }

    fn sync_file(&self, _: &Task<'_>, file: &DirectoryFile, what: Durable) -> Result<(), FileSystemError> {
        let synced = match what {
            Durable::Data => file.file.sync_data(),
            Durable::All => file.file.sync_all(),
        };
        synced.map_err(|error| self.error("sync", &file.path, error))
    }

    fn truncate(&self, _: &Task<'_>, file: &DirectoryFile, length: u64) -> Result<(), FileSystemError> {
        file.file.set_len(length).map_err(|error| self.error("truncate", &file.path, error))
    }

    fn preallocate(&self, _: &Task<'_>, file: &DirectoryFile, offset: u64, length: u64) -> Result<(), FileSystemError> {
        rustix::fs::fallocate(&file.file, FallocateFlags::empty(), offset, length)
            .map_err(|error| self.error("preallocate", &file.path, error.into()))
    }

    fn discard(&self, _: &Task<'_>, file: &DirectoryFile, offset: u64, length: u64) -> Result<(), FileSystemError> {
        rustix::fs::fallocate(&file.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length)
            .map_err(|error| self.error("discard", &file.path, error.into()))
    }

    fn unlink(&self, _: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.in_parent(path, |parent, name| rustix::fs::unlinkat(parent, name, AtFlags::empty()))
            .map_err(|error| self.error("unlink", path, error))
    }

    fn rename(&self, _: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        let renamed = self.in_parent(from, |from_parent, from_name| {
            Ok(self
                .in_parent(to, |to_parent, to_name| rustix::fs::renameat(from_parent, from_name, to_parent, to_name)))
        });
        renamed.and_then(|inner| inner).map_err(|error| self.error("rename", from, error))
    }

    fn link(&self, _: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        let linked = self.in_parent(from, |from_parent, from_name| {
            Ok(self.in_parent(to, |to_parent, to_name| {
                rustix::fs::linkat(from_parent, from_name, to_parent, to_name, AtFlags::empty())
            }))
        });
        linked.and_then(|inner| inner).map_err(|error| self.error("link", from, error))
    }

    fn symlink(&self, _: &Task<'_>, path: &str, target: &str) -> Result<(), FileSystemError> {
        self.in_parent(path, |parent, name| rustix::fs::symlinkat(target, parent, name))
            .map_err(|error| self.error("make symbolic link", path, error))
    }

    fn sync_directory(&self, _: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        let synced = self
            .beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .and_then(|directory| Ok(rustix::fs::fsync(directory)?));
        synced.map_err(|error| self.error("sync", path, error))
    }

    fn length(&self, _: &Task<'_>, path: &str) -> Result<u64, FileSystemError> {
        let status = self.in_parent(path, |parent, name| rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW));
        Ok(status.map_err(|error| self.error("stat", path, error))?.st_size as u64)
    }

    fn sync(&self, _: &Task<'_>) -> Result<(), FileSystemError> {
        rustix::fs::syncfs(&self.root).map_err(|error| self.error("sync", "", error.into()))
    }

    fn room(&self) -> Option<Room> {
        let space = rustix::fs::fstatvfs(&self.root).ok()?;
        // File systems that allocate inodes on demand report 0 inodes.
        let files = (space.f_files > 0).then_some(space.f_favail);
        Some(Room { files, bytes: space.f_bavail.saturating_mul(space.f_frsize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    fn directory() -> (tempfile::TempDir, Directory) {
        let place = tempfile::TempDir::new().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        (place, directory)
    }

    #[test]
    fn written_bytes_are_read_back() {
        let task = Task::at(Time::ZERO);
        let (_place, directory) = directory();
        directory.make_directory(&task, "a").unwrap();
        let file = directory.create(&task, "a/b").unwrap();
        directory.write_at(&task, &file, 3, b"xyz").unwrap();
        directory.sync_file(&task, &file, Durable::All).unwrap();
        let mut bytes = [9; 10];
        assert_eq!(directory.read_at(&task, &file, 0, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes[..6], b"\0\0\0xyz");
        directory.truncate(&task, &file, 4).unwrap();
        assert_eq!(directory.length(&task, "a/b").unwrap(), 4);
        directory.close(&task, file).unwrap();
        directory.rename(&task, "a/b", "c").unwrap();
        assert_eq!(directory.length(&task, "c").unwrap(), 4);
        directory.unlink(&task, "c").unwrap();
        directory.remove_directory(&task, "a").unwrap();
        directory.sync(&task).unwrap();
    }

    #[test]
    fn space_is_reserved_and_freed() {
        let task = Task::at(Time::ZERO);
        let (place, directory) = directory();
        let file = directory.create(&task, "disk").unwrap();
        directory.preallocate(&task, &file, 0, 1 << 20).unwrap();
        assert_eq!(directory.length(&task, "disk").unwrap(), 1 << 20);
        directory.write_at(&task, &file, 0, &[1; 8192]).unwrap();
        directory.discard(&task, &file, 0, 4096).unwrap();
        let mut bytes = [9; 8192];
        assert_eq!(directory.read_at(&task, &file, 0, &mut bytes).unwrap(), 8192);
        assert!(bytes[..4096].iter().all(|byte| *byte == 0) && bytes[4096..].iter().all(|byte| *byte == 1));
        assert_eq!(std::fs::metadata(place.path().join("disk")).unwrap().len(), 1 << 20);
    }

    #[test]
    fn no_path_leads_out_of_the_root() {
        let task = Task::at(Time::ZERO);
        let (place, directory) = directory();
        let outside = tempfile::TempDir::new().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), place.path().join("link")).unwrap();
        for path in ["../x", "/etc/passwd", "link/secret", "a/../../x", "", "a//b", "."] {
            assert!(directory.open(&task, path).is_err(), "{path}");
            assert!(directory.create(&task, path).is_err(), "{path}");
            assert!(directory.unlink(&task, path).is_err(), "{path}");
            assert!(directory.make_directory(&task, path).is_err(), "{path}");
            assert!(directory.rename(&task, "link", path).is_err(), "{path}");
        }
        assert!(directory.make_directory(&task, "link/new").is_err());
        assert!(outside.path().join("secret").exists());
    }

    #[test]
    fn an_error_names_the_operation_and_the_path() {
        let task = Task::at(Time::ZERO);
        let (place, directory) = directory();
        let error = directory.open(&task, "nothing").unwrap_err();
        assert!(error.to_string().starts_with("cannot open ") && error.to_string().contains("/nothing: "), "{error}");
        directory.create(&task, "there").unwrap();
        assert!(directory.create(&task, "there").unwrap_err().is_name_taken());
        directory.make_directory(&task, "full").unwrap();
        directory.create(&task, "full/x").unwrap();
        let error = directory.remove_directory(&task, "full").unwrap_err().to_string();
        assert!(error.starts_with("cannot remove directory") && error.contains("not empty"), "{error}");
        assert!(Directory::open(&place.path().join("absent")).unwrap_err().to_string().contains("absent"));
        assert!(Directory::open(&place.path().join("there")).is_err(), "a file is not a directory");
    }
}
