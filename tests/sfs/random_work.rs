//! Random calls on sfs and on the model.

use super::model::{Node, Tree, resolve, split, tree_of};
use super::power_cut::{Disk, Power};
use super::{blocks, create, open};
use flashpath::fs::Durable;
use flashpath::fs::sfs::{Change, FileKind, IfExists, NewFile, Sfs, SfsError};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;

/// A source of random calls, with its model.
pub struct Worker {
    pub random: Random,
    pub tree: Tree,
    number: u64,
    most_bytes: u64,
}

fn new_file(kind: FileKind, target: &[u8]) -> NewFile<'_> {
    NewFile { kind, permissions: 0o644, user: 1, group: 2, device: 0, target, attributes: &[] }
}

impl Worker {
    pub fn new(seed: u64, most_bytes: u64) -> Worker {
        Worker { random: Random::new(seed, "work"), tree: Tree::new(), number: 0, most_bytes }
    }

    fn pick(&mut self, wanted: impl Fn(&Node) -> bool) -> Option<String> {
        let all: Vec<&String> = self.tree.iter().filter(|(_, node)| wanted(node)).map(|(path, _)| path).collect();
        if all.is_empty() {
            return None;
        }
        Some(all[self.random.below(all.len() as u64) as usize].clone())
    }

    fn a_directory(&mut self) -> String {
        if self.random.below(3) == 0 {
            return String::new();
        }
        self.pick(|node| matches!(node, Node::Directory)).unwrap_or_default()
    }

    fn a_new_path(&mut self) -> String {
        self.number += 1;
        let length = self.random.below(40) as usize;
        format!("{}/{}{}", self.a_directory(), self.number, "n".repeat(length))
    }

    fn bytes_of(&mut self, path: &str) -> &mut Vec<u8> {
        match self.tree.get_mut(path) {
            Some(Node::File { bytes, .. }) => bytes,
            other => panic!("{path} is {other:?}"),
        }
    }

    fn files(&mut self) -> Option<String> {
        // A file with two names would have to change under both in the model.
        self.pick(|node| matches!(node, Node::File { links: 1, .. }))
    }

    /// Makes one random call.
    pub fn step(&mut self, task: &Task<'_>, sfs: &mut Sfs) -> Result<(), SfsError> {
        task.wait_until(task.now() + 1_000_000);
        match self.random.below(100) {
            0..=14 => {
                let path = self.a_new_path();
                let (directory, name) = split(&path);
                let parent = resolve(task, sfs, directory);
                sfs.make(task, parent, name.as_bytes(), &new_file(FileKind::Regular, b""))?;
                self.tree.insert(path, Node::File { bytes: Vec::new(), links: 1 });
            }
            15..=18 => {
                let path = self.a_new_path();
                let (directory, name) = split(&path);
                let parent = resolve(task, sfs, directory);
                sfs.make(task, parent, name.as_bytes(), &new_file(FileKind::Directory, b""))?;
                self.tree.insert(path, Node::Directory);
            }
            19..=20 => {
                let path = self.a_new_path();
                let (directory, name) = split(&path);
                let target = vec![b't'; 1 + self.random.below(4095) as usize];
                let parent = resolve(task, sfs, directory);
                sfs.make(task, parent, name.as_bytes(), &new_file(FileKind::Symlink, &target))?;
                self.tree.insert(path, Node::Symlink(target));
            }
            21..=64 => {
                let Some(path) = self.files() else { return Ok(()) };
                let offset = self.random.below(self.most_bytes);
                let most = if self.random.below(4) == 0 { 40_000 } else { 6_000 };
                let length = 1 + self.random.below(most) as usize;
                let byte = self.random.bits() as u8;
                let inode = resolve(task, sfs, &path);
                sfs.write(task, inode, offset, &vec![byte; length])?;
                let bytes = self.bytes_of(&path);
                bytes.resize(bytes.len().max(offset as usize + length), 0);
                bytes[offset as usize..offset as usize + length].fill(byte);
            }
            65..=69 => {
                let Some(path) = self.files() else { return Ok(()) };
                let size = self.random.below(self.most_bytes);
                let inode = resolve(task, sfs, &path);
                sfs.change(task, inode, &Change { size: Some(size), ..Change::default() })?;
                self.bytes_of(&path).resize(size as usize, 0);
            }
            70..=73 => {
                let Some(path) = self.files() else { return Ok(()) };
                let (offset, length) = (self.random.below(self.most_bytes), 1 + self.random.below(30_000));
                let inode = resolve(task, sfs, &path);
                sfs.punch(task, inode, offset, length)?;
                let bytes = self.bytes_of(&path);
                let end = bytes.len().min((offset + length) as usize);
                if (offset as usize) < end {
                    bytes[offset as usize..end].fill(0);
                }
            }
            74..=75 => {
                let Some(path) = self.files() else { return Ok(()) };
                let (offset, length) = (self.random.below(self.most_bytes), 1 + self.random.below(30_000));
                let inode = resolve(task, sfs, &path);
                sfs.allocate(task, inode, offset, length, false)?;
                let bytes = self.bytes_of(&path);
                bytes.resize(bytes.len().max((offset + length) as usize), 0);
            }
            76..=85 => {
                let Some(path) = self.pick(|node| !matches!(node, Node::Directory)) else { return Ok(()) };
                let (directory, name) = split(&path);
                let parent = resolve(task, sfs, directory);
                let is_linked = matches!(self.tree[&path], Node::File { links: 2.., .. });
                if is_linked {
                    return Ok(());
                }
                sfs.unlink(task, parent, name.as_bytes())?;
                self.tree.remove(&path);
            }
            86..=91 => {
                let Some(from) = self.pick(|node| !matches!(node, Node::Directory)) else { return Ok(()) };
                let replaces = self.random.below(2) == 0;
                let replaced =
                    replaces.then(|| self.pick(|node| matches!(node, Node::File { links: 1, .. }))).flatten();
                let to = replaced.unwrap_or_else(|| self.a_new_path());
                let ((from_directory, from_name), (to_directory, to_name)) = (split(&from), split(&to));
                let (one, other) = (resolve(task, sfs, from_directory), resolve(task, sfs, to_directory));
                sfs.rename(task, (one, from_name.as_bytes()), (other, to_name.as_bytes()), IfExists::Replace)?;
                let node = self.tree.remove(&from).unwrap();
                self.tree.insert(to, node);
            }
            92 => {
                let Some(path) = self.pick(|node| matches!(node, Node::Directory)) else { return Ok(()) };
                let is_empty = !self.tree.keys().any(|other| other.starts_with(&format!("{path}/")));
                let (directory, name) = split(&path);
                let parent = resolve(task, sfs, directory);
                match (sfs.remove_directory(task, parent, name.as_bytes()), is_empty) {
                    (Ok(()), true) => drop(self.tree.remove(&path)),
                    (Err(SfsError::NotEmpty), false) => {}
                    (other, _) => panic!("{path}: {other:?}"),
                }
            }
            93..=96 => {
                let Some(path) = self.files() else { return Ok(()) };
                let inode = resolve(task, sfs, &path);
                sfs.sync_file(task, inode, if self.random.below(2) == 0 { Durable::All } else { Durable::Data })?;
            }
            97 => {
                let Some(path) = self.files() else { return Ok(()) };
                let inode = resolve(task, sfs, &path);
                let attributes = sfs.attributes(task, inode)?;
                let mut bytes = vec![0; attributes.size as usize];
                sfs.read(task, inode, 0, &mut bytes)?;
                assert!(bytes == *self.bytes_of(&path), "{path}");
            }
            98 => {
                task.wait_until(task.now() + 6_000_000_000);
                sfs.work(task)?;
            }
            _ => {
                if self.random.below(5) == 0 {
                    sfs.sync(task)?;
                }
            }
        }
        Ok(())
    }
}

