//! Random work on a volume, and beside it on the reference tree: both answer alike, and hold the same in the end.

use crate::image::call;
use crate::walk::{Tree, of_volume};
use flashpath::fs::station::Mounting;
use flashpath::fs::tree::Tree as Reference;
use flashpath::fs::volume::{
    Allocation, Change, ExtendedChange, FileKind, Hold, IfExists, InodeNumber, Locked, NewFile, Renaming, Volume,
    VolumeError,
};
use flashpath::random::Random;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A file: its inode on the volume, and that on the reference.
type Both = (InodeNumber, InodeNumber);

pub struct Work {
    random: Random,
    reference: Reference,
    directories: Vec<Both>,
    files: Vec<Both>,
}

/// The two answers to one call agree, but for what only one of them knows.
fn agree<T>(what: &str, ours: Result<T, VolumeError>, theirs: Result<T, VolumeError>) -> Option<(T, T)> {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => Some((ours, theirs)),
        (Err(ours), Err(theirs)) if ours.errno() == theirs.errno() => None,
        (ours, theirs) => {
            panic!("{what}: ours {:?}, the reference's {:?}", ours.map(drop), theirs.map(drop))
        }
    }
}

impl Work {
    pub fn new(seed: u64) -> Work {
        let root = (InodeNumber::ROOT, InodeNumber::ROOT);
        Work {
            random: Random::new(seed, "work"),
            reference: Reference::new(1 << 30, &Mounting::at(1, 1_000_000_000)),
            directories: vec![root],
            files: Vec::new(),
        }
    }

    /// Work in a new directory of a volume that has other files.
    pub fn within(seed: u64, volume: &dyn Volume, name: &str) -> Work {
        let mut work = Work::new(seed);
        let new = NewFile {
            kind: FileKind::Directory,
            permissions: 0o755,
            user: 0,
            group: 0,
            device: 0,
            target: b"",
            attributes: &[],
        };
        let make = |volume: &dyn Volume| {
            call(|call| volume.make(call, (InodeNumber::ROOT, name.as_bytes()), &new, Hold::No, None)).unwrap().inode
        };
        work.directories = vec![(make(volume), make(&work.reference))];
        work
    }

    fn pick(&mut self, directories: bool) -> Both {
        let count = if directories { self.directories.len() } else { self.files.len() };
        let at = self.random.below(count as u64) as usize;
        if directories { self.directories[at] } else { self.files[at] }
    }

    fn name(&mut self) -> Vec<u8> {
        // Some are long, so that blocks of names are full soon.
        let number = self.random.below(400);
        if number.is_multiple_of(3) {
            format!("{number} {}", "long ".repeat(40)).into_bytes()
        } else {
            format!("{number}").into_bytes()
        }
    }

    /// One call, on both.
    pub fn step(&mut self, volume: &dyn Volume) {
        match self.random.below(100) {
            0..24 => self.make(volume),
            24..34 => self.remove(volume),
            34..40 => self.rename(volume),
            40..44 => self.link(volume),
            44..72 => self.write(volume),
            72..80 => self.resize(volume),
            80..88 => self.allocate(volume),
            88..93 => self.attribute(volume),
            93..97 => self.read(volume),
            _ => self.sync(volume),
        }
    }

    fn make(&mut self, volume: &dyn Volume) {
        let (directory, name) = (self.pick(true), self.name());
        let kind = match self.random.below(10) {
            0 | 1 => FileKind::Directory,
            2 => FileKind::Symlink,
            3 => FileKind::Fifo,
            _ => FileKind::Regular,
        };
        let target = "t".repeat(1 + self.random.below(200) as usize);
        let target = if kind == FileKind::Symlink { target.as_bytes() } else { b"" };
        let new = NewFile { kind, permissions: 0o640, user: 3, group: 4, device: 0, target, attributes: &[] };
        let ours = call(|call| volume.make(call, (directory.0, &name), &new, Hold::No, None));
        let theirs = call(|call| self.reference.make(call, (directory.1, &name), &new, Hold::No, None));
        if let Some((ours, theirs)) = agree("make", ours, theirs) {
            let both = (ours.inode, theirs.inode);
            match kind {
                FileKind::Directory => self.directories.push(both),
                FileKind::Regular => self.files.push(both),
                _ => {}
            }
        }
    }

    fn remove(&mut self, volume: &dyn Volume) {
        let (directory, name) = (self.pick(true), self.name());
        let is_directory = self.random.below(4) == 0;
        let remove = |volume: &dyn Volume, directory| {
            call(|call| match is_directory {
                true => volume.remove_directory(call, (directory, &name), None),
                false => volume.unlink(call, (directory, &name), None),
            })
        };
        agree("remove", remove(volume, directory.0), remove(&self.reference, directory.1));
        self.forget_gone();
    }

    /// Inodes that are gone are asked for no more: their numbers may be other files' soon.
    fn forget_gone(&mut self) {
        let reference = &self.reference;
        let is_there = |both: &Both| call(|call| reference.attributes(call, both.1)).is_ok_and(|found| found.links > 0);
        self.files.retain(is_there);
        self.directories.retain(is_there);
    }

