//! A mounted volume and its users.

use flashpath::fs::posix::{AccessTimes, Checks, CreateRequest, Posix, SetAttributes, Usage};
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Attributes, Call, Caller, FileKind, Hold, InodeNumber, Name, VolumeError};
use flashpath::run::{Path, open_file_system};
use flashpath::task::Task;
use flashpath::time::Time;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};

pub const ROOT: InodeNumber = InodeNumber::ROOT;
/// Every file system, in memory.
pub const VOLUMES: [&str; 9] = [
    "tree:size=48M",
    "sfs:segment=256K/conv:size=64M,timing=off",
    "sfs/zns:size=128M,zone=1M,timing=off",
    "sfs:segment=256K,fsync=checkpoint/cache:size=1M/conv:size=64M",
    "ext/conv:size=64M,timing=off",
    "ext:data=journal/conv:size=64M,timing=off",
    "ext:memory=37M,cache=1M,page-cache=0,dirty=1M/conv:size=64M,timing=off",
    "ext/conv:size=64M,timing=off+conv:size=16M,timing=off",
    "ext:data=journal/conv:size=64M,timing=off+cache:size=1M/conv:size=16M",
];

/// A user with one group.
pub fn user(user: u32, group: u32) -> Caller<'static> {
    Caller { user, group, umask: 0o022, keeps_set_id: user == 0, ..Caller::ROOT }
}

/// A mounted volume. Each call begins a microsecond after the end of the previous one.
pub struct World {
    pub name: String,
    pub posix: Posix,
    now: AtomicU64,
}

impl World {
    /// A new volume in memory, with permission checks in [`Posix`].
    pub fn new(path: &str) -> World {
        World::opened(path, Access::IfWhole, 0)
    }

    /// The volume of a path, mounted at time `at` in nanoseconds.
    pub fn opened(path: &str, access: Access, at: u64) -> World {
        let volume = open_file_system(&Path::read(path).unwrap(), &Mounting::at(7, 1_000_000_000), access);
        let volume = volume.unwrap_or_else(|error| panic!("{path}: {error}"));
        let usage = Usage { checks: Checks::Here, access_times: AccessTimes::Relative, ..Usage::default() };
        World { name: path.to_string(), posix: Posix::new(volume, usage), now: AtomicU64::new(at) }
    }

    /// The start time of the next call.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Sets the start time of the next call.
    pub fn go_to(&self, now: u64) {
        self.now.store(now, Ordering::Relaxed);
    }

    /// Makes a call as this user.
    pub fn by<T>(
        &self,
        caller: Caller,
        act: impl FnOnce(&Posix, &Call) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let task = Task::at(Time(self.now.fetch_add(1000, Ordering::Relaxed)));
        let begun = task.now();
        let answer = act(&self.posix, &Call { task: &task, caller });
        assert!(task.now() >= begun, "{}: a call is not done before it begins", self.name);
        self.now.fetch_max(task.now().0 + 1000, Ordering::Relaxed);
        answer
    }

    /// Makes a call as root, which must succeed.
    pub fn root<T>(&self, act: impl FnOnce(&Posix, &Call) -> Result<T, VolumeError>) -> T {
        self.by(Caller::ROOT, act).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    pub fn make(&self, caller: Caller, name: Name, kind: FileKind, mode: u32) -> Result<Attributes, VolumeError> {
        self.by(caller, |posix, call| {
            posix.make(call, name, &CreateRequest { kind, mode, device: 0, target: b"" }, Hold::No)
        })
    }

    /// Creates a file as root.
    pub fn file(&self, name: Name, mode: u32) -> InodeNumber {
        self.make(Caller::ROOT, name, FileKind::Regular, mode).unwrap().inode
    }

    /// Creates a directory as root, and changes its owner.
    pub fn directory(&self, name: Name, mode: u32, owner: (u32, u32)) -> InodeNumber {
        let inode = self.make(Caller::ROOT, name, FileKind::Directory, 0o755).unwrap().inode;
        let wish = SetAttributes { user: Some(owner.0), group: Some(owner.1), ..SetAttributes::default() };
        self.root(|posix, call| posix.change(call, inode, &wish));
        self.root(|posix, call| {
            posix.change(call, inode, &SetAttributes { mode: Some(mode), ..SetAttributes::default() })
        });
        inode
    }

    pub fn attributes(&self, inode: InodeNumber) -> Attributes {
        self.root(|posix, call| posix.attributes(call, inode))
    }

    pub fn find(&self, name: Name) -> Option<InodeNumber> {
        self.root(|posix, call| posix.lookup(call, name, Hold::No)).map(|found| found.inode)
    }

    /// The names in a directory, sorted, without `.`, `..` and `lost+found`.
    pub fn names(&self, directory: InodeNumber) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        self.root(|posix, call| {
            posix.list(call, directory, 0, &mut |entry| {
                // A new ext4 volume has a `lost+found`.
                if !entry.is_dot() && (directory, entry.name) != (ROOT, b"lost+found") {
                    names.push(entry.name.to_vec());
                }
                true
            })
        });
        names.sort();
        names
    }

    pub fn read(&self, inode: InodeNumber) -> Vec<u8> {
        let mut bytes = vec![0; self.attributes(inode).size as usize];
        let length = self.root(|posix, call| posix.read(call, inode, 0, &mut bytes, true));
        assert_eq!(length, bytes.len());
        bytes
    }

    pub fn write(&self, inode: InodeNumber, offset: u64, bytes: &[u8]) {
        self.root(|posix, call| posix.write(call, inode, offset, bytes, false));
    }

    pub fn unmount(&self) {
        self.root(|posix, call| posix.volume().unmount(call));
    }
}

/// The error number of a call that must fail.
pub fn errno<T>(answer: Result<T, VolumeError>) -> Option<Errno> {
    answer.err().map(|error| error.errno())
}

/// Runs a test on a new volume of each file system.
pub fn each(statement: impl Fn(&World)) {
    for path in VOLUMES {
        let world = World::new(path);
        statement(&world);
        world.unmount();
        assert_eq!(errno(world.by(Caller::ROOT, |posix, call| posix.attributes(call, ROOT))), Some(Errno::IO));
    }
}
