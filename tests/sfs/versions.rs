//! Model of all versions of every block of every file: the possible content of a damaged volume.
//!
//! Damage may lose the newest version of a block, or make it unreadable. A block never reads as data that was not
//! written to this place of this file.

use super::calls::written;
use flashpath::fs::Durable;
use flashpath::fs::sfs::{Change, FileKind, IfExists, InodeNumber, NewFile, Sfs, SfsError};
use flashpath::random::Random;
use flashpath::task::Task;
use std::collections::{BTreeMap, BTreeSet};

const BLOCK: usize = 4096;
/// The number of files in use.
const FILES: u64 = 12;
const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };

/// A file: its current bytes, and each version of each block with its length before the end of the file.
#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    versions: BTreeMap<usize, BTreeSet<(usize, Vec<u8>)>>,
}

impl File {
    /// Records new content of the file.
    fn becomes(&mut self, bytes: Vec<u8>) {
        for (place, block) in bytes.chunks(BLOCK).enumerate() {
            let before = self.bytes.get(place * BLOCK..bytes.len().min((place + 1) * BLOCK));
            if before != Some(block) || self.bytes.len() != bytes.len() {
                self.versions.entry(place).or_default().insert((block.len(), block.to_vec()));
            }
        }
        self.bytes = bytes;
    }

    fn was(&self, place: usize, read: &[u8]) -> bool {
        let versions = self.versions.get(&place).into_iter().flatten();
        versions.into_iter().any(|(valid, bytes)| *valid >= read.len() && bytes[..read.len()] == *read)
    }
}

/// All written versions by inode. A reused inode number has the versions of both files.
#[derive(Clone, Default)]
pub struct Versions {
    files: BTreeMap<u64, File>,
    step: u64,
}

/// The content read from a volume: each file's bytes by path and block; `None` for unreadable blocks.
pub type Read = BTreeMap<String, (u64, Vec<Option<Vec<u8>>>)>;

impl Versions {
    /// Makes one random change to files in the root.
    pub fn step(&mut self, task: &Task<'_>, sfs: &mut Sfs, random: &mut Random) -> Result<(), SfsError> {
        self.step += 1;
        task.wait_until(task.now() + 1_000_000);
        let name = format!("file{}", random.below(FILES)).into_bytes();
        let other = format!("file{}", random.below(FILES)).into_bytes();
        let inode = match sfs.lookup(task, InodeNumber::ROOT, &name) {
            Ok(inode) => inode,
            Err(SfsError::NotFound) => {
                let inode = sfs.make(task, InodeNumber::ROOT, &name, &NEW)?;
                let file = self.files.entry(inode.0).or_default();
                file.bytes = Vec::new();
                inode
            }
            Err(error) => return Err(error),
        };
        let size = self.files[&inode.0].bytes.len();
        let (offset, length) = match random.below(3) {
            0 => (size as u64, 1 + random.below(14_000)),
            _ => (random.below(50_000), 1 + random.below(10_000)),
        };
        match random.below(20) {
            0..=8 => {
                let bytes = written(self.step, offset, length);
                sfs.write(task, inode, offset, &bytes)?;
                self.change(inode, |file| {
                    file.resize(file.len().max((offset + length) as usize), 0);
                    file[offset as usize..(offset + length) as usize].copy_from_slice(&bytes);
                });
            }
            9 => {
                sfs.change(task, inode, &Change { size: Some(offset), ..Change::default() })?;
                self.change(inode, |file| file.resize(offset as usize, 0));
            }
            10 => {
                sfs.punch(task, inode, offset, length)?;
                self.change(inode, |file| {
                    let end = file.len().min((offset + length) as usize);
                    if (offset as usize) < end {
                        file[offset as usize..end].fill(0);
                    }
                });
            }
            11 => sfs.unlink(task, InodeNumber::ROOT, &name)?,
            12 if name != other => {
                let (from, to) = ((InodeNumber::ROOT, &name[..]), (InodeNumber::ROOT, &other[..]));
                sfs.rename(task, from, to, IfExists::Replace)?;
            }
            13 => {
                task.wait_until(task.now() + 6_000_000_000);
                sfs.work(task)?;
            }
            14 if random.below(20) == 0 => sfs.sync(task)?,
            _ => sfs.sync_file(task, inode, Durable::All)?,
        }
        Ok(())
    }