    fn rename(&mut self, volume: &dyn Volume) {
        let (from, to) = (self.pick(true), self.pick(true));
        let (from_name, to_name) = (self.name(), self.name());
        let taken = match self.random.below(5) {
            0 => IfExists::Exchange,
            1 => IfExists::Refuse,
            _ => IfExists::Replace,
        };
        let is_whiteout = taken != IfExists::Exchange && self.random.below(10) == 0;
        let how = Renaming { if_exists: taken, whiteout: is_whiteout.then_some((0, 0)) };
        let ours = call(|call| volume.rename(call, (from.0, &from_name), (to.0, &to_name), how, None));
        let theirs = call(|call| self.reference.rename(call, (from.1, &from_name), (to.1, &to_name), how, None));
        agree("rename", ours, theirs);
        self.forget_gone();
    }

    fn link(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let (file, directory, name) = (self.pick(false), self.pick(true), self.name());
        let ours = call(|call| volume.link(call, file.0, (directory.0, &name), Hold::No, None));
        let theirs = call(|call| self.reference.link(call, file.1, (directory.1, &name), Hold::No, None));
        agree("link", ours, theirs);
    }

    fn write(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let file = self.pick(false);
        let most = if self.random.below(8) == 0 { 60_000 } else { 6000 };
        let length = 1 + self.random.below(most) as usize;
        let far = if self.random.below(20) == 0 { 40_000_000 } else { 120_000 };
        let offset = self.random.below(far);
        let bytes: Vec<u8> = (0..length).map(|_| self.random.below(256) as u8).collect();
        let ours = call(|call| volume.write(call, file.0, offset, &bytes, None));
        let theirs = call(|call| self.reference.write(call, file.1, offset, &bytes, None));
        agree("write", ours, theirs);
    }

    fn resize(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let (file, size) = (self.pick(false), self.random.below(150_000));
        let resize = |volume: &dyn Volume, inode| {
            let mut rule = |_: &mut dyn Locked| Ok(Some(Change { size: Some(size), ..Change::default() }));
            call(|call| volume.change(call, inode, &mut rule)).map(drop)
        };
        agree("resize", resize(volume, file.0), resize(&self.reference, file.1));
    }

    fn allocate(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let file = self.pick(false);
        let range = (self.random.below(100_000), 1 + self.random.below(80_000));
        let how = match self.random.below(3) {
            0 => Allocation::Reserve { keep_size: self.random.below(2) == 0 },
            1 => Allocation::Punch,
            _ => Allocation::Zero { keep_size: self.random.below(2) == 0 },
        };
        let ours = call(|call| volume.allocate(call, file.0, range, how, None));
        if matches!(ours, Err(VolumeError::Unsupported(_))) {
            // A block map has no reserved blocks.
            return;
        }
        let theirs = call(|call| self.reference.allocate(call, file.1, range, how, None));
        agree("allocate", ours, theirs);
    }

    fn attribute(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let file = self.pick(false);
        let name = format!("user.{}", self.random.below(4)).into_bytes();
        let value = vec![7; self.random.below(180) as usize];
        let value = (self.random.below(3) > 0).then_some(value);
        let set = |volume: &dyn Volume, inode| {
            let mut rule = |_: &mut dyn Locked| {
                let value = value.as_deref().map(Cow::Borrowed);
                let extended = vec![ExtendedChange { name: &name, value }];
                Ok(Some(Change { extended, permissions: Some(0o600), ..Change::default() }))
            };
            call(|call| volume.change(call, inode, &mut rule)).map(drop)
        };
        agree("attribute", set(volume, file.0), set(&self.reference, file.1));
    }

    fn read(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let (file, offset) = (self.pick(false), self.random.below(150_000));
        let length = 1 + self.random.below(30_000) as usize;
        let read = |volume: &dyn Volume, inode| {
            let mut bytes = vec![9; length];
            call(|call| volume.read(call, inode, offset, &mut bytes)).map(|read| {
                bytes.truncate(read.length);
                bytes
            })
        };
        if let Some((ours, theirs)) = agree("read", read(volume, file.0), read(&self.reference, file.1)) {
            assert!(ours == theirs, "{offset}, {length} bytes");
        }
    }

    fn sync(&mut self, volume: &dyn Volume) {
        if self.files.is_empty() {
            return;
        }
        let file = self.pick(false);
        let what = if self.random.below(2) == 0 { flashpath::fs::Durable::All } else { flashpath::fs::Durable::Data };
        call(|call| volume.sync_file(call, file.0, what)).unwrap();
    }

    /// Both hold the same, but for what is theirs alone: times, and blocks.
    pub fn compare(&self, volume: &dyn Volume) {
        let plain = |tree: Tree| -> BTreeMap<Vec<u8>, _> {
            let rows = tree.into_iter().filter(|(path, _)| path != b"/lost+found");
            rows.map(|(path, seen)| {
                let size = if seen.kind == FileKind::Directory { 0 } else { seen.size };
                (path, (seen.kind, seen.permissions, seen.links, seen.owner, size, seen.content, seen.attributes))
            })
            .collect()
        };
        let (ours, theirs) = (plain(of_volume(volume)), plain(of_volume(&self.reference)));
        for (path, seen) in &theirs {
            assert_eq!(ours.get(path), Some(seen), "{}", String::from_utf8_lossy(path));
        }
        assert_eq!(ours.len(), theirs.len());
    }
}
