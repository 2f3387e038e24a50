//! A file in a mounted volume of this process, whose writes and fsyncs are timed.

use flashpath::fs::Durable;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::run::{Path, make_volume, open_file_system};
use flashpath::task::Task;
use flashpath::time::Time;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Instant;

/// A file in a mounted volume.
pub struct Written {
    volume: Arc<dyn Volume>,
    file: InodeNumber,
    began: Instant,
}

impl Written {
    /// In a volume that is made of a path, and opened by another one.
    pub fn new(making: &str, opening: &str) -> Written {
        let path = |text: &str| Path::read(text).expect("a path");
        make_volume(&path(making), false, 1, 0, None).expect("a volume");
        let volume = open_file_system(&path(opening), &Mounting::at(1, 0), Access::IfWhole).expect("a volume");
        let task = Task::at(Time(0));
        let new = NewFile {
            kind: FileKind::Regular,
            permissions: 0o644,
            user: 0,
            group: 0,
            device: 0,
            target: b"",
            attributes: &[],
        };
        let made = volume.make(&Call::by_root(&task), (InodeNumber::ROOT, b"file"), &new, Hold::No, None);
        let file = made.expect("a file").inode;
        Written { volume, file, began: Instant::now() }
    }

    fn call<T>(&self, act: impl FnOnce(&Call) -> T) -> T {
        let task = Task::at(Time(self.began.elapsed().as_nanos() as u64));
        act(&Call::by_root(&task))
    }

    /// Nanoseconds of a write, and of an fsync with it.
    pub fn write(&self, bytes: &[u8], is_synced: bool) -> f64 {
        let began = Instant::now();
        self.call(|call| self.volume.write(call, self.file, 0, bytes, None)).expect("it is written");
        if is_synced {
            self.sync();
        }
        began.elapsed().as_nanos() as f64
    }

    /// Nanoseconds of an fsync.
    pub fn sync(&self) -> f64 {
        let began = Instant::now();
        self.call(|call| self.volume.sync_file(call, self.file, Durable::All)).expect("it is synced");
        began.elapsed().as_nanos() as f64
    }

    pub fn unmount(&self) {
        self.call(|call| self.volume.unmount(call)).expect("it is unmounted");
    }
}

/// The path of a file of this name in a directory.
pub fn at(directory: &FilePath, name: &str) -> String {
    directory.join(name).display().to_string()
}
