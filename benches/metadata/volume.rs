//! `ext` in this process.

use crate::flow::{DIRECTORIES, Files, Name};
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::run::{Path, make_volume, open_file_system};
use flashpath::task::Task;
use flashpath::time::Time;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// The kernel keeps dirty pages up to a fifth of the machine's memory, and clean ones in the rest.
const MEMORY: &str = "dirty=1G,page-cache=1G,cache=256M";

/// A mounted volume on an image in RAM.
pub struct Ours {
    pub volume: Arc<dyn Volume>,
    began: Instant,
    directories: Vec<InodeNumber>,
    _image: TempDir,
}

impl Ours {
    /// One of so many GiB, sparse.
    pub fn new(gibibytes: u64) -> Ours {
        let image = TempDir::new_in("/dev/shm").expect("/dev/shm is there");
        let path = format!("conv:image={}", image.path().join("image").display());
        let new = Path::read(&format!("ext/{path},size={gibibytes}G")).expect("a path");
        make_volume(&new, false, 1, 0, None).expect("a volume");
        let path = Path::read(&format!("ext:{MEMORY}/{path}")).expect("a path");
        let volume = open_file_system(&path, &Mounting::at(1, 0), Access::IfWhole).expect("a volume");
        let mut ours = Ours { volume, began: Instant::now(), directories: Vec::new(), _image: image };
        for number in 0..DIRECTORIES {
            let made = ours.make_in(InodeNumber::ROOT, &format!("{number}"), FileKind::Directory);
            ours.directories.push(made);
        }
        ours
    }

    /// Makes a call as root.
    pub fn call<T>(&self, act: impl FnOnce(&Call) -> T) -> T {
        let task = Task::at(Time(self.began.elapsed().as_nanos() as u64));
        act(&Call::by_root(&task))
    }

    pub fn make_in(&self, directory: InodeNumber, name: &str, kind: FileKind) -> InodeNumber {
        let new = NewFile { kind, permissions: 0o755, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
        let made = self.call(|call| self.volume.make(call, (directory, name.as_bytes()), &new, Hold::No, None));
        made.expect("it is made").inode
    }

    fn directory(&self, name: Name) -> InodeNumber {
        self.directories[name.directory as usize]
    }
}

impl Files for Ours {
    fn remove(&self, name: Name) {
        let text = name.text();
        self.call(|call| self.volume.unlink(call, (self.directory(name), text.as_bytes()), None)).expect("it is there");
    }

    fn make(&self, name: Name, bytes: &[u8]) {
        let inode = self.make_in(self.directory(name), &name.text(), FileKind::Regular);
        self.call(|call| self.volume.write(call, inode, 0, bytes, None)).expect("there is room");
    }

    fn read(&self, name: Name, appended: &[u8], buffer: &mut [u8]) {
        let text = name.text();
        let found = self.call(|call| self.volume.lookup(call, (self.directory(name), text.as_bytes()), Hold::No));
        let (inode, size) = found.map(|found| (found.inode, found.size)).expect("it is there");
        let mut at = 0;
        while at < size {
            let read = self.call(|call| self.volume.read(call, inode, at, buffer)).expect("it is read");
            at += read.length as u64;
        }
        if !appended.is_empty() {
            self.call(|call| self.volume.write(call, inode, size, appended, None)).expect("there is room");
        }
    }

    fn work(&self) {
        self.call(|call| self.volume.work(call)).expect("background work");
    }
}