    /// Makes one random change to an undamaged file, or creates a new one; damaged or older files are left alone.
    pub fn step_if_known(&mut self, task: &Task<'_>, sfs: &mut Sfs, random: &mut Random) -> Result<(), SfsError> {
        self.step += 1;
        let name = format!("new{}", random.below(4)).into_bytes();
        let inode = match sfs.lookup(task, InodeNumber::ROOT, &name) {
            Ok(inode) => inode,
            Err(SfsError::NotFound) => {
                let inode = sfs.make(task, InodeNumber::ROOT, &name, &NEW)?;
                self.files.entry(inode.0).or_default().bytes = Vec::new();
                inode
            }
            Err(error) => return Err(error),
        };
        let size = self.files[&inode.0].bytes.len() as u64;
        let bytes = written(self.step, size, 1 + random.below(10_000));
        sfs.write(task, inode, size, &bytes)?;
        self.change(inode, |file| file.extend(&bytes));
        sfs.sync_file(task, inode, Durable::All)
    }

    /// Creates a file that fills a volume.
    pub fn fill(&mut self, task: &Task<'_>, sfs: &mut Sfs, length: u64) -> Result<InodeNumber, SfsError> {
        let inode = sfs.make(task, InodeNumber::ROOT, b"full", &NEW)?;
        self.files.insert(inode.0, File::default());
        let bytes = written(1, 0, length);
        sfs.write(task, inode, 0, &bytes)?;
        self.change(inode, |file| file.extend(&bytes));
        Ok(inode)
    }

    fn change(&mut self, inode: InodeNumber, change: impl FnOnce(&mut Vec<u8>)) {
        let file = self.files.get_mut(&inode.0).unwrap();
        let mut bytes = file.bytes.clone();
        change(&mut bytes);
        file.becomes(bytes);
    }

    /// Fails if a block reads as data that was never written there.
    pub fn check(&self, read: &Read) -> Result<(), String> {
        for (path, (inode, blocks)) in read {
            let Some(file) = self.files.get(inode) else {
                return Err(format!("{path} is inode {inode}, which never existed"));
            };
            for (place, block) in blocks.iter().enumerate() {
                if block.as_ref().is_some_and(|block| !file.was(place, block)) {
                    let begins = &block.as_ref().unwrap()[..8.min(block.as_ref().unwrap().len())];
                    return Err(format!("block {place} of {path} (inode {inode}) begins {begins:02x?}: never written"));
                }
            }
        }
        Ok(())
    }
}

/// All readable content.
pub fn read_all(task: &Task<'_>, sfs: &mut Sfs) -> Read {
    let (mut all, mut left) = (Read::new(), vec![(InodeNumber::ROOT, String::new())]);
    let mut seen = BTreeSet::new();
    while let Some((directory, path)) = left.pop() {
        let mut entries = Vec::new();
        // An unreadable directory has no names.
        let _ = sfs.list(task, directory, 0, &mut |entry| {
            entries.push((entry.inode, entry.kind, entry.name.to_vec()));
            true
        });
        for (inode, kind, name) in entries.into_iter().filter(|(.., name)| name != b"." && name != b"..") {
            let path = format!("{path}/{}", String::from_utf8_lossy(&name));
            if kind == FileKind::Directory {
                if seen.insert(inode) {
                    left.push((inode, path));
                }
                continue;
            }
            let Ok(attributes) = sfs.attributes(task, inode) else { continue };
            let size = attributes.size.min(1 << 20);
            let blocks = (0..size).step_by(BLOCK).map(|offset| {
                let mut bytes = vec![0xee; BLOCK.min((size - offset) as usize)];
                sfs.read(task, inode, offset, &mut bytes).ok().map(|_| bytes)
            });
            all.insert(path, (inode.0, blocks.collect()));
        }
    }
    all
}
