//! A volume in this process as a [`FileSystem`], without a kernel in between.
//!
//! An operation begins at its task's clock. It first does the background work that is due, then calls the volume as
//! root: one call for each component of the path, and one for the operation.

use super::posix::{AccessTimes, Checks, CreateRequest, Posix, SetAttributes, Usage};
use super::volume::{Allocation, Call, FileKind, Hold, IfExists, InodeNumber, Name, Renaming, Volume, VolumeError};
use super::{Durable, FileSystem, FileSystemError, Room};
use crate::device::Account;
use crate::task::Task;
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The files of a volume.
pub struct InProcess {
    posix: Posix,
    /// The time at which the last operation ended.
    ended: AtomicU64,
    /// The directories that were found, by their paths, if they are remembered.
    directories: Option<RwLock<FxHashMap<Box<str>, InodeNumber>>>,
}

/// An open file of an [`InProcess`].
#[derive(Debug)]
pub struct InProcessFile {
    inode: InodeNumber,
    path: Box<str>,
}

impl InProcess {
    /// The files of a volume. No operation begins before the volume was made.
    pub fn new(volume: Arc<dyn Volume>) -> InProcess {
        let task = Task::at(Time::ZERO);
        // The first operation reports an error again.
        let _ = volume.space(&Call::by_root(&task));
        // No caller can read access times here.
        let usage = Usage { checks: Checks::Here, access_times: AccessTimes::Never, ..Usage::default() };
        InProcess { posix: Posix::new(volume, usage), ended: AtomicU64::new(task.now().0), directories: None }
    }

    /// Remembers directories by their paths, as the kernel does: an operation does not look up each component again. For
    /// runs in real time; simulated ones count the CPU time of each lookup.
    pub fn with_remembered_directories(self) -> InProcess {
        InProcess { directories: Some(RwLock::default()), ..self }
    }

    /// The parent directory and the last name of a path.
    fn parent<'a>(&self, call: &Call, path: &'a str) -> Result<Name<'a>, VolumeError> {
        let Some(known) = &self.directories else { return parent(&self.posix, call, path) };
        let Some((directories, name)) = path.rsplit_once('/') else { return parent(&self.posix, call, path) };
        // What is behind the lock is whole at every step.
        let read = known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = read.get(directories).copied() {
            return Ok((directory, name.as_bytes()));
        }
        drop(read);
        let found = parent(&self.posix, call, path)?;
        known.write().unwrap_or_else(PoisonError::into_inner).insert(directories.into(), found.0);
        Ok(found)
    }

    /// Directories have gone, or have other paths.
    fn forget_directories(&self) {
        if let Some(known) = &self.directories {
            known.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// The time at which the last operation ended.
    pub fn now(&self) -> Time {
        Time(self.ended.load(Ordering::Relaxed))
    }

    /// The account of the volume and of the stations below it.
    pub fn account(&self) -> Result<Account, VolumeError> {
        self.posix.volume().account(&Call::by_root(&Task::at(Time::ZERO)))
    }

    /// Bytes available to files.
    pub fn size_bytes(&self) -> Result<u64, VolumeError> {
        Ok(self.posix.space(&Call::by_root(&Task::at(Time::ZERO)))?.blocks * BLOCK_BYTES)
    }

    /// True if calls take their whole time: see [`Volume::is_timed`].
    pub fn is_timed(&self) -> bool {
        self.posix.volume().is_timed()
    }

    /// Does the background work that is due, then one operation.
    fn call<T>(
        &self,
        task: &Task<'_>,
        operation: &'static str,
        path: &str,
        act: impl FnOnce(&Posix, &Call) -> Result<T, VolumeError>,
    ) -> Result<T, FileSystemError> {
        let call = Call::by_root(task);
        let volume = self.posix.volume();
        let due = || -> Result<(), VolumeError> {
            while volume.is_timed() && volume.work(&call)?.is_some_and(|more| more <= task.now()) {}
            Ok(())
        };
        let answer = due().and_then(|()| act(&self.posix, &call));
        self.ended.fetch_max(task.now().0, Ordering::Relaxed);
        answer.map_err(|error| FileSystemError { operation, path: path.to_string(), source: error.into() })
    }
}

/// The parent directory and the last name of a path.
fn parent<'a>(posix: &Posix, call: &Call, path: &'a str) -> Result<Name<'a>, VolumeError> {
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(VolumeError::Invalid("a path has no empty name, no '.' and no '..'"));
    }
    let (directories, name) = path.rsplit_once('/').map_or(("", path), |(directories, name)| (directories, name));
    let mut directory = InodeNumber::ROOT;
    for name in directories.split('/').filter(|name| !name.is_empty()) {
        directory = find(posix, call, (directory, name.as_bytes()), Hold::No)?.0;
    }
    Ok((directory, name.as_bytes()))
}