fn differences(found: &Tree, expected: &Tree) -> String {
    for (path, node) in expected {
        match (found.get(path), node) {
            (None, _) => return format!("{path} is missing"),
            (Some(Node::File { bytes, .. }), Node::File { bytes: wanted, .. }) if bytes != wanted => {
                let at = bytes.iter().zip(wanted).position(|(one, other)| one != other);
                return format!("{path}: {} bytes, {} wanted, first difference at {at:?}", bytes.len(), wanted.len());
            }
            (Some(found), node) if std::mem::discriminant(found) != std::mem::discriminant(node) => {
                return format!("{path} has another kind");
            }
            _ => {}
        }
    }
    found
        .keys()
        .find(|path| !expected.contains_key(*path))
        .map_or(String::new(), |path| format!("{path} should not exist"))
}

pub fn assert_same(task: &Task<'_>, sfs: &mut Sfs, expected: &Tree, when: &str) {
    let found = tree_of(task, sfs);
    assert!(found == *expected, "{when}: {}", differences(&found, expected));
}

#[test]
fn random_work_matches_the_model_before_and_after_a_remount() {
    let task = &Task::at(Time::ZERO);
    for (seed, text) in [
        (1, "sfs"),
        (2, "sfs:groups=1,cleaner=cost-benefit"),
        (3, "sfs:grouping=sepbit,cleaner=greedy"),
        (4, "sfs:grouping=dac,fsync=checkpoint"),
    ] {
        let power = Power::new();
        let disk = Disk::new(&power, 24 << 8, 0);
        let mut sfs = create(blocks(disk.clone()), text);
        let mut worker = Worker::new(seed, 200_000);
        for round in 0..6 {
            for step in 0..1500 {
                match worker.step(task, &mut sfs) {
                    Ok(()) | Err(SfsError::NoSpace { .. }) => {}
                    Err(error) => panic!("{text}, round {round}, step {step}: {error}"),
                }
            }
            assert_same(task, &mut sfs, &worker.tree, &format!("{text}, round {round}"));
            sfs.unmount(task).unwrap();
            drop(sfs);
            sfs = open(blocks(disk.clone()), text);
            task.wait_until(Time(round * 1_000_000_000_000));
            assert_same(task, &mut sfs, &worker.tree, &format!("{text}, remounted after round {round}"));
        }
        let account = sfs.account();
        eprintln!("{text}: {:?} {:?}", account.events, sfs.space());
    }
}
