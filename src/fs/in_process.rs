//! A volume of [`sfs`](super::sfs) in this process as a [`FileSystem`]: no kernel between the workload and it.
//!
//! The volume is behind one gate: a task goes in, its operation begins at the task's clock, or when the one before it has
//! ended if that is later, and the task waits until the operation has ended.

use super::sfs::{Change, FileKind, InodeNumber, NewFile, Sfs, SfsError, Taken};
use super::{Durable, FileSystem, FileSystemError, Room};
use crate::device::Account;
use crate::task::{Gate, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;

/// The files of a volume.
pub struct InProcess {
    volume: Gate<Sfs>,
}

/// An open file of an [`InProcess`].
#[derive(Debug)]
pub struct InProcessFile {
    inode: InodeNumber,
    path: Box<str>,
}

impl InProcess {
    /// The files of this volume. Its first operation begins at `now` or later.
    pub fn new(volume: Sfs, now: Time) -> InProcess {
        let volume = Gate::new("volume", volume);
        drop(volume.enter(&Task::at(now)));
        InProcess { volume }
    }

    /// When the last operation ended.
    pub fn now(&self) -> Time {
        let task = Task::at(Time::ZERO);
        drop(self.volume.enter(&task));
        task.now()
    }

    /// What the volume, and what is below it, has counted.
    pub fn account(&self) -> Account {
        self.look(Sfs::account)
    }

    /// Bytes that files can have in the volume.
    pub fn size_bytes(&self) -> u64 {
        self.look(|volume| volume.space().blocks * BLOCK_BYTES)
    }

    /// True if what is below the volume has a timing model.
    pub fn is_timed(&self) -> bool {
        self.look(Sfs::is_timed)
    }

    /// Looks at the volume while no simulated task is inside.
    fn look<T>(&self, look: impl FnOnce(&Sfs) -> T) -> T {
        look(&self.volume.enter(&Task::at(Time::ZERO)))
    }

    /// Does one operation, and before it what is due in the background.
    fn call<T>(
        &self,
        task: &Task<'_>,
        operation: &'static str,
        path: &str,
        act: impl FnOnce(&mut Sfs) -> Result<T, SfsError>,
    ) -> Result<T, FileSystemError> {
        let mut volume = self.volume.enter(task);
        let mut due = || -> Result<(), SfsError> {
            while volume.is_timed() && volume.work(task)?.is_some_and(|more| more <= task.now()) {}
            Ok(())
        };
        let answer = due().and_then(|()| act(&mut volume));
        answer.map_err(|error| FileSystemError { operation, path: path.to_string(), source: error.into() })
    }

    fn opened(
        &self,
        task: &Task<'_>,
        operation: &'static str,
        path: &str,
        act: impl FnOnce(&mut Sfs) -> Result<InodeNumber, SfsError>,
    ) -> Result<InProcessFile, FileSystemError> {
        let inode = self.call(task, operation, path, |volume| {
            let inode = act(volume)?;
            volume.retain(task, inode)?;
            Ok(inode)
        })?;
        Ok(InProcessFile { inode, path: path.into() })
    }
}

/// The directory that a path's last name is in, and that name.
fn parent<'a>(task: &Task<'_>, volume: &mut Sfs, path: &'a str) -> Result<(InodeNumber, &'a [u8]), SfsError> {
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(SfsError::Invalid("the path is not one below the root"));
    }
    let (directories, name) = path.rsplit_once('/').map_or(("", path), |(directories, name)| (directories, name));
    let mut directory = InodeNumber::ROOT;
    for name in directories.split('/').filter(|name| !name.is_empty()) {
        directory = volume.lookup(task, directory, name.as_bytes())?;
    }
    Ok((directory, name.as_bytes()))
}

fn find(task: &Task<'_>, volume: &mut Sfs, path: &str) -> Result<InodeNumber, SfsError> {
    let (directory, name) = parent(task, volume, path)?;
    volume.lookup(task, directory, name)
}

fn make(
    task: &Task<'_>,
    volume: &mut Sfs,
    path: &str,
    kind: FileKind,
    permissions: u16,
) -> Result<InodeNumber, SfsError> {
    let (directory, name) = parent(task, volume, path)?;
    volume.make(
        task,
        directory,
        name,
        &NewFile { kind, permissions, user: 0, group: 0, device: 0, target: b"", attributes: &[] },
    )
}

impl FileSystem for InProcess {
    type File = InProcessFile;