/// The inode of a name, and its size.
fn find(posix: &Posix, call: &Call, name: Name, hold: Hold) -> Result<(InodeNumber, u64), VolumeError> {
    let found = posix.lookup(call, name, hold)?.ok_or(VolumeError::NotFound)?;
    Ok((found.inode, found.size))
}

fn make(
    posix: &Posix,
    call: &Call,
    name: Name,
    (kind, mode): (FileKind, u32),
    hold: Hold,
) -> Result<InodeNumber, VolumeError> {
    Ok(posix.make(call, name, &CreateRequest { kind, mode, device: 0, target: b"" }, hold)?.inode)
}

impl FileSystem for InProcess {
    type File = InProcessFile;

    fn make_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "make directory", path, |posix, call| {
            make(posix, call, self.parent(call, path)?, (FileKind::Directory, 0o755), Hold::No).map(drop)
        })
    }

    fn remove_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "remove directory", path, |posix, call| {
            let name = self.parent(call, path)?;
            let removed = posix.remove_directory(call, name);
            self.forget_directories();
            removed
        })
    }

    fn create(&self, task: &Task<'_>, path: &str) -> Result<InProcessFile, FileSystemError> {
        let inode = self.call(task, "create", path, |posix, call| {
            make(posix, call, self.parent(call, path)?, (FileKind::Regular, 0o644), Hold::Yes)
        })?;
        Ok(InProcessFile { inode, path: path.into() })
    }

    fn open(&self, task: &Task<'_>, path: &str) -> Result<InProcessFile, FileSystemError> {
        let (inode, _) = self.call(task, "open", path, |posix, call| {
            let name = self.parent(call, path)?;
            find(posix, call, name, Hold::Yes)
        })?;
        Ok(InProcessFile { inode, path: path.into() })
    }

    fn close(&self, task: &Task<'_>, file: InProcessFile) -> Result<(), FileSystemError> {
        self.call(task, "close", &file.path, |posix, call| posix.forget(call, file.inode, 1))
    }

    fn read_at(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError> {
        self.call(task, "read", &file.path, |posix, call| posix.read(call, file.inode, offset, bytes, true))
    }

    fn write_at(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), FileSystemError> {
        self.call(task, "write", &file.path, |posix, call| posix.write(call, file.inode, offset, bytes, false))
    }

    fn sync_file(&self, task: &Task<'_>, file: &InProcessFile, what: Durable) -> Result<(), FileSystemError> {
        self.call(task, "sync", &file.path, |posix, call| posix.sync_file(call, file.inode, what))
    }

    fn order_file(&self, task: &Task<'_>, file: &InProcessFile, what: Durable) -> Result<(), FileSystemError> {
        self.call(task, "order", &file.path, |posix, call| posix.volume().order_file(call, file.inode, what))
    }

    fn truncate(&self, task: &Task<'_>, file: &InProcessFile, length: u64) -> Result<(), FileSystemError> {
        let request = SetAttributes { size: Some(length), is_open: true, ..SetAttributes::default() };
        self.call(task, "truncate", &file.path, |posix, call| posix.change(call, file.inode, &request).map(drop))
    }

    fn preallocate(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        length: u64,
    ) -> Result<(), FileSystemError> {
        let how = Allocation::Reserve { keep_size: false };
        self.call(task, "preallocate", &file.path, |posix, call| {
            posix.allocate(call, file.inode, (offset, length), how)
        })
    }

    fn discard(&self, task: &Task<'_>, file: &InProcessFile, offset: u64, length: u64) -> Result<(), FileSystemError> {
        self.call(task, "discard", &file.path, |posix, call| {
            posix.allocate(call, file.inode, (offset, length), Allocation::Punch)
        })
    }

    fn unlink(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "unlink", path, |posix, call| {
            let name = self.parent(call, path)?;
            posix.unlink(call, name)
        })
    }

    fn rename(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.call(task, "rename", from, |posix, call| {
            let (from, to) = (self.parent(call, from)?, self.parent(call, to)?);
            let renamed = posix.rename(call, from, to, Renaming { if_exists: IfExists::Replace, whiteout: None });
            self.forget_directories();
            renamed
        })
    }

    fn link(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.call(task, "link", from, |posix, call| {
            let (from, to) = (self.parent(call, from)?, self.parent(call, to)?);
            let (inode, _) = find(posix, call, from, Hold::No)?;
            posix.link(call, inode, to, Hold::No).map(drop)
        })
    }

    fn symlink(&self, task: &Task<'_>, path: &str, target: &str) -> Result<(), FileSystemError> {
        self.call(task, "make symbolic link", path, |posix, call| {
            let made = CreateRequest { kind: FileKind::Symlink, mode: 0o777, device: 0, target: target.as_bytes() };
            posix.make(call, self.parent(call, path)?, &made, Hold::No).map(drop)
        })
    }

    fn sync_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "sync", path, |posix, call| {
            let (inode, _) = find(posix, call, self.parent(call, path)?, Hold::No)?;
            posix.sync_file(call, inode, Durable::All)
        })
    }

    fn length(&self, task: &Task<'_>, path: &str) -> Result<u64, FileSystemError> {
        self.call(task, "stat", path, |posix, call| {
            let name = self.parent(call, path)?;
            Ok(find(posix, call, name, Hold::No)?.1)
        })
    }

    fn sync(&self, task: &Task<'_>) -> Result<(), FileSystemError> {
        self.call(task, "sync", "", |posix, call| posix.volume().sync(call))
    }

    fn room(&self) -> Option<Room> {
        let space = self.posix.space(&Call::by_root(&Task::at(Time::ZERO))).ok()?;
        Some(Room { files: Some(space.free_inodes), bytes: space.free_blocks * BLOCK_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::conv::Conventional;
    use crate::expression::parse_term;
    use crate::fs::sfs::{Identity, Medium, Sfs, SfsSettings, SfsVolume, Timestamp};

    fn files() -> InProcess {
        let device = Medium::Blocks(Box::new(Conventional::in_memory(16384, BLOCK_BYTES as usize)));
        let settings = SfsSettings::read(&parse_term("sfs:segment=1M").unwrap()).unwrap();
        let identity = Identity { seed: 1, origin: Timestamp(0) };
        let task = Task::at(Time::ZERO);
        let sfs = Sfs::create(&task, device, &settings, identity).unwrap();
        InProcess::new(Arc::new(SfsVolume::new(sfs, task.now())))
    }

    #[test]
    fn written_bytes_are_read_back() {
        let task = Task::at(Time::ZERO);
        let files = files();
        files.make_directory(&task, "a").unwrap();
        let file = files.create(&task, "a/b").unwrap();
        files.write_at(&task, &file, 3, b"xyz").unwrap();
        files.sync_file(&task, &file, Durable::All).unwrap();
        let mut bytes = [9; 10];
        assert_eq!(files.read_at(&task, &file, 0, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes[..6], b"\0\0\0xyz");
        files.truncate(&task, &file, 4).unwrap();
        assert_eq!(files.length(&task, "a/b").unwrap(), 4);
        files.rename(&task, "a/b", "c").unwrap();
        files.unlink(&task, "c").unwrap();
        assert_eq!(files.read_at(&task, &file, 0, &mut bytes).unwrap(), 4, "the open file is still readable");
        files.close(&task, file).unwrap();
        files.remove_directory(&task, "a").unwrap();
        files.sync(&task).unwrap();
    }

    #[test]
    fn space_is_reserved_and_freed() {
        let task = Task::at(Time::ZERO);
        let files = files();
        let file = files.create(&task, "disk").unwrap();
        files.preallocate(&task, &file, 0, 1 << 20).unwrap();
        assert_eq!(files.length(&task, "disk").unwrap(), 1 << 20);
        files.write_at(&task, &file, 0, &[1; 8192]).unwrap();
        files.discard(&task, &file, 0, 4096).unwrap();
        let mut bytes = [9; 8192];
        assert_eq!(files.read_at(&task, &file, 0, &mut bytes).unwrap(), 8192);
        assert!(bytes[..4096].iter().all(|byte| *byte == 0) && bytes[4096..].iter().all(|byte| *byte == 1));
        let error = files.preallocate(&task, &file, 0, 1 << 30).unwrap_err();
        assert!(error.is_full(), "{error}");
    }

    #[test]
    fn an_error_names_the_operation_and_the_path() {
        let task = Task::at(Time::ZERO);
        let files = files();
        assert!(files.create(&task, "a").is_ok() && files.create(&task, "a").unwrap_err().is_name_taken());
        let error = files.open(&task, "no/such").unwrap_err().to_string();
        assert!(error.contains("cannot open no/such") && error.contains("No such file"), "{error}");
        for path in ["../x", "/a", "", "a//b", "."] {
            assert!(files.open(&task, path).is_err() && files.make_directory(&task, path).is_err(), "{path}");
        }
    }
}