    fn make_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "make directory", path, |volume| make(task, volume, path, FileKind::Directory, 0o755).map(drop))
    }

    fn remove_directory(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "remove directory", path, |volume| {
            let (directory, name) = parent(task, volume, path)?;
            volume.remove_directory(task, directory, name)
        })
    }

    fn create(&self, task: &Task<'_>, path: &str) -> Result<InProcessFile, FileSystemError> {
        self.opened(task, "create", path, |volume| make(task, volume, path, FileKind::Regular, 0o644))
    }

    fn open(&self, task: &Task<'_>, path: &str) -> Result<InProcessFile, FileSystemError> {
        self.opened(task, "open", path, |volume| find(task, volume, path))
    }

    fn close(&self, task: &Task<'_>, file: InProcessFile) -> Result<(), FileSystemError> {
        self.call(task, "close", &file.path, |volume| volume.release(task, file.inode, 1))
    }

    fn read_at(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<usize, FileSystemError> {
        self.call(task, "read", &file.path, |volume| volume.read(task, file.inode, offset, bytes))
    }

    fn write_at(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), FileSystemError> {
        self.call(task, "write", &file.path, |volume| volume.write(task, file.inode, offset, bytes))
    }

    fn sync_file(&self, task: &Task<'_>, file: &InProcessFile, what: Durable) -> Result<(), FileSystemError> {
        self.call(task, "sync", &file.path, |volume| volume.sync_file(task, file.inode, what))
    }

    fn truncate(&self, task: &Task<'_>, file: &InProcessFile, length: u64) -> Result<(), FileSystemError> {
        let change = Change { size: Some(length), ..Change::default() };
        self.call(task, "truncate", &file.path, |volume| volume.change(task, file.inode, &change).map(drop))
    }

    fn preallocate(
        &self,
        task: &Task<'_>,
        file: &InProcessFile,
        offset: u64,
        length: u64,
    ) -> Result<(), FileSystemError> {
        self.call(task, "preallocate", &file.path, |volume| volume.allocate(task, file.inode, offset, length, false))
    }

    fn discard(&self, task: &Task<'_>, file: &InProcessFile, offset: u64, length: u64) -> Result<(), FileSystemError> {
        self.call(task, "discard", &file.path, |volume| volume.punch(task, file.inode, offset, length))
    }

    fn unlink(&self, task: &Task<'_>, path: &str) -> Result<(), FileSystemError> {
        self.call(task, "unlink", path, |volume| {
            let (directory, name) = parent(task, volume, path)?;
            volume.unlink(task, directory, name)
        })
    }

    fn rename(&self, task: &Task<'_>, from: &str, to: &str) -> Result<(), FileSystemError> {
        self.call(task, "rename", from, |volume| {
            let (from_directory, from_name) = parent(task, volume, from)?;
            let (to_directory, to_name) = parent(task, volume, to)?;
            volume.rename(task, (from_directory, from_name), (to_directory, to_name), Taken::Replace)
        })
    }

    fn length(&self, task: &Task<'_>, path: &str) -> Result<u64, FileSystemError> {
        self.call(task, "stat", path, |volume| {
            let inode = find(task, volume, path)?;
            Ok(volume.attributes(task, inode)?.size)
        })
    }

    fn sync(&self, task: &Task<'_>) -> Result<(), FileSystemError> {
        self.call(task, "sync", "", |volume| volume.sync(task))
    }

    fn room(&self) -> Option<Room> {
        let space = self.look(Sfs::space);
        Some(Room { files: Some(space.free_inodes), bytes: space.free_blocks * BLOCK_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::conv::Conventional;
    use crate::expression::parse_term;
    use crate::fs::sfs::{Identity, Medium, SfsSettings, Timestamp};

    fn files() -> InProcess {
        let device = Medium::Blocks(Box::new(Conventional::in_memory(16384, BLOCK_BYTES as usize)));
        let settings = SfsSettings::read(&parse_term("sfs:segment=1M").unwrap()).unwrap();
        let identity = Identity { seed: 1, origin: Timestamp(0) };
        InProcess::new(Sfs::create(&Task::at(Time::ZERO), device, &settings, identity).unwrap(), Time::ZERO)
    }

    #[test]
    fn what_is_written_is_read() {
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
        assert_eq!(files.read_at(&task, &file, 0, &mut bytes).unwrap(), 4, "it is held open");
        files.close(&task, file).unwrap();
        files.remove_directory(&task, "a").unwrap();
        files.sync(&task).unwrap();
    }

    #[test]
    fn space_is_reserved_and_given_back() {
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
        assert!(files.create(&task, "a").is_ok() && files.create(&task, "a").unwrap_err().is_there_already());
        let error = files.open(&task, "no/such").unwrap_err().to_string();
        assert!(error.contains("cannot open no/such") && error.contains("No such file"), "{error}");
        for path in ["../x", "/a", "", "a//b", "."] {
            assert!(files.open(&task, path).is_err() && files.make_directory(&task, path).is_err(), "{path}");
        }
    }
}
